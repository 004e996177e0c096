/// \file
/// The properties with which a session is created.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>

#include "watchdog/policy.h"
#include "watchdog/report.h"

namespace watchdog {

/// How much of arguments, results, data and messages is kept: nothing, digests and size, those and
/// the first 200 characters (the default), or everything. Secrets are removed from what is kept.
/// With `none`, repeated calls cannot be found.
enum class ContentLevel : std::uint8_t { none, digest, preview, full };

template <>
struct Names<ContentLevel> {
  static constexpr std::string_view all[] = {"none", "digest", "preview", "full"};
};

/// How a session is created. Every field is optional. A plain value.
struct SessionSpec {
  std::string parent{};  ///< Session id of the parent; it need not exist yet.
  std::string agent{};   ///< Name of the program or kind of agent.
  std::string task{};    ///< The task, for people.
  std::string title{};   ///< Its name for people, one line. Empty: see title_of().
  std::map<std::string, std::string> labels{};   ///< Names and values for people and filters.
  PolicyPatch policy{};                          ///< On top of the defaults.
  ContentLevel content = ContentLevel::preview;  ///< How much of texts is stored.
  std::optional<ProcessFacts> process{};         ///< The process that runs it; empty: unknown.
};

inline constexpr std::size_t labels_max = 64;  ///< Labels of a session, at most.
inline constexpr std::size_t label_bytes_max =
    256;  ///< Bytes of a label's key, and of its value, at most.
inline constexpr std::size_t task_bytes_max = 4'096;  ///< Bytes of a task, at most.
inline constexpr std::size_t title_chars_max = 120;   ///< Characters of a title, at most.

/// Errors: `invalid`, naming the field.
[[nodiscard]] Result<void> check(const SessionSpec& spec);

/// Returns the default database: `$WATCHDOG_DB`, else `$XDG_STATE_HOME/watchdog/watchdog.db`, else
/// `~/.local/state/watchdog/watchdog.db`. Thread-safe.
[[nodiscard]] std::filesystem::path default_database();

/// Returns the facts about this process.
[[nodiscard]] ProcessFacts this_process();

/// Returns true if the process still runs on this machine; nothing if that cannot be known here
/// (another machine or boot, no pid). A zombie does not run.
[[nodiscard]] std::optional<bool> is_running(const ProcessFacts& process);

}  // namespace watchdog
