// Prints what makes an agent export its telemetry to a monitor. `setups` has the lines of each
// agent; `{url}` in them becomes the monitor's URL. Two forms are needed: variables for a shell,
// and a piece of the agent's own configuration file. Nothing is written and no monitor is asked,
// so the command also works before the monitor runs.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/usage.h"
#include "terminal/output.h"

namespace watchdog::monitor {

using nlohmann::json;

namespace {

struct EnvOptions {
  Endpoint::Options endpoint;
  std::string agent;
  bool json = false;
};

struct Variable {
  std::string_view name;
  std::string_view value;
};

struct Setup {
  std::string_view agent;
  std::span<const Variable> variables;
  std::string_view file;  ///< Its configuration file; empty: variables are enough.
  std::string_view text;  ///< The piece to put into the file.
};

constexpr Variable of_claude_code[] = {
    {"CLAUDE_CODE_ENABLE_TELEMETRY", "1"},    {"OTEL_LOGS_EXPORTER", "otlp"},
    {"OTEL_METRICS_EXPORTER", "none"},        {"OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"},
    {"OTEL_EXPORTER_OTLP_ENDPOINT", "{url}"}, {"OTEL_LOG_TOOL_DETAILS", "1"}};
constexpr Variable of_gemini_cli[] = {{"GEMINI_TELEMETRY_ENABLED", "1"},
                                      {"GEMINI_TELEMETRY_OTLP_PROTOCOL", "http"},
                                      {"GEMINI_TELEMETRY_OTLP_ENDPOINT", "{url}"}};
constexpr Variable of_copilot[] = {{"COPILOT_OTEL_ENABLED", "true"},
                                   {"OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"},
                                   {"OTEL_EXPORTER_OTLP_ENDPOINT", "{url}"}};
constexpr Variable of_opencode[] = {{"OTEL_EXPORTER_OTLP_ENDPOINT", "{url}"}};

constexpr Setup setups[] = {
    {"claude-code", of_claude_code, {}, {}},
    {"codex",
     {},
     "~/.codex/config.toml",
     "[otel]\n"
     "exporter = { otlp-http = { endpoint = \"{url}/v1/logs\", protocol = \"json\" } }\n"},
    {"gemini-cli", of_gemini_cli, {}, {}},
    {"copilot", of_copilot, {}, {}},
    {"vscode", of_copilot, {}, {}},
    {"opencode", of_opencode, "~/.config/opencode/opencode.json",
     "{\"experimental\": {\"openTelemetry\": true}}\n"}};

std::vector<std::string> agents() {
  std::vector<std::string> names;
  for (const auto& setup : setups) names.emplace_back(setup.agent);
  return names;
}

std::string with_url(std::string_view text, const std::string& url) {
  constexpr std::string_view place = "{url}";
  std::string made(text);
  if (const auto at = made.find(place); at != std::string::npos)
    made.replace(at, place.size(), url);
  return made;
}

int env(const EnvOptions& options) {
  auto url = options.endpoint.server;
  if (url.empty()) {
    return complain(
        {ErrorCode::invalid, "a database file takes no telemetry; name a monitor with --server"});
  }
  if (const auto client = MonitorClient::to(url, {}); !client) return complain(client.error());
  while (url.ends_with('/')) url.pop_back();
  const auto& setup = *std::ranges::find(setups, options.agent, &Setup::agent);
  json variables = json::object();
  std::string text;
  for (const auto& variable : setup.variables) {
    const auto value = with_url(variable.value, url);
    variables[std::string(variable.name)] = value;
    text += "export " + std::string(variable.name) + "=" + shell_word(value) + "\n";
  }
  const auto piece = with_url(setup.text, url);
  if (options.json) {
    json shown{{"agent", setup.agent}, {"server", url}, {"variables", variables}};
    shown["file"] = setup.file.empty() ? json(nullptr) : json(setup.file);
    shown["text"] = piece.empty() ? json(nullptr) : json(piece);
    print_json(shown.dump());
    return exit_done;
  }
  if (!setup.file.empty()) text += "# Put this into " + std::string(setup.file) + ":\n" + piece;
  print(text);
  if (!is_loopback_url(url)) {
    warn(
        "a monitor on another machine needs a token: set OTEL_EXPORTER_OTLP_HEADERS to "
        "\"Authorization=Bearer TOKEN\"");
  }
  return exit_done;
}

}  // namespace

void add_env(CommandLine& line) {
  const auto options = std::make_shared<EnvOptions>();
  auto* command = line.app.add_subcommand(
      "env", "Print what makes an agent export OpenTelemetry to the monitor");
  command->add_option("agent", options->agent, "Agent to set up")
      ->required()
      ->check(one_of("agent", agents()));
  command->add_flag("--json", options->json, "Print one object (JSON)");
  add_endpoint(*command, options->endpoint);
  command->callback([&line, options] { line.code = env(*options); });
}

}  // namespace watchdog::monitor
