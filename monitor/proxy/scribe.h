/// \file
/// Writes down what the proxy sees.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "proxy/observation.h"
#include "watchdog/store.h"

namespace watchdog::monitor {

/// Has a thread of its own, which reads what passed through and makes reports of it. Thread-safe.
class Scribe {
 public:
  struct Options {
    /// Keeps batches, in order, and takes those out that it kept or that can never be kept; may
    /// wait for the disk. What is left is given again, a second later. From the scribe's thread.
    std::function<void(std::vector<Batch>&)> keep;
    /// Of observations that wait. Beyond, what only shows more of an answer or of a request is let
    /// go of, and that is told.
    std::size_t waiting_bytes_max = 64 * 1024 * 1024;
  };
  explicit Scribe(Options options);
  /// Writes down what came so far, if it can be kept.
  ~Scribe();
  Scribe(const Scribe&) = delete;
  Scribe& operator=(const Scribe&) = delete;

  /// Never waits.
  void take(Observation observation);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace watchdog::monitor
