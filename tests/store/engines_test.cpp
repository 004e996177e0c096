// The promises of a store, with each engine.
#include "store/engines.h"

#include <algorithm>
#include <random>
#include <set>
#include <thread>

#include "codec/facts.h"
#include "observer/observer.h"
#include "store/alert_acts.h"
#include "store/event_reader.h"
#include "store/retention.h"
#include "store/sharing.h"
#include "store/transition_reader.h"
#include "support/manual_clock.h"
#include "support/reports.h"
#include "support/sql.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;
using test::abort_of;
using test::all_events;
using test::beat;
using test::change;
using test::ending;
using test::ManualClock;
using test::OnEngine;
using test::Postgres;
using test::say;
using test::TempDir;
using test::turn;
using test::with_id;

using Engines = OnEngine;

INSTANTIATE_TEST_SUITE_P(Store, Engines, testing::Values("file", "postgresql", "serializable"),
                         test::engine_name);

TEST_P(Engines, keep_events_in_order_and_page_them_both_ways) {
  auto store = open();
  for (int i = 0; i < 700; ++i)
    (void)say(store, i % 3 == 0 ? "a" : "b", {change("n" + std::to_string(i))});
  for (const int page_size : {1, 7, 1'000}) {
    const auto events = all_events(store.reader(), "a", page_size);
    ASSERT_EQ(events.size(), 234U);
    for (std::size_t i = 0; i < events.size(); ++i) {
      ASSERT_EQ(events[i].report.name, "n" + std::to_string(3 * i));
      ASSERT_EQ(events[i].prev, i == 0 ? 0 : events[i - 1].seq);
    }
    auto reader = read();
    std::vector<Seq> backwards;
    for (std::optional<Seq> before = INT64_MAX; before;) {
      const auto page = EventReader(reader).page_before(events[0].session, *before, page_size);
      ASSERT_TRUE(page.ok()) << page.error().message;
      for (const auto& event : page->events) backwards.push_back(event.seq);
      before = page->next;
    }
    ASSERT_EQ(backwards.size(), events.size());
    for (std::size_t i = 0; i < events.size(); ++i)
      ASSERT_EQ(backwards[i], events[events.size() - 1 - i].seq);
  }
  const auto key = store.reader().session("a")->key;
  EXPECT_EQ(EventReader(store.reader()).latest(key, 5)->size(), 5U);
  EXPECT_EQ(EventReader(store.reader()).page(key, 0, 10, ReportKind::message)->events.size(), 0U);
  const auto events = EventReader(store.reader()).after(0, 10'000);
  ASSERT_EQ(events->size(), 700U);
  EXPECT_TRUE(std::is_sorted(events->begin(), events->end(),
                             [](const Event& a, const Event& b) { return a.seq < b.seq; }));
}

TEST_P(Engines, store_an_event_id_once_in_its_session) {
  auto store = open();
  auto first = say(store, "a", {with_id(change(), "x"), with_id(change(), "x"), change()});
  ASSERT_TRUE(first.ok()) << first.error().message;
  EXPECT_EQ(first->duplicates, 1U);
  EXPECT_EQ(say(store, "b", {with_id(change(), "x")})->duplicates, 0U);
  EXPECT_EQ(open().reader().session("a")->key, first->key);
  auto other = open();
  EXPECT_EQ(say(other, "a", {with_id(change(), "x"), with_id(change(), "y")})->duplicates, 1U);
  EXPECT_EQ(say(store, "a", {with_id(change(), "y")})->duplicates, 1U);
  EXPECT_EQ(all_events(store.reader(), "a").size(), 3U);
  // Another source reports the same call under another name.
  Report call{.kind = ReportKind::tool_call, .name = "shell", .call_id = "c"};
  (void)say(store, "a", {with_id(call, "call")});
  call.name = "Bash";
  EXPECT_EQ(say(store, "a", {with_id(call, "call")})->duplicates, 1U);
  EXPECT_EQ(all_events(store.reader(), "a").back().report.also, "Bash");
}

TEST_P(Engines, keep_what_people_wrote_whatever_bytes_it_has) {
  auto store = open();
  const std::string odd = "quote ' and \" and \\ and {}, $1 ? ?2 \xF0\x9F\x90\x95 \n end";
  (void)say(store, "a", {with_id({.kind = ReportKind::message, .name = odd, .content = odd}, odd)},
            Creation::allow, {.agent = odd, .task = odd, .labels = {{"k'", "v\\"}}});
  EXPECT_EQ(say(store, "a", {with_id(change(), odd)})->duplicates, 1U);
  auto reader = read();
  const auto events = all_events(reader, "a");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].report.content, odd);
  EXPECT_EQ(events[0].report.name, odd);
  EXPECT_EQ(reader.session("a")->spec.task, odd);
  EXPECT_EQ(reader.sessions({.label_key = "k'", .label_value = "v\\"})->size(), 1U);
  // A server holds no NUL and nothing that is no UTF-8, and must not refuse the report for it.
  const std::string broken("nul \0 and \xFF byte", 15);
  const auto kept =
      say(store, "a", {with_id({.kind = ReportKind::message, .content = broken}, broken)});
  ASSERT_TRUE(kept.ok()) << kept.error().message;
  EXPECT_EQ(kept->accepted, 1U);
  EXPECT_NE(all_events(reader, "a").back().report.content.find("nul "), std::string::npos);
}

TEST_P(Engines, gather_heartbeats_in_rows) {
  ManualClock clock;
  auto store = open(clock);
  (void)say(store, "a", {beat(), beat(), beat(Source::sidecar), beat(Source::sidecar)});
  const auto events = all_events(store.reader(), "a");
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(std::get<Heartbeats>(events[0].report.detail).count, 2);
}

TEST_P(Engines, carry_requests_to_an_agent_until_they_are_heard) {
  auto store = open();
  (void)say(store, "a", {turn(turn_reports::turn_start, "t1")});
  EXPECT_TRUE(say(store, "a", {abort_of("t1", "c1", "too long")})->directive.aborts.size() == 1U);
  auto other = open();  // whichever process takes the next report
  const auto reported = say(other, "a", {change()});
  ASSERT_EQ(reported->directive.aborts.size(), 1U);
  EXPECT_EQ(reported->directive.aborts[0].reason, "too long");
  Report cancel{.kind = ReportKind::cancel};
  cancel.detail = CancelRequest{.by = "somebody", .reason = "enough"};
  (void)say(other, "a", {cancel});
  EXPECT_EQ(read().directive_of("a")->cancel->reason, "enough");
  const auto ended = say(store, "a", {ending(OutcomeKind::failed)});
  EXPECT_TRUE(ended.ok());
  EXPECT_FALSE(read().directive_of("a")->aborts.size() > 0);
  EXPECT_EQ(read().session("a")->lifecycle, Lifecycle::cancelled);
}

TEST_P(Engines, find_sessions) {
  auto store = open();
  (void)say(store, "root", {change()}, Creation::allow,
            {.agent = "One", .task = "Mend the Parser"});
  (void)say(store, "child", {change()}, Creation::allow, {.parent = "root", .agent = "two"});
  (void)say(store, "grandchild", {change()}, Creation::allow,
            {.parent = "child", .labels = {{"team", "blue"}}});
  (void)say(store, "ended", {change(), ending()});
  auto reader = read();
  const auto names = [&](const SessionFilter& filter) {
    std::vector<std::string> ids;
    const auto rows = reader.sessions(filter);
    EXPECT_TRUE(rows.ok()) << rows.error().message;
    for (const auto& row : *rows) ids.push_back(row.id);
    return ids;
  };
  using Ids = std::vector<std::string>;
  EXPECT_EQ(names({}), (Ids{"ended", "grandchild", "child", "root"}));
  EXPECT_EQ(names({.ancestor = "root"}), (Ids{"grandchild", "child"}));
  EXPECT_EQ(names({.parent = "root"}), (Ids{"child"}));
  EXPECT_EQ(names({.text = "mend THE pars"}), (Ids{"root"}));
  EXPECT_EQ(names({.text = "%"}), Ids{});
  EXPECT_EQ(names({.text = "blue"}), (Ids{"grandchild"}));
  EXPECT_EQ(names({.label_key = "team", .label_value = "blue"}), (Ids{"grandchild"}));
  EXPECT_EQ(names({.lifecycle = Lifecycle::completed}), (Ids{"ended"}));
  EXPECT_EQ(names({.healths = {HealthKind::unknown, HealthKind::dead}, .agent = "two"}),
            (Ids{"child"}));
  EXPECT_EQ(names({.limit = 2}), (Ids{"ended", "grandchild"}));
  EXPECT_EQ(reader.running_children("root", 10)->size(), 1U);
  EXPECT_EQ(reader.ends(WallTime{})->completed, 1);
  EXPECT_EQ(reader.sessions_with_turns(INT64_MAX, 10)->size(), 0U);
}

/// The text of everything that a judge recorded.
std::string judgement_of(StoreReader& reader, const std::string& session) {
  const auto row = reader.session(session);
  if (!row) return row.error().message;
  std::string text = std::string(name_of(row->health)) + " " +
                     std::string(name_of(row->lifecycle)) + " " + row->error + row->outcome_reason +
                     "\n";
  const auto transitions = TransitionReader(reader).of(row->key, 0, 1'000);
  if (!transitions) return transitions.error().message;
  for (const auto& made : *transitions) {
    text += std::string(name_of(made.transition.from)) + " to " +
            std::string(name_of(made.transition.health.kind)) + " " + made.transition.reason + " " +
            std::to_string(made.quiet.value_or(Millis{-1}).count()) + "\n";
  }
  const auto folded = reader.fold(*row);
  return text + (folded ? std::string(name_of(folded->health.kind)) : folded.error().message);
}

/// Makes reports that mean something, from a seed.
class RandomAgents {
 public:
  explicit RandomAgents(unsigned seed) : random_(seed) {}

  Batch batch() {
    Batch batch{.session = "s" + std::to_string(pick(6)), .by = ReportOrigin::monitor};
    for (int left = 1 + pick(5); left > 0; --left) batch.reports.push_back(report());
    return batch;
  }
  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }

 private:
  Report report() {
    Report report;
    const auto number = std::to_string(pick(4));
    switch (pick(10)) {
      case 0:
        report.kind = ReportKind::start;
        break;
      case 1:
        report = ending(pick(2) == 0 ? OutcomeKind::failed : OutcomeKind::completed);
        break;
      case 2:
        report = {.kind = ReportKind::message, .name = "assistant", .content = "text " + number};
        break;
      case 3:
        report = {
            .kind = ReportKind::tool_call, .name = "shell", .content = "{}", .call_id = number};
        break;
      case 4:
        report = {
            .kind = ReportKind::tool_result, .name = "shell", .content = "x", .call_id = number};
        break;
      case 5:
        report =
            turn(pick(2) == 0 ? turn_reports::turn_start : turn_reports::turn_end, "t" + number);
        break;
      case 6:
        report = abort_of("t" + number);
        break;
      case 7:
        report = beat();
        break;
      default:
        report = change("step", "{\"n\":" + number + "}");
    }
    if (pick(3) == 0) report.event_id = "id" + std::to_string(pick(40));
    return report;
  }
  std::mt19937 random_;
};

TEST_P(Engines, judge_sessions_together_as_one_by_one) {
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  ManualClock clock;
  auto store = open(clock);
  RandomAgents agents(seed);
  const auto go_on = [&](int rounds) {
    for (int round = 0; round < rounds; ++round) {
      std::vector<Batch> batches{agents.batch(), agents.batch()};
      ASSERT_TRUE(store.append(batches).ok());
      if (agents.pick(20) == 0) {
        ASSERT_TRUE(store.append_observer({9s}).ok());
      }
      clock.advance(Millis{agents.pick(9'000)});
    }
  };
  go_on(30);
  {
    auto judge = Observer::start(store, {});
    ASSERT_TRUE(judge.ok() && (*judge)->look().ok() && (*judge)->checkpoint().ok());
  }
  // Some have no event since their snapshot, some have many, and some have none at all.
  (void)say(store, "quiet", {change()});
  (void)say(store, "new", {});
  go_on(60);
  for (int at = 0; at < 9; ++at)
    (void)say(store, "large", {change(std::string(9'000, 'x'), std::string(9'000, 'y'))});
  const auto rows = store.reader().sessions({.limit = 1'000});
  ASSERT_TRUE(rows.ok());
  std::vector<SessionKey> keys{987'654'321};  // no session has this key
  for (const auto& row : *rows) keys.push_back(row.key);
  const auto together = Sharing(store).fold(keys);
  ASSERT_TRUE(together.ok()) << together.error().message;
  ASSERT_EQ(together->size(), rows->size());
  for (const auto& one : *together) {
    std::vector<Transition> changes;
    const auto judged = store.reader().fold(one.row, &changes);
    ASSERT_TRUE(judged.ok());
    EXPECT_EQ(snapshot_of(one.judged), snapshot_of(*judged)) << one.row.id;
    EXPECT_EQ(one.judged.folded, judged->folded);
    EXPECT_EQ(one.changes.size(), changes.size()) << one.row.id;
  }
}

TEST_P(Engines, serve_a_judge_and_its_alerts) {
  ManualClock clock;
  auto store = open(clock);
  const AlertRules rules{.channels = {"hook", "mail"}};
  auto judge = Observer::start(store, {.alerts = rules});
  ASSERT_TRUE(judge.ok()) << judge.error().message;
  (void)say(store, "a", {change(), {.kind = ReportKind::exited}});
  for (int second = 0; second < 90; second += 5) {
    clock.advance(5s);
    const auto looked = (*judge)->look();
    ASSERT_TRUE(looked.ok()) << looked.error().message;
  }
  auto& reader = store.reader();
  EXPECT_EQ(reader.session("a")->health, HealthKind::dead);
  ASSERT_GT(TransitionReader(reader).of(reader.session("a")->key, 0, 100)->size(), 0U);
  const auto message = reader.next_message("hook", false);
  ASSERT_TRUE(message.ok()) << message.error().message;
  ASSERT_EQ(message->size(), 1U);
  const auto id = message->front().id;
  ASSERT_TRUE(AlertActs(store)
                  .note({.channel = "hook", .alerts = {id}, .state = DeliveryState::sent})
                  .ok());
  EXPECT_EQ(reader.next_message("hook", false)->size(), 0U);
  EXPECT_EQ(reader.next_message("mail", true)->size(), 1U);
  const auto known = AlertActs(store).acknowledge(id, "somebody");
  ASSERT_TRUE(known.ok()) << known.error().message;
  EXPECT_EQ(known->acknowledged_by, "somebody");
  EXPECT_EQ(reader.next_message("mail", true)->size(), 0U) << "the other delivery is held";
  EXPECT_EQ(reader.alerts({.state = DeliveryState::sent})->size(), 1U);
  ASSERT_TRUE(
      store.keep({.at = WallTime{Millis{7}}, .actor = "me", .target = "a", .outcome = "ok"}).ok());
  EXPECT_EQ(reader.audit(0, 10)->size(), 1U);
  ASSERT_TRUE((*judge)->checkpoint().ok());
  // The next judge goes on where this one was.
  const auto before = judgement_of(reader, "a");
  judge = Error{};
  auto again = open(clock);
  auto next = Observer::start(again, {.alerts = rules});
  ASSERT_TRUE(next.ok()) << next.error().message;
  ASSERT_TRUE((*next)->look().ok());
  EXPECT_EQ(judgement_of(again.reader(), "a"), before);
}

TEST_P(Engines, drop_old_sessions_and_give_no_number_twice) {
  ManualClock clock;
  auto store = open(clock);
  auto judge = Observer::start(store, {});
  (void)say(store, "old", {change(), ending()}, Creation::demand, {.labels = {{"k", "v"}}});
  const auto key = say(store, "running", {change()})->key;
  const auto last = EventReader(store.reader()).newest()->first;
  if (!is_file())
    (void)Postgres::shared().run(
        "INSERT INTO writers (writer, number, at_ms) VALUES ('gone', 1, 0)");
  clock.advance(24h * 33);
  (void)say(store, "fresh", {change(), ending()});
  ASSERT_TRUE((*judge)->look().ok());
  ASSERT_TRUE((*judge)->checkpoint().ok());
  for (int piece = 0; piece < 1'000; ++piece) {
    const auto more = RetentionActs(store).trim({.folded_through = (*judge)->folded()});
    ASSERT_TRUE(more.ok()) << more.error().message;
    if (!*more) break;
  }
  EXPECT_FALSE(store.reader().session("old").ok());
  EXPECT_TRUE(store.reader().session("running").ok());
  EXPECT_TRUE(store.reader().session("fresh").ok());
  EXPECT_EQ(store.reader().sessions({.label_key = "k", .label_value = "v"})->size(), 0U);
  EXPECT_EQ(RetentionActs(store).drain_dropped().size(), 1U);
  EXPECT_GT(say(store, "next", {change()})->last, last);
  EXPECT_GT(store.reader().session("next")->key, key);
  if (is_file()) return;
  EXPECT_EQ(Postgres::shared().run("SELECT count(*) FROM parts"), "1") << "a day is dropped whole";
  EXPECT_EQ(Postgres::shared().run("SELECT count(*) FROM writers WHERE writer = 'gone'"), "0");
  EXPECT_EQ(all_events(store.reader(), "running").size(), 0U);
  EXPECT_GT(*EventReader(store.reader()).first_kept(), last);
  EXPECT_TRUE(store.reader().fold(*store.reader().session("running")).ok());
}

TEST_P(Engines, erase_without_leaving_a_row) {
  ManualClock clock;
  auto store = open(clock);
  const AlertRules rules{.channels = {"hook"}};
  auto judge = Observer::start(store, {.alerts = rules});
  (void)say(store, "secret-one", {change("topsecret", "topsecret"), {.kind = ReportKind::exited}},
            Creation::allow, {.agent = "topsecret", .labels = {{"k", "topsecret"}}});
  (void)say(store, "kept", {change()});
  for (int i = 0; i < 18; ++i) {
    clock.advance(5s);
    const auto looked = (*judge)->look();
    ASSERT_TRUE(looked.ok()) << looked.error().message;
  }
  ASSERT_EQ(store.reader().alerts({})->size(), 1U);
  ASSERT_TRUE(store.keep({.target = "secret-one", .outcome = "ok"}).ok());
  EXPECT_EQ(store.erase({.sessions = {"kept"}}).error().code, ErrorCode::conflict);
  const auto erased = store.erase({.sessions = {"secret-one"}});
  ASSERT_TRUE(erased.ok()) << erased.error().message;
  EXPECT_EQ(store.erase({.sessions = {"secret-one"}}).error().code, ErrorCode::not_found);
  EXPECT_TRUE(store.reader().session("kept").ok());
  if (is_file()) return;  // erase_test looks at each byte of the file
  const auto& server = Postgres::shared();
  for (const std::string table : {"sessions", "labels", "heads", "events", "blocks", "transitions",
                                  "snapshots", "alert_states", "alerts", "deliveries", "audit"}) {
    EXPECT_EQ(server.run("SELECT count(*) FROM " + table + " t WHERE t::text LIKE '%secret%'"), "0")
        << table;
  }
  EXPECT_EQ(server.run("SELECT count(*) FROM deliveries d WHERE NOT EXISTS (SELECT 1 FROM alerts a "
                       "WHERE a.id = d.alert)"),
            "0");
}

TEST_P(Engines, show_each_event_to_a_reader_in_order_while_several_write) {
  constexpr int writers = 4;
  constexpr int each = 60;
  (void)open();  // makes the tables
  std::vector<std::thread> threads;
  std::atomic<int> failed = 0;
  for (int writer = 0; writer < writers; ++writer) {
    threads.emplace_back([&, writer] {
      auto store = open();
      for (int i = 0; i < each; ++i)
        if (!say(store, "s" + std::to_string(writer), {change(std::to_string(i))})) ++failed;
    });
  }
  auto reader = read();
  Seq cursor = 0;
  std::vector<Event> seen;
  while (seen.size() < writers * each && failed == 0) {
    const auto events = EventReader(reader).after(cursor, 1'000);
    ASSERT_TRUE(events.ok()) << events.error().message;
    for (const auto& event : *events) {
      if (event.session != observer_key) seen.push_back(event);
      cursor = event.seq;
    }
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failed, 0);
  std::map<SessionKey, int> next;
  Instant latest{};
  for (const auto& event : seen) {
    EXPECT_EQ(event.report.name, std::to_string(next[event.session]++));
    EXPECT_GE(event.tick, latest) << "ticks never fall";
    latest = event.tick;
  }
}

/// Acts, and acts again while the store cannot be reached.
template <typename Act>
auto until_done(Act act) {
  auto done = act();
  for (int again = 0; !done.ok() && again < 5; ++again) done = act();
  return done;
}

/// The server ends each connection to it, as if the network had failed.
void lose_connections() {
  const auto lost = Postgres::shared().run(
      "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> "
      "pg_backend_pid() AND backend_type = 'client backend'");
  EXPECT_GT(std::stoi(lost), 0) << lost;
}

/// An hour of their time, in which the server loses its connections now and then.
TEST(TwoEngines, report_the_same_of_the_same_reports) {
  ASSERT_TRUE(Postgres::is_installed()) << "install the package postgresql, as scripts/test does";
  monitor::use_postgresql();
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  TempDir directory;
  Postgres::shared().clear();
  ManualClock clocks[2];
  auto file = Store::open({.database = directory / "w.db", .clock = &clocks[0]});
  auto server = Store::open({.database = Postgres::shared().url(), .clock = &clocks[1]});
  ASSERT_TRUE(file.ok() && server.ok()) << server.error().message;
  Store* stores[] = {&*file, &*server};
  std::unique_ptr<Observer> judges[2];
  for (int at = 0; at < 2; ++at)
    judges[at] =
        std::move(*Observer::start(*stores[at], {.alerts = AlertRules{.channels = {"c"}}}));
  RandomAgents agents(seed);
  constexpr Millis hour{3'600'000};
  int losses = 0;
  Millis passed{0};
  for (int round = 0; passed < hour; ++round) {
    std::vector<Batch> batches;
    for (int left = agents.pick(4); left > 0; --left) batches.push_back(agents.batch());
    const auto pause = Millis{agents.pick(20'000)};
    passed += pause;
    if (agents.pick(20) == 0) {
      lose_connections();
      ++losses;
    }
    std::string reported[2];
    for (int at = 0; at < 2; ++at) {
      auto own = batches;
      const auto receipts = until_done([&] { return stores[at]->append(own); });
      ASSERT_TRUE(receipts.ok()) << receipts.error().message;
      for (const auto& receipt : *receipts) {
        reported[at] += std::to_string(receipt->accepted) + " " +
                        std::to_string(receipt->duplicates) + " " + std::to_string(receipt->late) +
                        " " + std::to_string(receipt->directive.aborts.size()) + "\n";
      }
      clocks[at].advance(pause);
      ASSERT_TRUE(until_done([&] { return judges[at]->look(); }).ok());
    }
    ASSERT_EQ(reported[0], reported[1]) << round;
  }
  EXPECT_GT(losses, 0);
  for (int session = 0; session < 6; ++session) {
    const auto id = "s" + std::to_string(session);
    EXPECT_EQ(judgement_of(file->reader(), id), judgement_of(server->reader(), id));
    const auto one = all_events(file->reader(), id);
    const auto two = all_events(server->reader(), id);
    ASSERT_EQ(one.size(), two.size());
    for (std::size_t at = 0; at < one.size(); ++at) {
      ASSERT_EQ(one[at].report.kind, two[at].report.kind);
      ASSERT_EQ(one[at].report.content, two[at].report.content);
      ASSERT_EQ(one[at].tick, two[at].tick);
      ASSERT_EQ(one[at].late, two[at].late);
    }
  }
  EXPECT_EQ(file->reader().alerts({})->size(), server->reader().alerts({})->size());
}

TEST(TwoEngines, copy_each_other_whole) {
  ASSERT_TRUE(Postgres::is_installed()) << "install the package postgresql, as scripts/test does";
  monitor::use_postgresql();
  TempDir directory;
  Postgres::shared().clear();
  ManualClock clock;
  RandomAgents agents(7);
  Seq last = 0;
  std::int64_t erased = 0;
  {
    auto file = Store::open({.database = directory / "first.db", .clock = &clock});
    auto judge = Observer::start(*file, {.alerts = AlertRules{.channels = {"c"}}});
    for (int round = 0; round < 400; ++round) {
      std::vector<Batch> batches{agents.batch(), agents.batch()};
      ASSERT_TRUE(file->append(batches).ok());
      clock.advance(7s);
      ASSERT_TRUE((*judge)->look().ok());
    }
    (void)say(*file, "odd", {{.kind = ReportKind::message, .content = "a b"}});
    ASSERT_TRUE(file->keep({.actor = "me", .outcome = "ok"}).ok());
    erased = say(*file, "erased", {change()})->key;
    ASSERT_TRUE(file->erase({.sessions = {"erased"}, .running_too = true}).ok());
    last = EventReader(file->reader()).newest()->first;
  }
  // As older programs stored it.
  test::run_sql(directory / "first.db",
                "UPDATE events SET content = 'a' || char(0) || 'b' WHERE content = 'a b'");
  auto first = StoreReader::open(directory / "first.db");
  auto server = Store::open({.database = Postgres::shared().url(), .clock = &clock});
  const auto there = server->fill_from(*first);
  ASSERT_TRUE(there.ok()) << there.error().message;
  EXPECT_GT(there->events, 800);
  EXPECT_EQ(there->changed_texts, 1);
  EXPECT_EQ(server->fill_from(*first).error().code, ErrorCode::conflict) << "it replaces nothing";

  auto reader = StoreReader::open(Postgres::shared().url());
  auto second = Store::open({.database = directory / "second.db", .clock = &clock});
  const auto back = second->fill_from(*reader);
  ASSERT_TRUE(back.ok()) << back.error().message;
  EXPECT_EQ(back->digest, there->digest);
  EXPECT_EQ(back->events, there->events);
  for (int session = 0; session < 6; ++session) {
    const auto id = "s" + std::to_string(session);
    EXPECT_EQ(judgement_of(*first, id), judgement_of(second->reader(), id));
    EXPECT_EQ(judgement_of(*first, id), judgement_of(server->reader(), id));
  }
  // All go on above what was copied.
  for (auto* store : {&*server, &*second}) {
    const auto receipt = say(*store, "new", {change()});
    ASSERT_TRUE(receipt.ok()) << receipt.error().message;
    EXPECT_GT(receipt->last, last);
    EXPECT_GT(receipt->key, erased) << "no key is given twice";
    ASSERT_TRUE(store->keep({.actor = "me", .outcome = "ok"}).ok());
  }
}

}  // namespace
}  // namespace watchdog
