// Loops and pace as an operator meets them: over HTTP, over restarts, with thresholds that change.
#include <gtest/gtest.h>
#include <poll.h>

#include <csignal>
#include <thread>

#include "store/store.h"
#include "store/transition_reader.h"
#include "support/server.h"
#include "support/temp_dir.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;
using test::Server;

class Detection : public testing::Test {
 protected:
  test::TempDir dir;
  std::filesystem::path path = dir / "w.db";

  /// Calls with their results, one after the other.
  static void call(Server& server, const std::string& session, int times, const json& args,
                   const std::string& result, const char* tool = "read") {
    json events = json::array();
    for (int i = 0; i < times; ++i) {
      events.push_back({{"kind", "tool_call"}, {"name", tool}, {"args", args}});
      events.push_back({{"kind", "tool_result"}, {"name", tool}, {"text", result}});
    }
    const auto response = server.report(session, events.dump());
    EXPECT_EQ(response.status, 200) << response.body;
  }
};

TEST_F(Detection, streak_goes_on_after_the_monitor_was_killed) {
  {
    Server server(path);
    call(server, "s", 3, {{"path", "a"}}, "the same");
    EXPECT_EQ(server.progress("s")["health"], "suspect");
    server.process().signal(SIGKILL);
    EXPECT_EQ(server.process().wait(), 128 + SIGKILL);
  }
  Server server(path);
  EXPECT_EQ(server.progress("s")["health"], "suspect");
  call(server, "s", 2, {{"path", "a"}}, "the same");
  const auto document = server.progress("s");
  EXPECT_EQ(document["health"], "looping");
  EXPECT_EQ(document["stuckBy"], "R1");
  EXPECT_EQ(document["stuck"], true);
  EXPECT_NE(document["reason"].get<std::string>().find("5 times in a row"), std::string::npos)
      << document["reason"];
}

TEST_F(Detection, loop_is_left_by_new_states) {
  Server server(path);
  call(server, "s", 5, {{"path", "a"}}, "the same");
  ASSERT_EQ(server.progress("s")["health"], "looping");
  server.report("s", R"({"kind":"state_change","type":"step","data":{"n":1}})");
  EXPECT_EQ(server.progress("s")["health"], "looping") << "one may be chance";
  server.report("s", R"({"kind":"state_change","type":"step","data":{"n":2}})");
  EXPECT_EQ(server.progress("s")["health"], "progressing");
  EXPECT_EQ(server.progress("s")["stuck"], false);
}

TEST_F(Detection, tool_is_named_a_poll_while_the_session_runs) {
  Server server(path);
  call(server, "s", 2, json::object(), "pending", "job_status");
  const auto changed = server.ask(Method::patch, "/api/autonomous/sessions/s",
                                  R"({"policy":{"tools":{"job_status":{"use":"poll"}}}})");
  EXPECT_EQ(changed.status, 200) << changed.body;
  call(server, "s", 50, json::object(), "pending", "job_status");
  EXPECT_EQ(server.progress("s")["health"], "progressing");
}

TEST_F(Detection, message_that_repeats_itself_is_heard_although_it_is_cut) {
  Server server(path);
  std::string text = "Let me begin. ";
  for (int i = 0; i < 60; ++i) text += "I will look at the file once more. ";
  server.report("s", json{{"kind", "message"}, {"name", "assistant"}, {"text", text}}.dump());
  const auto document = server.progress("s");
  EXPECT_EQ(document["health"], "looping");
  EXPECT_EQ(document["stuckBy"], "R8");
}

TEST_F(Detection, agent_may_report_that_it_makes_no_progress) {
  Server server(path);
  call(server, "s", 3, {{"path", "a"}}, "the same");
  ASSERT_EQ(server.progress("s")["health"], "suspect");
  server.report("s", R"({"kind":"opinion","status":"B","text":"I go in circles"})");
  EXPECT_EQ(server.progress("s")["health"], "looping") << "two who say so independently";
}

// While the monitor stands still, what its agents say waits in its sockets.
TEST_F(Detection, monitor_that_was_stopped_calls_nobody_silent) {
  Server server(path);
  constexpr int sessions = 8;
  const std::string beat = R"({"kind":"heartbeat","source":"sidecar"})";
  for (int at = 0; at < sessions; ++at) {
    const auto session = "s" + std::to_string(at);
    ASSERT_EQ(
        server
            .post("/api/autonomous/sessions",
                  json({{"sessionId", session}, {"policy", {{"heartbeatInterval", 1'000}}}}).dump())
            .status,
        201);
    ASSERT_EQ(server.report(session, "[" + beat + "," + beat + "]").status, 200);
  }
  for (int at = 0; at < sessions; ++at) {
    ASSERT_EQ(server.report("s" + std::to_string(at), beat).status, 200);
  }
  server.process().stop();
  std::vector<std::thread> agents;
  for (int at = 0; at < sessions; ++at) {
    agents.emplace_back([&, at] {
      auto client = MonitorClient::to(server.url(), {.token = server.secret()});
      const auto answer = client->ask(
          Method::post, "/api/autonomous/sessions/s" + std::to_string(at) + "/events", beat);
      EXPECT_TRUE(answer.ok() && answer->status == 200);
    });
  }
  ASSERT_EQ(poll(nullptr, 0, 4'000), 0);  // silence begins after 3 s; time is what is tested
  server.process().signal(SIGCONT);
  for (auto& agent : agents) agent.join();
  auto store = Store::open({.database = path});
  ASSERT_TRUE(store.ok());
  auto& reader = store->reader();
  for (int at = 0; at < sessions; ++at) {
    const auto row = reader.session("s" + std::to_string(at));
    ASSERT_TRUE(row.ok());
    const auto changes = TransitionReader(reader).of(row->key, 0, 100);
    for (const auto& change : *changes) {
      EXPECT_NE(change.transition.health.kind, HealthKind::silent) << row->id;
    }
  }
}

}  // namespace
}  // namespace watchdog::monitor
