// Alerts of the real binary: webhooks and programs that answer, fail, hang and come back, and a
// monitor that is killed in between.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <fstream>
#include <future>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>

#include "support/model_server.h"
#include "support/scenario.h"
#include "support/server.h"
#include "support/temp_dir.h"
#include "support/text_file.h"
#include "watchdog/store.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;
using test::ModelServer;
using test::Server;
using Exchange = ModelServer::Exchange;

const std::string program = WATCHDOG_MONITOR;

/// The value of a header in a request's head.
std::string header_in(const std::string& head, const std::string& name) {
  const auto at = head.find(name + ": ");
  if (at == std::string::npos) return {};
  const auto begin = at + name.size() + 2;
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

void ok(Exchange& exchange) {
  exchange.respond(200, "ok", "text/plain");
}

/// A webhook on loopback that keeps what came.
class Hook {
 public:
  using Answer = std::function<void(Exchange&, int count)>;
  struct Got {
    std::string key;
    json body;
    std::string raw, head;
  };

  explicit Hook(Answer answer = [](Exchange& exchange, int) { ok(exchange); })
      : answer_(std::move(answer)), server_([this](Exchange& exchange) { take(exchange); }) {}

  [[nodiscard]] std::string url() const { return server_.base_url(); }
  std::vector<Got> got() {
    const std::lock_guard guard(mutex_);
    return got_;
  }
  /// Waits until so many came, and returns them.
  std::vector<Got> wait_for(std::size_t count) {
    std::unique_lock guard(mutex_);
    EXPECT_TRUE(
        came_.wait_for(guard, std::chrono::seconds(60), [&] { return got_.size() >= count; }))
        << got_.size() << " of " << count << " came";
    return got_;
  }

 private:
  void take(Exchange& exchange) {
    const auto& request = exchange.request();
    int count = 0;
    {
      const std::lock_guard guard(mutex_);
      got_.push_back({.key = header_in(request.head, "Idempotency-Key"),
                      .body = json::parse(request.body, nullptr, false),
                      .raw = request.body,
                      .head = request.head});
      count = static_cast<int>(got_.size());
    }
    came_.notify_all();
    answer_(exchange, count);
  }

  Answer answer_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<Got> got_;
  ModelServer server_;  // last: its threads use the rest
};

class Alerts : public testing::Test {
 protected:
  test::TempDir dir;
  std::filesystem::path path = dir / "w.db";
  std::filesystem::path config = dir / "watchdog.toml";
  std::optional<Server> server;

  /// Quick retries, and each alert a message of its own.
  void configure(const std::string& channels, const std::string& alerts = "") {
    std::ofstream(config) << "[alerts]\nretry_first_ms = 5\nretry_longest_ms = 50\n"
                          << (alerts.empty() ? "group_seconds = 0\nmessages_max = 1000\n" : alerts)
                          << channels;
  }
  static std::string webhook(const std::string& name, const Hook& hook,
                             const std::string& more = "") {
    return "[alerts.channels." + name + "]\nurl = \"" + hook.url() + "\"\n" + more;
  }
  void start() {
    server.reset();
    server.emplace(path, std::vector<std::string>{"--config", config.string()});
  }
  void end(int signal) {
    server->process().signal(signal);
    server->process().wait();
  }
  void get_stuck(const std::string& session) {
    std::string events = R"({"kind":"state_change","type":"step"})";
    for (int beat = 0; beat < 5; ++beat)
      events +=
          "\n"
          R"({"kind":"heartbeat","source":"loop"})";
    EXPECT_EQ(server->report(session, events).status, 200);
  }
  void recover(const std::string& session) {
    EXPECT_EQ(server->report(session, R"({"kind":"state_change","type":"step"})").status, 200);
  }
  json list(const std::string& query = "") {
    const auto response = server->get("/api/alerts" + query);
    EXPECT_EQ(response.status, 200) << response.body;
    return json::parse(response.body);
  }
  /// Asks again and again until it is so.
  template <class Question>
  void until(Question question) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!question()) ASSERT_LT(std::chrono::steady_clock::now(), end) << list().dump(2);
  }
  /// Nothing is on its way any more.
  void until_sent() {
    until([&] { return list("?state=pending")["alerts"].empty(); });
  }
  void sql(const std::string& text) {
    sqlite3* connection = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(connection, text.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(connection);
    sqlite3_close(connection);
  }
  std::string secret_file(const std::string& name, const std::string& text) {
    test::write_file(dir / name, text);
    chmod((dir / name).c_str(), 0600);
    return (dir / name).string();
  }
};

TEST_F(Alerts, reach_a_webhook_with_what_a_person_wants_to_know) {
  Hook hook;
  configure(webhook("team", hook, "secret_file = \"" + secret_file("s", "key") + "\"\n"),
            "messages_max = 10\n");
  start();
  server->post("/api/autonomous/sessions", R"({"sessionId":"s-1","agent":"coder"})");
  get_stuck("s-1");
  const auto first = hook.wait_for(1)[0];
  const auto text = first.body["text"].get<std::string>();
  EXPECT_TRUE(text.starts_with("s-1 (coder) is stuck: its loop went round 5 times")) << text;
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

struct Trouble {
  const char* name;
  Hook::Answer answer;
  std::string error;
};

class TroubledHook : public Alerts, public testing::WithParamInterface<Trouble> {};

TEST_P(TroubledHook, gets_the_same_message_until_it_takes_it) {
  const auto& [name, answer, error] = GetParam();
  Hook hook([answer = answer](Exchange& exchange, int count) {
    count <= 2 ? answer(exchange, count) : ok(exchange);
  });
  configure(webhook("team", hook, "timeout_seconds = 1\n"));
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
  ASSERT_EQ(got.size(), 3U);
  EXPECT_EQ(got[0].key, got[1].key);
  EXPECT_EQ(got[0].key, got[2].key);
  EXPECT_EQ(got[0].raw, got[2].raw);
  EXPECT_EQ(list()["alerts"][0]["channels"][0]["attempts"], 3);
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

TEST_F(Alerts, a_message_that_is_not_wanted_is_given_up_and_the_next_one_goes) {
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

TEST_F(Alerts, what_is_overdue_goes_at_once_after_a_restart_and_nothing_goes_twice) {
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

TEST_F(Alerts, healthz_fails_when_the_oldest_is_unsent_for_over_a_minute) {
  std::atomic<bool> works = false;
  Hook hook(
      [&](Exchange& exchange, int) { works ? ok(exchange) : void(exchange.respond(500, "no")); });
  configure(webhook("team", hook));
  start();
  get_stuck("s");
  (void)hook.wait_for(1);
  EXPECT_EQ(server->get("/healthz").status, 200) << "it is young yet";
  end(SIGKILL);
  sql("UPDATE alerts SET told_tick = told_tick - 61000");
  start();
  until([&] { return server->get("/healthz").status == 503; });
  EXPECT_NE(server->get("/healthz").body.find("alerts do not reach channel team"),
            std::string::npos);
  works = true;
  until([&] { return server->get("/healthz").status == 200; });
  end(SIGKILL);
  configure("");
  start();
  get_stuck("t");
  EXPECT_EQ(server->get("/healthz").status, 200) << "there is no channel";
  EXPECT_EQ(list()["alerts"][0]["channels"], json::array());
}

TEST_F(Alerts, a_program_reads_the_message_and_is_bounded) {
  const auto script = dir / "notify";
  const auto taken = dir / "taken";
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
                        << taken.string() << "\necho \"$1\" >> " << taken.string() << "\n";
  chmod(script.c_str(), 0755);
  configure("[alerts.channels.duty]\ntype = \"command\"\ntimeout_seconds = 1\ncommand = [\"" +
            script.string() + "\", \"$(id) a b\"]\n");
  start();
  get_stuck("s");
  std::set<std::string> errors;
  until([&] {
    const auto delivery = list()["alerts"][0]["channels"][0];
    if (delivery["error"].is_string()) errors.insert(delivery["error"]);
    return delivery["state"] == "sent";
  });
  EXPECT_EQ(list()["alerts"][0]["channels"][0]["attempts"], 4);
  EXPECT_TRUE(errors.contains("it ended with 3: trouble"));
  EXPECT_TRUE(errors.contains("it did not end within 1000 ms"));
  std::istringstream lines(test::content_of(taken));
  std::string body;
  std::string words;
  std::getline(lines, body, '}');
  std::getline(lines, words, '\0');
  EXPECT_EQ(body.substr(0, 8), R"({"key":")");
  EXPECT_NE(words.find("$(id) a b\n"), std::string::npos) << "no shell sees it";
}

TEST_F(Alerts, are_written_as_slack_and_pagerduty_want_them) {
  Hook slack;
  Hook pager;
  configure(webhook("chat", slack, "format = \"slack\"\n") +
                webhook("duty", pager,
                        "format = \"pagerduty\"\nrouting_key_file = \"" +
                            secret_file("rk", "R0UTE") + "\"\n"),
            "messages_max = 1\n");
  start();
  std::string many;
  for (const auto* session : {"a", "b"}) {
    server->post("/api/autonomous/sessions",
                 json{{"sessionId", session}, {"agent", "<!channel> & co"}}.dump());
  }
  server->report("a", R"({"kind":"end","outcome":"failed","reason":"tool_error"})");
  const auto chat = slack.wait_for(1)[0];
  EXPECT_EQ(chat.body["text"].get<std::string>().substr(0, 58),
            "a (&lt;!channel&gt; &amp; co) failed: tool_error, since 20");
  EXPECT_NE(chat.raw.find("/sessions/a|Open the monitor>"), std::string::npos) << chat.raw;
  const auto page = pager.wait_for(1)[0];
  EXPECT_EQ(page.body["routing_key"], "R0UTE");
  EXPECT_EQ(page.body["event_action"], "trigger");
  EXPECT_EQ(page.body["payload"]["severity"], "critical");
  EXPECT_EQ(page.body["payload"]["component"], "<!channel> & co");
  end(SIGTERM);
  configure(webhook(
      "duty", pager,
      "format = \"pagerduty\"\nrouting_key_file = \"" + secret_file("rk", "R0UTE") + "\"\n"));
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
  configure(webhook("team", hook), "group_seconds = 3600\n");
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
        report.detail = Beats{.source = Source::loop};
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
  auto ran = test::run({program, "alerts", "--snooze", "2", "5", "--server", server->url()});
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
  ran = test::run({program, "alerts", "--ack", "9", "--server", server->url()});
  EXPECT_EQ(ran.code, 5) << ran.output;
  ran = test::run({program, "alerts", "--ack", "3", "--server", server->url()});
  EXPECT_EQ(ran.code, 0) << ran.output;
  end(SIGTERM);
  ran = test::run({program, "alerts", "--snooze", "3", "1", "--db", path.string()});
  EXPECT_EQ(ran.code, 0) << ran.output;
  ran = test::run({program, "alerts", "--json", "--db", path.string()});
  EXPECT_EQ(json::parse(ran.output)["alerts"][0]["acknowledged"]["by"], "user");
}

TEST_F(Alerts, say_no_secrets_and_nothing_of_the_task_unless_they_may) {
  const std::vector<std::string> secrets{"sk-abcdefghijklmnopqrstuvwxyz012345",
                                         "ghp_0123456789abcdefghijklmnopqrstuvwxyz",
                                         "AKIAIOSFODNN7EXAMPLE", "hunter2hunter2"};
  Hook hook;
  const auto log = dir / "log";
  for (const bool content : {false, true}) {
    configure(webhook("team", hook) + webhook("chat", hook, "format = \"slack\"\n") +
                  webhook("duty", hook,
                          "format = \"pagerduty\"\nrouting_key_file = \"" + secret_file("k", "R") +
                              "\"\n") +
                  "[alerts.channels.log]\ntype = \"log\"\n[alerts.channels.keep]\ntype = "
                  "\"command\"\ncommand = [\"/usr/bin/tee\", \"-a\", \"" +
                  log.string() + "\"]\n",
              std::string("group_seconds = 0\nmessages_max = 99\nblocked_seconds = 0\ncontent = ") +
                  (content ? "true\n" : "false\n"));
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
    EXPECT_NE(all.find("[redacted]"), std::string::npos) << all;
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

TEST_F(Alerts, a_message_under_way_arrives_before_the_monitor_goes) {
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

TEST_F(Alerts, kills_lose_none_and_repeat_at_most_one_each) {
  std::mt19937 random(test::random_seed());
  std::mutex mutex;
  std::mt19937 moods(random());
  // Mostly it takes what comes; sometimes it fails, or hangs up after it took it.
  struct Taken {
    std::vector<std::string> answered;                     // keys
    std::map<std::int64_t, std::set<std::string>> alerts;  // and under which keys they came
  };
  std::map<std::string, Taken> taken;  // by channel
  const auto answer = [&](const std::string& channel) {
    return [&, channel](Exchange& exchange, int) {
      const auto body = json::parse(exchange.request().body);
      const auto key = header_in(exchange.request().head, "Idempotency-Key");
      unsigned mood = 0;
      {
        const std::lock_guard guard(mutex);
        mood = moods() % 8;
        auto& all = taken[channel];
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
                                            "format = \"pagerduty\"\nrouting_key_file = \"" +
                                                secret_file("k", "R") + "\"\n"),
            "group_seconds = 0\nmessages_max = 1000\nflap_changes = 0\n");
  const int kills = test::repetitions(300);
  std::map<std::string, bool> stuck;
  for (int kill = 0; kill < kills; ++kill) {
    start();
    for (auto steps = random() % 12; steps > 0; --steps) {
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
  // What was told is what happened.
  std::map<std::string, int> told;
  std::set<std::int64_t> ids;
  std::string query = "?limit=1000";
  for (json page = list(query);; page = list(query)) {
    for (const auto& alert : page["alerts"]) {
      ids.insert(alert["alertId"].get<std::int64_t>());
      told[alert["sessionId"].get<std::string>() + " " + alert["health"].get<std::string>()]++;
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
  EXPECT_EQ(told, happened);
  EXPECT_GT(ids.size(), 20U);
  const std::lock_guard guard(mutex);
  for (const auto& [channel, all] : taken) {
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
