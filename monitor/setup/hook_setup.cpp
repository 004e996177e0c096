// One table has a row for each agent. A hook is ours if it is a `curl` command, or a URL, with the
// path `/api/hooks/AGENT`. So hooks that a person copied from a page count as well.
// with_hooks() changes nothing if each wanted hook is there exactly once. Otherwise it removes ours
// and appends all again. This replaces hooks of an older form and of another server in one way.
#include "setup/hook_setup.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "facts/hook_hold.h"
#include "setup/jsonc.h"
#include "setup/mcp_setup.h"

namespace watchdog::monitor {
namespace {

using Indices = std::vector<std::size_t>;
using Kind = JsoncNode::Kind;

// Claude Code ignores a whole settings file with an event that it does not know.
constexpr std::array claude_events{
    SetupEvent{"SessionStart"},
    SetupEvent{"UserPromptSubmit"},
    SetupEvent{"PreToolUse"},
    SetupEvent{"PermissionRequest", true, true},
    SetupEvent{"PermissionDenied", true},
    SetupEvent{"PostToolUse"},
    SetupEvent{"PostToolUseFailure", true},
    SetupEvent{"Notification"},
    SetupEvent{"Elicitation", true},
    SetupEvent{"ElicitationResult", true},
    SetupEvent{"SubagentStart", true},
    SetupEvent{"SubagentStop"},
    SetupEvent{"TaskCompleted", true},
    SetupEvent{"TeammateIdle", true},
    SetupEvent{"PreCompact"},
    SetupEvent{"Stop"},
    SetupEvent{"StopFailure", true},
    SetupEvent{"SessionEnd"},
};
constexpr std::array codex_events{
    SetupEvent{"SessionStart"}, SetupEvent{"UserPromptSubmit"},
    SetupEvent{"PreToolUse"},   SetupEvent{"PermissionRequest"},
    SetupEvent{"PostToolUse"},  SetupEvent{"SubagentStart"},
    SetupEvent{"SubagentStop"}, SetupEvent{"PreCompact"},
    SetupEvent{"Interrupt"},    SetupEvent{"Stop"},
    SetupEvent{"SessionEnd"},
};
// A compression of the context shows in the next BeforeModel.
constexpr std::array gemini_events{
    SetupEvent{"SessionStart"}, SetupEvent{"BeforeAgent"}, SetupEvent{"BeforeModel"},
    SetupEvent{"BeforeTool"},   SetupEvent{"AfterTool"},   SetupEvent{"Notification"},
    SetupEvent{"AfterAgent"},   SetupEvent{"SessionEnd"},
};
constexpr std::array cursor_events{
    SetupEvent{"sessionStart"},  SetupEvent{"beforeSubmitPrompt"}, SetupEvent{"preToolUse"},
    SetupEvent{"postToolUse"},   SetupEvent{"postToolUseFailure"}, SetupEvent{"afterAgentResponse"},
    SetupEvent{"subagentStart"}, SetupEvent{"subagentStop"},       SetupEvent{"preCompact"},
    SetupEvent{"stop"},          SetupEvent{"sessionEnd"},
};
// Names with a capital letter: then Copilot CLI names the event in what it sends.
constexpr std::array copilot_events{
    SetupEvent{"SessionStart"}, SetupEvent{"UserPromptSubmit"}, SetupEvent{"PreToolUse"},
    SetupEvent{"PostToolUse"},  SetupEvent{"Notification"},     SetupEvent{"PostToolUseFailure"},
    SetupEvent{"SubagentStop"}, SetupEvent{"SubagentStart"},    SetupEvent{"PreCompact"},
    SetupEvent{"Stop"},         SetupEvent{"SessionEnd"},       SetupEvent{"ErrorOccurred"},
};

constexpr std::array<std::string_view, 1> claude_programs{"claude"}, codex_programs{"codex"},
    gemini_programs{"gemini"}, opencode_programs{"opencode"}, copilot_programs{"copilot"};
constexpr std::array<std::string_view, 2> cursor_programs{"cursor-agent", "cursor"};

constexpr std::array setups{
    AgentSetup{.name = "claude-code",
               .words = "claude",
               .programs = claude_programs,
               .events = claude_events,
               .timeout_member = "timeout",
               .home_variable = "CLAUDE_CONFIG_DIR",
               .home = ".claude",
               .user_file = "settings.json",
               .project_file = ".claude/settings.json",
               .to_do = "An old Claude Code ignores a settings file with events that it does not "
                        "know. If it reports such an error, update it or install with --common."},
    AgentSetup{.name = "codex",
               .words = "",
               .programs = codex_programs,
               .events = codex_events,
               .home_variable = "CODEX_HOME",
               .home = ".codex",
               .user_file = "hooks.json",
               .project_file = ".codex/hooks.json",
               .to_do = "Codex runs new hooks only after you trust them: start codex in a terminal "
                        "and choose \"Trust all\"."},
    AgentSetup{.name = "gemini-cli",
               .words = "gemini",
               .programs = gemini_programs,
               .events = gemini_events,
               .home_variable = "",
               .home = ".gemini",
               .user_file = "settings.json",
               .project_file = ".gemini/settings.json",
               .to_do = ""},
    AgentSetup{.name = "opencode",
               .words = "",
               .programs = opencode_programs,
               .form = HookForm::plugin,
               .home_variable = "XDG_CONFIG_HOME",
               .home = ".config",
               .user_file = "opencode/plugin/watchdog.js",
               .project_file = ".opencode/plugin/watchdog.js",
               .to_do = ""},
    AgentSetup{.name = "cursor",
               .words = "",
               .programs = cursor_programs,
               .form = HookForm::command,
               .events = cursor_events,
               .has_version = true,
               .home_variable = "",
               .home = ".cursor",
               .user_file = "hooks.json",
               .project_file = ".cursor/hooks.json",
               .to_do = ""},
    AgentSetup{.name = "copilot-cli",
               .words = "copilot",
               .programs = copilot_programs,
               .form = HookForm::bash,
               .events = copilot_events,
               .has_version = true,
               .leaves_names_out = true,
               .home_variable = "COPILOT_HOME",
               .home = ".copilot",
               .user_file = "hooks/watchdog.json",
               .project_file = ".github/hooks/watchdog.json",
               .to_do = ""},
};

constexpr std::size_t hooks_max = 500;  ///< In one file, that report to a monitor.

/// The line of the plugin that an install fills in, without its values.
constexpr std::string_view plugin_heading =
    "// The plugin that reports what opencode does to watchdog-monitor.";
constexpr std::string_view plugin_settings = "const installed = ";

/// The parameter of a hook's address that lets the monitor hold it.
constexpr std::string_view hold_parameter = "&hold=";
/// The agent, and before it curl, give the monitor that much longer than it may hold the hook.
constexpr int hold_margin_seconds = 5;
/// A held hook gets a few line breaks each second, and passes them on at once. Without any the
/// monitor hangs: curl looks at the mean of the last seconds, and gives up after about ten. Where
/// they cannot be written the agent is gone.
constexpr std::string_view while_both_live = "-N --speed-limit 1 --speed-time 5 ";

std::string in_quotes(std::string_view text) {
  return nlohmann::json(text).dump();
}

bool is_of_this_machine(std::string_view server) {
  const auto host = server.substr(std::min(server.find("//"), server.size() - 2) + 2);
  return host.starts_with("127.") || host.starts_with("[::1]") ||
         host.substr(0, host.find_first_of(":/")) == "localhost";
}

/// The agent waits for its hooks, so a monitor that hangs must not cost it more than a second. A
/// prompt must not go through a proxy of the environment to reach its own machine. curl reads no
/// file of settings if `-q` comes first. `hold`: seconds for which the hook may be held; 0: none.
std::string curl_for(std::string_view server, int hold) {
  const bool is_near = is_of_this_machine(server);
  const auto longest = hold > 0 ? hold + hold_margin_seconds : is_near ? 1 : 2;
  return std::string("curl -q -s ") +
         (is_near ? "--noproxy '*' --connect-timeout 0.3 " : "--connect-timeout 1 ") +
         "--max-time " + std::to_string(longest) + " " +
         std::string(hold > 0 ? while_both_live : "");
}

/// For how long this event's hook may be held.
int hold_for(const AgentSetup& agent, const HookTarget& target, std::string_view event) {
  const auto found = std::ranges::find(agent.events, event, &SetupEvent::name);
  const bool asks = found != agent.events.end() && found->asks;
  return asks ? target.hold_seconds.value_or(0) : 0;
}

/// A command, also where an agent offers hooks of type `http`: only a shell knows the agent's
/// process and the variables of its terminal. Claude Code 2.1.197 shows two errors a call for such
/// hooks while no monitor runs. The session's name goes into a header: an address with a blank or a
/// quote in it is none for curl.
std::string command_of(const AgentSetup& agent, const HookTarget& target, std::string_view event) {
  const auto header = target.header_file.empty() ? "" : "-H @\"" + target.header_file + "\" ";
  const auto trusted = target.ca_file.empty() ? "" : "--cacert \"" + target.ca_file + "\" ";
  const auto hold = hold_for(agent, target, event);
  return curl_for(target.server, hold) + header + trusted +
         "-H \"X-Watchdog-Session: $WATCHDOG_SESSION\" --data-binary @- \"" + target.server +
         "/api/hooks/" + std::string(agent.name) + "?pid=$PPID" +
         (agent.leaves_names_out ? "&event=" + std::string(event) : "") +
         (hold > 0 ? std::string(hold_parameter) + std::to_string(hold) : "") + "\" || true";
}

/// The JSON of one event's hook.
std::string item_of(const AgentSetup& agent, const HookTarget& target, std::string_view event) {
  const auto command = in_quotes(command_of(agent, target, event));
  const auto hold = hold_for(agent, target, event);
  const auto timeout = hold > 0 ? ", " + in_quotes(agent.timeout_member) + ": " +
                                      std::to_string(hold + 2 * hold_margin_seconds)
                                : std::string();
  switch (agent.form) {
    case HookForm::grouped:
      return R"({"hooks": [{"type": "command", "command": )" + command + timeout + "}]}";
    case HookForm::bash:
      return R"({"type": "command", "bash": )" + command + timeout + "}";
    default:
      break;
  }
  return R"({"command": )" + command + timeout + "}";
}

/// The seconds at the beginning of a text; 0: no number, or one that the monitor refuses.
int seconds_at(std::string_view text) {
  int seconds = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), seconds);
  return read.ec == std::errc{} && seconds > 0 && seconds <= hold_seconds_max ? seconds : 0;
}

/// The seconds in a hook's command; 0: it is not held.
int hold_in(std::string_view command) {
  const auto at = command.find(hold_parameter);
  if (at == command.npos) return 0;
  return seconds_at(command.substr(at + hold_parameter.size()));
}

/// A hook that reports to a monitor.
struct Hook {
  Indices place;  ///< From the root of the document down.
  std::string event;
  std::string command;   ///< Or its URL.
  bool is_plain = true;  ///< It has the members that item_of() writes, and no others.
};

/// Returns the command of a handler that reports to a monitor as this agent.
std::optional<std::string> own_command(const AgentSetup& agent, const JsoncNode& handler) {
  const auto path = "/api/hooks/" + std::string(agent.name);
  for (const auto* name : {"command", "bash", "url"}) {
    const auto* found = handler.find(name);
    if (found == nullptr || found->kind != Kind::string) continue;
    const auto at = found->text.find(path);
    if (at == std::string::npos) continue;
    const auto behind = found->text.substr(at + path.size(), 1);
    const bool is_path =
        behind.empty() || std::string_view("?\"' ").find(behind) != std::string::npos;
    if (is_path && (std::string_view(name) == "url" || found->text.starts_with("curl ")))
      return found->text;
  }
  return std::nullopt;
}

std::string server_in(const std::string& command) {
  const auto end = command.find("/api/hooks/");
  const auto before = command.find_last_of(" \"'", end);
  const auto begin = before == std::string::npos ? 0 : before + 1;
  return command.substr(begin, end - begin);
}

Error about(const std::string& what) {
  return {ErrorCode::invalid, what};
}

/// Returns all hooks that report to a monitor, in the order of the text.
Result<std::vector<Hook>> own_hooks(const AgentSetup& agent, const JsoncNode& root) {
  std::vector<Hook> found;
  if (root.kind == Kind::nothing) return found;
  if (root.kind != Kind::object) return about("the document must be an object");
  const auto* hooks = root.find("hooks");
  if (hooks == nullptr) return found;
  if (hooks->kind != Kind::object) return about("\"hooks\" must be an object");
  const auto top = static_cast<std::size_t>(hooks - root.items.data());
  const bool grouped = agent.form == HookForm::grouped;
  for (std::size_t event = 0; event < hooks->items.size(); ++event) {
    const auto& list = hooks->items[event];
    for (std::size_t at = 0; at < list.items.size(); ++at) {
      const auto& entry = list.items[at];
      const auto* handlers = grouped ? entry.find("hooks") : nullptr;
      if (!grouped) {
        if (auto command = own_command(agent, entry))
          found.push_back({{top, event, at},
                           list.key,
                           *command,
                           entry.items.size() == (agent.form == HookForm::bash ? 2U : 1U) +
                                                     (hold_in(*command) > 0 ? 1U : 0U)});
        continue;
      }
      if (handlers == nullptr) continue;
      for (std::size_t inner = 0; inner < handlers->items.size(); ++inner) {
        auto command = own_command(agent, handlers->items[inner]);
        if (!command) continue;
        Hook hook{{top, event, at},
                  list.key,
                  *command,
                  handlers->items[inner].items.size() == (hold_in(*command) > 0 ? 3U : 2U) &&
                      entry.items.size() == 1};
        if (handlers->items.size() > 1) {
          hook.place.push_back(static_cast<std::size_t>(handlers - entry.items.data()));
          hook.place.push_back(inner);
        }
        found.push_back(std::move(hook));
      }
    }
  }
  return found;
}

std::vector<std::string_view> wanted_events(const AgentSetup& agent, const HookTarget& target) {
  std::vector<std::string_view> names;
  for (const auto& event : agent.events)
    if (!event.is_new || !target.common_only) names.push_back(event.name);
  return names;
}

/// The target with the time for which hooks are held, as it is where it does not say.
HookTarget settled(HookTarget target, const std::vector<Hook>& hooks) {
  int held = 0;
  for (const auto& hook : hooks) held = std::max(held, hold_in(hook.command));
  if (!target.hold_seconds) target.hold_seconds = held;
  return target;
}

FoundHooks compared(const AgentSetup& agent, const std::vector<Hook>& hooks, HookTarget target) {
  FoundHooks found;
  target = settled(std::move(target), hooks);
  for (const auto& hook : hooks)
    found.hold_seconds = std::max(found.hold_seconds, hold_in(hook.command));
  if (!hooks.empty()) found.server = server_in(hooks.front().command);
  bool is_exact = true;
  bool is_elsewhere = false;
  for (const auto& hook : hooks) {
    const bool twice = std::ranges::find(found.reporting, hook.event) != found.reporting.end();
    if (!twice) found.reporting.push_back(hook.event);
    is_exact = is_exact && !twice && hook.is_plain &&
               hook.command == command_of(agent, target, hook.event);
    is_elsewhere = is_elsewhere || server_in(hook.command) != target.server;
  }
  const auto wanted = wanted_events(agent, target);
  for (const auto event : wanted)
    if (std::ranges::find(found.reporting, event) == found.reporting.end())
      found.missing.emplace_back(event);
  is_exact = is_exact && found.missing.empty() && found.reporting.size() == wanted.size();
  found.state = hooks.empty()  ? HookState::absent
                : is_elsewhere ? HookState::elsewhere
                : is_exact     ? HookState::present
                               : HookState::outdated;
  return found;
}

/// The member `hooks` with every event, as it is written into a file that has none.
std::string fresh_hooks(const AgentSetup& agent, const HookTarget& target, const JsoncStyle& style,
                        const std::string& base) {
  std::string text = "\"hooks\": {";
  std::string_view comma;
  for (const auto event : wanted_events(agent, target)) {
    text += std::string(comma) + style.line_end + base + style.indent + in_quotes(event) + ": [" +
            item_of(agent, target, event) + "]";
    comma = ",";
  }
  return text + style.line_end + base + "}";
}

std::string fresh_file(const AgentSetup& agent, const HookTarget& target) {
  const JsoncStyle style;
  return std::string("{\n") + (agent.has_version ? "  \"version\": 1,\n" : "") + "  " +
         fresh_hooks(agent, target, style, "  ") + "\n}\n";
}

/// Appends all hooks. REQUIRES: the text has none of ours.
Result<std::string> appended(const AgentSetup& agent, std::string text, const HookTarget& target) {
  const auto read = [&text] {
    return *parse_jsonc(text);
  };  // it was read before, and is edited well
  auto root = read();
  if (root.kind == Kind::nothing) {
    if (!text.empty() && text.back() != '\n' && text.find_first_not_of(" \t\r\n") != text.npos)
      text += "\n";
    return text + fresh_file(agent, target);
  }
  if (agent.has_version && root.find("version") == nullptr) {
    text = with_item(text, root, "\"version\": 1");
    root = read();
  }
  if (root.find("hooks") == nullptr) {
    const auto style = style_of(text, root);
    const auto base = line_indent(text, root.begin) + style.indent;
    return with_item(text, root, fresh_hooks(agent, target, style, base));
  }
  for (const auto event : wanted_events(agent, target)) {
    const auto item = item_of(agent, target, event);
    root = read();
    const auto* hooks = root.find("hooks");
    const auto* list = hooks->find(event);
    if (list != nullptr && list->kind != Kind::array)
      return about("\"hooks\": " + in_quotes(event) + " must be an array");
    text = list == nullptr ? with_item(text, *hooks, in_quotes(event) + ": [" + item + "]")
                           : with_item(text, *list, item);
  }
  return text;
}

// The plugin of opencode.

/// The seconds for which the plugin lets a question be held.
int hold_of_plugin(std::string_view text) {
  constexpr std::string_view member = "holdSeconds: ";
  const auto at = text.find(plugin_settings);
  const auto line =
      at == text.npos ? std::string_view() : text.substr(at, text.find('\n', at) - at);
  const auto begin = line.find(member);
  if (begin == line.npos) return 0;
  return seconds_at(line.substr(begin + member.size()));
}

/// `before`: the file as it is.
std::string plugin_text(const HookTarget& target, std::string_view before) {
  const auto hold = target.hold_seconds.value_or(hold_of_plugin(before));
  std::string text(target.plugin);
  const auto begin = text.find(plugin_settings);
  if (begin == text.npos) return text;
  const auto end = text.find('\n', begin);
  return text.replace(begin, end - begin,
                      std::string(plugin_settings) + "{ server: " + in_quotes(target.server) +
                          ", headerFile: " + in_quotes(target.header_file) +
                          ", caFile: " + in_quotes(target.ca_file) +
                          (hold > 0 ? ", holdSeconds: " + std::to_string(hold) : "") + " };");
}

Result<void> check_plugin(std::string_view text) {
  if (text.empty() || text.starts_with(plugin_heading)) return {};
  return about("the file is another program. Rename it, so that the plugin can be put there");
}

FoundHooks plugin_in(std::string_view text, const HookTarget& target) {
  FoundHooks found;
  if (text.empty()) return found;
  found.reporting.emplace_back("plugin");
  const auto at = text.find(plugin_settings);
  const std::string_view key = "server: \"";
  const auto begin = at == text.npos ? at : text.find(key, at);
  if (begin != text.npos)
    found.server =
        text.substr(begin + key.size(), text.find('"', begin + key.size()) - begin - key.size());
  found.hold_seconds = hold_of_plugin(text);
  found.state = text == plugin_text(target, text)                        ? HookState::present
                : !found.server.empty() && found.server != target.server ? HookState::elsewhere
                                                                         : HookState::outdated;
  return found;
}

}  // namespace

std::span<const AgentSetup> agent_setups() {
  return setups;
}

const AgentSetup* setup_of(std::string_view name) {
  const auto* found = std::ranges::find_if(setups, [&](const AgentSetup& agent) {
    return agent.name == name || agent.words == name ||
           std::ranges::find(agent.programs, name) != agent.programs.end();
  });
  return found == setups.end() || name.empty() ? nullptr : found;
}

Result<void> check_target(const HookTarget& target) {
  constexpr std::string_view plain =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  const auto is_plain = [&](std::string_view text, std::string_view also) {
    return std::ranges::all_of(text, [&](char letter) {
      return plain.find(letter) != plain.npos || also.find(letter) != also.npos;
    });
  };
  if (!is_plain(target.server, ":/._-~[]"))
    return about(
        "the server's URL may have letters, digits and : / . _ - ~ [ ] only, because it "
        "becomes part of a shell command");
  for (const auto& file : {target.header_file, target.ca_file}) {
    if (is_plain(file, "/._-~+@ ")) continue;
    return about("the path " + file +
                 " may have letters, digits, blanks and / . _ - ~ + @ only, because it becomes "
                 "part of a shell command");
  }
  return {};
}

Result<std::string> with_hooks(const AgentSetup& agent, std::string_view text,
                               const HookTarget& target) {
  if (is_mcp(agent.form)) return with_mcp(agent, text, target);
  if (agent.form == HookForm::plugin) {
    if (auto right = check_plugin(text); !right) return right.error();
    return plugin_text(target, text);
  }
  const auto found = hooks_in(agent, text, target);
  if (!found) return found.error();
  if (found->state == HookState::present) return std::string(text);
  auto bare = without_hooks(agent, text);
  auto wanted = target;
  if (!wanted.hold_seconds) wanted.hold_seconds = found->hold_seconds;
  return bare ? appended(agent, std::move(*bare), wanted) : bare;
}

Result<std::string> without_hooks(const AgentSetup& agent, std::string_view text) {
  if (is_mcp(agent.form)) return without_mcp(agent, text);
  if (agent.form == HookForm::plugin) {
    if (auto right = check_plugin(text); !right) return right.error();
    return std::string();
  }
  std::string rest(text);
  for (;;) {
    const auto root = parse_jsonc(rest);
    if (!root) return root.error();
    const auto hooks = own_hooks(agent, *root);
    if (!hooks) return hooks.error();
    if (hooks->empty()) return rest;
    if (hooks->size() > hooks_max) return about("too many hooks report to a monitor");
    rest = without_item(rest, *root, hooks->back().place);
  }
}

Result<FoundHooks> hooks_in(const AgentSetup& agent, std::string_view text,
                            const HookTarget& target) {
  if (is_mcp(agent.form)) return mcp_in(agent, text, target);
  if (agent.form == HookForm::plugin) {
    if (auto right = check_plugin(text); !right) return right.error();
    return plugin_in(text, target);
  }
  const auto root = parse_jsonc(text);
  if (!root) return root.error();
  const auto hooks = own_hooks(agent, *root);
  if (!hooks) return hooks.error();
  auto found = compared(agent, *hooks, target);
  // Claude Code and Copilot CLI have this switch.
  const auto* off = root->find("disableAllHooks");
  found.switched_off = off != nullptr && text.substr(off->begin, off->end - off->begin) == "true";
  return found;
}

}  // namespace watchdog::monitor
