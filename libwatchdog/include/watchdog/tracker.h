/// \file
/// What an agent links: it says what it does, and is told if somebody wants it to stop.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>

#include "watchdog/case.h"
#include "watchdog/result.h"
#include "watchdog/session.h"
#include "watchdog/store.h"

namespace watchdog {

struct Counter {
  std::string_view name;
  double value = 0;  ///< Running total.
};

/// One pass of the agent's loop.
struct Heartbeat {
  std::optional<std::int64_t> iteration{};
  std::string_view phase{};
  std::span<const Counter> counters{};
  Source source = Source::loop;
  /// The next progress may well take so long: until then the session is not called slow.
  std::optional<Millis> expect_quiet{};
};

/// What the agent is asked to do. `cancel`: wind up and call `cancelled()`; see `directive()` for
/// who asks and why.
enum class Advice : std::uint8_t { go_on, cancel };

/// Reports of one session, kept in a store that other processes and a monitor read. Never stops the
/// agent: a store that cannot be opened, is full or vanishes is mentioned once in the log, and
/// reports wait in memory (8 MiB; then contents are reduced to digests) until it can be reached
/// again. In a forked child all calls are no-ops that succeed. SQLite does not survive a fork: a
/// child that wants to report first executes another program, or reports over HTTP. Thread-safe.
class ProgressTracker {
 public:
  struct Config {
    std::string session{};             ///< Empty: a fresh ULID.
    SessionSpec spec{};                ///< Agent, task, labels, policy, what is kept.
    std::filesystem::path database{};  ///< Empty: default_database().
    bool sidecar = true;               ///< Send heartbeats of the process by itself.
    /// How long the store may refuse before `flush` gives up waiting. It bounds that call, not the
    /// run.
    Millis refusal_max{5'000};
    const Clock* clock = &system_clock();
    /// Gets a sentence when something is wrong with the store, and when it is well again. Called
    /// from the tracker's own thread. Default: standard error.
    std::function<void(const std::string&)> log{};
  };

  ProgressTracker() : ProgressTracker(Config{}) {}
  explicit ProgressTracker(Config config);
  /// Writes what is pending, for at most `refusal_max`. Ends nothing: a session without a terminal
  /// report stays running.
  ~ProgressTracker();
  ProgressTracker(const ProgressTracker&) = delete;
  ProgressTracker& operator=(const ProgressTracker&) = delete;

  [[nodiscard]] const std::string& session() const noexcept;

  /// "I am alive." Costs some tens of nanoseconds: never waits for the disk.
  Advice heartbeat(const Heartbeat& beat) noexcept;

  /// "I got somewhere." `data` is JSON text or any other text. Never lost while the process lives.
  Advice state_change(std::string_view type, std::string_view data = {});
  Advice tool_call(std::string_view tool, std::string_view arguments, std::string_view call_id = {},
                   std::optional<Millis> deadline = {});
  Advice tool_result(std::string_view tool, std::string_view result, std::string_view call_id = {});
  Advice tool_error(std::string_view tool, std::string_view error, std::string_view call_id = {});
  Advice message(std::string_view role, std::string_view text);
  /// A piece of the model's answer as it comes, of any size. Says nothing unless the text begins to
  /// repeat itself. The answer is over with the next message, call, state change or `retry`.
  Advice stream(std::string_view fragment);
  /// The newest answer is asked for again: what was said of it did not happen.
  Advice retry();
  Advice user_input(std::string_view text);
  /// Waits on purpose: for `input`, `approval`, `quota`, `dependency`, `human`, `backend`, … Ends
  /// with the next state change, tool call, user input, or heartbeat of a later iteration; the wait
  /// for `backend` also when a counter rises.
  Advice wait_for(std::string_view what);
  /// The turn is done and nobody has asked for more.
  Advice idle();
  /// Any other report.
  Advice report(Report report);

  /// Ends the session; returns once that is durable. Errors: `conflict` (it has ended already),
  /// `unavailable` (the store refused for `refusal_max`; the report stays queued).
  Result<void> complete();
  Result<void> fail(std::string_view error, std::string_view reason = "error");
  Result<void> incomplete(std::string_view reason);
  Result<void> cancelled(std::string_view by);
  /// With any other outcome.
  Result<void> end(Outcome outcome);

  /// Returns once everything reported before is durable. Errors: `unavailable`, `cancelled`
  /// (`stop`).
  Result<void> flush(std::stop_token stop = {});

  /// What somebody asked of this session.
  [[nodiscard]] Directive directive() const;
  /// Gets each abort of a turn or a call once, on the tracker's own thread: at once those asked for
  /// so far, later ones as soon as they are known. Returns when the listener before is not running
  /// any more, so hold no lock that it takes. It may report, but nothing is written before it
  /// returns. Null: nobody does, and what is asked for waits.
  void on_abort(std::function<void(const CancelRequest&)> listener);
  /// Asked for as soon as `directive()` holds a cancel, also while the agent waits for something.
  /// Callbacks on it run on the tracker's thread.
  [[nodiscard]] std::stop_token cancel_token() const noexcept;
  /// Gets each report but heartbeats, on the thread that reports and before that goes on. Null:
  /// nobody does.
  void listen(std::function<void(const Report&)> listener);
  /// Where the session is kept.
  [[nodiscard]] const std::filesystem::path& database() const noexcept;
  /// The session as judged by what this tracker reported, store or no store.
  [[nodiscard]] Case judged() const;
  /// The progress document.
  [[nodiscard]] std::string progress() const;

 private:
  struct State;
  class Writer;
  std::shared_ptr<State> state_;
};

}  // namespace watchdog
