// Events come in order. The first one after rest or an end opens a turn; rest or an end closes it,
// and its span is complete. A call's span is complete with its result. The proxy reports an open
// request to the model by heartbeats, and its answer by what follows; between the two is the `chat`
// span. A span is only made when it is over, as OTLP has no other.
#include "export/span_maker.h"

#include <algorithm>
#include <utility>

#include "facts/digest.h"
#include "privacy/content.h"
#include "store/transition_reader.h"
#include "text/json_writer.h"

namespace watchdog::monitor {
namespace {

constexpr std::size_t reason_chars_max = 400;

std::string id_of(std::string_view session, Seq seq, std::string_view kind) {
  return hexadecimal(
      combined(digest_of(session), combined(static_cast<std::uint64_t>(seq), digest_of(kind))));
}

std::string nanoseconds(WallTime at) {
  return std::to_string(at.time_since_epoch().count()) + "000000";
}

void attribute(JsonWriter& out, std::string_view name, std::string_view text) {
  if (text.empty()) return;
  out.open_object().field("key", name).key("value").open_object();
  out.field("stringValue", text).close_object().close_object();
}

/// True for what is about a session and not done by its agent.
bool is_aside(const Report& report) {
  switch (report.kind) {
    case ReportKind::policy:
    case ReportKind::cancel:
    case ReportKind::exited:
    case ReportKind::observer:
    case ReportKind::gap:
    case ReportKind::opinion:
    case ReportKind::budget:
    case ReportKind::idle:
    case ReportKind::end:
      return true;
    default:
      return false;
  }
}

/// True while a request to the model is open.
bool is_asking(const Report& report) {
  const auto* beats = std::get_if<Heartbeats>(&report.detail);
  return (beats != nullptr && beats->source == Source::relay) ||
         report.kind == ReportKind::evidence;
}

/// True for what the model answered, and for what comes instead.
bool is_answer(const Report& report) {
  const bool message = report.kind == ReportKind::message && report.name != "user";
  return message || report.kind == ReportKind::tool_call || report.kind == ReportKind::wait;
}

}  // namespace

struct SpanMaker::Span {
  std::string_view operation;
  std::string name;  ///< After the operation.
  std::string id;
  std::string above;
  WallTime begin{};
  WallTime end{};
  std::vector<std::pair<std::string_view, std::string>> attributes{};
  std::string error{};  ///< The type of the error; empty: there was none.
  const std::vector<Change>* changes = nullptr;
};

SpanMaker::Work* SpanMaker::work_of(SessionKey key) {
  if (key == observer_key) return nullptr;
  if (const auto found = works_.find(key); found != works_.end()) return &found->second;
  const auto row = look_up_(key);
  if (!row) return nullptr;
  if (works_.size() >= sessions_max) {
    works_.clear();
    by_id_.clear();
  }
  const auto label = [&](const char* name) {
    const auto found = row->spec.labels.find(name);
    return found == row->spec.labels.end() ? std::string() : found->second;
  };
  by_id_[row->id] = key;
  return &works_
              .emplace(key, Work{.id = row->id,
                                 .parent = row->spec.parent,
                                 .agent = row->spec.agent,
                                 .model = label("model"),
                                 .has_own_spans = label("via") == "otlp"})
              .first->second;
}

void SpanMaker::add(const Event& event) {
  if (event.late) return;
  auto* work = work_of(event.session);
  if (work == nullptr || work->has_own_spans) return;
  const auto& report = event.report;
  const bool ends = report.kind == ReportKind::idle || report.kind == ReportKind::end;
  if (ends && report.name != idle_reports::reminder) return end(*work, event);
  if (work->trace.empty() && !is_aside(report)) begin(*work, event);
  if (work->trace.empty()) return;
  if (is_answer(report)) end_chat(*work, event.at);
  if (!work->chat && is_asking(report)) work->chat = Call{.seq = event.seq, .begin = event.at};
  if (report.kind == ReportKind::tool_call && work->calls.size() < calls_max) {
    work->calls.push_back(
        {.id = report.call_id, .name = report.name, .seq = event.seq, .begin = event.at});
  }
  if (report.kind == ReportKind::tool_result || is_failure(report.kind)) end_call(*work, event);
}

void SpanMaker::add(const TransitionRow& row) {
  const auto& change = row.transition;
  auto* work = work_of(change.session);
  if (work == nullptr) return;
  const auto reason = std::string(first_characters(redact(change.reason), reason_chars_max));
  if (!work->trace.empty() && work->changes.size() < changes_max)
    work->changes.push_back(
        {.at = change.at, .from = change.from, .to = change.health.kind, .reason = reason});
  constexpr int info = 9;
  constexpr int warn = 13;
  const bool trouble = is_trouble(change.health.kind);
  JsonWriter out;
  out.open_object().field("timeUnixNano", nanoseconds(change.at));
  out.field("severityNumber", trouble ? warn : info)
      .field("severityText", trouble ? "WARN" : "INFO");
  out.field("eventName", "watchdog.health").key("body").open_object();
  out.field("stringValue", reason).close_object();
  if (!work->trace.empty()) out.field("traceId", work->trace).field("spanId", work->span);
  out.key("attributes").open_array();
  attribute(out, "gen_ai.conversation.id", work->id);
  attribute(out, "gen_ai.agent.name", work->agent);
  attribute(out, "watchdog.health", name_of(change.health.kind));
  attribute(out, "watchdog.health.before", name_of(change.from));
  out.close_array().close_object();
  items_.push_back({.signal = ExportSignal::logs, .json = out.finish()});
}

std::vector<ExportItem> SpanMaker::drain_items() {
  return std::exchange(items_, {});
}

/// A session below one whose turn is open is a part of that turn.
void SpanMaker::begin(Work& work, const Event& event) {
  work.begin = event.at;
  work.span = id_of(work.id, event.seq, "span");
  work.trace = id_of(work.id, event.seq, "trace") + id_of(work.id, event.seq, "trace 2");
  work.above.clear();
  const auto parent = by_id_.find(work.parent);
  if (work.parent.empty() || parent == by_id_.end()) return;
  const auto& above = works_.at(parent->second);
  if (above.trace.empty()) return;
  work.trace = above.trace;
  work.above = above.span;
}

void SpanMaker::end(Work& work, const Event& event) {
  if (work.trace.empty()) return;
  end_chat(work, event.at);
  for (const auto& call : work.calls)
    add(work, {.operation = "execute_tool",
               .name = call.name,
               .id = id_of(work.id, call.seq, "call"),
               .above = work.span,
               .begin = call.begin,
               .end = event.at,
               .attributes = {{"gen_ai.tool.name", call.name}, {"gen_ai.tool.call.id", call.id}},
               .error = "no_result"});
  Span turn{.operation = "invoke_agent",
            .name = work.agent,
            .id = work.span,
            .above = work.above,
            .begin = work.begin,
            .end = event.at,
            .changes = &work.changes};
  if (const auto* outcome = std::get_if<Outcome>(&event.report.detail)) {
    turn.attributes = {{"watchdog.outcome", std::string(name_of(outcome->kind))},
                       {"watchdog.reason", outcome->reason}};
    if (outcome->kind == OutcomeKind::failed)
      turn.error = outcome->reason.empty() ? "failed" : outcome->reason;
  } else if (event.report.name == idle_reports::failed) {
    turn.error = "failed";
  }
  add(work, turn);
  work.trace.clear();
  work.calls.clear();
  work.changes.clear();
}

/// The newest call of that id; without ids the first of that name.
void SpanMaker::end_call(Work& work, const Event& event) {
  const auto& report = event.report;
  auto call = work.calls.end();
  if (report.call_id.empty()) {
    call = std::ranges::find(work.calls, report.name, &Call::name);
  } else {
    const auto found = std::find_if(work.calls.rbegin(), work.calls.rend(),
                                    [&](const Call& one) { return one.id == report.call_id; });
    if (found != work.calls.rend()) call = std::prev(found.base());
  }
  if (call == work.calls.end()) return;
  add(work, {.operation = "execute_tool",
             .name = call->name,
             .id = id_of(work.id, call->seq, "call"),
             .above = work.span,
             .begin = call->begin,
             .end = event.at,
             .attributes = {{"gen_ai.tool.name", call->name}, {"gen_ai.tool.call.id", call->id}},
             .error = report.kind == ReportKind::tool_timeout ? "timeout"
                      : is_failure(report.kind)               ? "tool_error"
                                                              : ""});
  work.calls.erase(call);
}

void SpanMaker::end_chat(Work& work, WallTime at) {
  const auto chat = std::exchange(work.chat, std::nullopt);
  if (!chat) return;
  add(work, {.operation = "chat",
             .name = work.model,
             .id = id_of(work.id, chat->seq, "chat"),
             .above = work.span,
             .begin = chat->begin,
             .end = at,
             .attributes = {{"gen_ai.request.model", work.model}}});
}

void SpanMaker::add(const Work& work, const Span& span) {
  constexpr int internal = 1;
  constexpr int error = 2;
  JsonWriter out;
  out.open_object().field("traceId", work.trace).field("spanId", span.id);
  if (!span.above.empty()) out.field("parentSpanId", span.above);
  out.field("name", std::string(span.operation) + (span.name.empty() ? "" : " " + span.name));
  out.field("kind", internal).field("startTimeUnixNano", nanoseconds(span.begin));
  out.field("endTimeUnixNano", nanoseconds(std::max(span.begin, span.end)));
  out.key("attributes").open_array();
  attribute(out, "gen_ai.operation.name", span.operation);
  attribute(out, "gen_ai.conversation.id", work.id);
  attribute(out, "gen_ai.agent.name", work.agent);
  for (const auto& [name, text] : span.attributes) attribute(out, name, text);
  attribute(out, "error.type", span.error);
  out.close_array().key("events").open_array();
  if (span.changes != nullptr) {
    for (const auto& change : *span.changes) {
      out.open_object().field("timeUnixNano", nanoseconds(change.at));
      out.field("name", "watchdog.health").key("attributes").open_array();
      attribute(out, "watchdog.health", name_of(change.to));
      attribute(out, "watchdog.health.before", name_of(change.from));
      attribute(out, "watchdog.reason", change.reason);
      out.close_array().close_object();
    }
  }
  out.close_array().key("status").open_object().field("code", span.error.empty() ? 0 : error);
  out.close_object().close_object();
  items_.push_back({.signal = ExportSignal::traces, .json = out.finish()});
}

std::string export_request(ExportSignal signal, const std::vector<std::string>& items,
                           const std::string& version) {
  const bool traces = signal == ExportSignal::traces;
  JsonWriter out;
  out.open_object().key(traces ? "resourceSpans" : "resourceLogs").open_array().open_object();
  out.key("resource").open_object().key("attributes").open_array();
  attribute(out, "service.name", "watchdog-monitor");
  attribute(out, "service.version", version);
  out.close_array().close_object();
  out.key(traces ? "scopeSpans" : "scopeLogs").open_array().open_object();
  out.key("scope").open_object().field("name", "watchdog-monitor").close_object();
  out.key(traces ? "spans" : "logRecords").open_array();
  for (const auto& item : items) out.raw(item);
  out.close_array().close_object().close_array().close_object().close_array().close_object();
  return out.finish();
}

}  // namespace watchdog::monitor
