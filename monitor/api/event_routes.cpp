// `post_events` appends all lines of a body as one batch and answers from the receipt. It ignores
// kinds that only newer clients know, but refuses a body that has nothing else. A page of events is
// made in parts, because it may have megabytes; `EventsPage` keeps its place between two parts. A
// part without a match ends the page with a place to continue, so a rare kind cannot hold the
// reader. Transitions that no judge recorded are concluded for the answer.
#include <algorithm>
#include <utility>

#include "api/hints.h"
#include "api/parts.h"
#include "api/routes.h"
#include "codec/json.h"
#include "codec/progress.h"
#include "core/transition.h"
#include "ingest/transcript.h"
#include "judge/source_note.h"
#include "store/event_reader.h"
#include "store/transition_reader.h"

namespace watchdog::monitor {
namespace {

/// Writes a page of a session's events, part by part.
struct EventsPage {
  std::string session;
  std::optional<ReportKind> kind;
  Seq after = 0;
  Seq before = 0;  ///< 0: those after `after`.
  int left = 0;    ///< How many events at most.
  SessionKey key = observer_key;
  bool begun = false;
  std::size_t bytes = 0;
  Seq last = 0;  ///< The newest one written.

  Result<bool> operator()(StoreReader& reader, JsonWriter& out) {
    if (!std::exchange(begun, true)) {
      const auto row = reader.session(session);
      if (!row) return row.error();
      key = row->key;
      out.open_object().key("events").open_array();
    }
    const auto page = before > 0
                          ? EventReader(reader).page_before(key, before, left, kind, part_bytes_max)
                          : EventReader(reader).page(key, after, left, kind, part_bytes_max);
    if (!page) return page.error();
    const bool full = !write(page->events, out);
    const auto next = full ? std::optional(last) : page->next;
    // A part in which nothing was found ends the page: the walk was long.
    if (next && !full && left > 0 && !page->events.empty()) {
      (before > 0 ? before : after) = *next;
      return true;
    }
    out.close_array().field("next", next).close_object();
    return false;
  }

  /// False: the page is full before the end of these.
  bool write(const std::vector<Event>& events, JsonWriter& out) {
    for (const auto& event : events) {
      const auto text = to_json(event);
      if (bytes > 0 && bytes + text.size() > page_bytes_max) return false;
      out.raw(text);
      bytes += text.size();
      last = event.seq;
      --left;
    }
    return true;
  }
};

/// The members that a cancel and an abort have in common.
void write_request(JsonWriter& out, const CancelRequest& request) {
  out.field("by", request.by).field("reason", request.reason);
  out.field("at", request.at.time_since_epoch().count());
}

void write_directive(JsonWriter& out, const Directive& directive) {
  out.key("directive");
  if (!directive.cancel && directive.aborts.empty()) {
    out.value(nullptr);
    return;
  }
  out.open_object().key("cancel");
  if (directive.cancel) {
    out.open_object();
    write_request(out, *directive.cancel);
    out.close_object();
  } else {
    out.value(nullptr);
  }
  out.key("aborts").open_array();
  for (const auto& abort : directive.aborts) {
    out.open_object().field("turnId", abort.turn).key("toolId");
    abort.call.empty() ? out.value(nullptr) : out.value(abort.call);
    write_request(out, abort);
    out.close_object();
  }
  out.close_array().close_object();
}

/// Returns a session's transitions after an id: the recorded ones, then those that no judge has
/// recorded.
Result<std::vector<TransitionRow>> transitions_of(const Backend& backend, StoreReader& reader,
                                                  const SessionRow& session, std::int64_t after,
                                                  int limit) {
  auto rows = TransitionReader(reader).of(session.key, after, limit);
  // A session in memory has a judge, which records them.
  if (!rows || static_cast<int>(rows->size()) == limit || backend.watched(session.id)) return rows;
  auto more = TransitionReader(reader).unwritten(session, backend.now());
  if (!more) return more;
  for (auto& row : *more) {
    if (static_cast<int>(rows->size()) == limit) break;
    if (row.id > after) rows->push_back(std::move(row));
  }
  return rows;
}

/// The source of posted events: a program that reports by itself, or a part of the monitor that
/// runs elsewhere. Only these may be named; the monitor knows the others itself.
enum class EventSource : std::uint8_t { agent, transcript, proxy, run, mcp };

}  // namespace
}  // namespace watchdog::monitor

namespace watchdog {
template <>
struct Names<monitor::EventSource> {
  static constexpr std::string_view all[] = {"agent", "transcript", "proxy", "run", "mcp"};
};
}  // namespace watchdog

namespace watchdog::monitor {
namespace {

ReportOrigin origin_of(EventSource source) {
  switch (source) {
    case EventSource::agent:
      break;
    case EventSource::transcript:
      return ReportOrigin::transcript;
    case EventSource::proxy:
      return ReportOrigin::proxy;
    case EventSource::run:
      return ReportOrigin::run;
    case EventSource::mcp:
      return ReportOrigin::mcp;
  }
  return ReportOrigin::agent;
}

/// Gives the reports of a transcript the times of its lines.
void use_times_of_lines(const Backend& backend, Batch& batch) {
  constexpr Millis oldest{30LL * 86'400'000};
  const auto now = system_clock().wall();
  for (auto& report : batch.reports) {
    if (!report.ts_ms) continue;
    report.at = std::clamp(WallTime{Millis{*report.ts_ms}}, now - oldest, now);
  }
  if (const auto watched = backend.watched(batch.session))
    drop_old_states(batch, newest_report(watched->judged.history));
}

}  // namespace

void post_events(const CallPtr& call) {
  const auto source = call->target.choice<EventSource>("source");
  if (!source) return call->reply(error_response(source.error()));
  const auto strict = call->target.number("strict", 0, 0, 1);
  if (!strict) return call->reply(error_response(strict.error()));
  auto list = reports_from_json(call->request.body);
  call->request.body = {};
  if (!list) return call->reply(error_response(list.error()));
  // Newer clients may send kinds of which nothing is known here, but not those alone.
  if (list->reports.empty() && list->unknown) return call->reply(error_response(*list->unknown));
  const auto wanted = call->target.number("create", 1, 0, 1);
  if (!wanted) return call->reply(error_response(wanted.error()));
  for (const auto& unknown : {list->unknown, list->unknown_member})
    if (*strict == 1 && unknown) return call->reply(error_response(*unknown));
  const bool create = *wanted == 1 && !list->reports.empty();
  const auto ignored = list->ignored;
  std::string hint;
  const auto give = [call](std::string& text, HintKind kind, const std::string& about = {}) {
    if (call->hints == nullptr || !call->hints->is_first(call->id, kind)) return;
    text += (text.empty() ? "" : " ") + hint_text(kind, about);
  };
  if (list->unknown) give(hint, HintKind::unknown_kind, list->unknown->message);
  if (list->unknown_member) give(hint, HintKind::unknown_member, list->unknown_member->message);
  if (std::ranges::any_of(list->reports, is_bare_heartbeat)) give(hint, HintKind::bare_heartbeats);
  auto steps = call_steps(list->reports);
  Batch batch{.session = call->id,
              .creation = create ? Creation::allow : Creation::refuse,
              .reports = std::move(list->reports),
              .by = origin_of(source->value_or(EventSource::agent))};
  if (*source == EventSource::transcript) use_times_of_lines(call->backend, batch);
  append_from_client(call, std::move(batch),
                     [call, ignored, give, hint = std::move(hint),
                      steps = std::move(steps)](Result<Receipt> receipt) mutable {
                       if (!receipt) return call->reply(error_response(receipt.error()));
                       if (call->hints != nullptr) {
                         if (receipt->created) call->hints->begin(call->id);
                         // A report that came twice, or after the end, says nothing about the
                         // order of calls.
                         if (receipt->duplicates + receipt->late > 0) call->hints->leave(call->id);
                         const auto unpaired = call->hints->follow(call->id, steps);
                         if (!unpaired.call.empty())
                           give(hint, HintKind::call_without_result, unpaired.call);
                         if (!unpaired.result.empty())
                           give(hint, HintKind::result_without_call, unpaired.result);
                       }
                       JsonWriter out;
                       out.open_object().field("accepted", receipt->accepted);
                       out.field("duplicates", receipt->duplicates).field("late", receipt->late);
                       out.field("ignored", ignored).key("hint");
                       if (receipt->cut > 0) give(hint, HintKind::cut_content);
                       hint.empty() ? out.value(nullptr) : out.value(hint);
                       write_directive(out, receipt->directive);
                       out.close_object();
                       call->reply(json_response(out));
                     });
}

void get_events(const CallPtr& call) {
  const auto after = call->target.number("after", 0, 0, INT64_MAX);
  const auto before = call->target.number("before", 0, 0, INT64_MAX);
  const auto limit = call->target.number("limit", 100, 1, page_max);
  const auto kind = call->target.choice<ReportKind>("kind");
  for (const auto* error : {after ? nullptr : &after.error(), before ? nullptr : &before.error(),
                            limit ? nullptr : &limit.error(), kind ? nullptr : &kind.error()}) {
    if (error != nullptr) return call->reply(error_response(*error));
  }
  reply_in_parts(call, EventsPage{.session = call->id,
                                  .kind = *kind,
                                  .after = *after,
                                  .before = *before,
                                  .left = static_cast<int>(*limit)});
}

void get_transitions(const CallPtr& call) {
  const auto after = call->target.number("after", 0, 0, INT64_MAX);
  if (!after) return call->reply(error_response(after.error()));
  const auto limit = call->target.number("limit", 100, 1, page_max);
  if (!limit) return call->reply(error_response(limit.error()));
  reading(call, [call, after = *after, limit = static_cast<int>(*limit)](StoreReader& reader) {
    const auto row = reader.session(call->id);
    if (!row) return call->reply(error_response(row.error()));
    const auto rows = transitions_of(call->backend, reader, *row, after, limit);
    if (!rows) return call->reply(error_response(rows.error()));
    JsonWriter out;
    out.open_object().key("transitions").open_array();
    for (const auto& item : *rows) out.raw(transition_json(item));
    out.close_array().key("next");
    static_cast<int>(rows->size()) == limit ? out.value(rows->back().id) : out.value(nullptr);
    out.close_object();
    call->reply(json_response(out));
  });
}

}  // namespace watchdog::monitor
