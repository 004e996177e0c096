#include "store/event_row.h"

#include <iterator>

#include "codec/facts.h"
#include "codec/json.h"
#include "watchdog/repetition.h"

namespace watchdog {
namespace {

/// A row of an older program has no origin, and one of a newer program may have an unknown one.
ReportOrigin origin_in(std::int64_t number) {
  constexpr auto count = static_cast<std::int64_t>(std::size(Names<ReportOrigin>::all));
  return number < 0 || number >= count ? ReportOrigin::unknown : static_cast<ReportOrigin>(number);
}

}  // namespace

std::size_t event_bytes(const Statement& row) {
  std::size_t bytes = 0;
  for (const int column : {7, 8, 11, 12, 13}) bytes += row.bytes(column).size();
  return bytes;
}

Event event_from(const Statement& row) {
  Event event{.seq = row.integer(0),
              .session = row.integer(1),
              .prev = row.integer(2),
              .tick = Instant{Millis{row.integer(3)}},
              .at = WallTime{Millis{row.integer(4)}},
              .late = row.integer(6) != 0,
              .origin = origin_in(row.integer(14))};
  const auto kind = row.integer(5);
  if (kind < 0 || kind >= static_cast<std::int64_t>(std::size(Names<ReportKind>::all))) {
    // A newer minor version's kind: known to exist, not understood.
    event.report.kind = ReportKind::compaction;
    event.late = true;
    return event;
  }
  Report& report = event.report;
  report.kind = static_cast<ReportKind>(kind);
  report.name = row.text(7);
  report.content = row.text(8);
  report.digest = static_cast<std::uint64_t>(row.integer(9));
  report.bytes = row.integer(10);
  report.event_id = row.text(11);
  const auto facts = row.text(12);
  if (!facts.empty() || report.kind == ReportKind::heartbeat) {
    // One that cannot be read is shown as far as it can, and changes nothing.
    if (!read_facts(report, facts, event.tick)) event.late = true;
  }
  if (auto marks = decoded_marks(row.bytes(13))) {
    report.detail = std::move(*marks);
  } else if (!report.content.empty() || report.bytes == 0) {
    mark_redacted(report);  // it was kept whole
  }
  return event;
}

void insert_event(Statement& statement, const Stamp& stamp, const Report& report) {
  const auto* beats = std::get_if<Heartbeats>(&report.detail);
  const auto facts = facts_of(report, stamp.tick);
  statement.reset();
  statement.bind(1, stamp.seq).bind(2, stamp.session).bind(3, stamp.prev);
  statement.bind(4, stamp.tick.time_since_epoch().count());
  statement.bind(5, stamp.at.time_since_epoch().count());
  statement.bind(6, static_cast<std::int64_t>(report.kind)).bind(7, stamp.late ? 1 : 0);
  statement.bind(8, beats != nullptr ? beats->phase : report.name, true);
  statement.bind(9, report.content, true);
  if (report.bytes > 0) {
    statement.bind(10, static_cast<std::int64_t>(report.digest)).bind(11, report.bytes);
  } else {
    statement.bind_null(10).bind_null(11);
  }
  statement.bind(12, report.event_id, true).bind(13, facts, true);
  const auto* marks = std::get_if<Marks>(&report.detail);
  const auto marked = marks != nullptr ? encoded(*marks) : std::string{};
  statement.bind_bytes(14, marked).bind(15, static_cast<std::int64_t>(stamp.origin));
  statement.run();
}

}  // namespace watchdog
