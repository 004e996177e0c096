// Each script holds the same words, which `command_words` reads from the parser. So an option that
// a command gains is completed by all shells. The shells differ in how they quote and in what they
// can show: bash completes words only; zsh and fish show each word's help beside it.
#include "cli/completion_script.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/usage.h"

namespace watchdog::monitor {
namespace {

struct OptionWords {
  std::vector<std::string> flags;  ///< Not empty.
  std::string help;
  bool wants_value = false;
  std::vector<std::string> values;  ///< The words that it allows; empty: any.
};

struct CommandWords {
  std::string name;
  std::string help;
  std::vector<OptionWords> options;
  std::vector<std::string> arguments;  ///< The words that a positional argument allows.
  bool accepts_session = false;
};

/// Prints what commands take as a session, one per line, each with its name after a tabulator.
constexpr std::string_view session_names = "sessions --limit 200 --names 2>/dev/null";

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const auto& word : words) text.append(text.empty() ? "" : between).append(word);
  return text;
}

/// The words of `{max,recorded}`; empty if it is not a list.
std::vector<std::string> allowed_words(const CLI::Option& option) {
  const auto type = option.get_type_name();
  const auto open = type.find('{');
  const auto close = type.find('}', open);
  std::vector<std::string> words;
  if (open == std::string::npos || close == std::string::npos) return words;
  for (auto from = open + 1; from <= close;) {
    const auto to = std::min(type.find(',', from), close);
    words.push_back(type.substr(from, to - from));
    from = to + 1;
  }
  return words;
}

std::vector<CommandWords> command_words(const CLI::App& app) {
  std::vector<CommandWords> commands;
  for (const auto* command : app.get_subcommands({})) {
    CommandWords words{command->get_name(), command->get_description(), {}, {}, false};
    for (const auto* option : command->get_options()) {
      auto flags = flags_of(*option);
      if (flags.empty()) {
        words.accepts_session |= option->get_name(true).starts_with("session");
        std::ranges::move(allowed_words(*option), std::back_inserter(words.arguments));
      } else {
        words.options.push_back({std::move(flags), option->get_description(), wants_value(*option),
                                 allowed_words(*option)});
      }
    }
    commands.push_back(std::move(words));
  }
  return commands;
}

/// One line of a text, in single quotes as POSIX shells and zsh read them.
std::string shell_quoted(std::string_view text) {
  std::string safe = "'";
  for (const char c : text) safe += c == '\'' ? "'\\''" : std::string(1, c == '\n' ? ' ' : c);
  return safe + "'";
}

/// The argument of zsh's `_arguments` for one name of an option.
std::string zsh_option(const std::string& flag, const OptionWords& option) {
  std::string text = "*" + flag + (option.wants_value && flag.starts_with("--") ? "=[" : "[");
  for (const char c : option.help) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') text += '\\';
    text += c;
  }
  text += "]";
  if (option.wants_value) {
    text += option.values.empty() ? ":value:_files" : ":value:(" + joined(option.values, " ") + ")";
  }
  return shell_quoted(text);
}

/// fish knows two escapes between single quotes.
std::string fish_quoted(std::string_view text) {
  std::string safe = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') safe += '\\';
    safe += c == '\n' ? ' ' : c;
  }
  return safe + "'";
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  std::string names;
  std::string cases;
  for (const auto& command : command_words(app)) {
    names += command.name + " ";
    std::vector<std::string> flags;
    std::vector<std::string> of_files;
    std::string values;
    for (const auto& option : command.options) {
      flags.insert(flags.end(), option.flags.begin(), option.flags.end());
      if (!option.wants_value) continue;
      if (option.values.empty()) {
        of_files.insert(of_files.end(), option.flags.begin(), option.flags.end());
      } else {
        values += "        " + joined(option.flags, "|") + ") COMPREPLY=($(compgen -W '" +
                  joined(option.values, " ") + "' -- \"$word\")); return ;;\n";
      }
    }
    if (!of_files.empty()) {
      values += "        " + joined(of_files, "|") +
                ") COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n";
    }
    cases += "    " + command.name + ")\n";
    if (!values.empty()) cases += "      case $before in\n" + values + "      esac\n";
    cases += "      words='" + joined(flags, " ") + "'\n";
    if (!command.arguments.empty())
      cases += "      arguments='" + joined(command.arguments, " ") + "'\n";
    if (command.accepts_session) cases += "      of_session=1\n";
    cases += "      ;;\n";
  }
  return R"sh(# bash completion for watchdog-monitor. Use it: source <(watchdog-monitor completion bash)
_watchdog_monitor() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
  local words='' arguments='' of_session=''
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W ')sh" +
         names + R"sh(--help --version' -- "$word"))
    return
  fi
  case ${COMP_WORDS[1]} in
)sh" + cases +
         R"sh(  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  elif [[ $of_session ]]; then
    COMPREPLY=($(compgen -W "$arguments $("${COMP_WORDS[0]}" )sh" +
         std::string(session_names) + R"sh( | cut -f1)" -- "$word"))
  elif [[ $arguments ]]; then
    COMPREPLY=($(compgen -W "$arguments" -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}
complete -o filenames -F _watchdog_monitor watchdog-monitor
)sh";
}

std::string zsh_completion(const CLI::App& app) {
  std::string names;
  std::string cases;
  for (const auto& command : command_words(app)) {
    names += "    " + shell_quoted(command.name + ":" + command.help) + "\n";
    cases += "    " + command.name + ")\n      _arguments -S";
    for (const auto& option : command.options)
      for (const auto& flag : option.flags) cases += " \\\n        " + zsh_option(flag, option);
    if (command.accepts_session) {
      if (!command.arguments.empty())
        cases +=
            " \\\n        " + shell_quoted("1:argument:(" + joined(command.arguments, " ") + ")");
      cases += " \\\n        '*:session:_watchdog_monitor_sessions'";
    } else if (!command.arguments.empty()) {
      cases +=
          " \\\n        " + shell_quoted("*:argument:(" + joined(command.arguments, " ") + ")");
    } else {
      cases += " \\\n        '*:file:_files'";
    }
    cases += "\n      ;;\n";
  }
  return R"sh(#compdef watchdog-monitor
# zsh completion for watchdog-monitor. Use it: source <(watchdog-monitor completion zsh)
_watchdog_monitor_sessions() {
  local -a names
  names=(${(f)"$(watchdog-monitor )sh" +
         std::string(session_names) + R"sh( | sed 's/:/\\:/g; s/\t/:/')"})
  _describe -V session names
}
_watchdog_monitor() {
  local -a commands
  commands=(
)sh" + names +
         R"sh(  )
  if ((CURRENT == 2)); then
    _describe -t commands command commands
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
)sh" + cases +
         R"sh(  esac
}
if [[ ${funcstack[1]} == _watchdog-monitor ]]; then
  _watchdog_monitor "$@"
else
  compdef _watchdog_monitor watchdog-monitor
fi
)sh";
}

std::string fish_completion(const CLI::App& app) {
  std::string lines;
  for (const auto& command : command_words(app)) {
    const auto begin =
        "complete -c watchdog-monitor -n '__fish_seen_subcommand_from " + command.name + "'";
    lines += "complete -c watchdog-monitor -n __fish_use_subcommand -f -a " + command.name +
             " -d " + fish_quoted(command.help) + "\n";
    for (const auto& option : command.options) {
      lines += begin;
      for (const auto& flag : option.flags)
        lines += flag.starts_with("--") ? " -l " + flag.substr(2) : " -s " + flag.substr(1);
      if (option.wants_value)
        lines += option.values.empty() ? " -r -F" : " -x -a '" + joined(option.values, " ") + "'";
      lines += " -d " + fish_quoted(option.help) + "\n";
    }
    if (command.accepts_session) {
      lines += begin + " -f -a '(__watchdog_monitor_sessions)'\n";
    }
    if (!command.arguments.empty()) {
      lines += begin + " -f -a '" + joined(command.arguments, " ") + "'\n";
    }
  }
  return R"sh(# fish completion for watchdog-monitor. Use it: watchdog-monitor completion fish | source
function __watchdog_monitor_sessions
  watchdog-monitor )sh" +
         std::string(session_names) + "\nend\n" + lines;
}

}  // namespace watchdog::monitor
