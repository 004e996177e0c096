/// \file
/// Turns the logs and spans of coding agents into reports.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

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

/// The memory from one request to the next. After `records_max` counted records and `sessions_max`
/// sessions it begins again. Thread-safe.
class OtlpMemory {
 public:
  static constexpr std::size_t records_max = 16'384;
  static constexpr std::size_t sessions_max = 4'096;

  /// Returns true the first time it is called for a record.
  [[nodiscard]] bool is_new(std::uint64_t record);

  /// An answer of the session's model begins.
  void begin_answer(const std::string& session);
  /// The answer asks for a tool call.
  void note_call(const std::string& session);
  /// The answer ends. Returns whether it asked for calls; nothing if its begin is not known.
  [[nodiscard]] std::optional<bool> end_answer(const std::string& session);

 private:
  std::mutex mutex_;
  std::unordered_set<std::uint64_t> records_;
  std::deque<std::uint64_t> by_age_;  ///< The same, the oldest first.
  std::unordered_map<std::string, bool> answers_;
};

/// Returns a batch for each session that the records are about, in the order of their first
/// records. Records of no session, or without a meaning, are left out. A call that a record reports
/// is over, so its result follows it at once. Each report has an event id that only depends on its
/// record, so a record that comes again is stored once. Calls with an id get the id of the agent's
/// hooks. `received` is the time for records that have none, or one that cannot be. Thread-safe if
/// `look_up` is.
[[nodiscard]] std::vector<Batch> otlp_batches(const std::vector<OtlpRecord>& records,
                                              WallTime received, OtlpMemory& memory,
                                              const OtlpLookUp& look_up);

}  // namespace watchdog::monitor
