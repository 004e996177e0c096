/// \file
/// What each event of a hook means, whichever agent sent it, and the tools by which agents ask a
/// person.
#pragma once

#include <cstdint>
#include <string_view>

#include "watchdog/report.h"

namespace watchdog::monitor::hook_table {

/// The meaning of an event.
enum class Meaning : std::uint8_t {
  nothing,  ///< too many of them, and nothing that others do not say
  begin,
  prompt,
  call,
  result,
  failure,
  wait,
  notice,
  answered,        ///< what was waited for has come
  status,          ///< of opencode: idle, busy or retry
  part,            ///< of opencode: a piece of a message; only this reports a tool call that failed
  request,         ///< of Gemini CLI: what its model is asked; a compression is seen only here
  model_part,      ///< of Gemini CLI: a piece of what its model says
  answer,          ///< the text of an answer
  stop,            ///< the answer is complete
  stop_by_status,  ///< of Cursor: the turn is over, and `status` is how
  rest,            ///< the agent is at rest, and says so more than once
  stop_error,      ///< there will be none
  interrupt,       ///< a person stopped the turn
  sub_begin,
  sub_end,
  task_done,
  compact,
  finish,
  other  ///< kept as a message
};

struct Row {
  std::string_view name;
  Meaning meaning;
};

/// Every event that says more than its name. No name means two things with two agents.
inline constexpr Row rows[] = {
    // Claude Code, and Codex, which took its names over
    {"SessionStart", Meaning::begin},
    {"UserPromptSubmit", Meaning::prompt},
    {"PreToolUse", Meaning::call},
    {"PostToolUse", Meaning::result},
    {"PostToolUseFailure", Meaning::failure},
    {"PermissionRequest", Meaning::wait},
    {"PermissionDenied", Meaning::failure},
    {"Elicitation", Meaning::wait},
    {"ElicitationResult", Meaning::prompt},
    {"Notification", Meaning::notice},
    {"Stop", Meaning::stop},
    {"StopFailure", Meaning::stop_error},
    {"SubagentStart", Meaning::sub_begin},
    {"SubagentStop", Meaning::sub_end},
    {"TaskCompleted", Meaning::task_done},
    {"TeammateIdle", Meaning::rest},
    {"PreCompact", Meaning::compact},
    {"SessionEnd", Meaning::finish},
    // Codex alone
    {"Interrupt", Meaning::interrupt},
    // and its `notify` program
    {"agent-turn-complete", Meaning::stop},
    // Gemini CLI
    {"BeforeAgent", Meaning::prompt},
    {"AfterAgent", Meaning::stop},
    {"BeforeTool", Meaning::call},
    {"AfterTool", Meaning::result},
    {"PreCompress", Meaning::nothing},  // comes before every model call
    {"BeforeModel", Meaning::request},
    {"AfterModel", Meaning::model_part},
    {"BeforeToolSelection", Meaning::nothing},
    // opencode: the events of its plugins, `{"type", "properties"}`
    {"session.created", Meaning::begin},
    {"chat.message", Meaning::prompt},
    {"tool.execute.before", Meaning::call},
    {"tool.execute.after", Meaning::result},
    {"permission.updated", Meaning::wait},
    {"permission.asked", Meaning::wait},
    {"permission.v2.asked", Meaning::wait},
    {"permission.replied", Meaning::answered},
    {"permission.v2.replied", Meaning::answered},
    {"question.asked", Meaning::wait},
    {"question.replied", Meaning::answered},
    {"question.rejected", Meaning::answered},
    {"session.status", Meaning::status},
    {"session.idle", Meaning::rest},
    {"session.error", Meaning::stop_error},
    {"session.compacted", Meaning::compact},
    {"session.deleted", Meaning::finish},
    {"message.part.updated", Meaning::part},
    // Cursor (cursor.com/docs/agent/hooks). Its events of shells, files and MCP repeat those of its
    // tools.
    {"sessionStart", Meaning::begin},
    {"beforeSubmitPrompt", Meaning::prompt},
    {"preToolUse", Meaning::call},
    {"postToolUse", Meaning::result},
    {"postToolUseFailure", Meaning::failure},
    {"afterAgentResponse", Meaning::answer},
    {"stop", Meaning::stop_by_status},
    {"subagentStart", Meaning::sub_begin},
    {"subagentStop", Meaning::sub_end},
    {"preCompact", Meaning::compact},
    {"sessionEnd", Meaning::finish},
    // GitHub Copilot CLI alone (docs.github.com, CLI hooks reference); its other events have the
    // names of Claude Code's.
    {"ErrorOccurred", Meaning::stop_error},
    // Comes before each call, also of a run that may use all tools: `Notification` says that a
    // person is asked.
    {"permissionRequest", Meaning::nothing},
    // Any other agent
    {"session_start", Meaning::begin},
    {"prompt", Meaning::prompt},
    {"tool_call", Meaning::call},
    {"tool_result", Meaning::result},
    {"tool_error", Meaning::failure},
    {"permission", Meaning::wait},
    {"question", Meaning::wait},
    {"answered", Meaning::answered},
    {"turn_end", Meaning::stop},
    {"turn_failed", Meaning::stop_error},
    {"interrupted", Meaning::interrupt},
    {"session_end", Meaning::finish},
};

/// Tools by which an agent asks a person, and what for.
struct Asking {
  std::string_view tool;
  std::string_view waits_for;
};
inline constexpr Asking asking_tools[] = {
    {"AskUserQuestion", wait_reports::input},     // Claude Code
    {"ExitPlanMode", wait_reports::approval},     // Claude Code: its plan is to be approved
    {"request_user_input", wait_reports::input},  // Codex
    {"ask_user", wait_reports::input},            // Gemini CLI
    {"exit_plan_mode", wait_reports::approval},   // Gemini CLI
    {"question", wait_reports::input},            // opencode
    {"plan_exit", wait_reports::approval},        // opencode
};

}  // namespace watchdog::monitor::hook_table
