// The tables have all that is particular to an agent. `undecorated` removes tags and last lines
// first, then reads the first lines until one is ordinary. It drops those lines only if one is
// surely decoration, because other results may begin with "Output:". Lines with the command's
// status stay. The rows of all agents apply, because a result does not say whose it is.
#include "facts/agent_tools.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>

namespace watchdog {
namespace {

constexpr std::string_view shell_family = "bash";
constexpr std::string_view patch_family = "apply_patch";

struct ToolName {
  std::string_view name;
  std::string_view family;
};
constexpr std::array tool_names{
    ToolName{"Bash", shell_family},               // Claude Code, and Codex in its hooks
    ToolName{"bash", shell_family},               // opencode, Copilot CLI
    ToolName{"exec_command", shell_family},       // Codex, as its model knows them
    ToolName{"shell", shell_family},              //
    ToolName{"shell_command", shell_family},      //
    ToolName{"local_shell", shell_family},        //
    ToolName{"container.exec", shell_family},     //
    ToolName{"run_shell_command", shell_family},  // Gemini CLI
    ToolName{"execute_bash", shell_family},       // OpenHands
    ToolName{"apply_patch", patch_family},        // Codex
};

struct PurposeRow {
  std::string_view tool;
  ToolPurpose purpose;
};
/// Other names than those of shells. A tool that does something else is not here.
constexpr PurposeRow purposes[] = {
    // Claude Code
    {"BashOutput", ToolPurpose::waits},
    {"TaskOutput", ToolPurpose::waits},
    {"AgentOutputTool", ToolPurpose::waits},
    {"Monitor", ToolPurpose::waits},
    {"Read", ToolPurpose::reads},
    {"Grep", ToolPurpose::reads},
    {"Glob", ToolPurpose::reads},
    {"LS", ToolPurpose::reads},
    {"WebFetch", ToolPurpose::reads},
    {"WebSearch", ToolPurpose::reads},
    {"TodoWrite", ToolPurpose::reads},
    // Codex
    {"write_stdin", ToolPurpose::may_wait},
    {"wait", ToolPurpose::waits},
    {"wait_agent", ToolPurpose::waits},
    {"update_plan", ToolPurpose::reads},
    {"view_image", ToolPurpose::reads},
    {"web_search", ToolPurpose::reads},
    // opencode
    {"read", ToolPurpose::reads},
    {"grep", ToolPurpose::reads},
    {"glob", ToolPurpose::reads},
    {"list", ToolPurpose::reads},
    {"webfetch", ToolPurpose::reads},
    {"todowrite", ToolPurpose::reads},
    {"todoread", ToolPurpose::reads},
    // Gemini CLI
    {"read_file", ToolPurpose::reads},
    {"read_many_files", ToolPurpose::reads},
    {"list_directory", ToolPurpose::reads},
    {"search_file_content", ToolPurpose::reads},
    {"grep_search", ToolPurpose::reads},
    {"google_web_search", ToolPurpose::reads},
    {"web_fetch", ToolPurpose::reads},
    {"write_todos", ToolPurpose::reads},
    // Copilot CLI
    {"read_bash", ToolPurpose::waits},
    {"read_agent", ToolPurpose::waits},
    {"view", ToolPurpose::reads},
    {"rg", ToolPurpose::reads},
    // Visual Studio Code, Roo Code
    {"get_terminal_output", ToolPurpose::waits},
    {"await_terminal", ToolPurpose::waits},
    {"read_command_output", ToolPurpose::waits},
    // Cursor, Windsurf
    {"command_status", ToolPurpose::waits},
    {"codebase_search", ToolPurpose::reads},
    {"list_dir", ToolPurpose::reads},
    // Browsers
    {"browser_wait_for", ToolPurpose::waits},
    {"browser_snapshot", ToolPurpose::reads},
    // The Model Context Protocol: tasks
    {"tasks/get", ToolPurpose::waits},
    {"tasks/result", ToolPurpose::waits},
};

constexpr std::array<std::string_view, 4> texts{"command", "cmd", "input", "patch"};
constexpr std::array<std::string_view, 16> beside{"description",
                                                  "justification",
                                                  "yield_time_ms",
                                                  "max_output_tokens",
                                                  "timeout",
                                                  "timeout_ms",
                                                  "tty",
                                                  "login",
                                                  "shell",
                                                  "is_background",
                                                  "run_in_background",
                                                  "with_escalated_permissions",
                                                  "sandbox_permissions",
                                                  "prefix_rule",
                                                  "mode",
                                                  "initial_wait"};

enum class Where : std::uint8_t {
  head,      ///< A line of the first ones, which begins so: left out.
  kept,      ///< Likewise, but it stays: it says how the command ended.
  head_end,  ///< The last of the first lines: left out.
  tail,      ///< A line of the last ones, which begins so: left out.
  begin,     ///< The first line is this: left out.
  end        ///< The last line is this: left out.
};

/// `tool` is a family; empty: any tool of that agent.
struct Decoration {
  std::string_view agent;  ///< Whose habit it is: for readers. Results do not say whose they are.
  std::string_view tool;
  Where where;
  std::string_view text;
};
constexpr std::array decorations{
    Decoration{"codex", {}, Where::head, "Wall time: "},
    Decoration{"codex", {}, Where::head_end, "Output:"},
    Decoration{"codex", shell_family, Where::head, "Chunk ID: "},
    Decoration{"codex", shell_family, Where::head, "Original token count: "},
    Decoration{"codex", shell_family, Where::head, "Process running with session ID "},
    Decoration{"codex", shell_family, Where::kept, "Process exited with code "},
    Decoration{"codex", shell_family, Where::kept, "Exit code: "},
    Decoration{"codex", shell_family, Where::kept, "Total output lines: "},
    Decoration{"codex", "write_stdin", Where::head, "Chunk ID: "},
    Decoration{"codex", "write_stdin", Where::head, "Original token count: "},
    Decoration{"codex", "write_stdin", Where::head, "Process running with session ID "},
    Decoration{"codex", "write_stdin", Where::kept, "Process exited with code "},
    Decoration{"gemini-cli", {}, Where::begin, "<untrusted_context>"},
    Decoration{"gemini-cli", {}, Where::end, "</untrusted_context>"},
    Decoration{"gemini-cli", shell_family, Where::tail, "Process Group PGID: "},
    Decoration{"gemini-cli", shell_family, Where::tail, "Background PIDs: "},
    Decoration{"copilot-cli", shell_family, Where::tail, "<shellId: "},
};

/// Results without a tool's name may be anybody's.
bool applies(const Decoration& row, std::string_view family, Where where, std::string_view line) {
  if (row.where != where || (!row.tool.empty() && !family.empty() && row.tool != family))
    return false;
  const bool whole = where == Where::begin || where == Where::end || where == Where::head_end;
  return whole ? line == row.text : line.starts_with(row.text);
}
bool is(std::string_view family, Where where, std::string_view line) {
  return std::ranges::any_of(
      decorations, [&](const Decoration& row) { return applies(row, family, where, line); });
}

std::string_view first_line(std::string_view text) {
  return text.substr(0, text.find('\n'));
}
void drop_first_line(std::string_view& text) {
  text.remove_prefix(std::min(first_line(text).size() + 1, text.size()));
}
std::string_view last_line(std::string_view text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  const auto end = text.rfind('\n');
  return end == std::string_view::npos ? text : text.substr(end + 1);
}
void drop_last_line(std::string_view& text) {
  if (text.ends_with('\n')) text.remove_suffix(1);
  text.remove_suffix(last_line(text).size());
  if (text.ends_with('\n')) text.remove_suffix(1);
}

bool same_letter(char a, char b) {
  const auto low = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return low(a) == b;
}

/// The number that follows one of the words for it; nothing: none does.
std::optional<int> exit_code_after(std::string_view text) {
  constexpr std::array<std::string_view, 10> words{
      "exited with code",   "exit code",  "exit_code", "exitcode",    "exit status",
      "exited with status", "returncode", "\"exit\"",  "return code", "return_code"};
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!same_letter(text[at], 'e') && !same_letter(text[at], 'r') && text[at] != '"') continue;
    for (const auto word : words) {
      const auto rest = text.substr(at);
      if (rest.size() < word.size() ||
          !std::equal(word.begin(), word.end(), rest.begin(),
                      [](char b, char a) { return same_letter(a, b); }))
        continue;
      auto number = word.size();
      const auto end = std::min(rest.size(), number + 5);
      while (number < end &&
             std::string_view(" \":=>\\").find(rest[number]) != std::string_view::npos)
        ++number;
      const bool negative = number < rest.size() && rest[number] == '-';
      if (negative) ++number;
      int code = 0;
      const auto begin = number;
      for (;
           number < rest.size() && number < begin + 9 && rest[number] >= '0' && rest[number] <= '9';
           ++number)
        code = code * 10 + (rest[number] - '0');
      if (number > begin) return negative ? 255 : code;
    }
  }
  return std::nullopt;
}

}  // namespace

std::string_view tool_family(std::string_view tool) noexcept {
  const auto* row = std::ranges::find(tool_names, tool, &ToolName::name);
  return row == tool_names.end() ? tool : row->family;
}

ToolPurpose purpose_of_tool(std::string_view tool) noexcept {
  // A tool of a server of tools: mcp__server__tool.
  const auto own = tool.rfind("__");
  if (tool.starts_with("mcp__") && own != tool.npos) tool.remove_prefix(own + 2);
  const auto* row = std::ranges::find(purposes, tool, &PurposeRow::tool);
  if (row != std::end(purposes)) return row->purpose;
  return tool_family(tool) == shell_family ? ToolPurpose::command : ToolPurpose::unknown;
}

bool waits_for_subagent(std::string_view tool) noexcept {
  constexpr std::string_view tools[] = {"Task",
                                        "Agent",
                                        "task",
                                        "TaskOutput",
                                        "AgentOutputTool",
                                        "wait_agent",
                                        "read_agent",
                                        "delegate_to_agent"};
  return std::ranges::find(tools, tool) != std::end(tools);
}

bool is_one_text(std::string_view tool) noexcept {
  const auto family = tool_family(tool);
  return family == shell_family || family == patch_family;
}
bool is_the_text(std::string_view member) noexcept {
  return std::ranges::find(texts, member) != texts.end();
}
bool is_typed_text(std::string_view member) noexcept {
  return member == "chars" || is_the_text(member);
}
bool is_beside_the_text(std::string_view member) noexcept {
  return std::ranges::find(beside, member) != beside.end();
}

std::string undecorated(std::string_view tool, std::string_view result) {
  const auto family = tool_family(tool);
  std::string_view rest = result;
  if (is(family, Where::begin, first_line(rest))) drop_first_line(rest);
  if (is(family, Where::end, last_line(rest))) drop_last_line(rest);
  while (!rest.empty() && is(family, Where::tail, last_line(rest))) drop_last_line(rest);

  // The first lines count as decoration only where one of them is: others may begin with "Output:".
  std::string kept;
  bool decorated = false;
  auto body = rest;
  while (!body.empty()) {
    const auto line = first_line(body);
    const bool last = is(family, Where::head_end, line);
    if (is(family, Where::kept, line)) {
      kept.append(line).append("\n");
    } else if (is(family, Where::head, line)) {
      decorated = true;
    } else if (!last) {
      break;
    }
    drop_first_line(body);
    if (last) break;
  }
  return decorated ? kept.append(body) : std::string(rest);
}

std::uint8_t exit_code_in(std::string_view result) noexcept {
  constexpr std::size_t looked_at = 300;
  auto code = exit_code_after(result.substr(0, looked_at));
  if (!code && result.size() > looked_at)
    code = exit_code_after(result.substr(result.size() - std::min(result.size(), looked_at)));
  return static_cast<std::uint8_t>(std::clamp(code.value_or(0), 0, 255));
}

}  // namespace watchdog
