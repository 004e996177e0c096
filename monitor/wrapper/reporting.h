/// \file
/// The receiver of a wrapper's reports.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "watchdog/report.h"
#include "watchdog/result.h"

namespace watchdog::monitor {

/// One session. Nothing of it makes a command wait, but for its end. Thread-safe.
class Reporting {
 public:
  Reporting() = default;
  Reporting(const Reporting&) = delete;
  Reporting& operator=(const Reporting&) = delete;
  virtual ~Reporting() = default;

  /// The process lives, and has come so far.
  virtual void beat(const Counters& counters) = 0;
  virtual void say(Report report) = 0;
  /// Returns the cancel request, once there is one.
  [[nodiscard]] virtual std::optional<CancelRequest> cancelled() const = 0;
  /// Sets the listener for a cancel, called once from another thread. Set it before any report.
  virtual void on_cancel(std::function<void()> listener) = 0;
  /// Waits some seconds at most until all of it is kept. Errors: `unavailable`.
  [[nodiscard]] virtual Result<void> end(Outcome outcome) = 0;
};

}  // namespace watchdog::monitor
