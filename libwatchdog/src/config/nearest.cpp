#include "config/nearest.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace watchdog {
namespace {

constexpr std::size_t word_bytes_max = 100;  // the time is the product of both lengths

/// Letters to insert, drop or change (Levenshtein).
std::size_t distance(std::string_view one, std::string_view other) {
  std::vector<std::size_t> row(other.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < one.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < other.size(); ++j) {
      const auto changed = diagonal + (one[i] == other[j] ? 0U : 1U);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
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

}  // namespace watchdog
