/// \file
/// Where an agent keeps its transcripts.
#pragma once

#include <filesystem>

#include "ingest/transcript.h"

namespace watchdog::monitor {

/// Returns the directory of the agent's transcripts for this user, by the agent's own environment
/// variable, else below the home directory. It need not exist. Empty: neither is set.
[[nodiscard]] std::filesystem::path transcript_root(TranscriptAgent agent);

/// True if the path is below the directory of an agent's transcripts, as it is written.
[[nodiscard]] bool is_in_transcripts(const std::filesystem::path& path);

}  // namespace watchdog::monitor
