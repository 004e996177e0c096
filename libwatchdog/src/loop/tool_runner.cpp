#include "watchdog/tool_runner.h"

#include <utility>

#include "codec/budget.h"
#include "text/json_writer.h"

namespace watchdog {

struct ToolRunner::State {
  State(Parts given, ExecutorOptions chosen)
      : tracker(given.tracker),
        budget(std::move(given.budget)),
        agent(std::move(given.agent)),
        tools(given.tools ? std::move(given.tools) : std::make_shared<ToolRegistry>()),
        observer(std::move(given.observer)),
        turns({.clock = chosen.clock,
               .observer = [this](const TurnEvent& event) { reporter.on_event(event); }}),
        reporter(tracker),
        parts(std::move(given.executor)),
        options(std::move(chosen)) {}

  ProgressTracker& tracker;
  const std::shared_ptr<ExecutionBudget> budget;
  const std::string agent;
  const std::shared_ptr<ToolRegistry> tools;
  const std::function<void(const ToolEvent&)> observer;
  TurnRegistry turns;
  ToolReporter reporter;
  ToolExecutor::Parts parts;
  ExecutorOptions options;
  std::unique_ptr<ToolExecutor> executor;

  /// Returns the agent's view of itself.
  [[nodiscard]] std::string status(const std::string& turn) const {
    const auto tally = reporter.tally();
    const auto leaks = executor->leaks();
    const auto judged = tracker.judged();
    JsonWriter out;
    out.open_object().field("session", tracker.session());
    out.field("health", name_of(judged.health.kind));
    out.field("reason", reason_of(judged.health, judged.history, *judged.policy));
    out.field("iteration", judged.history.iteration);
    out.key("tools").open_object().field("calls", tally.calls).field("errors", tally.errors);
    out.field("denied", tally.denied).field("timeouts", tally.timeouts);
    out.key("timed_out").open_object();
    for (const auto& [tool, count] : tally.timed_out) out.field(tool, count);
    out.close_object();
    out.field("still_running_after_timeout", leaks.abandoned);
    out.key("quarantined").open_array();
    for (const auto& tool : leaks.quarantined) out.value(tool);
    out.close_array().close_object();
    if (const auto info = turns.find(turn)) {
      out.key("turn").open_object().field("calls", info->calls_total);
      out.field("timeouts", info->calls_timed_out);
      out.field("elapsed_s", info->elapsed.count() / 1'000).close_object();
    }
    out.key("budget");
    if (budget) {
      out.open_object();
      write_figures_shown(out, budget->figures());
      out.close_object();
    } else {
      out.value(nullptr);
    }
    out.close_object();
    return out.finish();
  }
};

ToolRunner::ToolRunner(Parts parts, ExecutorOptions options)
    : state_(std::make_shared<State>(std::move(parts), std::move(options))) {
  auto& state = *state_;
  // Its thread may outlive this object.
  const auto status = [weak = std::weak_ptr<State>(state_)](ToolContext& now) -> ToolReply {
    const auto alive = weak.lock();
    if (!alive) return {.ok = false, .text = "the session is over"};
    return {.text = alive->status(now.turn())};
  };
  (void)state.tools->add(
      make_tool({.name = "session_status",
                 .description = "How this session is doing: its health, tool calls, timeouts, and "
                                "what is left of its budget.",
                 .effect = Effect::none,
                 .allowed_in_final_turn = true},
                status));
  state.parts.tools = state.tools;
  state.parts.observer = [self = &state](const ToolEvent& event) {
    self->reporter.on_event(event);
    if (self->observer) self->observer(event);
  };
  state.executor = std::make_unique<ToolExecutor>(state.parts, state.options);
  state.reporter.obey(state.turns);
}

ToolRunner::~ToolRunner() {
  // The executor goes first, so that it reports nothing more, and no abort reaches it.
  state_->executor.reset();
}

std::string ToolRunner::definitions() const {
  return state_->tools->definitions();
}

std::vector<CallReport> ToolRunner::carry_out(Iteration& now, std::span<const ToolRequest> calls) {
  std::vector<ToolCall> asked;
  asked.reserve(calls.size());
  for (const auto& call : calls) asked.push_back({call.id, call.name, call.arguments});
  const auto scope = now.scope();
  auto turn = state_->turns.begin_in(
      scope, {.agent = state_->agent,
              .session = state_->tracker.session(),
              .budget = state_->budget,
              .final = now.final(),
              .calls_max = now.charged_calls(static_cast<std::int64_t>(asked.size()))});
  if (turn) return state_->executor->execute_batch(*turn, asked);
  std::vector<CallReport> reports;
  for (auto& call : asked) {
    CallReport report;
    report.call = std::move(call);
    report.outcome =
        ToolCancelled{.why = {.origin = CancelOrigin::parent, .text = turn.error().message}};
    reports.push_back(std::move(report));
  }
  return reports;
}

TurnRegistry& ToolRunner::turns() noexcept {
  return state_->turns;
}

ToolExecutor& ToolRunner::executor() noexcept {
  return *state_->executor;
}

}  // namespace watchdog
