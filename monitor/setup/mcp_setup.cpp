// An entry is ours if it has the name `watchdog` and starts a program `watchdog-monitor` with the
// argument `mcp`. Another entry of that name is refused. A list is a member of a JSON document, or
// a table of Codex's TOML file.
// The TOML file is edited by lines. A table ends where the next one begins; lines within a text of
// several lines count as text. Tables below ours (`[mcp_servers.watchdog.tools.x]`) go with it.
#include "setup/mcp_setup.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "setup/jsonc.h"

namespace watchdog::monitor {
namespace {

using Kind = JsoncNode::Kind;
using Words = std::vector<std::string>;

constexpr std::string_view entry_name = "watchdog";
constexpr std::string_view usual_server = "http://127.0.0.1:3000";
constexpr std::string_view toml_table = "mcp_servers.watchdog";

constexpr std::array<std::string_view, 1> mcp_claude{"claude"}, mcp_codex{"codex"},
    mcp_gemini{"gemini"}, mcp_opencode{"opencode"}, mcp_copilot{"copilot"};
constexpr std::array<std::string_view, 2> mcp_cursor{"cursor-agent", "cursor"};

constexpr std::array lists{
    AgentSetup{.name = "claude-code",
               .words = "claude",
               .programs = mcp_claude,
               .form = HookForm::mcp_typed,
               .home_variable = "CLAUDE_CONFIG_DIR",
               .home = "",
               .user_file = ".claude.json",
               .project_file = ".mcp.json",
               .to_do = "Claude Code reads the file when it starts: start it again."},
    AgentSetup{.name = "codex",
               .words = "",
               .programs = mcp_codex,
               .form = HookForm::mcp_toml,
               .home_variable = "CODEX_HOME",
               .home = ".codex",
               .user_file = "config.toml",
               .project_file = ".codex/config.toml",
               .to_do = "Codex reads a project's file only if you trust the project."},
    AgentSetup{.name = "gemini-cli",
               .words = "gemini",
               .programs = mcp_gemini,
               .form = HookForm::mcp_plain,
               .home_variable = "",
               .home = ".gemini",
               .user_file = "settings.json",
               .project_file = ".gemini/settings.json",
               .to_do = ""},
    AgentSetup{.name = "opencode",
               .words = "",
               .programs = mcp_opencode,
               .form = HookForm::mcp_list,
               .home_variable = "XDG_CONFIG_HOME",
               .home = ".config",
               .user_file = "opencode/opencode.json",
               .project_file = "opencode.json",
               .to_do = ""},
    AgentSetup{.name = "cursor",
               .words = "",
               .programs = mcp_cursor,
               .form = HookForm::mcp_plain,
               .home_variable = "",
               .home = ".cursor",
               .user_file = "mcp.json",
               .project_file = ".cursor/mcp.json",
               .to_do = ""},
    AgentSetup{.name = "copilot-cli",
               .words = "copilot",
               .programs = mcp_copilot,
               .form = HookForm::mcp_local,
               .home_variable = "COPILOT_HOME",
               .home = ".copilot",
               .user_file = "mcp-config.json",
               .project_file = ".github/mcp.json",
               .to_do = ""},
};

Error refuse(const std::string& what) {
  return {ErrorCode::invalid, what};
}

std::string member_of(const AgentSetup& agent) {
  return agent.form == HookForm::mcp_list ? "mcp" : "mcpServers";
}

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump();
}

std::string json_list(const Words& words) {
  std::string text = "[";
  for (const auto& word : words) text += (text.size() > 1 ? ", " : "") + json_text(word);
  return text + "]";
}

/// The entry's value.
std::string entry_of(const AgentSetup& agent, const Words& command) {
  const Words arguments(command.begin() + 1, command.end());
  const auto program =
      R"("command": )" + json_text(command.front()) + R"(, "args": )" + json_list(arguments);
  switch (agent.form) {
    case HookForm::mcp_list:
      return R"({"type": "local", "command": )" + json_list(command) + R"(, "enabled": true})";
    case HookForm::mcp_local:
      return R"({"type": "local", )" + program + R"(, "tools": ["*"]})";
    case HookForm::mcp_typed:
      return R"({"type": "stdio", )" + program + "}";
    default:
      return "{" + program + "}";
  }
}

bool is_own(const Words& command) {
  return command.size() >= 2 && command[0].ends_with("watchdog-monitor") && command[1] == "mcp";
}

std::string server_of(const Words& command) {
  const auto named = std::ranges::find(command, "--server");
  return named == command.end() || named + 1 == command.end() ? std::string(usual_server)
                                                              : *(named + 1);
}

void add_texts(const JsoncNode& node, Words& words) {
  if (node.kind == Kind::string) words.push_back(node.text);
  for (const auto& item : node.items) add_texts(item, words);
}

/// An entry of the name `watchdog` in a JSON document.
struct JsonEntry {
  std::vector<std::size_t> place;
  Words command;
  std::string text;
};

Result<std::optional<JsonEntry>> json_entry(const AgentSetup& agent, const JsoncNode& root,
                                            std::string_view text) {
  using Found = std::optional<JsonEntry>;
  if (root.kind == Kind::nothing) return Found();
  if (root.kind != Kind::object) return refuse("the document must be an object");
  const auto* servers = root.find(member_of(agent));
  if (servers == nullptr) return Found();
  if (servers->kind != Kind::object)
    return refuse("\"" + member_of(agent) + "\" must be an object");
  const auto* entry = servers->find(entry_name);
  if (entry == nullptr) return Found();
  JsonEntry found{.place = {static_cast<std::size_t>(servers - root.items.data()),
                            static_cast<std::size_t>(entry - servers->items.data())},
                  .command = {},
                  .text = std::string(text.substr(entry->begin, entry->end - entry->begin))};
  for (const auto* name : {"command", "args"})
    if (const auto* part = entry->find(name)) add_texts(*part, found.command);
  if (is_own(found.command)) return Found(std::move(found));
  return refuse("another MCP server has the name watchdog. Rename it");
}

Result<std::string> with_json(const AgentSetup& agent, std::string text, const HookTarget& target) {
  auto root = parse_jsonc(text);
  if (!root) return root.error();
  const auto value = entry_of(agent, target.mcp_command);
  const auto item = "\"" + std::string(entry_name) + "\": " + value;
  const auto member = "\"" + member_of(agent) + "\": {" + item + "}";
  if (root->kind == Kind::nothing) {
    if (text.find_first_not_of(" \t\r\n") != text.npos && text.back() != '\n') text += "\n";
    return text + "{\n  " + member + "\n}\n";
  }
  const auto* servers = root->find(member_of(agent));
  return servers == nullptr ? with_item(text, *root, member) : with_item(text, *servers, item);
}

// Codex's file.

struct TomlLine {
  std::size_t begin = 0;
  std::size_t end = 0;  ///< Behind its line end.
  std::string_view text;
  bool is_header = false;
};

/// Returns the quotes of a text of several lines that the line leaves open; empty: none.
std::string_view open_quotes(std::string_view line, std::string_view open) {
  for (std::size_t at = 0; at < line.size();) {
    if (!open.empty()) {
      const auto end = line.find(open, at);
      if (end == line.npos) return open;
      at = end + open.size();
      open = {};
      continue;
    }
    if (line[at] == '#') return {};
    for (const std::string_view quotes : {"\"\"\"", "'''"})
      if (line.substr(at).starts_with(quotes)) open = quotes;
    if (!open.empty()) {
      at += open.size();
    } else if (line[at] == '"' || line[at] == '\'') {
      const auto quote = line[at++];
      while (at < line.size() && line[at] != quote) at += quote == '"' && line[at] == '\\' ? 2 : 1;
      ++at;
    } else {
      ++at;
    }
  }
  return open;
}

std::vector<TomlLine> toml_lines(std::string_view text) {
  std::vector<TomlLine> found;
  std::string_view open;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    auto line = text.substr(begin, end - begin);
    while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
    const auto first = line.find_first_not_of(" \t");
    const bool is_header = open.empty() && first != line.npos && line[first] == '[' &&
                           line.find(']', first) != line.npos &&
                           line.find('=') > line.find(']', first);
    found.push_back({begin, end, line, is_header});
    open = open_quotes(line, open);
    begin = end;
  }
  return found;
}

/// Returns the name of a table, without blanks and quotes.
std::string table_name(std::string_view header) {
  std::string name;
  for (const char letter : header.substr(0, header.find(']')))
    if (std::string_view(" \t[\"'").find(letter) == std::string_view::npos) name += letter;
  return name;
}

/// The tables of the entry: their places, and the command in them.
struct TomlEntry {
  std::vector<std::pair<std::size_t, std::size_t>> places{};
  Words command{};
  std::string text{};
};

void add_quoted(std::string_view line, Words& words) {
  const auto read = nlohmann::json::parse("[" + std::string(line) + "]", nullptr, false);
  if (!read.is_array() || read.empty()) return;
  const auto& value = read.front();
  if (value.is_string()) words.push_back(value);
  if (value.is_array())
    for (const auto& word : value)
      if (word.is_string()) words.push_back(word);
}

Result<TomlEntry> toml_entry(std::string_view text) {
  TomlEntry found;
  bool is_ours = false;
  bool is_below = false;
  bool is_servers = false;
  Words program;
  Words arguments;
  for (const auto& line : toml_lines(text)) {
    if (line.is_header) {
      const auto name = table_name(line.text);
      is_below = name.starts_with(std::string(toml_table) + ".");
      is_ours = name == toml_table || is_below;
      is_servers = name == "mcp_servers";
    }
    const auto first = line.text.find_first_not_of(" \t");
    const auto rest = first == line.text.npos ? std::string_view() : line.text.substr(first);
    const bool is_inline =
        !line.is_header && !is_ours &&
        (rest.starts_with("mcp_servers") || (is_servers && rest.starts_with(entry_name)));
    if (is_inline)
      return refuse("its MCP servers are not written as tables. Write [mcp_servers.NAME]");
    if (!is_ours) continue;
    if (!found.places.empty() && found.places.back().second == line.begin) {
      found.places.back().second = line.end;
    } else {
      found.places.emplace_back(line.begin, line.end);
    }
    found.text += std::string(line.text) + "\n";
    const auto equals = line.text.find('=');
    if (is_below || line.is_header || equals == line.text.npos) continue;
    const auto value = line.text.substr(equals + 1);
    if (rest.starts_with("command")) add_quoted(value, program);
    if (rest.starts_with("args")) add_quoted(value, arguments);
  }
  found.command = program;
  found.command.insert(found.command.end(), arguments.begin(), arguments.end());
  if (!found.places.empty() && !is_own(found.command))
    return refuse("another MCP server has the name watchdog. Rename it");
  return found;
}

std::string toml_text(const Words& command, std::string_view line_end) {
  const Words arguments(command.begin() + 1, command.end());
  const std::string end(line_end);
  return "[" + std::string(toml_table) + "]" + end + "command = " + json_text(command.front()) +
         end + "args = " + json_list(arguments) + end;
}

std::string_view line_end_of(std::string_view text) {
  return text.find("\r\n") == text.npos ? "\n" : "\r\n";
}

std::string with_toml(std::string text, const HookTarget& target) {
  const auto line_end = std::string(line_end_of(text));
  if (!text.empty() && text.back() != '\n') text += line_end;
  if (!text.empty()) text += line_end;
  return text + toml_text(target.mcp_command, line_end);
}

/// Also takes the blank line that with_toml() puts before the table.
std::string without_toml(std::string text, const TomlEntry& entry) {
  for (auto place = entry.places.rbegin(); place != entry.places.rend(); ++place) {
    auto begin = place->first;
    const auto before = std::string_view(text).substr(0, begin);
    const bool is_last = place->second == text.size();
    if (is_last && before.ends_with("\r\n\r\n")) {
      begin -= 2;
    } else if (is_last && before.ends_with("\n\n")) {
      begin -= 1;
    }
    text.erase(begin, place->second - begin);
  }
  return text;
}

FoundHooks compared_entry(const Words& command, bool is_exact, const HookTarget& target) {
  FoundHooks found;
  if (command.empty()) {
    found.missing.emplace_back(entry_name);
    return found;
  }
  found.server = server_of(command);
  found.reporting.emplace_back(entry_name);
  found.state = found.server != target.server ? HookState::elsewhere
                : is_exact                    ? HookState::present
                                              : HookState::outdated;
  return found;
}

}  // namespace

std::span<const AgentSetup> mcp_setups() {
  return lists;
}

std::vector<std::string> mcp_command(const std::string& program, const std::string& server,
                                     const std::string& token_file) {
  Words command{program, "mcp"};
  if (server != usual_server) command.insert(command.end(), {"--server", server});
  if (!token_file.empty()) command.insert(command.end(), {"--token-file", token_file});
  return command;
}

bool is_mcp(HookForm form) {
  return form >= HookForm::mcp_plain;
}

Result<std::string> with_mcp(const AgentSetup& agent, std::string_view text,
                             const HookTarget& target) {
  const auto found = mcp_in(agent, text, target);
  if (!found) return found.error();
  if (found->state == HookState::present) return std::string(text);
  auto bare = without_mcp(agent, text);
  if (!bare) return bare;
  return agent.form == HookForm::mcp_toml ? with_toml(std::move(*bare), target)
                                          : with_json(agent, std::move(*bare), target);
}

Result<std::string> without_mcp(const AgentSetup& agent, std::string_view text) {
  if (agent.form == HookForm::mcp_toml) {
    const auto entry = toml_entry(text);
    if (!entry) return entry.error();
    return without_toml(std::string(text), *entry);
  }
  const auto root = parse_jsonc(text);
  if (!root) return root.error();
  const auto entry = json_entry(agent, *root, text);
  if (!entry) return entry.error();
  return *entry ? without_item(text, *root, (*entry)->place) : std::string(text);
}

Result<FoundHooks> mcp_in(const AgentSetup& agent, std::string_view text,
                          const HookTarget& target) {
  if (agent.form == HookForm::mcp_toml) {
    const auto entry = toml_entry(text);
    if (!entry) return entry.error();
    // Further settings of the table are a person's own.
    return compared_entry(entry->command, entry->command == target.mcp_command, target);
  }
  const auto root = parse_jsonc(text);
  if (!root) return root.error();
  const auto entry = json_entry(agent, *root, text);
  if (!entry) return entry.error();
  if (!*entry) return compared_entry({}, false, target);
  return compared_entry((*entry)->command, (*entry)->command == target.mcp_command, target);
}

}  // namespace watchdog::monitor
