#include "cli/manual.h"

#include <CLI/CLI.hpp>
#include <string_view>
#include <vector>

namespace watchdog::monitor {
namespace {

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const auto& word : words) text.append(text.empty() ? "" : between).append(word);
  return text;
}

/// `-h`, `--help`; empty for what is told by its place.
std::vector<std::string> flags_of(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const auto& name : option.get_snames()) flags.push_back("-" + name);
  for (const auto& name : option.get_lnames()) flags.push_back("--" + name);
  return flags;
}

bool wants_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

/// The words of `{max,recorded}`; empty if it is no list.
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

/// As roff reads it: a dot at the beginning of a line would be a request, and a bare hyphen no
/// minus.
std::string roff(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if ((c == '.' || c == '\'') && (safe.empty() || safe.back() == '\n')) safe += "\\&";
    safe += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
  }
  return safe;
}

/// Each line of a text that is laid out already.
std::string roff_lines(std::string_view text) {
  std::string lines;
  for (const char c : roff(text)) lines += c == '\n' ? std::string("\n.br\n") : std::string(1, c);
  return lines + "\n";
}

std::string option_entry(const CLI::Option& option) {
  const auto flags = flags_of(option);
  std::string text = ".TP\n";
  if (flags.empty()) {
    text += "\\fI" + roff(option.get_name(true)) + "\\fR\n";
  } else {
    text += "\\fB" + roff(joined(flags, ", ")) + "\\fR";
    if (wants_value(option)) text += " \\fI" + roff(option.get_type_name()) + "\\fR";
    text += "\n";
  }
  text += roff(option.get_description());
  if (const auto usual = option.get_default_str(); !usual.empty() && wants_value(option))
    text += " [" + roff(usual) + "]";
  return text + "\n";
}

std::string synopsis(const CLI::App& command) {
  std::string text = " [OPTION]...";
  for (const auto* option : command.get_options()) {
    if (!option->get_positional()) continue;
    const auto name = option->get_name(true);
    const bool several = option->get_items_expected_max() > 1;
    text += option->get_required() ? " " + name : " [" + name + "]";
    if (several) text += "...";
  }
  return text;
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
  std::vector<std::string> commands;
  std::string cases;
  for (const auto* command : app.get_subcommands({})) {
    commands.push_back(command->get_name());
    std::vector<std::string> flags;
    std::vector<std::string> of_anything;
    std::string values;
    bool of_session = false;
    for (const auto* option : command->get_options()) {
      const auto own = flags_of(*option);
      flags.insert(flags.end(), own.begin(), own.end());
      of_session |= own.empty() && option->get_name(true).starts_with("session");
      if (own.empty() || !wants_value(*option)) continue;
      if (const auto words = allowed_words(*option); !words.empty()) {
        values += "        " + joined(own, "|") + ") COMPREPLY=($(compgen -W '" +
                  joined(words, " ") + "' -- \"$word\")); return ;;\n";
      } else {
        of_anything.insert(of_anything.end(), own.begin(), own.end());
      }
    }
    if (!of_anything.empty()) {
      values += "        " + joined(of_anything, "|") +
                ") COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n";
    }
    cases += "    " + command->get_name() + ")\n";
    if (!values.empty()) cases += "      case $before in\n" + values + "      esac\n";
    cases += "      words='" + joined(flags, " ") + "'\n";
    if (of_session) cases += "      of_session=1\n";
    cases += "      ;;\n";
  }
  return R"sh(# bash completion for watchdog-monitor. Use it: source <(watchdog-monitor completion bash)
_watchdog_monitor() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words='' of_session=''
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W ')sh" +
         joined(commands, " ") + R"sh( --help --version' -- "$word"))
    return
  fi
  case ${COMP_WORDS[1]} in
)sh" + cases +
         R"sh(  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  elif [[ $of_session ]]; then
    COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" sessions --limit 200 --json 2>/dev/null |
      grep -o '"sessionId":"[A-Za-z0-9._:@-]*"' | cut -d'"' -f4)" -- "$word"))
  else
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}
complete -o filenames -F _watchdog_monitor watchdog-monitor
)sh";
}

std::string man_page(const CLI::App& app) {
  const auto name = app.get_name();
  std::string text = ".TH " + roff(name) + " 1\n.SH NAME\n" + roff(name) + " \\- " +
                     roff(app.get_description()) + "\n.SH SYNOPSIS\n.B " + roff(name) +
                     "\n\\fICOMMAND\\fR [OPTION]...\n.SH COMMANDS\n";
  for (const auto* command : app.get_subcommands({})) {
    text += ".SS " + roff(command->get_name() + synopsis(*command)) + "\n" +
            roff(command->get_description()) + "\n";
    for (const auto* option : command->get_options()) text += option_entry(*option);
    const auto footer = command->get_footer();
    if (footer != app.get_footer()) text += ".PP\n" + roff_lines(footer);
  }
  return text + ".SH EXIT STATUS\n" + roff_lines(app.get_footer());
}

}  // namespace watchdog::monitor
