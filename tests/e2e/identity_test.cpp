// An id of a turn or a subagent names a thing, not an event: it may begin and end again.
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "support/scenario.h"
#include "support/server.h"
#include "support/temp_dir.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;
using test::Server;
using test::TempDir;

/// Hooks of an agent, with what they must come to.
class Hooks {
 public:
  Hooks(Server& server, std::string agent, std::string session)
      : server_(server), agent_(std::move(agent)), session_(std::move(session)) {}

  void say(json event) {
    event["session_id"] = session_;
    ASSERT_EQ(server_.post("/api/hooks/" + agent_, event.dump()).status, 200) << event;
  }
  [[nodiscard]] std::string lifecycle(const std::string& subagent = {}) const {
    return server_.progress(subagent.empty() ? session_ : session_ + ":" + subagent)["lifecycle"];
  }
  [[nodiscard]] int count(const char* kind, const std::string& subagent = {}) const {
    const auto id = subagent.empty() ? session_ : session_ + ":" + subagent;
    const auto body = server_.get("/api/autonomous/sessions/" + id + "/events?limit=1000").body;
    int number = 0;
    const auto page = json::parse(body);
    for (const auto& event : page["events"]) number += event["kind"] == kind ? 1 : 0;
    return number;
  }

 private:
  Server& server_;
  std::string agent_;
  std::string session_;
};

json named(const char* event, json more = json::object()) {
  more["hook_event_name"] = event;
  return more;
}

TEST(Identity, any_order_of_starts_calls_and_ends_of_subagents_is_what_came_last) {
  const auto seed = test::random_seed();
  SCOPED_TRACE("WATCHDOG_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  TempDir dir;
  Server server(dir / "w.db");
  for (int run = 0; run < test::repetitions(60); ++run) {
    Hooks hooks(server, "claude-code", "run" + std::to_string(run));
    hooks.say(named("SessionStart"));
    hooks.say(named("UserPromptSubmit", {{"prompt", "go"}}));
    struct Child {
      bool is_known = false;
      bool runs = false;
      int calls = 0;
    };
    std::array<Child, 3> children;
    for (int step = 0; step < 20; ++step) {
      const auto at = random() % children.size();
      auto& child = children[at];
      json more{{"agent_id", "a" + std::to_string(at)}, {"agent_type", "general"}};
      const auto what = random() % 4;
      // A hook that two files have comes twice at once.
      const auto times = 1 + random() % 2;
      if (what == 0) {
        for (std::size_t time = 0; time < times; ++time) hooks.say(named("SubagentStart", more));
        child.runs = true;
      } else if (what == 1) {
        for (std::size_t time = 0; time < times; ++time) hooks.say(named("SubagentStop", more));
        child.runs = false;
      } else {
        more["tool_name"] = "Bash";
        more["tool_use_id"] = "call_" + std::to_string(at) + "_" + std::to_string(child.calls++);
        more["tool_input"] = {{"command", "step " + std::to_string(step)}};
        for (std::size_t time = 0; time < times; ++time) hooks.say(named("PreToolUse", more));
        more["tool_response"] = "done " + std::to_string(step);
        for (std::size_t time = 0; time < times; ++time) hooks.say(named("PostToolUse", more));
        child.runs = true;
      }
      child.is_known = true;
    }
    hooks.say(named("Stop", {{"last_assistant_message", "Done."}}));
    bool one_runs = false;
    for (std::size_t at = 0; at < children.size(); ++at) {
      if (!children[at].is_known) continue;
      const auto id = "a" + std::to_string(at);
      EXPECT_EQ(hooks.lifecycle(id), children[at].runs ? "running" : "completed")
          << "run " << run << ", " << id;
      EXPECT_EQ(hooks.count("tool_call", id), children[at].calls) << "run " << run << ", " << id;
      EXPECT_EQ(hooks.count("tool_result", id), children[at].calls) << "run " << run << ", " << id;
      one_runs = one_runs || children[at].runs;
    }
    EXPECT_EQ(hooks.lifecycle(), one_runs ? "waiting" : "idle") << "run " << run;
  }
}

TEST(Identity, a_turn_that_is_asked_to_go_on_ends_again) {
  TempDir dir;
  Server server(dir / "w.db");
  Hooks hooks(server, "codex", "turns");
  const json turn{{"turn_id", "t1"}};
  const auto with = [&](const char* event, json more) {
    more.update(turn);
    return named(event, std::move(more));
  };
  const auto call = [&](const std::string& id) {
    hooks.say(with("PreToolUse", {{"tool_name", "Bash"}, {"tool_use_id", id}, {"tool_input", id}}));
    hooks.say(with("PostToolUse",
                   {{"tool_name", "Bash"}, {"tool_use_id", id}, {"tool_response", "ok " + id}}));
  };
  hooks.say(with("UserPromptSubmit", {{"prompt", "mend it"}}));
  call("c1");
  hooks.say(with("Stop", {{"last_assistant_message", "Mended."}}));
  EXPECT_EQ(hooks.lifecycle(), "idle");
  call("c2");  // another hook blocked the stop
  EXPECT_EQ(hooks.lifecycle(), "running");
  for (int twice = 0; twice < 2; ++twice)
    hooks.say(with("Stop", {{"last_assistant_message", "The tests pass, too."}}));
  EXPECT_EQ(hooks.lifecycle(), "idle");
  EXPECT_EQ(hooks.count("idle"), 2);
  EXPECT_EQ(hooks.count("message"), 2);
  // A person steers the turn while it runs.
  call("c3");
  hooks.say(with("UserPromptSubmit", {{"prompt", "and the docs"}}));
  EXPECT_EQ(hooks.count("user_input"), 2);
}

TEST(Identity, ids_of_calls_that_a_server_uses_again_are_other_calls) {
  TempDir dir;
  Server server(dir / "w.db");
  Hooks hooks(server, "opencode", "ids");
  for (int at = 1; at <= 3; ++at) {
    json call{{"tool_name", "bash"},
              {"tool_use_id", "call_0"},
              {"tool_input", {{"command", "step " + std::to_string(at)}}}};
    for (int twice = 0; twice < 2; ++twice) hooks.say(named("PreToolUse", call));
    call["tool_response"] = "done " + std::to_string(at);
    for (int twice = 0; twice < 2; ++twice) hooks.say(named("PostToolUse", call));
  }
  EXPECT_EQ(hooks.count("tool_call"), 3);
  EXPECT_EQ(hooks.count("tool_result"), 3);
}

TEST(Identity, events_of_one_moment_are_as_many_as_came) {
  TempDir dir;
  Server server(dir / "w.db");
  Hooks hooks(server, "gemini-cli", "moment");
  for (const char* command : {"ls", "pwd", "ls"})  // the last one is the first one again
    hooks.say(named("BeforeTool", {{"tool_name", "run_shell_command"},
                                   {"tool_input", {{"command", command}}},
                                   {"timestamp", "2026-05-04T10:00:00.000Z"}}));
  EXPECT_EQ(hooks.count("tool_call"), 2);
}

TEST(Identity, a_person_who_ends_an_agent_in_its_work_needs_no_alert) {
  TempDir dir;
  Server server(dir / "w.db");
  const auto end = [&](const std::string& session, const char* agent, const char* event,
                       const char* reason) {
    Hooks hooks(server, agent, session);
    hooks.say(named(event[0] == 'S' ? "SessionStart" : "sessionStart"));
    hooks.say(named(event[0] == 'S' ? "UserPromptSubmit" : "beforeSubmitPrompt",
                    {{"prompt", "count to a million"}}));
    hooks.say(named(event, {{"reason", reason}}));
    return server.progress(session);
  };
  int number = 0;
  for (const auto* reason : {"clear", "logout", "prompt_input_exit", "resume"}) {
    const auto shown = end("c" + std::to_string(++number), "claude-code", "SessionEnd", reason);
    EXPECT_EQ(shown["lifecycle"], "cancelled") << reason;
    EXPECT_EQ(shown["attention"], "resting") << reason;
  }
  EXPECT_EQ(end("g", "gemini-cli", "SessionEnd", "logout")["attention"], "resting");
  EXPECT_EQ(end("p", "copilot-cli", "SessionEnd", "user_exit")["attention"], "resting");
  EXPECT_EQ(end("u", "cursor", "sessionEnd", "user_close")["attention"], "resting");
  EXPECT_EQ(end("o", "claude-code", "SessionEnd", "other")["lifecycle"], "incomplete")
      << "nobody knows why it ended";
  EXPECT_EQ(end("e", "gemini-cli", "SessionEnd", "exit")["lifecycle"], "incomplete")
      << "each end of a process of Gemini CLI has this reason";
  EXPECT_EQ(json::parse(server.get("/api/alerts").body)["alerts"].size(), 2U);
}

}  // namespace
}  // namespace watchdog::monitor
