/// \file
/// Collects the facts about a session that a bundle shows.
#pragma once

#include <stop_token>
#include <string>

#include "bundle/bundle.h"
#include "core/backend.h"
#include "store/store_reader.h"

namespace watchdog::monitor {

/// Where the agent of a session runs, as far as this monitor knows. A plain value.
struct AgentPlace {
  ProcessFacts process{};  ///< `pid` 0: none is known.
  bool is_here = false;    ///< It runs, or ran, on this machine since it started.
  bool is_found = false;   ///< The monitor found the process itself; nobody only named it.
  std::string folder{};    ///< The folder that the session names; empty: none.
};
/// Without the folder.
[[nodiscard]] AgentPlace agent_process(const Watched& watched);
[[nodiscard]] AgentPlace agent_place(const SessionRow& row, const Watched& watched);

/// Returns what the store has of the session. Use from the reader's thread. Errors: as of the
/// reader.
[[nodiscard]] Result<BundleFacts> stored_facts(Backend& backend, StoreReader& reader,
                                               const SessionRow& row, const Watched& watched);

/// Adds what this machine shows now: the agent's processes and, with `asks_git`, what git says
/// about the folder. Git is asked only if the monitor found the agent's process itself and the
/// process belongs to this monitor's user. May wait, see look_with_git(). Thread-safe.
void add_present_facts(BundleFacts& facts, const AgentPlace& place, bool asks_git,
                       const std::stop_token& stop);

}  // namespace watchdog::monitor
