// A table says how each agent is addressed at each event. `nudging`, `refusing` and `cancelling`
// each write an answer from a row. An answer has no member that the row does not name, because
// agents ignore it, or reject the whole answer.
#include "ingest/hook_answer.h"

#include <algorithm>
#include <array>

#include "facts/agent_tools.h"
#include "text/json_writer.h"
#include "watchdog/reasons.h"

namespace watchdog::monitor {
namespace {

/// How an agent is addressed at one event. An agent that gets a member where it does not expect it
/// (Codex `continue: false` before a tool call) rejects the whole answer and goes on. At the end of
/// a turn nothing is added: every agent takes that for a reason to go on, and nobody asked for it.
struct Form {
  HookAgent agent;
  std::string_view event;
  bool continues_not = false;      ///< `continue: false` with `stopReason`; the agent stops by it.
  bool blocks_prompt = false;      ///< `decision: "block"` with `reason`.
  bool denies_tool = false;        ///< `hookSpecificOutput.permissionDecision: "deny"`.
  bool denies_plainly = false;     ///< `permissionDecision: "deny"`, beside the other members.
  bool permits_not = false;        ///< `permission: "deny"` with a message for each side.
  bool denies_permission = false;  ///< `hookSpecificOutput.decision.behavior: "deny"`.
  bool decides = false;            ///< `decision: "deny"` with `reason`.
  bool adds_context = false;       ///< `hookSpecificOutput.additionalContext`.
  bool adds_plainly = false;       ///< `additional_context`, beside the other members.
};

constexpr std::array forms{
    // code.claude.com/docs/en/hooks: `continue: false` stops Claude after any hook that can answer.
    Form{.agent = HookAgent::claude_code,
         .event = "UserPromptSubmit",
         .continues_not = true,
         .blocks_prompt = true,
         .adds_context = true},
    Form{.agent = HookAgent::claude_code,
         .event = "PreToolUse",
         .continues_not = true,
         .denies_tool = true,
         .adds_context = true},
    Form{.agent = HookAgent::claude_code,
         .event = "PermissionRequest",
         .continues_not = true,
         .denies_permission = true},
    Form{.agent = HookAgent::claude_code,
         .event = "PostToolUse",
         .continues_not = true,
         .adds_context = true},
    Form{.agent = HookAgent::claude_code,
         .event = "PostToolUseFailure",
         .continues_not = true,
         .adds_context = true},
    Form{.agent = HookAgent::claude_code, .event = "Stop", .continues_not = true},
    Form{.agent = HookAgent::claude_code, .event = "SubagentStop", .continues_not = true},
    // Codex 0.169.
    Form{.agent = HookAgent::codex,
         .event = "UserPromptSubmit",
         .continues_not = true,
         .adds_context = true},
    Form{.agent = HookAgent::codex,
         .event = "PreToolUse",
         .denies_tool = true,
         .adds_context = true},
    Form{.agent = HookAgent::codex, .event = "PermissionRequest", .denies_permission = true},
    Form{.agent = HookAgent::codex,
         .event = "PostToolUse",
         .continues_not = true,
         .adds_context = true},
    Form{.agent = HookAgent::codex, .event = "Stop", .continues_not = true},
    // Gemini CLI 0.61.
    Form{.agent = HookAgent::gemini_cli,
         .event = "BeforeAgent",
         .continues_not = true,
         .adds_context = true},
    Form{.agent = HookAgent::gemini_cli, .event = "BeforeModel", .continues_not = true},
    Form{.agent = HookAgent::gemini_cli, .event = "AfterModel", .continues_not = true},
    Form{.agent = HookAgent::gemini_cli,
         .event = "BeforeTool",
         .continues_not = true,
         .decides = true},
    Form{.agent = HookAgent::gemini_cli,
         .event = "AfterTool",
         .continues_not = true,
         .adds_context = true},
    Form{.agent = HookAgent::gemini_cli, .event = "AfterAgent", .continues_not = true},
    // cursor.com/docs/hooks: it takes `continue` for a prompt alone.
    Form{.agent = HookAgent::cursor, .event = "beforeSubmitPrompt", .continues_not = true},
    Form{.agent = HookAgent::cursor, .event = "preToolUse", .permits_not = true},
    Form{.agent = HookAgent::cursor, .event = "postToolUse", .adds_plainly = true},
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

/// Empty: the agent cannot be addressed at this event.
std::optional<Form> form_of(HookAgent agent, std::string_view event) {
  // opencode's plugin is ours: whatever the event, it aborts the session, and the event
  // `session.idle` says that it did.
  if (agent == HookAgent::opencode)
    return Form{.agent = agent, .event = event, .continues_not = true};
  const auto* row = std::ranges::find_if(
      forms, [&](const Form& form) { return form.agent == agent && form.event == event; });
  return row == forms.end() ? std::nullopt : std::optional(*row);
}

/// One call is denied for the reason `why`; `for_user`: the same for the person in front of it.
void write_denial(JsonWriter& out, const Form& form, std::string_view why,
                  std::string_view for_user) {
  if (form.denies_plainly)
    out.field("permissionDecision", "deny").field("permissionDecisionReason", why);
  if (form.permits_not)
    out.field("permission", "deny").field("user_message", for_user).field("agent_message", why);
  if (!form.denies_tool) return;
  out.key("hookSpecificOutput").open_object().field("hookEventName", form.event);
  out.field("permissionDecision", "deny").field("permissionDecisionReason", why).close_object();
}

HookAnswer nudging(const Form& form, std::string_view sentence) {
  if (!form.adds_context && !form.adds_plainly) return {};
  JsonWriter out;
  out.open_object();
  if (form.adds_plainly) out.field("additional_context", sentence);
  if (form.adds_context) {
    out.key("hookSpecificOutput").open_object().field("hookEventName", form.event);
    out.field("additionalContext", sentence).close_object();
  }
  out.close_object();
  return {.body = out.finish()};
}

HookAnswer refusing(const Form& form, std::string_view sentence) {
  const bool denies = form.denies_tool || form.denies_plainly || form.permits_not || form.decides;
  if (!denies || !is_before_call(form.event)) return {};
  JsonWriter out;
  out.open_object();
  if (form.decides) out.field("decision", "deny").field("reason", sentence);
  write_denial(out, form, sentence, sentence);
  out.close_object();
  return {.body = out.finish(), .denies = true};
}

HookAnswer cancelling(const Form& form, std::string_view sentence) {
  JsonWriter out;
  out.open_object();
  if (form.continues_not) out.field("continue", false).field("stopReason", sentence);
  if (form.blocks_prompt) out.field("decision", "block").field("reason", sentence);
  const auto refusal =
      std::string(sentence) + ". Every further call of this session is denied: stop.";
  write_denial(out, form, refusal, sentence);
  if (form.denies_permission) {
    out.key("hookSpecificOutput").open_object().field("hookEventName", form.event);
    out.key("decision").open_object().field("behavior", "deny").field("message", refusal);
    out.close_object().close_object();
  }
  out.close_object();
  return {.body = out.finish(),
          .denies = is_before_call(form.event),
          .stops = form.continues_not && form.agent != HookAgent::opencode};
}

}  // namespace

std::string cancel_sentence(const CancelRequest& cancel) {
  return "cancelled by " + cancel.by + (cancel.reason.empty() ? "" : ": " + cancel.reason);
}

HookAct::HookAct(const CancelRequest& cancel)
    : step(RecoveryStep::cancel), sentence(cancel_sentence(cancel)) {}

HookAnswer hook_answer(HookAgent agent, std::string_view event, const std::optional<HookAct>& act) {
  if (!act) return {};
  const auto form = form_of(agent, event);
  if (!form) return {};
  switch (act->step) {
    case RecoveryStep::nudge:
      return nudging(*form, act->sentence);
    case RecoveryStep::refuse:
      return refusing(*form, act->sentence);
    case RecoveryStep::cancel:
      return cancelling(*form, act->sentence);
    case RecoveryStep::end_call:
    case RecoveryStep::command:
      break;  // these need no hook
  }
  return {};
}

bool takes(HookAgent agent, RecoveryStep step) {
  if (agent == HookAgent::opencode) return step == RecoveryStep::cancel;
  return std::ranges::any_of(forms, [&](const Form& row) {
    return row.agent == agent && hook_answer(agent, row.event, HookAct(step, "x")).body != "{}";
  });
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
