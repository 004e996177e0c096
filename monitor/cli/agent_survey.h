/// \file
/// Which coding agents this user has, and by which ways each of them is set up to report.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "setup/hook_setup.h"

namespace watchdog::monitor {

/// Returns the first of these programs that is on the PATH; empty: none is.
[[nodiscard]] std::string found_program(std::span<const std::string_view> names);
/// Returns the agent's file of this user that hooks are installed into; empty: HOME is not set.
[[nodiscard]] std::filesystem::path user_file_of(const AgentSetup& agent);

/// One agent. A plain value.
struct AgentSurvey {
  std::string name{};
  std::string program{};       ///< On the PATH; empty: not found.
  std::int64_t hooks = 0;      ///< Events in the user's own file with a hook for a monitor.
  std::string server{};        ///< Of the first of them.
  bool has_telemetry = false;  ///< By the environment of this process, or the agent's file.
  bool uses_grpc = false;      ///< Its telemetry cannot reach the monitor.
  std::string base_url{};      ///< Of its model, in the environment of this process; empty: none.
  std::string
      transcripts{};  ///< The folder with its transcripts; empty: none, or not readable here.
};

/// Looks at files and the environment. Nothing is changed and no program is started.
[[nodiscard]] std::vector<AgentSurvey> survey_agents();

}  // namespace watchdog::monitor
