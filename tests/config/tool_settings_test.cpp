// How long tool calls may take by configuration, and who says so; where their outputs lie.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "config/configured.h"

namespace watchdog::test {
namespace {

using namespace std::chrono_literals;

class ToolsConfigured : public Configured {};

/// The deadline of a call of this tool, with the sources that decided it.
ResolvedDeadline deadline_of(const Configuration& configuration, const std::string& tool,
                             const DeadlinePolicy& own = {}) {
  return resolve(executor_options(configuration.settings()).deadlines, tool, own, {}, {});
}

TEST_F(ToolsConfigured, a_tool_has_the_timeout_of_who_knows_most_about_it) {
  EXPECT_EQ(deadline_of(load(), "grep").provenance, "default");
  EXPECT_EQ(deadline_of(load(), "grep").idle, 120s);
  write("[tools]\ntimeout_seconds = 90\n[tools.timeouts]\nshell = 600\n");
  const auto of_file = deadline_of(load(), "grep");
  EXPECT_EQ(of_file.provenance, "default < " + file.string() + ":2");
  EXPECT_EQ(of_file.idle, 90s);
  sources.code = [](Settings& settings) { settings.tools.deadlines.timeout = 80s; };
  EXPECT_EQ(deadline_of(load(), "grep").provenance, "default < configuration");
  EXPECT_EQ(deadline_of(load(), "grep").idle, 80s);
  sources.environment["AGENT_TOOL_TIMEOUT"] = "60";
  EXPECT_EQ(said(load(), "tools.timeout_seconds"), "60, environment AGENT_TOOL_TIMEOUT");
  const auto of_environment = deadline_of(load(), "grep");
  EXPECT_EQ(of_environment.provenance, "default < AGENT_TOOL_TIMEOUT");
  EXPECT_EQ(of_environment.idle, 60s);
  const auto of_tool = deadline_of(load(), "grep", {.idle = 5s});
  EXPECT_EQ(of_tool.provenance, "default < AGENT_TOOL_TIMEOUT < tool");
  EXPECT_EQ(of_tool.idle, 5s);
  const auto of_one = deadline_of(load(), "shell", {.idle = 5s});
  EXPECT_EQ(of_one.provenance, "default < AGENT_TOOL_TIMEOUT < tool < configured for the tool");
  EXPECT_EQ(of_one.idle, 600s);
  sources.environment["AGENT_TOOL_TIMEOUT"] = "0";
  EXPECT_EQ(deadline_of(load(), "grep").idle, std::nullopt);
}

TEST_F(ToolsConfigured, half_a_second_set_by_code_is_refused) {
  // Cut to 0 it would mean "no limit".
  sources.code = [](Settings& settings) { settings.tools.deadlines.timeout = 500ms; };
  EXPECT_NE(refusal().find("code: tools.timeout_seconds is 0.5; it must be"), std::string::npos)
      << refusal();
}

TEST_F(ToolsConfigured, a_timeout_that_is_none_keeps_a_program_from_starting) {
  const std::string allowed = "; it must be an integer from 0 to 86400\n";
  for (const auto& [text, shown] :
       std::vector<std::pair<std::string, std::string>>{{"-1", "-1"},
                                                        {"NaN", "nan"},
                                                        {"1e30", "1e+30"},
                                                        {"86401", "86401"},
                                                        {"99999999999999999999", "1e+20"},
                                                        {"0.5", "0.5"},
                                                        {"2m", "\"2m\""}}) {
    sources.environment = {{"AGENT_TOOL_TIMEOUT", text}};
    EXPECT_EQ(refusal(), "AGENT_TOOL_TIMEOUT: tools.timeout_seconds is " + shown + allowed);
  }
  sources.environment = {{"WATCHDOG_TOOLS_TIMEOUTS_SHELL", "soon"}};
  EXPECT_EQ(refusal(), "WATCHDOG_TOOLS_TIMEOUTS_SHELL: tools.timeouts.shell is \"soon\"" + allowed);
}

TEST_F(ToolsConfigured, any_tool_has_a_variable_for_its_timeout) {
  sources.environment = {{"WATCHDOG_TOOLS_TIMEOUTS_SHELL", "600"},
                         {"WATCHDOG_TOOLS_TIMEOUTS_WEB_FETCH", "30"}};
  const auto configuration = load();
  EXPECT_EQ(said(configuration, "tools.timeouts.shell"),
            "600, environment WATCHDOG_TOOLS_TIMEOUTS_SHELL");
  EXPECT_EQ(said(configuration, "tools.timeouts.web_fetch"),
            "30, environment WATCHDOG_TOOLS_TIMEOUTS_WEB_FETCH");
  EXPECT_EQ(said(configuration, "tools.timeouts.browser"), "180, default");
  // Names that no variable says in full.
  sources.environment = {{"WATCHDOG_TOOLS_TIMEOUTS_", "1"}, {"WATCHDOG_TOOLS_TIMEOUTS_A.B", "1"}};
  EXPECT_NE(refusal().find("there is no such variable"), std::string::npos) << refusal();
}

TEST_F(ToolsConfigured, a_variable_may_be_the_only_place_that_has_a_name) {
  sources.environment = {{"WATCHDOG_ALERTS_CHANNELS_OPS_TYPE", "webhook"},
                         {"WATCHDOG_ALERTS_CHANNELS_OPS_URL", "http://127.0.0.1:9/x"},
                         {"WATCHDOG_TASK_TOOL_AGENTS_REVIEW_MAX_STEPS", "7"},
                         {"WATCHDOG_PROXY_UPSTREAM", "http://127.0.0.1:1"},
                         {"WATCHDOG_PROXY_UPSTREAMS_FAST_URL", "http://127.0.0.1:2"},
                         {"WATCHDOG_PROXY_UPSTREAMS_FAST_MODELS", "small"}};
  const auto configuration = load();
  for (const auto& [key, value] : {std::pair{"alerts.channels.ops.type", "webhook"},
                                   {"alerts.channels.ops.url", "http://127.0.0.1:9/x"},
                                   {"task_tool.agents.review.max_steps", "7"},
                                   {"proxy.upstreams.fast.url", "http://127.0.0.1:2"}})
    EXPECT_NE(said(configuration, key).find(value), std::string::npos) << key;
  // A name of a file stays as it is written there.
  write("[tools.timeouts]\nreadFile = 7\n");
  sources.environment = {{"WATCHDOG_TOOLS_TIMEOUTS_READ_FILE", "8"}};
  EXPECT_EQ(said(load(), "tools.timeouts.readFile"),
            "8, environment WATCHDOG_TOOLS_TIMEOUTS_READ_FILE");
  EXPECT_FALSE(load().settings().tools.deadlines.per_tool.contains("read_file"));
}

TEST_F(ToolsConfigured, outputs_are_kept_beside_the_database_of_their_session) {
  sources.flags["monitor.db"] = dir / "state/w.db";
  {
    auto store = open_artifacts(load().settings(), "a-session");
    ASSERT_TRUE(store.ok()) << store.error().message;
    EXPECT_TRUE(std::filesystem::is_directory(dir / "state/artifacts"));
    struct stat facts {};
    ASSERT_EQ(stat((dir / "state").c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 0777U, 0700U);
    EXPECT_TRUE(store->put("long", "text/plain").ok());
  }
  sources.environment = {{"WATCHDOG_TOOLS_ARTIFACTS", dir / "elsewhere"}};
  EXPECT_TRUE(open_artifacts(load().settings(), "a-session").ok());
  EXPECT_TRUE(std::filesystem::is_directory(dir / "elsewhere"));
  std::ofstream(dir / "file") << "in the way";
  sources.environment = {{"WATCHDOG_TOOLS_ARTIFACTS", dir / "file"}};
  EXPECT_FALSE(open_artifacts(load().settings(), "a-session").ok());
}

}  // namespace
}  // namespace watchdog::test
