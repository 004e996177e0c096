#include "follow/transcript_root.h"

#include <cstdlib>
#include <string>

namespace watchdog::monitor {
namespace {

std::string variable_text(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing sets it
  return value == nullptr ? "" : value;
}

}  // namespace

std::filesystem::path transcript_root(TranscriptAgent agent) {
  const bool is_claude = agent == TranscriptAgent::claude_code;
  const std::filesystem::path below = is_claude ? "projects" : "sessions";
  if (const auto own = variable_text(is_claude ? "CLAUDE_CONFIG_DIR" : "CODEX_HOME"); !own.empty())
    return std::filesystem::path(own) / below;
  const auto home = variable_text("HOME");
  if (home.empty()) return {};
  return std::filesystem::path(home) / (is_claude ? ".claude" : ".codex") / below;
}

bool is_in_transcripts(const std::filesystem::path& path) {
  const auto plain = path.lexically_normal().string();
  for (const auto agent : {TranscriptAgent::claude_code, TranscriptAgent::codex}) {
    const auto root = transcript_root(agent).lexically_normal().string();
    if (!root.empty() && plain.starts_with(root + "/")) return true;
  }
  return false;
}

}  // namespace watchdog::monitor
