/// \file
/// What a prediction knows of a run: a few numbers that follow from its events alone.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "watchdog/history.h"

namespace watchdog {

/// A number about a run. Shares are 0 … 1. Models name features by these words.
enum class Feature : std::uint8_t {
  repetition,        ///< ln(1 + the highest score of repeated calls so far)
  repeats,           ///< share of the calls that repeated an earlier one
  failures,          ///< share of the calls that failed
  recent_failures,   ///< the same of the latest 8
  same_error,        ///< ln(1 + the longest row of one tool's equal errors)
  informative,       ///< share of the results that said more than "done"
  new_arguments,     ///< share of the words of arguments that were new to the run
  recent_arguments,  ///< the same, mean of the latest 8 calls
  recent_results,    ///< likewise for results
  recent_messages,   ///< likewise for the agent's messages
  similar_calls      ///< similarity to the most similar of the 8 calls before, mean of the latest 8
};

template <>
struct Names<Feature> {
  static constexpr std::string_view all[] = {
      "repetition",     "repeats",         "failures",      "recent_failures",
      "same_error",     "informative",     "new_arguments", "recent_arguments",
      "recent_results", "recent_messages", "similar_calls"};
};

inline constexpr std::size_t feature_count = std::size(Names<Feature>::all);
/// By number of the feature. NaN: not known, because the run has no such content.
using Features = std::array<double, feature_count>;

/// Characters of a content from which words are taken: as many as stores keep by default.
inline constexpr std::size_t feature_characters = 200;

/// The latest 8 values of a share.
class RecentMean {
 public:
  void add(double value) noexcept { values_[count_++ % values_.size()] = value; }
  /// NaN: none was added.
  [[nodiscard]] double mean() const noexcept;

 private:
  std::array<double, 8> values_{};
  std::uint64_t count_ = 0;
};

/// Words that a run used, as bits of a table of a fixed size. Two words may share a bit.
class SeenWords {
 public:
  /// Returns true if the word is new.
  bool add(std::uint64_t digest);

 private:
  static constexpr std::size_t bits = 65'536;
  std::vector<std::uint64_t> table_;  ///< Empty until there is a word.
};

/// Returns true if a report of this kind finishes a call.
[[nodiscard]] constexpr bool finishes_call(ReportKind kind) noexcept {
  return kind == ReportKind::tool_result || kind == ReportKind::error ||
         kind == ReportKind::tool_timeout;
}

/// Folds in the events of one session in order. Each costs the same however long the run is, and
/// the size is bounded. Times play no part. Use from one thread at a time.
class RunFeatures {
 public:
  /// Late events change nothing.
  void fold(const Event& event);
  /// Returns the number of finished calls.
  [[nodiscard]] std::int64_t calls() const noexcept { return calls_; }
  [[nodiscard]] Features features() const;
  /// Returns the number of the session's attempt.
  [[nodiscard]] std::int32_t attempt() const noexcept { return history_.attempt; }
  /// Returns the newest event folded in.
  [[nodiscard]] Seq seq() const noexcept { return history_.seq; }

 private:
  void fold_call(const Event& event);
  void fold_result(const Event& event);
  void fold_message(const Event& event);

  History history_;
  Policy policy_;
  std::int64_t begun_ = 0;
  std::int64_t calls_ = 0;
  std::int64_t failures_ = 0;
  std::int64_t repeats_ = 0;
  std::int64_t informative_ = 0;
  std::int64_t argument_words_ = 0;
  std::int64_t new_argument_words_ = 0;
  double score_max_ = 0;
  std::int32_t same_error_max_ = 0;
  SeenWords arguments_, results_, messages_;
  RecentMean recent_failures_, recent_arguments_, recent_results_, recent_messages_, similar_;
  std::vector<std::vector<std::uint32_t>> samples_;  ///< Of the latest calls' arguments.
};

}  // namespace watchdog
