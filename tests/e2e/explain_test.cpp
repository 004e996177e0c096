// How a health came about, and which session explains another's: the real binary and files.
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

#include "store/store.h"
#include "support/process.h"
#include "support/reports.h"
#include "support/server.h"
#include "support/temp_dir.h"
#include "watchdog/session.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;
using test::Process;
using test::program;
using test::run;
using test::Server;

/// Loop heartbeats, one behind the other.
std::string beats(int count) {
  json events = json::array();
  for (int i = 1; i <= count; ++i)
    events.push_back({{"kind", "heartbeat"}, {"source", "loop"}, {"iteration", i}});
  return events.dump();
}

const std::string change = R"({"kind":"state_change","type":"step","data":{"n":1}})";
const std::string waiting = R"({"kind":"wait","waiting_for":"dependency"})";
const std::string calling = R"({"kind":"tool_call","name":"task","call_id":"c"})";

class Explain : public testing::Test {
 protected:
  test::TempDir dir;
  std::filesystem::path path = dir / "w.db";

  /// The output of `explain` for the file.
  json reported(std::vector<std::string> more = {}) {
    std::vector<std::string> words{program, "explain", "s", "--json", "--db", path};
    words.insert(words.end(), more.begin(), more.end());
    const auto ran = run(words);
    EXPECT_EQ(ran.code, 0) << ran.output;
    return json::parse(ran.output, nullptr, false);
  }
  static std::vector<std::string> healths(const json& reported) {
    std::vector<std::string> healths;
    for (const auto& moment : reported["timeline"]) healths.push_back(moment["health"]);
    return healths;
  }
  /// A session that never beats and has said one thing.
  static void start(Server& server, const std::string& session, const std::string& parent,
                    const std::string& events) {
    server.post("/api/autonomous/sessions",
                json{{"sessionId", session}, {"parentSessionId", parent}}.dump());
    EXPECT_EQ(server.report(session, events).status, 200);
  }
};

TEST_F(Explain, reports_each_change_with_what_proves_it) {
  Server server(path);
  server.post("/api/autonomous/sessions", R"({"sessionId":"s","agent":"coder","task":"tidy"})");
  server.report("s", change);
  server.report("s", beats(5));
  const auto of_server = run({program, "explain", "s", "--server", server.url()});
  EXPECT_EQ(of_server.code, 0) << of_server.output;
  for (const char* part :
       {"s  stuck  5 iterations without a state change", "coder", "tidy", "unknown → progressing",
        "progressing → stuck  F1  5 iterations",
        "event 1  state_change step: {\"n\":1}  (the newest", "caused by event 2",
        "event 2  heartbeat: loop, iteration 1 to 5, 5 times  (first iteration without",
        "running          no tool call"})
    EXPECT_NE(of_server.output.find(part), std::string::npos) << part << "\n" << of_server.output;
  EXPECT_EQ(run({program, "explain", "s", "--db", path}).output, of_server.output);

  const auto whole = reported();
  EXPECT_EQ(whole["session"], "s");
  EXPECT_EQ(whole["progress"]["health"], "stuck");
  EXPECT_EQ(whole["leftOut"], 0);
  EXPECT_EQ(healths(whole), (std::vector<std::string>{"progressing", "stuck"}));
  const auto& last = whole["timeline"].back();
  EXPECT_EQ(last["cause"], "event");
  EXPECT_EQ(last["pattern"], "F1");
  ASSERT_EQ(last["evidence"].size(), 2U);
  EXPECT_EQ(last["evidence"][0]["event"]["kind"], "heartbeat");
  EXPECT_EQ(last["evidence"][1]["event"]["type"], "step");
  EXPECT_EQ(last["evidence"][1]["note"], "the newest state change");
}

TEST_F(Explain, reports_what_time_alone_concluded) {
  Server server(path);
  server.post("/api/autonomous/sessions",
              R"({"sessionId":"s","policy":{"heartbeatInterval":100}})");
  server.report(
      "s", R"([{"kind":"heartbeat","source":"sidecar"},{"kind":"heartbeat","source":"sidecar"}])");
  while (server.progress("s")["health"] != "silent") std::this_thread::yield();
  // The monitor's answers come from memory: they may be ahead of the file.
  json whole;
  do {
    whole = reported();
  } while (healths(whole).back() != "silent");
  EXPECT_EQ(whole["timeline"].back()["cause"], "expiry");
  EXPECT_EQ(whole["timeline"].back()["quietMs"], 300);
  EXPECT_NE(
      run({program, "explain", "s", "--db", path}).output.find("after 0.3 s without an event"),
      std::string::npos);
}

TEST_F(Explain, reports_what_was_known_when_trouble_began) {
  Server server(path);
  Process agent({"/bin/sh", "-c", "sleep 1000 & echo $!; wait"});
  struct KilledLater {
    pid_t pid;
    ~KilledLater() { kill(pid, SIGKILL); }
  } const sleeper{std::stoi(agent.line())};
  const auto here = this_process();
  const json session{{"sessionId", "s"},       {"policy", {{"heartbeatInterval", 100}}},
                     {"pid", agent.pid()},     {"startTicks", 0},
                     {"bootId", here.boot_id}, {"host", here.host}};
  EXPECT_EQ(server.post("/api/autonomous/sessions", session.dump()).status, 201);
  const std::string alive = R"({"kind":"heartbeat","source":"sidecar"})";
  server.report("s", "[" + change + "," + calling + "," + alive + "," + alive + "]");
  json last;
  do {
    last = reported()["timeline"].back();
  } while (last["health"] != "silent" || last["situation"].is_null());
  const auto& situation = last["situation"];
  EXPECT_EQ(situation["inFlight"][0]["callId"], "c");
  EXPECT_EQ(situation["lastEvents"].size(), 4U);
  EXPECT_EQ(situation["process"]["pid"], agent.pid());
  const auto& child = situation["process"]["children"][0];
  EXPECT_EQ(child["command"], "sleep");
  EXPECT_EQ(child["pid"], sleeper.pid);
  const auto text = run({program, "explain", "s", "--server", server.url()}).output;
  for (const auto& part :
       {std::string("    running: task for "),
        "    process " + std::to_string(agent.pid()) + " was sleeping",
        "; its child sleep " + child["pid"].dump() + " sleeping",
        std::string("    silent after 0.3 s without a heartbeat\n    pace of task: "),
        std::string("; slow after ")})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  // Elapsed times grow between the two.
  const auto timeless = [](const std::string& said) {
    return std::regex_replace(said, std::regex("[0-9.]+ s\\b"), "T");
  };
  EXPECT_EQ(timeless(run({program, "explain", "s", "--db", path}).output), timeless(text));
}

TEST_F(Explain, long_histories_are_cut_at_their_beginning) {
  Server server(path);
  for (int i = 0; i < 30; ++i) server.report("s", i % 2 == 0 ? change : waiting);
  server.ask(Method::patch, "/api/autonomous/sessions/s", R"({"policy":{"stuckThreshold":2}})");
  server.report("s", change);
  EXPECT_EQ(reported({"--all"})["timeline"].size(), 31U);
  EXPECT_EQ(reported()["timeline"].size(), 31U);
  const auto newest = reported({"--limit", "3"});
  EXPECT_EQ(newest["timeline"].size(), 3U);
  EXPECT_EQ(newest["leftOut"], 28);
  EXPECT_EQ(newest["timeline"].back(), reported()["timeline"].back());
  const auto text = run({program, "explain", "s", "--limit", "1", "--db", path}).output;
  EXPECT_NE(text.find("30 earlier changes are not shown"), std::string::npos) << text;
  EXPECT_NE(text.find("thresholds changed: "), std::string::npos) << text;
  // Nothing is lost where pages end.
  json paged = json::array();
  for (json after = 0; !after.is_null();) {
    const auto page = json::parse(
        server.get("/api/autonomous/sessions/s/transitions?limit=7&after=" + after.dump()).body);
    for (const auto& item : page["transitions"]) paged.push_back(item["id"]);
    after = page["next"];
  }
  EXPECT_EQ(paged.size(), 31U);
}

TEST_F(Explain, needs_no_monitor_to_have_been_there) {
  {
    auto store = Store::open({.database = path});
    ASSERT_TRUE(store.ok());
    ASSERT_TRUE(test::say(
        *store, "s", {test::change(), {.kind = ReportKind::wait, .name = "ann"}, test::change()}));
    for (int i = 0; i < 5; ++i) ASSERT_TRUE(test::say(*store, "s", {test::beat()}));
  }
  const auto alone = reported();
  const std::vector<std::string> expected{"progressing", "blocked", "progressing", "stuck"};
  EXPECT_EQ(healths(alone), expected);
  EXPECT_EQ(alone["timeline"].back()["situation"], nullptr) << "nobody watched";
  EXPECT_EQ(reported({"--limit", "2"})["leftOut"], 2);
  {
    Server server(path);
    server.process().signal(SIGTERM);
    EXPECT_EQ(server.process().wait(), 0);
  }
  auto written = reported()["timeline"];
  EXPECT_TRUE(written.back()["situation"].is_object());
  written.back()["situation"] = nullptr;
  EXPECT_EQ(written, alone["timeline"]) << "what it wrote down is what was told before";
  // A snapshot that cannot be read makes nothing come twice.
  EXPECT_EQ(run({"/usr/bin/sqlite3", path, "UPDATE snapshots SET format = 0"}).code, 0);
  EXPECT_EQ(healths(reported()), expected);
}

TEST_F(Explain, says_which_events_are_not_kept_any_more) {
  {
    Server server(path);
    server.report("s", change);
    server.report("s", beats(5));
    server.process().signal(SIGTERM);
    EXPECT_EQ(server.process().wait(), 0);
  }
  EXPECT_EQ(run({"/usr/bin/sqlite3", path, "DELETE FROM events WHERE seq <= 1"}).code, 0);
  const auto whole = reported();
  EXPECT_EQ(whole["timeline"][0]["cause"], nullptr);
  EXPECT_EQ(whole["timeline"][1]["cause"], "event");
  EXPECT_EQ(whole["timeline"][1]["evidence"][0]["event"]["kind"], "heartbeat");
  EXPECT_EQ(whole["timeline"][1]["evidence"][1]["event"], nullptr);
  const auto text = run({program, "explain", "s", "--db", path}).output;
  EXPECT_NE(text.find("event 1  no longer kept  (the newest state change)"), std::string::npos)
      << text;
}

TEST_F(Explain, text_from_agents_does_not_control_the_terminal) {
  Server server(path);
  server.report("s", R"({"kind":"state_change","type":"a\u001b[2J","data":"\u001b]0;x\u0007"})");
  server.report("s", R"({"kind":"wait","waiting_for":"\u001b[31m"})");
  const auto text = run({program, "explain", "s", "--server", server.url()}).output;
  EXPECT_EQ(text.find_first_of("\x1b\x07"), std::string::npos) << text;
  EXPECT_NE(text.find("waits for        <U+001B>[31m"), std::string::npos) << text;
}

TEST_F(Explain, exit_codes_are_those_of_the_others) {
  Server server(path);
  const auto code = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {program, "explain"});
    return run(words, {.environment = {"WATCHDOG_SERVER=" + server.url()}}).code;
  };
  EXPECT_EQ(code({}), 2);
  EXPECT_EQ(code({"s", "--all", "--limit", "3"}), 2);
  EXPECT_EQ(code({"s", "--limit", "0"}), 2);
  EXPECT_EQ(code({"nobody"}), 5);
  EXPECT_EQ(code({"s", "--db", dir / "none.db"}), 5);
  EXPECT_EQ(code({"s", "--server", "http://127.0.0.1:1"}), 4);
}

TEST_F(Explain, stuck_child_explains_a_waiting_parent_until_it_gets_on) {
  Server server(path);
  start(server, "parent", "", change);
  start(server, "child", "parent", change);
  EXPECT_EQ(server.progress("parent")["explainedBy"], nullptr);
  server.report("child", beats(5));
  EXPECT_EQ(server.progress("parent")["explainedBy"], nullptr) << "it does not wait";
  server.report("parent", waiting);
  const auto document = server.progress("parent");
  EXPECT_EQ(document["health"], "blocked") << "its own health is its own";
  EXPECT_EQ(document["waitingFor"], "dependency");
  const json expected{
      {"sessionId", "child"}, {"health", "stuck"}, {"reason", server.progress("child")["reason"]}};
  EXPECT_EQ(document["explainedBy"], expected);
  const auto list = json::parse(server.get("/api/autonomous/progress?q=parent").body);
  EXPECT_EQ(list["sessions"][0]["explainedBy"], expected);
  const std::string words = "because its child child is stuck: 5 iterations without a state change";
  for (const char* page : {"/", "/sessions/parent"})
    EXPECT_NE(server.get(page).body.find("is stuck: 5 iterations without a state change"),
              std::string::npos);
  for (const char* command : {"status", "explain"}) {
    const auto of_server = run({program, command, "parent", "--server", server.url()}).output;
    EXPECT_NE(of_server.find(words), std::string::npos) << of_server;
    const auto of_file = run({program, command, "parent", "--db", path}).output;
    EXPECT_NE(of_file.find(words), std::string::npos) << of_file;
  }
  server.report("child", change);
  EXPECT_EQ(server.progress("parent")["explainedBy"], nullptr);
}

TEST_F(Explain, culprit_may_be_a_grandchild_whose_parent_is_fine) {
  Server server(path);
  start(server, "parent", "", calling);
  start(server, "child", "parent", "[" + change + "," + calling + "]");
  start(server, "grandchild", "child", beats(5));
  for (const char* session : {"parent", "child"})
    EXPECT_EQ(server.progress(session)["explainedBy"]["sessionId"], "grandchild") << session;
  EXPECT_NE(server.progress("child")["health"], "stuck") << "only its call waits for one that is";
  EXPECT_EQ(server.progress("grandchild")["explainedBy"], nullptr);
  server.report("child", R"({"kind":"tool_result","name":"task","call_id":"c","text":"ok"})");
  EXPECT_EQ(server.progress("parent")["explainedBy"], nullptr) << "its child waits no more";
}

TEST_F(Explain, of_several_the_worst_explains_and_none_that_has_ended) {
  Server server(path);
  start(server, "parent", "", waiting);
  start(server, "waits", "parent", waiting);
  EXPECT_EQ(server.progress("parent")["explainedBy"]["health"], "blocked");
  start(server, "spins", "parent", beats(5));
  start(server, "fine", "parent", change);
  EXPECT_EQ(server.progress("parent")["explainedBy"]["sessionId"], "spins");
  server.report("spins", R"({"kind":"end","outcome":"failed"})");
  EXPECT_EQ(server.progress("parent")["explainedBy"]["sessionId"], "waits");
  server.report("waits", R"({"kind":"end"})");
  EXPECT_EQ(server.progress("parent")["explainedBy"], nullptr);
  server.report("waits", "[{\"kind\":\"start\"}," + waiting + "]");
  EXPECT_EQ(server.progress("parent")["explainedBy"]["sessionId"], "waits") << "its next attempt";
  server.report("parent", R"({"kind":"end"})");
  EXPECT_EQ(server.progress("parent")["explainedBy"], nullptr);
}

TEST_F(Explain, parents_in_a_circle_are_followed_once_and_long_lines_for_five_steps) {
  Server server(path);
  start(server, "a", "b", waiting);
  start(server, "b", "a", waiting);
  start(server, "own", "own", waiting);
  EXPECT_EQ(server.progress("a")["explainedBy"]["sessionId"], "b");
  EXPECT_EQ(server.progress("b")["explainedBy"]["sessionId"], "a");
  EXPECT_EQ(server.progress("own")["explainedBy"], nullptr);
  start(server, "line0", "", waiting);
  for (int i = 1; i <= 6; ++i)
    start(server, "line" + std::to_string(i), "line" + std::to_string(i - 1), waiting);
  server.report("line6", beats(5));
  EXPECT_EQ(server.progress("line0")["explainedBy"]["sessionId"], "line5");
  EXPECT_EQ(server.progress("line1")["explainedBy"]["sessionId"], "line6");
}

TEST_F(Explain, culprit_is_found_among_many_and_without_a_monitor) {
  {
    auto store = Store::open({.database = path});
    ASSERT_TRUE(store.ok());
    ASSERT_TRUE(test::say(*store, "s", {{.kind = ReportKind::wait, .name = "all"}}));
    const auto child = [&](int i, std::vector<Report> reports) {
      ASSERT_TRUE(test::say(*store, "c" + std::to_string(i), std::move(reports), Creation::allow,
                            {.parent = "s"}));
    };
    child(0, {test::beat(), test::beat(), test::beat(), test::beat(), test::beat()});
    for (int i = 1; i < 90; ++i) child(i, {test::change()});
  }
  EXPECT_EQ(reported()["progress"]["explainedBy"]["sessionId"], "c0");
  Server server(path);
  for (int i = 90; i < 200; ++i) start(server, "c" + std::to_string(i), "s", change);
  EXPECT_EQ(server.progress("s")["explainedBy"]["sessionId"], "c0");
  while (reported()["progress"]["explainedBy"].is_null()) std::this_thread::yield();
  EXPECT_EQ(reported()["progress"]["explainedBy"]["sessionId"], "c0");
}

}  // namespace
}  // namespace watchdog::monitor
