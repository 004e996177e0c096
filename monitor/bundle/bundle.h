/// \file
/// The evidence bundle: what is known of one session, as files that a person can read and send.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bundle/git_look.h"
#include "bundle/kept_looks.h"
#include "bundle/tar.h"
#include "facts/process.h"
#include "watchdog/time.h"

namespace watchdog::monitor {

/// The newest events of a bundle, and their bytes.
inline constexpr std::size_t bundle_events_max = 1'000;
inline constexpr std::size_t bundle_events_bytes_max = 2 * 1024 * 1024;
/// The newest changes of health of a bundle, and events that prove them.
inline constexpr std::size_t bundle_changes_max = 50;
inline constexpr std::size_t bundle_proofs_max = 200;

/// The facts about a session that a bundle shows. Texts may be any bytes. A plain value.
struct BundleFacts {
  std::string session{};              ///< Its id.
  std::string document{};             ///< The progress document.
  std::string explanation{};          ///< The changes of health with their proof, as JSON.
  std::vector<std::string> events{};  ///< As JSON, the oldest first.
  bool has_earlier_events = false;    ///< Events before these are kept.
  std::optional<ProcessTree> processes{};
  std::string processes_missing{};  ///< Why there are none, as a sentence.
  GitLook git{};
  KeptLook kept{};        ///< Of the moment when it got into trouble.
  KeptLook server{};      ///< Of its model server when that hung, by the owner's program.
  std::string version{};  ///< Of this program.
  WallTime at{};          ///< When these facts were true.
};

/// Adds the looks that are kept of its session.
void add_looks(BundleFacts& facts, const KeptLooks& looks);

/// Returns the files of a bundle: `README.md`, `session.json`, `explain.json`, `events.jsonl`,
/// `processes.txt`, `git.txt` and, if there is such a look, `at-MOMENT.txt` and `server.txt`, in
/// this order. Secrets of well-known shapes are replaced in all of them, and characters that change
/// a terminal in the texts. Older events are left out beyond the bounds. The document's own texts
/// are bounded where they are stored. Pure.
[[nodiscard]] std::vector<NamedFile> bundle_files(const BundleFacts& facts);

/// Returns what the machine shows now, as the text of a look: the processes, and what git says.
/// Empty: it shows neither. `moment`: see KeptLook. Pure.
[[nodiscard]] std::string present_facts_text(const BundleFacts& facts, std::string_view moment);

/// The output of a program that looked at a model server that hangs. Texts may be any bytes. A
/// plain value.
struct ServerLook {
  std::string server{};  ///< Its URL.
  std::int64_t pid = 0;
  std::string process{};               ///< Its name.
  std::vector<std::string> command{};  ///< The program with its arguments.
  std::string end{};                   ///< How it ended, see command_end.
  std::string printed{};
  WallTime at{};  ///< When it began.
};
/// Returns it as the text of a look, without secrets of well-known shapes. Pure.
[[nodiscard]] std::string server_look_text(const ServerLook& look);

/// Returns the archive of these files. Its folder is named after the session. Pure.
[[nodiscard]] std::string bundle_archive(const BundleFacts& facts);

/// Returns `watchdog-FOLDER-SHORTID.tar`; without the folder if it is not known. Pure.
[[nodiscard]] std::string bundle_file_name(std::string_view folder, std::string_view session);

/// Returns the command that continues the session in its agent's own terminal. Nothing, unless the
/// id was read in the agent's own files, and the agent can continue a session by its id. `document`
/// is the progress document. Pure.
[[nodiscard]] std::optional<std::string> resume_command(const std::string& document);

}  // namespace watchdog::monitor
