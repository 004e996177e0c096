#include "cli/tool_limit_survey.h"

#include <algorithm>
#include <filesystem>

#include "cli/agent_survey.h"
#include "cli/endpoint.h"
#include "setup/config_file.h"
#include "setup/mcp_setup.h"
#include "terminal/output.h"
#include "terminal/table.h"
#include "watchdog/terminal_text.h"

namespace watchdog::monitor {
namespace {

struct PlacedLimit {
  SetLimit set;
  std::string place;
};

/// Adds the limits of a file; returns true if it exists.
bool add_limits_of(const AgentSetup& client, const std::filesystem::path& path,
                   std::vector<PlacedLimit>& found) {
  if (path.empty()) return false;
  const auto file = read_config(path);
  if (!file || !file->exists) return false;
  for (auto& set : limits_set_in(client.name, file->text))
    found.push_back({std::move(set), path.string()});
  return true;
}

std::string in_seconds(Millis time) {
  const auto ms = time.count();
  if (ms % 1'000 != 0) return std::to_string(ms) + " ms";
  return ms >= 86'400'000 ? std::to_string(ms / 3'600'000) + " h"
                          : std::to_string(ms / 1'000) + " s";
}

std::string reset_in_words(ResetBy reset) {
  return reset == ResetBy::progress ? "yes" : reset == ResetBy::nothing ? "no" : "unknown";
}

}  // namespace

std::vector<PresentLimit> survey_tool_limits() {
  std::vector<PresentLimit> present;
  for (const auto& client : mcp_setups()) {
    std::vector<PlacedLimit> found;
    const auto list = user_file_of(client);
    bool is_set_up = add_limits_of(client, list, found);
    // The settings of Claude Code are not in its list of servers.
    if (const auto* agent = setup_of(client.name))
      if (const auto settings = user_file_of(*agent); settings != list)
        is_set_up |= add_limits_of(client, settings, found);
    is_set_up |= !found_program(client.programs).empty();
    if (!is_set_up) continue;
    for (const auto& limit : tool_limits()) {
      if (limit.client != client.name) continue;
      const std::string setting(limit.setting);
      const auto variable = setting.starts_with("MCP_") || setting.starts_with("CLAUDE_")
                                ? environment(setting.c_str())
                                : std::string();
      bool is_set = false;
      for (const auto& [set, place] : found) {
        if (set.setting != setting) continue;
        present.push_back({limit, set.server, set.value, place});
        is_set = true;
      }
      if (is_set) continue;
      if (const auto set =
              limits_set_in(client.name, "{\"env\": {\"" + setting + "\": \"" + variable + "\"}}");
          !variable.empty() && !set.empty()) {
        present.push_back({limit, "", set.front().value, "$" + setting});
      } else {
        present.push_back({limit, "", {}, ""});
      }
    }
  }
  return present;
}

void print_tool_limits() {
  const auto limits = survey_tool_limits();
  if (limits.empty()) return;
  print_line("\nTime limits of MCP clients for calls of tools");
  Table table({"CLIENT", "SERVER", "LIMIT", "NOW", "RESET BY PROGRESS", "SET BY"});
  for (const auto& present : limits)
    table.add({std::string(present.limit.client),
               present.server.empty() ? "all" : terminal_line(present.server),
               std::string(present.limit.setting) + ": " + std::string(present.limit.of),
               in_seconds(present.value.value_or(present.limit.usual)),
               reset_in_words(present.limit.reset),
               present.place.empty() ? "default" : terminal_line(present.place)});
  print(table.text(terminal_width()));
  print_line("`watchdog-monitor mcp-proxy` gives up calls that do not move, before such a limit.");
}

void write_tool_limits(JsonWriter& out) {
  out.key("toolLimits").open_array();
  for (const auto& limit : tool_limits()) {
    out.open_object().field("client", limit.client).field("setting", limit.setting);
    out.field("then", limit.of).field("defaultMs", limit.usual.count());
    out.field("resetBy", name_of(limit.reset)).close_object();
  }
  out.close_array().key("toolLimitsHere").open_array();
  for (const auto& present : survey_tool_limits()) {
    out.open_object().field("client", present.limit.client);
    out.field("setting", present.limit.setting).key("server");
    present.server.empty() ? out.value(nullptr) : out.value(present.server);
    out.field("ms", present.value.value_or(present.limit.usual).count()).key("setBy");
    present.place.empty() ? out.value(nullptr) : out.value(present.place);
    out.close_object();
  }
  out.close_array();
}

}  // namespace watchdog::monitor
