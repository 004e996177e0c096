// A real agent that asks a real server for its model's words, watched by a real monitor.
#include "e2e/agent_run.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>

namespace watchdog::monitor {
namespace {

TEST_F(AgentRun, uses_its_tools_and_ends_with_an_answer) {
  Server server(path);
  const ModelServer model(answering([](Exchange& exchange) {
    const auto& body = exchange.request().body;
    if (body.find("slow is not stuck") != std::string::npos)
      return test::stream(exchange, "A note.");
    exchange.begin_stream();
    exchange.event(body.find("note.txt") == std::string::npos
                       ? tool_call("list_files", "{}")
                       : tool_call("read_file", R"({"path":"note.txt"})"));
    exchange.event(test::delta("{}", "\"tool_calls\""));
    exchange.end_stream();
  }));
  const auto ran = test::run(agent(), with(model.base_url()));
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_NE(ran.output.find("A note."), std::string::npos) << ran.output;
  EXPECT_EQ(outcome(server)["reason"], "task_complete");
  EXPECT_EQ(ended(server)["iteration"], 3);
  // The key is nowhere.
  EXPECT_EQ(ran.output.find("sk-never"), std::string::npos);
  EXPECT_EQ(server.get("/api/autonomous/sessions/agent/events").body.find("sk-never"),
            std::string::npos);
}

TEST_F(AgentRun, that_is_cut_off_is_incomplete_and_keeps_its_answer) {
  Server server(path);
  // It calls the same tool for as long as it is offered one.
  const ModelServer model(answering([](Exchange& exchange) {
    if (!json::parse(exchange.request().body).contains("tools"))
      return test::stream(exchange, "It is about patience.");
    exchange.begin_stream();
    exchange.event(tool_call("read_file", R"({"path":"note.txt"})"));
    exchange.event(test::delta("{}", "\"tool_calls\""));
    exchange.end_stream();
  }));
  int number = 0;
  for (const auto& [limit, reason] : std::vector<std::pair<std::string, std::string>>{
           {"WATCHDOG_RUN_MAX_ITERATIONS=6", "max_iterations_reached"},
           {"WATCHDOG_BUDGET_STEPS=6", "budget_exhausted: steps"},
           {"WATCHDOG_BUDGET_TOOL_CALLS=3", "budget_exhausted: tool_calls"}}) {
    const auto session = "cut-off-" + std::to_string(++number);
    auto options = with(model.base_url(), {limit});
    std::erase(options.environment, "WATCHDOG_SESSION=agent");
    options.environment.push_back("WATCHDOG_SESSION=" + session);
    const auto ran = test::run(agent(), options);
    EXPECT_EQ(ran.code, 1) << limit << ran.output;
    EXPECT_NE(ran.output.find("It is about patience."), std::string::npos) << ran.output;
    EXPECT_NE(ran.output.find("incomplete, " + reason), std::string::npos) << ran.output;
    std::vector<std::string> wait{WATCHDOG_MONITOR, "wait", session, "--for", "completed"};
    const auto where = server.flags();
    wait.insert(wait.end(), where.begin(), where.end());
    EXPECT_EQ(test::run(wait).code, 11) << limit;
    const auto document = json::parse(server.get("/api/autonomous/progress/" + session).body);
    EXPECT_EQ(document["outcome"]["kind"], "incomplete");
    const auto& ended = document["outcome"];
    const auto subject =
        ended["subject"].is_null() ? "" : ": " + ended["subject"].get<std::string>();
    EXPECT_EQ(ended["reason"].get<std::string>() + subject, reason);
    EXPECT_NE(server.get("/api/autonomous/sessions/" + session + "/events")
                  .body.find("It is about patience."),
              std::string::npos);
  }
}

TEST_F(AgentRun, is_not_hurried_by_28_seconds_of_reflection) {
  Server server(path);
  // It answers after 28 heartbeats of the agent's process, a second apart. A busy machine may hold
  // up some of them for most of a minute.
  const ModelServer model(answering([&](Exchange& exchange) {
    Server* watched = &server;
    until(*watched, "/api/autonomous/progress/agent",
          [](const json& document) { return document["progress"]["heartbeats"].get<int>() >= 28; });
    test::stream(exchange, "At last.");
  }));
  const auto ran = test::run(
      agent(), with(model.base_url(), {"WATCHDOG_POLICY_HEARTBEAT_INTERVAL=1000",
                                       "WATCHDOG_INTERNAL_TIMES=policy.silenceIntervals=100"}));
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_EQ(outcome(server)["kind"], "completed");
  const auto changes =
      json::parse(server.get("/api/autonomous/sessions/agent/transitions").body)["transitions"];
  for (const auto& change : changes) {
    EXPECT_TRUE(
        (std::set<std::string>{"starting", "progressing", "slow"}.contains(change["health"])))
        << change.dump();
  }
}

TEST_F(AgentRun, ends_by_each_failure_of_its_model_with_a_reason_of_its_own) {
  const auto respond = [](int status, const char* body, const char* type = "application/json") {
    return [=](Exchange& exchange) { exchange.respond(status, body, type); };
  };
  const std::vector<std::pair<std::string, std::function<void(Exchange&)>>> table = {
      {"authentication", respond(401, R"({"error":{"message":"no such key"}})")},
      {"context_exceeded",
       respond(400,
               R"({"error":{"code":400,"message":"the request exceeds the available context size",)"
               R"("type":"exceed_context_size_error"}})")},
      {"model_client_error", respond(404, R"({"error":{"message":"no such model"}})")},
      {"rate_limited", respond(429, R"({"error":{"message":"slow down"}})")},
      {"model_server_error", respond(500, R"({"error":{"message":"boom"}})")},
      {"malformed_answer", respond(200, "<html><body>It works!</body></html>", "text/html")},
      {"connection_lost", [](Exchange& exchange) {
         exchange.begin_stream();
         exchange.event(test::text_delta("half an ans"));
         exchange.reset();
       }}};
  for (const auto& [reason, answer] : table) {
    std::filesystem::remove(path);
    const ModelServer model(answering(answer));
    const auto ran =
        test::run(agent(), with(model.base_url(), {"WATCHDOG_INTERNAL_TIMES=run.retries=0"}));
    EXPECT_EQ(ran.code, 1) << reason << ran.output;
    Server server(path);
    const auto document = ended(server);
    EXPECT_EQ(document["outcome"]["kind"], "failed") << reason;
    EXPECT_EQ(document["outcome"]["reason"], reason) << document["outcome"].dump();
    EXPECT_FALSE(document["outcome"]["error"].get<std::string>().empty()) << reason;
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path.string() + suffix);
  }
  std::string gone;
  {
    gone = ModelServer(answering([](Exchange&) {})).base_url();
  }
  const auto ran = test::run(agent(), with(gone, {"WATCHDOG_INTERNAL_TIMES=run.retries=1,"
                                                  "run.retry_first_ms=1"}));
  EXPECT_EQ(ran.code, 1) << ran.output;
  Server server(path);
  EXPECT_EQ(outcome(server)["reason"], "connection_refused");
}

TEST_F(AgentRun, lives_while_its_model_never_answers_and_hears_a_cancel) {
  Server server(path);
  const ModelServer model(answering([](Exchange& exchange) { exchange.wait_gone(); }));
  Process running(agent(),
                  with(model.base_url(), {"WATCHDOG_POLICY_HEARTBEAT_INTERVAL=100",
                                          "WATCHDOG_INTERNAL_TIMES=policy.usualInterval=10,"
                                          "policy.slowMin=100"}));
  // It is alive, and said to be slower than usual.
  const auto document = until(server, "/api/autonomous/progress/agent",
                              [](const json& at) { return at["health"] == "slow"; });
  EXPECT_EQ(document["alive"], true);
  EXPECT_EQ(document["outcome"], nullptr);
  std::vector<std::string> cancel{WATCHDOG_MONITOR, "cancel", "agent", "--reason", "enough"};
  const auto where = server.flags();
  cancel.insert(cancel.end(), where.begin(), where.end());
  const auto cancelled = test::run(cancel);
  EXPECT_EQ(cancelled.code, 0) << cancelled.output;
  EXPECT_EQ(running.wait(), 1);
  EXPECT_EQ(outcome(server)["kind"], "cancelled");
  EXPECT_EQ(outcome(server)["reason"], "cancelled");
  EXPECT_EQ(outcome(server)["subject"], "user");
}

TEST_F(AgentRun, reports_what_old_limits_would_have_cost) {
  const ModelServer model(answering([](Exchange& exchange) {
    if (exchange.request().body.find("note.txt") != std::string::npos)
      return test::stream(exchange, "Done.");
    exchange.begin_stream();
    exchange.event(tool_call("list_files", "{}"));
    exchange.event(test::delta("{}", "\"tool_calls\""));
    exchange.end_stream();
  }));
  const auto compared = with(model.base_url(), {"AUTONOMOUS_STATUS_BASED_TIMEOUT=compare",
                                                "WATCHDOG_MIGRATION_TASK_MS=1"});
  EXPECT_EQ(test::run(agent(), compared).code, 0);
  const auto reported = test::run({WATCHDOG_MONITOR, "report", "--db", path.string()});
  EXPECT_EQ(reported.code, 0);
  EXPECT_NE(
      reported.output.find("The old limits would have killed 1 of 1 runs, 1 of which finished."),
      std::string::npos)
      << reported.output;
  const auto object =
      json::parse(test::run({WATCHDOG_MONITOR, "report", "--json", "--db", path.string()}).output);
  EXPECT_EQ(object["killed"], 1);
  EXPECT_EQ(object["sessions"][0]["limits"][0]["limit"], "task");
  EXPECT_EQ(object["sessions"][0]["outcome"], "completed");

  // Where they are chosen, they end it: by their name.
  std::filesystem::remove(path);
  const auto ran = test::run(agent(), with(model.base_url(), {"AUTONOMOUS_STATUS_BASED_TIMEOUT=0",
                                                              "WATCHDOG_MIGRATION_TASK_MS=1"}));
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.output.find("legacy_time_limit"), std::string::npos) << ran.output;
}

TEST_F(AgentRun, says_what_is_wrong_with_its_settings) {
  const auto no_model = test::run(agent(), with(""));
  EXPECT_EQ(no_model.code, 3) << no_model.output;
  const auto wrong = test::run(agent(), with("http://a", {"WATCHDOG_RUN_MAX_ITERATIONS=0"}));
  EXPECT_EQ(wrong.code, 3);
  EXPECT_NE(wrong.output.find("run.max_iterations"), std::string::npos) << wrong.output;
  auto no_id = with("http://a");
  std::erase(no_id.environment, "WATCHDOG_SESSION=agent");
  no_id.environment.emplace_back("WATCHDOG_SESSION=two words");
  const auto refused = test::run(agent(), no_id);
  EXPECT_EQ(refused.code, 3);
  EXPECT_NE(refused.output.find("sessionId"), std::string::npos) << refused.output;
}

class MonitorChecks : public AgentRun {
 protected:
  [[nodiscard]] Process::Options asking(const std::string& model,
                                        std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"WATCHDOG_CHECKS_BASE_URL=" + model,
                             "WATCHDOG_CONFIG=", "XDG_CONFIG_HOME=" + (dir / "none").string()});
    return {.environment = std::move(more)};
  }
  static void loop(Server& server, const std::string& session, int calls = 3) {
    json events = json::array();
    for (int count = 0; count < calls; ++count) {
      events.push_back({{"kind", "tool_call"}, {"name", "read"}, {"args", {{"path", "a"}}}});
      events.push_back({{"kind", "tool_result"}, {"name", "read"}, {"text", "the same"}});
    }
    EXPECT_EQ(server.report(session, events.dump()).status, 200);
  }
};

TEST_F(MonitorChecks, asks_unasked_about_a_suspicious_session) {
  std::atomic<int> asked = 0;
  const ModelServer model(answering([&](Exchange& exchange) {
    ++asked;
    test::stream(exchange, R"({\"status\":\"B\",\"reason\":\"it reads the same file again\"})");
  }));
  Server server(path, {}, asking(model.base_url()));
  loop(server, "s");
  // Suspected by repetition, confirmed by a model: two that are independent.
  const auto events = until(server, "/api/autonomous/sessions/s/events?kind=opinion",
                            [](const json& page) { return page["events"].size() == 2; })["events"];
  EXPECT_EQ(events[0]["state"], "pending");
  EXPECT_EQ(events[1]["status"], "B");
  EXPECT_EQ(asked, 1);
  until(server, "/api/autonomous/progress/s",
        [](const json& document) { return document["health"] == "looping"; });
  // The file has the answer a moment before the check is done.
  const auto check =
      until(server, "/api/autonomous/check-status/" + events[1]["event_id"].get<std::string>(),
            [](const json& reported) { return reported["state"] == "done"; });
  EXPECT_EQ(check["reason"], "it reads the same file again");
  // The session's own words went to the model as data.
  EXPECT_NE(model.chats().at(0).find("the same"), std::string::npos);
}

TEST_F(MonitorChecks, can_be_limited_to_explicit_requests) {
  std::atomic<int> asked = 0;
  const ModelServer model(answering([&](Exchange& exchange) {
    ++asked;
    test::stream(exchange, "A: fine");
  }));
  {
    Server server(path, {}, asking(model.base_url(), {"WATCHDOG_CHECKS_ON_SUSPICION=false"}));
    loop(server, "s");
    EXPECT_EQ(server.progress("s")["health"], "suspect");
    EXPECT_EQ(
        server.post("/api/autonomous/check-status", R"({"sessionId":"s","checkId":"c"})").status,
        202);
    until(server, "/api/autonomous/check-status/c",
          [](const json& check) { return check["state"] != "pending"; });
    EXPECT_EQ(asked, 1);
  }
  Server server(path, {"--no-checks"}, asking(model.base_url()));
  const auto refused = server.post("/api/autonomous/check-status", R"({"sessionId":"s"})");
  EXPECT_EQ(refused.status, 503) << refused.body;
  // An answered check stays readable.
  EXPECT_EQ(json::parse(server.get("/api/autonomous/check-status/c").body)["status"], "A");
}

TEST_F(MonitorChecks, leaves_an_agent_its_prompt) {
  std::atomic<int> asked = 0;
  const ModelServer model([&](Exchange& exchange) {
    if (exchange.is_chat()) ++asked;
    test::be_llama(exchange, 1);
  });
  // The agents' own server, with one slot.
  Server server(
      path, {"--llm-base-url", model.base_url()},
      {.environment = {"WATCHDOG_CONFIG=", "XDG_CONFIG_HOME=" + (dir / "none").string()}});
  loop(server, "s");
  server.post("/api/autonomous/check-status", R"({"sessionId":"s","checkId":"c"})");
  const auto opinions =
      until(server, "/api/autonomous/sessions/s/events?kind=opinion",
            [](const json& page) { return page["events"].size() >= 2; })["events"];
  EXPECT_EQ(opinions[1]["state"], "failed");
  EXPECT_NE(opinions[1]["text"].get<std::string>().find("slot"), std::string::npos)
      << opinions[1].dump();
  EXPECT_EQ(asked, 0);
}

TEST_F(MonitorChecks, owns_up_to_questions_that_a_restart_lost) {
  const ModelServer model(answering([](Exchange& exchange) { exchange.wait_gone(); }));
  {
    Server server(path, {}, asking(model.base_url()));
    server.report("s", R"({"kind":"state_change","type":"step"})");
    ASSERT_EQ(
        server.post("/api/autonomous/check-status", R"({"sessionId":"s","checkId":"c"})").status,
        202);
    server.process().signal(SIGKILL);
    server.process().wait();
  }
  {
    Server server(path, {}, asking(model.base_url()));
    const auto check = json::parse(server.get("/api/autonomous/check-status/c").body);
    EXPECT_EQ(check["state"], "failed");
    ASSERT_EQ(
        server.post("/api/autonomous/check-status", R"({"sessionId":"s","checkId":"d"})").status,
        202);
    server.process().signal(SIGTERM);
    EXPECT_EQ(server.process().wait(), 0) << "a model that never answers holds nobody up";
  }
  Server server(path);
  EXPECT_EQ(json::parse(server.get("/api/autonomous/check-status/d").body)["state"], "failed");
}

}  // namespace
}  // namespace watchdog::monitor
