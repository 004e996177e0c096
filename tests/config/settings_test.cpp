// Settings as they are read, merged and refused.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <regex>

#include "codec/json.h"
#include "config/configured.h"
#include "config/former.h"
#include "files/secret_file.h"
#include "privacy/content.h"
#include "support/scenario.h"

namespace watchdog::test {
namespace {

using namespace std::chrono_literals;

TEST_F(Configured, without_anything_all_is_default) {
  const auto configuration = load();
  EXPECT_EQ(configuration.settings().run.iterations_max, std::nullopt);
  EXPECT_EQ(configuration.settings().policy, PolicyPatch{});
  for (const auto& value : configuration.values()) {
    EXPECT_EQ(value.origin, Origin::built_in) << value.key;
    EXPECT_EQ(value.where, "") << value.key;
  }
  EXPECT_EQ(said(configuration, "run.max_iterations"), ", default");
  EXPECT_EQ(said(configuration, "task_tool.agents.explore.max_steps"), "30, default");
  EXPECT_EQ(said(configuration, "budget.steps"), ", default");
}

TEST_F(Configured, each_layer_wins_over_the_one_before) {
  const auto said_now = [&] { return said(load(), "monitor.port"); };
  EXPECT_EQ(said_now(), "3000, default");
  write("[monitor]\nport = 1\n");
  EXPECT_EQ(said_now(), "1, file watchdog.toml:2");
  sources.code = [](Settings& settings) { settings.monitor.port = 2; };
  EXPECT_EQ(said_now(), "2, code");
  sources.environment["WATCHDOG_MONITOR_PORT"] = "3";
  EXPECT_EQ(said_now(), "3, environment WATCHDOG_MONITOR_PORT");
  sources.flags["monitor.port"] = "4";
  EXPECT_EQ(said_now(), "4, command line --port");
  EXPECT_EQ(load().settings().monitor.port, 4);
}

/// A line of a file, and what of the settings it changes.
struct Line {
  const char* text;
  std::function<bool(const Settings&)> arrives;
};
void PrintTo(const Line& line, std::ostream* out) {  // NOLINT: GoogleTest's name
  *out << line.text;
}

class Kept : public Configured, public testing::WithParamInterface<Line> {};
TEST_P(Kept, in_its_place) {
  EXPECT_FALSE(GetParam().arrives(load().settings()));
  write(GetParam().text);
  EXPECT_TRUE(GetParam().arrives(load().settings()));
}

INSTANTIATE_TEST_SUITE_P(
    Lines, Kept,
    testing::Values(
        Line{"model.name = 'm'", [](const Settings& s) { return s.model.model == "m"; }},
        Line{"model.ca_file = '/c'", [](const Settings& s) { return s.model.ca_file == "/c"; }},
        Line{"proxy.ca_file = '/c'", [](const Settings& s) { return s.model.ca_file == "/c"; }},
        Line{"proxy.keep_alive = 'whitespace'",
             [](const Settings& s) { return s.proxy.keep_alive == KeepAliveMode::whitespace; }},
        Line{"run.on_confirmed_stuck = 'fail'",
             [](const Settings& s) { return s.run.on_confirmed_stuck == OnConfirmedStuck::fail; }},
        Line{"monitor.otlp_port = 4318",
             [](const Settings& s) { return s.monitor.otlp_port == 4'318; }},
        Line{"export.otlp.endpoint = 'http://c:4318'",
             [](const Settings& s) { return s.export_otlp.endpoint == "http://c:4318"; }},
        Line{"export.otlp.headers_file = '/h'",
             [](const Settings& s) { return s.export_otlp.headers_file == "/h"; }},
        Line{"checks.enabled = false", [](const Settings& s) { return !s.checks.enabled; }},
        Line{"policy.stuckThreshold = 8",
             [](const Settings& s) { return s.policy.stuck_threshold == 8; }},
        Line{"policy.heartbeatInterval = 60000",
             [](const Settings& s) { return s.policy.heartbeat_interval == 60s; }},
        Line{"[policy.tools.\"next.page\"]\nuse = 'paging'\nidentity = ['query']",
             [](const Settings& s) {
               const auto found = s.policy.tools.find("next.page");
               return found != s.policy.tools.end() && found->second.use == ToolUse::paging &&
                      found->second.identity == std::vector<std::string>{"query"};
             }},
        Line{"budget.cost = 2", [](const Settings& s) { return s.budget.limits.cost == 2; }},
        Line{"budget.duration_seconds = 90",
             [](const Settings& s) { return s.budget.limits.duration == 90s; }},
        Line{"migration.status_based = 'compare'",
             [](const Settings& s) { return s.run.old_limits.mode == Migration::compare; }},
        Line{"migration.tool_ms = 1",
             [](const Settings& s) { return s.run.old_limits.tool == 1ms; }},
        Line{"task_tool.default_timeout_seconds = 5",
             [](const Settings& s) { return s.task_tool.default_timeout == 5s; }},
        Line{"task_tool.default_plan_max_steps = 7",
             [](const Settings& s) { return s.task_tool.agents.at("plan").steps == 7; }},
        Line{"[task_tool.agents.review]\nmax_steps = 2\n",
             [](const Settings& s) { return s.task_tool.agents.contains("review"); }},
        Line{"[task_tool.budget]\nwrap_up_threshold_percent = 29\n",
             [](const Settings& s) { return s.task_tool.thresholds.low == 0.29; }},
        Line{"tools.profile = 'batch'",
             [](const Settings& s) { return s.tools.deadlines.profile == DeadlineProfile::batch; }},
        Line{"tools.timeout_seconds = 0",
             [](const Settings& s) { return s.tools.deadlines.timeout == 0s; }},
        Line{"[tools.timeouts]\nbrowser = 7\nsql_ms = 8",
             [](const Settings& s) {
               const auto& of = s.tools.deadlines.per_tool;
               return of.at("browser") == 7s && of.at("web_fetch") == 60s && of.at("sql_ms") == 8s;
             }},
        Line{"tools.confirm_writes = false",
             [](const Settings& s) { return !s.tools.confirm_writes; }},
        Line{"tools.artifacts = '/a'", [](const Settings& s) { return s.tools.artifacts == "/a"; }},
        Line{"monitor.retention_days = 0.5",
             [](const Settings& s) { return s.monitor.retention_days == 0.5; }},
        Line{"monitor.token_file = '/t'", [](const Settings& s) { return token_file(s) == "/t"; }},
        Line{"monitor.db = '/w.db'",
             [](const Settings& s) { return token_file(s) == "/w.db-token"; }},
        Line{"monitor.behind_proxy = true",
             [](const Settings& s) { return s.monitor.behind_proxy; }},
        Line{"monitor.hosts = ['a.example', 'b']",
             [](const Settings& s) {
               return s.monitor.hosts == std::vector<std::string>{"a.example", "b"};
             }},
        Line{"monitor.tls_cert = '/c'\nmonitor.tls_key = '/k'",
             [](const Settings& s) { return s.monitor.tls_key == "/k"; }}));

TEST_F(Configured, reads_the_file_of_the_task_tool_plan) {
  write(R"(
[task_tool]
default_timeout_seconds = 600
[task_tool.agents.plan]
max_steps = 50
default_timeout_seconds = 600
[task_tool.agents.explore]
max_steps = 30
default_timeout_seconds = 300
[task_tool.budget]
wrap_up_threshold_percent = 70
timeout_force_exit_percent = 90
warn_threshold_percent = 80
)");
  const auto configuration = load();
  const auto& read = configuration.settings().task_tool;
  const TaskToolSettings defaults;
  EXPECT_EQ(read.default_timeout, defaults.default_timeout);
  for (const char* type : {"plan", "explore"}) {
    EXPECT_EQ(read.agents.at(type).steps, defaults.agents.at(type).steps);
    EXPECT_EQ(read.agents.at(type).timeout, defaults.agents.at(type).timeout);
  }
  EXPECT_EQ(read.thresholds.low, 0.7);
  EXPECT_EQ(read.thresholds.finalize, 0.9);
  EXPECT_EQ(said(configuration, "task_tool.budget.warn_threshold_percent"),
            "80, file watchdog.toml:13");
}

/// A file, and what is said of it.
struct Wrong {
  const char* text;
  const char* refusal;
};
void PrintTo(const Wrong& wrong, std::ostream* out) {  // NOLINT: GoogleTest's name
  *out << wrong.text;
}

class Refused : public Configured, public testing::WithParamInterface<Wrong> {};
TEST_P(Refused, with_its_line_and_what_would_be_right) {
  EXPECT_EQ(refusal_of(GetParam().text), GetParam().refusal);
}

INSTANTIATE_TEST_SUITE_P(
    Files, Refused,
    testing::Values(
        Wrong{"\n[run]\nmax_iterations = 0\n",
              "watchdog.toml:3: run.max_iterations is 0; it must be an integer from 1 to "
              "1000000\n"},
        Wrong{"run.max_iterations = 2.5",
              "watchdog.toml:1: run.max_iterations is 2.5; it must be an integer from 1 to "
              "1000000\n"},
        Wrong{"run.max_iterations = '25'",
              "watchdog.toml:1: run.max_iterations is \"25\"; it must be an integer from 1 to "
              "1000000\n"},
        Wrong{"run.max_iterations = 9223372036854775807",
              "watchdog.toml:1: run.max_iterations is 9223372036854775807; it must be an integer "
              "from 1 to 1000000\n"},
        Wrong{"run.max_iterations = 2026-01-01",
              "watchdog.toml:1: run.max_iterations is a date or a time; it must be an integer "
              "from 1 to 1000000\n"},
        Wrong{"budget.cost = nan",
              "watchdog.toml:1: budget.cost is nan; it must be a number from 0 to "
              "1000000000000\n"},
        Wrong{"run.on_confirmed_stuck = 'kill'",
              "watchdog.toml:1: run.on_confirmed_stuck is \"kill\"; it must be one of \"report\", "
              "\"fail\"\n"},
        Wrong{"proxy.probe = 1", "watchdog.toml:1: proxy.probe is 1; it must be true or false\n"},
        Wrong{"model.name = [1, {a = 2}]",
              "watchdog.toml:1: model.name is [1,{\"a\":2}]; it must be a text\n"},
        Wrong{"model.name = 'a\tb'", "watchdog.toml:1: model.name holds a control character\n"},
        Wrong{"model.base_url = 'localhost:8080'",
              "watchdog.toml:1: model.base_url is \"localhost:8080\"; it must be an http:// or "
              "https:// URL\n"},
        Wrong{"model.base_url = 'http://'",
              "watchdog.toml:1: model.base_url is \"http://\"; it must be an http:// or https:// "
              "URL\n"},
        Wrong{"checks.base_url = 'https://me:secret@host/v1'",
              "watchdog.toml:1: checks.base_url names a user or password before the host; put the "
              "key into $OPENAI_API_KEY or model.api_key_file\n"},
        Wrong{"[model]\napi_key = 'sk-secret'",
              "watchdog.toml:2: model.api_key must not be in this file, which is copied, committed "
              "and shown around; use $OPENAI_API_KEY or model.api_key_file\n"},
        Wrong{"[run]\nmax_iteration = 3",
              "watchdog.toml:2: unknown setting run.max_iteration; did you mean "
              "run.max_iterations?\n"},
        Wrong{"max_iterations = 3",
              "watchdog.toml:1: unknown setting max_iterations; did you mean "
              "run.max_iterations?\n"},
        Wrong{"\n[runn]\n", "watchdog.toml:2: unknown setting runn\n"},
        Wrong{"\"a\\u001b b\" = 1", "watchdog.toml:1: unknown setting \"a\\u001b b\"\n"},
        Wrong{"run = 5", "watchdog.toml:1: run is a section: [run]\n"},
        Wrong{"[[run]]\nmax_iterations = 1", "watchdog.toml:1: run is a section: [run]\n"},
        Wrong{"[budget.tokens]\nx = 1",
              "watchdog.toml:2: unknown setting budget.tokens.x; did you "
              "mean budget.tokens?\n"},
        Wrong{"policy.stuckThreshold = 1",
              "watchdog.toml:1: policy.stuckThreshold is 1; it must be from 2 to 10000\n"},
        Wrong{"policy.stuckThreshold = '5'",
              "watchdog.toml:1: policy.stuckThreshold must be an integer\n"},
        Wrong{"policy.callIdleMax = inf",
              "watchdog.toml:1: policy.callIdleMax is inf; it must be a finite number\n"},
        Wrong{"policy.callIdleMax = 2026-01-01",
              "watchdog.toml:1: policy.callIdleMax is a date or a time, which no threshold is\n"},
        Wrong{"policy.patterns = 5",
              "watchdog.toml:1: policy.patterns is a section: "
              "[policy.patterns]\n"},
        Wrong{"[policy]\nslowDeviation = 5",
              "watchdog.toml:2: unknown setting policy.slowDeviation\n"},
        Wrong{
            "[policy.tools.bash]\nuse = 'pol'",
            "watchdog.toml:2: policy.tools.bash use is \"pol\"; it must be one of ordinary paging "
            "poll exempt\n"},
        Wrong{"[task_tool.budget]\nwarn_threshold_percent = 95",
              "watchdog.toml:2: task_tool.budget: wrap_up_threshold_percent (70), "
              "warn_threshold_percent (95) and timeout_force_exit_percent (90) must ascend\n"},
        Wrong{
            "[task_tool]\ndefault_plan_max_steps = 5\nagents.plan.max_steps = 6",
            "watchdog.toml:3: task_tool.agents.plan.max_steps is another name of what line 2 says "
            "already\n"},
        Wrong{"[tools]\ntimeout_seconds = -1",
              "watchdog.toml:2: tools.timeout_seconds is -1; it must be an integer from 0 to "
              "86400\n"},
        Wrong{"[tools.timeouts]\nshell = 86401",
              "watchdog.toml:2: tools.timeouts.shell is 86401; it must be an integer from 0 to "
              "86400\n"},
        Wrong{"tools.profile = 'patient'",
              "watchdog.toml:1: tools.profile is \"patient\"; it must be one of \"autonomous\", "
              "\"interactive\", \"batch\"\n"},
        Wrong{"monitor.hosts = 'a'",
              "watchdog.toml:1: monitor.hosts is \"a\"; it must be a list of at most 64, each a "
              "text\n"},
        Wrong{"monitor.hosts = [1]", "watchdog.toml:1: monitor.hosts is 1; it must be a text\n"},
        Wrong{"monitor.tls_key = '/k'",
              "watchdog.toml:1: monitor.tls_cert and monitor.tls_key belong together: set both or "
              "none\n"},
        // Texts that are not TOML at all.
        Wrong{"a = ",
              "watchdog.toml:1:5: Error while parsing key-value pair: encountered "
              "end-of-file\n"},
        Wrong{"[budget]\ntokens = 1\ntokens = 2",
              "watchdog.toml:3:10: Error while parsing key-value pair: cannot redefine existing "
              "integer 'tokens'\n"},
        Wrong{"# fine\nb = '\xff'", "watchdog.toml:2:5: Encountered invalid utf-8 sequence\n"}));

TEST_F(Configured, all_mistakes_are_said_at_once) {
  sources.environment = {{"OPENAI_BASE_URL", "ftp://x"}, {"WATCHDOG_BUDGET_TOKENS", "many"}};
  sources.flags = {{"monitor.port", "70000"}};
  EXPECT_EQ(refusal_of("[run]\nmax_iterations = 0\nmax_iteration = 1\n[monitor]\nport = 'x'\n"),
            "watchdog.toml:2: run.max_iterations is 0; it must be an integer from 1 to 1000000\n"
            "watchdog.toml:3: unknown setting run.max_iteration; did you mean "
            "run.max_iterations?\n"
            "watchdog.toml:5: monitor.port is \"x\"; it must be an integer from 0 to 65535\n"
            "OPENAI_BASE_URL: model.base_url is \"ftp://x\"; it must be an http:// or https:// "
            "URL\n"
            "WATCHDOG_BUDGET_TOKENS: budget.tokens is \"many\"; it must be an integer from 1 to "
            "1000000000000000\n"
            "--port: monitor.port is 70000; it must be an integer from 0 to 65535\n");
  const auto loaded = Configuration::load(sources);
  EXPECT_EQ(loaded.error().front().origin, Origin::file);
  EXPECT_EQ(loaded.error().front().key, "run.max_iterations");
  EXPECT_EQ(loaded.error().back().origin, Origin::command_line);
}

TEST_F(Configured, a_file_full_of_mistakes_is_refused_in_a_page) {
  std::string text;
  for (int i = 0; i < 50'000; ++i) text += "k" + std::to_string(i) + " = 1\n";
  const auto said = refusal_of(text);
  EXPECT_EQ(std::ranges::count(said, '\n'), 101);
  EXPECT_TRUE(said.ends_with("there are more mistakes than these 100\n")) << said.substr(6'000);
}

TEST_F(Configured, a_key_of_a_hundred_thousand_parts_is_refused_in_time) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "a.";
  for (const auto& text : {deep + "a = 1", "\n[" + deep + "a]", "x = { " + deep + "a = 1 }"})
    EXPECT_NE(refusal_of(text).find("a line may hold at most 64 dots"), std::string::npos);
  EXPECT_NE(refusal_of("x = " + std::string(100'000, '[')).find("nested"), std::string::npos);
  // As deep as it gets: many parts, in as many lists in tables as are allowed.
  std::string begin;
  std::string end;
  for (int i = 0; i < 7; ++i) {
    begin += "[\n{ " + deep.substr(0, 120) + "a = ";
    end += " }\n]";
  }
  EXPECT_TRUE(refusal_of("model.name = " + begin + "1" + end)
                  .starts_with("watchdog.toml:1: model.name is [{\"a\":{\"a\":{\"a\":"));
}

TEST_F(Configured, a_file_must_be_one_and_no_larger_than_a_mebibyte) {
  sources.file = dir / "none.toml";
  EXPECT_EQ(refusal(), "none.toml: cannot be read: No such file or directory\n");
  sources.file = dir.path();
  EXPECT_NE(refusal().find("is not a regular file"), std::string::npos);
  ASSERT_EQ(mkfifo((dir / "pipe").c_str(), 0600), 0);
  sources.file = dir / "pipe";  // nobody writes: waiting would be for ever
  EXPECT_EQ(refusal(), "pipe: is not a regular file\n");
  EXPECT_EQ(refusal_of(std::string((1U << 20U) + 1, '#')),
            "watchdog.toml: has more than the 1048576 bytes that are allowed\n");
  write(std::string(1U << 20U, '#'));
  load();
}

TEST_F(Configured, the_file_is_the_named_one_else_that_of_the_user_and_never_of_the_directory) {
  sources.file.reset();
  EXPECT_EQ(load().file(), "");
  const auto make = [&](const std::filesystem::path& path, const std::string& text) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  };
  const auto of_home = dir.path() / ".config/watchdog/watchdog.toml";
  make(of_home, "budget.steps = 1");
  sources.environment["HOME"] = dir.path();
  EXPECT_EQ(load().file(), of_home);
  const auto of_xdg = dir.path() / "xdg/watchdog/watchdog.toml";
  make(of_xdg, "budget.steps = 2");
  sources.environment["XDG_CONFIG_HOME"] = dir / "xdg";
  EXPECT_EQ(load().settings().budget.limits.steps, 2);
  sources.environment["XDG_CONFIG_HOME"] = "xdg";  // must be absolute to count
  EXPECT_EQ(load().settings().budget.limits.steps, 1);
  make(dir / "named.toml", "budget.steps = 3");
  sources.environment["WATCHDOG_CONFIG"] = dir / "named.toml";
  EXPECT_EQ(load().settings().budget.limits.steps, 3);
  make(dir / "flag.toml", "budget.steps = 4");
  sources.file = dir / "flag.toml";
  EXPECT_EQ(load().settings().budget.limits.steps, 4);
  sources.file.reset();
  sources.environment["WATCHDOG_CONFIG"] = dir / "gone.toml";
  EXPECT_EQ(refusal(), "gone.toml: cannot be read: No such file or directory\n");
}

TEST_F(Configured, each_scalar_has_a_variable) {
  std::vector<std::string> names;
  for (const auto& setting : all_settings()) {
    ASSERT_FALSE(setting.variables.empty()) << setting.key;
    names.insert(names.end(), setting.variables.begin(), setting.variables.end());
    if (setting.text.empty() || setting.key == "model.api_key") continue;
    // Its default, said by the variable, changes nothing but the origin.
    auto text = setting.text;
    if (text.starts_with('"')) text = text.substr(1, text.size() - 2);
    if (text.empty()) continue;
    sources.environment = {{setting.variables.back(), text}};
    EXPECT_EQ(said(load(), setting.key),
              setting.text + ", environment " + setting.variables.back());
  }
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end()) << "two settings, one variable";
  for (const char* name :
       {"OPENAI_BASE_URL", "OPENAI_API_KEY", "WATCHDOG_DB", "AUTONOMOUS_STATUS_BASED_TIMEOUT",
        "WATCHDOG_MODEL", "WATCHDOG_POLICY_STUCK_THRESHOLD", "WATCHDOG_PROXY_CA_FILE",
        "WATCHDOG_TASK_TOOL_DEFAULT_PLAN_MAX_STEPS", "WATCHDOG_TASK_TOOL_AGENTS_PLAN_MAX_STEPS",
        "AGENT_TOOL_TIMEOUT", "WATCHDOG_TOOLS_TIMEOUTS_BROWSER"})
    EXPECT_TRUE(std::ranges::binary_search(names, name)) << name;
}

TEST_F(Configured, patterns_of_secrets_are_a_list_and_bad_ones_are_refused_with_their_place) {
  write("[privacy]\npatterns = [\"CUST-[0-9]{8}\", '(?i)internal-\\w+']\n");
  EXPECT_EQ(load().settings().privacy.patterns,
            (std::vector<std::string>{"CUST-[0-9]{8}", R"((?i)internal-\w+)"}));
  const auto refused = [&](const std::string& list) {
    return refusal_of("[privacy]\npatterns = " + list + "\n");
  };
  EXPECT_EQ(refused(R"(["ok", "(oops"])"),
            "watchdog.toml:2: privacy.patterns holds \"(oops\", which is not a regular expression: "
            "missing ): (oops\n");
  const std::string too_much =
      ", which matches even what stands for a secret: make it more particular\n";
  EXPECT_EQ(refused(R"([".*"])"), "watchdog.toml:2: privacy.patterns holds \".*\"" + too_much);
  EXPECT_EQ(refused(R"([""])"), "watchdog.toml:2: privacy.patterns holds \"\"" + too_much);
  EXPECT_EQ(refused(R"(["[a-f]"])"),
            "watchdog.toml:2: privacy.patterns holds \"[a-f]\"" + too_much);
  EXPECT_NE(refused(R"(['\pL{999}'])").find("pattern too large"), std::string::npos);
  EXPECT_NE(refused("['(((Q{99}){99}){99}){99}']").find("is not a regular expression"),
            std::string::npos);
  EXPECT_NE(refused("['" + std::string(1'001, 'x') + "']").find("longer than 1000 bytes"),
            std::string::npos);
  const std::string list = "a list of at most 64, each a regular expression\n";
  EXPECT_TRUE(refused("'x9'").ends_with("it must be " + list));
  EXPECT_TRUE(refused("[1]").ends_with("is 1; it must be a regular expression\n"));
  sources.file.reset();
  sources.environment = {{"WATCHDOG_PRIVACY_PATTERNS", "[Xx]ACME-[0-9]+"}};
  EXPECT_EQ(load().settings().privacy.patterns, (std::vector<std::string>{"[Xx]ACME-[0-9]+"}));
}

TEST_F(Configured, patterns_of_secrets_hold_from_the_start_of_a_program_on) {
  ASSERT_TRUE(add_redactions({.patterns = {"CUST-[0-9]{4}", "ü+ber"}}).ok());
  EXPECT_EQ(redact("a CUST-1234 and CUST-56789, üüber\xff"),
            "a [redacted] and [redacted]9, [redacted]\xff");
  EXPECT_FALSE(add_redactions({.patterns = {"("}}).ok());
}

TEST_F(Configured, variables_are_read_by_type_and_slips_are_refused) {
  sources.environment = {{"WATCHDOG_CHECKS_ENABLED", "0"},
                         {"WATCHDOG_BUDGET_COST", "0.5"},
                         {"AUTONOMOUS_STATUS_BASED_TIMEOUT", "0"},
                         {"WATCHDOG_MODEL", "5"},
                         {"WATCHDOG_BUDGET_TOKENS", ""},
                         {"WATCHDOG_USEC", "30000000"},  // systemd's
                         {"WATCHDOG_TOKEN", "t"}};
  const auto settings = load().settings();
  EXPECT_FALSE(settings.checks.enabled);
  EXPECT_EQ(settings.budget.limits.cost, 0.5);
  EXPECT_EQ(settings.run.old_limits.mode, Migration::time_based);
  EXPECT_EQ(settings.model.model, "5");
  EXPECT_EQ(settings.budget.limits.tokens, BudgetLimits{}.tokens);

  const std::vector<std::pair<Environment, std::string>> wrong = {
      {{{"AUTONOMOUS_STATUS_BASED_TIMEOUT", "yes"}},
       "AUTONOMOUS_STATUS_BASED_TIMEOUT: migration.status_based is \"yes\"; it must be one of "
       "\"0\", \"1\", \"compare\"\n"},
      {{{"WATCHDOG_RUN_MAX_ITERATIONS", "1e9"}},
       "WATCHDOG_RUN_MAX_ITERATIONS: run.max_iterations is 1000000000; it must be an integer from "
       "1 to 1000000\n"},
      {{{"WATCHDOG_BUDGET_STEPS", " 3"}},
       "WATCHDOG_BUDGET_STEPS: budget.steps is \" 3\"; it must be an integer from 1 to "
       "1000000000000000\n"},
      {{{"WATCHDOG_MODEL", "\xff"}}, "WATCHDOG_MODEL: model.name is no UTF-8\n"},
      {{{"WATCHDOG_MODEL", std::string(5'000, 'm')}},
       "WATCHDOG_MODEL: model.name has 5000 bytes; at most 4096 are allowed\n"},
      {{{"OPENAI_API_KEY", "sk-secret\r\nHost: evil"}},
       "OPENAI_API_KEY: model.api_key holds a control character\n"},
      {{{"WATCHDOG_RUN_MAX_ITERATION", "3"}},
       "WATCHDOG_RUN_MAX_ITERATION: there is no such variable; did you mean "
       "WATCHDOG_RUN_MAX_ITERATIONS?\n"}};
  for (const auto& [environment, refused] : wrong) {
    sources.environment = environment;
    EXPECT_EQ(refusal(), refused);
  }
}

TEST_F(Configured, the_name_that_says_more_wins) {
  sources.environment = {{"OPENAI_BASE_URL", "http://a"}, {"WATCHDOG_MODEL_BASE_URL", "http://b"}};
  EXPECT_EQ(said(load(), "model.base_url"), "\"http://b\", environment WATCHDOG_MODEL_BASE_URL");
}

TEST_F(Configured, code_is_held_to_the_same_ranges) {
  sources.code = [](Settings& settings) {
    settings.run.iterations_max = -1;
    settings.policy.stuck_threshold = 1;
    settings.task_tool.agents["review"].steps = 3;
  };
  EXPECT_EQ(refusal(),
            "code: policy.stuckThreshold is 1; it must be from 2 to 10000\n"
            "code: run.max_iterations is -1; it must be an integer from 1 to 1000000\n");
  sources.code = [](Settings& settings) {
    settings.policy.stuck_threshold = 9;
    settings.task_tool.agents["review"].steps = 3;
  };
  const auto configuration = load();
  EXPECT_EQ(said(configuration, "policy.stuckThreshold"), "9, code");
  EXPECT_EQ(said(configuration, "task_tool.agents.review.max_steps"), "3, code");
  EXPECT_EQ(said(configuration, "run.max_iterations"), ", default");
}

TEST_F(Configured, an_api_key_is_never_shown_and_its_file_is_its_owners) {
  const auto key_file = dir / "key";
  std::ofstream(key_file) << " sk-of-the-file\n";
  write("model.api_key_file = '" + key_file.string() + "'");
  EXPECT_EQ(refusal(),
            "watchdog.toml:1: model.api_key_file: key can be read by others: it holds a secret, "
            "chmod 600 it\n");
  chmod(key_file.c_str(), 0600);
  auto configuration = load();
  EXPECT_EQ(configuration.settings().model.api_key, "sk-of-the-file");
  EXPECT_EQ(said(configuration, "model.api_key"), "set, file watchdog.toml:1");
  for (const auto& value : configuration.values())
    EXPECT_EQ(value.text.find("sk-"), std::string::npos) << value.key;

  sources.environment["OPENAI_API_KEY"] = "sk-of-the-environment";
  configuration = load();
  EXPECT_EQ(configuration.settings().model.api_key, "sk-of-the-file")
      << "other programs have that variable for other servers";
  write("");
  EXPECT_EQ(said(load(), "model.api_key"), "set, environment OPENAI_API_KEY");

  write("model.api_key_file = '" + key_file.string() + "'");
  sources.environment.clear();
  std::ofstream(key_file) << "\n";
  EXPECT_NE(refusal().find("holds no key"), std::string::npos);
  std::filesystem::remove(key_file);
  EXPECT_NE(refusal().find("cannot be read: No such file"), std::string::npos);
  sources.file = std::filesystem::path{};
  sources.flags = {{"model.api_key", "sk-x"}};
  EXPECT_EQ(refusal(),
            "model.api_key: model.api_key must not be on a command line, which everybody can "
            "list\n");
}

TEST_F(Configured, a_server_for_checks_alone_is_not_sent_the_key) {
  sources.environment = {{"OPENAI_API_KEY", "sk-x"}, {"OPENAI_BASE_URL", "https://a/v1"}};
  EXPECT_EQ(check_client(load().settings()).api_key, "sk-x");
  sources.environment["WATCHDOG_CHECKS_BASE_URL"] = "http://b";
  EXPECT_EQ(check_client(load().settings()).base_url, "http://b");
  EXPECT_EQ(check_client(load().settings()).api_key, "");
}

TEST_F(Configured, every_threshold_is_a_setting_or_was_one) {
  // The policy's own JSON says what there is.
  const auto names = [](const std::string& json) {
    std::vector<std::string> found;
    static const std::regex member("\"([a-z][A-Za-z0-9]*)\":[^{]");
    for (std::sregex_iterator at(json.begin(), json.end(), member), end; at != end; ++at)
      if (at->str(1) != "suspect" && at->str(1) != "stuck") found.push_back(at->str(1));
    return found;
  }(to_json(Policy{}));
  EXPECT_GT(names.size(), 10U);
  const auto all = all_settings();
  for (const auto& name : names)
    EXPECT_TRUE(std::ranges::find(all, "policy." + name, &SettingInfo::key) != all.end() ||
                find_former({"policy", name}) != nullptr)
        << name;
}

TEST(Settings, are_few_enough_to_be_read) {
  // A new one must be something that a user can judge. See libwatchdog/src/config/DESIGN.md.
  EXPECT_LE(setting_rows().size(), 102U);
}

TEST_F(Configured, a_former_key_is_accepted_and_reported_and_changes_nothing) {
  const auto defaults = load().values();
  for (const auto& former : former_keys()) {
    EXPECT_FALSE(find_setting(former.key)) << former.key << " is a setting";
    auto path = parts_of(former.key);
    std::ranges::replace(path, "*", "R4");
    const auto key = key_text(path);
    const auto said = key + " has no effect since 0.2: " + std::string(former.now);
    const auto expect = [&](const std::string& where) {
      const auto configuration = load();
      auto notices = to_text(configuration.notices());
      if (const auto at = notices.find(dir.path().string()); at != std::string::npos)
        notices.erase(at, dir.path().string().size() + 1);
      EXPECT_EQ(notices, where + ": " + said + "\n");
      const auto values = configuration.values();
      ASSERT_EQ(values.size(), defaults.size()) << key;
      for (std::size_t at = 0; at < values.size(); ++at)
        EXPECT_EQ(values[at].text, defaults[at].text);
    };
    write("# first\n" + key + " = 1\n");
    expect("watchdog.toml:2");
    sources.file = std::filesystem::path{};
    sources.flags = {{key, "1"}};
    expect(key);
    sources.flags.clear();
    sources.environment = {{variable_of(key), "1"}};
    const auto configuration = load();
    ASSERT_EQ(configuration.notices().size(), 1U) << key;
    EXPECT_EQ(configuration.notices()[0].where, variable_of(key));
    EXPECT_EQ(configuration.notices()[0].key, former.key);
    sources.environment.clear();
  }
  write("[policy.patterns]\n[policy.patterns.R4]\n");
  EXPECT_TRUE(load().notices().empty()) << "an empty table names nothing";
}

TEST_F(Configured, tests_make_internal_times_short_and_a_slip_in_them_is_refused) {
  const std::string name(internal_times);
  sources.environment = {{name,
                          "alerts.retry_first_ms=5,run.retry_first_ms=2,policy.slowMin=100,"
                          "alerts.channels.team.timeout_seconds=2"}};
  write("[alerts.channels.team]\ntype = 'log'\n");
  const auto settings = load().settings();
  EXPECT_EQ(settings.alerts.retry_first, 5ms);
  EXPECT_EQ(settings.run.retry_first, 2ms);
  EXPECT_EQ(settings.policy.slow_min, 100ms);
  EXPECT_EQ(settings.alerts.channels.at("team").timeout, 2s);
  EXPECT_TRUE(load().notices().empty());
  for (const char* wrong : {"monitor.port=1", "run.status_every=1", "policy.slowMin", "=", "x=1"}) {
    sources.environment[name] = wrong;
    EXPECT_TRUE(refusal().starts_with(name + ": there is no internal time ")) << refusal();
  }
  sources.environment[name] = "policy.slowMin=-1";
  EXPECT_NE(refusal().find("slowMin is -1"), std::string::npos) << refusal();
}

TEST_F(Configured, an_older_name_of_a_key_still_sets_it) {
  write("[alerts.channels.duty]\nformat = 'pagerduty'\nrouting_key_file = '/k'\n");
  EXPECT_EQ(load().settings().alerts.channels.at("duty").secret_file, "/k");
  EXPECT_EQ(said(load(), "alerts.channels.duty.secret_file"), "\"/k\", file watchdog.toml:3");
  write("model.ca_file = '/c'\nproxy.ca_file = '/c'\n");
  EXPECT_EQ(load().settings().model.ca_file, "/c") << "both say the same";
  EXPECT_EQ(refusal_of("model.ca_file = '/c'\nproxy.ca_file = '/d'\n"),
            "watchdog.toml:2: proxy.ca_file is another name of what line 1 says already\n");
}

TEST_F(Configured, the_sample_says_what_the_defaults_are) {
  const auto sample = sample_configuration();
  const auto texts = [](const Configuration& configuration) {
    std::map<std::string, std::string> all;
    for (const auto& value : configuration.values()) all[value.key] = value.text;
    return all;
  };
  const auto defaults = texts(load());
  write(sample);
  EXPECT_EQ(texts(load()), defaults);
  // And with its lines commented in, but those without a value.
  std::string whole;
  std::istringstream lines(sample);
  int values = 0;
  for (std::string line; std::getline(lines, line);) {
    const bool value = line.starts_with("#") && !line.starts_with("# ") && line != "#";
    if (value && line.find("…") == std::string::npos) {
      ++values;
      line.erase(0, 1);
    }
    whole += line + "\n";
  }
  EXPECT_GT(values, 50);
  write(whole);
  auto read = texts(load());
  read.erase("policy.tools.build_status.use");  // an example: no tool is known by default
  read.erase("policy.tools.build_status.identity");
  EXPECT_EQ(read, defaults);
  for (const auto& setting : all_settings())
    EXPECT_NE(sample.find("# " + setting.help), std::string::npos) << setting.key;
}

TEST_F(Configured, random_files_are_read_or_refused) {
  std::mt19937 random(random_seed());
  const auto any = [&](const std::vector<std::string>& words) {
    return words[random() % words.size()];
  };
  std::vector<std::string> parts{"run",  "policy",  "patterns",  "R1",     "tools", "agents",
                                 "\"\"", "\"a.b\"", "task_tool", "budget", "x",     "'\xc3\xa9'"};
  for (const auto& setting : all_settings()) parts.push_back(setting.key);
  const std::vector<std::string> values{
      "1",       "-1",         "0.5",   "true", "'text'",
      "[]",      "{}",         "{a=1}", "'0'",  "nan",
      "[[[1]]]", "1979-05-27", "99999", "\"\"", "-9223372036854775808"};
  for (int left = repetitions(3'000); left > 0; --left) {
    std::string text;
    for (auto lines = random() % 6; lines > 0; --lines) {
      auto key = any(parts);
      while (random() % 3 == 0) key += "." + any(parts);
      text += random() % 4 == 0 ? "[" + key + "]\n" : key + " = " + any(values) + "\n";
    }
    write(text);
    const auto loaded = Configuration::load(sources);
    if (!loaded) {
      EXPECT_FALSE(loaded.error().empty());
      for (const auto& mistake : loaded.error()) {
        EXPECT_TRUE(mistake.where.starts_with(file.string() + ":")) << text << mistake.where;
        EXPECT_FALSE(mistake.message.empty()) << text;
      }
    } else {
      EXPECT_FALSE(loaded->values().empty());
    }
  }
}

TEST(SecretFile, belongs_to_its_reader_or_root_and_is_for_nobody_else) {
  constexpr mode_t own = S_IFREG | 0600;
  const auto refusal = [](mode_t mode, uid_t owner, uid_t user) {
    const auto allowed = check_secret_file(mode, owner, user);
    return allowed ? std::string() : allowed.error().message;
  };
  EXPECT_EQ(refusal(own, 1000, 1000), "");
  EXPECT_EQ(refusal(own, 0, 1000), "") << "root gave it to a service";
  EXPECT_EQ(refusal(S_IFREG | 0400, 0, 0), "");
  EXPECT_TRUE(refusal(own, 1001, 1000).starts_with("belongs to user 1001, "));
  EXPECT_TRUE(refusal(own, 1000, 0).starts_with("belongs to user 1000, "));
  for (mode_t bits = 1; bits < 0100; ++bits) {
    EXPECT_TRUE(refusal(own | bits, 1000, 1000).starts_with("can be read by others")) << bits;
  }
}

}  // namespace
}  // namespace watchdog::test
