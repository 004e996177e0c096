// A table has the limits that each client has by itself, with the place where each was found. Two
// readers find the values that the client's files set instead: one for JSON, one for the lines of
// Codex' TOML. Neither asks the client.
#include "setup/tool_limits.h"

#include <charconv>
#include <cmath>

#include "setup/jsonc.h"

namespace watchdog::monitor {
namespace {

constexpr Millis of_seconds(std::int64_t count) {
  return Millis{count * 1'000};
}

constexpr std::string_view of_call = "the call fails";
constexpr std::string_view of_start = "the server does not start";
constexpr std::string_view per_server = "timeout of the server";
constexpr std::string_view claude_total =
    "the call fails; behind a URL also after 60 s without an answer, or after this if longer";
/// Claude Code ignores a shorter limit of a server, as if it were not set.
constexpr double claude_least_ms = 1'000;

// As found in August to November 2026 in these places.
// claude-code: code.claude.com/docs, env-vars and mcp (pleaseai/claude-code-docs@0477c3a). The
// total
//   is wall clock. Behind a URL a second timer of 60 s runs until the answer begins; only a longer
//   total moves it. `MCP_TIMEOUT` above 60 s has no effect (anthropics/claude-code#16837).
// codex: DEFAULT_TOOL_TIMEOUT and DEFAULT_STARTUP_TIMEOUT in codex-rs/codex-mcp/src/rmcp_client.rs
//   (openai/codex@02beca9). Its manual still has 60 s and 10 s, the values of earlier versions.
// gemini-cli: MCP_DEFAULT_TIMEOUT_MSEC in packages/core/src/tools/mcp-client.ts (00787c1). It gives
//   the SDK a timeout without resetTimeoutOnProgress.
// opencode: calls in packages/opencode/src/mcp/index.ts (anomalyco/opencode@001133b) have the SDK's
//   own timeout of 60 s, which progress does not reset (anomalyco/opencode#24965).
constexpr ToolLimit known_tool_limits[] = {
    {"claude-code", claude_total, "MCP_TOOL_TIMEOUT", Millis{100'000'000}, ResetBy::nothing},
    {"claude-code", claude_total, per_server, Millis{100'000'000}, ResetBy::nothing},
    {"claude-code", "the call fails; 300 s for servers behind a URL",
     "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT", of_seconds(1'800), ResetBy::progress},
    {"claude-code", "the call goes on in the background", "CLAUDE_CODE_MCP_AUTO_BACKGROUND_MS",
     of_seconds(120), ResetBy::nothing},
    {"claude-code", "the server does not start; 60 s at most", "MCP_TIMEOUT", of_seconds(30),
     ResetBy::nothing},
    {"codex", of_call, "tool_timeout_sec", of_seconds(300), ResetBy::unknown},
    {"codex", of_start, "startup_timeout_sec", of_seconds(30), ResetBy::nothing},
    {"gemini-cli", of_call, per_server, of_seconds(600), ResetBy::nothing},
    {"opencode", of_call, per_server, of_seconds(60), ResetBy::nothing},
    {"opencode", of_call, "experimental.mcp_timeout", of_seconds(60), ResetBy::nothing},
};

/// A number, or a text that is one. Nothing: it is none, or negative.
std::optional<double> number_of(std::string_view text) {
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
  constexpr double longest = 1e15;
  return std::isfinite(value) && value >= 0 && value < longest ? std::optional(value)
                                                               : std::nullopt;
}

/// Reads a JSON file.
class JsonLimits {
 public:
  JsonLimits(std::string_view text, std::vector<SetLimit>& found) : text_(text), found_(found) {}

  void add(const JsoncNode* value, std::string setting, std::string server = {}, double least = 0) {
    if (value == nullptr) return;
    const auto number = number_of(value->kind == JsoncNode::Kind::string
                                      ? std::string_view(value->text)
                                      : text_.substr(value->begin, value->end - value->begin));
    if (number && *number >= least)
      found_.push_back(
          {std::move(setting), std::move(server), Millis{static_cast<std::int64_t>(*number)}});
  }
  /// `timeout` of each entry in a list of servers; opencode 2 has two of them there.
  void add_servers(const JsoncNode* list, double least = 0) {
    if (list == nullptr || list->kind != JsoncNode::Kind::object) return;
    for (const auto& server : list->items) {
      const auto* limit = server.find("timeout");
      const bool is_split = limit != nullptr && limit->kind == JsoncNode::Kind::object;
      add(is_split ? limit->find("request") : limit, std::string(per_server), server.key, least);
    }
  }

 private:
  std::string_view text_;
  std::vector<SetLimit>& found_;
};

const JsoncNode* below(const JsoncNode* node, std::string_view name) {
  return node == nullptr || node->kind != JsoncNode::Kind::object ? nullptr : node->find(name);
}

std::vector<SetLimit> limits_in_json(std::string_view client, std::string_view text) {
  std::vector<SetLimit> found;
  const auto root = parse_jsonc(text);
  if (!root) return found;
  JsonLimits limits(text, found);
  if (client == "opencode") {
    const auto* servers = below(&*root, "mcp");
    const auto* newer = below(servers, "servers");
    limits.add_servers(newer != nullptr ? newer : servers);
    limits.add(below(below(&*root, "experimental"), "mcp_timeout"), "experimental.mcp_timeout");
    return found;
  }
  limits.add_servers(below(&*root, "mcpServers"), client == "claude-code" ? claude_least_ms : 0);
  // The settings of Claude Code have variables of its environment.
  for (const auto& limit : tool_limits())
    if (limit.client == client && limit.setting != per_server)
      limits.add(below(below(&*root, "env"), limit.setting), std::string(limit.setting));
  return found;
}

std::string_view trimmed_line(std::string_view line) {
  line = line.substr(0, line.find('#'));
  const auto begin = line.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
}

/// Codex: `NAME_sec = NUMBER` in a table `[mcp_servers.NAME]`.
std::vector<SetLimit> limits_in_toml(std::string_view text) {
  constexpr std::string_view table = "[mcp_servers.";
  std::vector<SetLimit> found;
  std::string server;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto line = trimmed_line(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.starts_with('[')) {
      server.clear();
      if (line.starts_with(table) && line.ends_with(']'))
        server = line.substr(table.size(), line.size() - table.size() - 1);
      std::erase(server, '"');
      continue;
    }
    const auto equals = line.find('=');
    if (server.empty() || equals == std::string_view::npos) continue;
    const auto name = trimmed_line(line.substr(0, equals));
    const auto number = number_of(trimmed_line(line.substr(equals + 1)));
    if (number && (name == "tool_timeout_sec" || name == "startup_timeout_sec"))
      found.push_back(
          {std::string(name), server, Millis{static_cast<std::int64_t>(*number * 1'000)}});
  }
  return found;
}

}  // namespace

std::span<const ToolLimit> tool_limits() noexcept {
  return known_tool_limits;
}

std::vector<SetLimit> limits_set_in(std::string_view client, std::string_view text) {
  return client == "codex" ? limits_in_toml(text) : limits_in_json(client, text);
}

}  // namespace watchdog::monitor
