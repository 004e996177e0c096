#include <gtest/gtest.h>

#include "support/manual_clock.h"
#include "watchdog/budget.h"

namespace watchdog::test {
namespace {

using namespace std::chrono_literals;

TEST(PromptBlock, has_the_figures_and_the_words) {
  ManualClock clock;
  ExecutionBudget budget(clock, {.steps = 30, .duration = 300s}, {.enforce_time = true});
  for (int i = 0; i < 15; ++i) budget.step();
  clock.advance(45s);
  EXPECT_EQ(budget.prompt_block(),
            "[EXECUTION BUDGET]\n"
            "Current Progress: Step 15/30, Elapsed: 45/300 seconds\n"
            "Time Used: 15%, Steps Used: 50%\n"
            "Remaining: 255 seconds, 15 steps\n"
            "Status: NOMINAL (Continue normally)");
  for (int i = 0; i < 6; ++i) budget.step();
  EXPECT_EQ(budget.prompt_block(),
            "[EXECUTION BUDGET]\n"
            "Current Progress: Step 21/30, Elapsed: 45/300 seconds\n"
            "Time Used: 15%, Steps Used: 70%\n"
            "Remaining: 255 seconds, 9 steps\n"
            "Status: LOW BUDGET (Prioritize wrapping up. Provide final answer soon.)\n"
            "Advice: save partial results, then answer.");
  for (int i = 0; i < 8; ++i) budget.step();
  EXPECT_EQ(budget.prompt_block(),
            "[EXECUTION BUDGET]\n"
            "Current Progress: Step 29/30, Elapsed: 45/300 seconds\n"
            "Time Used: 15%, Steps Used: 96%\n"
            "Remaining: 255 seconds, 1 step\n"
            "Status: FINAL STEP (Answer now with what you have. No more tools.)\n"
            "Advice: say what you found, what is done and what is not.");
}

TEST(PromptBlock, leaves_out_seconds_that_are_advice) {
  ManualClock clock;
  ExecutionBudget budget(clock, {.steps = 4, .duration = 300s});
  budget.step();
  EXPECT_EQ(budget.prompt_block(),
            "[EXECUTION BUDGET]\n"
            "Current Progress: Step 1/4\n"
            "Steps Used: 25%\n"
            "Remaining: 3 steps\n"
            "Status: NOMINAL (Continue normally)");
  clock.advance(290s);
  EXPECT_EQ(budget.prompt_block(),
            "[EXECUTION BUDGET]\n"
            "Current Progress: Step 1/4\n"
            "Steps Used: 25%\n"
            "Remaining: 3 steps\n"
            "Status: LOW BUDGET (Prioritize wrapping up. Provide final answer soon.)\n"
            "Advice: most of the time planned for this task has passed; save partial results, "
            "then answer.");
}

TEST(PromptBlock, shows_what_else_is_limited_in_the_same_manner) {
  const ManualClock clock;
  ExecutionBudget budget(clock, {.tool_calls = 10, .tokens = 10'000, .cost = 2.0});
  budget.charge_tool_call();
  budget.charge_tokens(1'200);
  budget.charge_cost(0.58);
  EXPECT_EQ(budget.prompt_block(),
            "[EXECUTION BUDGET]\n"
            "Current Progress: Tool Calls: 1/10, Tokens: 1200/10000, Cost: 0.58/2\n"
            "Tool Calls Used: 10%, Tokens Used: 12%, Cost Used: 29%\n"
            "Remaining: 9 tool calls, 8800 tokens, 1.42 cost\n"
            "Status: NOMINAL (Continue normally)");
}

TEST(PromptBlock, says_nothing_where_there_is_nothing_to_say) {
  ManualClock clock;
  EXPECT_EQ(ExecutionBudget(clock).prompt_block(), "");
  ExecutionBudget timed(clock, {.duration = 10s});
  EXPECT_EQ(timed.prompt_block(), "");
  clock.advance(9s);
  EXPECT_EQ(timed.prompt_block(),
            "[EXECUTION BUDGET]\n"
            "Status: LOW BUDGET (Prioritize wrapping up. Provide final answer soon.)\n"
            "Advice: most of the time planned for this task has passed; save partial results, "
            "then answer.");
}

}  // namespace
}  // namespace watchdog::test
