// Every command that writes removes the secrets that the settings describe by patterns.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "http/client.h"
#include "support/model_server.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "support/text_file.h"
#include "watchdog/tracker.h"

namespace watchdog::monitor {
namespace {

namespace fs = std::filesystem;
using test::ModelServer;
using test::Process;
using test::TempDir;

constexpr const char* own_secret = "CUST-20260031";

/// A monitor, in the environment given.
struct Serving {
  Serving(const fs::path& database, std::vector<std::string> environment,
          std::vector<std::string> more = {})
      : process(
            [&] {
              std::vector<std::string> words{WATCHDOG_MONITOR,  "serve",  "--db",
                                             database.string(), "--port", "0"};
              words.insert(words.end(), more.begin(), more.end());
              return words;
            }(),
            {.environment = std::move(environment)}) {
    const auto first = process.line();
    url = first.substr(first.find("http"));
  }
  ~Serving() {
    process.signal(SIGTERM);
    process.wait();
  }
  Serving(const Serving&) = delete;
  Serving& operator=(const Serving&) = delete;

  Process process;
  std::string url;
};

class Patterns : public testing::Test {
 protected:
  TempDir dir;
  fs::path config = dir / "settings.toml";
  fs::path database = dir / "state" / "w.db";
  /// The file and the variable are two ways to say it.
  const std::vector<std::string> own{"WATCHDOG_PRIVACY_PATTERNS=CUST-[0-9]{8}"};

  void SetUp() override {
    std::ofstream(config) << "[privacy]\npatterns = ['CUST-[0-9]{8}']\n";
    fs::create_directory(dir / "state");
  }

  /// The secret is in no file, and `mark` in one of them, so that something was written.
  void expect_clean(const std::string& mark) const {
    bool is_there = false;
    for (const auto& entry : fs::recursive_directory_iterator(dir / "state")) {
      if (!entry.is_regular_file()) continue;
      const auto content = test::content_of(entry.path());
      EXPECT_EQ(content.find(own_secret), std::string::npos) << entry.path();
      is_there = is_there || content.find(mark) != std::string::npos;
    }
    EXPECT_TRUE(is_there) << mark;
  }

  [[nodiscard]] test::Ran run(std::vector<std::string> words) const {
    words.insert(words.begin(), WATCHDOG_MONITOR);
    return test::run(std::move(words), {.environment = own});
  }
};

TEST_F(Patterns, hold_for_a_wrapped_command_that_reports_to_a_file) {
  for (const auto& from : {std::vector<std::string>{}, {"--config", config.string()}}) {
    std::vector<std::string> words{WATCHDOG_MONITOR, "run", "--db", database.string()};
    words.insert(words.end(), from.begin(), from.end());
    words.insert(words.end(), {"--task", std::string("of ") + own_secret, "--state-change-on", "a",
                               "--", "echo", std::string("a mark ") + own_secret});
    const auto ran =
        test::run(words, {.environment = from.empty() ? own : std::vector<std::string>{}});
    ASSERT_EQ(ran.code, 0) << ran.output;
    expect_clean("a mark [redacted]");
    fs::remove_all(dir / "state");
    fs::create_directory(dir / "state");
  }
}

TEST_F(Patterns, hold_for_a_wrapped_command_whose_monitor_does_not_know_them) {
  {
    const Serving monitor(database, {});
    const auto ran =
        run({"run", "--server", monitor.url, "--task", std::string("of ") + own_secret,
             "--state-change-on", "a", "--", "echo", std::string("a mark ") + own_secret});
    ASSERT_EQ(ran.code, 0) << ran.output;
  }
  expect_clean("a mark [redacted]");
}

TEST_F(Patterns, hold_for_replayed_traces) {
  const auto trace = dir / "run.jsonl";
  std::ofstream(trace) << R"({"seq":0,"ts_ms":1700000000000,"kind":"message","text":"a mark )"
                       << own_secret << "\"}\n"
                       << R"({"seq":1,"ts_ms":1700000000001,"kind":"end","outcome":"completed"})"
                       << "\n";
  const auto ran = run({"replay", trace.string(), "--db", database.string()});
  ASSERT_EQ(ran.code, 0) << ran.output;
  expect_clean("a mark [redacted]");
}

TEST_F(Patterns, hold_for_a_cancel_that_is_written_into_a_file) {
  ProgressTracker tracker({.session = "open", .database = database});
  ASSERT_TRUE(tracker.flush().ok());
  const auto ran = run({"cancel", "open", "--db", database.string(), "--reason",
                        std::string("a mark ") + own_secret});
  ASSERT_EQ(ran.code, 0) << ran.output;
  expect_clean("a mark [redacted]");
}

TEST_F(Patterns, hold_for_a_proxy_whose_monitor_does_not_know_them) {
  ModelServer model([](ModelServer::Exchange& exchange) {
    exchange.respond(200, std::string(R"({"choices":[{"finish_reason":"stop","index":0,"message":)"
                                      R"({"role":"assistant","content":"a mark )") +
                              own_secret + R"("}}]})");
  });
  {
    const Serving monitor(database, {});
    Process proxy({WATCHDOG_MONITOR, "proxy", "--upstream", model.base_url(), "--port", "0",
                   "--server", monitor.url},
                  {.environment = own});
    const auto line = proxy.line();
    const auto url = line.substr(line.find("http"));
    auto client = MonitorClient::to(url.substr(0, url.find_first_of(" ,;")), {});
    ASSERT_TRUE(client.ok()) << line;
    const nlohmann::json question = {
        {"model", "m"},
        {"messages", {{{"role", "user"}, {"content", std::string("I am ") + own_secret}}}}};
    const auto answer = client->ask(Method::post, "/v1/chat/completions", question.dump());
    ASSERT_TRUE(answer.ok());
    EXPECT_NE(answer->body.find(own_secret),
              std::string::npos);  // what passes through is as it was
    proxy.signal(SIGTERM);
    EXPECT_EQ(proxy.wait(), 0);
  }
  expect_clean("a mark [redacted]");
}

TEST_F(Patterns, that_are_wrong_are_refused_before_anything_is_written) {
  std::ofstream(config) << "[privacy]\npatterns = ['(']\n";
  const auto trace = dir / "run.jsonl";
  std::ofstream(trace) << R"({"seq":0,"ts_ms":1,"kind":"end","outcome":"completed"})"
                       << "\n";
  const std::vector<std::vector<std::string>> commands{
      {"run", "--db", database.string(), "--config", config.string(), "--", "touch",
       (dir / "ran").string()},
      {"replay", trace.string(), "--db", database.string(), "--config", config.string()},
      {"cancel", "s", "--db", database.string(), "--config", config.string()}};
  for (const auto& command : commands) {
    const auto ran = run(command);
    EXPECT_EQ(ran.code, 3) << command[0];
    EXPECT_NE(ran.output.find("privacy.patterns"), std::string::npos) << ran.output;
  }
  EXPECT_FALSE(fs::exists(dir / "ran"));
  EXPECT_FALSE(fs::exists(database));
}

}  // namespace
}  // namespace watchdog::monitor
