/// \file
/// Sessions and their reports, made of what passes through the proxy.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/sessions/attribution.h"
#include "proxy/sessions/observation.h"
#include "proxy/sessions/spending.h"
#include "store/store.h"

namespace watchdog::monitor {

/// Remembers of each conversation what is needed to find the new parts of its next request.
/// Bounded. Pure: no clock, no I/O except `is_gone`; the same observations give the same reports.
/// Use from one thread at a time.
class SessionRecorder {
 public:
  struct Options {
    std::size_t sessions_max = 4'096;  ///< Beyond: the one is forgotten that was quiet longest.
    /// True if a process is known to be gone; null: of none.
    std::function<bool(const ProcessFacts&)> is_gone{};
    TraceOwner session_of_trace{};  ///< Null: nothing is known of traces.
    /// The shortest time between two reports of progress within an answer.
    Millis beat_every{5'000};
    std::shared_ptr<Spending> spending{};  ///< Null: the owner set no budgets.
    /// Gets what the owner should know of a budget. Null: nobody listens.
    std::function<void(const std::string& session, const std::string& text)> on_spending{};
  };
  explicit SessionRecorder(Options options);
  SessionRecorder() : SessionRecorder(Options{}) {}
  ~SessionRecorder();
  SessionRecorder(const SessionRecorder&) = delete;
  SessionRecorder& operator=(const SessionRecorder&) = delete;

  /// Returns the reports that follow from it; often none.
  [[nodiscard]] std::vector<Batch> record(Observation observation);
  /// Returns the session that got the answer of that id; empty: unknown. Thread-safe.
  [[nodiscard]] std::string owner_of(std::string_view answer) const;
  /// Returns reports that are due by time alone: heartbeats of open requests, quiet or not.
  [[nodiscard]] std::vector<Batch> beat(WallTime now);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace watchdog::monitor
