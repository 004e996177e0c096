/// \file
/// Turns the logs and spans of coding agents into reports.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ingest/otlp_memory.h"
#include "ingest/otlp_record.h"
#include "store/store.h"
#include "watchdog/budget.h"
#include "watchdog/time.h"

namespace watchdog::monitor {

/// The monitor's knowledge of a session before a request. A plain value.
struct OtlpKnown {
  std::string waiting_for{};  ///< The subject of its wait; empty: it does not wait.
  WallTime newest{};          ///< The time of its newest event. Older states do not count.
  BudgetFigures used{};       ///< Its model requests, tokens and cost so far.
  bool has_limits = false;    ///< Its agent reports the use of a budget by itself.
};
using OtlpLookUp = std::function<OtlpKnown(const std::string& session)>;

/// Returns a batch for each session that the records are about, in the order of their first
/// records. Records of no session, or without a meaning, are left out. A call that a record reports
/// is over, so its result follows it at once. Each report has an event id that only depends on its
/// record, so a record that comes again is stored once. Calls with an id get the id of the agent's
/// hooks. `received` is the time for records that have none, or one that cannot be. `session` is
/// the session of the whole request, unless a record has `watchdog.session`; empty: each record
/// names its own. A time that is more than `age_max` before `received` is taken for a mistake.
/// Thread-safe if `look_up` is.
[[nodiscard]] std::vector<Batch> otlp_batches(const std::vector<OtlpRecord>& records,
                                              WallTime received, OtlpMemory& memory,
                                              const OtlpLookUp& look_up,
                                              std::string_view session = {},
                                              Millis age_max = Millis{86'400'000});

}  // namespace watchdog::monitor
