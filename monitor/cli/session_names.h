/// \file
/// The sessions of a monitor, as people know them.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/endpoint.h"
#include "watchdog/result.h"

namespace watchdog::monitor {

/// The newest sessions by their ids. A plain value.
class SessionNames {
 public:
  /// Errors: those of Endpoint::ask.
  [[nodiscard]] static Result<SessionNames> read(Endpoint& endpoint);

  /// See `title_in`. `–` of a session that is not among the newest.
  [[nodiscard]] std::string title_of(const std::string& session) const;
  /// See `id_in`.
  [[nodiscard]] std::string id_of(const std::string& session) const;

 private:
  std::map<std::string, nlohmann::json> rows_;
};

/// Asks for the newest sessions, as many as one answer has. Errors: those of Endpoint::ask.
[[nodiscard]] Result<nlohmann::json> newest_sessions(Endpoint& endpoint);

}  // namespace watchdog::monitor
