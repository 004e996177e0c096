/// \file
/// The file in which tasks survive the end of the monitor.
#pragma once

#include <filesystem>
#include <vector>

#include "mcp/rpc.h"

namespace watchdog::monitor::mcp {

/// Reads one JSON object per line; other lines are left out. A missing file has none. Errors: those
/// of read_regular_file() for a file that only its owner may read, but `not_found`.
[[nodiscard]] Result<std::vector<json>> read_task_file(const std::filesystem::path& path);

/// Replaces the file, which only its owner may read. A crash leaves the former or the new one.
/// Errors: `unavailable`.
[[nodiscard]] Result<void> write_task_file(const std::filesystem::path& path,
                                           const std::vector<json>& lines);

}  // namespace watchdog::monitor::mcp
