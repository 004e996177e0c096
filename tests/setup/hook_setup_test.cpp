// What an install changes in the text of a file, and that a removal gives the same bytes back: for
// files as people have them, and for random ones.
#include "setup/hook_setup.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "ingest/codex_trust.h"
#include "ingest/hooks.h"
#include "setup/jsonc.h"
#include "support/scenario.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

const HookTarget here{.server = "http://127.0.0.1:3000"};

std::string text_of(const std::string& file) {
  std::ifstream in(std::string(PROJECT_ROOT) + "/" + file);
  return {std::istreambuf_iterator<char>(in), {}};
}

json without_comments(const std::string& text) {
  return json::parse(text, nullptr, true, true);
}

/// Installs, checks that a second install changes nothing, and removes.
std::string there_and_back(const AgentSetup& agent, const std::string& text) {
  const auto with = with_hooks(agent, text, here);
  if (!with) return "refused: " + with.error().message;
  EXPECT_EQ(hooks_in(agent, *with, here)->state, HookState::present) << *with;
  EXPECT_EQ(*with_hooks(agent, *with, here), *with);
  const auto back = without_hooks(agent, *with);
  return back ? *back : "refused: " + back.error().message;
}

const std::string files_of_people[] = {
    "{}",
    "{ }",
    "{\n}\n",
    "{ // nothing \t\n}",
    "{\"a\": 1 // one \r\n}",
    "{\"a\":1}",
    "{\n  // my settings\n  \"theme\": \"dark\", // not light\n  /* soon */\n}\n",
    "{\n\t\"hooks\": {\n\t\t\"Stop\": [\n\t\t\t{\"hooks\": [{\"type\": \"command\", \"command\": "
    "\"say done\"}]}\n"
    "\t\t],\n\t},\n\t\"model\": \"x\"\n}",
    "{\"hooks\":{}}",
    "{\"hooks\":{\n}}",
    "{\"hooks\": {\"Stop\": []}, \"z\": [ ]}\n",
    "{\"hooks\": {\"Stop\": [ // nothing yet\n ], \"SessionStart\" :[ ] }}",
    "{\r\n    \"permissions\": {\r\n        \"allow\": [\"Bash(ls)\"]\r\n    }\r\n}\r\n",
    "{\"url\": \"http://x//y\" }",
    "\xef\xbb\xbf{\n  \"a\": \"\\\"}{//\"\n}",
};

TEST(HookSetup, an_install_and_a_removal_give_the_same_bytes) {
  for (const auto& text : files_of_people)
    for (const auto* name : {"claude-code", "codex", "gemini-cli"})
      EXPECT_EQ(there_and_back(*setup_of(name), text), text) << name;
}

TEST(HookSetup, a_version_that_is_there_stays_alone) {
  const std::string text =
      "{\n  \"version\": 1,\n  \"hooks\": {\"stop\": [{\"command\": \"x\"}]}\n}\n";
  for (const auto* name : {"cursor", "copilot-cli"})
    EXPECT_EQ(there_and_back(*setup_of(name), text), text) << name;
}

/// A random text of JSON with comments in an odd form.
class RandomText {
 public:
  explicit RandomText(unsigned seed) : random_(seed) {}

  std::string file() { return space() + object(0, true) + space(); }

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }
  template <std::size_t N>
  const char* any(const char* const (&words)[N]) {
    return words[below(N)];
  }
  std::string space() {
    return any({"", "", " ", "\n", "\n  ", "\t", "\r\n\t", " // c \"{\n", "/* d // [ */",
                "\n// e \t\n", "// f  \r\n", "  /**/ "});
  }
  std::string list(char open, char close, std::size_t count,
                   const std::function<std::string()>& item) {
    std::string text(1, open);
    for (std::size_t at = 0; at < count; ++at)
      text += space() + item() + space() + (at + 1 < count ? "," : below(4) == 0 ? "," : "");
    return text + space() + close;
  }
  std::string value(int depth) {
    const auto kind = below(depth > 3 ? 4 : 6);
    if (kind == 4) return object(depth + 1, false);
    if (kind == 5) return list('[', ']', below(4), [&] { return value(depth + 1); });
    return any({"1", "\"a // b\"", "null", "\"\\\"\\\\\"", "-2.5e3", "\"/* \"", "true", "\"\""});
  }
  std::string group() {
    return list('{', '}', 1, [&] {
      return "\"hooks\"" + space() + ":" + list('[', ']', below(3), [&] {
               return std::string(R"({"type": "command", "command": "other"})");
             });
    });
  }
  std::string hooks() {
    std::vector<std::string> events{"Stop", "SessionStart", "Other", "PreToolUse"};
    std::shuffle(events.begin(), events.end(), random_);
    return list('{', '}', below(4), [&] {
      const auto event = events.back();
      events.pop_back();
      return "\"" + event + "\"" + space() + ":" + space() +
             list('[', ']', below(3), [&] { return group(); });
    });
  }
  std::string object(int depth, bool is_root) {
    bool has_hooks = !is_root || below(3) == 0;
    int number = 0;
    return list('{', '}', below(5), [&] {
      if (!has_hooks && below(2) == 0) {
        has_hooks = true;
        return "\"hooks\"" + space() + ":" + space() + hooks();
      }
      return "\"k" + std::to_string(number++) + "\"" + space() + ":" + space() + value(depth + 1);
    });
  }

  std::mt19937 random_;
};

TEST(HookSetup, an_install_and_a_removal_give_the_bytes_of_any_file) {
  const auto seed = test::random_seed();
  const auto rounds = static_cast<unsigned>(test::repetitions(5'000));
  const auto& agent = *setup_of("claude-code");
  for (unsigned round = 0; round < rounds; ++round) {
    const auto text = RandomText(seed + round).file();
    ASSERT_TRUE(parse_jsonc(text)) << text << "\nround " << round;
    ASSERT_EQ(there_and_back(agent, text), text) << "round " << round;
  }
}

TEST(HookSetup, other_hooks_and_comments_stay) {
  for (const auto& text : files_of_people) {
    const auto with = *with_hooks(*setup_of("claude-code"), text, here);
    for (const auto* kept :
         {"// my settings", "// not light", "/* soon */", "say done", "// nothing yet"})
      EXPECT_EQ(with.find(kept) == with.npos, text.find(kept) == text.npos) << with;
  }
}

TEST(HookSetup, a_missing_file_becomes_readable_json_for_each_agent) {
  for (const auto& agent : agent_setups()) {
    if (agent.form == HookForm::plugin) continue;
    const auto made = json::parse(*with_hooks(agent, "", here));
    EXPECT_EQ(made.contains("version"), agent.has_version) << agent.name;
    EXPECT_EQ(made["hooks"].size(), agent.events.size()) << agent.name;
  }
}

TEST(HookSetup, the_monitor_understands_each_event_that_has_a_hook) {
  for (const auto& agent : agent_setups()) {
    for (const auto& event : agent.events) {
      const json sent{{"hook_event_name", event.name},
                      {"session_id", "s"},
                      {"conversation_id", "s"},
                      {"tool_name", "t"},
                      {"status", "completed"},
                      {"agent_id", "a"},
                      {"subagent_id", "a"},
                      {"llm_request", {{"messages", {{{"content", "<state_snapshot>"}}}}}}};
      const auto read = hook_event(*named<HookAgent>(agent.name), sent.dump());
      ASSERT_TRUE(read) << agent.name << " " << event.name;
      ASSERT_FALSE(read->reports.empty()) << agent.name << " " << event.name;
      EXPECT_NE(read->reports.front().name, "hook") << agent.name << " " << event.name;
    }
  }
}

TEST(HookSetup, hooks_of_codex_are_those_that_its_trust_is_checked_for) {
  const auto found = codex_hooks(*with_hooks(*setup_of("codex"), "", here), "");
  EXPECT_TRUE(found.missing.empty());
  EXPECT_EQ(found.untrusted.size(), setup_of("codex")->events.size());
}

TEST(HookSetup, hooks_of_another_server_or_form_are_replaced) {
  const auto& agent = *setup_of("codex");
  const std::string text =
      "{\n  \"hooks\": {\n    \"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": "
      "\"mine\"}]}]\n  }\n}\n";
  const auto there = *with_hooks(agent, text, {.server = "https://far:8443"});
  const auto found = *hooks_in(agent, there, here);
  EXPECT_EQ(found.state, HookState::elsewhere);
  EXPECT_EQ(found.server, "https://far:8443");
  const auto moved = *with_hooks(agent, there, here);
  EXPECT_EQ(moved, *with_hooks(agent, text, here));
  EXPECT_EQ(*without_hooks(agent, moved), text);

  const auto fewer = R"({"hooks": {"Stop": [{"hooks": [{"type": "command", "timeout": 9,
    "command": "curl -d @- \"http://127.0.0.1:3000/api/hooks/codex\""}, {"command": "mine"}]}]}})";
  EXPECT_EQ(hooks_in(agent, fewer, here)->state, HookState::outdated);
  EXPECT_EQ(hooks_in(agent, fewer, here)->missing.size(), agent.events.size() - 1);
  const auto rest = without_comments(*without_hooks(agent, fewer));
  EXPECT_EQ(rest, json::parse(R"({"hooks": {"Stop": [{"hooks": [{"command": "mine"}]}]}})"));
}

TEST(HookSetup, a_command_that_only_mentions_the_path_is_not_ours) {
  const std::string text =
      R"({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "tee log | curl http://x/api/hooks/codex"}]}]}})";
  EXPECT_EQ(hooks_in(*setup_of("codex"), text, here)->state, HookState::absent);
  EXPECT_EQ(*without_hooks(*setup_of("codex"), text), text);
}

TEST(HookSetup, the_documents_form_must_be_right) {
  const auto& agent = *setup_of("claude-code");
  for (const auto* text :
       {"[]", "1", "{\"hooks\": []}", "{\"hooks\": {\"Stop\": {}}}", "{\"hooks\":"})
    EXPECT_FALSE(with_hooks(agent, text, here)) << text;
}

TEST(HookSetup, common_leaves_out_new_events) {
  HookTarget common = here;
  common.common_only = true;
  const auto made = json::parse(*with_hooks(*setup_of("claude-code"), "", common));
  EXPECT_FALSE(made["hooks"].contains("StopFailure"));
  EXPECT_TRUE(made["hooks"].contains("Stop"));
}

TEST(HookSetup, a_target_that_a_shell_would_read_is_refused) {
  for (const auto* server :
       {"http://a\"b", "http://$(x)", "http://a b", "http://`x`", "http://a;b"})
    EXPECT_FALSE(check_target({.server = server})) << server;
  EXPECT_FALSE(check_target({.server = "http://a", .header_file = "/home/$USER/x"}));
  EXPECT_TRUE(
      check_target({.server = "https://[::1]:3000/a", .header_file = "/home/a b/x.header"}));
}

TEST(HookSetup, certificates_to_trust_are_part_of_each_command) {
  const auto& agent = *setup_of("claude-code");
  const HookTarget target{.server = "https://far:1", .ca_file = "/home/a b/x.pem"};
  const auto made = *with_hooks(agent, "", target);
  EXPECT_NE(
      made.find(
          R"(curl -q -s --connect-timeout 1 --max-time 2 --cacert \"/home/a b/x.pem\" -H \"X-Watchdog)"),
      made.npos);
  EXPECT_EQ(hooks_in(agent, made, target)->state, HookState::present);
  EXPECT_EQ(hooks_in(agent, made, {.server = "https://far:1"})->state, HookState::outdated);
  EXPECT_FALSE(check_target({.server = "https://a", .ca_file = "/home/$USER/x"}));
}

TEST(HookSetup, commands_for_this_machine_use_no_proxy_and_give_up_within_a_second) {
  for (const auto& agent : agent_setups()) {
    if (agent.form == HookForm::plugin) continue;
    for (const std::string server :
         {"http://127.0.0.1:3000", "http://localhost:1", "http://[::1]:3000", "http://127.9.9.9"}) {
      const auto made = *with_hooks(agent, "", {.server = server});
      EXPECT_NE(made.find("curl -q -s --noproxy '*' --connect-timeout 0.3 --max-time 1 "),
                made.npos)
          << agent.name << server;
    }
    for (const std::string server : {"http://localhost.far:1", "https://far", "http://128.0.0.1"}) {
      const auto made = *with_hooks(agent, "", {.server = server});
      EXPECT_EQ(made.find("--noproxy"), made.npos) << agent.name << server;
    }
  }
}

TEST(HookSetup, an_address_names_the_event_where_the_agent_leaves_it_out) {
  for (const auto& agent : agent_setups()) {
    if (agent.form == HookForm::plugin) continue;
    const auto made = json::parse(*with_hooks(agent, "", here));
    for (const auto& [event, hooks] : made["hooks"].items())
      EXPECT_EQ(hooks.dump().find("&event=" + event + "\\\"") != std::string::npos,
                agent.leaves_names_out)
          << agent.name << event;
  }
  EXPECT_TRUE(setup_of("copilot-cli")->leaves_names_out);
}

TEST(HookSetup, the_plugin_gets_its_server_and_spares_other_programs) {
  const auto plugin = text_of("clients/opencode/watchdog.js");
  const auto& agent = *setup_of("opencode");
  const HookTarget target{
      .server = "http://far:1", .header_file = "/h", .ca_file = "/c.pem", .plugin = plugin};
  const auto made = *with_hooks(agent, "", target);
  EXPECT_NE(
      made.find(
          R"(const installed = { server: "http://far:1", headerFile: "/h", caFile: "/c.pem" };)"),
      made.npos);
  EXPECT_EQ(hooks_in(agent, made, target)->state, HookState::present);
  EXPECT_EQ(hooks_in(agent, plugin, target)->state, HookState::outdated);
  EXPECT_EQ(hooks_in(agent, made, {.server = "http://near:1", .plugin = plugin})->state,
            HookState::elsewhere);
  EXPECT_EQ(*without_hooks(agent, made), "");
  EXPECT_FALSE(with_hooks(agent, "export const Mine = 1;", target));
}

TEST(HookSetup, the_plugin_of_claude_code_has_the_hooks_of_an_install) {
  const auto shipped = json::parse(text_of("clients/claude-code/hooks/hooks.json"));
  HookTarget target{.server = "${WATCHDOG_SERVER:-http://127.0.0.1:3000}"};
  EXPECT_EQ(shipped["hooks"],
            json::parse(*with_hooks(*setup_of("claude-code"), "", target))["hooks"]);
  EXPECT_EQ(json::parse(text_of("clients/claude-code/.claude-plugin/plugin.json"))["name"],
            "watchdog");
}

TEST(HookSetup, a_switch_that_forbids_all_hooks_is_seen) {
  const auto& claude = *std::ranges::find(agent_setups(), "claude-code", &AgentSetup::name);
  for (const auto& [text, off] : {std::pair("{}", false),
                                  {"{\"disableAllHooks\": false}", false},
                                  {"{\"disableAllHooks\": true}", true},
                                  {"{\"disableAllHooks\": true, // for now\n}", true}}) {
    EXPECT_EQ(hooks_in(claude, text, here)->switched_off, off) << text;
    const auto with = with_hooks(claude, text, here);
    ASSERT_TRUE(with) << text;
    EXPECT_EQ(hooks_in(claude, *with, here)->switched_off, off) << *with;
  }
}

}  // namespace
}  // namespace watchdog::monitor
