/// \file
/// What is known about a session before it says anything.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "watchdog/content.h"
#include "watchdog/policy.h"
#include "watchdog/report.h"

namespace watchdog {

/// How a session is created. Every field is optional. A plain value.
struct SessionSpec {
  std::string parent;  ///< Session id of the parent; it need not exist yet.
  std::string agent;   ///< Name of the program or kind of agent.
  std::string task;    ///< What it is to do, for people.
  std::map<std::string, std::string> labels;
  PolicyPatch policy;  ///< On top of the defaults.
  ContentLevel content = ContentLevel::preview;
  std::optional<ProcessFacts> process;
};

inline constexpr std::size_t labels_max = 64;
inline constexpr std::size_t label_bytes_max = 256;
inline constexpr std::size_t task_bytes_max = 4'096;

/// Errors: `invalid`, naming the field.
[[nodiscard]] Result<void> check(const SessionSpec& spec);

/// Facts about this very process.
[[nodiscard]] ProcessFacts this_process();

/// True if the process of these facts still runs on this machine; nothing where that cannot be
/// known from here (another machine or boot, no pid). A zombie does not run.
[[nodiscard]] std::optional<bool> is_running(const ProcessFacts& process);

}  // namespace watchdog
