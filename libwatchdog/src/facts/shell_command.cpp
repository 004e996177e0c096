// A command is cut into the programs that it runs, at separators outside of quotes. Two tables say
// which programs wait and which only read. No shell's grammar is needed for that: what is not
// understood is taken for a program that does anything.
#include "facts/shell_command.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <string>
#include <vector>

namespace watchdog {
namespace {

constexpr std::size_t bytes_max = 4'096;
/// A shorter pause only lets a server start.
constexpr double pause_min = 5;

/// A program, and words that must follow in this order; empty: any.
struct ProgramRow {
  std::string_view program;
  std::array<std::string_view, 3> words{};
};

/// They return when something happens elsewhere, or say for ever what happens.
constexpr ProgramRow waiting[] = {
    {"watch", {}},
    {"wait", {}},
    {"inotifywait", {}},
    {"fswatch", {}},
    {"wait-on", {}},
    {"wait-for-it.sh", {}},
    {"npx", {"wait-on"}},
    {"tail", {"-f"}},
    {"tail", {"-F"}},
    {"tail", {"--follow"}},
    {"journalctl", {"-f"}},
    {"journalctl", {"--follow"}},
    {"gh", {"run", "watch"}},
    {"gh", {"pr", "checks", "--watch"}},
    {"glab", {"ci", "status", "--live"}},
    {"kubectl", {"wait"}},
    {"kubectl", {"rollout", "status"}},
    {"kubectl", {"get", "-w"}},
    {"kubectl", {"get", "--watch"}},
    {"kubectl", {"logs", "-f"}},
    {"kubectl", {"logs", "--follow"}},
    {"oc", {"wait"}},
    {"oc", {"rollout", "status"}},
    {"docker", {"wait"}},
    {"docker", {"logs", "-f"}},
    {"docker", {"logs", "--follow"}},
    {"podman", {"wait"}},
    {"podman", {"logs", "-f"}},
    {"argocd", {"app", "wait"}},
    {"aws", {"wait"}},
    {"az", {"wait"}},
    {"gcloud", {"builds", "log", "--stream"}},
    {"systemctl", {"--wait"}},
};

constexpr ProgramRow reading[] = {
    {"cat", {}},         {"head", {}},
    {"tail", {}},        {"less", {}},
    {"ls", {}},          {"tree", {}},
    {"pwd", {}},         {"cd", {}},
    {"find", {}},        {"fd", {}},
    {"grep", {}},        {"egrep", {}},
    {"rg", {}},          {"ag", {}},
    {"sed", {"-n"}},     {"awk", {}},
    {"nl", {}},          {"wc", {}},
    {"sort", {}},        {"uniq", {}},
    {"cut", {}},         {"tr", {}},
    {"jq", {}},          {"echo", {}},
    {"printf", {}},      {"stat", {}},
    {"file", {}},        {"du", {}},
    {"diff", {}},        {"cmp", {}},
    {"which", {}},       {"type", {}},
    {"date", {}},        {"true", {}},
    {"test", {}},        {"[", {}},
    {"realpath", {}},    {"dirname", {}},
    {"basename", {}},    {"git", {"log"}},
    {"git", {"show"}},   {"git", {"diff"}},
    {"git", {"status"}}, {"git", {"blame"}},
    {"git", {"grep"}},   {"git", {"ls-files"}},
};

/// Words before a program that are not its name.
constexpr std::string_view before_programs[] = {
    "sudo",  "nohup", "time", "env", "exec",   "command", "do",   "then", "else",
    "while", "until", "if",   "!",   "stdbuf", "nice",    "bash", "sh",   "zsh"};

using Words = std::vector<std::string_view>;

bool is_number(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789.smhd") == word.npos;
}

/// Drops what stands before the program's name: `A=1 sudo timeout 60`.
Words program_in(Words words) {
  auto at = words.begin();
  bool timeout = false;
  for (; at != words.end(); ++at) {
    const bool assigns = at->find('=') != at->npos && !at->starts_with('-');
    const bool is_before = std::ranges::find(before_programs, *at) != std::end(before_programs) ||
                           at->starts_with('-');
    if (*at == "timeout") {
      timeout = true;
    } else if (timeout && is_number(*at)) {
      timeout = false;
    } else if (!assigns && !is_before) {
      break;
    }
  }
  words.erase(words.begin(), at);
  if (!words.empty()) words[0] = words[0].substr(words[0].rfind('/') + 1);
  return words;
}

bool is(const ProgramRow& row, const Words& words) {
  if (words[0] != row.program) return false;
  auto from = words.begin() + 1;
  for (const auto wanted : row.words) {
    if (wanted.empty()) break;
    from = std::find(from, words.end(), wanted);
    if (from == words.end()) return false;
    ++from;
  }
  return true;
}

/// Seconds of `sleep 1m 30`; a variable is long enough.
double pause_of(const Words& words) {
  double sum = 0;
  for (auto word = words.begin() + 1; word != words.end(); ++word) {
    double number = 0;
    const auto [end, error] = std::from_chars(word->data(), word->data() + word->size(), number);
    if (error != std::errc{}) return pause_min;
    const char unit = end == word->data() + word->size() ? 's' : *end;
    sum += number * (unit == 'm' ? 60 : unit == 'h' ? 3'600 : unit == 'd' ? 86'400 : 1);
  }
  return sum;
}

bool is_waiting(const Words& words) {
  if (words[0] == "sleep" || words[0] == "Start-Sleep") return pause_of(words) >= pause_min;
  return std::ranges::any_of(waiting, [&](const ProgramRow& row) { return is(row, words); });
}

bool is_reading(const Words& words) {
  return words[0] == "sleep" ||
         std::ranges::any_of(reading, [&](const ProgramRow& row) { return is(row, words); });
}

/// Calls `each` with the words of every program, and returns whether a file is written by `>`.
template <class Each>
bool cut(std::string_view command, Each&& each) {
  constexpr std::string_view separators = ";|&\n(){}`";
  bool writes = false;
  Words words;
  const auto finish = [&] {
    auto program = program_in(std::move(words));
    words = {};
    if (!program.empty()) each(program);
  };
  for (std::size_t at = 0; at < command.size();) {
    const char c = command[at];
    if (separators.find(c) != separators.npos) {
      const bool redirects = c == '&' && at > 0 && command[at - 1] == '>';
      if (!redirects) finish();
      ++at;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at;
    } else if (c == '>') {
      const auto target =
          command.substr(std::min(command.find_first_not_of("> ", at), command.size()));
      writes = writes || !(target.starts_with("/dev/null") || target.starts_with('&'));
      ++at;
    } else if (c == '#') {  // within a word it is a part of that
      at = std::min(command.find('\n', at), command.size());
    } else if (c == '"' || c == '\'') {
      const auto end = std::min(command.find(c, at + 1), command.size());
      const auto inside = command.substr(at + 1, end - at - 1);
      // `bash -lc "…"`: a command of its own.
      const bool nested = !words.empty() && words.back().starts_with('-') &&
                          words.back().ends_with('c') && program_in(words).empty();
      if (nested) {
        writes = cut(inside, each) || writes;
      } else {
        words.push_back(inside);
      }
      at = end + 1;
    } else {
      const auto end = std::min(command.find_first_of(" \t\r;|&\n(){}`>\"'", at), command.size());
      words.push_back(command.substr(at, end - at));
      at = end;
    }
  }
  finish();
  return writes;
}

/// The opening quote of the last text in a JSON list: of words for a shell, the one that is its
/// command.
std::size_t last_word(std::string_view text, std::size_t at) {
  auto last = text.npos;
  bool is_inside = false;
  for (++at; at < text.size(); ++at) {
    if (is_inside && text[at] == '\\') {
      ++at;
    } else if (text[at] == '"') {
      is_inside = !is_inside;
      if (is_inside) last = at;
    } else if (!is_inside && text[at] == ']') {
      break;
    }
  }
  return last;
}

/// The beginning of a JSON text without its escapes, up to its closing quote.
std::string plain_text(std::string_view quoted, std::size_t bytes_at_most) {
  std::string plain;
  for (std::size_t at = 0; at < quoted.size() && plain.size() < bytes_at_most; ++at) {
    if (quoted[at] == '"') break;
    if (quoted[at] != '\\' || at + 1 == quoted.size()) {
      plain += quoted[at];
      continue;
    }
    const auto escaped = quoted[++at];
    const bool is_number = escaped == 'u';
    if (is_number) at += 4;
    const bool is_space = escaped == 'n' || escaped == 't' || escaped == 'r';
    plain += is_number ? '?' : is_space ? ' ' : escaped;
  }
  return plain;
}

}  // namespace

std::string command_in(std::string_view arguments) {
  constexpr std::size_t shown_max = 60;
  arguments = arguments.substr(0, bytes_max);
  const auto begin = arguments.find_first_not_of(" \n\r\t");
  if (begin == arguments.npos) return {};
  std::string command;
  if (arguments[begin] != '{') command = arguments.substr(begin, shown_max + 1);
  for (const std::string_view member : {"\"command\"", "\"cmd\""}) {
    const auto found = command.empty() ? arguments.find(member) : arguments.npos;
    if (found == arguments.npos) continue;
    auto value = arguments.find_first_not_of(" :\n", found + member.size());
    if (value == arguments.npos) continue;
    if (arguments[value] == '[') value = last_word(arguments, value);
    if (value == arguments.npos || arguments[value] != '"') continue;
    command = plain_text(arguments.substr(value + 1), shown_max + 1);
  }
  for (char& c : command)
    if (static_cast<unsigned char>(c) < ' ') c = ' ';
  auto shown = std::min(command.size(), shown_max);
  const auto splits = [&](std::size_t at) {
    return at < command.size() && (static_cast<unsigned char>(command[at]) & 0xC0U) == 0x80U;
  };
  while (shown > 0 && splits(shown)) --shown;
  command.resize(shown);
  return command;
}

CommandPurpose purpose_of_command(std::string_view command) {
  if (command.find_first_not_of(" \t\r\n") == command.npos) return {.waits = true};
  constexpr std::string_view punctuation = " \t\r\n:;,.\"'(){}[]<>|&";
  if (command.find_first_not_of(punctuation) == command.npos)
    return {.reads_only = true, .does_nothing = true};
  const bool whole = command.size() <= bytes_max;
  CommandPurpose purpose{.reads_only = whole, .does_nothing = whole};
  const bool writes = cut(command.substr(0, bytes_max), [&](const Words& words) {
    purpose.waits = purpose.waits || is_waiting(words);
    purpose.reads_only = purpose.reads_only && is_reading(words);
    purpose.does_nothing = purpose.does_nothing && (words[0] == "true" || words[0] == ":");
  });
  if (writes) purpose.reads_only = purpose.does_nothing = false;
  return purpose;
}

}  // namespace watchdog
