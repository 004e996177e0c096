/// \file
/// An event as a row of the table `events`.
#pragma once

#include "store/sqlite.h"
#include "watchdog/report.h"

namespace watchdog {

/// The store's additions to a report that becomes an event.
struct Stamp {
  Seq seq = 0;
  SessionKey session = observer_key;
  Seq prev = 0;
  Instant tick{};
  WallTime at{};
  bool late = false;
  ReportOrigin origin = ReportOrigin::unknown;
};

/// The columns, in the order in which `event_from` reads and `insert_event` writes them.
inline constexpr std::string_view event_columns =
    "seq, session, prev, tick_ms, at_ms, kind, late, name, content, digest, bytes, event_id, "
    "facts, marks, origin";

inline constexpr int prev_in_event = 2;

[[nodiscard]] Event event_from(const Statement& row);
/// Returns the size of its texts.
[[nodiscard]] std::size_t event_bytes(const Statement& row);

/// `statement` must be prepared from `insert_event_sql`.
inline constexpr std::string_view insert_event_sql =
    "INSERT INTO events (seq, session, prev, tick_ms, at_ms, kind, late, name, content, digest, "
    "bytes, event_id, facts, marks, origin) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)";
void insert_event(Statement& statement, const Stamp& stamp, const Report& report);

}  // namespace watchdog
