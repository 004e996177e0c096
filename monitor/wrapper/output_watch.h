/// \file
/// Finds progress in a command's output while it passes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "calls/movement.h"
#include "ingest/agent_stream.h"
#include "privacy/redaction.h"
#include "watchdog/time.h"
#include "wrapper/lines.h"
#include "wrapper/recognition.h"
#include "wrapper/terminal_progress.h"

namespace watchdog::monitor {

/// The output so far, of all streams together. Thread-safe.
struct OutputTally {
  std::atomic<std::uint64_t> bytes{0};
  std::atomic<std::uint64_t> lines{0};
};

/// Looks at one stream. Use from one thread at a time.
class OutputWatch {
 public:
  /// The limit of reported lines that match an expression: a command that prints millions of them
  /// is not slowed.
  static constexpr int reported_per_second_max = 100;

  /// `say` gets what the output says.
  OutputWatch(Recognition recognition, OutputTally& tally, std::function<void(Report)> say);

  void feed(std::string_view bytes);
  /// Ends the output.
  void finish();
  /// Returns how the agent in the output says that its run ended. REQUIRES: the output is over.
  [[nodiscard]] const std::optional<Outcome>& stated_end() const noexcept { return stated_end_; }

 private:
  void feed_line(std::string_view line);
  void feed_agent(std::string_view line);
  /// True: no line can say anything.
  [[nodiscard]] bool is_idle() const;
  /// Returns true if another line may be reported in this second.
  [[nodiscard]] bool has_room();

  Recognition recognition_;
  OutputTally& tally_;
  std::function<void(Report)> say_;
  AgentStream agent_{};
  std::optional<Outcome> stated_end_{};
  LineReader lines_;
  News news_{};  ///< Of the lines that match: one that is printed again and again is none.
  LineRedactor redactor_;
  ProgressSequence sequence_;
  std::optional<TerminalProgress> progress_;  ///< Reported last.
  Millis second_{};                           ///< When the current one began.
  int reported_ = 0;                          ///< In it.
};

}  // namespace watchdog::monitor
