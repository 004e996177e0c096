#include "loop/run_budget.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "watchdog/reasons.h"

namespace watchdog {
namespace {

constexpr std::int64_t iterations_usual = 25;

std::int64_t allowed_iterations(const ExecutionBudget* owners, std::optional<int> chosen) {
  const auto steps = owners != nullptr ? owners->figures().limits.steps : std::nullopt;
  return std::max<std::int64_t>(chosen.value_or(steps.value_or(iterations_usual)), 1);
}

}  // namespace

RunBudget::RunBudget(ProgressTracker& tracker, std::shared_ptr<ExecutionBudget> owners,
                     std::optional<int> iterations, const Clock& clock)
    : owners_(std::move(owners)),
      failsafe_(clock, {.steps = allowed_iterations(owners_.get(), iterations)},
                {.finalize = 1.0}) {
  if (!owners_) return;
  reporter_.emplace(tracker, *owners_);
  const auto figures = owners_->figures();
  is_limited_ = std::any_of(std::begin(budget_axes), std::end(budget_axes),
                            [&](BudgetAxis axis) { return share_used(figures, axis).has_value(); });
}

std::optional<BudgetAxis> RunBudget::finalizing() const {
  return owners_ ? owners_->finalizing() : std::nullopt;
}

std::optional<BudgetAxis> RunBudget::used_up() const {
  return owners_ ? owners_->exhausted() : std::nullopt;
}

Outcome RunBudget::end_for(BudgetAxis axis) const {
  const auto used = share_used(owners_->figures(), axis).value_or(1.0);
  const std::string name(name_of(axis));
  Outcome end{.kind = OutcomeKind::incomplete,
              .reason = std::string(reasons::budget_exhausted),
              .error = name + ": " + std::to_string(std::lround(100 * used)) +
                       " % of what its owner allowed is used"};
  if (axis == BudgetAxis::time) {
    end.reason = reasons::budget_time;
  } else {
    end.subject = name;
  }
  return end;
}

std::string RunBudget::next_text(BudgetVisibility visibility) {
  const auto iterations = failsafe_.figures();
  auto nearest = is_limited_ ? owners_->figures() : iterations;
  if (iterations.stage > nearest.stage) nearest = iterations;
  const auto before = std::exchange(stage_, nearest.stage);
  if (!is_limited_ && nearest.stage < BudgetStage::low) return {};
  return is_shown(visibility, before, nearest.stage) ? prompt_block(nearest) : std::string();
}

BudgetFigures RunBudget::figures() const {
  return is_limited_ ? owners_->figures() : failsafe_.figures();
}

void RunBudget::charge_step() {
  if (!owners_) return;
  owners_->step();
  reporter_->update();
}

std::int64_t RunBudget::charge(std::int64_t tokens, std::size_t calls) {
  if (!owners_) return 0;
  owners_->charge_tokens(tokens);
  return owners_->charge_tool_calls(static_cast<std::int64_t>(calls));
}

bool RunBudget::limits_calls() const {
  return owners_ && owners_->figures().limits.tool_calls.has_value();
}

void RunBudget::hold(bool begins) {
  if (!owners_) return;
  if (begins) {
    owners_->pause();
    reporter_->paused();
  } else {
    owners_->resume();
    reporter_->resumed();
  }
}

void RunBudget::warn() {
  if (reporter_) reporter_->warn();
}

bool RunBudget::enforces_time() const {
  return owners_ && owners_->figures().enforce_time;
}

std::optional<Millis> RunBudget::time_left() const {
  const auto figures = owners_ ? owners_->figures() : BudgetFigures{};
  if (!figures.enforce_time || !figures.limits.duration) return std::nullopt;
  return *figures.limits.duration - figures.elapsed;
}

}  // namespace watchdog
