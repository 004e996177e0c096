/// \file
/// Turns the proxy's observations into reports.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/sessions/attribution.h"
#include "proxy/sessions/observation.h"
#include "proxy/sessions/spending.h"
#include "store/store.h"

namespace watchdog::monitor {

/// Has a thread of its own, which reads what passed through and makes reports of it. Thread-safe.
class ObservationWriter {
 public:
  struct Options {
    /// Stores batches, in order, and removes those that it stored or that can never be stored; may
    /// wait for the disk. The others are passed again a second later. Called from the writer's
    /// thread.
    std::function<void(std::vector<Batch>&)> keep;
    /// Finds the session that telemetry of a trace names; null: none comes here. Thread-safe.
    TraceOwner session_of_trace{};
    /// Charged for each answer, and saved once a second; null: the owner set no budgets.
    std::shared_ptr<Spending> spending{};
    /// Gets what an operator should know, from the writer's thread. Null: nobody listens.
    std::function<void(const std::string&)> warn{};
    /// Limit of waiting observations. Above it, pieces of answers and requests are dropped, and
    /// that is recorded.
    std::size_t waiting_bytes_max = 64 * 1024 * 1024;
  };
  explicit ObservationWriter(Options options);
  /// Writes down what came so far, if it can be kept.
  ~ObservationWriter();
  ObservationWriter(const ObservationWriter&) = delete;
  ObservationWriter& operator=(const ObservationWriter&) = delete;

  /// Returns the session that got the answer of that id; empty: unknown. Thread-safe.
  [[nodiscard]] std::string owner_of(std::string_view answer) const;

  /// Never waits.
  void add(Observation observation);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace watchdog::monitor
