// `watchdog-monitor wait` on real agents, through the file and through a monitor's stream.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/sse_reader.h"
#include "support/model_server.h"
#include "support/process.h"
#include "support/server.h"
#include "support/temp_dir.h"

namespace watchdog {
namespace {

using nlohmann::json;
using test::Process;
using test::Ran;
using test::Server;

/// A program with a terminal of its own.
class OnTerminal {
 public:
  explicit OnTerminal(std::vector<std::string> words) {
    std::vector<char*> arguments;
    for (auto& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    pid_ = forkpty(&terminal_, nullptr, nullptr, nullptr);
    if (pid_ == 0) {
      execv(arguments[0], arguments.data());
      _exit(127);
    }
  }
  ~OnTerminal() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    close(terminal_);
  }
  OnTerminal(const OnTerminal&) = delete;
  OnTerminal& operator=(const OnTerminal&) = delete;

  /// Reads until it has said that; false if it ended before.
  bool hears(const std::string& text) {
    std::array<char, 4'096> bytes{};
    while (said_.find(text) == said_.npos) {
      const auto count = read(terminal_, bytes.data(), bytes.size());
      if (count <= 0) return false;
      said_.append(bytes.data(), static_cast<std::size_t>(count));
    }
    said_.erase(0, said_.find(text) + text.size());
    return true;
  }
  void types(const std::string& text) const {
    EXPECT_EQ(write(terminal_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  int ends() {
    while (hears("\n")) {
    }
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  int terminal_ = -1;
  std::string said_;
};

/// Each test for both ways of asking.
class WaitCommand : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (GetParam()) server_.emplace(database_);
  }

  [[nodiscard]] std::vector<std::string> words(std::vector<std::string> more) const {
    std::vector<std::string> all{test::program, "wait"};
    all.insert(all.end(), more.begin(), more.end());
    if (GetParam()) {
      all.insert(all.end(), {"--server", server_->url()});
    } else {
      all.insert(all.end(), {"--db", database_.string()});
    }
    return all;
  }
  [[nodiscard]] Ran waits(std::vector<std::string> more) const {
    auto ran = test::run(words(std::move(more)));
    std::cout << ran.output;
    return ran;
  }
  [[nodiscard]] std::vector<std::string> agent(const std::string& session,
                                               std::vector<std::string> script) const {
    std::vector<std::string> all{WATCHDOG_SCRIPTED_AGENT, database_.string(), session};
    all.insert(all.end(), script.begin(), script.end());
    return all;
  }
  /// An agent from its beginning to its end.
  void report(const std::string& session, std::vector<std::string> script) const {
    EXPECT_EQ(test::run(agent(session, std::move(script))).code, 0);
  }
  /// Stuck for three iterations more than it takes, and then quiet.
  [[nodiscard]] std::vector<std::string> stuck_agent(const std::string& session,
                                                     std::vector<std::string> then = {}) const {
    std::vector<std::string> script{"state:plan"};
    script.insert(script.end(), 8, "beat");
    script.insert(script.end(), then.begin(), then.end());
    script.insert(script.end(), {"say:ready", "stay"});
    return agent(session, script);
  }
  [[nodiscard]] std::string gate(const std::string& name) const {
    const auto path = (directory_ / name).string();
    mkfifo(path.c_str(), 0600);
    return path;
  }
  static void open_gate(const std::string& path) {
    close(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  }

  test::TempDir directory_;
  std::filesystem::path database_ = directory_ / "w.db";
  std::optional<Server> server_;
};

INSTANTIATE_TEST_SUITE_P(, WaitCommand, ::testing::Bool(),
                         [](const auto& how) { return how.param ? "stream" : "file"; });

TEST_P(WaitCommand, its_exit_code_says_how_it_ended) {
  report("well", {"beat", "state:plan", "complete"});
  report("failed", {"state:plan", "fail:the disk is full"});
  report("half", {"state:plan", "incomplete:max_iterations_reached"});
  report("called-off", {"state:plan", "cancelled"});
  Process stuck(stuck_agent("stuck"));
  EXPECT_EQ(stuck.line(), "ready");
  const struct {
    std::vector<std::string> words;
    int code;
    std::string said;
  } table[] = {
      {{"well"}, 0, "well  completed  completed (Task complete)"},
      {{"failed"}, 10, "disk is full"},
      {{"half"}, 11, "it ended as incomplete instead"},
      {{"called-off"}, 12, "it ended as cancelled instead"},
      {{"stuck"}, 13, "it has been stuck for"},
      {{"stuck", "--on-stuck", "fail"}, 13, "(limit 3)"},
      {{"failed", "--for", "failed"}, 0, "failed  failed  failed (The disk is full)"},
      {{"failed", "--for", "end"}, 10, "failed  end  "},
      {{"well", "--for", "end"}, 0, "well  end  "},
      {{"well", "--for", "failed"}, 1, "expected  failed"},
      {{"stuck", "--for", "health=stuck"}, 0, "stuck  health=stuck  stuck ("},
      {{"failed", "--for", "state-change=plan"}, 0, "state-change=plan"},
      {{"failed", "--for", "state-change=deployed"}, 10, "expected  state-change=deployed"},
      {{"nobody", "--must-exist"}, 5, "unknown session nobody"},
      {{"no body"}, 2, "not a session id"},
      {{"well", "--for", "health=fine"},
       2,
       "unknown health \"fine\"; use one of: unknown, starting"},
      {{"well", "--on-stuck", "panic"}, 2, "--on-stuck"},
      {{}, 2, "session"},
  };
  for (const auto& row : table) {
    const auto ran = waits(row.words);
    EXPECT_EQ(ran.code, row.code) << ran.output;
    EXPECT_NE(ran.output.find(row.said), std::string::npos) << row.said;
  }
}

TEST_P(WaitCommand, a_session_that_is_not_there_yet_is_waited_for) {
  Process waiter([&] {
    auto all = words({"late"});
    all.insert(all.begin(), {"/bin/sh", "-c", "exec \"$@\" 2>&1", "sh"});
    return all;
  }());
  EXPECT_EQ(
      waiter.line(),
      "watchdog-monitor: session late does not exist yet; this command waits until it starts");
  report("late", {"state:plan", "complete"});
  EXPECT_TRUE(waiter.line().starts_with("late  completed  "));
  EXPECT_EQ(waiter.wait(), 0);
}

TEST_P(WaitCommand, of_several_all_are_to_come_or_any) {
  report("a", {"state:plan", "complete"});
  report("b", {"state:plan", "complete"});
  report("c", {"state:plan", "fail:oops"});
  Process slow(agent("slow", {"state:plan", "say:ready", "stay"}));
  EXPECT_EQ(slow.line(), "ready");
  EXPECT_EQ(waits({"a", "b"}).code, 0);
  EXPECT_EQ(waits({"a", "c", "slow"}).code, 10) << "it does not wait for the third";
  EXPECT_EQ(waits({"slow", "b", "--any"}).code, 0);
  EXPECT_EQ(waits({"c", "--any"}).code, 10);
}

TEST_P(WaitCommand, json_says_everything_in_a_line) {
  report("a", {"state:plan", "complete"});
  report("b", {"state:plan", "fail:oops"});
  auto ran = waits({"a", "--json"});
  EXPECT_EQ(ran.code, 0);
  auto line = json::parse(ran.output);
  EXPECT_EQ(line["session"], "a");
  EXPECT_EQ(line["came"], true);
  EXPECT_EQ(line["end"], nullptr);
  EXPECT_EQ(line["why"], nullptr);
  EXPECT_EQ(line["exitCode"], 0);
  EXPECT_EQ(line["progress"]["lifecycle"], "completed");
  ran = waits({"b", "--json"});
  EXPECT_EQ(ran.code, 10);
  line = json::parse(ran.output);
  EXPECT_EQ(line["came"], false);
  EXPECT_EQ(line["end"], "ended");
  EXPECT_EQ(line["expected"], "completed");
  EXPECT_EQ(line["exitCode"], 10);
  EXPECT_EQ(line["omitted"], 0);
  EXPECT_EQ(line["timeline"].back()["text"], "end failed (error): oops");
}

TEST_P(WaitCommand, control_c_ends_it_with_the_timeline) {
  Process quiet(agent("s", {"state:plan", "say:ready", "stay"}));
  EXPECT_EQ(quiet.line(), "ready");
  OnTerminal waiter(words({"s"}));
  EXPECT_TRUE(waiter.hears("s: progressing (Last progress: plan)"));
  waiter.types("\x03");
  EXPECT_TRUE(waiter.hears("session s: wait interrupted; session was progressing"));
  EXPECT_TRUE(waiter.hears("state_change plan"));
  EXPECT_EQ(waiter.ends(), 130);
}

TEST_P(WaitCommand, on_a_terminal_it_asks_whether_to_go_on) {
  const auto go = gate("go");
  Process stuck(stuck_agent("s", {"go:" + go, "beat", "beat", "beat"}));
  OnTerminal waiter(words({"s"}));
  EXPECT_TRUE(waiter.hears("s: stuck ("));
  EXPECT_TRUE(waiter.hears("Go on waiting? [y/N] "));
  waiter.types("y\n");
  open_gate(go);
  EXPECT_TRUE(waiter.hears("Go on waiting? [y/N] "));
  waiter.types("n\n");
  EXPECT_TRUE(waiter.hears("the person who was asked chose not to continue"));
  EXPECT_EQ(waiter.ends(), 15);
}

TEST_P(WaitCommand, two_may_wait_for_one_session) {
  const auto go = gate("go");
  Process process(agent("s", {"state:plan", "go:" + go, "complete"}));
  Process first(words({"s"}));
  Process second(words({"s", "--for", "end"}));
  open_gate(go);
  EXPECT_EQ(first.wait(), 0);
  EXPECT_EQ(second.wait(), 0);
}

TEST(WaitOnStream, a_monitor_that_is_not_there_is_no_wait) {
  const auto ran = test::run({test::program, "wait", "s", "--server", "http://127.0.0.1:1"});
  EXPECT_EQ(ran.code, 4);
  EXPECT_NE(ran.output.find("Is a monitor running?"), std::string::npos) << ran.output;
}

TEST(WaitOnStream, a_monitor_that_restarts_is_waited_for_and_nothing_is_missed) {
  const test::TempDir directory;
  const auto database = (directory / "w.db").string();
  const auto go = (directory / "go").string();
  mkfifo(go.c_str(), 0600);
  Process agent({WATCHDOG_SCRIPTED_AGENT, database, "s", "state:plan", "go:" + go, "state:written",
                 "complete"});
  std::optional<Server> server(database);
  const auto url = server->url();
  OnTerminal waiter({test::program, "wait", "s", "--server", url});
  EXPECT_TRUE(waiter.hears("s: progressing"));
  server->process().signal(SIGKILL);
  EXPECT_TRUE(waiter.hears("s: the monitor does not answer; retrying until it does"));
  close(open(go.c_str(), O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(agent.wait(), 0);
  Process again(
      {test::program, "serve", "--db", database, "--port", url.substr(url.rfind(':') + 1)});
  EXPECT_TRUE(waiter.hears("s  completed  "));
  EXPECT_EQ(waiter.ends(), 0);
}

TEST(WaitOnStream, a_server_that_is_not_a_monitor_does_no_harm) {
  const struct {
    int status;
    std::string body;
    std::string said;
  } table[] = {
      {200, R"({"lifecycle":7,"outcome":[],"progress":1})", "not a watchdog-monitor"},
      {200, R"({"sessionId":"s","cursor":7})", "not a watchdog-monitor"},
      {200, R"({"sessionId":"s","cursor":"1.1.0","came":"no","progress":7})", "not a watchdog-mon"},
      {200,
       R"({"sessionId":"s","cursor":"1.1.0","came":false,"end":"ended","why":"x",)"
       R"("progress":{"lifecycle":7},"last":[],"timeline":{"first":7}})",
       "not a watchdog-monitor"},
      {200, "<html>", "not a watchdog-monitor"},
      {404, R"({"error":{"code":"not_found","message":"there is nothing at /api"}})",
       "the monitor is older than this program"},
      {401, R"({"error":{"code":"conflict","message":"show a token"}})", "show a token"},
  };
  for (const auto& row : table) {
    test::ModelServer server(
        [&](test::ModelServer::Exchange& exchange) { exchange.respond(row.status, row.body); });
    const auto url = server.base_url();
    const auto ran =
        test::run({test::program, "wait", "s", "--server", url.substr(0, url.rfind("/v1"))});
    EXPECT_NE(ran.output.find(row.said), std::string::npos) << ran.output;
    EXPECT_EQ(ran.code, 3) << row.body;
  }
}

TEST(WaitOnStream, records_are_read_however_they_are_cut) {
  const std::string bytes =
      ": a comment\n\nevent: snapshot\ndata: {\"a\":1}\n\nevent: event\nid: 7.2\ndata: {}\n\n"
      "event: event\nid: 8.2\nda";
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    monitor::SseReader reader;
    std::string reported;
    for (std::size_t at = 0; at < bytes.size(); at += piece) {
      EXPECT_TRUE(reader.feed(std::string_view(bytes).substr(at, piece), [&](const auto& record) {
        reported += record.event + "=" + record.data + ";";
        return true;
      }));
    }
    EXPECT_EQ(reported, "snapshot={\"a\":1};event={};");
    EXPECT_EQ(reader.last_id(), "7.2") << "what is cut off comes again";
  }
}

}  // namespace
}  // namespace watchdog
