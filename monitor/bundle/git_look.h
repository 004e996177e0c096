/// \file
/// What git says about the folder of a session: which files changed, and by how many lines.
#pragma once

#include <filesystem>
#include <stop_token>
#include <string>

#include "watchdog/time.h"

namespace watchdog::monitor {

/// Bytes of each of git's two answers, and the time for all questions together.
inline constexpr std::size_t git_bytes_max = 64 * 1024;
inline constexpr Millis git_time_max{5'000};

/// A plain value.
struct GitLook {
  std::string missing{};  ///< Why there is nothing, as a sentence. Empty: the rest is known.
  std::string commit{};   ///< The one that is checked out; empty: nothing was committed.
  std::string branch{};   ///< Empty: none is checked out.
  std::string status{};   ///< As of `git status --porcelain`: names of files, no contents.
  std::string stat{};     ///< As of `git diff --stat`.
};

/// Asks git about the repository that the folder is in, and changes nothing in it.
///
/// A repository may be hostile: its settings name programs. Git reads none of them here, and no
/// program but git runs: no hook, filter, monitor of files, converter or pager, and nothing is
/// fetched. So files that a filter converts, such as those of Git LFS, may be listed as changed.
/// Submodules are left out. Folder and repository must belong to this process's user. Waits for git
/// at most `git_time_max`, and ends it at a stop. Thread-safe.
[[nodiscard]] GitLook look_with_git(const std::filesystem::path& folder,
                                    const std::stop_token& stop);

}  // namespace watchdog::monitor
