// The agent's loop. `go` repeats reflect, act and a look at the own health until an end is
// decided. Ends come from callbacks, from requests (cancel, stop token, the model's failure), or
// from counters; they are kept in one place, and the first one wins. `Iteration::ask` adds the
// budget's text, charges the budget, and marks final steps.
#include "watchdog/run.h"

#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "facts/ids.h"
#include "loop/check_subject.h"
#include "watchdog/reasons.h"
#include "watchdog/tracker.h"

namespace watchdog {
namespace {

constexpr Millis look_longest{1'000};
constexpr std::size_t partial_bytes_max = std::size_t{1} << 20U;

Outcome outcome_of(const Failure& failure) {
  auto outcome =
      with_subject({.kind = OutcomeKind::failed,
                    .reason = failure.reason.empty() ? std::string(reasons::error) : failure.reason,
                    .error = failure.message});
  if (outcome.reason == reasons::cancelled) outcome.kind = OutcomeKind::cancelled;
  return outcome;
}

Outcome cancelled(std::string_view by, std::string_view reason = {}) {
  return {.kind = OutcomeKind::cancelled,
          .reason = std::string(reasons::cancelled),
          .error = std::string(reason),
          .subject = std::string(by)};
}

/// Returns why the run's open work is cancelled. Empty: the run ended by itself.
CancelReason reason_for(const std::optional<Outcome>& forced) {
  if (!forced) return {.origin = CancelOrigin::shutdown, .text = "the run ended"};
  if (forced->reason == reasons::legacy_time_limit)
    return {.origin = CancelOrigin::deadline, .text = forced->error};
  if (forced->kind == OutcomeKind::incomplete)
    return {.origin = CancelOrigin::budget, .text = forced->error};
  return {.origin = CancelOrigin::user,
          .text = forced->error.empty() ? "the run ends" : forced->error};
}

/// Returns a callback's result, or its exception as a failure.
template <class T, class Call>
Result<T, Failure> guarded(const char* what, Call&& call) {
  const auto failed = [&](const std::string& why) {
    return Failure{.reason = std::string(reasons::error),
                   .message = std::string(what) + " threw: " + why};
  };
  try {
    return call();
  } catch (const std::exception& error) {
    return failed(error.what());
  } catch (...) {
    return failed("something that is not a std::exception");
  }
}

bool is_doubtful(HealthKind kind) {
  return kind == HealthKind::suspect || kind == HealthKind::stuck || kind == HealthKind::looping;
}

/// Something other than a clock says so too. Pace alone never counts.
bool is_confirmed(const Case& judged) {
  const auto& health = judged.health;
  if (health.kind != HealthKind::stuck && health.kind != HealthKind::looping) return false;
  const int needed = is_repetition(health.pattern) ? 2 : 1;  // the repetition itself is one
  return (is_repetition(health.pattern) || health.pattern == Pattern::no_state_change) &&
         confirmations(judged.history, *judged.policy) >= needed;
}

std::string advice_for(const std::string& reason) {
  return "[PROGRESS CHECK]\nYou may be repeating yourself: " + reason +
         ".\nChange the approach: do something you have not done yet, or say what keeps you from "
         "it.";
}

/// Appended to the last message, so that what the server has read of the prompt stays good.
void append_note(ChatRequest& request, const std::string& text) {
  if (text.empty()) return;
  auto& messages = request.messages;
  if (messages.empty() || messages.back().role != "user") {
    messages.push_back({.role = "user", .content = text});
  } else {
    messages.back().content += "\n\n" + text;
  }
}

}  // namespace

struct Run::State {
  State(Parts given, RunOptions chosen)
      : parts(std::move(given)),
        options(std::move(chosen)),
        failsafe(*parts.clock, {.steps = iterations_allowed()}, {.finalize = 1.0}),
        limits(options.old_limits, parts.clock->since_boot()) {
    if (parts.model) {
      model = tracked(parts.model, parts.tracker, options,
                      {.failed =
                           [this](int tries) {
                             partial.clear();  // it is asked for again
                             count_tries(tries);
                           },
                       .waiting = [this](bool begins) { hold_time(begins); }});
    }
    if (!parts.budget) return;
    reporter.emplace(parts.tracker, *parts.budget);
    const auto figures = parts.budget->figures();
    limited = std::any_of(std::begin(budget_axes), std::end(budget_axes),
                          [&](BudgetAxis axis) { return share_used(figures, axis).has_value(); });
  }

  [[nodiscard]] std::int64_t iterations_allowed() const {
    const auto steps = parts.budget ? parts.budget->figures().limits.steps : std::nullopt;
    return std::max<std::int64_t>(options.iterations_max.value_or(steps.value_or(25)), 1);
  }

  Parts parts;
  RunOptions options;
  bool limited = false;      ///< Its owner set a budget.
  ExecutionBudget failsafe;  ///< Its steps are iterations.
  std::optional<BudgetReporter> reporter;
  std::optional<BudgetStage> stage;  ///< When the model was last asked.
  LimitWatch limits;
  Model model;
  std::stop_source stop;  ///< Of everything that is under way.

  std::mutex looking;  ///< At the time.
  std::mutex mutex;
  std::condition_variable_any changed;
  bool phase_began = false;
  std::optional<Outcome> forced;  ///< By a person, a parent, a limit of time that was opted in to.

  Reflection last;
  int iteration = 0;
  int unsure = 0;        ///< Reflections in a row of low confidence.
  bool charged = false;  ///< The iteration's step was.
  std::string partial;   ///< The received part of an incomplete answer.
  bool cut_off = false;  ///< The newest request had to be answered as it was: the last step.
  std::string nudge;     ///< For the next request; shown once.
  std::string checking;  ///< The check that is under way; empty: none.
  bool nudged = false;   ///< In this streak, as the next two.
  bool recovered = false;
  bool refusal_said = false;
  std::string phase;

  // -- ends by others

  void force(Outcome outcome) {
    {
      const std::lock_guard guard(mutex);
      if (forced) return;
      forced = std::move(outcome);
    }
    stop.request_stop();
  }

  [[nodiscard]] std::optional<Outcome> ended_by_others() {
    const std::lock_guard guard(mutex);
    return forced;
  }

  // -- the limits that the owner opted in to

  [[nodiscard]] bool keeps_time() const {
    return options.old_limits.mode != Migration::status_based ||
           (parts.budget && parts.budget->figures().enforce_time);
  }

  /// Carries out, or writes down, what time has brought.
  void look_at_time() {
    const std::lock_guard one_after_the_other(looking);
    const auto mode = options.old_limits.mode;
    if (mode != Migration::status_based) {
      for (auto& passed : limits.drain(parts.clock->since_boot())) {
        passed.enforced = mode == Migration::time_based;
        if (passed.enforced) {
          force({OutcomeKind::cancelled, std::string(reasons::legacy_time_limit),
                 "the old limit for " + passed.name + " of " + std::to_string(passed.limit) +
                     " was reached"});
        }
        report_limit(std::move(passed));
      }
    }
    if (!parts.budget) return;
    reporter->warn();
    if (parts.budget->exhausted() == BudgetAxis::time) force(exhausted(BudgetAxis::time));
  }

  void count_tries(int tries) {
    if (options.old_limits.mode == Migration::status_based) return;
    limits.attempts(tries, parts.clock->since_boot());
    tick();
  }

  void report_limit(LimitPassed passed) const {
    Report report;
    report.kind = ReportKind::limit;
    report.name = passed.name;
    report.detail = std::move(passed);
    parts.tracker.report(std::move(report));
  }

  void tick() {
    if (keeps_time()) look_at_time();
  }

  /// Runs on its own thread, and only if the owner opted in to limits of time: the model may be
  /// silent for long.
  void keep_time(const std::stop_token& over) {
    std::unique_lock guard(mutex);
    while (!over.stop_requested()) {
      changed.wait_for(guard, over, time_left(), [&] { return std::exchange(phase_began, false); });
      guard.unlock();
      look_at_time();
      guard.lock();
    }
  }

  [[nodiscard]] Millis time_left() const {
    auto left = look_longest;
    if (const auto next = limits.next()) {
      left = std::clamp(*next - parts.clock->since_boot(), Millis{1}, left);
    }
    const auto figures = parts.budget ? parts.budget->figures() : BudgetFigures{};
    if (figures.enforce_time && figures.limits.duration) {
      left = std::min(left, std::max(*figures.limits.duration - figures.elapsed, Millis{10}));
    }
    return left;
  }

  // -- budget

  /// Returns the end of a run whose budget is used up, or whose last turn was for the answer.
  [[nodiscard]] Outcome exhausted(BudgetAxis axis) const {
    const auto figures = parts.budget->figures();
    const auto used = share_used(figures, axis).value_or(1.0);
    const std::string name(name_of(axis));
    const auto how = name + ": " + std::to_string(std::lround(100 * used)) +
                     " % of what its owner allowed is used";
    if (axis == BudgetAxis::time) {
      return {OutcomeKind::incomplete, std::string(reasons::budget_time), how};
    }
    if (axis == BudgetAxis::steps) {
      return {OutcomeKind::incomplete, std::string(reasons::max_iterations_reached), how};
    }
    return {.kind = OutcomeKind::incomplete,
            .reason = std::string(reasons::budget_exhausted),
            .error = how,
            .subject = name};
  }

  /// Returns the end of a run whose newest request forced an answer.
  [[nodiscard]] Outcome ended_by_last_step() const {
    const auto axis = parts.budget ? parts.budget->finalizing() : std::nullopt;
    auto end = axis ? exhausted(*axis) : no_end_yet();
    end.error += "; the last step offered no tools, so its answer may be partial";
    return end;
  }
  [[nodiscard]] Outcome no_end_yet() const {
    return {OutcomeKind::incomplete, std::string(reasons::max_iterations_reached),
            "no end after " + std::to_string(iteration) + " iterations"};
  }

  [[nodiscard]] bool is_last_iteration() const { return steps_left(failsafe.figures()) <= 1; }
  [[nodiscard]] bool is_final() const {
    return is_last_iteration() || (parts.budget && parts.budget->must_finalize());
  }

  /// The figures to show: the owner's budget, or the failsafe if that is nearer.
  [[nodiscard]] BudgetFigures figures_now() const {
    const auto iterations = failsafe.figures();
    if (!limited) return iterations;
    const auto figures = parts.budget->figures();
    return iterations.stage > figures.stage ? iterations : figures;
  }

  /// The present text about the budget. About the failsafe only when it is near.
  [[nodiscard]] std::string budget_text() {
    const auto figures = figures_now();
    const auto before = std::exchange(stage, figures.stage);
    if (!limited && figures.stage < BudgetStage::low) return {};
    return is_shown(options.budget_visibility, before, figures.stage) ? prompt_block(figures)
                                                                      : std::string();
  }

  void charge_step() {
    charged = true;
    if (!parts.budget) return;
    parts.budget->step();
    reporter->update();
  }

  /// Waiting time for the model server does not count.
  void hold_time(bool begins) {
    if (!parts.budget) return;
    begins ? parts.budget->pause() : parts.budget->resume();
    begins ? reporter->paused() : reporter->resumed();
  }

  /// Asks the model, and charges for it.
  [[nodiscard]] Result<ChatAnswer, Failure> asked(const ChatRequest& request, const ChatSink& sink,
                                                  const std::stop_token& token) {
    if (!model) {
      return Failure{.reason = std::string(reasons::error),
                     .message = "the run has no model to ask"};
    }
    if (parts.budget && parts.budget->exhausted()) {
      return Failure{.reason = std::string(reasons::budget_exhausted),
                     .message = "the budget is used up"};
    }
    std::int64_t pieces = 0;
    auto answer = model(
        request,
        [&](const ChatProgress& progress, std::string_view text) {
          pieces = progress.pieces;
          tick();
          if (sink) sink(progress, text);
        },
        token);
    if (!answer) return answer;
    if (parts.budget) {
      // A server that does not count is counted for.
      const auto output = answer->output_tokens > 0 ? answer->output_tokens : pieces;
      parts.budget->charge_tokens(answer->prompt_tokens + output);
      for (std::size_t call = 0; call < answer->tool_calls.size(); ++call) {
        parts.budget->charge_tool_call();
      }
    }
    charge_step();
    return answer;
  }

  // -- looking at its own progress

  [[nodiscard]] std::optional<Check> finished_check(Millis wait) {
    if (checking.empty() || parts.checker == nullptr) return std::nullopt;
    auto check = parts.checker->wait(checking, wait, stop.get_token());
    if (!check) return std::nullopt;
    checking.clear();
    return check;
  }

  void start_check() {
    if (parts.checker == nullptr || !checking.empty()) return;
    const auto& session = parts.tracker.session();
    if (!parts.checker->may_start(session)) return;
    auto check = started_check(session);
    if (check) {
      checking = check->id;
    } else if (std::exchange(refusal_said, true)) {
      return;
    } else {
      const auto now = parts.clock->wall();
      check = Check{.id = new_ulid(now),
                    .session = session,
                    .state = CheckState::failed,
                    .reason = "not asked: " + check.error().message,
                    .at = now};
    }
    parts.tracker.report(report_of(*check, {}));
  }

  [[nodiscard]] Result<Check> started_check(const std::string& session) const {
    // From the file: its events have the numbers to which the answer refers. The newest reports may
    // not be there yet.
    if (auto kept = parts.tracker.flush(stop.get_token()); !kept) return kept.error();
    auto reader = StoreReader::open(parts.tracker.database());
    if (!reader) return reader.error();
    const auto row = reader->session(session);
    if (!row) return row.error();
    auto subject = check_subject(*reader, *row);
    if (!subject) return subject.error();
    return parts.checker->start(std::move(*subject));
  }

  /// Ends the run where its owner wants that, else calls for help, once a streak.
  std::optional<Outcome> look_at_status() {
    auto judged = parts.tracker.judged();
    std::optional<Check> check;
    const bool due = iteration % std::max(options.status_every, 1) == 0;
    if (due && is_doubtful(judged.health.kind) && judged.policy->concurrent_checks) start_check();
    if (!checking.empty()) {
      check = finished_check(due ? options.check_wait : Millis{0});
      judged = parts.tracker.judged();
    }
    if (!is_doubtful(judged.health.kind)) {
      nudged = recovered = refusal_said = false;
      return std::nullopt;
    }
    const auto reason = reason_of(judged.health, judged.history, *judged.policy);
    if (!std::exchange(nudged, true)) nudge = advice_for(reason);
    const bool loops =
        check && check->state == CheckState::done && check->status == Verdict::looping;
    const bool trouble = loops || judged.health.kind == HealthKind::looping || is_confirmed(judged);
    if (!trouble) return std::nullopt;
    const bool first = !std::exchange(recovered, true);
    if (first && parts.callbacks.recover) {
      const Trouble found{.health = judged.health,
                          .reason = reason,
                          .check = std::move(check),
                          .advice = advice_for(reason)};
      const auto done = guarded<bool>("recover", [&]() -> Result<bool, Failure> {
        parts.callbacks.recover(found);
        return true;
      });
      return done ? std::nullopt : std::optional(outcome_of(done.error()));
    }
    if (options.on_confirmed_stuck == OnConfirmedStuck::fail && is_confirmed(judged)) {
      auto evidence = reason + " (events";
      for (const auto seq : judged.health.evidence) {
        if (seq != 0) evidence += " " + std::to_string(seq);
      }
      return Outcome{OutcomeKind::failed, std::string(reasons::confirmed_stuck), evidence + ")"};
    }
    return std::nullopt;
  }

  // -- the loop

  void begin_phase(std::string_view name) {
    phase = name;
    parts.tracker.heartbeat({.iteration = iteration, .phase = phase});
    watch_phase(phase);
    tick();
  }

  /// For the old limits only.
  void watch_phase(std::string_view name) {
    if (options.old_limits.mode == Migration::status_based) return;
    limits.begin(name, parts.clock->since_boot());
    const std::lock_guard guard(mutex);
    phase_began = true;
    changed.notify_all();
  }

  void watch_call(const Report& report) {
    const auto now = parts.clock->since_boot();
    const auto& call = report.call_id.empty() ? report.name : report.call_id;
    if (report.kind == ReportKind::tool_call) limits.begin_call(call, now);
    if (report.kind == ReportKind::tool_result || is_failure(report.kind)) {
      limits.end_call(call, now);
    }
  }

  [[nodiscard]] std::optional<Outcome> end_of(const Reflection& reflection) {
    switch (reflection.assessment) {
      case Assessment::task_complete:
        // A model that is offered no tools says something in any case; that proves no completion.
        if (cut_off) return ended_by_last_step();
        return Outcome{OutcomeKind::completed, std::string(reasons::task_complete), {}};
      case Assessment::task_failed:
        return Outcome{OutcomeKind::failed, std::string(reasons::task_failed), reflection.reason};
      case Assessment::going_on:
        break;
    }
    const bool low = reflection.confidence && *reflection.confidence < options.confidence_min;
    unsure = low ? unsure + 1 : 0;
    if (unsure < options.confidence_times) return std::nullopt;
    return Outcome{OutcomeKind::failed, std::string(reasons::low_confidence),
                   "its confidence was below " +
                       std::to_string(options.confidence_min).substr(0, 4) + " " +
                       std::to_string(unsure) + " times in a row"};
  }

  /// Returns the end of the run after a callback's failure: a used-up budget comes first. A partial
  /// answer is kept.
  [[nodiscard]] Outcome end_by(const Failure& failure) {
    if (!partial.empty()) {
      parts.tracker.message("assistant", partial);
      last = {.data = std::move(partial)};
    }
    const auto axis = parts.budget ? parts.budget->exhausted() : std::nullopt;
    const bool for_want = failure.reason == reasons::budget_exhausted;
    return axis && for_want ? exhausted(*axis) : outcome_of(failure);
  }

  std::optional<Outcome> act(Iteration& now) {
    if (auto end = look_at_status()) return end;
    if (auto end = ended_by_others()) return end;
    begin_phase("execution");
    const auto done = guarded<Act>("act", [&] { return parts.callbacks.act(now, last); });
    if (!done) return end_by(done.error());
    if (!done->reported && !done->tool.empty()) {
      parts.tracker.state_change("tool_call", done->data.empty() ? done->tool : done->data);
    }
    return std::nullopt;
  }

  /// One iteration: the run's end, if this was the last.
  std::optional<Outcome> iterate(Run& run) {
    charged = cut_off = false;
    Iteration now(run, iteration);
    begin_phase("reflection");
    auto reflection = guarded<Reflection>("reflect", [&] { return parts.callbacks.reflect(now); });
    if (!reflection) return end_by(reflection.error());
    last = std::move(*reflection);
    parts.tracker.state_change("reflection_complete", last.data);
    if (auto end = end_of(last)) return end;
    if (!now.final()) {
      if (auto end = act(now)) return end;
    }
    // The axis for which the turn was final, before it is charged itself.
    const auto axis = now.final() && parts.budget ? parts.budget->finalizing() : std::nullopt;
    if (!charged) charge_step();
    const bool last_iteration = is_last_iteration();
    failsafe.step();
    if (axis) return exhausted(*axis);
    if (last_iteration) return no_end_yet();
    if (const auto used_up = parts.budget ? parts.budget->exhausted() : std::nullopt) {
      return exhausted(*used_up);
    }
    return std::nullopt;
  }

  Outcome loop(Run& run) {
    while (true) {
      ++iteration;
      auto end = iterate(run);
      if (end && end->kind == OutcomeKind::completed) return *end;
      // A callback's answer after a cancel is not the reason of the end.
      if (auto others = ended_by_others()) return *others;
      if (end) return *end;
    }
  }
};

Run::Run(Parts parts, RunOptions options)
    : state_(std::make_unique<State>(std::move(parts), std::move(options))) {}
Run::~Run() = default;

RunEnd Run::go(const std::stop_token& stop) {
  State& state = *state_;
  auto& tracker = state.parts.tracker;
  const std::stop_callback by_parent(stop, [&] { state.force(cancelled("parent")); });
  const std::stop_callback by_person(tracker.cancel_token(), [&] {
    const auto cancel = tracker.directive().cancel;
    state.force(cancel ? cancelled(cancel->by, cancel->reason) : cancelled("user"));
  });
  const bool compared = state.options.old_limits.mode != Migration::status_based;
  if (compared) {
    tracker.listen([&](const Report& report) { state.watch_call(report); });
    state.report_limit(
        {.name = "began", .enforced = state.options.old_limits.mode == Migration::time_based});
  }
  Outcome outcome;
  {
    std::jthread time;
    if (state.keeps_time()) {
      time = std::jthread([&](const std::stop_token& over) { state.keep_time(over); });
    }
    outcome = state.loop(*this);
  }
  if (compared) {
    tracker.listen(nullptr);
    state.watch_phase({});
    if (state.options.old_limits.mode == Migration::compare) state.look_at_time();
  }
  state.stop.request_stop();
  if (state.reporter) state.reporter->warn();  // an extension since the last step
  const bool stored = tracker.end(outcome).ok();
  return {.outcome = std::move(outcome),
          .last = state.last,
          .iterations = state.iteration,
          .budget = state.limited ? state.parts.budget->figures() : state.failsafe.figures(),
          .stored = stored};
}

void Run::cancel(std::string_view by) {
  state_->force(cancelled(by));
}

ProgressTracker& Iteration::tracker() noexcept {
  return run_.state_->parts.tracker;
}

std::stop_token Iteration::stop() const {
  return run_.state_->stop.get_token();
}

Iteration::Iteration(Run& run, int number) : run_(run), number_(number) {
  look_at_budget();
}

void Iteration::look_at_budget() {
  final_ = run_.state_->is_final();
  budget_ = run_.state_->budget_text();
}

CancelScope Iteration::scope() const {
  return CancelScope::bound_to(
      stop(), [&state = *run_.state_] { return reason_for(state.ended_by_others()); });
}

void Iteration::phase(std::string_view name) {
  run_.state_->begin_phase(name);
}

Result<ChatAnswer, Failure> Iteration::ask(ChatRequest request) {
  auto& state = *run_.state_;
  if (std::exchange(asked_, true)) look_at_budget();
  append_note(request, std::exchange(state.nudge, {}));
  append_note(request, budget_);
  state.cut_off = final_ && !(request.tools.empty() && budget_.empty());
  if (final_) request.tools.clear();
  state.partial.clear();
  const auto keep = [&](const ChatProgress&, std::string_view text) {
    state.partial += text.substr(0, partial_bytes_max - state.partial.size());
  };
  auto answer = state.asked(request, keep, stop());
  if (answer) state.partial.clear();
  return answer;
}

Result<Plan, Failure> Iteration::plan(std::string_view task, std::string_view context) {
  auto& state = *run_.state_;
  const auto before = state.phase;
  state.watch_phase("planning");
  const Model charged = [&](const ChatRequest& request, const ChatSink& sink,
                            const std::stop_token& token) {
    if (std::exchange(asked_, true)) look_at_budget();
    return state.asked(request, sink, token);
  };
  auto made = watchdog::plan(charged, tracker(), task, context, stop());
  state.begin_phase(before);
  return made;
}

std::unique_ptr<StatusChecker> checker_for(ProgressTracker& tracker, Model model,
                                           StatusChecker::Options options) {
  const auto name = options.model;
  return std::make_unique<StatusChecker>(
      StatusChecker::Parts{
          .model = std::move(model),
          .outdated =
              [&tracker](const Check& check) {
                auto reader = StoreReader::open(tracker.database());
                if (!reader) return false;
                const auto row = reader->session(check.session);
                if (!row) return false;
                const auto judged = reader->fold(*row);
                return judged && is_outdated(judged->history, check.seen);
              },
          .done = [&tracker, name](const Check& check) { tracker.report(report_of(check, name)); }},
      std::move(options));
}

}  // namespace watchdog
