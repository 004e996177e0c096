// The agent's loop. `go` repeats reflect, act and a look at the own health until an end is
// decided. Ends come from callbacks, from requests (cancel, stop token, the model's failure), or
// from counters; they are kept in one place, and the first one wins. `Iteration::ask` adds the
// budget's text, charges the budget, and marks final steps.
#include "watchdog/run.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "loop/guarded.h"
#include "loop/run_budget.h"
#include "loop/self_look.h"
#include "store/store_reader.h"
#include "watchdog/reasons.h"
#include "watchdog/tracker.h"

namespace watchdog {
namespace {

constexpr Millis look_longest{1'000};
constexpr std::size_t partial_bytes_max = std::size_t{1} << 20U;

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
        budget(parts.tracker, parts.budget, options.iterations_max, *parts.clock),
        own(parts, options),
        limits(options.old_limits, parts.clock->since_boot()) {
    if (parts.model) {
      model = tracked(parts.model, parts.tracker, options,
                      {.failed =
                           [this](int tries) {
                             partial.clear();  // it is asked for again
                             count_tries(tries);
                           },
                       .waiting = [this](bool begins) { budget.hold(begins); }});
    }
  }

  Parts parts;
  RunOptions options;
  RunBudget budget;
  SelfLook own;
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
  int unsure = 0;                  ///< Reflections in a row of low confidence.
  bool charged = false;            ///< The iteration's step was.
  std::string partial;             ///< The received part of an incomplete answer.
  std::int64_t calls_charged = 0;  ///< Of the newest answer.
  bool cut_off = false;  ///< The newest request had to be answered as it was: the last step.
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
    return options.old_limits.mode != Migration::status_based || budget.enforces_time();
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
    budget.warn();
    if (budget.used_up() == BudgetAxis::time) force(budget.end_for(BudgetAxis::time));
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
    if (const auto rest = budget.time_left()) left = std::min(left, std::max(*rest, Millis{10}));
    return left;
  }

  // -- budget

  /// Returns the end of a run whose newest request forced an answer.
  [[nodiscard]] Outcome ended_by_last_step() const {
    const auto axis = budget.finalizing();
    auto end = axis ? budget.end_for(*axis) : no_end_yet();
    end.error += "; the last step offered no tools, so its answer may be partial";
    return end;
  }
  [[nodiscard]] Outcome no_end_yet() const {
    return {OutcomeKind::incomplete, std::string(reasons::max_iterations_reached),
            "no end after " + std::to_string(iteration) + " iterations"};
  }

  /// Asks the model, and charges for it.
  [[nodiscard]] Result<ChatAnswer, Failure> asked(const ChatRequest& request, const ChatSink& sink,
                                                  const std::stop_token& token) {
    if (!model) {
      return Failure{.reason = std::string(reasons::error),
                     .message = "the run has no model to ask"};
    }
    if (budget.used_up()) {
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
    if (!answer) {
      // The server made the pieces of a broken answer, and they cost.
      if (pieces > 0) (void)budget.charge(pieces, 0);
      return answer;
    }
    // A server that does not count is counted for.
    const auto output = answer->output_tokens > 0 ? answer->output_tokens : pieces;
    calls_charged = budget.charge(answer->prompt_tokens + output, answer->tool_calls.size());
    charged = true;
    budget.charge_step();
    return answer;
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
    const auto axis = budget.used_up();
    const bool for_want = failure.reason == reasons::budget_exhausted;
    return axis && for_want ? budget.end_for(*axis) : outcome_of(failure);
  }

  std::optional<Outcome> act(Iteration& now) {
    if (auto end = own.look(iteration, stop.get_token())) return end;
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
    const auto axis = now.final() ? budget.finalizing() : std::nullopt;
    if (!charged) budget.charge_step();
    const bool last_iteration = budget.is_last_iteration();
    budget.end_iteration();
    if (axis) return budget.end_for(*axis);
    if (last_iteration) return no_end_yet();
    if (const auto used_up = budget.used_up()) return budget.end_for(*used_up);
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
  state.budget.warn();  // an extension since the last step
  const bool stored = tracker.end(outcome).ok();
  return {.outcome = std::move(outcome),
          .last = state.last,
          .iterations = state.iteration,
          .budget = state.budget.figures(),
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
  final_ = run_.state_->budget.is_final();
  budget_ = run_.state_->budget.next_text(run_.state_->options.budget_visibility);
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
  append_note(request, state.own.drain_advice());
  append_note(request, budget_);
  state.cut_off = final_ && !(request.tools.empty() && budget_.empty());
  if (final_) request.tools.clear();
  state.partial.clear();
  const auto keep = [&](const ChatProgress&, std::string_view text) {
    state.partial += text.substr(0, partial_bytes_max - state.partial.size());
  };
  auto answer = state.asked(request, keep, stop());
  if (answer) {
    state.partial.clear();
    calls_charged_ += state.calls_charged;
  }
  return answer;
}

std::optional<std::int64_t> Iteration::charged_calls(std::int64_t asked) {
  if (!asked_ || !run_.state_->budget.limits_calls()) return std::nullopt;
  const auto allowed = std::min(asked, calls_charged_);
  calls_charged_ -= allowed;
  return allowed;
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
