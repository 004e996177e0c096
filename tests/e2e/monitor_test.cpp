// The real binary over real sockets and files.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <random>
#include <regex>
#include <sstream>
#include <thread>

#include "store/store.h"
#include "support/corpus.h"
#include "support/process.h"
#include "support/reports.h"
#include "support/scenario.h"
#include "support/server.h"
#include "support/temp_dir.h"
#include "watchdog/tracker.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;
using test::Process;
using test::program;
using test::run;
using test::Server;
using test::TempDir;

const std::string reporter = WATCHDOG_REPORTER;

/// Sends bytes as they are; what comes back until the server closes.
std::string raw(const std::string& url, const std::string& bytes) {
  const auto port = std::stoi(url.substr(url.rfind(':') + 1));
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  const timeval timeout{5, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  [[maybe_unused]] const auto sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  shutdown(fd, SHUT_WR);
  std::string answer;
  std::array<char, 4096> buffer{};
  for (ssize_t count = 0; (count = recv(fd, buffer.data(), buffer.size(), 0)) > 0;)
    answer.append(buffer.data(), static_cast<std::size_t>(count));
  close(fd);
  return answer;
}

class Monitor : public testing::Test {
 protected:
  TempDir dir;
  std::filesystem::path path = dir / "w.db";

  std::size_t stored(const std::string& session) {
    auto reader = StoreReader::open(path);
    EXPECT_TRUE(reader.ok()) << (reader ? "" : reader.error().message);
    return test::all_events(*reader, session, 1'000).size();
  }
};

TEST_F(Monitor, judges_what_agents_post) {
  Server server(path);
  EXPECT_EQ(
      server.report("s", R"({"kind":"state_change","type":"plan_generated","data":{"steps":3}})")
          .status,
      200);
  EXPECT_EQ(server.progress("s")["health"], "progressing");
  for (int i = 1; i <= 5; ++i) {
    server.report("s", R"({"kind":"heartbeat","source":"loop","phase":"think","iteration":)" +
                           std::to_string(i) + "}");
  }
  auto document = server.progress("s");
  EXPECT_EQ(document["health"], "stuck");
  EXPECT_EQ(document["stuck"], true);
  EXPECT_EQ(document["stuckBy"], "F1");
  EXPECT_EQ(document["alive"], true);
  EXPECT_EQ(document["currentPhase"], "think");
  EXPECT_EQ(document["progress"]["heartbeats"], 5);
  server.report("s", R"({"kind":"tool_call","name":"f","args":{}})");
  server.report("s", R"({"kind":"tool_result","name":"f","text":"ok"})");
  document = server.progress("s");
  EXPECT_EQ(document["health"], "progressing");
  EXPECT_EQ(document["progress"]["lastChange"], "tool_call");
  server.report("s", R"({"kind":"end","outcome":"incomplete","reason":"max_iterations_reached"})");
  document = server.progress("s");
  EXPECT_EQ(document["outcome"]["reason"], "max_iterations_reached");
  EXPECT_EQ(json::parse(server.get("/api/chat/autonomous/status?sessionId=s").body)["status"],
            "incomplete");
  EXPECT_EQ(json::parse(server.report("s", R"({"kind":"message"})").body)["late"], 1);
}

TEST_F(Monitor, finds_silence_without_any_request) {
  Server server(path);
  server.post("/api/autonomous/sessions",
              R"({"sessionId":"s","policy":{"heartbeatInterval":100}})");
  server.report("s", R"({"kind":"heartbeat","source":"sidecar"})");
  server.report("s", R"({"kind":"heartbeat","source":"sidecar"})");
  json transitions;
  do {
    transitions =
        json::parse(server.get("/api/autonomous/sessions/s/transitions").body)["transitions"];
  } while (transitions.back()["health"] != "silent");
  EXPECT_EQ(server.progress("s")["health"], "silent");
  EXPECT_EQ(transitions.back()["health"], "silent");
  EXPECT_EQ(transitions.back()["pattern"], "F4");
}

TEST_F(Monitor, batch_is_stored_whole_or_not_at_all) {
  Server server(path);
  const auto refused =
      server.report("s", "{\"kind\":\"message\"}\n{\"kind\":\"heartbeat\",\"iteration\":\"x\"}\n");
  EXPECT_EQ(refused.status, 400);
  const auto error = json::parse(refused.body)["error"];
  EXPECT_EQ(error["line"], 2);
  EXPECT_EQ(error["field"], "iteration");
  EXPECT_EQ(server.get("/api/autonomous/progress/s").status, 404)
      << "not even the session was made";
}

TEST_F(Monitor, survives_bytes_that_are_no_http) {
  Server server(path);
  std::mt19937 random(test::random_seed());
  const std::string good =
      "POST /api/autonomous/sessions/s/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
      "20\r\nConnection: close\r\n\r\n{\"kind\":\"heartbeat\"}";
  EXPECT_NE(raw(server.url(), good).find("\"accepted\":1"), std::string::npos);
  EXPECT_NE(raw(server.url(), "GET / HTTP/1.1\r\n\r\n").find(" 400 "), std::string::npos)
      << "no Host";
  EXPECT_NE(raw(server.url(), "nonsense\r\n\r\n").find(" 400 "), std::string::npos);
  EXPECT_NE(raw(server.url(),
                "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n")
                .find(" 431 "),
            std::string::npos);
  EXPECT_NE(raw(server.url(),
                "POST /api/autonomous/sessions HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
                "99999999\r\n\r\n")
                .find(" 413 "),
            std::string::npos);
  EXPECT_NE(
      raw(server.url(), "GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n").find(" 400 "),
      std::string::npos);
  EXPECT_NE(raw(server.url(),
                "POST /api/autonomous/sessions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: "
                "gzip\r\n\r\nGET / HTTP/1.1\r\n\r\n")
                .find(" 400 "),
            std::string::npos);
  EXPECT_NE(raw(server.url(), "GET /%zz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                .find(" 400 "),
            std::string::npos);
  for (int i = 0; i < test::repetitions(3'000); ++i) {
    auto bytes = good;
    for (auto n = 1 + random() % 8; n > 0; --n) {
      const auto at = random() % bytes.size();
      random() % 2 == 0 ? (void)(bytes[at] = static_cast<char>(random()))
                        : (void)bytes.erase(at, 1 + random() % 10);
    }
    (void)raw(server.url(),
              bytes.substr(0, random() % 4 == 0 ? random() % bytes.size() : std::string::npos));
  }
  EXPECT_EQ(server.get("/healthz").status, 200);
}

TEST_F(Monitor, answers_requests_that_come_in_one_packet_in_order) {
  Server server(path);
  std::string bytes;
  for (int i = 0; i < 50; ++i)
    bytes += "GET /api/autonomous/progress/p" + std::to_string(i) +
             " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const auto answers = raw(server.url(), bytes);
  std::size_t at = 0;
  for (int i = 0; i < 50; ++i) {
    at = answers.find("unknown session p" + std::to_string(i) + "\"", at);
    ASSERT_NE(at, std::string::npos) << i;
  }
}

TEST_F(Monitor, second_one_on_a_file_names_the_first) {
  Server server(path);
  const auto second = run({program, "serve", "--db", path, "--port", "0"});
  EXPECT_EQ(second.code, 3);
  EXPECT_NE(second.output.find(std::to_string(server.process().pid())), std::string::npos)
      << second.output;
}

TEST_F(Monitor, refuses_a_file_it_cannot_work_with_by_name) {
  std::ofstream(path) << std::string(5'000, 'x');
  auto refused = run({program, "serve", "--db", path, "--port", "0"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.output.find("w.db"), std::string::npos) << refused.output;
  refused = run({program, "serve", "--db", "/proc/none/w.db", "--port", "0"});
  EXPECT_EQ(refused.code, 1);
  refused = run({program, "sessions", "--db", dir / "none.db"});
  EXPECT_EQ(refused.code, 5);
  EXPECT_NE(refused.output.find("none.db"), std::string::npos);
}

TEST_F(Monitor, full_disk_is_said_and_loses_nothing) {
  // The limit on file sizes stands for a full disk.
  Process shell({"/bin/bash", "-c", "ulimit -f 400; exec \"$0\" serve --db \"$1\" --port 0",
                 program, path.string()});
  const auto url = shell.line().substr(std::string("listening on ").size());
  auto client = MonitorClient::to(url, {});
  std::size_t accepted = 0;
  int refused = 0;
  for (int i = 0; i < 200 && refused < 3; ++i) {
    const auto response =
        client->ask(Method::post, "/api/autonomous/sessions/s/events",
                    R"({"kind":"state_change","type":"x","data":")" + std::string(190, 'd') +
                        std::to_string(i) + "\"}\n" + R"({"kind":"message","text":")" +
                        std::string(190, 'm') + "\"}\n");
    ASSERT_TRUE(response.ok()) << "the process lives";
    if (response->status == 200) {
      accepted += 2;
    } else {
      EXPECT_EQ(response->status, 503);
      ++refused;
    }
  }
  while (refused > 0 && client->ask(Method::get, "/readyz")->status != 503)
    std::this_thread::yield();
  EXPECT_EQ(client->ask(Method::get, "/healthz")->status, 200);
  shell.signal(SIGTERM);
  shell.wait();
  if (refused == 0) GTEST_FAIL() << "the limit never bit";
  EXPECT_EQ(stored("s"), accepted);
}

TEST_F(Monitor, deleted_database_is_created_again) {
  Server server(path);
  server.report("s", R"({"kind":"message"})");
  for (const char* suffix : {"", "-wal", "-shm", "-writer", "-judge"})
    std::filesystem::remove(path.string() + suffix);
  // A report may still come while the monitor closes the old file: it is refused then.
  while (server.report("t", R"({"kind":"state_change","type":"x"})").status != 200)
    std::this_thread::yield();
  EXPECT_EQ(server.progress("t")["health"], "progressing");
  EXPECT_EQ(stored("t"), 1U);
}

// A cleaning job takes the log away. The monitor has nothing left in memory when it is killed.
TEST_F(Monitor, removed_log_loses_nothing_acknowledged) {
  for (const auto* suffixes : {"-wal", "-shm", "-wal -shm"}) {
    path = dir / (std::string("w") + suffixes[1] + std::to_string(std::strlen(suffixes)) + ".db");
    std::size_t acknowledged = 0;
    {
      Server server(path);
      const auto report = [&] {
        if (server.report("s", R"({"kind":"state_change","type":"x"})").status == 200)
          ++acknowledged;
      };
      for (int i = 0; i < 40; ++i) report();
      ASSERT_EQ(acknowledged, 40U);
      std::istringstream words(suffixes);
      for (std::string suffix; words >> suffix;) std::filesystem::remove(path.string() + suffix);
      // A report may still come while the monitor closes the old file: it is refused then.
      while (acknowledged < 45) report();
      server.process().signal(SIGKILL);
      server.process().wait();
    }
    EXPECT_EQ(stored("s"), acknowledged) << suffixes;
    EXPECT_EQ(run({"/usr/bin/sqlite3", path.string(), "PRAGMA integrity_check"}).output, "ok\n");
  }
}

// The promise: the file has each acknowledged report, whichever process is killed, and whenever.
TEST_F(Monitor, kill_9_of_agents_and_monitor_loses_nothing_acknowledged) {
  std::mt19937 random(test::random_seed());
  const int rounds = test::repetitions(200);
  for (int round = 0; round < rounds; ++round) {
    path = dir / ("w" + std::to_string(round) + ".db");
    int posted = 0;
    int said = 0;
    {
      std::optional<Server> server;
      server.emplace(path);
      Process agent({reporter, path.string(), "agent"});
      Process other({reporter, path.string(), "other"});
      (void)agent.line();
      const bool stop_one = round % 3 == 0;
      const auto steps = 3 + random() % 20;
      for (unsigned step = 0; step < steps; ++step) {
        if (server->report("http", R"({"kind":"state_change","type":"n"})").status == 200) ++posted;
      }
      if (stop_one) {  // perhaps within its transaction: then everybody waits, and nobody loses
                       // anything
        other.stop();
        if (server->report("http", R"({"kind":"state_change","type":"n"})").status == 200) ++posted;
      }
      agent.signal(SIGKILL);
      server->process().signal(SIGKILL);
      agent.wait();
      server->process().wait();
      const auto output = "0\n" + agent.rest();
      said = std::stoi(output.substr(output.rfind('\n', output.size() - 2) == std::string::npos
                                         ? 0
                                         : output.rfind('\n', output.size() - 2) + 1));
    }
    // The next monitor opens the file and goes on.
    Server next(path);
    const auto document = next.progress("http");
    ASSERT_GE(document["progress"]["stateChanges"].get<int>(), posted)
        << "round " << round << " seed " << test::random_seed();
    ASSERT_GE(next.progress("agent")["progress"]["stateChanges"].get<int>(), said);
    ASSERT_EQ(next.report("http", R"({"kind":"end"})").status, 200);
    next.process().signal(SIGTERM);
    ASSERT_EQ(next.process().wait(), 0);
    const auto check = run({"/usr/bin/sqlite3", path.string(), "PRAGMA integrity_check"});
    ASSERT_EQ(check.output, "ok\n");
  }
}

TEST_F(Monitor, stopped_writer_delays_others_and_loses_nothing) {
  Server server(path);
  Process agent({reporter, path.string(), "agent"});
  (void)agent.line();
  // Stop it again and again until it happens to hold the writers' queue.
  ASSERT_EQ(server.report("http", R"({"kind":"state_change","type":"n"})").status, 200);
  int posted = 1;
  bool held = false;
  for (int attempt = 0; attempt < 400 && !held; ++attempt) {
    agent.stop();
    std::ifstream locks("/proc/locks");
    const std::string all((std::istreambuf_iterator<char>(locks)), {});
    held = std::regex_search(
        all, std::regex("[0-9]: FLOCK +ADVISORY +WRITE +" + std::to_string(agent.pid()) + " "));
    if (held) break;
    agent.signal(SIGCONT);
    if (server.report("http", R"({"kind":"state_change","type":"n"})").status == 200) ++posted;
  }
  if (held) {
    const auto waited =
        server.report("http", R"({"kind":"state_change","type":"n","event_id":"once"})");
    EXPECT_EQ(waited.status, 503) << waited.body;
    EXPECT_EQ(server.post("/api/alerts/1/acknowledge", "").status, 503);
    EXPECT_EQ(server.get("/api/autonomous/progress/http").status, 200) << "reading goes on";
    agent.signal(SIGCONT);
    EXPECT_EQ(
        server.report("http", R"({"kind":"state_change","type":"n","event_id":"once"})").status,
        200);
    ++posted;
  }
  agent.signal(SIGCONT);
  EXPECT_EQ(server.progress("http")["progress"]["stateChanges"].get<int>(), posted);
  agent.signal(SIGKILL);
  agent.wait();
  RecordProperty("held", held ? "yes" : "no");
}

TEST_F(Monitor, commands_say_the_same_of_a_server_and_of_its_file) {
  Server server(path);
  server.post("/api/autonomous/sessions", R"({"sessionId":"s","agent":"coder","task":"tidy"})");
  server.report(
      "s",
      R"([{"kind":"state_change","type":"a"},{"kind":"end","outcome":"failed","error":"no\u001b[31m"}])");
  for (const auto& words : {std::vector<std::string>{"status", "s", "--json"},
                            {"events", "s", "--json"},
                            {"events", "s"}}) {
    auto of_server = words;
    of_server.insert(of_server.begin(), program);
    auto of_file = of_server;
    of_server.insert(of_server.end(), {"--server", server.url()});
    of_file.insert(of_file.end(), {"--db", path.string()});
    const auto mask = [](std::string text) {
      return std::regex_replace(text, std::regex("Ago\":[0-9]+"), "Ago\":0");
    };
    EXPECT_EQ(mask(run(of_server).output), mask(run(of_file).output));
  }
  const auto shown = run({program, "status", "s", "--server", server.url()});
  EXPECT_EQ(shown.code, 0);
  EXPECT_NE(shown.output.find("failed"), std::string::npos);
  EXPECT_EQ(shown.output.find('\x1b'), std::string::npos) << "agents do not steer the terminal";
}

TEST_F(Monitor, exit_codes_are_as_documented) {
  Server server(path);
  const auto code = [&](std::vector<std::string> words) {
    words.insert(words.begin(), program);
    return run(words, {.environment = {"WATCHDOG_SERVER=" + server.url(),
                                       "WATCHDOG_TOKEN=" + server.secret()}})
        .code;
  };
  EXPECT_EQ(code({"--help"}), 0);
  EXPECT_EQ(code({"serve", "--help"}), 0);
  EXPECT_EQ(code({"--version"}), 0);
  EXPECT_EQ(code({"dance"}), 2);
  EXPECT_EQ(code({"serve", "--port", "many"}), 2);
  EXPECT_EQ(code({"status", "s", "--server", "http://localhost:1", "--db", "x"}), 2);
  EXPECT_EQ(code({"status", "nobody"}), 5);
  EXPECT_EQ(code({"status", "s", "--server", "http://127.0.0.1:1"}), 4);
  EXPECT_EQ(code({"sessions", "--health", "great"}), 2);
  EXPECT_EQ(code({"cancel", "nobody"}), 5);
  server.report("s", R"({"kind":"end"})");
  EXPECT_EQ(code({"cancel", "s"}), 3);
  EXPECT_EQ(code({"replay", dir / "none.jsonl"}), 5);
}

TEST_F(Monitor, cancel_reaches_an_agent_that_shares_the_file) {
  Server server(path);
  Process agent({std::string(WATCHDOG_DEMO_AGENT), "thinker", "--db", path.string()});
  while (server.get("/api/autonomous/progress/thinker").status != 200) std::this_thread::yield();
  std::vector<std::string> cancel{program, "cancel", "thinker", "--reason", "enough"};
  const auto where = server.flags();
  cancel.insert(cancel.end(), where.begin(), where.end());
  EXPECT_EQ(run(cancel).code, 0);
  EXPECT_EQ(agent.wait(), 0);
  json outcome;
  while (outcome.is_null()) outcome = server.progress("thinker")["outcome"];
  EXPECT_EQ(outcome["kind"], "cancelled");
  EXPECT_EQ(outcome["reason"], "cancelled");
  EXPECT_EQ(outcome["subject"], "user");
}

TEST_F(Monitor, abort_of_a_turn_reaches_an_agent_that_shares_the_file) {
  Server server(path);
  ProgressTracker tracker({.session = "s", .spec = {.agent = "coder"}, .database = path});
  std::promise<CancelRequest> heard;
  tracker.on_abort([&](const CancelRequest& abort) { heard.set_value(abort); });
  tracker.report(test::turn(turn_reports::turn_start, "t"));
  tracker.report(test::call_in("t", "c"));
  ASSERT_TRUE(tracker.flush().ok());
  json turns;
  while (turns.empty() || turns[0]["currentTool"].is_null()) {
    turns = json::parse(server.get("/api/turns/active").body)["turns"];
  }
  EXPECT_EQ(turns[0]["turnId"], "t");
  EXPECT_EQ(turns[0]["nousId"], "coder");
  EXPECT_EQ(turns[0]["currentTool"], "shell");
  EXPECT_EQ(json::parse(server.post("/api/turns/t/abort", R"({"reason":"enough"})").body),
            json({{"ok", true}, {"turnId", "t"}}));
  auto reported = heard.get_future();
  ASSERT_EQ(reported.wait_for(std::chrono::seconds(60)), std::future_status::ready);
  const auto abort = reported.get();
  EXPECT_EQ(abort.turn + abort.call + ": " + abort.reason, "t: enough");
  EXPECT_EQ(tracker.heartbeat({}), Advice::go_on);
  tracker.report(test::turn(turn_reports::turn_end, "t", {.reason = "aborted"}));
  ASSERT_TRUE(tracker.flush().ok());
  while (server.post("/api/turns/t/abort", "{}").status != 404) std::this_thread::yield();
  tracker.on_abort(nullptr);
}

TEST_F(Monitor, turns_are_listed_and_stopped_alike_by_server_and_by_file) {
  {
    Server server(path);
    server.report("s", R"([{"kind":"turn","name":"turn_start","call_id":"a/ b"},
      {"kind":"turn","name":"turn_start","call_id":"child","parent_turn_id":"a/ b","depth":1},
      {"kind":"tool_call","name":"shell","call_id":"c 1","turn_id":"child"}])");
    server.report("t", R"({"kind":"state_change","type":"x"})");
    const auto ask = [&](std::vector<std::string> words, bool by_file) {
      words.insert(words.begin(), program);
      const auto where = by_file ? std::vector<std::string>{"--db", path.string()} : server.flags();
      words.insert(words.end(), where.begin(), where.end());
      return run(words);
    };
    const auto lines = [&](bool by_file) {
      json all = json::array();
      std::istringstream text(ask({"turns", "--json"}, by_file).output);
      for (std::string line; std::getline(text, line);) {
        all.push_back(json::parse(line));
        for (const char* time : {"elapsedMs", "currentToolElapsedMs"}) all.back().erase(time);
        for (auto& tool : all.back()["tools"]) tool.erase("elapsedMs");
      }
      return all;
    };
    EXPECT_EQ(lines(true), lines(false));
    EXPECT_EQ(lines(true).size(), 2U);
    EXPECT_EQ(ask({"turns"}, false).output.substr(0, 4), "TURN");
    // `turns` and `status` show the call id that `cancel --call` needs.
    EXPECT_EQ(lines(false)[1]["currentToolId"], "c 1");
    EXPECT_EQ(lines(false)[1]["tools"], json::parse(R"([{"name":"shell","callId":"c 1"}])"));
    for (const bool by_file : {false, true}) {
      EXPECT_NE(ask({"turns"}, by_file).output.find("(call c 1)"), std::string::npos);
      EXPECT_NE(ask({"status", "s"}, by_file).output.find("(call c 1)"), std::string::npos);
    }
    for (const bool by_file : {false, true}) {
      EXPECT_EQ(ask({"cancel", "--turn", "child", "--call", "none"}, by_file).code, 5);
      EXPECT_EQ(ask({"cancel", "--turn", "none"}, by_file).code, 5);
      EXPECT_EQ(ask({"cancel"}, by_file).code, 2);
      EXPECT_EQ(ask({"cancel", "s", "--turn", "child"}, by_file).code, 2);
      EXPECT_EQ(ask({"cancel", "s", "--call", "c 1"}, by_file).code, 2);
      EXPECT_EQ(ask({"cancel", "--turn", "child", "--call", "c 1"}, by_file).code, 0);
    }
    EXPECT_EQ(ask({"cancel", "--turn", "a/ b", "--reason", "first"}, true).code, 0);
    while (!json::parse(server.get("/api/turns/active").body)["turns"][0]["aborting"]) {
      std::this_thread::yield();
    }
    const auto reported =
        json::parse(server.report("s", R"({"kind":"message"})").body)["directive"];
    EXPECT_EQ(reported["cancel"], json());
    ASSERT_EQ(reported["aborts"].size(), 2U);
    EXPECT_EQ(reported["aborts"][0]["toolId"], "c 1");
    EXPECT_EQ(reported["aborts"][1]["reason"], "first");
  }
  EXPECT_EQ(run({program, "turns", "--server", "http://127.0.0.1:1"}).code, 4);
  EXPECT_EQ(run({program, "cancel", "--turn", "t", "--server", "http://127.0.0.1:1"}).code, 4);
}

TEST_F(Monitor, cancel_of_a_session_that_nobody_serves_ends_it) {
  Server server(path);
  server.post("/api/autonomous/sessions", R"({"sessionId":"s"})");
  EXPECT_EQ(json::parse(server.post("/api/autonomous/sessions/s/cancel", "{}").body)["ended"],
            true);
  EXPECT_EQ(server.progress("s")["lifecycle"], "cancelled");
}

TEST_F(Monitor, nothing_that_is_stored_can_make_the_file_unreadable) {
  {
    Server server(path);
    server.post("/api/autonomous/sessions", R"({"sessionId":"s"})");
    const json cancel{{"by", std::string(4'000, 'b')}, {"reason", std::string(4'000, 'r')}};
    EXPECT_EQ(server.post("/api/autonomous/sessions/s/cancel", cancel.dump()).status, 200);
    EXPECT_EQ(server.progress("s")["lifecycle"], "cancelled");
    server.report("t", R"({"kind":"tool_call","name":"f","args":"\ufeff{}"})");
    EXPECT_TRUE(json::accept(server.get("/api/autonomous/sessions/t/events").body));
    server.process().signal(SIGTERM);
    EXPECT_EQ(server.process().wait(), 0);
  }
  Server again(path);
  EXPECT_EQ(again.get("/readyz").status, 200);
}

TEST_F(Monitor, lists_sessions_by_the_lifecycle_they_are_in) {
  Server server(path);
  server.report("s", R"([{"kind":"state_change","type":"a"},{"kind":"idle"}])");
  const auto count = [&](const std::string& lifecycle) {
    return json::parse(
               server.get("/api/autonomous/progress?lifecycle=" + lifecycle).body)["sessions"]
        .size();
  };
  EXPECT_EQ(count("idle"), 1U);
  EXPECT_EQ(count("running"), 0U);
}

TEST_F(Monitor, policy_changes_while_a_session_runs) {
  Server server(path);
  server.report(
      "s",
      R"([{"kind":"state_change","type":"a"},{"kind":"heartbeat","source":"loop"},{"kind":"heartbeat","source":"loop"}])");
  EXPECT_EQ(server.progress("s")["health"], "progressing");
  EXPECT_EQ(
      server.ask(Method::patch, "/api/autonomous/sessions/s", R"({"policy":{"stuckThreshold":2}})")
          .status,
      200);
  EXPECT_EQ(server.progress("s")["health"], "stuck");
  EXPECT_EQ(
      server.ask(Method::patch, "/api/autonomous/sessions/s", R"({"policy":{"stuckThreshold":1}})")
          .status,
      422);
  EXPECT_EQ(
      server
          .ask(Method::patch, "/api/autonomous/sessions/none", R"({"policy":{"stuckThreshold":2}})")
          .status,
      404);
}

TEST_F(Monitor, page_shows_sessions_and_escapes_what_agents_say) {
  Server server(path);
  server.post("/api/autonomous/sessions",
              R"({"sessionId":"s","task":"<script>alert(1)</script>"})");
  server.report("s", R"([{"kind":"message","text":"<script>alert(2)</script>"}])");
  for (const char* place : {"/", "/sessions/s"}) {
    const auto page = server.get(place);
    EXPECT_EQ(page.status, 200);
    EXPECT_NE(page.body.find("&lt;script&gt;alert(1)"), std::string::npos) << page.body;
    EXPECT_EQ(page.body.find("<script>"), std::string::npos);
  }
  EXPECT_EQ(server.get("/sessions/none").status, 404);
}

TEST_F(Monitor, page_loads_its_files_once_and_keeps_them) {
  Server server(path);
  const auto page = server.get("/").body;
  const auto begin = page.find("/assets/");
  const auto folder = page.substr(begin, page.find('/', begin + 8) - begin + 1);
  for (const char* name : {"app.js", "style.css", "icon.svg"}) {
    const auto file = server.get(folder + name);
    EXPECT_EQ(file.status, 200) << name;
    EXPECT_FALSE(file.body.empty()) << name;
  }
  for (const auto& wrong :
       {folder + "none.js", folder + "..%2fapp.js", std::string("/assets/0/app.js")})
    EXPECT_EQ(server.get(wrong).status, 404) << wrong;
}

TEST_F(Monitor, demo_shows_its_agents_as_they_are) {
  Process demo({program, "demo", "--port", "0", "--token-file", dir / "token"});
  std::map<std::string, std::string> expected{
      {"example", "progressing"}, {"quick", "progressing"}, {"thinker", "progressing"},
      {"spinner", "stuck"},       {"looper", "looping"},    {"frozen", "suspect"},
      {"approval", "blocked"},    {"doomed", "dead"},       {"unruly", "progressing"},
      {"stranger", "progressing"}};
  while (!expected.empty()) {
    const auto line = demo.line();
    ASSERT_FALSE(line.empty()) << "it ended";
    for (const auto& [session, health] : std::map(expected)) {
      if (std::regex_search(line, std::regex("^" + session + " +" + health + ":")))
        expected.erase(session);
    }
  }
  EXPECT_TRUE(expected.empty()) << expected.begin()->first << " never became "
                                << expected.begin()->second;
  demo.signal(SIGINT);
  EXPECT_EQ(demo.wait(), 0);
}

TEST_F(Monitor, replays_recorded_runs_and_twice_the_same) {
  auto traces = test::some_recorded_runs();
  for (const auto& entry : std::filesystem::directory_iterator(std::filesystem::path(PROJECT_ROOT) /
                                                               "tests/data/traces"))
    traces.push_back(entry.path());
  std::sort(traces.begin(), traces.end());
  std::vector<std::string> words{program, "replay", "--json"};
  words.insert(words.end(), traces.begin(), traces.end());
  const auto first = run(words);
  EXPECT_EQ(first.code, 0) << first.output.substr(0, 2'000);
  EXPECT_EQ(std::count(first.output.begin(), first.output.end(), '\n'),
            static_cast<std::ptrdiff_t>(traces.size()));
  // In a file, in one run after another, the conclusions are the same.
  words.insert(words.begin() + 2, {"--db", path.string()});
  EXPECT_EQ(run(words).output, first.output);
  const auto again = run(words);
  EXPECT_EQ(again.code, 1);
  EXPECT_NE(again.output.find("in the database already"), std::string::npos);
}

TEST_F(Monitor, replay_says_where_it_noticed) {
  const auto trace = std::filesystem::path(PROJECT_ROOT) / "tests/data/traces/spinning.jsonl";
  const auto summary = json::parse(run({program, "replay", "--json", trace}).output);
  EXPECT_EQ(summary["calls"], 2);
  EXPECT_EQ(summary["outcome"], "unknown");
  EXPECT_EQ(summary["stuck"], (json{{"seq", 9}, {"call", 2}, {"pattern", "F1"}}));
  const auto early =
      json::parse(run({program, "replay", "--json", "--first-calls", "1", trace}).output);
  EXPECT_EQ(early["calls"], 1);
  EXPECT_EQ(early["events"], 2);
  EXPECT_EQ(early["stuck"], nullptr);
  EXPECT_EQ(early["outcome"], nullptr);
}

}  // namespace
}  // namespace watchdog::monitor
