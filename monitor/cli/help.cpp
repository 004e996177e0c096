#include "cli/help.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include "terminal/table.h"

namespace watchdog::monitor {
namespace {

constexpr std::size_t columns_max = 80;
constexpr std::size_t text_column = 26;

std::size_t columns() {
  return std::min(columns_max, std::max(terminal_width(), text_column + 20));
}

std::size_t characters_in(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

void append_wrapped(std::string& text, const std::string& line, std::size_t width) {
  const auto blanks = std::min(line.find_first_not_of(' '), line.size());
  const std::string continued(blanks > 0 ? blanks + 2 : 0, ' ');
  text.append(blanks, ' ');
  std::size_t used = blanks;
  std::istringstream words(line);
  bool begins = true;
  for (std::string word; words >> word; begins = false) {
    const auto wide = characters_in(word);
    if (!begins && used + 1 + wide > width) {
      text += "\n" + continued;
      used = continued.size();
    } else if (!begins) {
      text += ' ';
      ++used;
    }
    text += word;
    used += wide;
  }
}

std::string entry(const std::string& name, const std::string& description) {
  std::ostringstream out;
  CLI::detail::format_help(out, name, wrapped(description, columns() - text_column), text_column);
  return out.str();
}

std::string names_of(const std::set<CLI::Option*>& options) {
  std::string text;
  for (const auto* option : options) text += (text.empty() ? "" : " and ") + option->get_name();
  return text;
}

/// The type's noun, and the words of `{max,recorded}` if it has some.
std::pair<std::string, std::string> type_of(const CLI::Option& option) {
  auto type = option.get_type_name();
  const auto colon = type.find(':');
  std::string words;
  if (colon != std::string::npos && type != "KEY:VALUE") {
    words = type.substr(colon + 1);
    type.resize(colon);
  }
  if (!words.starts_with('{')) return {type, ""};
  words = words.substr(1, words.find('}') - 1);
  std::string list;
  for (const char c : words) list += c == ',' ? ", " : std::string(1, c);
  return {"WORD", list};
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t width) {
  std::string made;
  std::istringstream lines{std::string(text)};
  bool begins = true;
  for (std::string line; std::getline(lines, line); begins = false) {
    if (!begins) made += '\n';
    append_wrapped(made, line, width);
  }
  return made;
}

HelpFormatter::HelpFormatter() {
  column_width(text_column);
  label("SUBCOMMAND", "COMMAND");
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  auto name = make_option_name(option, is_positional);
  if (const auto comma = name.find(','); comma != std::string::npos) name.insert(comma + 1, " ");
  auto text = option->get_description();
  const auto remark = [&](const std::string& remarked) {
    if (text.ends_with('.')) text.pop_back();
    text += (text.empty() ? "" : "; ") + remarked;
  };
  if (option->get_items_expected_max() > 0) {
    const auto [noun, words] = type_of(*option);
    if (!is_positional) name += " " + noun;
    if (option->get_expected_max() >= CLI::detail::expected_max_vector_size) name += " ...";
    if (!words.empty()) remark("one of: " + words);
    if (!option->get_default_str().empty()) remark("default: " + option->get_default_str());
    if (!is_positional && option->get_required()) remark("required");
  }
  if (!option->get_needs().empty()) remark("needs " + names_of(option->get_needs()));
  if (!option->get_excludes().empty()) remark("not with " + names_of(option->get_excludes()));
  return entry(name, text);
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode mode) const {
  // CLI11 leaves two empty lines between groups.
  return CLI::detail::find_and_replace(CLI::Formatter::make_help(app, std::move(name), mode),
                                       "\n\n\n", "\n\n");
}

std::string HelpFormatter::make_subcommand(const CLI::App* command) const {
  return entry(command->get_name(), command->get_description());
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return wrapped(app->get_description(), columns()) + "\n";
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  const auto footer = app->get_footer();
  return footer.empty() ? footer : wrapped(footer, columns()) + "\n";
}

}  // namespace watchdog::monitor
