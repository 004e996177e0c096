#include "codec/budget.h"

#include <algorithm>
#include <cmath>

#include "codec/counts.h"

namespace watchdog {
namespace {

/// A share as a percentage with two decimals; the share of such a percentage is written as it was.
std::optional<double> percentage(std::optional<double> share) {
  if (share) *share = std::round(std::min(*share, 1e9) * 10'000) / 100;
  return share;
}
double share_of(double percentage) {
  return std::round(percentage * 100) / 10'000;
}

/// Every figure once, with its name in the trace and in the document; empty: not there.
template <class Visit>
void each_figure(const BudgetFigures& f, Visit&& visit) {
  using Count = std::optional<std::int64_t>;
  const auto duration = f.limits.duration;
  const auto ms = duration ? Count(duration->count()) : Count();
  const auto seconds =
      duration ? Count(std::chrono::ceil<std::chrono::seconds>(*duration).count()) : Count();
  visit("stage", "stage", name_of(f.stage));
  visit("axis", "axis", name_of(f.axis));
  visit("max_pressure", "maxPressure", percentage(f.pressure));
  visit("current_step", "currentStep", f.steps);
  visit("max_steps", "maxSteps", f.limits.steps);
  visit("steps_remaining", "stepsRemaining", steps_left(f));
  visit("step_pressure", "stepPressure", percentage(share_used(f, BudgetAxis::steps)));
  visit("elapsed_seconds", "elapsedSeconds", elapsed_seconds(f));
  visit("remaining_seconds", "remainingSeconds", remaining_seconds(f));
  visit("time_pressure", "timePressure", percentage(share_used(f, BudgetAxis::time)));
  visit("time_enforced", "timeEnforced", f.enforce_time);
  visit("elapsed_ms", "", f.elapsed.count());
  visit("duration_ms", "", ms);
  visit("", "maxSeconds", seconds);
  visit("tool_calls", "toolCalls", f.tool_calls);
  visit("max_tool_calls", "maxToolCalls", f.limits.tool_calls);
  visit("tokens", "tokens", f.tokens);
  visit("max_tokens", "maxTokens", f.limits.tokens);
  visit("cost", "cost", f.cost);
  visit("max_cost", "maxCost", f.limits.cost);
}

template <class T>
bool has_value(const std::optional<T>& figure) {
  return figure.has_value();
}
template <class T>
bool has_value(const T& /*figure*/) {
  return true;
}

}  // namespace

void write_figures(JsonWriter& out, const BudgetFigures& figures) {
  each_figure(bounded(figures), [&](std::string_view name, std::string_view, const auto& figure) {
    if (!name.empty() && has_value(figure)) out.field(name, figure);
  });
}

void write_figures_shown(JsonWriter& out, const BudgetFigures& figures) {
  each_figure(figures, [&](std::string_view, std::string_view name, const auto& figure) {
    if (!name.empty()) out.field(name, figure);
  });
}

BudgetFigures read_figures(Fields& fields) {
  Counts counts(fields);
  BudgetFigures figures;
  figures.steps = counts.integer("current_step").value_or(0);
  figures.limits.steps = counts.integer("max_steps");
  const auto steps_left = counts.integer("steps_remaining");
  if (steps_left && !figures.limits.steps) figures.limits.steps = figures.steps + *steps_left;
  const auto elapsed = counts.seconds("elapsed_seconds");
  const auto left = counts.seconds("remaining_seconds");
  figures.elapsed = counts.ms("elapsed_ms").value_or(elapsed.value_or(Millis{0}));
  figures.limits.duration = counts.ms("duration_ms");
  if (left && !figures.limits.duration) figures.limits.duration = figures.elapsed + *left;
  figures.tool_calls = counts.integer("tool_calls").value_or(0);
  figures.limits.tool_calls = counts.integer("max_tool_calls");
  figures.tokens = counts.integer("tokens").value_or(0);
  figures.limits.tokens = counts.integer("max_tokens");
  figures.cost = counts.number("cost").value_or(0);
  figures.limits.cost = counts.number("max_cost");
  std::optional<bool> enforced;
  fields.flag("time_enforced", enforced);
  figures.enforce_time = enforced.value_or(false);
  (void)counts.number("step_pressure");
  (void)counts.number("time_pressure");
  figures.pressure = share_of(counts.number("max_pressure").value_or(0));
  std::optional<BudgetAxis> axis;
  fields.choice("axis", axis);
  figures.axis = axis.value_or(BudgetAxis::steps);
  figures = bounded(figures);
  std::optional<BudgetStage> stage;
  fields.choice("stage", stage);
  figures.stage = stage.value_or(stage_of(figures));
  return figures;
}

}  // namespace watchdog
