/// \file
/// Where an agent keeps its transcripts.
#pragma once

#include <filesystem>

#include "ingest/transcript.h"

namespace watchdog::monitor {

/// Returns the directory of the agent's transcripts for this user, by the agent's own environment
/// variable, else below the home directory. It need not exist. Empty: neither is set.
[[nodiscard]] std::filesystem::path transcript_root(TranscriptAgent agent);

}  // namespace watchdog::monitor
