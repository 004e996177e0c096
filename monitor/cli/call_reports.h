/// \file
/// Reports of many sessions on their way to a monitor, or to a database file.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "cli/endpoint.h"
#include "watchdog/report.h"
#include "watchdog/session.h"

namespace watchdog::monitor {

/// Sends from a thread of its own. Nobody waits for it: what the monitor does not take is kept in
/// memory, at most 8 MiB of it, and sent later, once. Thread-safe.
class CallReports {
 public:
  /// `source`: as the events' route takes it. `complain` gets a sentence when the monitor does not
  /// take reports, once until it does; on the thread.
  CallReports(Endpoint::Options endpoint, std::string source,
              std::function<void(const std::string&)> complain);
  /// Waits two seconds at most until everything is sent.
  ~CallReports();
  CallReports(const CallReports&) = delete;
  CallReports& operator=(const CallReports&) = delete;

  /// `spec`: of the session, if it does not exist.
  void add(const std::string& session, const SessionSpec& spec, Report report);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace watchdog::monitor
