#include "mcp/proxy/proxied_call.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "mcp/peer.h"
#include "text/utf8.h"
#include "watchdog/tool_outcome.h"

namespace watchdog::monitor::mcp {
namespace {

/// An event has at most 1 MiB.
constexpr std::size_t content_bytes_max = 256 * 1024;

std::string cut(std::string text) {
  if (text.size() <= content_bytes_max) return text;
  text.resize(content_bytes_max);
  drop_half_character(text);
  return text;
}

/// A value between this one and any that a server is likely to send next.
double value_above(double value) {
  return value + std::max(std::abs(value), 1.0) * 1e-6;
}

std::string dumped(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string rendered(const std::string& tool, ToolOutcome outcome, CallReport report = {}) {
  report.call.tool = tool;
  report.began = true;
  report.outcome = std::move(outcome);
  return render_for_model(report);
}

}  // namespace

ProxiedCall::ProxiedCall(const Envelope& request, std::optional<Millis> idle_max, Instant now)
    : id(request.id),
      tool(text_in(request.params, "name")),
      meta(request.meta()),
      owner(owner_in(meta)),
      call_id(call_id_in(meta)),
      is_modern(!text_in(meta, meta_version).empty()),
      idle(idle_max),
      begun(now),
      movement({.idle = idle_max}, now),
      sent_at(now),
      reported_at(now) {
  const auto& extensions = member(member(meta, meta_capabilities), "extensions");
  supports_tasks = is_modern && member(extensions, tasks_extension).is_object();
}

json error_result(const std::string& words, bool is_modern) {
  json result = {{"content", {{{"type", "text"}, {"text", words}}}}, {"isError", true}};
  if (is_modern) result["resultType"] = "complete";
  return result;
}

std::string words_of_result(const json& result) {
  std::string words;
  const auto& content = member(result, "content");
  if (content.is_array())
    for (const auto& part : content) {
      const auto text = text_in(part, "text");
      const auto kind = text_in(part, "type");
      words += (words.empty() ? "" : "\n") + (kind == "text" ? text : "[" + kind + "]");
    }
  if (!words.empty()) return words;
  const auto& structured = member(result, "structuredContent");
  return structured.is_null() ? "" : dumped(structured);
}

json refused_result(const std::string& tool, std::size_t calls_max, bool is_modern) {
  return error_result(
      rendered(tool, ToolDenied{.reason = DenyReason::saturated,
                                .message = std::to_string(calls_max) +
                                           " calls of this tool server are open already"}),
      is_modern);
}

json ProxiedCall::timeout_result(Instant now, bool still_running) const {
  const auto limit = idle.value_or(Millis{0});
  const auto& deadline = movement.deadline();
  CallReport said;
  said.progress_accepted = deadline.accepted();
  said.progress_rejected = deadline.rejected();
  if (deadline.was_put_off())
    said.note = "the tool server used CPU or disks, and reported nothing new";
  return error_result(rendered(tool,
                               ToolTimeout{.kind = TimeoutKind::idle,
                                           .limit = limit,
                                           .elapsed = movement.deadline().active(now),
                                           .since_progress = limit,
                                           .still_running = still_running},
                               std::move(said)),
                      is_modern);
}

json ProxiedCall::lost_result(const std::string& why, bool may_have_run) const {
  const std::string effects =
      may_have_run ? ". Effects: unknown - it may have partly run. Check the state before "
                     "repeating it."
                   : ". Effects: none - it did not begin. It may be repeated.";
  return error_result(
      rendered(tool, ToolFailure{.kind = FailureKind::internal, .message = why + effects}),
      is_modern);
}

bool ProxiedCall::moved(Instant now) {
  const bool is_known = sent_at == now;
  if (!client_token.is_null() && own_task.empty() && server_task.empty() && !is_known)
    is_unsent = true;
  return is_report_due(now);
}

bool ProxiedCall::is_report_due(Instant now) {
  const auto signs = movement.deadline().signs();
  if (now - reported_at < report_every || signs <= reported_signs) return false;
  reported_at = now;
  reported_signs = signs;
  return true;
}

std::optional<json> ProxiedCall::due_progress(Instant now) {
  if (!is_unsent || now - sent_at < client_progress_every) return std::nullopt;
  is_unsent = false;
  sent_at = now;
  sent_value = value_above(sent_value);
  json params = {{"progressToken", client_token}, {"progress", sent_value}};
  if (!news.empty()) params["message"] = news;
  return notification_of("notifications/progress", std::move(params));
}

Report ProxiedCall::report_of(ReportKind kind) const {
  Report report;
  report.kind = kind;
  report.name = tool;
  report.call_id = call_id;
  return report;
}

Report ProxiedCall::call_report(const json& arguments) const {
  auto report = report_of(ReportKind::tool_call);
  report.content = cut(arguments.is_null() ? "{}" : dumped(arguments));
  report.deadline = idle;
  return report;
}

Report ProxiedCall::progress_report(Instant now) const {
  auto report = report_of(ReportKind::tool_progress);
  report.content = movement.words().empty() ? news : movement.words();
  report.detail = ToolProgress{.elapsed = movement.deadline().active(now),
                               .value = movement.value(),
                               .total = movement.total(),
                               .accepted = movement.deadline().signs()};
  return report;
}

Report ProxiedCall::end_report(const json& result, const json& error) const {
  const bool has_failed = !error.is_null() || member(result, "isError") == true;
  auto report = report_of(has_failed ? ReportKind::error : ReportKind::tool_result);
  if (text_in(result, "resultType") == "input_required") {
    report.content = "The tool asks for input";
  } else {
    report.content = cut(error.is_null() ? words_of_result(result) : text_in(error, "message"));
  }
  return report;
}

Report ProxiedCall::timeout_report(const json& result, Instant now) const {
  auto report = report_of(ReportKind::tool_timeout);
  report.content = words_of_result(result);
  report.timeout = ToolTimeoutFacts{.kind = ToolTimeoutFacts::Kind::idle,
                                    .limit = idle.value_or(Millis{0}),
                                    .elapsed = movement.deadline().active(now),
                                    .still_running = true};
  return report;
}

Report ProxiedCall::cancelled_report(const std::string& why, Instant now) const {
  auto report = report_of(ReportKind::error);
  report.content = rendered(tool, ToolCancelled{.why = {.origin = CancelOrigin::client_disconnect,
                                                        .scope = CancelScopeKind::call,
                                                        .text = why},
                                                .started = true,
                                                .effects = EffectState::unknown,
                                                .still_running = true,
                                                .elapsed = movement.deadline().active(now)});
  return report;
}

}  // namespace watchdog::monitor::mcp
