#include "ingest/hook_answer.h"

#include <algorithm>
#include <array>

#include "facts/agent_tools.h"
#include "text/json_writer.h"
#include "watchdog/reasons.h"

namespace watchdog::monitor {
namespace {

/// How an agent must be asked at one event to stop. An agent that gets `continue: false` where it
/// does not expect it (Codex before a tool call) rejects the whole answer and goes on.
struct Form {
  HookAgent agent;
  std::string_view event;
  bool continues_not = false;      ///< `continue: false` with `stopReason`; the agent stops by it.
  bool blocks_prompt = false;      ///< `decision: "block"` with `reason`.
  bool denies_tool = false;        ///< `hookSpecificOutput.permissionDecision: "deny"`.
  bool denies_plainly = false;     ///< `permissionDecision: "deny"`, beside the other members.
  bool permits_not = false;        ///< `permission: "deny"` with a message for each side.
  bool denies_permission = false;  ///< `hookSpecificOutput.decision.behavior: "deny"`.
};

constexpr std::array forms{
    // code.claude.com/docs/en/hooks: `continue: false` stops Claude after any hook that can answer.
    Form{.agent = HookAgent::claude_code,
         .event = "UserPromptSubmit",
         .continues_not = true,
         .blocks_prompt = true},
    Form{.agent = HookAgent::claude_code,
         .event = "PreToolUse",
         .continues_not = true,
         .denies_tool = true},
    Form{.agent = HookAgent::claude_code,
         .event = "PermissionRequest",
         .continues_not = true,
         .denies_permission = true},
    Form{.agent = HookAgent::claude_code, .event = "PostToolUse", .continues_not = true},
    Form{.agent = HookAgent::claude_code, .event = "PostToolUseFailure", .continues_not = true},
    Form{.agent = HookAgent::claude_code, .event = "Stop", .continues_not = true},
    Form{.agent = HookAgent::claude_code, .event = "SubagentStop", .continues_not = true},
    // Codex 0.169.
    Form{.agent = HookAgent::codex, .event = "UserPromptSubmit", .continues_not = true},
    Form{.agent = HookAgent::codex, .event = "PreToolUse", .denies_tool = true},
    Form{.agent = HookAgent::codex, .event = "PermissionRequest", .denies_permission = true},
    Form{.agent = HookAgent::codex, .event = "PostToolUse", .continues_not = true},
    Form{.agent = HookAgent::codex, .event = "Stop", .continues_not = true},
    // Gemini CLI 0.61.
    Form{.agent = HookAgent::gemini_cli, .event = "BeforeAgent", .continues_not = true},
    Form{.agent = HookAgent::gemini_cli, .event = "BeforeModel", .continues_not = true},
    Form{.agent = HookAgent::gemini_cli, .event = "AfterModel", .continues_not = true},
    Form{.agent = HookAgent::gemini_cli, .event = "BeforeTool", .continues_not = true},
    Form{.agent = HookAgent::gemini_cli, .event = "AfterTool", .continues_not = true},
    Form{.agent = HookAgent::gemini_cli, .event = "AfterAgent", .continues_not = true},
    // cursor.com/docs/hooks: it takes `continue` for a prompt alone.
    Form{.agent = HookAgent::cursor, .event = "beforeSubmitPrompt", .continues_not = true},
    Form{.agent = HookAgent::cursor, .event = "preToolUse", .permits_not = true},
    Form{.agent = HookAgent::cursor, .event = "beforeShellExecution", .permits_not = true},
    Form{.agent = HookAgent::cursor, .event = "beforeMCPExecution", .permits_not = true},
    Form{.agent = HookAgent::cursor, .event = "beforeReadFile", .permits_not = true},
    Form{.agent = HookAgent::copilot_cli, .event = "PreToolUse", .denies_plainly = true},
    Form{.agent = HookAgent::generic, .event = "prompt", .continues_not = true},
    Form{.agent = HookAgent::generic,
         .event = "tool_call",
         .continues_not = true,
         .denies_plainly = true},
};

/// Before which a tool call has not run.
constexpr bool is_before_call(std::string_view event) {
  return event == "PreToolUse" || event == "preToolUse" || event == "BeforeTool" ||
         event == "tool_call" || event == "PermissionRequest" || event == "tool.execute.before";
}

}  // namespace

std::string cancel_sentence(const CancelRequest& cancel) {
  return "cancelled by " + cancel.by + (cancel.reason.empty() ? "" : ": " + cancel.reason);
}

HookAnswer hook_answer(HookAgent agent, std::string_view event,
                       const std::optional<CancelRequest>& cancel) {
  if (!cancel) return {};
  const auto sentence = cancel_sentence(*cancel);
  // opencode's plugin is ours: whatever the event, it aborts the session, and the event
  // `session.idle` says that it did.
  const bool is_plugin = agent == HookAgent::opencode;
  const auto* form = std::ranges::find_if(
      forms, [&](const Form& row) { return row.agent == agent && row.event == event; });
  if (form == forms.end() && !is_plugin) return {};
  const Form what = is_plugin ? Form{.agent = agent, .event = event, .continues_not = true} : *form;

  JsonWriter out;
  out.open_object();
  if (what.continues_not) out.field("continue", false).field("stopReason", sentence);
  if (what.blocks_prompt) out.field("decision", "block").field("reason", sentence);
  const auto refusal = sentence + ". Every further call of this session is denied: stop.";
  if (what.denies_plainly)
    out.field("permissionDecision", "deny").field("permissionDecisionReason", refusal);
  if (what.permits_not)
    out.field("permission", "deny").field("user_message", sentence).field("agent_message", refusal);
  if (what.denies_tool || what.denies_permission) {
    out.key("hookSpecificOutput").open_object().field("hookEventName", event);
    if (what.denies_tool) {
      out.field("permissionDecision", "deny").field("permissionDecisionReason", refusal);
    } else {
      out.key("decision").open_object().field("behavior", "deny").field("message", refusal);
      out.close_object();
    }
    out.close_object();
  }
  out.close_object();
  return {.body = out.finish(),
          .denies = is_before_call(event),
          .stops = what.continues_not && !is_plugin};
}

Report cancelled_end(const CancelRequest& cancel) {
  Report end;
  end.kind = ReportKind::end;
  end.detail = Outcome{.kind = OutcomeKind::cancelled,
                       .reason = std::string(reasons::cancelled),
                       .error = cancel.reason,
                       .subject = cancel.by};
  return end;
}

std::vector<Report> reports_after(const HookAnswer& answer, const HookEvent& event,
                                  const CancelRequest& cancel) {
  std::vector<Report> reports;
  for (const auto& report : event.reports) {
    if (!answer.denies || report.kind != ReportKind::tool_call) continue;
    Report& denied = reports.emplace_back();
    denied.kind = ReportKind::error;
    denied.name = report.name;
    denied.call_id = report.call_id;
    denied.content = std::string(denied_call) + " " + cancel_sentence(cancel);
    if (!report.event_id.empty()) denied.event_id = std::string(denied_call) + report.event_id;
  }
  const bool rests = std::ranges::any_of(
      event.reports, [](const Report& report) { return report.kind == ReportKind::idle; });
  if (answer.stops || rests) reports.push_back(cancelled_end(cancel));
  return reports;
}

}  // namespace watchdog::monitor
