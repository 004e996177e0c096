// Folds a session's events into features. `apply` folds them into a history as it does for the
// judge, and the features read its repetition. Words are only taken from the first 200 characters
// of a content, because stores keep no more by default. So a model sees the same in training, in
// use and in recorded runs.
#include "predict/features.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "facts/digest.h"
#include "facts/role.h"
#include "privacy/content.h"

namespace watchdog {
namespace {

constexpr std::size_t compared_calls = 8;
constexpr double not_known = std::numeric_limits<double>::quiet_NaN();

bool is_word_byte(char c) {
  const char folded = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  return (folded >= 'a' && folded <= 'z') || (c >= '0' && c <= '9') || c == '_' || (c & 0x80) != 0;
}

/// Returns the share of the text's words that are new; nothing if it has none.
std::optional<double> share_of_new(std::string_view text, SeenWords& seen) {
  text = first_characters(text, feature_characters);
  int words = 0;
  int fresh = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto begin = at;
    while (at < text.size() && is_word_byte(text[at])) ++at;
    if (at > begin) {
      ++words;
      fresh += seen.add(digest_of(text.substr(begin, at - begin))) ? 1 : 0;
    } else {
      ++at;
    }
  }
  if (words == 0) return {};
  return static_cast<double>(fresh) / words;
}

double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? not_known : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

double RecentMean::mean() const noexcept {
  const auto filled = std::min<std::uint64_t>(count_, values_.size());
  if (filled == 0) return not_known;
  double sum = 0;
  for (std::uint64_t at = 0; at < filled; ++at) sum += values_[at];
  return sum / static_cast<double>(filled);
}

bool SeenWords::add(std::uint64_t digest) {
  constexpr std::size_t word_bits = 64;
  if (table_.empty()) table_.resize(bits / word_bits);
  const auto bit = digest % bits;
  auto& word = table_[bit / word_bits];
  const auto mask = std::uint64_t{1} << (bit % word_bits);
  const bool is_new = (word & mask) == 0;
  word |= mask;
  return is_new;
}

void RunFeatures::fold(const Event& event) {
  apply(history_, event, policy_);
  if (event.late) return;
  switch (event.report.kind) {
    case ReportKind::tool_call:
      fold_call(event);
      break;
    case ReportKind::tool_result:
    case ReportKind::error:
    case ReportKind::tool_timeout:
      fold_result(event);
      break;
    case ReportKind::message:
      fold_message(event);
      break;
    default:
      break;
  }
  const auto& repetition = *history_.repetition;
  score_max_ = std::max(score_max_, repetition.score);
  same_error_max_ = std::max(same_error_max_, repetition.thrash.count);
}

void RunFeatures::fold_call(const Event& event) {
  ++begun_;
  const auto* marks = std::get_if<Marks>(&event.report.detail);
  if (marks == nullptr || marks->shingles.empty()) return;
  int fresh = 0;
  for (const auto shingle : marks->shingles) fresh += arguments_.add(shingle) ? 1 : 0;
  argument_words_ += static_cast<std::int64_t>(marks->shingles.size());
  new_argument_words_ += fresh;
  recent_arguments_.add(static_cast<double>(fresh) / static_cast<double>(marks->shingles.size()));
  double most = 0;
  for (const auto& sample : samples_) most = std::max(most, similarity(sample, marks->shingles));
  similar_.add(most);
  if (samples_.size() == compared_calls) samples_.erase(samples_.begin());
  samples_.push_back(marks->shingles);
}

void RunFeatures::fold_result(const Event& event) {
  ++calls_;
  const auto* marks = std::get_if<Marks>(&event.report.detail);
  const bool failed = is_failure(event.report.kind) || (marks != nullptr && marks->exit_code != 0);
  failures_ += failed ? 1 : 0;
  recent_failures_.add(failed ? 1 : 0);
  informative_ += marks != nullptr && marks->informative ? 1 : 0;
  repeats_ += history_.repetition->evidence > 0 ? 1 : 0;
  if (const auto fresh = share_of_new(event.report.content, results_)) recent_results_.add(*fresh);
}

void RunFeatures::fold_message(const Event& event) {
  if (speaker_of(event.report.name) != Speaker::agent) return;
  if (const auto fresh = share_of_new(event.report.content, messages_))
    recent_messages_.add(*fresh);
}

Features RunFeatures::features() const {
  Features values{};
  const auto set = [&](Feature feature, double value) {
    values[static_cast<std::size_t>(feature)] = value;
  };
  set(Feature::repetition, std::log1p(score_max_));
  set(Feature::repeats, share(repeats_, calls_));
  set(Feature::failures, share(failures_, calls_));
  set(Feature::recent_failures, recent_failures_.mean());
  set(Feature::same_error, std::log1p(same_error_max_));
  set(Feature::informative, share(informative_, calls_));
  set(Feature::new_arguments, share(new_argument_words_, argument_words_));
  set(Feature::recent_arguments, recent_arguments_.mean());
  set(Feature::recent_results, recent_results_.mean());
  set(Feature::recent_messages, recent_messages_.mean());
  set(Feature::similar_calls, similar_.mean());
  return values;
}

}  // namespace watchdog
