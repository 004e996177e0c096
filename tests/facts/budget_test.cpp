#include "watchdog/budget.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <thread>

#include "support/manual_clock.h"
#include "support/scenario.h"

namespace watchdog::test {
namespace {

using namespace std::chrono_literals;
using enum BudgetStage;

/// Stage by stage, as the steps are taken: before the first, after the first, …
std::vector<BudgetStage> stages_of(std::int64_t steps) {
  const ManualClock clock;
  ExecutionBudget budget(clock, {.steps = steps});
  std::vector<BudgetStage> stages{budget.stage()};
  for (std::int64_t i = 0; i < steps; ++i) stages.push_back(budget.step());
  return stages;
}

TEST(Budget, counts_time_and_steps_as_percentages) {
  ManualClock clock;
  ExecutionBudget budget(clock, {.steps = 30, .duration = 300s});
  for (int i = 0; i < 15; ++i) budget.step();
  clock.advance(45'400ms);
  EXPECT_EQ(budget.elapsed_seconds(), 45);
  EXPECT_EQ(budget.remaining_seconds(), 255) << "rounded up, so that 0 is none";
  EXPECT_DOUBLE_EQ(budget.steps_percentage_used(), 50);
  EXPECT_NEAR(budget.time_percentage_used(), 15.13, 0.01);
  const auto figures = budget.figures();
  EXPECT_EQ(figures.pressure, 0.5);
  EXPECT_EQ(figures.axis, BudgetAxis::steps);
  EXPECT_EQ(steps_left(figures), 15);
  clock.advance(400s);
  EXPECT_EQ(budget.remaining_seconds(), 0);
  EXPECT_GT(budget.time_percentage_used(), 100) << "overdrawn, and shown so";
}

TEST(Budget, climbs_its_ladder_step_by_step) {
  const auto stages = stages_of(20);
  EXPECT_EQ(stages[13], nominal);
  EXPECT_EQ(stages[14], low) << "70 %";
  EXPECT_EQ(stages[15], low);
  EXPECT_EQ(stages[16], warn) << "80 %";
  EXPECT_EQ(stages[17], warn);
  EXPECT_EQ(stages[18], finalize) << "90 %, two are kept back";
  EXPECT_EQ(stages[20], exhausted);
}

TEST(Budget, keeps_the_last_step_for_the_answer) {
  EXPECT_EQ(stages_of(1), (std::vector{finalize, exhausted})) << "the only one";
  EXPECT_EQ(stages_of(2), (std::vector{nominal, finalize, exhausted})) << "the second";
  EXPECT_EQ(stages_of(3), (std::vector{nominal, nominal, finalize, exhausted}));
  for (std::int64_t steps = 1; steps < 250; ++steps) {
    const auto stages = stages_of(steps);
    ASSERT_EQ(stages[static_cast<std::size_t>(steps - 1)], finalize) << steps;
    const auto kept = std::max<std::int64_t>(1, (steps + 9) / 10);
    ASSERT_EQ(stages[static_cast<std::size_t>(steps - kept)], finalize) << steps;
    if (steps > kept) {
      ASSERT_LT(stages[static_cast<std::size_t>(steps - kept - 1)], finalize) << steps;
    }
  }
}

TEST(Budget, time_without_an_opt_in_advises_and_ends_nothing) {
  ManualClock clock;
  ExecutionBudget budget(clock, {.steps = 10, .duration = 100s});
  clock.advance(69s);
  EXPECT_EQ(budget.stage(), nominal);
  clock.advance(1s);
  EXPECT_EQ(budget.stage(), low);
  clock.advance(10s);
  EXPECT_EQ(budget.stage(), warn);
  clock.advance(1'000h);
  EXPECT_EQ(budget.stage(), warn);
  EXPECT_EQ(budget.exhausted(), std::nullopt);
  EXPECT_EQ(budget.per_tool_remaining(120s), 120s);
}

TEST(Budget, enforced_time_ends_it) {
  ManualClock clock;
  ExecutionBudget budget(clock, {.duration = 100s}, {.enforce_time = true});
  clock.advance(90s);
  EXPECT_TRUE(budget.must_finalize());
  EXPECT_EQ(budget.exhausted(), std::nullopt);
  clock.advance(10s);
  EXPECT_EQ(budget.exhausted(), BudgetAxis::time);
}

TEST(Budget, tool_calls_end_in_an_answer_that_needs_none) {
  const ManualClock clock;
  ExecutionBudget budget(clock, {.tool_calls = 2});
  EXPECT_EQ(budget.charge_tool_call(), nominal);
  EXPECT_EQ(budget.per_tool_remaining(60s), 60s);
  EXPECT_EQ(budget.charge_tool_call(), finalize);
  EXPECT_EQ(budget.per_tool_remaining(60s), std::nullopt) << "start none";
  EXPECT_EQ(budget.charge_tool_call(), exhausted) << "one too many";
  EXPECT_EQ(budget.exhausted(), BudgetAxis::tool_calls);
  EXPECT_TRUE(ExecutionBudget(clock, {.tool_calls = 0}).must_finalize());
}

TEST(Budget, tokens_and_cost_are_enforced) {
  const ManualClock clock;
  ExecutionBudget budget(clock, {.tokens = 1'000, .cost = 2.0});
  EXPECT_EQ(budget.charge_tokens(700), low);
  EXPECT_EQ(budget.charge_cost(1.8), finalize);
  EXPECT_EQ(budget.figures().axis, BudgetAxis::cost);
  EXPECT_EQ(budget.charge_tokens(400), exhausted);
  EXPECT_EQ(budget.exhausted(), BudgetAxis::tokens);
  EXPECT_DOUBLE_EQ(budget.figures().pressure, 1.1);
}

TEST(Budget, a_call_gets_enforced_time_until_the_final_step_and_a_little_at_its_end) {
  struct Row {
    Millis elapsed, cap;
    std::optional<Millis> allowed;
  };
  for (const auto& row : {Row{0s, 45s, 45s}, Row{80s, 45s, 10s}, Row{88s, 45s, 5s},
                          Row{97s, 45s, 1'500ms}, Row{97s, 1s, 1s}, Row{99'999ms, 45s, 1ms},
                          Row{100s, 45s, {}}, Row{200s, 45s, {}}, Row{40s, 0s, 50s}}) {
    ManualClock clock;
    ExecutionBudget budget(clock, {.duration = 100s}, {.enforce_time = true});
    clock.advance(row.elapsed);
    EXPECT_EQ(budget.per_tool_remaining(row.cap), row.allowed) << row.elapsed.count();
  }
}

TEST(Budget, a_call_leaves_a_quarter_of_a_short_time) {
  ManualClock clock;
  for (const auto& [all, left] : {std::pair{4s, 3'000ms}, std::pair{12s, 9'500ms},
                                  std::pair{25s, 22'500ms}, std::pair{100s, 90'000ms}}) {
    const ExecutionBudget budget(clock, {.duration = all}, {.enforce_time = true});
    EXPECT_EQ(budget.per_tool_remaining(0s), left) << all.count();
  }
}

TEST(Budget, pauses_stop_the_time_and_nest) {
  ManualClock clock;
  ExecutionBudget budget(clock, {.duration = 100s}, {.enforce_time = true});
  clock.advance(10s);
  budget.resume();  // one too many
  budget.pause();
  clock.advance(50s);
  budget.pause();
  clock.advance(50s);
  budget.resume();
  clock.advance(50s);
  EXPECT_EQ(budget.elapsed_seconds(), 10);
  budget.resume();
  budget.resume();
  clock.advance(5s);
  EXPECT_EQ(budget.elapsed_seconds(), 15);
}

TEST(Budget, a_paused_child_pauses_its_parent_too) {
  ManualClock clock;
  const auto parent = std::make_shared<ExecutionBudget>(clock, BudgetLimits{.duration = 100s});
  const auto child = ExecutionBudget::child(parent, {}).value();
  child->pause();
  parent->resume();  // is not its own
  clock.advance(50s);
  EXPECT_EQ(parent->elapsed_seconds(), 0);
  child->resume();
  clock.advance(5s);
  EXPECT_EQ(parent->elapsed_seconds(), 5);
  EXPECT_EQ(child->elapsed_seconds(), 5);
}

TEST(Budget, only_an_extension_lowers_a_stage) {
  const ManualClock clock;
  ExecutionBudget budget(clock, {.steps = 10, .tokens = 100});
  for (int i = 0; i < 10; ++i) budget.step();
  EXPECT_EQ(budget.exhausted(), BudgetAxis::steps);
  EXPECT_EQ(budget.extend({}).error().code, ErrorCode::invalid);
  EXPECT_EQ(budget.extend({.steps = -5}).error().field, "steps");
  EXPECT_EQ(budget.extend({.steps = 5, .cost = 1}).error().field, "cost") << "it has no limit";
  EXPECT_EQ(budget.stage(), exhausted) << "refused as a whole";
  ASSERT_TRUE(budget.extend({.steps = 10, .tokens = 5}).ok());
  EXPECT_EQ(budget.stage(), nominal);
  EXPECT_EQ(budget.figures().limits.steps, 20);
  EXPECT_EQ(budget.figures().limits.tokens, 105);
}

TEST(Budget, invalid_values_are_bounded) {
  constexpr auto no_number = std::numeric_limits<double>::quiet_NaN();
  constexpr auto endless = std::numeric_limits<double>::infinity();
  const ManualClock clock;
  ExecutionBudget budget(clock, {.steps = 5, .tokens = INT64_MAX, .cost = 10});
  EXPECT_EQ(budget.charge_cost(no_number), nominal);
  EXPECT_EQ(budget.charge_cost(-5), nominal);
  EXPECT_EQ(budget.charge_tokens(-5), nominal);
  EXPECT_EQ(budget.figures().cost, 0);
  EXPECT_EQ(budget.figures().tokens, 0);
  EXPECT_EQ(budget.charge_cost(endless), exhausted);
  budget.charge_tokens(INT64_MAX);
  budget.charge_tokens(INT64_MAX);
  EXPECT_EQ(budget.figures().tokens, budget_max);
  EXPECT_TRUE(std::isfinite(budget.figures().pressure));

  EXPECT_EQ(ExecutionBudget(clock, {.steps = 0}).exhausted(), BudgetAxis::steps);
  EXPECT_EQ(ExecutionBudget(clock, {.steps = -1}).exhausted(), BudgetAxis::steps);
  EXPECT_EQ(ExecutionBudget(clock, {.cost = no_number}).exhausted(), BudgetAxis::cost);
  EXPECT_EQ(ExecutionBudget(clock, {.duration = 0s}, {.enforce_time = true}).exhausted(),
            BudgetAxis::time);
  EXPECT_EQ(ExecutionBudget(clock, {.duration = 0s}).stage(), warn);
  ExecutionBudget unlimited(clock);
  for (int i = 0; i < 1'000; ++i) unlimited.step();
  EXPECT_EQ(unlimited.stage(), nominal);
  EXPECT_EQ(unlimited.steps_percentage_used(), 0);
  EXPECT_EQ(unlimited.remaining_seconds(), std::nullopt);
  // A ladder without sense still ends.
  ExecutionBudget odd(clock, {.steps = 2}, {.low = no_number, .warn = 5, .finalize = no_number});
  EXPECT_EQ(odd.step(), finalize);
  EXPECT_EQ(odd.step(), exhausted);
}

TEST(ChildBudget, spends_what_is_its_parents) {
  const ManualClock clock;
  const auto parent =
      std::make_shared<ExecutionBudget>(clock, BudgetLimits{.steps = 30, .tokens = 1'000});
  const auto child = ExecutionBudget::child(parent, {.steps = 100, .cost = 1.0}).value();
  for (int i = 0; i < 4; ++i) parent->step();
  EXPECT_EQ(child->figures().limits.steps, 25) << "its parent keeps one step for its own answer";
  EXPECT_EQ(child->figures().limits.tokens, 1'000);
  child->step();
  child->charge_tokens(600);
  EXPECT_EQ(parent->figures().steps, 5);
  EXPECT_EQ(parent->figures().tokens, 600);
  EXPECT_EQ(child->figures().limits.steps, 25) << "spent here or there, the sum is the same";

  const auto sibling = ExecutionBudget::child(parent, {}).value();
  for (int i = 0; i < 10; ++i) sibling->step();
  sibling->charge_tokens(100);
  EXPECT_EQ(steps_left(child->figures()), 14) << "a sibling's spending counts";
  EXPECT_EQ(child->figures().limits.tokens, 900);
}

TEST(ChildBudget, leaves_every_ancestor_a_step_to_answer_in) {
  const ManualClock clock;
  const auto root = std::make_shared<ExecutionBudget>(clock, BudgetLimits{.steps = 10});
  const auto middle = ExecutionBudget::child(root, {}).value();
  const auto leaf = ExecutionBudget::child(middle, {}).value();
  int step_count = 0;
  while (!leaf->must_finalize()) {
    leaf->step();
    ++step_count;
  }
  leaf->step();
  EXPECT_EQ(step_count, 7);
  EXPECT_EQ(leaf->exhausted(), BudgetAxis::steps);
  EXPECT_EQ(middle->exhausted(), std::nullopt);
  EXPECT_TRUE(middle->must_finalize());
  middle->step();
  EXPECT_EQ(middle->exhausted(), BudgetAxis::steps);
  EXPECT_EQ(root->exhausted(), std::nullopt);
  EXPECT_TRUE(root->must_finalize());
  root->step();
  EXPECT_EQ(root->exhausted(), BudgetAxis::steps);
}

TEST(ChildBudget, ends_with_its_parent_but_is_low_by_itself) {
  const ManualClock clock;
  const auto parent = std::make_shared<ExecutionBudget>(clock, BudgetLimits{.tool_calls = 100});
  const auto child = ExecutionBudget::child(parent, {.steps = 10, .tool_calls = 5}).value();
  for (int i = 0; i < 80; ++i) parent->charge_tool_call();
  EXPECT_EQ(parent->stage(), warn);
  EXPECT_EQ(child->stage(), nominal) << "20 are left, it needs 5";
  for (int i = 0; i < 10; ++i) parent->charge_tool_call();
  EXPECT_EQ(child->stage(), finalize);
  for (int i = 0; i < 11; ++i) parent->charge_tool_call();
  EXPECT_EQ(child->exhausted(), BudgetAxis::tool_calls);
  ASSERT_TRUE(parent->extend({.tool_calls = 1'000}).ok());
  EXPECT_EQ(child->stage(), nominal) << "an extension reaches those below";
}

TEST(ChildBudget, is_not_ended_by_a_time_that_was_advice) {
  ManualClock clock;
  const BudgetLimits minute{.duration = 60s};
  const auto advised = std::make_shared<ExecutionBudget>(clock, minute);
  const auto bound =
      ExecutionBudget::child(advised, {.duration = 100s}, BudgetThresholds{.enforce_time = true})
          .value();
  const auto enforced =
      std::make_shared<ExecutionBudget>(clock, minute, BudgetThresholds{.enforce_time = true});
  const auto inherits =
      ExecutionBudget::child(enforced, {.duration = 100s}, BudgetThresholds{}).value();
  clock.advance(61s);
  EXPECT_EQ(bound->exhausted(), std::nullopt);
  EXPECT_EQ(inherits->exhausted(), BudgetAxis::time);
  EXPECT_EQ(inherits->figures().limits.duration, 61s);
}

TEST(ChildBudget, nests_five_deep) {
  const ManualClock clock;
  auto budget = std::make_shared<ExecutionBudget>(clock, BudgetLimits{});
  for (int depth = 1; depth <= budget_depth_max; ++depth) {
    auto child = ExecutionBudget::child(budget, {});
    ASSERT_TRUE(child.ok());
    budget = *child;
    EXPECT_EQ(budget->depth(), depth);
  }
  EXPECT_EQ(ExecutionBudget::child(budget, {}).error().code, ErrorCode::exhausted);
}

TEST(Budget, reports_its_own_steps) {
  const ManualClock clock;
  const auto parent = std::make_shared<ExecutionBudget>(clock, BudgetLimits{.steps = 5});
  const auto child = ExecutionBudget::child(parent, {}).value();
  std::vector<std::int64_t> shown;
  child->on_step([&](const BudgetFigures& figures) { shown.push_back(figures.steps); });
  child->step();
  parent->step();
  child->step();
  EXPECT_EQ(shown, (std::vector<std::int64_t>{1, 2}));
  child->on_step(nullptr);
  child->step();
  EXPECT_EQ(shown.size(), 2U);
}

TEST(Budget, loses_no_charge_of_many_threads) {
  const ManualClock clock;
  const auto root = std::make_shared<ExecutionBudget>(clock, BudgetLimits{});
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([child = ExecutionBudget::child(root, {}).value()] {
        for (int n = 0; n < 1'000; ++n) {
          child->step();
          child->charge_tokens(3);
        }
      });
    }
  }
  EXPECT_EQ(root->figures().steps, 4'000);
  EXPECT_EQ(root->figures().tokens, 12'000);
}

TEST(BudgetVisibility, reports_changes_and_then_every_step) {
  struct Row {
    BudgetVisibility visibility;
    std::optional<BudgetStage> before;
    BudgetStage now;
    bool shown;
  };
  using enum BudgetVisibility;
  for (const auto& row :
       {Row{thresholds, {}, nominal, true}, Row{thresholds, nominal, nominal, false},
        Row{thresholds, nominal, low, true}, Row{thresholds, low, low, true},
        Row{thresholds, warn, warn, true}, Row{thresholds, warn, nominal, true},
        Row{always, nominal, nominal, true}, Row{silent, nominal, finalize, false}}) {
    EXPECT_EQ(is_shown(row.visibility, row.before, row.now), row.shown)
        << name_of(row.visibility) << " " << name_of(row.now);
  }
}

/// A family of budgets that spends at random.
class Family {
 public:
  explicit Family(std::mt19937_64& random) : random_(random) {
    add(std::make_shared<ExecutionBudget>(clock_, limits(), thresholds()), nullptr);
  }

  /// Something happens to one of them. True if it was an extension.
  bool move() {
    Member& member = members_[random_() % members_.size()];
    ExecutionBudget& budget = *member.budget;
    switch (random_() % 12) {
      case 0:
        if (auto child = ExecutionBudget::child(member.budget, limits())) {
          add(*child, member.budget);
        }
        return false;
      case 1:
        budget.pause();
        return false;
      case 2:
        budget.resume();
        return false;
      case 3:
        return random_() % 10 == 0 && budget.extend({.steps = 3}).ok();
      case 4:
        clock_.advance(Millis{static_cast<std::int64_t>(random_() % 5'000)});
        return false;
      case 5:
        budget.charge_tool_call();
        return false;
      case 6:
        budget.charge_cost(static_cast<double>(random_() % 1'000) / 777);
        return false;
      case 7:
        budget.charge_tokens(static_cast<std::int64_t>(random_() % 100));
        return false;
      default:
        budget.step();
        return false;
    }
  }

  void look(bool extended) {
    for (Member& member : members_) {
      const auto figures = member.budget->figures();
      if (!extended) {
        ASSERT_GE(figures.stage, member.stage) << "it fell";
      }
      member.stage = figures.stage;
      ASSERT_TRUE(std::isfinite(figures.pressure) && figures.pressure >= 0);
      const auto exhausted = member.budget->exhausted();
      ASSERT_EQ(exhausted.has_value(), figures.stage == BudgetStage::exhausted);
      if (!figures.enforce_time) {
        ASSERT_NE(exhausted, BudgetAxis::time);
      }
      if (figures.limits.steps && steps_left(figures) == 1) {
        ASSERT_GE(figures.stage, finalize) << "the last step is for the answer";
      }
      if (member.parent) bound_by_parent(figures, member.parent->figures());
    }
  }

 private:
  struct Member {
    std::shared_ptr<ExecutionBudget> budget, parent;
    BudgetStage stage = nominal;
  };

  static void bound_by_parent(const BudgetFigures& child, const BudgetFigures& parent) {
    ASSERT_LE(child.steps, parent.steps);
    ASSERT_LE(child.tokens, parent.tokens);
    if (parent.limits.steps) {
      ASSERT_LE(*steps_left(child), std::max<std::int64_t>(*steps_left(parent) - 1, 0));
    }
    if (parent.limits.tokens) {
      ASSERT_LE(*child.limits.tokens - child.tokens,
                std::max<std::int64_t>(*parent.limits.tokens - parent.tokens, 0));
    }
    if (parent.stage >= finalize) {
      ASSERT_GE(child.stage, parent.stage);
    }
  }

  void add(std::shared_ptr<ExecutionBudget> budget, std::shared_ptr<ExecutionBudget> parent) {
    if (members_.size() < 8) {
      members_.push_back({.budget = std::move(budget), .parent = std::move(parent)});
    }
  }

  BudgetLimits limits() {
    BudgetLimits limits;
    if (random_() % 2 != 0) limits.steps = static_cast<std::int64_t>(random_() % 60);
    if (random_() % 4 == 0) limits.tool_calls = static_cast<std::int64_t>(random_() % 30);
    if (random_() % 4 == 0) limits.tokens = static_cast<std::int64_t>(random_() % 3'000);
    if (random_() % 4 == 0) limits.cost = static_cast<double>(random_() % 100) / 7;
    if (random_() % 2 != 0) limits.duration = Millis{static_cast<std::int64_t>(random_() % 90'000)};
    return limits;
  }
  BudgetThresholds thresholds() { return {.enforce_time = random_() % 2 != 0}; }

  std::mt19937_64& random_;
  ManualClock clock_;
  std::vector<Member> members_;
};

TEST(Budget, holds_its_promises_whatever_is_spent) {
  std::mt19937_64 random(random_seed());
  for (int round = 0; round < repetitions(2'000); ++round) {
    Family family(random);
    for (int i = 0; i < 100; ++i) {
      const bool extended = family.move();
      family.look(extended);
      if (HasFatalFailure()) FAIL() << "round " << round << ", move " << i;
    }
  }
}

TEST(Budget, advice_of_time_alone_never_exceeds_warn) {
  std::mt19937_64 random(random_seed());
  for (int round = 0; round < repetitions(2'000); ++round) {
    ManualClock clock;
    const auto duration = Millis{static_cast<std::int64_t>(random() % 10'000)};
    const auto root = std::make_shared<ExecutionBudget>(clock, BudgetLimits{.duration = duration});
    const auto child = ExecutionBudget::child(root, {.duration = duration * 2}).value();
    for (int i = 0; i < 20; ++i) {
      clock.advance(Millis{static_cast<std::int64_t>(random() % 2'000)});
      child->step();
      ASSERT_LE(root->stage(), warn);
      ASSERT_LE(child->stage(), warn);
      ASSERT_EQ(child->exhausted(), std::nullopt);
    }
  }
}

}  // namespace
}  // namespace watchdog::test
