// The change that `hooks install --mcp` makes in the text of a file. A removal gives the same bytes
// back.
#include "setup/mcp_setup.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "support/scenario.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

HookTarget mcp_target_at(const std::string& server) {
  return {.server = server, .mcp_command = mcp_command("watchdog-monitor", server, "")};
}
const HookTarget mcp_here = mcp_target_at("http://127.0.0.1:3000");

const AgentSetup& mcp_agent_of(std::string_view name) {
  return *std::ranges::find(mcp_setups(), name, &AgentSetup::name);
}

/// Installs, checks that a second install changes nothing, and removes.
std::string mcp_there_and_back(const AgentSetup& agent, const std::string& text) {
  const auto with = with_hooks(agent, text, mcp_here);
  if (!with) return "refused: " + with.error().message;
  EXPECT_EQ(hooks_in(agent, *with, mcp_here)->state, HookState::present) << *with;
  EXPECT_EQ(*with_hooks(agent, *with, mcp_here), *with);
  EXPECT_EQ(hooks_in(agent, *with, mcp_target_at("http://other:1"))->state, HookState::elsewhere);
  const auto moved = with_hooks(agent, *with, mcp_target_at("http://other:1"));
  EXPECT_TRUE(moved);
  if (moved) {
    EXPECT_EQ(hooks_in(agent, *moved, mcp_here)->server, "http://other:1");
  }
  const auto back = without_hooks(agent, *with);
  return back ? *back : "refused: " + back.error().message;
}

TEST(McpSetup, each_agent_gets_the_entry_that_it_reads) {
  const std::vector<std::pair<std::string, json>> entries = {
      {"claude-code",
       json::parse(
           R"({"mcpServers":{"watchdog":{"type":"stdio","command":"watchdog-monitor","args":["mcp"]}}})")},
      {"gemini-cli",
       json::parse(R"({"mcpServers":{"watchdog":{"command":"watchdog-monitor","args":["mcp"]}}})")},
      {"cursor",
       json::parse(R"({"mcpServers":{"watchdog":{"command":"watchdog-monitor","args":["mcp"]}}})")},
      {"copilot-cli",
       json::parse(
           R"({"mcpServers":{"watchdog":{"type":"local","command":"watchdog-monitor","args":["mcp"],"tools":["*"]}}})")},
      {"opencode",
       json::parse(
           R"({"mcp":{"watchdog":{"type":"local","command":["watchdog-monitor","mcp"],"enabled":true}}})")},
  };
  for (const auto& [name, entry] : entries)
    EXPECT_EQ(json::parse(*with_hooks(mcp_agent_of(name), "", mcp_here)), entry) << name;
  EXPECT_EQ(*with_hooks(mcp_agent_of("codex"), "", mcp_here),
            "[mcp_servers.watchdog]\ncommand = \"watchdog-monitor\"\nargs = [\"mcp\"]\n");
  EXPECT_EQ(mcp_command("p", "http://h:1", "/t"),
            (std::vector<std::string>{"p", "mcp", "--server", "http://h:1", "--token-file", "/t"}));
  EXPECT_EQ(mcp_setups().size(), entries.size() + 1);
}

TEST(McpSetup, a_removal_gives_the_bytes_back) {
  const std::vector<std::string> documents = {
      "{}",
      "{\n}\n",
      "{\n  // mine\n  \"theme\": \"dark\"\n}\n",
      "{\"mcpServers\": {}}",
      "{\"mcp\": {}}",
      "{\r\n    \"mcpServers\": {\r\n        \"other\": {\"command\": \"x\"}\r\n    }\r\n}\r\n",
      "{\"hooks\": {\"Stop\": []}, \"mcpServers\": {\"a\": {\"url\": \"http://x\"},},}",
  };
  for (const auto& agent : mcp_setups()) {
    if (agent.form == HookForm::mcp_toml) continue;
    for (const auto& text : documents)
      EXPECT_EQ(mcp_there_and_back(agent, text), text) << agent.name;
  }
  const std::vector<std::string> tables = {
      "",
      "model = \"gpt\"\n",
      "model = \"gpt\"\n\n",
      "# mine\r\n[mcp_servers.other]\r\ncommand = \"x\"\r\n",
      "notes = \"\"\"\n[mcp_servers.watchdog]\n\"\"\"\n[projects.\"/a\"]\ntrust_level = "
      "\"trusted\"\n",
      "a = 'x' # [mcp_servers.watchdog]\n",
      "list = [\n  \"[mcp_servers.watchdog]\",\n]\n",
  };
  for (const auto& text : tables) EXPECT_EQ(mcp_there_and_back(mcp_agent_of("codex"), text), text);
}

TEST(McpSetup, tables_after_the_entry_and_below_it) {
  const auto& codex = mcp_agent_of("codex");
  const std::string before =
      "model = \"m\"\n[mcp_servers.watchdog]\ncommand = \"/usr/bin/watchdog-monitor\"\n"
      "args = [\"mcp\", \"--server\", \"http://h:1\"]\n"
      "[mcp_servers.watchdog.tools.cancel]\napproval_mode = \"approve\"\n[tui]\nx = 1\n";
  EXPECT_EQ(hooks_in(codex, before, mcp_here)->server, "http://h:1");
  EXPECT_EQ(*without_hooks(codex, before), "model = \"m\"\n[tui]\nx = 1\n");
}

TEST(McpSetup, servers_of_others_stay) {
  for (const auto& [name, text] : std::vector<std::pair<std::string, std::string>>{
           {"cursor", R"({"mcpServers": {"watchdog": {"command": "dog"}}})"},
           {"cursor", R"({"mcpServers": {"watchdog": {"url": "http://x/mcp"}}})"},
           {"cursor", R"({"mcpServers": []})"},
           {"cursor", "[]"},
           {"cursor", "{"},
           {"opencode", R"({"mcp": 5})"},
           {"codex", "[mcp_servers.watchdog]\ncommand = \"dog\"\n"},
           {"codex", "mcp_servers = { watchdog = { command = \"dog\" } }\n"},
           {"codex", "[mcp_servers]\nwatchdog = { command = \"dog\" }\n"},
           {"codex", "mcp_servers.watchdog.command = \"dog\"\n"}}) {
    EXPECT_FALSE(with_hooks(mcp_agent_of(name), text, mcp_here)) << text;
    EXPECT_FALSE(without_hooks(mcp_agent_of(name), text)) << text;
  }
}

TEST(McpSetup, random_texts_are_refused_or_come_back) {
  std::mt19937_64 random(7'280'726);
  const std::string letters = "{}[]\",:=#'\n mcp_servers.watchdog\\/*\"\"\"";
  const auto& codex = mcp_agent_of("codex");
  const int rounds = test::repetitions(20'000, 1);
  for (int round = 0; round < rounds; ++round) {
    std::string text;
    for (auto count = random() % 60; count > 0; --count) text += letters[random() % letters.size()];
    const auto with = with_hooks(codex, text, mcp_here);
    if (!with) continue;
    // A text that is left open takes the entry in: such a file is not TOML.
    const auto state = hooks_in(codex, *with, mcp_here);
    if (!state || state->state != HookState::present) continue;
    const auto back = without_hooks(codex, *with);
    ASSERT_TRUE(back) << text;
    EXPECT_TRUE(*back == text || *back == text + "\n") << text << "\n--\n" << *back;
  }
}

}  // namespace
}  // namespace watchdog::monitor
