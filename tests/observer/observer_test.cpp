#include "observer/observer.h"

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "judge/attention.h"
#include "store/event_reader.h"
#include "store/retention.h"
#include "store/transition_reader.h"
#include "support/manual_clock.h"
#include "support/reports.h"
#include "support/scenario.h"
#include "support/spawned.h"
#include "support/temp_dir.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;
using test::beat;
using test::change;
using test::ending;
using test::ManualClock;
using test::say;
using test::TempDir;

class Watching : public testing::Test {
 protected:
  TempDir dir;
  ManualClock clock;
  std::filesystem::path path = dir / "w.db";

  Store open() {
    auto store = Store::open({.database = path, .clock = &clock});
    EXPECT_TRUE(store.ok()) << (store ? "" : store.error().message);
    return std::move(*store);
  }
  static std::unique_ptr<Observer> watch(Store& store) {
    auto observer = Observer::start(store, {});
    EXPECT_TRUE(observer.ok()) << (observer ? "" : observer.error().message);
    return std::move(*observer);
  }
  /// Moves time second by second, looking each time.
  void pass(Observer& observer, Millis time) {
    for (; time > 0ms; time -= 1s) {
      clock.advance(1s);
      ASSERT_TRUE(observer.look().ok());
    }
  }
  static std::string path_of(Store& store, const std::string& session) {
    std::string text;
    const auto row = store.reader().session(session);
    if (!row) return "none";
    const auto transitions = TransitionReader(store.reader()).of(row->key, 0, 1'000);
    for (const auto& change : *transitions) {
      if (!text.empty()) text += ' ';
      text += name_of(change.transition.health.kind);
    }
    return text;
  }
};

TEST_F(Watching, writes_each_change_of_health_once) {
  auto store = open();
  auto observer = watch(store);
  (void)say(store, "s", {change(), beat(), beat(), beat(), beat()});
  ASSERT_TRUE(observer->look().ok());
  ASSERT_TRUE(observer->look().ok());
  EXPECT_EQ(path_of(store, "s"), "progressing");
  (void)say(store, "s", {beat()});
  ASSERT_TRUE(observer->look().ok());
  EXPECT_EQ(path_of(store, "s"), "progressing stuck");
  EXPECT_EQ(store.reader().session("s")->health, HealthKind::stuck);
  EXPECT_EQ(observer->find("s")->judged.health.kind, HealthKind::stuck);
  (void)say(store, "s", {change(), ending()});
  ASSERT_TRUE(observer->look().ok());
  EXPECT_EQ(path_of(store, "s"), "progressing stuck progressing");
  EXPECT_EQ(observer->watched(), 0U) << "ended sessions leave memory";
  EXPECT_EQ(store.reader().session("s")->lifecycle, Lifecycle::completed);
}

TEST_F(Watching, hears_what_other_writers_append) {
  auto store = open();
  auto observer = watch(store);
  auto agent = open();
  (void)say(agent, "s", {change()});
  ASSERT_TRUE(observer->look().ok());
  EXPECT_EQ(path_of(store, "s"), "progressing");
}

TEST_F(Watching, reports_when_to_look_again_and_finds_silence_then) {
  auto store = open();
  auto observer = watch(store);
  (void)say(store, "s", {change(), beat(Source::sidecar)});
  clock.advance(4s);
  (void)say(store, "s", {beat(Source::sidecar)});
  const auto due = observer->look();
  ASSERT_TRUE(due.ok());
  EXPECT_EQ(*due, store.now() + 30s);
  pass(*observer, 29s);
  EXPECT_EQ(path_of(store, "s"), "progressing");
  pass(*observer, 1s);
  EXPECT_EQ(path_of(store, "s"), "progressing silent");
  (void)say(store, "s", {beat(Source::sidecar)});
  ASSERT_TRUE(observer->look().ok());
  EXPECT_EQ(path_of(store, "s"), "progressing silent progressing");
}

TEST_F(Watching, process_that_died_is_found_dead) {
  auto store = open();
  auto observer = watch(store);
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  Report start{.kind = ReportKind::start};
  auto facts = this_process();
  facts.pid = child;
  facts.start_ticks = 0;
  start.detail = facts;
  (void)say(store, "s", {start, change(), beat(), beat(Source::sidecar)});
  clock.advance(1s);
  (void)say(store, "s", {beat(Source::sidecar)});
  pass(*observer, 120s);
  EXPECT_EQ(path_of(store, "s"), "progressing silent") << "it still runs";
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  pass(*observer, 15s);
  EXPECT_EQ(path_of(store, "s"), "progressing silent dead");
}

TEST_F(Watching, a_found_process_that_left_after_its_turn_did_not_die) {
  struct Row {
    Report last;
    std::optional<OutcomeKind> outcome;  // nothing: it died
  };
  const auto wait = [](std::string_view what) {
    return Report{.kind = ReportKind::wait, .name = std::string(what), .content = "HTTP 429: no"};
  };
  const Row rows[] = {
      {{.kind = ReportKind::idle}, OutcomeKind::completed},
      {{.kind = ReportKind::idle, .name = "interrupted"}, OutcomeKind::cancelled},
      {{.kind = ReportKind::idle, .name = "error", .content = "HTTP 400"}, OutcomeKind::failed},
      {wait("login"), OutcomeKind::failed},
      {wait("quota"), OutcomeKind::failed},
      {wait("retry"), OutcomeKind::failed},
      {wait(backend), OutcomeKind::failed},
      {wait("approval"), std::nullopt},
      {{.kind = ReportKind::tool_call, .name = "shell"}, std::nullopt},
  };
  auto store = open();
  auto observer = watch(store);
  for (int at = 0; const auto& row : rows) {
    const auto session = "s" + std::to_string(at++);
    const pid_t child = fork();
    if (child == 0) {
      pause();
      _exit(0);
    }
    Report start{.kind = ReportKind::start, .name = std::string(found_process)};
    auto facts = this_process();
    facts.pid = child;
    facts.start_ticks = 0;
    facts.known_by = KnownBy::connection;
    start.detail = facts;
    (void)say(store, session, {{.kind = ReportKind::user_input}, start, row.last});
    pass(*observer, 5s);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    pass(*observer, 5s);
    const auto stored = store.reader().session(session);
    ASSERT_TRUE(stored.ok());
    const auto end = stored->lifecycle;
    if (row.outcome) {
      EXPECT_EQ(name_of(end), name_of(lifecycle_of(*row.outcome))) << session;
    } else {
      EXPECT_FALSE(is_end(end)) << session;
      EXPECT_TRUE(path_of(store, session).ends_with("dead")) << session;
    }
  }
}

TEST_F(Watching, is_done_by_one_process_a_file) {
  auto store = open();
  auto observer = watch(store);
  auto second = open();
  const auto refused = Observer::start(second, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::conflict);
  EXPECT_NE(refused.error().message.find(std::to_string(getpid())), std::string::npos);
  observer.reset();
  EXPECT_TRUE(Observer::start(second, {}).ok());
}

TEST_F(Watching, absence_of_the_observer_is_an_event_and_accuses_nobody) {
  auto store = open();
  auto observer = watch(store);
  (void)say(store, "s", {change(), beat(Source::sidecar)});
  clock.advance(1s);
  (void)say(store, "s", {beat(Source::sidecar)});
  ASSERT_TRUE(observer->look().ok());
  clock.advance(600s);  // suspended
  ASSERT_TRUE(observer->look().ok());
  EXPECT_EQ(path_of(store, "s"), "progressing");
  pass(*observer, 28s);
  EXPECT_EQ(path_of(store, "s"), "progressing") << "it waits as silence takes anyhow";
  pass(*observer, 3s);
  EXPECT_EQ(path_of(store, "s"), "progressing silent");
}

TEST_F(Watching, restart_concludes_the_same_and_repeats_nothing) {
  std::mt19937 random(test::random_seed());
  for (int round = 0; round < test::repetitions(100); ++round) {
    path = dir / ("w" + std::to_string(round) + ".db");
    std::string live;
    {
      auto store = open();
      auto observer = watch(store);
      for (int step = 0; step < 120; ++step) {
        const auto kind = random() % 12;
        if (kind < 5)
          (void)say(store, "s", {beat()});
        else if (kind < 8)
          (void)say(store, "s", {beat(Source::sidecar)});
        else if (kind == 8)
          (void)say(store, "s", {change()});
        else if (kind == 9)
          (void)say(store, "s", {{.kind = ReportKind::wait, .name = "approval"}});
        else
          clock.advance(Millis{random() % 20'000});
        if (random() % 3 == 0) pass(*observer, Millis{1'000 * (random() % 40)});
        if (random() % 10 == 0) {  // killed: nothing is written on the way out
          observer.reset();
          observer = watch(store);
        }
      }
      ASSERT_TRUE(observer->look().ok());
      live = path_of(store, "s");
    }
    // Folding all events from the beginning says the same.
    auto store = open();
    auto events = EventReader(store.reader()).after(0, 100'000);
    auto row = store.reader().session("s");
    if (!row) continue;
    Case judged;
    judged.session = row->key;
    std::vector<Transition> changes;
    for (const auto& event : *events) {
      if (event.session == row->key || (event.session == observer_key && judged.history.seq > 0))
        judged.fold(event, changes);
    }
    judged.expire(store.now(), changes);
    test::Replayed replayed{.changes = changes};
    ASSERT_EQ(live, test::path_of(replayed))
        << "seed " << test::random_seed() << " round " << round;
    const auto stored = TransitionReader(store.reader()).of(row->key, 0, 10'000);
    ASSERT_EQ(stored->size(), changes.size());
    for (std::size_t at = 0; at < changes.size(); ++at) {
      ASSERT_EQ((*stored)[at].transition.seq, changes[at].seq);
      ASSERT_EQ((*stored)[at].transition.tick, changes[at].tick);
    }
  }
}

class Situations : public Watching {
 protected:
  /// Of the session's newest transition.
  static nlohmann::json newest(Store& store, const std::string& session) {
    const auto row = store.reader().session(session);
    const auto transitions = TransitionReader(store.reader()).of(row->key, 0, 1'000);
    return nlohmann::json::parse(transitions->back().transition.situation, nullptr, false);
  }
  static Report start_of(const ProcessFacts& facts) {
    Report start{.kind = ReportKind::start};
    start.detail = facts;
    return start;
  }
  static Report call(const std::string& tool) {
    return {.kind = ReportKind::tool_call, .name = tool, .call_id = "c", .deadline = 30min};
  }
};

TEST_F(Situations, name_the_process_and_its_children_while_they_run) {
  auto store = open();
  auto observer = watch(store);
  const test::Spawned agent({"sh", "-c", "sleep 1000 & wait"});
  const auto child = test::tree_with(agent, 1, "sleep").children.front().pid;
  (void)say(store, "s", {start_of(agent.facts()), change(), call("make"), beat(Source::sidecar)});
  clock.advance(1s);
  (void)say(store, "s", {beat(Source::sidecar)});
  ASSERT_TRUE(observer->look().ok());
  pass(*observer, 31s);
  ASSERT_EQ(path_of(store, "s"), "progressing silent");
  const auto situation = newest(store, "s");
  EXPECT_EQ(situation["inFlight"][0]["name"], "make");
  EXPECT_EQ(situation["inFlight"][0]["ageMs"], 31'000);
  EXPECT_EQ(situation["lastEvents"], (nlohmann::json{1, 2, 3, 4, 5}));
  EXPECT_EQ(situation["silenceMs"], 30'000);
  const auto& process = situation["process"];
  ASSERT_TRUE(process.is_object()) << situation;
  EXPECT_EQ(process["pid"], agent.pid());
  EXPECT_EQ(process["threads"], 1);
  ASSERT_EQ(process["children"].size(), 1U);
  EXPECT_EQ(process["children"][0]["pid"], child);
  EXPECT_EQ(process["children"][0]["command"], "sleep");
  EXPECT_EQ(process["children"][0]["parent"], agent.pid());
}

TEST_F(Situations, are_of_the_moment_and_not_of_what_came_after) {
  auto store = open();
  auto observer = watch(store);
  // In one look: the call hangs until it is suspect, then goes on.
  (void)say(store, "s", {change(), call("make")});
  ASSERT_TRUE(observer->look().ok());
  auto agent = open();
  clock.advance(1h);
  (void)say(agent, "s", {{.kind = ReportKind::tool_result, .name = "make", .call_id = "c"}});
  const auto row = store.reader().session("s");
  // The absence would keep it from being suspected: let the observer believe that it was there.
  observer.reset();
  auto late = Observer::start(store, {.late_max = 2h});
  ASSERT_TRUE(late.ok());
  ASSERT_EQ(path_of(store, "s"), "progressing slow suspect progressing");
  const auto transitions = TransitionReader(store.reader()).of(row->key, 0, 10);
  const auto& suspect = transitions->at(2).transition.situation;
  EXPECT_NE(suspect.find(R"("name":"make")"), std::string::npos) << suspect;
  EXPECT_NE(suspect.find(R"("lastEvents":[1,2])"), std::string::npos) << suspect;
  for (const int at : {0, 1, 3}) EXPECT_EQ(transitions->at(at).transition.situation, "");
}

TEST_F(Situations, name_the_newest_events_and_no_more) {
  auto store = open();
  auto observer = watch(store);
  for (int i = 0; i < 30; ++i) (void)say(store, "other" + std::to_string(i % 3), {change()});
  for (int i = 0; i < 30; ++i) (void)say(store, "s", {change("step", std::to_string(i))});
  (void)say(store, "s", {beat(), beat(), beat(), beat(), beat()});
  ASSERT_TRUE(observer->look().ok());
  ASSERT_EQ(path_of(store, "s"), "progressing stuck");
  const auto events = newest(store, "s")["lastEvents"];
  ASSERT_EQ(events.size(), 20U);
  EXPECT_EQ(events.front(), 42);
  EXPECT_EQ(events.back(), 61);
}

TEST_F(Situations, of_many_at_once_show_only_some_processes) {
  auto store = open();
  auto observer = watch(store);
  const test::Spawned agent({"sleep", "1000"});
  constexpr int sessions = 200;
  for (int i = 0; i < sessions; ++i) {
    (void)say(store, "s" + std::to_string(i),
              {start_of(agent.facts()), change(), beat(), beat(), beat(), beat(), beat()});
  }
  ASSERT_TRUE(observer->look().ok());
  int shown = 0;
  for (int i = 0; i < sessions; ++i) {
    const auto situation = newest(store, "s" + std::to_string(i));
    ASSERT_TRUE(situation.is_object());
    shown += situation["process"].is_object() ? 1 : 0;
  }
  EXPECT_EQ(shown, 64);
  (void)say(store, "s199", {change("step", "{\"n\":1}"), beat(), beat(), beat(), beat(), beat()});
  ASSERT_TRUE(observer->look().ok());
  EXPECT_TRUE(newest(store, "s199")["process"].is_object()) << "the next look is another one";
}

TEST_F(Situations, of_long_ago_show_no_process_of_now) {
  const test::Spawned agent({"sleep", "1000"});
  {
    auto store = open();
    (void)say(store, "s",
              {start_of(agent.facts()), change(), beat(), beat(), beat(), beat(), beat()});
  }
  clock.advance(600s);
  auto store = open();
  auto observer = watch(store);
  EXPECT_EQ(newest(store, "s")["loopHeartbeats"], 5);
  EXPECT_EQ(newest(store, "s")["process"], nullptr);
}

TEST_F(Watching, snapshot_of_another_version_repeats_no_transition) {
  Store store = open();
  {
    const auto observer = watch(store);
    ASSERT_TRUE(say(store, "s", {change(), beat(Source::loop), beat(Source::loop)}));
    ASSERT_TRUE(observer->look());
    ASSERT_TRUE(say(store, "s", std::vector<Report>(3, beat(Source::loop))));
    ASSERT_TRUE(observer->look());
    ASSERT_EQ(path_of(store, "s"), "progressing stuck");
  }
  sqlite3* raw = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &raw), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(raw, "UPDATE snapshots SET format = 1", nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(raw);
  const auto observer = watch(store);
  EXPECT_EQ(path_of(store, "s"), "progressing stuck") << "nobody is told twice";
  ASSERT_TRUE(say(store, "s", {change()}));
  ASSERT_TRUE(observer->look());
  EXPECT_EQ(path_of(store, "s"), "progressing stuck progressing");
}

TEST_F(Watching, sessions_that_ended_unobserved_are_judged_later) {
  {
    auto store = open();
    (void)say(store, "s", {change(), beat(), beat(), beat(), beat(), beat(), change(), ending()});
  }
  auto store = open();
  auto observer = watch(store);
  ASSERT_TRUE(observer->look().ok());
  EXPECT_EQ(path_of(store, "s"), "progressing stuck progressing");
  EXPECT_EQ(observer->watched(), 0U);
}

TEST_F(Watching, snapshots_bound_what_a_restart_reads) {
  auto store = open();
  auto observer = watch(store);
  for (int i = 0; i < 50; ++i) {
    (void)say(store, "s", std::vector<Report>(100, change()));
    ASSERT_TRUE(observer->look().ok());
  }
  ASSERT_TRUE(observer->checkpoint().ok());
  const auto row = store.reader().session("s");
  const auto folded = store.reader().fold(*row);
  EXPECT_EQ(folded->history.state_changes, 5'000);
  EXPECT_EQ(folded->history.seq, row->head);
}

TEST_F(Watching, the_tally_is_that_of_the_sessions_whatever_happened) {
  std::mt19937 random(test::random_seed());
  const auto pick = [&](std::size_t count) { return random() % count; };
  Store store = open();
  auto observer = watch(store);
  constexpr int sessions = 12;
  std::set<std::string> seen;
  for (int round = 0; round < 200; ++round) {
    const Report waits{.kind = ReportKind::wait, .name = pick(2) == 0 ? "approval" : "build"};
    const Report call{.kind = ReportKind::tool_call, .name = "shell", .content = "{}"};
    const Report all[] = {change(), beat(), waits,    call,
                          call,     call,   ending(), ending(OutcomeKind::failed)};
    const auto session = "s" + std::to_string(pick(sessions));
    (void)say(store, session, {all[pick(std::size(all))]});
    if (pick(10) == 0) {
      ASSERT_TRUE(store.erase({.sessions = {session}, .running_too = true}).ok());
      observer->forget(RetentionActs(store).drain_dropped());
    }
    if (pick(20) == 0) {
      observer.reset();
      observer = watch(store);
    }
    pass(*observer, Millis{1'000} * (pick(8) == 0 ? pick(40) : 1));
    Tally counted;
    for (int at = 0; at < sessions; ++at) {
      if (const auto found = observer->find("s" + std::to_string(at))) counted.add(found->judged);
    }
    const auto tally = to_json(observer->tally());
    ASSERT_EQ(tally, to_json(counted)) << "seed " << test::random_seed() << " round " << round;
    seen.insert(tally);
  }
  EXPECT_GT(seen.size(), 10U);
}

TEST_F(Watching, open_turns_are_listed_those_of_the_newest_session_first) {
  auto store = open();
  auto observer = watch(store);
  const auto begin = [](std::string id) { return test::turn(turn_reports::turn_start, id); };
  (void)say(store, "a", {begin("a1"), begin("a2"), test::call_in("a2", "c")}, Creation::allow,
            {.agent = "not asked for"});
  (void)say(store, "b", {begin("b1")}, Creation::demand, {.agent = "coder"});
  (void)say(store, "none", {change()});
  const auto listed = [&](std::size_t count_max = 100, std::string_view id = {}) {
    std::string text;
    for (const auto& turn : observer->turns(count_max, id)) {
      text += (text.empty() ? "" : " ") + turn.session + ":" + turn.turn.id;
      for (const auto& call : turn.calls) text += "(" + call.name.str() + ")";
    }
    return text;
  };
  ASSERT_TRUE(observer->look().ok());
  EXPECT_EQ(listed(), "b:b1 a:a1 a:a2(shell)");
  EXPECT_EQ(observer->turns(1).front().agent, "coder");
  EXPECT_EQ(listed(2), "b:b1 a:a1");
  EXPECT_EQ(listed(100, "a2"), "a:a2(shell)");
  EXPECT_EQ(listed(100, "a"), "");
  (void)say(store, "a", {test::turn(turn_reports::turn_end, "a1")});
  (void)say(store, "b", {ending()});
  ASSERT_TRUE(observer->look().ok());
  EXPECT_EQ(listed(), "a:a2(shell)");
  ASSERT_TRUE(observer->checkpoint().ok());
  observer.reset();
  observer = watch(store);
  EXPECT_EQ(listed(), "a:a2(shell)") << "who looks next finds it in the file";
  (void)say(store, "a", {{.kind = ReportKind::start}});
  ASSERT_TRUE(observer->look().ok());
  EXPECT_EQ(listed(), "");
}

/// Sessions that say of whom they are children.
class Families : public Watching {
 protected:
  Store store = open();
  std::unique_ptr<Observer> observer = watch(store);

  void add(const std::string& session, Report report, const std::string& parent = {}) {
    ASSERT_TRUE(
        test::say(store, session, {std::move(report)}, Creation::allow, {.parent = parent}).ok());
    ASSERT_TRUE(observer->look().ok());
  }
  std::string health(const std::string& session) const {
    const auto watched = observer->find(session);
    return watched ? std::string(name_of(watched->judged.health.kind)) : "ended";
  }
  std::string waits_for(const std::string& session) const {
    const auto watched = observer->find(session);
    const bool waits = watched && watched->judged.history.lifecycle == Lifecycle::waiting;
    return waits ? watched->judged.history.notes->waiting_for : "";
  }
  std::string attention(const std::string& session) const {
    const auto watched = observer->find(session);
    return watched ? std::string(name_of(standing_of(watched->judged, WallTime{}).attention)) : "";
  }
  std::string reason(const std::string& session) const {
    const auto watched = observer->find(session);
    return watched ? reason_of(watched->judged, store.now()) : "";
  }
  bool has(const std::string& session, const std::string& words) const {
    return reason(session).find(words) != std::string::npos;
  }
  /// It runs, and brings nothing about.
  void get_stuck(const std::string& session) {
    for (int beats = 0; beats < 5; ++beats) add(session, beat());
    EXPECT_EQ(health(session), "stuck");
  }
};

const Report call{.kind = ReportKind::tool_call, .name = "read"};
const Report rest{.kind = ReportKind::idle};

TEST_F(Families, a_parent_whose_turn_is_done_waits_for_the_last_of_its_children) {
  add("p", call);
  add("p:1", call, "p");
  add("p:2", call, "p");
  EXPECT_EQ(health("p"), "starting");
  add("p", rest);
  EXPECT_EQ(waits_for("p"), "children");
  EXPECT_EQ(health("p"), "blocked");
  add("p:1", ending());
  EXPECT_EQ(waits_for("p"), "children");
  add("p:2", rest);
  EXPECT_EQ(health("p"), "idle");
  add("p:2", call);
  EXPECT_EQ(waits_for("p"), "children");
  add("p:2", ending());
  EXPECT_EQ(health("p"), "idle");
}

TEST_F(Families, a_parent_that_goes_on_by_itself_waits_no_longer) {
  add("p:1", call, "p");
  add("p", rest);
  EXPECT_EQ(waits_for("p"), "children");
  add("p", call);
  EXPECT_EQ(waits_for("p"), "");
  add("p:1", ending());
  EXPECT_EQ(health("p"), "starting") << "it has a call open";
}

TEST_F(Families, a_child_that_says_nothing_of_its_end_makes_its_parent_a_quiet_one) {
  add("p:1", call, "p");
  add("p:1", {.kind = ReportKind::tool_result, .name = "read", .content = "text"});
  add("p", rest);
  EXPECT_EQ(waits_for("p"), "children");
  pass(*observer, 30s);
  EXPECT_EQ(waits_for("p"), "children") << "its model thinks";
  pass(*observer, 3'600s);
  EXPECT_EQ(health("p:1"), "suspect");
  EXPECT_EQ(waits_for("p"), "children") << "it may work yet";
  const auto watched = observer->find("p");
  const auto& why = watched->judged.history.notes->wait_why;
  EXPECT_TRUE(why.starts_with("p:1: ")) << why;
  add("p:1", call);
  EXPECT_EQ(waits_for("p"), "children") << "it works after all";
  pass(*observer, 3'600s);
  EXPECT_EQ(waits_for("p"), "children") << "a call may take any time";
}

TEST_F(Families, the_worst_child_decides_the_attention_of_a_parent_that_waits) {
  add("p:1", change(), "p");
  add("p:2", call, "p");
  add("p", rest);
  EXPECT_EQ(attention("p"), "working");
  get_stuck("p:1");
  EXPECT_EQ(waits_for("p") + " " + attention("p"), "children needs_you");
  EXPECT_TRUE(has("p", "children: p:1 needs a person (others work): ")) << reason("p");
  add("p:2", ending());
  EXPECT_TRUE(has("p", "children: p:1 needs a person: ")) << reason("p");
  const auto said = observer->find("p")->judged.history.seq;
  for (int looks = 0; looks < 3; ++looks) add("p:1", beat());
  EXPECT_EQ(observer->find("p")->judged.history.seq, said) << "it was said";
  add("p:1", change());
  EXPECT_EQ(waits_for("p") + " " + attention("p"), "children working");
  EXPECT_EQ(observer->find("p")->judged.history.notes->wait_why, "");
  add("p:1", {.kind = ReportKind::wait, .name = "quota"});
  EXPECT_EQ(attention("p"), "watch");
  add("p:1", {.kind = ReportKind::wait, .name = "approval", .content = "rm notes"});
  EXPECT_EQ(attention("p"), "needs_you");
  add("p:1", ending());
  EXPECT_EQ(health("p"), "idle");
}

TEST_F(Families, a_grandchild_in_trouble_is_named_by_all_above_it) {
  add("g", call);
  add("p", call, "g");
  add("c", change(), "p");
  add("p", rest);
  add("g", rest);
  get_stuck("c");
  EXPECT_EQ(attention("p") + " " + attention("g"), "needs_you needs_you");
  EXPECT_TRUE(has("g", "c needs a person: ")) << reason("g");
}

TEST_F(Families, a_child_in_trouble_shows_at_once_in_the_call_that_waits_for_it) {
  add("p", {.kind = ReportKind::tool_call, .name = "Task", .call_id = "t"});
  add("p:1", change(), "p");
  add("p:2", call, "p");
  EXPECT_EQ(attention("p"), "working");
  get_stuck("p:1");
  ASSERT_TRUE(observer->look().ok());
  EXPECT_EQ(attention("p"), "needs_you");
  EXPECT_TRUE(has("p", "it waits for p:1 needs a person (others work): ")) << reason("p");
  add("p:1", change());
  ASSERT_TRUE(observer->look().ok());
  EXPECT_EQ(attention("p"), "working");
}

TEST_F(Families, a_call_of_another_tool_does_not_wait_for_a_child) {
  add("p", call);
  add("p:1", change(), "p");
  get_stuck("p:1");
  ASSERT_TRUE(observer->look().ok());
  EXPECT_EQ(attention("p"), "working");
}

TEST_F(Families, grandparents_wait_and_circles_do_not) {
  add("g", call);
  add("p", call, "g");
  add("c", call, "p");
  add("p", rest);
  add("g", rest);
  EXPECT_EQ(waits_for("p") + waits_for("g"), "childrenchildren");
  add("c", ending());
  EXPECT_EQ(health("p") + health("g"), "idleidle");

  add("a", call, "b");
  add("b", call, "a");
  add("a", rest);
  EXPECT_EQ(waits_for("a"), "children");
  add("b", rest);
  EXPECT_EQ(health("a") + health("b"), "idleidle");
  add("own", call, "own");
  add("own", rest);
  EXPECT_EQ(health("own"), "idle");
}

TEST_F(Families, a_child_that_ended_while_nobody_watched_is_waited_for_no_longer) {
  add("p:1", call, "p");
  add("p", rest);
  EXPECT_EQ(waits_for("p"), "children");
  ASSERT_TRUE(observer->checkpoint().ok());
  observer.reset();
  ASSERT_TRUE(test::say(store, "p:1", {ending()}).ok());
  observer = watch(store);
  ASSERT_TRUE(observer->look().ok());
  EXPECT_EQ(health("p"), "idle");
}

}  // namespace
}  // namespace watchdog
