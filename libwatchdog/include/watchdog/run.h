/// \file
/// An agent's main loop: plan, reflect, act, check its own progress, until a reason to end.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/budget.h"
#include "watchdog/deadline.h"
#include "watchdog/health.h"
#include "watchdog/model_client.h"
#include "watchdog/report.h"
#include "watchdog/result.h"
#include "watchdog/time.h"
#include "watchdog/tracker.h"

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

/// A plan, in order. A plain value.
struct Plan {
  std::vector<std::string> steps{};  ///< What to do, in order.
  bool simplified = false;  ///< The model could not make the whole plan and made a simpler one.
};

inline constexpr std::size_t plan_steps_max = 50;  ///< Steps of a plan, at most.

/// Asks the model for a plan without a time limit, and reports the phase `planning`. After some
/// failures it asks once more, for a simpler plan. These failures are: no plan in the answer, half
/// an answer, a prompt that is too long, and the server's own error. It returns any other failure.
/// It reports a success as the state change `plan_generated`.
[[nodiscard]] Result<Plan, Failure> plan(const Model& model, ProgressTracker& tracker,
                                         std::string_view task, std::string_view context = {},
                                         const std::stop_token& stop = {});

/// `AUTONOMOUS_STATUS_BASED_TIMEOUT`: 0, 1 or compare.
enum class Migration : std::uint8_t {
  time_based,    ///< the old limits end the run, as `cancelled / legacy_time_limit`
  status_based,  ///< the default: no time limits
  compare        ///< the limits end nothing; each moment at which they would have is recorded
};

template <>
struct Names<Migration> {
  static constexpr std::string_view all[] = {"0", "1", "compare"};
};

/// 0: no such limit. A plain value.
struct OldLimits {
  Migration mode = Migration::status_based;  ///< See Migration.
  Millis planning{30'000};                   ///< Phase `planning`.
  Millis implementation{120'000};            ///< Phase `implementation`.
  Millis deployment{180'000};                ///< Phase `deployment`.
  Millis tool{30'000};                ///< One tool call; phase `execution` without reported calls.
  Millis task{600'000};               ///< The whole run.
  std::int64_t health_attempts = 15;  ///< Tries of one request to the model.
};

/// Records which old limits would have fired, each at most once per operation. Times are on one
/// clock, with any origin. Thread-safe.
class LimitWatch {
 public:
  /// Watches these limits from `now` on.
  LimitWatch(OldLimits limits, Millis now) : limits_(limits), began_(now) {}

  /// Begins a phase and ends the previous one. `execution` counts as a tool call until a call
  /// begins. A phase without a limit is not watched. Empty: no phase begins.
  void begin(std::string_view phase, Millis now);
  /// Begins or ends a tool call. At most 64 are watched at a time.
  void begin_call(std::string_view call, Millis now);
  /// The call is over.
  void end_call(std::string_view call, Millis now);
  /// Records the number of tries of one request.
  void attempts(std::int64_t count, Millis now);

  /// Returns the limits that were passed since the last call, oldest first.
  [[nodiscard]] std::vector<LimitPassed> drain(Millis now);
  /// Its name before 0.2; goes with 0.3.
  [[nodiscard]] std::vector<LimitPassed> take(Millis now) { return drain(now); }
  /// Returns when the next one will be passed; empty: none is near.
  [[nodiscard]] std::optional<Millis> next() const;

 private:
  struct Running {
    std::string name{};  ///< Of the limit.
    Millis since{};
    Millis limit{};
    bool said = false;
    std::string call{};  ///< Empty: a phase.
  };
  [[nodiscard]] Millis limit_of(std::string_view phase) const;
  void end(std::string_view call);
  /// Records what was passed by `now`. REQUIRES: mutex held.
  void look(Millis now);

  OldLimits limits_;
  Millis began_;
  mutable std::mutex mutex_;
  std::vector<Running> running_;
  bool task_said_ = false;
  bool attempts_said_ = false;
  std::vector<LimitPassed> passed_;
};

/// The agent's assessment of its own work.
enum class Assessment : std::uint8_t { going_on, task_complete, task_failed };

template <>
struct Names<Assessment> {
  static constexpr std::string_view all[] = {"going_on", "task_complete", "task_failed"};
};

/// The result of a reflection. A plain value.
struct Reflection {
  Assessment assessment = Assessment::going_on;  ///< How the agent sees its work.
  std::optional<double> confidence{};            ///< 0 … 1, if the agent gives one.
  std::string data{};                            ///< The next action: JSON or any text.
  std::string reason{};                          ///< Of `task_failed`: why.
};

/// The result of an act. A plain value.
struct Act {
  std::string tool{};  ///< Name of the action; empty: nothing was done.
  std::string data{};  ///< JSON or any text.
  /// The act was reported to the tracker as calls and results. Otherwise its end counts as a state
  /// change of type `tool_call`.
  bool reported = false;
};

/// Why the recovery hook is called. A plain value.
struct Trouble {
  Health health{};               ///< The health that is trouble.
  std::string reason{};          ///< In a sentence: what repeats, how often.
  std::optional<Check> check{};  ///< The check that confirmed it, if any.
  std::string advice{};          ///< For the agent's model: what to change.
};

/// The reaction to a stuck run, if something other than a clock confirms that it is stuck.
enum class OnConfirmedStuck : std::uint8_t {
  report,  ///< the run goes on; it is shown, checked, and the recovery hook is called
  fail     ///< the run ends as `failed / confirmed_stuck`
};

template <>
struct Names<OnConfirmedStuck> {
  static constexpr std::string_view all[] = {"report", "fail"};
};

/// Options of a run. A plain value.
struct RunOptions {
  /// The failsafe: 1 …; empty: the steps of the budget if they are limited, else 25.
  std::optional<std::int64_t> iterations_max{};
  /// Iterations between two looks at its own health, 1 …: as many as `Policy::stuck_threshold`, so
  /// each look can see what the one before could not.
  int status_every = 5;
  Millis check_wait{
      5'000};  ///< How long a look waits for a check; 0: the next look takes its result.
  double confidence_min = 0.3;  ///< This many reflections below it in a row end the run.
  int confidence_times = 3;     ///< Reflections in a row with that confidence.
  OnConfirmedStuck on_confirmed_stuck = OnConfirmedStuck::report;  ///< See OnConfirmedStuck.
  BudgetVisibility budget_visibility =
      BudgetVisibility::thresholds;  ///< How the model sees its budget.
  int tries = 5;                     ///< Retries of one request to the model.
  Millis retry_first{1'000};         ///< Before the first retry; doubles with each.
  Millis retry_longest{60'000};      ///< The longest time between two tries.
  OldLimits old_limits{};            ///< The former time limits.
};

/// How a run ended, and its results. A plain value.
struct RunEnd {
  Outcome outcome{};  ///< How it ended.
  /// Its newest reflection: of an incomplete run, the answer so far. If the run ended while its
  /// model was answering, `data` is what came, at most 1 MiB.
  Reflection last{};
  int iterations = 0;      ///< The number of iterations.
  BudgetFigures budget{};  ///< Final; without a budget, those of the failsafe.
  /// False: the store refuses, so the end waits in the tracker; or the session is not recorded.
  bool stored = true;
};

class Run;

/// One iteration as the callbacks see it.
class Iteration {
 public:
  /// Returns the number of this iteration, from 1.
  [[nodiscard]] int number() const noexcept { return number_; }
  /// Returns true if it is the last one: answer now. May become true during the iteration.
  [[nodiscard]] bool final() const noexcept { return final_; }
  /// Returns the present text about the budget for the model; empty: none. `ask` adds it by itself.
  [[nodiscard]] const std::string& budget() const noexcept { return budget_; }
  /// Returns the run's tracker.
  [[nodiscard]] ProgressTracker& tracker() noexcept;
  /// Requested when the run is cancelled, or ends for another reason.
  [[nodiscard]] std::stop_token stop() const;
  /// A scope that is cancelled with the run, with the origin of the cancel. For the work of this
  /// iteration; the run must outlive it.
  [[nodiscard]] CancelScope scope() const;
  /// Begins a phase: planning, implementation, deployment, … The run begins `reflection` and
  /// `execution`.
  void phase(std::string_view name);

  /// Asks the run's model without a time limit. It reports what comes as sub-activity, retries
  /// recoverable failures, and charges the step, its tokens and the requested tool calls. It
  /// appends hints for the model (budget, repetition) after the last message. The caller runs
  /// `answer.tool_calls`. A final step offers no tools: its answer is kept but proves no
  /// completion, so `task_complete` then ends the run as incomplete with the limit's reason. With a
  /// used-up budget nothing is asked, and the failure ends the run as incomplete.
  [[nodiscard]] Result<ChatAnswer, Failure> ask(ChatRequest request);
  /// Asks the run's model for a plan; see watchdog::plan. Charged like `ask`.
  [[nodiscard]] Result<Plan, Failure> plan(std::string_view task, std::string_view context = {});

 private:
  friend class Run;
  Iteration(Run& run, int number);
  friend class ToolRunner;
  void look_at_budget();
  /// Of this many calls of answers: those that the budget has room for. Each is counted once.
  /// Empty: no limit, or the answers came from elsewhere.
  [[nodiscard]] std::optional<std::int64_t> charged_calls(std::int64_t asked);

  Run& run_;
  int number_;
  bool final_ = false;
  bool asked_ = false;
  std::int64_t calls_charged_ = 0;  ///< Of answers, and not carried out yet.
  std::string budget_;
};

/// The callbacks of an agent's author. A failure that a callback returns ends the run with its
/// reason; an exception ends it as `failed / error`. Report failures of tools to the model instead.
struct RunCallbacks {
  std::function<Result<Reflection, Failure>(Iteration&)> reflect{};  ///< Decides what to do next.
  /// Carries out the reflection. Not called if the task is complete or has failed, or if the step
  /// is final.
  std::function<Result<Act, Failure>(Iteration&, const Reflection&)> act{};
  /// Called once for each confirmed trouble: change something. May be empty.
  std::function<void(const Trouble&)> recover{};
};

/// Runs a session to its end. Use from one thread at a time, except `cancel`.
class Run {
 public:
  /// Parts of a run. References must outlive the run.
  struct Parts {
    ProgressTracker& tracker;  ///< Reports the run.
    RunCallbacks callbacks{};  ///< The agent's own code.
    Model model{};             ///< For `Iteration::ask`. May be empty.
    /// Empty: only the failsafe bounds it. The run charges steps, tokens and tool calls; callers
    /// that know prices charge cost.
    std::shared_ptr<ExecutionBudget> budget{};
    StatusChecker* checker = nullptr;      ///< Null: no checks.
    const Clock* clock = &system_clock();  ///< The clock of retries and limits.
  };
  /// Prepares a run; `go` starts it.
  Run(Parts parts, RunOptions options = {});
  ~Run();
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  /// Runs until the end, which is reported and stored before it returns. `stop` is a parent's
  /// cancel. The outcome's reason is one of reasons.h; elapsed time is among them only if
  /// `legacy_time_limit` or `budget_time` was chosen. Call it once.
  RunEnd go(const std::stop_token& stop = {});

  /// Ends the run as cancelled. Thread-safe.
  void cancel(std::string_view by);

 private:
  friend class Iteration;
  struct State;
  std::unique_ptr<State> state_;
};

/// Returns a checker whose checks are events of the tracker's session. Both must outlive it. For
/// the agent's own server use ModelClient::model_beside(): a check must not make the agent read its
/// prompt again.
[[nodiscard]] std::unique_ptr<StatusChecker> checker_for(ProgressTracker& tracker, Model model,
                                                         StatusChecker::Options options = {});

/// Callbacks about retries.
struct Retries {
  std::function<void(int)> failed{};    ///< Gets the number of the failed try.
  std::function<void(bool)> waiting{};  ///< A pause begins (true), or ends (false).
};

/// Returns the model with reports to a session: each piece is sub-activity (counters and the search
/// for repeated text). Recoverable failures are retried with growing pauses, during which the
/// session waits for `backend`. The tracker must outlive it.
[[nodiscard]] Model tracked(Model model, ProgressTracker& tracker, const RunOptions& options,
                            Retries retries = {});

}  // namespace watchdog
