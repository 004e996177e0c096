/// \file
/// Time limits of MCP clients for calls of tools, and where their files set them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog::monitor {

/// Whether progress of a tool starts a limit again.
enum class ResetBy : std::uint8_t { unknown, nothing, progress };

/// A limit as the client's sources or documentation have it. A plain value; the texts live as long
/// as the program.
struct ToolLimit {
  std::string_view client;   ///< As `hooks install` names it.
  std::string_view of;       ///< The effect of the limit.
  std::string_view setting;  ///< A variable, or a member of the client's file.
  Millis usual{};
  ResetBy reset = ResetBy::unknown;
};
/// All that are known.
[[nodiscard]] std::span<const ToolLimit> tool_limits() noexcept;

/// A limit that a file sets. A plain value.
struct SetLimit {
  std::string setting{};  ///< As `ToolLimit::setting`.
  std::string server{};   ///< Name of the tool server; empty: all.
  Millis value{};
};
/// Returns the limits that a file of this client sets. A file that cannot be read sets none. Pure.
[[nodiscard]] std::vector<SetLimit> limits_set_in(std::string_view client, std::string_view text);

}  // namespace watchdog::monitor

namespace watchdog {
template <>
struct Names<monitor::ResetBy> {
  static constexpr std::string_view all[] = {"unknown", "nothing", "progress"};
};
}  // namespace watchdog
