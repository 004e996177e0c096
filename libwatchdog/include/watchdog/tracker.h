/// \file
/// The agent's side: reports what it does, and receives requests to stop.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "watchdog/budget.h"
#include "watchdog/health.h"
#include "watchdog/result.h"
#include "watchdog/session.h"

namespace watchdog {

/// A running total with its name. A plain value.
struct Counter {
  std::string_view name{};  ///< Its name.
  double value = 0;         ///< Running total.
};

/// One iteration of the agent's loop.
struct Heartbeat {
  std::optional<std::int64_t>
      iteration{};                      ///< The number of the loop's iteration; empty: not counted.
  std::string_view phase{};             ///< What the agent does; empty: not reported.
  std::span<const Counter> counters{};  ///< Running totals: activity, not progress.
  Source source = Source::loop;         ///< The sender.
  /// The next progress may take this long: until then the session is not called slow.
  std::optional<Millis> expect_quiet{};
};

/// The request to the agent. `cancel`: clean up and call `cancelled()`; `directive()` has who asked
/// and why.
enum class Advice : std::uint8_t { go_on, cancel };

/// The reports of a session while it runs. A part of an agent that must not end the session takes
/// this instead of the tracker. Each function returns what the agent is asked to do. Thread-safe.
class ProgressReporter {
 public:
  ProgressReporter(const ProgressReporter&) = delete;
  ProgressReporter& operator=(const ProgressReporter&) = delete;

  /// Reports an iteration. Costs some tens of nanoseconds and never waits for the disk.
  Advice heartbeat(const Heartbeat& beat) noexcept;

  /// Reports progress. `data` is JSON text or any other text. Never lost while the process lives.
  Advice state_change(std::string_view type, std::string_view data = {});
  /// Reports the start of a tool call. `arguments` is JSON text or any other text.
  Advice tool_call(std::string_view tool, std::string_view arguments, std::string_view call_id = {},
                   std::optional<Millis> deadline = {});
  /// Reports the result of a call.
  Advice tool_result(std::string_view tool, std::string_view result, std::string_view call_id = {});
  /// Reports that a call failed.
  Advice tool_error(std::string_view tool, std::string_view error, std::string_view call_id = {});
  /// Reports a message of the conversation.
  Advice message(std::string_view role, std::string_view text);
  /// Takes a piece of the model's answer as it comes, of any size. It reports only if the text
  /// repeats itself. The answer ends with the next message, call, state change or `retry`.
  Advice stream(std::string_view fragment);
  /// The newest answer is requested again: its reports do not count.
  Advice retry();
  /// Reports what a person entered.
  Advice user_input(std::string_view text);
  /// Declares a wait for `input`, `approval`, `quota`, `dependency`, `human`, `backend` or another
  /// word. The next state change, tool call, user input, or heartbeat of a later iteration ends it.
  /// A counter that rises also ends the wait for `backend`. `why` is shown with the wait for
  /// `backend`: the server and its error.
  Advice wait_for(std::string_view what, std::string_view why = {});
  /// The same, of a wait whose end is known, such as one for `quota`.
  Advice wait_for(std::string_view what, std::string_view why, WallTime until);
  /// The turn is done and no input is open.
  Advice idle();
  /// Reports anything else.
  Advice report(Report report);

 protected:
  struct State;
  /// For the class that derives from it.
  explicit ProgressReporter(std::shared_ptr<State> state);
  ~ProgressReporter();
  std::shared_ptr<State> state_;  ///< Never null.
};

/// Reports of one session, stored in a file that other processes and a monitor read. The tracker
/// never stops the agent. If a store cannot be opened, is full or vanishes, the log says so once.
/// The reports then stay in memory; above 8 MiB the tracker reduces their contents to digests. A
/// session that no store would accept (see `check`) is not recorded: the log says so once, and
/// `flush` and every end fail at once with `invalid`. In a forked child all calls are no-ops that
/// succeed, because SQLite does not survive a fork. A child that wants to report must first execute
/// another program, or report over HTTP. Thread-safe.
class ProgressTracker : public ProgressReporter {
 public:
  /// The session to report, and its options. A plain value.
  struct Config {
    std::string session{};             ///< Empty: a new ULID.
    SessionSpec spec{};                ///< Agent, task, labels, policy, content level.
    std::filesystem::path database{};  ///< Empty: default_database().
    bool sidecar = true;               ///< Send heartbeats of the process automatically.
    /// The origin of the reports: the agent itself, unless this program reports for it.
    ReportOrigin origin = ReportOrigin::agent;
    /// How long the store may refuse before `flush` returns an error. It does not bound the run.
    Millis refusal_max{5'000};
    /// The clock; it must outlive the tracker.
    const Clock* clock = &system_clock();
    /// Receives a sentence when the store fails, and when it works again. Called from the tracker's
    /// own thread. Default: standard error.
    std::function<void(const std::string&)> log{};
  };

  ProgressTracker() : ProgressTracker(Config{}) {}
  /// Starts or continues the session. Never fails: see the class.
  explicit ProgressTracker(Config config);
  /// Writes pending reports for at most `refusal_max`. It does not end the session.
  ~ProgressTracker();

  /// Returns the session's id.
  [[nodiscard]] const std::string& session() const noexcept;

  /// Ends the session; returns when that is durable. Errors: `conflict` (it has ended already),
  /// `unavailable` (the store refused for `refusal_max`; the report stays queued), `invalid` (the
  /// session is not recorded).
  Result<void> complete();
  /// Ends the session as failed. Errors: see `complete`, as of the next two.
  Result<void> fail(std::string_view error, std::string_view reason = "error");
  /// Ends it as incomplete.
  Result<void> incomplete(std::string_view reason);
  /// Ends it as cancelled.
  Result<void> cancelled(std::string_view by);
  /// Ends it with any other outcome.
  Result<void> end(Outcome outcome);

  /// Returns when all earlier reports are durable. Errors: `unavailable`, `cancelled` (`stop`),
  /// `invalid`.
  Result<void> flush(std::stop_token stop = {});

  /// Returns the present requests to this session.
  [[nodiscard]] Directive directive() const;
  /// Sets the listener for aborts of turns and calls. It gets each abort once, on the tracker's own
  /// thread: pending ones at once, later ones when they arrive. `on_abort` returns when the
  /// previous listener no longer runs, so hold no lock that it takes. The listener may report, but
  /// nothing is written before it returns. Null: aborts wait.
  void on_abort(std::function<void(const CancelRequest&)> listener);
  /// Requested when `directive()` has a cancel, also while the agent waits. Callbacks on it run on
  /// the tracker's thread.
  [[nodiscard]] std::stop_token cancel_token() const noexcept;
  /// Receives each report except heartbeats, on the reporting thread, before the call returns.
  /// Null: none. When this returns the previous listener no longer runs, except where a callback
  /// of the tracker calls it.
  void listen(std::function<void(const Report&)> listener);
  /// Returns the file of the session.
  [[nodiscard]] const std::filesystem::path& database() const noexcept;
  /// Returns the session as judged by this tracker's reports, with or without a store.
  [[nodiscard]] Case judged() const;
  /// Returns the progress document.
  [[nodiscard]] std::string progress() const;

 private:
  class Writer;
};

/// Checks that a session with these properties can be recorded. Errors: `invalid`, naming the
/// field.
[[nodiscard]] Result<void> check(const ProgressTracker::Config& config);

/// Reports a budget's figures as events of kind `budget`, with names from `budget_reports`. They
/// count as signs of life and change no health. Thread-safe.
///
/// Each session reports its own figures, including its children's use. So the progress documents in
/// a list of sessions are enough to show a parent and its children.
class BudgetReporter {
 public:
  /// REQUIRES: both outlive it.
  BudgetReporter(ProgressReporter& reporter, const BudgetView& budget)
      : reporter_(reporter), budget_(budget), extensions_said_(budget.extensions()) {}

  /// Call it after each step: reports `update`, then calls `warn`.
  void update();
  /// Call it between two steps, at any rate. Reports `extended` if the budget was extended; both
  /// warnings may then be repeated. Reports `low_budget_warning` once from the stage `warn` on. If
  /// time is enforced, reports `timeout_warning` once, when a fifth of it is left, or when the
  /// share of `warn` is used if that is earlier.
  void warn();
  /// Reports that the clock of the budget was paused.
  void paused() { report_figures(budget_reports::paused); }
  /// Reports that the clock of the budget goes on.
  void resumed() { report_figures(budget_reports::resumed); }

 private:
  void report_figures(std::string_view name);

  ProgressReporter& reporter_;
  const BudgetView& budget_;
  std::atomic<std::int64_t> extensions_said_ = 0;
  std::atomic<bool> low_said_ = false;
  std::atomic<bool> timeout_said_ = false;
};

/// Returns a report of kind `budget`. `child`: the session of the figures; empty: its own.
[[nodiscard]] Report budget_report(std::string_view name, const BudgetFigures& figures,
                                   std::string_view child = {});

}  // namespace watchdog
