#include "cli/agent_survey.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "cli/endpoint.h"
#include "follow/transcript_root.h"
#include "setup/config_file.h"

namespace watchdog::monitor {
namespace {

namespace fs = std::filesystem;

/// The variables by which an agent exports telemetry or uses another base URL.
struct SurveyRow {
  std::string_view agent;
  const char* telemetry;        ///< A variable; null: none is known.
  const char* base_url;         ///< Likewise.
  const char* protocol;         ///< Likewise, of telemetry.
  bool has_grpc_usual = false;  ///< Without that variable it exports over gRPC.
};
constexpr SurveyRow survey_rows[] = {
    {"claude-code", "CLAUDE_CODE_ENABLE_TELEMETRY", "ANTHROPIC_BASE_URL",
     "OTEL_EXPORTER_OTLP_PROTOCOL"},
    {"codex", nullptr, "OPENAI_BASE_URL", nullptr},
    {"gemini-cli", "GEMINI_TELEMETRY_ENABLED", "GOOGLE_GEMINI_BASE_URL",
     "GEMINI_TELEMETRY_OTLP_PROTOCOL", true},
    {"opencode", "OTEL_EXPORTER_OTLP_ENDPOINT", nullptr, "OTEL_EXPORTER_OTLP_PROTOCOL"},
    {"copilot-cli", "COPILOT_OTEL_ENABLED", nullptr, "OTEL_EXPORTER_OTLP_PROTOCOL"},
};

bool is_on(const std::string& value) {
  return !value.empty() && value != "0" && value != "false";
}

bool exports_by_grpc(const SurveyRow& row) {
  if (row.protocol == nullptr) return false;
  const auto protocol = environment(row.protocol);
  return protocol.empty() ? row.has_grpc_usual : protocol == "grpc";
}

/// Codex reads `[otel]` from its own file.
void survey_codex(const fs::path& hooks_file, AgentSurvey& agent) {
  const auto config = read_config(hooks_file.parent_path() / "config.toml");
  if (!config) return;
  agent.has_telemetry = ("\n" + config->text).find("\n[otel") != std::string::npos;
  agent.uses_grpc = agent.has_telemetry && config->text.find("otlp-grpc") != std::string::npos;
}

std::string transcripts_of(std::string_view name) {
  const auto agent = named<TranscriptAgent>(name);
  if (!agent) return {};
  const auto root = transcript_root(*agent);
  std::error_code missing;
  return !root.empty() && fs::is_directory(root, missing) ? root.string() : std::string();
}

}  // namespace

std::string found_program(std::span<const std::string_view> names) {
  const auto path = environment("PATH");
  for (const auto name : names) {
    for (std::size_t begin = 0; begin <= path.size();) {
      const auto end = std::min(path.find(':', begin), path.size());
      const auto file = fs::path(path.substr(begin, end - begin)) / name;
      if (end > begin && access(file.c_str(), X_OK) == 0) return file.string();
      begin = end + 1;
    }
  }
  return {};
}

fs::path user_file_of(const AgentSetup& agent) {
  if (!agent.home_variable.empty())
    if (const auto own = environment(std::string(agent.home_variable).c_str()); !own.empty())
      return fs::path(own) / agent.user_file;
  const auto home = environment("HOME");
  return home.empty() ? fs::path() : fs::path(home) / agent.home / agent.user_file;
}

std::vector<AgentSurvey> survey_agents() {
  std::vector<AgentSurvey> agents;
  for (const auto& setup : agent_setups()) {
    AgentSurvey agent{.name = std::string(setup.name), .program = found_program(setup.programs)};
    const auto path = user_file_of(setup);
    if (const auto file = read_config(path); file && file->exists) {
      if (const auto hooks = hooks_in(setup, file->text, {.server = "http://127.0.0.1:3000"})) {
        agent.hooks = static_cast<std::int64_t>(hooks->reporting.size());
        agent.server = hooks->server;
      }
    }
    const auto* row = std::ranges::find(survey_rows, setup.name, &SurveyRow::agent);
    if (row != std::end(survey_rows)) {
      if (row->telemetry != nullptr) agent.has_telemetry = is_on(environment(row->telemetry));
      agent.uses_grpc = agent.has_telemetry && exports_by_grpc(*row);
      if (row->base_url != nullptr) agent.base_url = environment(row->base_url);
    }
    if (setup.name == "codex") survey_codex(path, agent);
    agent.transcripts = transcripts_of(setup.name);
    agents.push_back(std::move(agent));
  }
  return agents;
}

}  // namespace watchdog::monitor
