/// \file
/// Runs a command transparently, and reports what it does.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "watchdog/subprocess.h"
#include "wrapper/command.h"
#include "wrapper/output_watch.h"
#include "wrapper/pump.h"
#include "wrapper/recognition.h"
#include "wrapper/reporting.h"
#include "wrapper/terminal.h"

namespace watchdog::monitor {

/// The command, and how it is observed. A plain value.
struct WrapSpec {
  std::vector<std::string> words;  ///< The program and its arguments.
  std::vector<std::string> set;    ///< NAME=VALUE of its environment,
  std::vector<std::string> unset;  ///< NAME, not in it.
  std::array<bool, 3> closed{};    ///< Files that the caller closed; the command gets none, either.
  std::vector<int> ignored;        ///< Signals that the caller ignores, of SIGPIPE and SIGXFSZ.
  Recognition recognition;
  KillLadder ladder{};  ///< After a cancel of the session.
  Millis beat_every{2'000};
};

/// How a command ended. A plain value.
struct WrapEnd {
  std::optional<int> code;          ///< Its exit code; 126 and 127: it could not be run.
  std::optional<int> signal;        ///< That ended it.
  std::string error;                ///< Why it could not be run, or its fate; for people.
  bool cancelled = false;           ///< The session was cancelled before its end.
  std::optional<Outcome> stated{};  ///< How an agent in the output says that its run ended.
  std::uint64_t lines = 0;          ///< Of output,
  std::uint64_t bytes = 0;          ///< likewise.
  std::int64_t cpu_ms = 0;
  std::vector<std::string> holders;  ///< `NAME (PID)`: what it left behind and holds its output.

  /// The convention of shells: the code, or 128 + the signal.
  [[nodiscard]] int status() const { return code ? *code : 128 + signal.value_or(0); }
  /// As its session's.
  [[nodiscard]] Outcome outcome(const std::optional<CancelRequest>& cancel) const;
};

/// One run. The command has the caller's standard input; its output passes through. If all three
/// files are a terminal, it gets one of its own that behaves like it. If only some are, others of
/// the job may use the terminal, so it stays as it is. Signals to this process are passed on.
/// There is no limit of time. Use from one thread at a time.
class Wrapper {
 public:
  /// Makes all that is needed. REQUIRES: this process has one thread, and files 0, 1 and 2. From
  /// now on signals are blocked in it. Errors: `exhausted`.
  [[nodiscard]] static Result<std::unique_ptr<Wrapper>> prepare(WrapSpec spec);
  ~Wrapper();
  Wrapper(const Wrapper&) = delete;
  Wrapper& operator=(const Wrapper&) = delete;

  /// Runs the command to its end.
  [[nodiscard]] WrapEnd run(Reporting& reporting);

 private:
  struct Stream {
    FileDescriptor from;
    int to = -1;
    std::string origin;  ///< As /proc/PID/fd shows the other end.
  };

  explicit Wrapper(WrapSpec spec) : spec_(std::move(spec)) {}
  Result<void> open_files(Launch& launch);
  Result<void> open_terminal(Launch& launch);
  Result<void> open_screen(Launch& launch, int number);
  Result<void> open_pipe(Launch& launch, int number);
  void block_signals(Launch& launch);

  void turn();
  void handle_signal();
  void handle_news();
  void read_keys();
  void write_keys();
  void stop_with_command();
  void claim_terminal();
  void cancel();
  void climb();
  void beat();
  [[nodiscard]] bool drain();
  void account_for_output();
  [[nodiscard]] std::vector<std::string> holders_of(const std::vector<std::string>& origins) const;
  [[nodiscard]] int poll_timeout() const;

  WrapSpec spec_;
  std::optional<Command> command_;
  std::optional<Terminal> terminal_;
  FileDescriptor inner_;  ///< Our end of the command's terminal, or of one that only shows output.
  FileDescriptor signals_;
  FileDescriptor cancel_;
  std::vector<Stream> streams_;
  std::vector<std::unique_ptr<OutputWatch>> watches_;
  std::vector<std::unique_ptr<Pump>> pumps_;
  OutputTally tally_;
  Reporting* reporting_ = nullptr;
  std::string keys_;  ///< Typed, and not taken by the command yet.
  bool keys_end_ = false;
  Millis beat_at_{};
  std::optional<Millis> kill_at_;   ///< The next rung of the ladder.
  std::optional<Millis> verified_;  ///< When to stop looking for remaining processes.
  bool over_ = false;
  WrapEnd end_;
};

}  // namespace watchdog::monitor
