/// \file
/// Joins model requests to the sessions that telemetry of the same trace names.
#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "ingest/otlp_memory.h"

namespace watchdog::monitor {

/// A span is exported when it is over, so the first request of a trace is often earlier than all
/// that is known of the trace. Its conversation is known by then: once a request joined, the others
/// of the same conversation do too, whatever their trace. Bounded. Thread-safe.
class TraceSessions {
 public:
  explicit TraceSessions(std::shared_ptr<OtlpMemory> telemetry)
      : telemetry_(std::move(telemetry)) {}

  /// `guess`: the session of the request by everything else. Returns the session; empty: only the
  /// guess is known.
  [[nodiscard]] std::string session_of(const std::string& trace, const std::string& guess);

 private:
  static constexpr std::size_t guesses_max = 4'096;

  const std::shared_ptr<OtlpMemory> telemetry_;
  std::mutex mutex_;
  std::unordered_map<std::string, std::string> joined_;  ///< Sessions, by guesses.
  std::deque<std::string> by_age_;                       ///< The guesses, the oldest first.
};

}  // namespace watchdog::monitor
