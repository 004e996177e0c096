// A tree of budgets under one lock. A charge adds to a node and all its ancestors. The limits of
// a node are computed when they are needed: its own, or what is left above. Stages follow from
// the figures; each node keeps the highest so far, until `extend`.
#include "watchdog/budget.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

namespace watchdog {
namespace {

/// Shares like 0.9 of 10 are not exact.
constexpr double rounding = 1e-9;
/// What a tool call leaves of a short time: it may refuse to end, and then the answer follows.
constexpr Millis answer_min{2'500};

std::int64_t bounded(std::int64_t count) {
  return std::clamp<std::int64_t>(count, 0, budget_max);
}
Millis bounded(Millis time) {
  return Millis{bounded(time.count())};
}
double bounded(double amount) {
  // False for NaN.
  return amount > 0 ? std::min(amount, static_cast<double>(budget_max)) : 0.0;
}

template <class T>
std::optional<T> bounded(const std::optional<T>& limit) {
  return limit ? std::optional<T>(bounded(*limit)) : limit;
}

BudgetLimits bounded(const BudgetLimits& limits) {
  return {.steps = bounded(limits.steps),
          .tool_calls = bounded(limits.tool_calls),
          .tokens = bounded(limits.tokens),
          .cost = bounded(limits.cost),
          .duration = bounded(limits.duration)};
}

template <class T>
std::optional<double> share(T used, const std::optional<T>& limit) {
  const auto number = [](T value) {
    if constexpr (std::is_same_v<T, Millis>) {
      return static_cast<double>(value.count());
    } else {
      return static_cast<double>(value);
    }
  };
  if (!limit) return std::nullopt;
  return *limit > T{} ? std::min(number(used) / number(*limit), 1e9) : 1.0;
}

/// Lowers a limit to what is used already and what is left above.
template <class T>
void lower(std::optional<T>& limit, T used, T left) {
  const T most = used + std::max(left, T{});
  limit = limit ? std::min(*limit, most) : most;
}

BudgetStage stage_at(double share, const BudgetThresholds& thresholds) {
  if (share >= 1) return BudgetStage::exhausted;
  if (share >= thresholds.finalize) return BudgetStage::finalize;
  if (share >= thresholds.warn) return BudgetStage::warn;
  return share >= thresholds.low ? BudgetStage::low : BudgetStage::nominal;
}

BudgetStage stage_of_axis(const BudgetFigures& figures, BudgetAxis axis,
                          const BudgetThresholds& thresholds) {
  const auto used = share_used(figures, axis);
  if (!used) return BudgetStage::nominal;
  const auto stage = stage_at(*used, thresholds);
  switch (axis) {
    case BudgetAxis::steps: {
      const auto all = *figures.limits.steps;
      const auto kept = std::ceil((1 - thresholds.finalize) * static_cast<double>(all) - rounding);
      const bool last = static_cast<double>(all - figures.steps) <= std::max(1.0, kept);
      return last ? std::max(stage, BudgetStage::finalize) : stage;
    }
    case BudgetAxis::tool_calls: {
      const bool overdrawn = figures.tool_calls > *figures.limits.tool_calls;
      return overdrawn ? stage : std::min(stage, BudgetStage::finalize);
    }
    case BudgetAxis::time:
      return figures.enforce_time ? stage : std::min(stage, BudgetStage::warn);
    case BudgetAxis::tokens:
    case BudgetAxis::cost:
      break;
  }
  return stage;
}

/// State of all budgets of a tree. One lock for all: a charge walks to the root, and figures are
/// those of one moment.
struct Tree {
  std::mutex mutex;
  std::int64_t extensions = 0;
};

/// A stage, and which axis led to it.
struct Standing {
  BudgetStage stage = BudgetStage::nominal;
  BudgetAxis axis = BudgetAxis::steps;
};

Standing standing_of(const BudgetFigures& figures, const BudgetThresholds& thresholds) {
  Standing highest;
  for (const auto axis : budget_axes) {
    const auto stage = stage_of_axis(figures, axis, thresholds);
    if (stage > highest.stage) highest = {stage, axis};
  }
  return highest;
}

}  // namespace

std::optional<double> share_used(const BudgetFigures& figures, BudgetAxis axis) {
  const BudgetLimits& limits = figures.limits;
  switch (axis) {
    case BudgetAxis::steps:
      return share(figures.steps, limits.steps);
    case BudgetAxis::tool_calls:
      return share(figures.tool_calls, limits.tool_calls);
    case BudgetAxis::tokens:
      return share(figures.tokens, limits.tokens);
    case BudgetAxis::cost:
      return share(figures.cost, limits.cost);
    case BudgetAxis::time:
      return share(figures.elapsed, limits.duration);
  }
  return std::nullopt;
}

void weigh(BudgetFigures& figures) {
  std::optional<double> largest;
  for (const auto axis : budget_axes) {
    const auto used = share_used(figures, axis);
    if (!used || (largest && *used <= *largest)) continue;
    largest = figures.pressure = *used;
    figures.axis = axis;
  }
}

BudgetStage stage_of(const BudgetFigures& figures, const BudgetThresholds& thresholds) {
  return standing_of(figures, thresholds).stage;
}

BudgetFigures bounded(BudgetFigures figures) {
  figures.limits = bounded(figures.limits);
  figures.steps = bounded(figures.steps);
  figures.tool_calls = bounded(figures.tool_calls);
  figures.tokens = bounded(figures.tokens);
  figures.cost = bounded(figures.cost);
  figures.elapsed = bounded(figures.elapsed);
  figures.pressure = bounded(figures.pressure);
  weigh(figures);
  return figures;
}

std::optional<std::int64_t> steps_left(const BudgetFigures& figures) {
  if (!figures.limits.steps) return std::nullopt;
  return std::max<std::int64_t>(*figures.limits.steps - figures.steps, 0);
}

std::int64_t elapsed_seconds(const BudgetFigures& figures) {
  return std::chrono::floor<std::chrono::seconds>(figures.elapsed).count();
}

std::optional<std::int64_t> remaining_seconds(const BudgetFigures& figures) {
  if (!figures.limits.duration) return std::nullopt;
  const auto left = std::max(*figures.limits.duration - figures.elapsed, Millis{0});
  return std::chrono::ceil<std::chrono::seconds>(left).count();
}

struct BudgetView::State {
  const Clock& clock;
  BudgetLimits limits;
  BudgetThresholds thresholds;
  std::shared_ptr<State> parent;
  std::shared_ptr<Tree> tree;
  int depth = 0;
  Millis began = clock.since_boot();
  BudgetFigures used{};  ///< Its counts only.
  Millis paused{};
  Millis pause_began{};
  int pauses = 0;               ///< Open ones, of this and of those below.
  int own_pauses = 0;           ///< Of this.
  Standing highest{};           ///< So far,
  std::int64_t extensions = 0;  ///< since this extension in the tree.
  std::int64_t own_extensions = 0;
  std::function<void(const BudgetFigures&)> listener{};

  [[nodiscard]] Millis elapsed(Millis now) const {
    return std::max((pauses > 0 ? pause_began : now) - began - paused, Millis{0});
  }

  /// Without stage. REQUIRES: mutex held.
  [[nodiscard]] BudgetFigures counts(Millis now) const {
    BudgetFigures figures = used;
    figures.limits = limits;
    figures.elapsed = elapsed(now);
    figures.enforce_time = thresholds.enforce_time;
    std::int64_t kept = 0;  // each level's own last step
    for (const State* above = parent.get(); above != nullptr; above = above->parent.get()) {
      const BudgetLimits& most = above->limits;
      BudgetLimits& own = figures.limits;
      ++kept;
      if (most.steps) lower(own.steps, used.steps, *most.steps - above->used.steps - kept);
      if (most.tool_calls) {
        lower(own.tool_calls, used.tool_calls, *most.tool_calls - above->used.tool_calls);
      }
      if (most.tokens) lower(own.tokens, used.tokens, *most.tokens - above->used.tokens);
      if (most.cost) lower(own.cost, used.cost, *most.cost - above->used.cost);
      if (most.duration && above->thresholds.enforce_time == thresholds.enforce_time) {
        lower(own.duration, figures.elapsed, *most.duration - above->elapsed(now));
      }
    }
    weigh(figures);
    return figures;
  }

  /// Never below what it was, but after an extension anywhere in the tree. REQUIRES: mutex held.
  Standing standing(Millis now) {
    if (std::exchange(extensions, tree->extensions) != tree->extensions) highest = {};
    const auto rise = [&](const Standing& to) {
      if (to.stage > highest.stage) highest = to;
    };
    rise(standing_of(counts(now), thresholds));
    if (parent) {
      const auto above = parent->standing(now);
      if (above.stage >= BudgetStage::finalize) rise(above);
    }
    return highest;
  }

  /// REQUIRES: mutex held.
  BudgetFigures figures(Millis now) {
    auto figures = counts(now);
    figures.stage = standing(now).stage;
    return figures;
  }

  template <class Change>
  BudgetStage charge(Change&& change) {
    const std::lock_guard guard(tree->mutex);
    for (State* each = this; each != nullptr; each = each->parent.get()) change(each->used);
    return standing(clock.since_boot()).stage;
  }
};

BudgetView::BudgetView(std::shared_ptr<State> state) : state_(std::move(state)) {}
BudgetView::~BudgetView() = default;

ExecutionBudget::ExecutionBudget(std::shared_ptr<State> state) : BudgetView(std::move(state)) {}

ExecutionBudget::ExecutionBudget(const Clock& clock, const BudgetLimits& limits,
                                 const BudgetThresholds& thresholds)
    : BudgetView(std::shared_ptr<State>(new State{.clock = clock,
                                                  .limits = bounded(limits),
                                                  .thresholds = thresholds,
                                                  .parent = {},
                                                  .tree = std::make_shared<Tree>()})) {}

Result<std::shared_ptr<ExecutionBudget>> ExecutionBudget::child(
    const std::shared_ptr<ExecutionBudget>& parent, const BudgetLimits& limits,
    const std::optional<BudgetThresholds>& thresholds) {
  const auto& above = parent->state_;
  if (above->depth >= budget_depth_max) {
    return Error{ErrorCode::exhausted,
                 "tasks may be nested " + std::to_string(budget_depth_max) + " deep, no deeper"};
  }
  auto own = thresholds.value_or(above->thresholds);
  own.enforce_time = own.enforce_time || above->thresholds.enforce_time;
  std::shared_ptr<State> state(new State{.clock = above->clock,
                                         .limits = bounded(limits),
                                         .thresholds = own,
                                         .parent = above,
                                         .tree = above->tree,
                                         .depth = above->depth + 1});
  return std::shared_ptr<ExecutionBudget>(new ExecutionBudget(std::move(state)));
}

BudgetStage ExecutionBudget::step() {
  const auto stage =
      state_->charge([](BudgetFigures& used) { used.steps = bounded(used.steps + 1); });
  std::function<void(const BudgetFigures&)> listener;
  {
    const std::lock_guard guard(state_->tree->mutex);
    listener = state_->listener;
  }
  if (listener) listener(figures());
  return stage;
}

BudgetStage ExecutionBudget::charge_tokens(std::int64_t count) {
  const auto more = bounded(count);
  return state_->charge([&](BudgetFigures& used) { used.tokens = bounded(used.tokens + more); });
}

BudgetStage ExecutionBudget::charge_cost(double amount) {
  const auto more = bounded(amount);
  return state_->charge([&](BudgetFigures& used) { used.cost = bounded(used.cost + more); });
}

BudgetStage ExecutionBudget::charge_tool_call() {
  return state_->charge(
      [](BudgetFigures& used) { used.tool_calls = bounded(used.tool_calls + 1); });
}

std::int64_t ExecutionBudget::charge_tool_calls(std::int64_t asked) {
  const std::lock_guard guard(state_->tree->mutex);
  const auto now = state_->counts(state_->clock.since_boot());
  auto charged = bounded(asked);
  if (now.limits.tool_calls) {
    charged = std::min(charged, std::max<std::int64_t>(*now.limits.tool_calls - now.tool_calls, 0));
  }
  for (State* each = state_.get(); each != nullptr; each = each->parent.get())
    each->used.tool_calls = bounded(each->used.tool_calls + charged);
  return charged;
}

void ExecutionBudget::pause() {
  const std::lock_guard guard(state_->tree->mutex);
  const auto now = state_->clock.since_boot();
  ++state_->own_pauses;
  for (State* each = state_.get(); each != nullptr; each = each->parent.get()) {
    if (each->pauses++ == 0) each->pause_began = now;
  }
}

void ExecutionBudget::resume() {
  const std::lock_guard guard(state_->tree->mutex);
  if (state_->own_pauses == 0) return;
  --state_->own_pauses;
  const auto now = state_->clock.since_boot();
  for (State* each = state_.get(); each != nullptr; each = each->parent.get()) {
    if (--each->pauses == 0) each->paused += now - each->pause_began;
  }
}

Result<void> ExecutionBudget::extend(const BudgetLimits& extra) {
  const std::lock_guard guard(state_->tree->mutex);
  BudgetLimits next = state_->limits;
  bool more = false;
  std::optional<Error> wrong;
  const auto add = [&](auto& limit, const auto& by, BudgetAxis axis) {
    if (!by || wrong) return;
    const std::string name(name_of(axis));
    using Number = std::decay_t<decltype(*by)>;
    if (!limit) {
      wrong = Error{ErrorCode::invalid, name + " have no limit that could be extended", name};
    } else if (!(bounded(*by) > Number{})) {
      wrong = Error{ErrorCode::invalid, name + " can only be extended by more than 0", name};
    } else {
      limit = bounded(static_cast<Number>(*limit + bounded(*by)));
      more = true;
    }
  };
  add(next.steps, extra.steps, BudgetAxis::steps);
  add(next.tool_calls, extra.tool_calls, BudgetAxis::tool_calls);
  add(next.tokens, extra.tokens, BudgetAxis::tokens);
  add(next.cost, extra.cost, BudgetAxis::cost);
  add(next.duration, extra.duration, BudgetAxis::time);
  if (wrong) return *wrong;
  if (!more) return Error{ErrorCode::invalid, "an extension must name what there is more of"};
  state_->limits = next;
  ++state_->tree->extensions;
  ++state_->own_extensions;
  return {};
}

std::int64_t BudgetView::extensions() const {
  const std::lock_guard guard(state_->tree->mutex);
  return state_->own_extensions;
}

void ExecutionBudget::on_step(std::function<void(const BudgetFigures&)> listener) {
  const std::lock_guard guard(state_->tree->mutex);
  state_->listener = std::move(listener);
}

std::int64_t BudgetView::elapsed_seconds() const {
  return watchdog::elapsed_seconds(figures());
}

std::optional<std::int64_t> BudgetView::remaining_seconds() const {
  return watchdog::remaining_seconds(figures());
}

double BudgetView::time_percentage_used() const {
  return 100 * share_used(figures(), BudgetAxis::time).value_or(0);
}

double BudgetView::steps_percentage_used() const {
  return 100 * share_used(figures(), BudgetAxis::steps).value_or(0);
}

BudgetStage BudgetView::stage() const {
  const std::lock_guard guard(state_->tree->mutex);
  return state_->standing(state_->clock.since_boot()).stage;
}

std::optional<BudgetAxis> BudgetView::axis_from(BudgetStage stage) const {
  const std::lock_guard guard(state_->tree->mutex);
  const auto standing = state_->standing(state_->clock.since_boot());
  return standing.stage < stage ? std::nullopt : std::optional(standing.axis);
}

std::optional<Millis> BudgetView::per_tool_remaining(Millis cap, Millis floor) const {
  const auto now = figures();
  if (now.stage == BudgetStage::exhausted) return std::nullopt;
  if (now.limits.tool_calls && now.tool_calls >= *now.limits.tool_calls) return std::nullopt;
  return time_for_call(cap, floor);
}

Millis BudgetView::time_for_call(Millis cap, Millis floor) const {
  const auto now = figures();
  if (!now.enforce_time || !now.limits.duration) return cap;
  const auto rest = *now.limits.duration - now.elapsed;
  const auto kept_share = std::clamp(1 - state_->thresholds.finalize, 0.0, 1.0);
  const auto& all = *now.limits.duration;
  const Millis kept = std::max(Millis{std::llround(static_cast<double>(all.count()) * kept_share)},
                               std::min(answer_min, all / 4));
  const auto left = std::max({rest - kept, std::min(floor, rest / 2), Millis{1}});
  return cap > Millis{0} ? std::min(cap, left) : left;
}

BudgetFigures BudgetView::figures() const {
  const std::lock_guard guard(state_->tree->mutex);
  return state_->figures(state_->clock.since_boot());
}

const BudgetThresholds& BudgetView::thresholds() const noexcept {
  return state_->thresholds;
}

int BudgetView::depth() const noexcept {
  return state_->depth;
}

}  // namespace watchdog
