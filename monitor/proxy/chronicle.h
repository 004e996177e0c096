/// \file
/// Sessions and their reports, made of what passes through the proxy.
#pragma once

#include <cstddef>
#include <vector>

#include "proxy/observation.h"
#include "watchdog/store.h"

namespace watchdog::monitor {

/// Remembers of each conversation what it must to tell what is new in its next request. Bounded.
/// Pure: no clock, no I/O; the same observations give the same reports. Use from one thread at a
/// time.
class Chronicle {
 public:
  struct Options {
    std::size_t sessions_max = 4'096;  ///< Beyond: the one is forgotten that was quiet longest.
    Millis beat_every{5'000};          ///< Progress within an answer is told so often at most.
  };
  explicit Chronicle(Options options);
  Chronicle() : Chronicle(Options{}) {}
  ~Chronicle();
  Chronicle(const Chronicle&) = delete;
  Chronicle& operator=(const Chronicle&) = delete;

  /// What is to be reported because of it; often nothing.
  [[nodiscard]] std::vector<Batch> take(Observation observation);
  /// What time alone makes due: heartbeats of requests that are open, quiet or not.
  [[nodiscard]] std::vector<Batch> beat(WallTime now);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace watchdog::monitor
