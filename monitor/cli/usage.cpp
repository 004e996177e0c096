// CLI11 parses, and this file says what is wrong. `command_mistake` looks at the first word before
// CLI11 does. `mistake_in` puts CLI11's errors into other words, known by their names and texts.
// `words_of` makes two words of `--option=`, because CLI11 would take the next word for the value.
// It stops at `--` and, for `run`, at the first word of the command, whose arguments are not this
// program's.
#include "cli/usage.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "cli/manual.h"
#include "text/nearest.h"

namespace watchdog::monitor {
namespace {

/// More options than this are not listed in an error.
constexpr std::size_t options_listed_max = 20;

template <class Number>
std::optional<Number> number_in(const std::string& text) {
  Number number{};
  const auto* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc{} && read.ptr == end ? std::optional(number) : std::nullopt;
}

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  if (const auto at = text.find(what); at != std::string::npos) text.replace(at, what.size(), with);
  return text;
}

/// About the first word that the command does not know.
std::string unknown_argument(const CLI::App& command, const std::vector<std::string>& words) {
  const auto option =
      std::ranges::find_if(words, [](const auto& word) { return word.starts_with('-'); });
  if (option == words.end()) return "unexpected argument \"" + words.front() + "\"";
  std::vector<std::string> known;
  for (const auto* one : command.get_options()) {
    for (const auto& name : one->get_lnames()) known.push_back("--" + name);
    for (const auto& name : one->get_snames()) known.push_back("-" + name);
  }
  const auto word = option->substr(0, option->find('='));
  return known.size() <= options_listed_max
             ? unknown_word("option", word, known)
             : "unknown option \"" + word + "\"" + suggestion(word, known);
}

/// CLI11's error in the words of this program.
std::string in_our_words(const CLI::ParseError& error) {
  const std::string text = error.what();
  if (error.get_name() == "RequiredError") return replaced(text, " is required", " is missing");
  if (error.get_name() == "ExcludesError")
    return replaced(text, " excludes ", " cannot be combined with ");
  if (error.get_name() == "RequiresError") return replaced(text, " requires ", " needs ");
  if (error.get_name() == "ArgumentMismatch" && text.ends_with(" missing"))
    return text.substr(0, text.find(':')) + " needs " +
           (text.find(": 1 required") != std::string::npos ? "a value" : "more values");
  return text;
}

}  // namespace

CLI::Validator one_of(std::string what, std::vector<std::string> words, Listed listed) {
  std::string list;
  for (const auto& word : words) list += (list.empty() ? "{" : ",") + word;
  return {[what = std::move(what), words = std::move(words)](const std::string& word) {
            return std::ranges::count(words, word) > 0 ? std::string()
                                                       : unknown_word(what, word, words);
          },
          listed == Listed::yes ? list + "}" : std::string()};
}

CLI::Validator some_of(std::string what, std::vector<std::string> words) {
  std::string list;
  for (const auto& word : words) list += (list.empty() ? "{" : ",") + word;
  return {[what = std::move(what), words = std::move(words)](const std::string& text) {
            for (std::size_t from = 0; from <= text.size();) {
              const auto to = std::min(text.find(',', from), text.size());
              const auto word = text.substr(from, to - from);
              if (std::ranges::count(words, word) == 0) return unknown_word(what, word, words);
              from = to + 1;
            }
            return std::string();
          },
          list + "}"};
}

CLI::Validator integer(std::int64_t min, std::int64_t max) {
  return {[=](const std::string& text) {
            const auto number = number_in<std::int64_t>(text);
            if (number && *number >= min && *number <= max) return std::string();
            return "\"" + text + "\" is not an integer " +
                   (max == INT64_MAX
                        ? "of " + std::to_string(min) + " or more"
                        : "from " + std::to_string(min) + " to " + std::to_string(max));
          },
          ""};
}

CLI::Validator amount() {
  return {[](const std::string& text) {
            const auto number = number_in<double>(text);
            return number && std::isfinite(*number) && *number >= 0
                       ? std::string()
                       : "\"" + text + "\" is not a number of 0 or more";
          },
          ""};
}

CLI::Validator label() {
  return {[](const std::string& text) {
            const auto colon = text.find(':');
            return colon != std::string::npos && colon > 0 ? std::string()
                                                           : "\"" + text + "\" is not KEY:VALUE";
          },
          ""};
}

std::optional<std::string> command_mistake(const CLI::App& app, const std::string& word) {
  if (word.starts_with('-')) return std::nullopt;
  std::vector<std::string> commands;
  for (const auto* command : app.get_subcommands({})) commands.push_back(command->get_name());
  if (std::ranges::count(commands, word) > 0) return std::nullopt;
  return unknown_word("command", word, commands) + "\n`" + app.get_name() +
         " --help` explains the commands.";
}

std::vector<std::string> flags_of(const CLI::Option& option) {
  std::vector<std::string> flags;
  for (const auto& name : option.get_snames()) flags.push_back("-" + name);
  for (const auto& name : option.get_lnames()) flags.push_back("--" + name);
  return flags;
}

bool wants_value(const CLI::Option& option) {
  return option.get_items_expected_max() > 0;
}

std::vector<std::string> words_of(const CLI::App& app, int argc, const char* const* argv) {
  std::vector<std::string> words(argv, argv + argc);
  const auto commands = app.get_subcommands({});
  const auto found = std::ranges::find_if(
      commands, [&](const auto* one) { return argc > 1 && one->get_name() == words[1]; });
  if (found == commands.end()) return words;
  const auto* command = *found;
  const bool ends_with_a_command = command->get_name() == "run";
  for (std::size_t at = 2; at < words.size() && words[at] != "--"; ++at) {
    const auto equals = words[at].find('=');
    if (!words[at].starts_with('-')) {
      if (ends_with_a_command) break;
    } else if (equals == std::string::npos) {
      const auto* option = command->get_option_no_throw(words[at]);
      if (option != nullptr && wants_value(*option)) ++at;
    } else if (equals + 1 == words[at].size()) {
      const auto* option = command->get_option_no_throw(words[at].substr(0, equals));
      if (option == nullptr || !wants_value(*option)) continue;
      words[at].pop_back();
      words.insert(words.begin() + static_cast<std::ptrdiff_t>(at) + 1, "");
      ++at;
    }
  }
  return words;
}

std::string mistake_in(const CLI::App& app, const CLI::ParseError& error) {
  const auto chosen = app.get_subcommands();
  const CLI::App& command = chosen.empty() ? app : *chosen.front();
  auto unknown = command.remaining();
  std::erase(unknown, "--");
  auto text = unknown.empty() ? in_our_words(error) : unknown_argument(command, unknown);
  text += "\nUsage: " + app.get_name();
  text += chosen.empty() ? " COMMAND [OPTION]..." : " " + command.get_name() + synopsis(command);
  return text + "; --help explains it.";
}

}  // namespace watchdog::monitor
