/// \file
/// What is remembered of telemetry from one request to the next.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace watchdog::monitor {

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
  /// The answer has text for a person.
  void note_text(const std::string& session);
  /// The answer ends. Returns whether it asked for calls; nothing if its stream showed neither
  /// calls nor text, or if its begin is not known.
  [[nodiscard]] std::optional<bool> end_answer(const std::string& session);

  /// The session that a span of the trace named; empty: none did.
  [[nodiscard]] std::string session_of_trace(const std::string& trace);
  void note_trace(const std::string& trace, const std::string& session);

  /// Returns how much the total of a counter rose. `counted_before`: the session's use was known
  /// when this memory first heard of its counters, so their first totals are in it.
  [[nodiscard]] double rise(const std::string& session, std::uint64_t series, double total,
                            bool counted_before);

 private:
  std::mutex mutex_;
  std::unordered_set<std::uint64_t> records_;
  std::deque<std::uint64_t> by_age_;  ///< The same, the oldest first.
  struct StreamedAnswer {
    bool called = false;
    bool has_text = false;
  };
  std::unordered_map<std::string, StreamedAnswer> answers_;
  std::unordered_map<std::string, std::string> traces_;
  std::unordered_map<std::uint64_t, double> series_;
  std::unordered_map<std::string, bool> measured_;
};

}  // namespace watchdog::monitor
