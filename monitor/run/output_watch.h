/// \file
/// What a command's output tells while it passes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "run/lines.h"
#include "run/recognition.h"
#include "run/terminal_progress.h"
#include "watchdog/time.h"

namespace watchdog::monitor {

/// How much there was so far, of all streams together. Thread-safe.
struct OutputTally {
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> lines{0};
};

/// Looks at one stream. Use from one thread at a time.
class OutputWatch {
 public:
  /// Of lines that an expression finds, so many a second are told: a command that prints them by
  /// the million is not held up, and nobody reads them.
  static constexpr int told_per_second_max = 100;

  /// `say` gets what the output says.
  OutputWatch(Recognition recognition, OutputTally& tally, std::function<void(Report)> say);

  void take(std::string_view bytes);
  /// There is no more.
  void finish();

 private:
  void take_line(std::string_view line);
  /// True if another line may be told in this second.
  [[nodiscard]] bool has_room();

  Recognition recognition_;
  OutputTally& tally_;
  std::function<void(Report)> say_;
  LineReader lines_;
  ProgressSequence sequence_;
  std::optional<TerminalProgress> progress_;  ///< Told last.
  Millis second_{};                           ///< When the current one began.
  int told_ = 0;                              ///< In it.
};

}  // namespace watchdog::monitor
