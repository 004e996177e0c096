// The time limits that files of MCP clients set.
#include "setup/tool_limits.h"

#include <gtest/gtest.h>

namespace watchdog::monitor {
namespace {

struct LimitRow {
  const char* client;
  const char* text;
  std::vector<SetLimit> limits;
};

TEST(ToolLimits, are_found_where_each_client_sets_them) {
  const std::vector<LimitRow> rows = {
      {"claude-code",
       R"({"mcpServers": {"a": {"command": "x", "timeout": 600000}, "b": {"command": "y"}}})",
       {{"timeout of the server", "a", Millis{600'000}}}},
      {"claude-code",
       R"({"mcpServers": {"a": {"timeout": 999}, "b": {"timeout": 1000}}})",
       {{"timeout of the server", "b", Millis{1'000}}}},
      {"claude-code",
       R"({"env": {"MCP_TOOL_TIMEOUT": "90000", "OTHER": "1", "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT": 0}})",
       {{"MCP_TOOL_TIMEOUT", "", Millis{90'000}},
        {"CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT", "", Millis{0}}}},
      {"codex",
       "[mcp_servers.a]\ncommand = \"x\"\ntool_timeout_sec = 12.5 # long\n[mcp_servers.\"b c\"]\n"
       "startup_timeout_sec=20\r\n[other]\ntool_timeout_sec = 1\n",
       {{"tool_timeout_sec", "a", Millis{12'500}}, {"startup_timeout_sec", "b c", Millis{20'000}}}},
      {"opencode",
       "{ // one\n\"mcp\": {\"a\": {\"timeout\": 5000,}}, \"experimental\": {\"mcp_timeout\": 7}}",
       {{"timeout of the server", "a", Millis{5'000}},
        {"experimental.mcp_timeout", "", Millis{7}}}},
      {"opencode",
       R"({"mcp": {"servers": {"a": {"timeout": {"startup": 1, "request": 2}}}}})",
       {{"timeout of the server", "a", Millis{2}}}},
      {"gemini-cli",
       R"({"mcpServers": {"a": {"timeout": 30000}}})",
       {{"timeout of the server", "a", Millis{30'000}}}},
      {"gemini-cli",
       R"({"mcpServers": {"a": {"timeout": -1}, "b": {"timeout": "x"}, "c": 5}})",
       {}},
      {"claude-code", "{", {}},
      {"claude-code", R"([1])", {}},
      {"opencode", R"({"mcp": 5, "experimental": []})", {}},
      {"codex", "[mcp_servers.a\ntool_timeout_sec = nan\n= \n[", {}},
  };
  for (const auto& row : rows) {
    const auto found = limits_set_in(row.client, row.text);
    ASSERT_EQ(found.size(), row.limits.size()) << row.text;
    for (std::size_t at = 0; at < found.size(); ++at) {
      EXPECT_EQ(found[at].setting, row.limits[at].setting) << row.text;
      EXPECT_EQ(found[at].server, row.limits[at].server) << row.text;
      EXPECT_EQ(found[at].value, row.limits[at].value) << row.text;
    }
  }
}

TEST(ToolLimits, a_default_is_what_the_clients_have) {
  const auto usual = [](std::string_view client, std::string_view setting) {
    for (const auto& limit : tool_limits())
      if (limit.client == client && limit.setting == setting) return limit.usual;
    return Millis{-1};
  };
  EXPECT_EQ(usual("claude-code", "MCP_TIMEOUT"), Millis{30'000}) << "60 s is its ceiling";
  EXPECT_EQ(usual("claude-code", "CLAUDE_CODE_MCP_TOOL_IDLE_TIMEOUT"), Millis{1'800'000});
  EXPECT_EQ(usual("codex", "tool_timeout_sec"), Millis{300'000});
  EXPECT_EQ(usual("gemini-cli", "timeout of the server"), Millis{600'000});
  EXPECT_EQ(usual("opencode", "timeout of the server"), Millis{60'000});
}

}  // namespace
}  // namespace watchdog::monitor
