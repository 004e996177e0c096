// Codex gives its model a text for each call. That of a command has a head, up to a line `Output:`,
// or is JSON with `metadata`; both have the exit code. That of a call which did not run begins with
// one of some words. Sources: openai/codex codex-rs/core/src/tools (mod.rs, handlers/, context.rs).
#include "ingest/codex_failure.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "codec/json_bounds.h"
#include "ingest/transcript_state.h"

namespace watchdog::monitor {
namespace {

/// Beginnings of outputs of calls that did not run, or did nothing.
constexpr std::string_view codex_refusals[] = {"apply_patch verification failed",
                                               "patch rejected",
                                               "failed to parse function arguments",
                                               "failed to parse exec_command",
                                               "unsupported call: ",
                                               "unsupported custom tool call",
                                               "execution error: ",
                                               "exec_command failed",
                                               "write_stdin failed",
                                               "exec command rejected by user",
                                               "tool call error: ",
                                               "command timed out after ",
                                               "failed to apply patch",
                                               "Failed to apply patch",
                                               "rejected by user",
                                               "err: ",
                                               "Failed to create unified exec process"};

/// Lines of a head that end with the exit code.
constexpr std::string_view codex_exits[] = {"Process exited with code ", "Exit code: "};

/// Codex ends a call that a person stopped with these words, alone on their line. A command may
/// print them, too.
bool is_aborted(std::string_view text) {
  constexpr std::string_view words = "aborted by user";
  while (text.ends_with('\n')) text.remove_suffix(1);
  const auto line = text.substr(text.rfind('\n') + 1);
  return line.starts_with(words) && (text.size() == line.size() || text.starts_with("Wall time"));
}

/// The code in the head of an output is there and is not zero.
bool has_bad_exit(std::string_view text) {
  constexpr int head_lines_max = 12;
  for (int count = 0; count < head_lines_max && !text.empty(); ++count) {
    const auto line = text.substr(0, text.find('\n'));
    if (line.starts_with("Output:")) return false;
    for (const auto exit : codex_exits)
      if (line.starts_with(exit)) return line.substr(exit.size()) != "0";
    // Every line of a head is a word with a value, so anything else was printed by a command.
    if (line.find(':') == line.npos && !line.starts_with("Process running")) return false;
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return false;
}

bool has_bad_metadata(std::string_view text) {
  if (!text.starts_with('{') || text.find("\"exit_code\"") == text.npos || !check_json(text))
    return false;
  const auto value = nlohmann::json::parse(text, nullptr, false);
  return number_in(member(value, "metadata"), "exit_code") != 0;
}

}  // namespace

bool is_codex_failure(std::string_view output) {
  const bool is_refused = std::ranges::any_of(
      codex_refusals, [&](std::string_view words) { return output.starts_with(words); });
  return is_refused || is_aborted(output) || has_bad_exit(output) || has_bad_metadata(output);
}

}  // namespace watchdog::monitor
