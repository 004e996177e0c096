// Alerts on their way: webhooks and programs that fail, hang and come back, and a monitor that is
// killed in between.
#include <algorithm>
#include <atomic>
#include <future>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "e2e/alerting.h"
#include "support/scenario.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;
using test::Exchange;
using test::header_in;
using test::Hook;
using test::ok;

class AlertDelivery : public test::Alerting {};

struct Trouble {
  const char* name;
  Hook::Answer answer;
  std::string error;
};

class TroubledHook : public test::Alerting, public testing::WithParamInterface<Trouble> {};

TEST_P(TroubledHook, gets_the_same_message_until_it_takes_it) {
  const auto& [name, answer, error] = GetParam();
  Hook hook([answer = answer](Exchange& exchange, int count) {
    count <= 2 ? answer(exchange, count) : ok(exchange);
  });
  configure(webhook("team", hook), "",
            "group_seconds=0,messages_max=1000,channels.team.timeout_seconds=1");
  start();
  get_stuck("s");
  (void)hook.wait_for(2);
  std::string said;
  until([&] {
    const auto error_said = list()["alerts"][0]["channels"][0]["error"];
    if (error_said.is_string()) said = error_said;
    return list()["alerts"][0]["channels"][0]["state"] == "sent";
  });
  const auto got = hook.got();
  ASSERT_GE(got.size(), 3U);  // more, if the good answer takes over a second as well
  for (const auto& one : got) EXPECT_EQ(one.key, got[0].key);
  EXPECT_EQ(got[0].raw, got[2].raw);
  EXPECT_GE(list()["alerts"][0]["channels"][0]["attempts"], 3);
  EXPECT_EQ(list()["alerts"].size(), 1U);
  EXPECT_TRUE(said.empty() || said.find(error) != std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(
    All, TroubledHook,
    testing::Values(
        Trouble{"answers_500", [](Exchange& e, int) { e.respond(500, "no"); }, "answered 500: no"},
        Trouble{"redirects",
                [](Exchange& e, int) { e.respond(302, "", "text/plain", "Location: /\r\n"); },
                "answered 302"},
        Trouble{"limits",
                [](Exchange& e, int) { e.respond(429, "", "text/plain", "Retry-After: 1\r\n"); },
                "answered 429"},
        Trouble{"refuses_twice", [](Exchange& e, int) { e.respond(400, "bad"); }, "answered 400"},
        Trouble{"never_answers", [](Exchange& e, int) { e.wait_gone(); },
                "no answer within 1000 ms"},
        Trouble{"answers_late",
                [](Exchange& e, int) {
                  e.wait_gone();
                  ok(e);
                },
                "no answer"},
        Trouble{"stops_in_mid_answer",
                [](Exchange& e, int) {
                  e.write("HTTP/1.1 200 OK\r\nContent-Le");
                  e.wait_gone();
                },
                "no answer"},
        Trouble{"is_no_http",
                [](Exchange& e, int) {
                  e.write("\x16\x03\x01 what?\r\n\r\n");
                  e.close();
                },
                "no HTTP"},
        Trouble{"hangs_up", [](Exchange& e, int) { e.close(); }, "closed the connection"},
        Trouble{"resets", [](Exchange& e, int) { e.reset(); }, ""}),
    [](const auto& trouble) { return std::string(trouble.param.name); });

TEST_F(AlertDelivery, a_message_that_is_not_wanted_is_given_up_and_the_next_one_goes) {
  Hook hook([](Exchange& exchange, int count) {
    count <= 3 ? void(exchange.respond(422, "what?")) : ok(exchange);
  });
  configure(webhook("team", hook));
  start();
  get_stuck("s");
  until([&] { return list()["alerts"][0]["channels"][0]["state"] == "dead"; });
  get_stuck("t");
  (void)hook.wait_for(4);
  until_sent();
  EXPECT_EQ(list("?state=dead")["alerts"].size(), 1U);
  EXPECT_EQ(list("?state=dead")["alerts"][0]["channels"][0]["error"], "it answered 422: what?");
  EXPECT_EQ(list("?state=sent")["alerts"][0]["sessionId"], "t");
}

TEST_F(AlertDelivery, refusals_of_one_message_do_not_count_for_the_next_one) {
  Hook hook([](Exchange& exchange, int count) {
    count <= 3 ? void(exchange.respond(422, "what?")) : ok(exchange);
  });
  configure(webhook("team", hook));
  start();
  get_stuck("s");
  (void)hook.wait_for(2);
  server->post("/api/alerts/1/acknowledge", "");  // it need not be sent any more
  get_stuck("t");
  (void)hook.wait_for(4);
  until([&] { return list("?state=pending")["alerts"].empty(); });
  EXPECT_EQ(list("?state=sent")["alerts"].size(), 1U);
  EXPECT_EQ(list("?state=sent")["alerts"][0]["sessionId"], "t");
}

TEST_F(AlertDelivery, overdue_alerts_are_sent_at_once_after_a_restart_and_never_twice) {
  std::atomic<bool> works = false;
  Hook hook([&](Exchange& exchange, int) {
    works ? ok(exchange) : void(exchange.respond(503, "later"));
  });
  configure(webhook("team", hook));
  start();
  get_stuck("s");
  get_stuck("t");
  recover("t");
  until([&] { return list()["channels"][0]["state"] == "dead"; });
  EXPECT_EQ(list()["channels"][0]["error"], "it answered 503: later");
  EXPECT_EQ(list()["alerts"][2]["channels"][0]["state"], "pending");
  end(SIGKILL);
  const auto before = hook.got().size();
  works = true;
  start();
  const auto got = hook.wait_for(before + 3);
  until_sent();
  for (int restart = 0; restart < 2; ++restart) {
    end(restart == 0 ? SIGTERM : SIGKILL);
    start();
  }
  get_stuck("u");
  const auto all = hook.wait_for(before + 4);
  until_sent();
  EXPECT_EQ(hook.got().size(), before + 4);
  std::vector<std::string> sessions;
  for (auto at = before; at < all.size(); ++at)
    sessions.push_back(all[at].body["alerts"][0]["sessionId"]);
  EXPECT_EQ(sessions, (std::vector<std::string>{"s", "t", "t", "u"}));
  EXPECT_EQ(all[before].key, all[0].key) << "the one that was tried before";
}

TEST_F(AlertDelivery, alert_that_waits_is_in_the_metrics_and_concerns_no_probe) {
  std::atomic<bool> works = false;
  Hook hook(
      [&](Exchange& exchange, int) { works ? ok(exchange) : void(exchange.respond(500, "no")); });
  configure(webhook("team", hook));
  start();
  get_stuck("s");
  (void)hook.wait_for(1);
  end(SIGKILL);
  sql("UPDATE alerts SET told_tick = told_tick - 61000");
  start();
  const auto unsent_seconds = [&] {
    const auto text = server->get("/metrics").body;
    const std::string name = "\nwatchdog_alert_oldest_unsent_seconds ";
    return std::stod(text.substr(text.find(name) + name.size()));
  };
  until([&] { return unsent_seconds() > 60; });
  EXPECT_GT(list()["channels"][0]["oldestUnsentMs"], 60'000);
  EXPECT_EQ(server->get("/healthz").status, 200) << "the process works";
  EXPECT_EQ(server->get("/readyz").status, 200) << "reports are stored";
  works = true;
  until([&] { return unsent_seconds() == 0; });
  end(SIGKILL);
  configure("");
  start();
  get_stuck("t");
  EXPECT_EQ(unsent_seconds(), 0) << "there is no channel";
  EXPECT_EQ(list()["alerts"][0]["channels"], json::array());
}

TEST_F(AlertDelivery, a_program_reads_the_message_and_is_bounded) {
  const auto script = dir / "notify";
  const auto received = dir / "taken";
  std::ofstream(script) << "#!/bin/sh\n"
                           "echo run >> "
                        << (dir / "runs").string()
                        << "\n"
                           "case $(wc -l < "
                        << (dir / "runs").string()
                        << ") in\n"
                           "1) echo trouble >&2; exit 3;;\n"
                           "2) exec cat /dev/zero;;\n"
                           "3) trap '' TERM; while :; do /bin/sleep 9; done;;\n"
                           "esac\n"
                           "cat > "
                        << received.string() << "\necho \"$1\" >> " << received.string() << "\n";
  chmod(script.c_str(), 0755);
  configure("[alerts.channels.duty]\ntype = \"command\"\ncommand = [\"" + script.string() +
                "\", \"$(id) a b\"]\n",
            "", "group_seconds=0,messages_max=1000,channels.duty.timeout_seconds=2");
  start();
  get_stuck("s");
  std::set<std::string> errors;
  until([&] {
    const auto delivery = list()["alerts"][0]["channels"][0];
    if (delivery["error"].is_string()) errors.insert(delivery["error"]);
    return delivery["state"] == "sent";
  });
  // On a machine that has much to do, the good one may need another.
  EXPECT_GE(list()["alerts"][0]["channels"][0]["attempts"], 4);
  EXPECT_TRUE(errors.contains("it ended with 3: trouble"));
  EXPECT_TRUE(errors.contains("it did not end within 2000 ms"));
  std::istringstream lines(test::content_of(received));
  std::string body;
  std::string words;
  std::getline(lines, body, '}');
  std::getline(lines, words, '\0');
  EXPECT_EQ(body.substr(0, 8), R"({"key":")");
  EXPECT_NE(words.find("$(id) a b\n"), std::string::npos) << "no shell sees it";
}

TEST_F(AlertDelivery, a_message_under_way_arrives_before_the_monitor_goes) {
  std::promise<void> there;
  std::promise<void> go;
  Hook hook([&](Exchange& exchange, int count) {
    if (count == 1) {
      there.set_value();
      go.get_future().wait();
    }
    ok(exchange);
  });
  configure(webhook("team", hook));
  start();
  get_stuck("s");
  there.get_future().wait();
  server->process().signal(SIGTERM);
  go.set_value();
  EXPECT_EQ(server->process().wait(), 0);
  start();
  get_stuck("t");
  EXPECT_EQ(hook.wait_for(2)[1].body["alerts"][0]["sessionId"], "t") << "it is not sent again";
}

TEST_F(AlertDelivery, a_hook_that_never_answers_keeps_neither_the_monitor_nor_another_channel) {
  Hook never([](Exchange& exchange, int) { exchange.wait_gone(); });
  Hook hook;
  configure(webhook("a", never) + webhook("b", hook), "",
            "group_seconds=0,messages_max=1000,channels.a.timeout_seconds=600");
  start();
  get_stuck("s");
  get_stuck("t");
  (void)never.wait_for(1);
  EXPECT_EQ(hook.wait_for(2).size(), 2U);
  // A person knows of this alert now: the monitor need not send it any more.
  server->post("/api/alerts/2/acknowledge", "");
  end(SIGTERM);
  start();
  EXPECT_EQ(never.wait_for(2)[1].body["alerts"][0]["sessionId"], "s");
  server->post("/api/alerts/1/acknowledge", "");
  end(SIGKILL);
  start();
  until([&] { return list()["channels"].size() == 2; });
  EXPECT_TRUE(list("?state=pending")["alerts"].empty());
}

TEST_F(AlertDelivery, kills_lose_none_and_repeat_at_most_one_each) {
  std::mt19937 random(test::random_seed());
  std::mutex mutex;
  std::mt19937 moods(random());
  // Mostly it takes what comes; sometimes it fails, or hangs up after it took it.
  struct Received {
    std::vector<std::string> answered;                     // keys
    std::map<std::int64_t, std::set<std::string>> alerts;  // and under which keys they came
  };
  std::map<std::string, Received> received;  // by channel
  const auto answer = [&](const std::string& channel) {
    return [&, channel](Exchange& exchange, int) {
      const auto body = json::parse(exchange.request().body);
      const auto key = header_in(exchange.request().head, "Idempotency-Key");
      unsigned mood = 0;
      {
        const std::lock_guard guard(mutex);
        mood = moods() % 8;
        auto& all = received[channel];
        if (mood > 1) all.answered.push_back(key);
        if (mood > 0) {
          if (channel == "duty")
            all.alerts[body["payload"]["custom_details"]["alertId"]].insert(key);
          else
            for (const auto& alert : body["alerts"]) all.alerts[alert["alertId"]].insert(key);
        }
      }
      if (mood == 0) return void(exchange.respond(500, "not now"));
      if (mood == 1) return exchange.reset();  // taken, and nobody knows
      ok(exchange);
    };
  };
  Hook team(answer("team"));
  Hook duty(answer("duty"));
  configure(webhook("team", team) + webhook("duty", duty,
                                            "format = \"pagerduty\"\nsecret_file = \"" +
                                                secret_file("k", "R") + "\"\n"),
            "", "group_seconds=0,messages_max=1000,flap_changes=0");
  const int kills = test::repetitions(300);
  std::map<std::string, bool> stuck;
  for (int kill = 0; kill < kills; ++kill) {
    start();
    for (auto steps = 2 + random() % 10; steps > 0; --steps) {
      const auto session = "s" + std::to_string(random() % 5);
      auto& is_stuck = stuck[session];
      is_stuck ? recover(session) : get_stuck(session);
      is_stuck = !is_stuck;
    }
    // Often in the middle of a delivery, sometimes when all is quiet.
    if (random() % 3 == 0) until_sent();
    end(SIGKILL);
  }
  start();
  until_sent();
  // There is one alert for each change that people have to know, and no other.
  std::map<std::string, int> reported;
  std::set<std::int64_t> ids;
  std::string query = "?limit=1000";
  for (json page = list(query);; page = list(query)) {
    for (const auto& alert : page["alerts"]) {
      ids.insert(alert["alertId"].get<std::int64_t>());
      reported[alert["sessionId"].get<std::string>() + " " + alert["health"].get<std::string>()]++;
    }
    if (page["next"].is_null()) break;
    query = "?limit=1000&after=" + page["next"].dump();
  }
  std::map<std::string, int> happened;
  for (const auto& [session, now] : stuck) {
    const auto changes = json::parse(
        server->get("/api/autonomous/sessions/" + session + "/transitions?limit=1000").body);
    bool was_stuck = false;
    for (const auto& change : changes["transitions"]) {
      const bool is_stuck = change["health"] == "stuck";
      if (is_stuck || was_stuck) happened[session + " " + change["health"].get<std::string>()]++;
      was_stuck = is_stuck;
    }
  }
  EXPECT_EQ(reported, happened);
  EXPECT_GE(ids.size(), static_cast<std::size_t>(kills)) << "each start has at least two changes";
  const std::lock_guard guard(mutex);
  for (const auto& [channel, all] : received) {
    std::set<std::int64_t> came;
    for (const auto& [id, keys] : all.alerts) {
      came.insert(id);
      EXPECT_EQ(keys.size(), 1U) << "alert " << id << " comes with the same key each time";
    }
    EXPECT_EQ(came, ids) << "none is lost to " << channel;
    const std::set<std::string> once(all.answered.begin(), all.answered.end());
    const auto repeats = static_cast<int>(all.answered.size() - once.size());
    EXPECT_LE(repeats, kills) << "the one that was under way";
    std::printf("%s: %d kills, %zu alerts, %d sent again after they were taken\n", channel.c_str(),
                kills, ids.size(), repeats);
  }
}

}  // namespace
}  // namespace watchdog::monitor
