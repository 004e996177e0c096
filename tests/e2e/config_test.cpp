// Settings of the real binary: from files, variables and flags.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "support/server.h"
#include "support/temp_dir.h"

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
  std::ofstream(file) << "[monitor]\nport = 1\nretention_days = 7\n[run]\nretries = 2\n";
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
  EXPECT_EQ(by_key["run.retries"]["value"], 2);
  EXPECT_EQ(by_key["run.retries"]["origin"], "file");
  EXPECT_EQ(by_key["run.retries"]["where"], file.string() + ":5");
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

TEST_F(Config, wrong_settings_are_reported_at_once_and_nothing_starts) {
  std::ofstream(file) << "[monitor]\nport = 'x'\nprot = 1\n[model]\napi_key = 'sk-secret'\n";
  for (const char* command : {"config", "serve", "demo"}) {
    const auto ran = with({command, "--config", file});
    EXPECT_EQ(ran.code, 3) << command;
    for (const char* line : {":2: monitor.port is",
                             ":3: there is no setting monitor.prot; did you "
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
