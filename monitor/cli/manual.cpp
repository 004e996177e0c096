#include "cli/manual.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <vector>

#include "cli/usage.h"

namespace watchdog::monitor {
namespace {

std::string joined(const std::vector<std::string>& words, std::string_view between) {
  std::string text;
  for (const auto& word : words) text.append(text.empty() ? "" : between).append(word);
  return text;
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
    if (wants_value(option)) {
      text += " \\fI";
      for (const char c : roff(option.get_type_name())) {
        text += c;
        if (c == ',') text += "\\:";  // a line of a long list of words may end here
      }
      text += "\\fR";
    }
    text += "\n";
  }
  text += roff(option.get_description());
  if (const auto usual = option.get_default_str(); !usual.empty() && wants_value(option))
    text += " [" + roff(usual) + "]";
  return text + "\n";
}

}  // namespace

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

std::string man_page(const CLI::App& app) {
  const auto name = app.get_name();
  const auto description = app.get_description();
  const auto begin = std::min(description.find('\n'), description.size());  // one line
  std::string text = ".TH " + roff(name) + " 1\n.ad l\n.SH NAME\n" + roff(name) + " \\- " +
                     roff(description.substr(0, begin)) + "\n.SH SYNOPSIS\n.B " + roff(name) +
                     "\n[\\fICOMMAND\\fR [OPTION]...]\n.SH DESCRIPTION\n" + roff(description) +
                     "\n.SH COMMANDS\n";
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
