/// \file
/// Asking a model, beside the agent, whether a session gets anywhere.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/case.h"
#include "watchdog/model.h"
#include "watchdog/report.h"
#include "watchdog/result.h"
#include "watchdog/store_reader.h"

namespace watchdog {

/// A check as far as it is known. A plain value.
struct Check {
  std::string id;
  std::string session;
  CheckState state = CheckState::pending;
  Verdict status = Verdict::none;
  std::string reason;  ///< The model's words; of a check that failed: why.
  std::optional<double> confidence;
  Seq seen = 0;   ///< The newest event it was asked with.
  WallTime at{};  ///< Of the answer; before that, of the question.
};

/// What is asked about. A plain value.
struct CheckSubject {
  std::string session;
  std::string goal;           ///< What the agent is to do.
  std::vector<Event> recent;  ///< The session's newest events, oldest first.
  Case judged;
};

/// How many of the newest events a model is shown.
inline constexpr int check_events = 20;

/// The question as it is sent. What the agent said stands in it as data, and is bounded.
[[nodiscard]] ChatRequest check_request(const CheckSubject& subject, int output_tokens_max = 100);

/// What a model's answer says: the letter, its reason, and how probable the letter was, where that
/// is known. Strict: an answer that does not begin with a letter of its own, or is not the object
/// that was asked for, is `none`.
struct CheckAnswer {
  Verdict status = Verdict::none;
  std::string reason;
  std::optional<double> confidence;
};
[[nodiscard]] CheckAnswer read_check(const ChatAnswer& answer);

/// The check as the event that keeps it. Its id is the event's (`event_id`), with `?` before it
/// while it is pending, so that question and answer both stay readable.
[[nodiscard]] Report report_of(const Check& check, std::string_view model);
/// The check that an event keeps; nothing if it keeps none.
[[nodiscard]] std::optional<Check> check_of(const Event& event, std::string_view session);

/// A session as the file tells it, to be asked about.
[[nodiscard]] Result<CheckSubject> check_subject(StoreReader& reader, const SessionRow& row);
/// The check that somebody asked for among the subject's newest events and that has not ended.
[[nodiscard]] std::optional<Check> pending_check(const CheckSubject& subject);

/// Runs checks on threads of its own: whoever asks goes on at once. Thread-safe.
class StatusChecker {
 public:
  struct Parts {
    Model model;
    /// Whether something new happened since the check was asked: then its answer is `superseded`.
    /// May be empty. Called, as the next one, from one of the checker's threads.
    std::function<bool(const Check&)> outdated{};
    /// Gets each check when it has ended, before anybody who waits for it.
    std::function<void(const Check&)> done{};
  };
  struct Options {
    std::string model{};  ///< Which model; empty: the client's own.
    int output_tokens_max = 100;
    int workers = 2;           ///< So many questions are asked at a time.
    int waiting_max = 100;     ///< Checks that wait for a worker.
    int per_session_max = 20;  ///< Checks of one session, while this object lives.
    Millis apart{60'000};      ///< Between two that nobody asked for; doubles with each.
    const Clock* clock = &system_clock();
  };

  StatusChecker(Parts parts, Options options);
  /// Calls off what is under way: those end as `failed`.
  ~StatusChecker();
  StatusChecker(const StatusChecker&) = delete;
  StatusChecker& operator=(const StatusChecker&) = delete;

  /// Returns at once with the check as it stands: pending, or further if it was asked before under
  /// this id. `id` empty: a fresh one. Errors: `conflict` (the id is another session's, or the
  /// session is being checked already), `exhausted` (the session's checks or the queue).
  [[nodiscard]] Result<Check> start(CheckSubject subject, std::string id = {});
  /// True if a suspicion may be checked without being asked: none is under way, and the last was
  /// long enough ago.
  [[nodiscard]] bool may_start(std::string_view session) const;

  /// A check that was started here and is not forgotten yet (the latest 1,000 are kept).
  [[nodiscard]] std::optional<Check> find(std::string_view id) const;
  /// Waits for its end, but not longer than `at_most`. Nothing: it is pending still, or unknown.
  [[nodiscard]] std::optional<Check> wait(std::string_view id, Millis at_most,
                                          const std::stop_token& stop = {}) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace watchdog
