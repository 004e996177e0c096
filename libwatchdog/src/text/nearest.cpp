#include "text/nearest.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "privacy/content.h"

namespace watchdog {
namespace {

constexpr std::size_t word_bytes_max = 100;  // the time is the product of both lengths
constexpr std::size_t shown_chars_max = 60;

/// Letters to insert, drop, change or swap with their neighbour (optimal string alignment).
std::size_t distance(std::string_view one, std::string_view other) {
  std::vector<std::size_t> before(other.size() + 1);
  std::vector<std::size_t> last(other.size() + 1);
  std::vector<std::size_t> row(other.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= one.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= other.size(); ++j) {
      const auto changed = last[j - 1] + (one[i - 1] == other[j - 1] ? 0U : 1U);
      row[j] = std::min({changed, last[j] + 1, row[j - 1] + 1});
      const bool swapped =
          i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last.back();
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& words) {
  if (word.size() > word_bytes_max) return {};
  const std::string* found = nullptr;
  std::size_t least = word.size() / 3 + 1;  // further away it would be a guess
  for (const auto& candidate : words) {
    const auto changes = distance(word, candidate);
    if (changes >= least) continue;
    least = changes;
    found = &candidate;
  }
  return found != nullptr ? *found : std::string{};
}

std::string suggestion(std::string_view word, const std::vector<std::string>& words) {
  const auto near = nearest(word, words);
  return near.empty() ? near : "; did you mean " + near + "?";
}

std::string unknown_word(std::string_view what, std::string_view word,
                         const std::vector<std::string>& words) {
  // A secret that is cut is not recognised any more. What is far behind the shown part is not
  // looked at: the word may be a whole file.
  constexpr std::size_t look_ahead = 4'096;
  const auto safe = redact(first_characters(word, shown_chars_max + look_ahead));
  const std::string shown(first_characters(safe, shown_chars_max));
  std::string text = "unknown " + std::string(what) + " \"" + shown;
  text += shown.size() < safe.size() ? "…\"" : "\"";
  const auto near = suggestion(word, words);
  text += near + (near.empty() ? "; use one of: " : " Use one of: ");
  for (const auto& one : words) text += (&one == &words.front() ? "" : ", ") + one;
  return text;
}

}  // namespace watchdog
