/// \file
/// Which hangs of model servers the owner's program still has to look at. Pure: no clock, no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "watchdog/report.h"

namespace watchdog::monitor {

/// Identifies a process: its number, and when it started.
using ProcessId = std::pair<std::int64_t, std::int64_t>;

/// Servers are named by their URLs, requests as reports name them. Use from one thread at a time.
class HangBook {
 public:
  static constexpr std::size_t requests_max = 256;  ///< Of a server; others are not looked at.
  static constexpr int rounds_max = 20;  ///< So often a request is waited for that no session has.

  /// The newest state of a request there.
  void found(const std::string& server, const std::string& request, ServerState state);
  /// Returns the requests that hang and were not handled, by server.
  [[nodiscard]] std::map<std::string, std::set<std::string>> waiting() const;
  /// Of these requests no session is known yet.
  void wait_for(const std::string& server, const std::set<std::string>& requests);
  void handled(const std::string& server, const std::set<std::string>& requests);

  /// Returns true if the program looked at this process, and nothing there has moved since.
  [[nodiscard]] bool was_looked_at(const std::string& server, ProcessId process) const;
  /// The program looks at it now.
  void looks_at(const std::string& server, ProcessId process);

 private:
  struct Hang {
    int rounds = 0;
    bool is_handled = false;
  };
  struct Server {
    std::map<std::string, Hang> hangs;
    std::optional<ProcessId> seen;
  };
  std::map<std::string, Server> servers_;
};

}  // namespace watchdog::monitor
