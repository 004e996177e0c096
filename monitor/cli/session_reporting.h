/// \file
/// The two ways in which a command reports about a session: into a file, or to a monitor.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "cli/endpoint.h"
#include "watchdog/session.h"
#include "wrapper/reporting.h"

namespace watchdog::monitor {

/// Which session, and how it is made if it is not there. A plain value.
struct ReportedSession {
  std::string id;
  SessionSpec spec;
};

/// The longest wait for its end.
inline constexpr Millis end_wait_max{2'000};

/// Into a database, which agents and a monitor share.
[[nodiscard]] std::unique_ptr<Reporting> report_to_file(const ReportedSession& session,
                                                        const std::filesystem::path& database);
/// To a monitor, which may be away: what is said meanwhile waits in memory, at most 8 MiB of it,
/// and is sent later, once.
[[nodiscard]] std::unique_ptr<Reporting> report_to_server(const ReportedSession& session,
                                                          Endpoint endpoint);

}  // namespace watchdog::monitor
