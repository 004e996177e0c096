// An entry is ours if it has the name `watchdog` and starts a program `watchdog-monitor` with the
// argument `mcp`. Another entry of that name is refused. A list is a member of a JSON document, or
// a table of Codex's TOML file.
// An update changes the values of `command` and `args` and nothing else. A removal takes the tables
// below ours (`[mcp_servers.watchdog.tools.x]`) along, but no comment that stands behind them.
#include "setup/mcp_setup.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "config/toml_leaf.h"
#include "setup/jsonc.h"
#include "setup/toml_edit.h"

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
};

Result<std::optional<JsonEntry>> json_entry(const AgentSetup& agent, const JsoncNode& root) {
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
                  .command = {}};
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

/// Changes what starts the program. What a person added to the entry stays: times, variables,
/// trust.
Result<std::string> json_with_command(const AgentSetup& agent, std::string text,
                                      const std::vector<std::size_t>& place,
                                      const HookTarget& target) {
  const auto wanted = parse_jsonc(entry_of(agent, target.mcp_command));
  if (!wanted) return wanted.error();
  const auto wanted_text = entry_of(agent, target.mcp_command);
  for (const auto* name : {"command", "args"}) {
    const auto* value = wanted->find(name);
    if (value == nullptr) continue;
    const auto written = wanted_text.substr(value->begin, value->end - value->begin);
    const auto root = parse_jsonc(text);
    if (!root) return root.error();
    const auto& entry = root->items[place[0]].items[place[1]];
    if (const auto* known = entry.find(name)) {
      text.replace(known->begin, known->end - known->begin, written);
    } else {
      text = with_item(text, entry, "\"" + std::string(name) + "\": " + written);
    }
  }
  return text;
}

// Codex's file.

bool is_at_or_below(const KeyPath& path) {
  return path.size() >= 2 && path[0] == "mcp_servers" && path[1] == entry_name;
}

bool is_our_table(const TomlStatement& statement) {
  return statement.kind == TomlStatement::Kind::header && statement.path.size() == 2 &&
         is_at_or_below(statement.path);
}

/// Our table in Codex's file, and the tables below it.
struct TomlEntry {
  std::vector<TomlStatement> statements{};
  Words command{};
  bool is_there = false;
  bool has_table = false;
};

Result<TomlEntry> toml_entry(std::string_view text) {
  const auto leaves = toml_leaves(text);
  if (!leaves)
    return refuse("it is not TOML: line " + std::to_string(leaves.error().line) + ": " +
                  leaves.error().message);
  TomlEntry found{.statements = toml_statements(text)};
  Words arguments;
  for (const auto& leaf : *leaves) {
    if (!is_at_or_below(leaf.path)) continue;
    found.is_there = true;
    if (leaf.path.size() != 3) continue;
    if (leaf.path.back() == "command" && leaf.value.is_string())
      found.command.insert(found.command.begin(), leaf.value);
    if (leaf.path.back() == "args" && leaf.value.is_array())
      for (const auto& word : leaf.value)
        if (word.is_string()) arguments.push_back(word);
  }
  found.command.insert(found.command.end(), arguments.begin(), arguments.end());
  found.has_table = std::ranges::any_of(found.statements, is_our_table);
  if (found.is_there && !is_own(found.command))
    return refuse("another MCP server has the name watchdog. Rename it");
  if (found.is_there && !found.has_table)
    return refuse("its MCP servers are not written as tables. Write [mcp_servers.NAME]");
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

/// Changes the two values. A person's own settings and comments in the table stay.
std::string toml_with_command(std::string text, const TomlEntry& entry, const HookTarget& target) {
  const auto& command = target.mcp_command;
  std::string program = json_text(command.front());
  std::string arguments = json_list({command.begin() + 1, command.end()});
  bool is_ours = false;
  std::size_t table = 0;
  std::vector<std::pair<const TomlStatement*, std::string*>> changes;
  for (const auto& statement : entry.statements) {
    if (statement.kind == TomlStatement::Kind::header) {
      is_ours = is_our_table(statement);
      if (is_ours) table = statement.end;
    }
    if (!is_ours || statement.kind != TomlStatement::Kind::pair) continue;
    if (statement.path == KeyPath{"command"}) changes.emplace_back(&statement, &program);
    if (statement.path == KeyPath{"args"}) changes.emplace_back(&statement, &arguments);
  }
  const bool has_arguments =
      std::ranges::any_of(changes, [&](const auto& change) { return change.second == &arguments; });
  std::ranges::reverse(changes);
  for (const auto& [place, value] : changes)
    text.replace(place->value_begin, place->value_end - place->value_begin, *value);
  if (!has_arguments) text.insert(table, "args = " + arguments + std::string(line_end_of(text)));
  return text;
}

std::string with_toml(std::string text, const HookTarget& target) {
  const auto line_end = std::string(line_end_of(text));
  if (!text.empty() && text.back() != '\n') text += line_end;
  if (!text.empty()) text += line_end;
  return text + toml_text(target.mcp_command, line_end);
}

/// Also takes the blank line that with_toml() puts before the table. Comments behind the last pair
/// of a table belong to what follows.
std::string without_toml(std::string text, const TomlEntry& entry) {
  std::vector<std::pair<std::size_t, std::size_t>> places;
  bool is_ours = false;
  for (const auto& statement : entry.statements) {
    const bool is_header = statement.kind == TomlStatement::Kind::header;
    if (is_header) is_ours = is_at_or_below(statement.path);
    if (!is_ours || statement.kind == TomlStatement::Kind::other) continue;
    if (is_header) {
      places.emplace_back(statement.begin, statement.end);
    } else {
      places.back().second = statement.end;
    }
  }
  for (auto place = places.rbegin(); place != places.rend(); ++place) {
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

/// Returns the new text if it means the same as the old one, but for our entry.
Result<std::string> if_same_beside(std::string_view before, std::string after) {
  const auto of_others = [](std::string_view text) {
    std::vector<std::pair<KeyPath, nlohmann::json>> values;
    const auto leaves = toml_leaves(text);
    if (!leaves) return std::optional<decltype(values)>();
    for (const auto& leaf : *leaves)
      if (!is_at_or_below(leaf.path)) values.emplace_back(leaf.path, leaf.value);
    return std::optional(std::move(values));
  };
  const auto old = of_others(before);
  if (old && old == of_others(after)) return after;
  return refuse("its MCP servers are not written as tables. Write [mcp_servers.NAME]");
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
  const bool is_new = found->reporting.empty();
  if (agent.form == HookForm::mcp_toml) {
    const auto entry = toml_entry(text);
    if (!entry) return entry.error();
    return if_same_beside(text, is_new ? with_toml(std::string(text), target)
                                       : toml_with_command(std::string(text), *entry, target));
  }
  if (is_new) return with_json(agent, std::string(text), target);
  const auto root = parse_jsonc(text);
  if (!root) return root.error();
  const auto entry = json_entry(agent, *root);
  if (!entry) return entry.error();
  return json_with_command(agent, std::string(text), (*entry)->place, target);
}

Result<std::string> without_mcp(const AgentSetup& agent, std::string_view text) {
  if (agent.form == HookForm::mcp_toml) {
    const auto entry = toml_entry(text);
    if (!entry) return entry.error();
    if (!entry->is_there) return std::string(text);
    return if_same_beside(text, without_toml(std::string(text), *entry));
  }
  const auto root = parse_jsonc(text);
  if (!root) return root.error();
  const auto entry = json_entry(agent, *root);
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
  const auto entry = json_entry(agent, *root);
  if (!entry) return entry.error();
  if (!*entry) return compared_entry({}, false, target);
  return compared_entry((*entry)->command, (*entry)->command == target.mcp_command, target);
}

}  // namespace watchdog::monitor
