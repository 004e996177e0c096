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

TEST(McpSetup, settings_of_a_person_in_the_table_stay) {
  const auto& codex = mcp_agent_of("codex");
  const std::string table =
      "model = \"m\"\n\n# progress\n[mcp_servers.watchdog]\ntool_timeout_sec = 3600  # long tests\n"
      "command = \"watchdog-monitor\"  # from the package\nenv_vars = [\n  [\"A\", \"B\"],\n]\n"
      "args = [\"mcp\"]\n\n[mcp_servers.watchdog.env]\nLANG = \"C\"\n\n# --- my work profile\n"
      "[profiles.work]\nmodel = \"o\"\n";
  const auto moved = with_hooks(codex, table, mcp_target_at("http://other:1"));
  ASSERT_TRUE(moved) << moved.error().message;
  auto wanted = table;
  wanted.replace(wanted.find("[\"mcp\"]"), 7, "[\"mcp\", \"--server\", \"http://other:1\"]");
  EXPECT_EQ(*moved, wanted);
  EXPECT_EQ(*with_hooks(codex, *moved, mcp_here), table);
  EXPECT_EQ(
      *without_hooks(codex, table),
      "model = \"m\"\n\n# progress\n\n\n# --- my work profile\n[profiles.work]\nmodel = \"o\"\n");
}

TEST(McpSetup, the_table_may_be_written_in_any_form) {
  const auto& codex = mcp_agent_of("codex");
  for (const auto* form : {
           "[mcp_servers.watchdog]\ncommand = 'watchdog-monitor'\nargs = ['mcp']\n",
           "[mcp_servers.watchdog]\nargs = [\n  \"mcp\", # the server\n]\ncommand = "
           "\"watchdog-monitor\"\n",
           "[ mcp_servers . \"watchdog\" ]\n\"command\" = \"watchdog-monitor\"\nargs = [ \"mcp\" "
           "]\n",
           "mcp_servers_note = 1\n[mcp_servers.watchdog]\ncommand = "
           "\"\"\"watchdog-monitor\"\"\"\nargs = [\"mcp\"]",
           "\xEF\xBB\xBF[mcp_servers.watchdog]\r\ncommand = \"watchdog-monitor\"\r\nargs = "
           "[\"mcp\"]\r\n",
       }) {
    EXPECT_EQ(hooks_in(codex, form, mcp_here)->state, HookState::present) << form;
    const auto moved = with_hooks(codex, form, mcp_target_at("http://other:1"));
    ASSERT_TRUE(moved) << form << moved.error().message;
    EXPECT_EQ(hooks_in(codex, *moved, mcp_here)->server, "http://other:1") << *moved;
    const auto bare = without_hooks(codex, form);
    ASSERT_TRUE(bare) << form;
    EXPECT_EQ(hooks_in(codex, *bare, mcp_here)->state, HookState::absent) << *bare;
  }
  // A table within a line cannot get a further one.
  EXPECT_FALSE(with_hooks(codex, "mcp_servers = { other = { command = \"x\" } }\n", mcp_here));
  EXPECT_TRUE(with_hooks(codex, "[mcp_servers]\nother = { command = \"x\" }\n", mcp_here));
  EXPECT_FALSE(with_hooks(codex, "model = \n", mcp_here)) << "it is not TOML";
}

TEST(McpSetup, settings_of_a_person_in_the_entry_stay) {
  for (const auto& agent : mcp_setups()) {
    if (agent.form == HookForm::mcp_toml) continue;
    auto document = json::parse(*with_hooks(agent, "", mcp_here));
    auto& entry = document.begin().value()["watchdog"];
    entry["timeout"] = 3'600'000;
    entry["env"] = {{"LANG", "C"}};
    entry["trust"] = true;
    entry["enabled"] = false;
    const auto moved = with_hooks(agent, document.dump(2), mcp_target_at("http://other:1"));
    ASSERT_TRUE(moved) << agent.name;
    const auto after = json::parse(*moved).begin().value()["watchdog"];
    for (const auto* name : {"timeout", "env", "trust", "enabled"})
      EXPECT_EQ(after[name], entry[name]) << agent.name << " " << name;
    EXPECT_EQ(hooks_in(agent, *moved, mcp_here)->server, "http://other:1") << agent.name;
    EXPECT_EQ(json::parse(*with_hooks(agent, *moved, mcp_here)), document) << agent.name;
  }
}

TEST(McpSetup, all_of_a_random_file_stays_but_the_entry) {
  const auto& codex = mcp_agent_of("codex");
  const std::vector<std::string> pieces = {
      "# a comment\n",
      "\n",
      "[tui]\n# inside\n",
      "[mcp_servers.other]\ncommand = \"x\"\n",
      "[[rules]]\nname = \"[mcp_servers.watchdog]\"\n",
      "[profiles.\"a.b\"]\nmodel = 'm' # [x]\n",
      "[long]\ntext = \"\"\"\n[mcp_servers.watchdog]\ncommand = \"dog\"\n\"\"\"\n",
      "[lists]\nall = [\n  \"a\", # one\n  [\"b\"],\n]\n",
      "[sub.mcp_servers.watchdog]\ncommand = \"dog\"\n"};
  const std::string own =
      "[mcp_servers.watchdog]\ncommand = \"watchdog-monitor\"\nargs = [\"mcp\"]\n";
  std::mt19937 random(test::random_seed());
  for (int round = 0; round < test::repetitions(2'000); ++round) {
    auto left = pieces;
    std::string before = "model = \"m\"\n";
    std::string after;
    while (!left.empty()) {
      const auto at = random() % left.size();
      (random() % 2 == 0 ? before : after) += left[at];
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(at));
    }
    // The first piece behind the entry is a table of its own, or a comment that stays.
    after.insert(0, "# behind\n[end]\n");
    const auto text = before + own + after;
    const auto moved = with_hooks(codex, text, mcp_target_at("http://other:1"));
    ASSERT_TRUE(moved) << text << moved.error().message;
    EXPECT_TRUE(moved->starts_with(before) && moved->ends_with(after)) << text << "--\n" << *moved;
    EXPECT_EQ(*with_hooks(codex, *moved, mcp_here), text);
    EXPECT_EQ(*without_hooks(codex, text), before + after);
    EXPECT_EQ(mcp_there_and_back(codex, before + after), before + after);
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
