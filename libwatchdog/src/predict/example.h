/// \file
/// Ended runs as a prediction learns from them: features and outcome, no content.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "predict/features.h"
#include "watchdog/result.h"

namespace watchdog {

/// Models by the number of finished calls; the last one is for whole runs.
inline constexpr std::array<std::int64_t, 7> stage_calls = {4, 8, 12, 16, 32, 64, 0};
inline constexpr std::size_t stage_count = stage_calls.size();
inline constexpr std::size_t whole_run = stage_count - 1;

/// Returns the stage of a running session; nothing before the first.
[[nodiscard]] std::optional<std::size_t> stage_of(std::int64_t calls) noexcept;

/// How a run ended, as far as a prediction is concerned. `unfinished`: failed, incomplete, or
/// cancelled while it was stuck. `cut`: cancelled without that, which says nothing about it.
enum class ExampleEnd : std::uint8_t { finished, unfinished, cut };

template <>
struct Names<ExampleEnd> {
  static constexpr std::string_view all[] = {"finished", "unfinished", "cut"};
};

/// An ended run. A plain value.
struct Example {
  std::string agent{};  ///< Its kind of agent; empty: unknown.
  std::string task{};   ///< Runs of one task are never on both sides of a split.
  std::string split{};  ///< A given side; empty: by the task's digest.
  ExampleEnd end = ExampleEnd::finished;
  std::int64_t calls = 0;                                     ///< Its finished calls.
  std::array<std::optional<Features>, stage_count> stages{};  ///< Empty: it did not get that far.
};

/// Collects the features of a run at each stage. Only the newest attempt counts. Use from one
/// thread at a time.
class ExampleFold {
 public:
  void fold(const Event& event);
  /// Returns the stages and the number of calls so far.
  [[nodiscard]] Example example() const;
  [[nodiscard]] const RunFeatures& run() const noexcept { return run_; }

 private:
  RunFeatures run_;
  Example reached_;
};

inline constexpr std::size_t examples_max = 50'000;  ///< In one training.

/// One JSON object per line. Numbers are rounded to four digits, also for training.
[[nodiscard]] std::string to_json_lines(const std::vector<Example>& examples);
/// Errors: `malformed`, `invalid`, `exhausted`, with the line.
[[nodiscard]] Result<std::vector<Example>> examples_from_json_lines(std::string_view text);
/// Returns the value as the lines keep it.
[[nodiscard]] double rounded(double value) noexcept;

}  // namespace watchdog
