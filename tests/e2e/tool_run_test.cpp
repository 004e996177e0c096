// Tool calls that hang, fork and take long, in real agents; and others that call them off.

#include <charconv>
#include <chrono>
#include <iostream>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>

#include "e2e/agent_run.h"
#include "store/store_reader.h"
#include "support/reports.h"

namespace watchdog::monitor {
namespace {

using std::chrono::steady_clock;

/// An agent whose tools' processes are known by what they were given of its environment.
class ToolsRun : public AgentRun {
 protected:
  [[nodiscard]] Process::Options with(const std::string& model,
                                      std::vector<std::string> more = {}) const {
    more.push_back("TMPDIR=" + mark());
    return AgentRun::with(model, std::move(more));
  }

  /// Processes of its tool calls.
  [[nodiscard]] std::vector<std::string> left() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
      std::ifstream file(entry.path() / "environ", std::ios::binary);
      const std::string text(std::istreambuf_iterator<char>(file), {});
      if (text.find("WATCHDOG_CALL=") == std::string::npos ||
          text.find("TMPDIR=" + mark()) == std::string::npos)
        continue;
      std::ifstream name(entry.path() / "comm");
      std::getline(name, found.emplace_back());
    }
    return found;
  }
  /// Until nothing of them is left; only the test's own limit ends it otherwise.
  void expect_none_left() const {
    while (!left().empty()) std::this_thread::yield();
  }

  [[nodiscard]] std::vector<Event> events_of(const std::string& session) const {
    auto reader = StoreReader::open(path);
    EXPECT_TRUE(reader.ok());
    return reader ? test::all_events(*reader, session) : std::vector<Event>{};
  }
  /// Runs the agent. The model's server has ended when this returns.
  test::Ran run_against(std::function<void(Exchange&)> answer,
                        std::vector<std::string> settings = {}) {
    const ModelServer model(answering(std::move(answer)));
    return test::run(agent(), with(model.base_url(), std::move(settings)));
  }

 private:
  [[nodiscard]] std::string mark() const { return (dir / "of-the-tools").string(); }
};

TEST_F(ToolsRun, gets_by_with_tools_that_hang_and_fork_and_leaves_nothing) {
  const auto ran = test::run({WATCHDOG_UNRULY_AGENT, dir.path().string()},
                             with("http://nowhere", {"AGENT_TOOL_TIMEOUT=2"}));
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_NE(ran.output.find("completed, task_complete"), std::string::npos) << ran.output;
  expect_none_left();

  std::map<std::string, Report> outcomes;
  std::map<std::string, Report> calls;
  for (const auto& event : events_of("agent")) {
    const auto& report = event.report;
    if (report.kind == ReportKind::tool_call) calls[report.call_id] = report;
    if (report.kind == ReportKind::tool_result || is_failure(report.kind)) {
      EXPECT_FALSE(outcomes.contains(report.call_id)) << report.call_id << " has two outcomes";
      outcomes[report.call_id] = report;
    }
  }
  ASSERT_EQ(calls.size(), 4U);
  ASSERT_EQ(outcomes.size(), 4U);
  const auto kind_of = [&](const std::string& call) {
    return std::string(name_of(outcomes.at(call).kind));
  };
  EXPECT_EQ(calls.at("hangs").deadline, Millis{2'000});
  EXPECT_EQ(kind_of("hangs"), "tool_timeout");
  const auto& hung = outcomes.at("hangs").timeout;
  ASSERT_TRUE(hung);
  EXPECT_EQ(hung->kind, ToolTimeoutFacts::Kind::idle);
  EXPECT_EQ(hung->limit, Millis{2'000});
  EXPECT_TRUE(hung->still_running);
  EXPECT_NE(ran.output.find("hangs: [TIMEOUT] Tool \"hang\" made no progress for 2s"),
            std::string::npos)
      << ran.output;
  EXPECT_NE(ran.output.find("State: still running in the background"), std::string::npos);
  // Four times as long as it may go without progress.
  EXPECT_EQ(kind_of("builds"), "tool_result");
  EXPECT_EQ(outcomes.at("builds").content, "built");
  EXPECT_EQ(kind_of("forks"), "tool_result");
  EXPECT_NE(outcomes.at("forks").content.find(" still running when the command ended and killed: "),
            std::string::npos)
      << outcomes.at("forks").content;
  EXPECT_EQ(kind_of("forks-and-hangs"), "tool_timeout");
}

TEST_F(ToolsRun, changes_nothing_unasked_where_it_has_to_ask_and_nobody_is_there) {
  std::string shown;
  const auto ran = run_against([&](Exchange& exchange) {
    const auto& body = exchange.request().body;
    if (body.find("tool_call_id") != std::string::npos) {
      shown = body;
      return test::stream(exchange, "Then not.");
    }
    exchange.begin_stream();
    exchange.event(tool_call("write_file", R"({"path":"note.txt","content":"over"})"));
    exchange.event(tool_call("shell", R"({"command":"rm note.txt"})", 2));
    exchange.event(test::delta("{}", "\"tool_calls\""));
    exchange.end_stream();
  });
  EXPECT_EQ(ran.code, 1) << "its answer is not the result of any work";
  EXPECT_NE(ran.output.find("set tools.confirm_writes = false"), std::string::npos) << ran.output;
  for (const char* tool : {"write_file", "shell"})
    EXPECT_NE(shown.find("[DENIED] Tool \\\"" + std::string(tool) +
                         "\\\": it needs a confirmation, and there is nobody to give one"),
              std::string::npos)
        << shown;
  std::string kept;
  std::getline(std::ifstream(dir / "note.txt"), kept);
  EXPECT_EQ(kept, "slow is not stuck");
}

const std::vector<std::string> unasked{"WATCHDOG_TOOLS_CONFIRM_WRITES=false"};

TEST_F(ToolsRun, keeps_a_long_output_whole_and_reads_it_page_by_page) {
  std::string shown;
  const auto ran = run_against(
      [&](Exchange& exchange) {
        const auto& body = exchange.request().body;
        const auto handle = body.find("art_");
        const bool was_read = body.find("call_2") != std::string::npos;
        if (was_read) {
          shown = body;
          return test::stream(exchange, "Read.");
        }
        exchange.begin_stream();
        if (body.find("tool_call_id") == std::string::npos) {
          exchange.event(tool_call("shell", R"({"command":"seq 100000"})"));
        } else {
          const json arguments{{"id", body.substr(handle, 16)}, {"offset", 348'888}, {"limit", 12}};
          exchange.event(tool_call("artifact_read", arguments.dump(), 2));
        }
        exchange.event(test::delta("{}", "\"tool_calls\""));
        exchange.end_stream();
      },
      unasked);
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_NE(shown.find("60000\\n60001\\n"), std::string::npos)
      << shown.substr(shown.size() - 2'000);
  EXPECT_TRUE(std::filesystem::is_directory(dir / "artifacts"));
}

/// By a monitor, or by the file alone.
class Aborting : public ToolsRun, public testing::WithParamInterface<bool> {
 protected:
  Aborting() {
    if (GetParam()) server.emplace(path);
  }

  test::Ran command(std::vector<std::string> words) const {
    words.insert(words.begin(), WATCHDOG_MONITOR);
    const auto where =
        GetParam() ? server->flags() : std::vector<std::string>{"--db", path.string()};
    words.insert(words.end(), where.begin(), where.end());
    return test::run(std::move(words), with(""));
  }
  /// The turn, as soon as it runs a command.
  json turn_at_work() const {
    while (true) {
      const auto ran = command({"turns", "--json"});
      const auto turn = json::parse(ran.output, nullptr, false);
      if (ran.code == 0 && turn.is_object() && turn["currentTool"] == "shell" && !left().empty())
        return turn;
    }
  }

  /// A model that asks for these commands, and answers as soon as it gets a result.
  ModelServer::Handler asking_for(const std::vector<std::string>& commands) {
    return answering([this, commands](Exchange& exchange) {
      const auto& body = exchange.request().body;
      if (body.find("tool_call_id") != std::string::npos) {
        {
          const std::lock_guard guard(mutex);
          heard = steady_clock::now();
          shown = body;
        }
        return test::stream(exchange, "Then not.");
      }
      exchange.begin_stream();
      int number = 0;
      for (const auto& each : commands)
        exchange.event(tool_call("shell", json{{"command", each}}.dump(), ++number));
      exchange.event(test::delta("{}", "\"tool_calls\""));
      exchange.end_stream();
    });
  }
  /// Checks the time from the abort until the model got the result.
  void expect_soon(steady_clock::time_point asked) {
    const std::lock_guard guard(mutex);
    const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(heard - asked).count();
    std::cout << "an abort by " << (GetParam() ? "server" : "file") << " took " << took << " ms\n";
    RecordProperty("abort_ms", static_cast<int>(took));
    EXPECT_LT(took, 10'000) << "2500 on a calm machine";
  }
  [[nodiscard]] std::string shown_to_model() {
    const std::lock_guard guard(mutex);
    return shown;
  }

  std::optional<Server> server;
  std::mutex mutex;
  steady_clock::time_point heard;
  std::string shown;
};

TEST_P(Aborting, a_turn_from_another_process_lets_the_run_go_on) {
  const ModelServer model(asking_for({"sleep 100000", "touch never"}));
  Process running(agent(), with(model.base_url(), unasked));
  const auto turn = turn_at_work();
  EXPECT_EQ(turn["sessionId"], "agent");
  EXPECT_EQ(turn["currentTool"], "shell");
  EXPECT_EQ(turn["toolCallCount"], 1);
  const std::string id = turn["turnId"];
  const auto asked = steady_clock::now();
  const auto ran = command({"cancel", "--turn", id, "--reason", "too slow"});
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_EQ(ran.output, "abort requested; the agent will see it with its next report\n");
  EXPECT_EQ(running.wait(), 0);
  expect_soon(asked);
  expect_none_left();
  EXPECT_FALSE(std::filesystem::exists(dir / "never"));
  const auto words = shown_to_model();
  EXPECT_NE(words.find("was interrupted after"), std::string::npos) << words;
  EXPECT_NE(words.find("was not started: turn aborted by user (too slow)"), std::string::npos)
      << words;

  std::vector<std::string> seen;
  for (const auto& event : events_of("agent")) {
    const auto& report = event.report;
    if (report.kind == ReportKind::turn) seen.push_back(report.name);
    if (report.kind == ReportKind::tool_result || is_failure(report.kind))
      seen.push_back(std::string(name_of(report.kind)) + " " + report.call_id);
    if (report.kind == ReportKind::end) seen.push_back(std::get<Outcome>(report.detail).reason);
  }
  EXPECT_EQ(std::erase(seen, "turn_abort"), 1) << "before or after the error";
  EXPECT_EQ(seen,
            (std::vector<std::string>{"turn_start", "error call_1", "turn_end", "task_complete"}));
  // A turn that is over cannot be cancelled.
  const auto late = command({"cancel", "--turn", id});
  EXPECT_EQ(late.code, 5) << late.output;
  EXPECT_NE(late.output.find("there is no active turn " + id), std::string::npos) << late.output;
}

TEST_P(Aborting, a_call_from_another_process_lets_its_turn_go_on) {
  const ModelServer model(asking_for({"sleep 100000", "echo the second ran"}));
  Process running(agent(), with(model.base_url(), unasked));
  const std::string id = turn_at_work()["turnId"];
  const auto unknown = command({"cancel", "--turn", id, "--call", "call_7"});
  EXPECT_EQ(unknown.code, 5) << unknown.output;
  EXPECT_NE(unknown.output.find("has no running call call_7"), std::string::npos) << unknown.output;
  const auto asked = steady_clock::now();
  const auto ran = command({"cancel", "--turn", id, "--call", "call_1"});
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_EQ(running.wait(), 0);
  expect_soon(asked);
  expect_none_left();
  const auto words = shown_to_model();
  EXPECT_NE(words.find("[CANCELLED]"), std::string::npos) << words;
  EXPECT_NE(words.find("the second ran"), std::string::npos) << words;
}

INSTANTIATE_TEST_SUITE_P(By, Aborting, testing::Values(true, false), [](const auto& by) {
  return by.param ? std::string("server") : std::string("file");
});

}  // namespace
}  // namespace watchdog::monitor
