#include "ingest/hook_answer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace watchdog::monitor {
namespace {

using nlohmann::json;

constexpr auto every_agent = {HookAgent::claude_code, HookAgent::codex,  HookAgent::gemini_cli,
                              HookAgent::opencode,    HookAgent::cursor, HookAgent::copilot_cli,
                              HookAgent::generic};
constexpr auto every_step = {RecoveryStep::nudge, RecoveryStep::refuse, RecoveryStep::cancel};
const std::string said = "the last 6 calls gave the same result.";

json answer(HookAgent agent, std::string_view event, RecoveryStep step) {
  return json::parse(hook_answer(agent, event, HookAct(step, said)).body);
}

/// Every event that an agent's hooks report, and one that none does.
const std::set<std::string> every_event{"SessionStart",
                                        "UserPromptSubmit",
                                        "PreToolUse",
                                        "PostToolUse",
                                        "PostToolUseFailure",
                                        "PermissionRequest",
                                        "PermissionDenied",
                                        "Notification",
                                        "Stop",
                                        "StopFailure",
                                        "SubagentStart",
                                        "SubagentStop",
                                        "PreCompact",
                                        "SessionEnd",
                                        "Interrupt",
                                        "ErrorOccurred",
                                        "BeforeAgent",
                                        "AfterAgent",
                                        "BeforeTool",
                                        "AfterTool",
                                        "BeforeModel",
                                        "AfterModel",
                                        "tool.execute.before",
                                        "tool.execute.after",
                                        "session.idle",
                                        "beforeSubmitPrompt",
                                        "preToolUse",
                                        "postToolUse",
                                        "postToolUseFailure",
                                        "afterAgentResponse",
                                        "beforeShellExecution",
                                        "stop",
                                        "subagentStop",
                                        "tool_call",
                                        "tool_result",
                                        "turn_end",
                                        "nobody's"};

using Key = std::pair<HookAgent, std::string>;

json context(const std::string& event) {
  return {{"hookSpecificOutput", {{"hookEventName", event}, {"additionalContext", said}}}};
}

json denial(const std::string& event) {
  return {{"hookSpecificOutput",
           {{"hookEventName", event},
            {"permissionDecision", "deny"},
            {"permissionDecisionReason", said}}}};
}

TEST(HookActs, an_agent_reads_a_nudge_only_within_a_turn_and_in_its_own_form) {
  std::map<Key, json> wanted;
  for (const auto* event : {"UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure"})
    wanted[{HookAgent::claude_code, event}] = context(event);
  for (const auto* event : {"UserPromptSubmit", "PreToolUse", "PostToolUse"})
    wanted[{HookAgent::codex, event}] = context(event);
  for (const auto* event : {"BeforeAgent", "AfterTool"})
    wanted[{HookAgent::gemini_cli, event}] = context(event);
  wanted[{HookAgent::cursor, "postToolUse"}] = {{"additional_context", said}};
  for (const auto agent : every_agent) {
    for (const auto& event : every_event) {
      const auto found = wanted.find({agent, event});
      EXPECT_EQ(answer(agent, event, RecoveryStep::nudge),
                found == wanted.end() ? json::object() : found->second)
          << name_of(agent) << " " << event;
    }
  }
}

TEST(HookActs, a_call_is_refused_only_before_it_runs) {
  const json plainly{{"permissionDecision", "deny"}, {"permissionDecisionReason", said}};
  const json for_cursor{{"permission", "deny"}, {"user_message", said}, {"agent_message", said}};
  const std::map<Key, json> wanted{
      {{HookAgent::claude_code, "PreToolUse"}, denial("PreToolUse")},
      {{HookAgent::codex, "PreToolUse"}, denial("PreToolUse")},
      {{HookAgent::gemini_cli, "BeforeTool"}, {{"decision", "deny"}, {"reason", said}}},
      {{HookAgent::cursor, "preToolUse"}, for_cursor},
      {{HookAgent::copilot_cli, "PreToolUse"}, plainly},
      {{HookAgent::generic, "tool_call"}, plainly}};
  for (const auto agent : every_agent) {
    for (const auto& event : every_event) {
      const auto found = wanted.find({agent, event});
      const auto done = hook_answer(agent, event, HookAct(RecoveryStep::refuse, said));
      EXPECT_EQ(json::parse(done.body), found == wanted.end() ? json::object() : found->second)
          << name_of(agent) << " " << event;
      EXPECT_EQ(done.denies, found != wanted.end()) << name_of(agent) << " " << event;
      EXPECT_FALSE(done.stops) << "a refused call ends no turn";
    }
  }
}

TEST(HookActs, an_agent_takes_an_act_if_one_of_its_events_has_the_form) {
  for (const auto agent : every_agent) {
    for (const auto step : every_step) {
      const bool somewhere = std::ranges::any_of(
          every_event, [&](const auto& event) { return !answer(agent, event, step).empty(); });
      EXPECT_EQ(takes(agent, step), somewhere) << name_of(agent) << " " << name_of(step);
    }
  }
}

/// The names of an answer's members.
std::set<std::string> members(const json& answer) {
  std::set<std::string> names;
  for (const auto& [name, value] : answer.items()) names.insert(name);
  return names;
}

TEST(HookActs, codex_gets_no_member_that_voids_the_answer) {
  const std::set<std::string> at_stop{"continue", "stopReason", "decision", "reason"};
  const std::set<std::string> after_call{"continue", "stopReason", "hookSpecificOutput"};
  for (const auto step : every_step) {
    for (const auto* event : {"Stop", "SubagentStop"}) {
      const auto names = members(answer(HookAgent::codex, event, step));
      EXPECT_TRUE(std::ranges::includes(at_stop, names)) << event << " " << name_of(step);
    }
    // Before a call it takes the one object alone.
    EXPECT_EQ(members(answer(HookAgent::codex, "PreToolUse", step)),
              std::set<std::string>{"hookSpecificOutput"});
    EXPECT_TRUE(
        std::ranges::includes(after_call, members(answer(HookAgent::codex, "PostToolUse", step))));
  }
}

TEST(HookActs, at_the_end_of_a_turn_no_rule_makes_an_agent_go_on) {
  for (const auto agent : every_agent) {
    for (const auto* event : {"Stop", "SubagentStop", "AfterAgent", "stop", "subagentStop",
                              "session.idle", "turn_end"}) {
      for (const auto step : {RecoveryStep::nudge, RecoveryStep::refuse})
        EXPECT_EQ(answer(agent, event, step), json::object()) << name_of(agent) << " " << event;
      EXPECT_NE(answer(agent, event, RecoveryStep::cancel).value("decision", ""), "block");
    }
  }
}

}  // namespace
}  // namespace watchdog::monitor
