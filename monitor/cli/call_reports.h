/// \file
/// Reports of many sessions on their way to a monitor, or to a database file.
#pragma once

#include <cstdint>
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

  /// The part of a report in the proxy's own session.
  enum class Part : std::uint8_t {
    begin,  ///< Sent once, before the first call that stays there.
    call,
    call_end,
    rest,  ///< No call is open. Sent if there was one since the last rest.
    end    ///< Sent if it has begun.
  };
  /// A plain value.
  struct Own {
    Part part = Part::call;
    std::string call{};
    std::string trace{};  ///< That the call is part of; empty: none is known.
  };
  /// The same for `session`, the proxy's own. A call goes to another session if the monitor knows
  /// one for its trace when the first report of the call is sent; all its reports go there.
  void add_own(const std::string& session, const SessionSpec& spec, Report report, Own own);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace watchdog::monitor
