// The alerts that the real binary sends to people, and the commands by which people answer.
#include <set>

#include "e2e/alerting.h"
#include "store/store.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;
using test::Exchange;
using test::header_in;
using test::Hook;
using test::ok;
using test::program;

class Alerts : public test::Alerting {};

TEST_F(Alerts, reach_a_webhook_with_what_a_person_wants_to_know) {
  Hook hook;
  configure(webhook("team", hook, "secret_file = \"" + secret_file("s", "key") + "\"\n"), "",
            "messages_max=10");
  start();
  server->post("/api/autonomous/sessions", R"({"sessionId":"s-1","agent":"coder"})");
  get_stuck("s-1");
  const auto first = hook.wait_for(1)[0];
  const auto text = first.body["text"].get<std::string>();
  EXPECT_TRUE(text.starts_with("s-1 (coder) is stuck: 5 iterations without a state change"))
      << text;
  EXPECT_TRUE(text.ends_with("\n" + server->url() + "/sessions/s-1")) << text;
  EXPECT_EQ(first.body["alerts"][0]["health"], "stuck");
  EXPECT_EQ(first.body["alerts"][0]["sessionId"], "s-1");
  EXPECT_EQ(first.body["key"], first.key);
  EXPECT_EQ(first.key.size(), 26U);
  EXPECT_TRUE(header_in(first.head, "X-Watchdog-Signature").starts_with("sha256="));
  recover("s-1");
  const auto second = hook.wait_for(2)[1];
  EXPECT_TRUE(second.body["text"].get<std::string>().starts_with(
      "s-1 (coder) recovered: it is progressing"))
      << second.raw;
  EXPECT_NE(second.key, first.key);
  until_sent();
  const auto all = list();
  EXPECT_EQ(all["alerts"][0]["kind"], "recovery");
  EXPECT_EQ(all["alerts"][1]["channels"][0],
            (json{{"name", "team"}, {"state", "sent"}, {"attempts", 1}, {"error", nullptr}}));
  until([&] { return list()["channels"][0]["oldestUnsentMs"].is_null(); });
  EXPECT_EQ(list()["channels"][0]["state"], "ok");
  const auto shown = test::run({program, "alerts", "--server", server->url()});
  EXPECT_EQ(shown.code, 0) << shown.output;
  EXPECT_NE(shown.output.find("team sent"), std::string::npos) << shown.output;
  EXPECT_EQ(server->get("/healthz").status, 200);
}

TEST_F(Alerts, name_the_folder_and_the_agent_as_people_do) {
  Hook hook;
  configure(webhook("team", hook), "needs_input_seconds = 0\n", "messages_max=10");
  start();
  const std::string id = "59a1682c-ea97-4fac-a983-11ccd0e9074f";
  server->post(
      "/api/autonomous/sessions",
      json{{"sessionId", id}, {"agent", "claude-code"}, {"labels", {{"cwd", "/srv/parser/"}}}}
          .dump());
  server->report(id, R"({"kind":"wait","name":"approval","text":"Bash: npm ci"})");
  const auto text = hook.wait_for(1)[0].body["text"].get<std::string>();
  EXPECT_TRUE(text.starts_with("parser: Claude Code asks for permission: Waits for approval"))
      << text;
  EXPECT_NE(text.find(", session 59a1682c\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("npm"), std::string::npos) << "a command is content";
}

TEST_F(Alerts, say_of_a_finished_turn_that_it_is_finished_and_not_that_it_ended) {
  Hook hook;
  configure(webhook("team", hook), "on = [\"idle\", \"stuck\"]\nidle_seconds = 0\n",
            "messages_max=10");
  start();
  server->post("/api/autonomous/sessions", R"({"sessionId":"s-1","agent":"coder"})");
  get_stuck("s-1");
  hook.wait_for(1);
  server->report("s-1", R"({"kind":"idle"})");
  const auto requests = hook.wait_for(3);
  const auto text = [&](std::size_t at) { return requests[at].body["text"].get<std::string>(); };
  EXPECT_TRUE(text(1).starts_with("s-1 (coder) recovered: it is idle")) << text(1);
  EXPECT_TRUE(text(2).starts_with("s-1 (coder) has finished its turn: The answer is complete"))
      << text(2);
}

TEST_F(Alerts, are_written_as_slack_and_pagerduty_want_them) {
  Hook slack;
  Hook pager;
  configure(
      webhook("chat", slack, "format = \"slack\"\n") +
          webhook("duty", pager,
                  "format = \"pagerduty\"\nsecret_file = \"" + secret_file("rk", "R0UTE") + "\"\n"),
      "", "messages_max=1");
  start();
  std::string many;
  for (const auto* session : {"a", "b"}) {
    server->post("/api/autonomous/sessions",
                 json{{"sessionId", session}, {"agent", "<!channel> & co"}}.dump());
  }
  server->report("a", R"({"kind":"end","outcome":"failed","reason":"tool_error"})");
  const auto chat = slack.wait_for(1)[0];
  EXPECT_EQ(chat.body["text"].get<std::string>().substr(0, 58),
            "a (&lt;!channel&gt; &amp; co) failed: Tool error, since 20");
  EXPECT_NE(chat.raw.find("/sessions/a|Open the monitor>"), std::string::npos) << chat.raw;
  const auto page = pager.wait_for(1)[0];
  EXPECT_EQ(page.body["routing_key"], "R0UTE");
  EXPECT_EQ(page.body["event_action"], "trigger");
  EXPECT_EQ(page.body["payload"]["severity"], "critical");
  EXPECT_EQ(page.body["payload"]["component"], "<!channel> & co");
  end(SIGTERM);
  configure(
      webhook("duty", pager,
              "format = \"pagerduty\"\nsecret_file = \"" + secret_file("rk", "R0UTE") + "\"\n"));
  start();
  get_stuck("b");
  recover("b");
  const auto pages = pager.wait_for(3);
  EXPECT_EQ(pages[1].body["event_action"], "trigger");
  EXPECT_EQ(pages[2].body["event_action"], "resolve");
  EXPECT_EQ(pages[1].body["dedup_key"], pages[2].body["dedup_key"]);
  EXPECT_NE(pages[1].body["dedup_key"], pages[0].body["dedup_key"]);
}

TEST_F(Alerts, many_at_once_are_one_message) {
  Hook hook;
  configure(webhook("team", hook), "", "group_seconds=3600");
  start();
  for (int child = 0; child < 30; ++child) {
    server->post("/api/autonomous/sessions",
                 json{{"sessionId", "c" + std::to_string(child)}, {"parentSessionId", "p"}}.dump());
  }
  // All in one commit: by agents that share the file.
  end(SIGTERM);
  {
    auto store = Store::open({.database = path});
    ASSERT_TRUE(store.ok());
    std::vector<Batch> batches;
    for (int child = 0; child < 30; ++child) {
      auto& batch = batches.emplace_back(Batch{.session = "c" + std::to_string(child)});
      batch.reports.push_back({.kind = ReportKind::state_change, .name = "step"});
      for (int beat = 0; beat < 5; ++beat) {
        Report report;
        report.detail = Heartbeats{.source = Source::loop};
        batch.reports.push_back(report);
      }
    }
    ASSERT_TRUE(store->append(batches).ok());
  }
  start();
  const auto got = hook.wait_for(1)[0];
  EXPECT_EQ(got.body["alerts"].size(), 30U);
  const auto text = got.body["text"].get<std::string>();
  EXPECT_TRUE(text.starts_with("30 alerts of children of p\n• c0 is stuck")) << text;
  EXPECT_NE(text.find("\n… and 10 more\n"), std::string::npos) << text;
  until_sent();
  get_stuck("c1");  // again of one parent
  recover("c2");
  EXPECT_EQ(list()["alerts"][0]["channels"][0]["state"], "held") << "it waits for others";
  get_stuck("alone");
  EXPECT_EQ(hook.wait_for(2)[1].body["alerts"][0]["sessionId"], "alone");
}

TEST_F(Alerts, are_acknowledged_and_snoozed) {
  Hook hook;
  configure(webhook("team", hook));
  start();
  get_stuck("s");
  get_stuck("t");
  (void)hook.wait_for(2);
  until_sent();
  auto response = server->post("/api/alerts/1/acknowledge", R"({"by":"ann"})");
  EXPECT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(json::parse(response.body)["acknowledged"]["by"], "ann");
  const auto act = [this](std::vector<std::string> words) {
    words.insert(words.begin(), {program, "alerts"});
    for (const auto& flag : server->flags()) words.push_back(flag);
    return test::run(words);
  };
  auto ran = act({"--snooze", "2", "5"});
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_TRUE(list()["alerts"][0]["snoozedUntil"].is_number());
  server->report("s", R"({"kind":"end","outcome":"failed"})");
  server->report("t", R"({"kind":"end","outcome":"failed"})");
  EXPECT_EQ(list()["alerts"].size(), 2U) << "both are quiet";
  end(SIGKILL);
  sql("UPDATE alert_states SET snoozed_tick = snoozed_tick - 300000, due_tick = 1 WHERE "
      "snoozed_tick > 0");
  start();
  EXPECT_EQ(hook.wait_for(3)[2].body["alerts"][0]["text"].get<std::string>().substr(0, 8),
            "t failed");
  ran = act({"--ack", "9"});
  EXPECT_EQ(ran.code, 5) << ran.output;
  ran = act({"--ack", "3"});
  EXPECT_EQ(ran.code, 0) << ran.output;
  end(SIGTERM);
  ran = test::run({program, "alerts", "--snooze", "3", "1", "--db", path.string()});
  EXPECT_EQ(ran.code, 0) << ran.output;
  ran = test::run({program, "alerts", "--json", "--db", path.string()});
  EXPECT_EQ(json::parse(ran.output)["alerts"][0]["acknowledged"]["by"], "user");
}

TEST_F(Alerts, of_a_trouble_need_nobody_once_they_are_acknowledged_until_it_is_over) {
  Hook hook;
  configure(webhook("team", hook));
  start();
  const auto attention = [this] {
    return json::parse(server->get("/api/autonomous/progress/s").body)["attention"];
  };
  const auto counted = [this](const char* group) {
    return json::parse(server->get("/api/autonomous/summary").body)["attention"][group];
  };
  get_stuck("s");
  (void)hook.wait_for(1);
  until_sent();
  EXPECT_EQ(attention(), "needs_you");
  EXPECT_EQ(server->post("/api/alerts/1/acknowledge", R"({"by":"ann"})").status, 200);
  until([&] { return attention() == "watch"; });
  EXPECT_EQ(counted("needs_you"), 0);
  EXPECT_EQ(counted("watch"), 1);
  end(SIGKILL);
  start();
  until([&] { return attention() == "watch"; });
  EXPECT_EQ(counted("needs_you"), 0) << "a restart forgets no person's act";
  recover("s");
  EXPECT_EQ(attention(), "working");
  get_stuck("s");
  EXPECT_EQ(attention(), "needs_you") << "the next trouble is another one";
}

TEST_F(Alerts, say_no_secrets_and_nothing_of_the_task_unless_they_may) {
  const std::vector<std::string> secrets{"sk-abcdefghijklmnopqrstuvwxyz012345",
                                         "ghp_0123456789abcdefghijklmnopqrstuvwxyz",
                                         "AKIAIOSFODNN7EXAMPLE", "hunter2hunter2"};
  Hook hook;
  const auto log = dir / "log";
  for (const bool content : {false, true}) {
    const std::string may = content ? "content = \"preview\"\n" : "";
    configure(webhook("team", hook, may) + webhook("chat", hook, "format = \"slack\"\n" + may) +
                  webhook("duty", hook,
                          "format = \"pagerduty\"\nsecret_file = \"" + secret_file("k", "R") +
                              "\"\n" + may) +
                  "[alerts.channels.log]\ntype = \"log\"\n" + may +
                  "[alerts.channels.keep]\ntype = \"command\"\ncommand = [\"/usr/bin/tee\", "
                  "\"-a\", \"" +
                  log.string() + "\"]\n" + may,
              "blocked_seconds = 0\n", "group_seconds=0,messages_max=99");
    start();
    const std::string session = content ? "open" : "shut";
    const auto before = hook.got().size();
    server->post("/api/autonomous/sessions", json{{"sessionId", session},
                                                  {"agent", "coder " + secrets[0]},
                                                  {"task", "secret plans with " + secrets[1]}}
                                                 .dump());
    server->report(session, json{{"kind", "wait"}, {"waiting_for", "key " + secrets[2]}}.dump());
    server->report(session, json{{"kind", "end"},
                                 {"outcome", "failed"},
                                 {"reason", "token=" + secrets[3]},
                                 {"error", "no plan worked; password: " + secrets[3]}}
                                .dump());
    until_sent();
    const auto got = hook.got();
    ASSERT_GE(got.size(), before + 3);
    std::string all = test::content_of(log);
    for (auto at = before; at < got.size(); ++at) all += got[at].raw + got[at].head;
    for (const auto& secret : secrets) EXPECT_EQ(all.find(secret), std::string::npos) << all;
    EXPECT_EQ(all.find("[redacted]") != std::string::npos, content) << all;
    EXPECT_EQ(all.find("secret plans") != std::string::npos, content) << all;
    EXPECT_EQ(all.find("no plan worked") != std::string::npos, content) << all;
    end(SIGTERM);
  }
}

TEST_F(Alerts, a_channel_can_be_tried) {
  Hook hook([](Exchange& exchange, int count) {
    count == 1 ? ok(exchange) : void(exchange.respond(404, "no_service"));
  });
  configure(webhook("team", hook, "format = \"slack\"\n"));
  const auto test_it = [&](const std::string& channel) {
    return test::run({program, "alerts", "--test", channel, "--config", config.string()});
  };
  auto ran = test_it("team");
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.output, "sent: it answered 200: ok\n");
  EXPECT_EQ(hook.got()[0].body["text"], "A test of this channel by watchdog-monitor: it works.");
  ran = test_it("team");
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.output, "not sent: it answered 404: no_service\n");
  EXPECT_EQ(test_it("none").code, 5);
  configure("[alerts.channels.x]\nurl_file = \"" + (dir / "none").string() + "\"\n");
  EXPECT_EQ(test_it("x").code, 3);
  ran = test::run({program, "config", "--check", "--config", config.string()});
  EXPECT_EQ(ran.code, 3) << ran.output;
  ran = test::run({program, "serve", "--config", config.string(), "--db", path.string()});
  EXPECT_EQ(ran.code, 3) << ran.output;
}

TEST_F(Alerts, a_channel_of_a_monitor_is_tried_by_that_monitor) {
  Hook hook([](Exchange& exchange, int count) {
    count == 1 ? ok(exchange) : void(exchange.respond(404, "no_service"));
  });
  configure(webhook("team", hook, "format = \"slack\"\n"));
  start();
  const auto test_it = [&](const std::string& channel, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {program, "alerts", "--test", channel});
    const auto where = server->flags();
    more.insert(more.end(), where.begin(), where.end());
    // The settings of this command have no channel: the monitor has it.
    return test::run(more, {.environment = {"WATCHDOG_CONFIG="}});
  };
  auto ran = test_it("team");
  EXPECT_EQ(ran.code, 0) << ran.output;
  EXPECT_EQ(ran.output, "sent: it answered 200: ok\n");
  EXPECT_TRUE(hook.got()[0].body["text"].get<std::string>().starts_with(
      "A test of this channel by watchdog-monitor: it works.\n<" + server->url()))
      << hook.got()[0].body;
  ran = test_it("team", {"--json"});
  EXPECT_EQ(ran.code, 1);
  const auto said = json::parse(ran.output);
  EXPECT_EQ(said["sent"], false);
  EXPECT_EQ(said["answer"], "it answered 404: no_service");
  ran = test_it("taem");
  EXPECT_EQ(ran.code, 5);
  EXPECT_NE(ran.output.find("did you mean team?"), std::string::npos) << ran.output;
  EXPECT_EQ(test::run({program, "alerts", "--test", "team", "--server", "http://127.0.0.1:1"}).code,
            4);
  const auto trail = json::parse(server->get("/api/audit").body)["audit"];
  ASSERT_EQ(trail.size(), 3U) << trail;
  EXPECT_EQ(trail[0]["action"], "test_channel");
  EXPECT_EQ(trail[0]["target"], "team");
  EXPECT_EQ(list()["channels"][0]["state"], "ok") << "a test says nothing of alerts";
}

}  // namespace
}  // namespace watchdog::monitor
