// An agent that two sources report, and the count of wasted calls after an end in a loop.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "support/server.h"
#include "support/temp_dir.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;
using test::Server;
using test::TempDir;

json hook_of(const char* name, int number) {
  return {{"session_id", "both"},
          {"hook_event_name", name},
          {"tool_name", "Bash"},
          {"tool_input", {{"command", "make"}}},
          {"tool_use_id", "call_" + std::to_string(number)}};
}

TEST(Joined, agent_reported_by_two_sources_is_one_and_its_loop_is_found_and_kept) {
  TempDir dir;
  Server server(dir / "w.db");
  const auto hook = [&](const json& event) {
    EXPECT_EQ(server.post("/api/hooks/codex", event.dump()).status, 200);
  };
  const auto events = [&] {
    return json::parse(server.get("/api/autonomous/sessions/both/events?limit=100").body)["events"];
  };
  const auto count = [&](const char* kind) {
    int number = 0;
    for (const auto& event : events()) number += event["kind"] == kind ? 1 : 0;
    return number;
  };
  hook({{"session_id", "both"}, {"hook_event_name", "UserPromptSubmit"}, {"prompt", "build it"}});
  int found_at = 0;
  for (int i = 1; i <= 12; ++i) {
    hook(hook_of("PreToolUse", i));
    const auto id = "call_" + std::to_string(i);
    const json call{{"kind", "tool_call"},
                    {"name", "exec_command"},
                    {"call_id", id},
                    {"args", {{"cmd", "make"}, {"yield_time_ms", 60'000}}}};
    EXPECT_EQ(server.report("both", call.dump()).status, 200);
    auto done = hook_of("PostToolUse", i);
    done["tool_response"] = "make: *** No targets.  Stop.\n";
    hook(done);
    const json result{{"kind", "tool_result"},
                      {"name", "exec_command"},
                      {"call_id", id},
                      {"text", "Chunk ID: " + std::to_string(100'000 + i) +
                                   "\nWall time: 0.1 seconds\nProcess exited with code 2\n"
                                   "Output:\nmake: *** No targets.  Stop.\n"}};
    EXPECT_EQ(server.report("both", result.dump()).status, 200);
    if (found_at == 0 && server.progress("both")["health"] == "looping") found_at = i;
  }
  EXPECT_EQ(count("tool_call"), 12);
  EXPECT_EQ(count("tool_result"), 12);
  EXPECT_GT(found_at, 0);
  EXPECT_LE(found_at, 6);
  const auto all = events();
  const auto call = std::find_if(all.begin(), all.end(),
                                 [](const json& event) { return event["kind"] == "tool_call"; });
  EXPECT_EQ((*call)["name"], "Bash");
  EXPECT_EQ((*call)["also"], "exec_command");

  EXPECT_EQ(server.progress("both")["wastedCalls"], nullptr) << "it goes on";
  EXPECT_EQ(server.report("both", R"({"kind":"end","outcome":"failed","reason":"gave_up"})").status,
            200);
  EXPECT_EQ(server.progress("both")["wastedCalls"], 12);
  const auto row = [&] {
    return json::parse(server.get("/api/autonomous/sessions").body)["sessions"][0];
  };
  EXPECT_EQ(row()["wastedCalls"], 12);
  EXPECT_EQ(row()["reason"], "Gave up; 12 calls wasted in a loop");
}

}  // namespace
}  // namespace watchdog::monitor
