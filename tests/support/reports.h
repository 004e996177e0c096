/// \file
/// Short ways to write reports and batches.
#pragma once

#include <string>
#include <vector>

#include "store/event_reader.h"
#include "store/store.h"

namespace watchdog::test {

inline Report change(std::string type = "step", std::string data = "{}") {
  return {.kind = ReportKind::state_change, .name = std::move(type), .content = std::move(data)};
}
inline Report beat(Source source = Source::loop) {
  Report report;
  report.detail = Heartbeats{.source = source};
  return report;
}
inline Report ending(OutcomeKind kind = OutcomeKind::completed) {
  Report report{.kind = ReportKind::end};
  report.detail = Outcome{.kind = kind, .reason = "task_complete"};
  return report;
}
inline Report turn(std::string_view name, std::string id, TurnFacts facts = {}) {
  Report report{.kind = ReportKind::turn, .name = std::string(name), .call_id = std::move(id)};
  report.detail = std::move(facts);
  return report;
}
/// A tool call of a turn.
inline Report call_in(std::string turn, std::string id, std::string tool = "shell") {
  return {.kind = ReportKind::tool_call,
          .name = std::move(tool),
          .call_id = std::move(id),
          .turn = std::move(turn)};
}
/// Somebody wants a turn to stop, or a call of it.
inline Report abort_of(std::string turn, std::string call = {}, std::string reason = {}) {
  Report report{.kind = ReportKind::cancel};
  report.detail = CancelRequest{
      .by = "user", .reason = std::move(reason), .turn = std::move(turn), .call = std::move(call)};
  return report;
}
inline Report with_id(Report report, std::string id) {
  report.event_id = std::move(id);
  return report;
}

/// Appends and returns the receipt, or the error of the batch or the store.
inline Result<Receipt> say(Store& store, const std::string& session, std::vector<Report> reports,
                           Creation creation = Creation::allow, SessionSpec spec = {}) {
  Batch batch{.session = session,
              .creation = creation,
              .spec = std::move(spec),
              .reports = std::move(reports)};
  auto receipts = store.append({&batch, 1});
  if (!receipts) return receipts.error();
  return receipts->front();
}

/// All events of a session.
inline std::vector<Event> all_events(StoreReader& reader, const std::string& session,
                                     int page_size = 100) {
  std::vector<Event> events;
  const auto row = reader.session(session);
  if (!row) return events;
  for (std::optional<Seq> after = 0; after;) {
    auto page = EventReader(reader).page(row->key, *after, page_size);
    if (!page) return events;
    events.insert(events.end(), page->events.begin(), page->events.end());
    after = page->next;
  }
  return events;
}

}  // namespace watchdog::test
