// Settings of the real binary: from files, variables and flags.
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/server.h"
#include "support/temp_dir.h"
#include "support/text_file.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;
using test::run;
using test::TempDir;

class Config : public testing::Test {
 protected:
  TempDir dir;
  std::filesystem::path file = dir / "watchdog.toml";
  // The settings of the user who runs the tests do not apply.
  test::Process::Options options{.environment = {"XDG_CONFIG_HOME=" + (dir / "none").string()}};

  test::Ran with(std::vector<std::string> words) const {
    words.insert(words.begin(), WATCHDOG_MONITOR);
    return run(words, options);
  }
  /// The line of a setting in what the command prints.
  static std::string line_of(const std::string& output, const std::string& key) {
    const auto at = output.find("\n" + key + " ");
    if (at == std::string::npos) return {};
    return output.substr(at + 1, output.find('\n', at + 1) - at - 1);
  }
};

TEST_F(Config, says_each_value_and_where_it_came_from) {
  std::ofstream(file) << "[monitor]\nport = 1\nretention_days = 7\n[run]\nmax_iterations = 2\n";
  options.environment.insert(options.environment.end(),
                             {"OPENAI_BASE_URL=http://model:1/v1", "OPENAI_API_KEY=sk-secret"});
  const auto ran = with({"config", "--config", file, "--port", "5", "--no-checks"});
  EXPECT_EQ(ran.code, 0) << ran.output;
  const auto ends = [&](const std::string& key, const std::string& value, const std::string& from) {
    const auto line = line_of(ran.output, key);
    EXPECT_TRUE(line.find(" " + value + " ") != std::string::npos && line.ends_with("  " + from))
        << line;
  };
  ends("monitor.port", "5", "command line --port");
  ends("monitor.retention_days", "7", "file " + file.string() + ":3");
  ends("monitor.bind", "\"127.0.0.1\"", "default");
  ends("model.base_url", "\"http://model:1/v1\"", "environment OPENAI_BASE_URL");
  ends("model.api_key", "set", "environment OPENAI_API_KEY");
  ends("checks.enabled", "false", "command line --no-checks");
  EXPECT_EQ(ran.output.find("sk-secret"), std::string::npos);

  const auto document = json::parse(with({"config", "--config", file, "--json"}).output);
  EXPECT_EQ(document["file"], file.string());
  std::map<std::string, json> by_key;
  for (const auto& setting : document["settings"]) by_key[setting["key"]] = setting;
  EXPECT_EQ(by_key["run.max_iterations"]["value"], 2);
  EXPECT_EQ(by_key["run.max_iterations"]["origin"], "file");
  EXPECT_EQ(by_key["run.max_iterations"]["where"], file.string() + ":5");
  EXPECT_EQ(by_key["model.api_key"]["value"], "set");
  EXPECT_EQ(by_key["budget.steps"]["value"], nullptr);
}

TEST_F(Config, its_sample_is_a_file_it_accepts) {
  const auto sample = with({"config", "--sample"});
  EXPECT_EQ(sample.code, 0);
  std::ofstream(file) << sample.output;
  const auto checked = with({"config", "--config", file, "--check"});
  EXPECT_EQ(checked.code, 0);
  EXPECT_EQ(checked.output, file.string() + ": settings are valid\n");
}

TEST_F(Config, former_settings_are_reported_and_everything_starts) {
  std::ofstream(file) << "[policy]\nslowDeviations = 2\n[monitor]\nport = 0\n";
  options.environment.emplace_back("WATCHDOG_RUN_LOW_CONFIDENCE=0.5");
  const std::string in_file =
      file.string() +
      ":2: policy.slowDeviations has no effect since 0.2: a session's own policy "
      "can still change it\n";
  const std::string in_variable =
      "WATCHDOG_RUN_LOW_CONFIDENCE: run.low_confidence has no effect since 0.2: a reflection below "
      "0.3 counts as low\n";
  const auto once = [&](const std::string& output) {
    for (const auto& notice : {in_file, in_variable}) {
      const auto at = output.find(notice);
      EXPECT_NE(at, std::string::npos) << output;
      EXPECT_EQ(output.find(notice, at + 1), std::string::npos) << output;
    }
  };
  const auto checked = with({"config", "--config", file, "--check"});
  EXPECT_EQ(checked.code, 0);
  once(checked.output);
  EXPECT_NE(checked.output.find(file.string() + ": settings are valid\n"), std::string::npos);
  const auto shown = with({"config", "--config", file, "--json"}).output;
  const auto notices = json::parse(shown.substr(shown.find("\n{") + 1))["notices"];
  ASSERT_EQ(notices.size(), 2U);
  EXPECT_EQ(notices[0]["key"], "policy.slowDeviations");
  EXPECT_EQ(notices[0]["where"], file.string() + ":2");
  for (const char* format : {"text", "json"}) {
    const auto log = dir / format;
    test::Process monitor(
        {"/bin/sh", "-c", "exec \"$0\" \"$@\" 2>" + log.string(), WATCHDOG_MONITOR, "serve",
         "--config", file, "--db", dir / "w.db", "--log-format", format},
        options);
    EXPECT_TRUE(monitor.line().starts_with("listening on "));
    monitor.signal(SIGTERM);
    EXPECT_EQ(monitor.wait(), 0);
    const auto text = test::content_of(log);
    if (std::string_view(format) == "text") {
      once(text);
      continue;
    }
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
      EXPECT_TRUE(json::parse(line, nullptr, false).is_object()) << line;
    EXPECT_NE(text.find("policy.slowDeviations has no effect"), std::string::npos);
  }
}

TEST_F(Config, wrong_settings_are_reported_at_once_and_nothing_starts) {
  std::ofstream(file) << "[monitor]\nport = 'x'\nprot = 1\n[model]\napi_key = 'sk-secret'\n";
  for (const char* command : {"config", "serve", "demo"}) {
    const auto ran = with({command, "--config", file});
    EXPECT_EQ(ran.code, 3) << command;
    for (const char* line : {":2: monitor.port is",
                             ":3: unknown setting monitor.prot; did you "
                             "mean monitor.port?",
                             ":5: model.api_key must not be in this file"})
      EXPECT_NE(ran.output.find(file.string() + line), std::string::npos) << ran.output;
    EXPECT_EQ(ran.output.find("sk-secret"), std::string::npos);
  }
  EXPECT_EQ(with({"config", "--config", dir / "gone.toml"}).code, 3);
  EXPECT_EQ(with({"config", "--config", "", "--port", "70000"}).code, 2);
  EXPECT_EQ(with({"config", "--sample", "--json"}).code, 2);
  options.environment.emplace_back("OPENAI_BASE_URL=not\x1b[31m a url");
  const auto hostile = with({"serve", "--port", "0", "--db", dir / "w.db"});
  EXPECT_EQ(hostile.code, 3);
  EXPECT_NE(hostile.output.find("OPENAI_BASE_URL: model.base_url"), std::string::npos);
  EXPECT_EQ(hostile.output.find('\x1b'), std::string::npos);
}

TEST_F(Config, is_what_serve_goes_by_and_flags_win) {
  std::filesystem::create_directories(dir / "xdg/watchdog");
  std::ofstream(dir / "xdg/watchdog/watchdog.toml")
      << "[monitor]\ndb = '" << (dir / "file.db").string() << "'\nport = 0\nbind = '::1'\n";
  options.environment = {"XDG_CONFIG_HOME=" + (dir / "xdg").string()};
  {
    test::Process serve({WATCHDOG_MONITOR, "serve"}, options);
    EXPECT_TRUE(serve.line().starts_with("listening on http://[::1]:"));
    EXPECT_TRUE(std::filesystem::exists(dir / "file.db"));
  }
  test::Process serve({WATCHDOG_MONITOR, "serve", "--db", dir / "flag.db", "--bind", "127.0.0.1"},
                      options);
  EXPECT_TRUE(serve.line().starts_with("listening on http://127.0.0.1:"));
  EXPECT_TRUE(std::filesystem::exists(dir / "flag.db"));
}

}  // namespace
}  // namespace watchdog::monitor
