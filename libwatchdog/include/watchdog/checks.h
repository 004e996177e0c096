/// \file
/// Asks a model, concurrently with the agent, whether a session makes progress.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/health.h"
#include "watchdog/model_client.h"
#include "watchdog/report.h"
#include "watchdog/result.h"

namespace watchdog {

/// A check as far as it is known. A plain value.
struct Check {
  std::string id{};                        ///< Unique in the session.
  std::string session{};                   ///< The session that is checked.
  CheckState state = CheckState::pending;  ///< How far the check is.
  Verdict status = Verdict::none;          ///< The model's verdict.
  std::string reason{};                    ///< The model's words; of a failed check the cause.
  std::optional<double> confidence{};      ///< Its probability, 0 … 1, if it is known.
  Seq seen = 0;                            ///< The newest event that the question included.
  WallTime at{};  ///< When the answer came; before that, when it was asked.
};

/// The subject of a check. A plain value.
struct CheckSubject {
  std::string session{};        ///< The session's id.
  std::string goal{};           ///< The agent's task.
  std::vector<Event> recent{};  ///< The session's newest events, oldest first.
  Case judged{};                ///< The session as it is judged now.
};

/// Number of the newest events that the model gets.
inline constexpr int check_events = 20;

/// Returns the request to the model. Texts of the agent are marked as data and bounded.
[[nodiscard]] ChatRequest check_request(const CheckSubject& subject, int output_tokens_max = 100);

/// Returns a model's answer: the letter, its reason, and the letter's probability if it is known.
/// Strict: an answer that does not begin with a separate letter, or is not the requested object, is
/// `none`.
struct CheckAnswer {
  Verdict status = Verdict::none;      ///< The verdict.
  std::string reason{};                ///< The model's words.
  std::optional<double> confidence{};  ///< The probability of the verdict, 0 … 1, if it is known.
};
/// Returns the answer that a model gave. See CheckAnswer.
[[nodiscard]] CheckAnswer read_check(const ChatAnswer& answer);

/// Returns the event that stores the check. Its id is the event's (`event_id`), with the prefix `?`
/// while it is pending, so question and answer both stay readable.
[[nodiscard]] Report report_of(const Check& check, std::string_view model);
/// Returns the check that an event stores; nothing if it stores none.
[[nodiscard]] std::optional<Check> check_of(const Event& event, std::string_view session);

/// Returns the unfinished check among the subject's newest events.
[[nodiscard]] std::optional<Check> pending_check(const CheckSubject& subject);

/// Runs checks on its own threads; `start` returns at once. Thread-safe.
class StatusChecker {
 public:
  /// The model and the listeners of a checker.
  struct Parts {
    Model model{};  ///< The model that is asked.
    /// Returns true if something new happened since the check was asked: its answer is then
    /// `superseded`. May be empty. Called, like `done`, from one of the checker's threads.
    std::function<bool(const Check&)> outdated{};
    /// Receives each check when it has ended, before the waiting callers.
    std::function<void(const Check&)> done{};
  };
  /// Limits of checks. A plain value.
  struct Options {
    std::string model{};          ///< Name of the model; empty: the client's own.
    int output_tokens_max = 100;  ///< A letter and one sentence, in any language.
    /// Concurrent questions: a server of one slot serves one, and the other hides its latency.
    int workers = 2;
    int waiting_max = 100;  ///< Checks that wait for a worker.
    int per_session_max =
        20;  ///< Checks of one session during this object's life: bounds its cost.
    /// Between two checks that nobody requested; doubles with each. An agent needs about that long
    /// for something new to judge.
    Millis apart{60'000};
    const Clock* clock = &system_clock();  ///< The clock of checks.
  };

  /// Starts the threads.
  StatusChecker(Parts parts, Options options);
  /// Cancels the running checks: they end as `failed`.
  ~StatusChecker();
  StatusChecker(const StatusChecker&) = delete;
  StatusChecker& operator=(const StatusChecker&) = delete;

  /// Returns at once with the check: pending, or further if the id was used before. `id` empty: a
  /// new one. Errors: `conflict` (the id is another session's, or the session has a running check),
  /// `exhausted` (the session's checks or the queue).
  [[nodiscard]] Result<Check> start(CheckSubject subject, std::string id = {});
  /// Returns true if a suspicion may be checked without a request: no check is running, and the
  /// last one was long enough ago.
  [[nodiscard]] bool may_start(std::string_view session) const;

  /// Returns the session's running check.
  [[nodiscard]] std::optional<Check> pending(std::string_view session) const;
  /// Returns a check that was started here (the latest 1,000 are kept).
  [[nodiscard]] std::optional<Check> find(std::string_view id) const;
  /// Waits for its end, at most `at_most`. Returns nothing if it is still pending, or unknown.
  [[nodiscard]] std::optional<Check> wait(std::string_view id, Millis at_most,
                                          const std::stop_token& stop = {}) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace watchdog
