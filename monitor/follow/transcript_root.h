/// \file
/// The agents whose transcripts are followed, and where each keeps them.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "ingest/transcript.h"

namespace watchdog::monitor {

/// How an agent keeps its transcripts. A plain value.
struct TranscriptPlace {
  TranscriptAgent agent;
  const char* variable;  ///< Names a folder of the agent,
  const char* within;    ///< within which is this one.
  const char* at_home;   ///< Without the variable: the folder within the home directory.
  int folders_deep = 0;  ///< Levels of folders that are looked into.
  /// An answer may be the last one of its turn, or calls may follow it: some agents write both in
  /// the same way. It is the last one after this time without a line. 0: the lines of the agent say
  /// it.
  std::chrono::seconds rests_after{0};
};

/// The table of all agents whose transcripts are followed.
[[nodiscard]] std::span<const TranscriptPlace> transcript_places();
[[nodiscard]] const TranscriptPlace& transcript_place(TranscriptAgent agent);

/// Returns the directory of the agent's transcripts for this user, by the agent's own environment
/// variable, else below the home directory. It need not exist. Empty: neither is set.
[[nodiscard]] std::filesystem::path transcript_root(TranscriptAgent agent);

/// True if the path is below the directory of an agent's transcripts, as it is written.
[[nodiscard]] bool is_in_transcripts(const std::filesystem::path& path);

/// The form of a file within an agent's directory.
enum class TranscriptForm : std::uint8_t {
  none,
  lines,    ///< Lines are appended to it.
  whole,    ///< It is one JSON value, and is written again with each change.
  database  ///< See OpencodeLog.
};

/// Returns what a file is by its name and the names of its folders.
[[nodiscard]] TranscriptForm transcript_form(TranscriptAgent agent,
                                             const std::filesystem::path& file);

}  // namespace watchdog::monitor
