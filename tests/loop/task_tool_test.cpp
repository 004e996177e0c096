#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "watchdog/tool_runner.h"

namespace watchdog::test {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

TEST(TaskTool, is_defined_with_its_ranges_and_types_of_agents) {
  const auto tool = json::parse(task_tool_definition({}));
  EXPECT_EQ(tool["type"], "function");
  const auto& function = tool["function"];
  EXPECT_EQ(function["name"], "task");
  const auto& parameters = function["parameters"];
  EXPECT_EQ(parameters["required"], json({"prompt", "agent_type"}));
  const auto& fields = parameters["properties"];
  EXPECT_EQ(fields.size(), 4U);
  EXPECT_EQ(fields["agent_type"]["enum"], json({"explore", "plan"}));
  EXPECT_EQ(fields["timeout_seconds"]["minimum"], 30);
  EXPECT_EQ(fields["timeout_seconds"]["maximum"], 3600);
  EXPECT_EQ(fields["max_steps"]["minimum"], 5);
  EXPECT_EQ(fields["max_steps"]["maximum"], 200);
}

TEST(TaskTool, reports_the_model_how_budgets_work) {
  const auto described = [](const TaskToolSettings& settings) {
    return json::parse(task_tool_definition(settings))["function"]["description"]
        .get<std::string>();
  };
  TaskToolSettings settings;
  EXPECT_NE(described(settings).find("explore (30 steps, 300 seconds)"), std::string::npos);
  EXPECT_NE(described(settings).find("plan (50 steps, 600 seconds)"), std::string::npos);
  EXPECT_NE(described(settings).find("but not cut off"), std::string::npos);
  settings.thresholds.enforce_time = true;
  EXPECT_EQ(described(settings).find("but not cut off"), std::string::npos);
  settings.agents = {{"odd \"one\"", {}}};
  EXPECT_NE(described(settings).find("odd \"one\" (600 seconds)"), std::string::npos);
}

TEST(TaskTool, fills_in_what_the_model_left_out) {
  const auto task = parse_task(R"({"prompt":"look","agent_type":"explore"})", {});
  ASSERT_TRUE(task.ok());
  EXPECT_EQ(task->prompt, "look");
  EXPECT_EQ(task->limits.steps, 30);
  EXPECT_EQ(task->limits.timeout, 300s);
  const auto chosen = parse_task(
      R"({"prompt":"look","agent_type":"plan","timeout_seconds":3600,"max_steps":5})", {});
  EXPECT_EQ(chosen->limits.steps, 5);
  EXPECT_EQ(chosen->limits.timeout, 1h);
  const auto null = parse_task(
      R"({"prompt":"look","agent_type":"plan","timeout_seconds":null,"max_steps":null})", {});
  EXPECT_EQ(null->limits.timeout, 600s);
}

TEST(TaskTool, takes_any_positive_limit_from_its_owner) {
  const TaskToolSettings settings{.default_timeout = 5s, .agents = {{"quick", {.steps = 2}}}};
  const auto task = parse_task(R"({"prompt":"x","agent_type":"quick"})", settings);
  ASSERT_TRUE(task.ok());
  EXPECT_EQ(task->limits.steps, 2);
  EXPECT_EQ(task->limits.timeout, 5s);
}

TEST(TaskTool, names_what_is_wrong_and_the_range) {
  struct Row {
    const char* arguments;
    ErrorCode code;
    const char* field;
    const char* message;
  };
  for (const auto& row : {
           Row{"{", ErrorCode::malformed, "", "this is not JSON"},
           Row{"[]", ErrorCode::malformed, "", "a JSON object is needed"},
           Row{R"({"agent_type":"plan"})", ErrorCode::malformed, "prompt", "prompt is missing"},
           Row{R"({"prompt":"","agent_type":"plan"})", ErrorCode::malformed, "prompt", "empty"},
           Row{R"({"prompt":"x"})", ErrorCode::malformed, "agent_type", "agent_type is missing"},
           Row{R"({"prompt":"x","agent_type":"cook"})", ErrorCode::invalid, "agent_type",
               "is \"cook\"; it must be one of explore, plan"},
           Row{R"({"prompt":"x","agent_type":"plan","timeout_seconds":29})", ErrorCode::invalid,
               "timeout_seconds", "timeout_seconds is 29; it must be from 30 to 3600"},
           Row{R"({"prompt":"x","agent_type":"plan","timeout_seconds":3601})", ErrorCode::invalid,
               "timeout_seconds", "is 3601"},
           Row{R"({"prompt":"x","agent_type":"plan","timeout_seconds":"60"})", ErrorCode::malformed,
               "timeout_seconds", "must be an integer"},
           Row{R"({"prompt":"x","agent_type":"plan","max_steps":4})", ErrorCode::invalid,
               "max_steps", "max_steps is 4; it must be from 5 to 200"},
           Row{R"({"prompt":"x","agent_type":"plan","max_steps":201})", ErrorCode::invalid,
               "max_steps", "is 201"},
           Row{R"({"prompt":"x","agent_type":"plan","max_steps":7.5})", ErrorCode::malformed,
               "max_steps", "must be an integer"},
       }) {
    const auto task = parse_task(row.arguments, {});
    ASSERT_FALSE(task.ok()) << row.arguments;
    EXPECT_EQ(task.error().code, row.code) << row.arguments;
    EXPECT_EQ(task.error().field, row.field) << row.arguments;
    EXPECT_NE(task.error().message.find(row.message), std::string::npos) << task.error().message;
  }
}

}  // namespace
}  // namespace watchdog::test
