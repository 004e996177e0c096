#include "follow/transcript_root.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>

namespace watchdog::monitor {
namespace {

constexpr TranscriptPlace places[] = {
    {TranscriptAgent::claude_code, "CLAUDE_CONFIG_DIR", "projects", ".claude/projects", 6},
    {TranscriptAgent::codex, "CODEX_HOME", "sessions", ".codex/sessions", 6,
     std::chrono::seconds{6}},
    // A message is written with its calls when these are over.
    {TranscriptAgent::gemini_cli, "GEMINI_CLI_HOME", ".gemini/tmp", ".gemini/tmp", 3,
     std::chrono::seconds{60}},
    {TranscriptAgent::opencode, "XDG_DATA_HOME", "opencode", ".local/share/opencode", 0,
     std::chrono::seconds{6}},
};
static_assert(std::size(places) == std::size(Names<TranscriptAgent>::all));

std::string variable_text(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing sets it
  return value == nullptr ? "" : value;
}

/// A chat, or in a folder with its parent's name that of a subagent.
TranscriptForm gemini_form(const std::filesystem::path& file) {
  const auto name = file.filename().string();
  const auto folder = file.parent_path();
  const bool is_chat = folder.filename() == "chats" && name.starts_with("session-");
  if (is_chat && name.ends_with(".json")) return TranscriptForm::whole;
  const bool is_subagent = folder.parent_path().filename() == "chats";
  return (is_chat || is_subagent) && name.ends_with(".jsonl") ? TranscriptForm::lines
                                                              : TranscriptForm::none;
}

}  // namespace

std::span<const TranscriptPlace> transcript_places() {
  return places;
}

const TranscriptPlace& transcript_place(TranscriptAgent agent) {
  return *std::ranges::find(places, agent, &TranscriptPlace::agent);
}

std::filesystem::path transcript_root(TranscriptAgent agent) {
  const auto& place = transcript_place(agent);
  if (const auto own = variable_text(place.variable); !own.empty())
    return std::filesystem::path(own) / place.within;
  const auto home = variable_text("HOME");
  return home.empty() ? std::filesystem::path() : std::filesystem::path(home) / place.at_home;
}

bool is_in_transcripts(const std::filesystem::path& path) {
  const auto plain = path.lexically_normal().string();
  return std::ranges::any_of(places, [&](const TranscriptPlace& place) {
    const auto root = transcript_root(place.agent).lexically_normal().string();
    return !root.empty() && plain.starts_with(root + "/");
  });
}

TranscriptForm transcript_form(TranscriptAgent agent, const std::filesystem::path& file) {
  const auto name = file.filename().string();
  switch (agent) {
    case TranscriptAgent::claude_code:
      return name.ends_with(".jsonl") ? TranscriptForm::lines : TranscriptForm::none;
    case TranscriptAgent::codex:
      return name.ends_with(".jsonl") && name.starts_with("rollout-") ? TranscriptForm::lines
                                                                      : TranscriptForm::none;
    case TranscriptAgent::gemini_cli:
      return gemini_form(file);
    case TranscriptAgent::opencode:
      // Versions that are not the usual one have their names in it.
      return name.starts_with("opencode") && name.ends_with(".db") ? TranscriptForm::database
                                                                   : TranscriptForm::none;
  }
  return TranscriptForm::none;
}

}  // namespace watchdog::monitor
