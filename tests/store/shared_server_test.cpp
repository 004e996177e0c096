// Several monitors on one server. One monitor judges each session and sends its alerts. Another
// takes over its sessions when it stops.
#include <algorithm>
#include <set>

#include "facts/process.h"
#include "observer/observer.h"
#include "postgres/statement.h"
#include "store/alert_acts.h"
#include "store/engines.h"
#include "store/sharing.h"
#include "store/transition_reader.h"
#include "support/manual_clock.h"
#include "support/reports.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;
using test::change;
using test::ending;
using test::ManualClock;
using test::Postgres;
using test::say;

/// Two monitors that share a server, in virtual time.
class SharedServer : public testing::Test {
 protected:
  struct Monitor {
    Store store;
    std::unique_ptr<Observer> judge{};

    void look() { ASSERT_TRUE(judge->look().ok()); }
    /// Until all that it judges is in memory. A look reads for some milliseconds only.
    void look_until_read() {
      do look();
      while (!testing::Test::HasFatalFailure() && Sharing(store).is_taking_over());
    }
    std::set<std::int64_t> claim() {
      std::set<std::int64_t> ids;
      while (true) {
        const auto alerts = Sharing(store).claim_message("hook", true, 40s);
        EXPECT_TRUE(alerts.ok()) << alerts.error().message;
        if (!alerts || alerts->empty() || !ids.insert(alerts->front().id).second) return ids;
        EXPECT_TRUE(store.owns(store.reader().session(alerts->front().session)->key));
        if (keeps_results) note(*alerts);
      }
    }
    void note(const std::vector<Alert>& alerts) {
      for (const auto& alert : alerts)
        EXPECT_TRUE(AlertActs(store).note({.channel = "hook", .alerts = {alert.id}}).ok());
    }
    bool keeps_results = true;
    std::vector<std::int64_t> passed{};  ///< Transitions, as streams get them.
  };

  SharedServer() {
    monitor::use_postgresql();
    Postgres::shared().clear();
  }
  std::unique_ptr<Monitor> monitor() {
    auto store = Store::open({.database = Postgres::shared().url(), .clock = &clock_});
    EXPECT_TRUE(store.ok()) << store.error().message;
    auto made = std::make_unique<Monitor>(Monitor{.store = std::move(*store)});
    const auto pass = [to = made.get()](const TransitionRow& row, const std::string&) {
      to->passed.push_back(row.id);
    };
    made->judge = std::move(*Observer::start(made->store, {.concluded = pass, .alerts = rules_}));
    return made;
  }
  /// Until each has its half.
  void share(Monitor& first, Monitor& second) {
    for (int round = 0; round < 4; ++round) {
      clock_.advance(5s);
      first.look();
      second.look();
    }
    ASSERT_EQ(Sharing(first.store).shares().shards, 128);
    ASSERT_EQ(Sharing(second.store).shares().shards, 128);
  }
  static void report_all(Monitor& to, std::size_t count) {
    std::vector<Batch> batches;
    for (std::size_t session = 0; session < count; ++session)
      batches.push_back({.session = "s" + std::to_string(session), .reports = {change()}});
    ASSERT_TRUE(to.store.append(batches).ok());
  }
  ManualClock clock_;
  AlertRules rules_{.messages_max = 1'000, .channels = {"hook"}};
};

TEST(PgStatement, frees_in_the_server_what_it_prepared) {
  monitor::PgConnection connection(Postgres::shared().url(), 60'000);
  connection.connect();
  monitor::PgSession session{connection};
  for (int number = 0; number < 50; ++number) {
    monitor::PgStatement query(session, "SELECT CAST(? AS BIGINT)");
    query.bind(1, number);
    ASSERT_TRUE(query.step());
    EXPECT_EQ(query.integer(0), number);
  }
  monitor::PgStatement count(session, "SELECT count(*) FROM pg_prepared_statements");
  ASSERT_TRUE(count.step());
  EXPECT_LE(count.integer(0), 2);
}

TEST_F(SharedServer, each_alert_is_sent_by_the_judge_of_its_session) {
  ASSERT_TRUE(Postgres::is_installed()) << "install the package postgresql, as scripts/test does";
  const auto first = monitor();
  const auto second = monitor();
  share(*first, *second);
  constexpr int count = 24;
  for (int session = 0; session < count; ++session) {
    auto& heard = session % 2 == 0 ? first : second;
    (void)say(heard->store, "s" + std::to_string(session), {change(), ending(OutcomeKind::failed)});
  }
  first->look();
  second->look();
  first->keeps_results = false;  // it dies before it stores them
  const auto of_first = first->claim();
  EXPECT_GE(of_first.size(), 1U);
  const auto of_second = second->claim();
  EXPECT_GE(of_second.size(), 5U);
  EXPECT_EQ(second->claim().size(), 0U) << "the results are stored";
  for (const auto id : of_second) EXPECT_FALSE(of_first.contains(id));
  // The second one takes over, and sends what the first one claimed as soon as that is gone.
  for (int round = 0; round < 2; ++round) {
    clock_.advance(5s);
    second->look();
    EXPECT_EQ(second->claim().size(), 0U) << "the first one may be sending it";
  }
  clock_.advance(5s);
  second->look();
  ASSERT_EQ(Sharing(second->store).shares().shards, 256);
  const auto left = second->claim();
  EXPECT_TRUE(std::ranges::includes(left, of_first)) << "it waits longer than the take-over";
  EXPECT_EQ(left.size() + of_second.size(), static_cast<std::size_t>(count));
}

TEST_F(SharedServer, changes_of_health_of_all_monitors_reach_streams_in_order) {
  ASSERT_TRUE(Postgres::is_installed()) << "install the package postgresql, as scripts/test does";
  const auto first = monitor();
  const auto second = monitor();
  share(*first, *second);
  report_all(*first, 24);
  for (int round = 0; round < 2; ++round) {
    first->look();
    second->look();
  }
  EXPECT_GE(first->passed.size(), 24U);
  EXPECT_TRUE(std::ranges::is_sorted(first->passed));
  EXPECT_EQ(first->passed, second->passed);
}

TEST_F(SharedServer, a_monitor_that_lives_sends_what_it_claimed_although_it_judges_less) {
  ASSERT_TRUE(Postgres::is_installed()) << "install the package postgresql, as scripts/test does";
  rules_.messages_max = 1;
  const auto first = monitor();
  constexpr int count = 24;
  for (int session = 0; session < count; ++session) {
    (void)say(first->store, "s" + std::to_string(session), {ending(OutcomeKind::failed)});
    first->look();
  }
  EXPECT_EQ(first->claim().size(), 1U);
  for (int second = 0; second < 65; second += 5) {
    clock_.advance(5s);
    first->look();
  }
  const auto message = Sharing(first->store).claim_message("hook", false, 40s);
  ASSERT_TRUE(message.ok());
  ASSERT_GE(message->size(), 20U) << "the others were sent together";
  const auto second = monitor();
  for (int round = 0; round < 4; ++round) {
    clock_.advance(5s);
    first->look();
    second->look();
    EXPECT_EQ(second->claim().size(), 0U) << "the first one may be sending it";
  }
  ASSERT_EQ(Sharing(second->store).shares().shards, 128);
  for (int round = 0; round < 5; ++round) {
    clock_.advance(5s);
    first->look();
    second->look();
  }
  EXPECT_GE(second->claim().size(), 5U) << "a claim ends, too";
}

/// A machine on which all takes thirty times as long.
class SlowMachine final : public Clock {
 public:
  explicit SlowMachine(const Clock& before) : since_(before.since_boot()) {}
  Millis since_boot() const noexcept override {
    return since_ +
           30 * std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now() - begun_);
  }
  WallTime wall() const noexcept override { return WallTime{1'700'000'000'000ms + since_boot()}; }
  std::string boot_id() const override { return "manual"; }

 private:
  Millis since_;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

TEST_F(SharedServer, a_monitor_keeps_its_leases_while_it_reads_many_sessions) {
  ASSERT_TRUE(Postgres::is_installed()) << "install the package postgresql, as scripts/test does";
  constexpr std::size_t count = 2'000;
  std::vector<Batch> batches;
  for (std::size_t session = 0; session < count; ++session)
    batches.push_back({.session = "s" + std::to_string(session), .reports = {change()}});
  ASSERT_TRUE(monitor()->store.append(batches).ok());
  const SlowMachine clock(clock_);
  auto store = Store::open({.database = Postgres::shared().url(), .clock = &clock});
  ASSERT_TRUE(store.ok()) << store.error().message;
  auto judge = Observer::start(*store, {});
  ASSERT_TRUE(judge.ok()) << judge.error().message;
  for (int look = 0; look < 4 || Sharing(*store).is_taking_over(); ++look) {
    ASSERT_LT(look, 1'000);
    ASSERT_TRUE((*judge)->look().ok());
  }
  EXPECT_EQ((*judge)->watched(), count);
  EXPECT_LE(Sharing(*store).shares().step_downs, 1) << "it reads them again and again";
}

TEST_F(SharedServer, a_take_over_reads_the_gained_sessions_only) {
  ASSERT_TRUE(Postgres::is_installed()) << "install the package postgresql, as scripts/test does";
  const auto first = monitor();
  const auto second = monitor();
  share(*first, *second);
  constexpr std::size_t count = 300;
  report_all(*first, count);
  first->look();
  second->look();
  ASSERT_LT(second->judge->watched(), count);
  const auto spoil = [](const std::string& sessions) {
    (void)Postgres::shared().run("UPDATE sessions SET spec = '{' WHERE " + sessions);
  };
  // The second one could not read again the sessions that it has in memory.
  std::string own;
  for (std::size_t session = 0; session < count; ++session) {
    const auto id = "s" + std::to_string(session);
    if (second->judge->find(id)) own += (own.empty() ? "'" : ", '") + id + "'";
  }
  spoil("name IN (" + own + ")");
  for (int round = 0; round < 4; ++round) {
    clock_.advance(5s);
    second->look_until_read();
  }
  EXPECT_EQ(Sharing(second->store).shares().shards, 256);
  EXPECT_EQ(second->judge->watched(), count);
  // The first one comes back: the second one lets sessions go, and reads none.
  for (int round = 0; round < 5; ++round) {
    clock_.advance(5s);
    (void)Postgres::shared().run("UPDATE sessions SET spec = '{}'");
    first->look_until_read();
    spoil("true");
    second->look();
  }
  EXPECT_EQ(Sharing(second->store).shares().shards, 128);
  EXPECT_EQ(first->judge->watched() + second->judge->watched(), count);
  for (std::size_t session = 0; session < count; ++session) {
    const auto id = "s" + std::to_string(session);
    EXPECT_NE(first->judge->find(id).has_value(), second->judge->find(id).has_value()) << id;
  }
}

TEST_F(SharedServer, a_take_over_goes_on_in_pieces_and_judges_what_is_reported_meanwhile) {
  ASSERT_TRUE(Postgres::is_installed()) << "install the package postgresql, as scripts/test does";
  const auto first = monitor();
  const auto second = monitor();
  share(*first, *second);
  constexpr std::size_t count = 3'000;
  report_all(*first, count);
  first->look();
  second->look();
  const auto of_second = second->judge->watched();
  // A parent waits for its child, whichever of them is read first.
  (void)say(first->store, "parent", {change()});
  (void)say(first->store, "child", {change()}, Creation::allow, {.parent = "parent"});
  (void)say(first->store, "parent", {{.kind = ReportKind::idle}});
  for (int round = 0; round < 3; ++round) {
    first->look();
    second->look();
  }
  EXPECT_EQ(second->store.reader().session("parent")->lifecycle, Lifecycle::waiting);
  for (int round = 0; round < 2; ++round) {
    clock_.advance(5s);
    second->look();
  }
  ASSERT_FALSE(Sharing(second->store).is_taking_over());
  clock_.advance(5s);
  second->look();
  ASSERT_EQ(Sharing(second->store).shares().shards, 256);
  ASSERT_TRUE(Sharing(second->store).is_taking_over());
  EXPECT_LE(second->judge->watched(), of_second + 1'100) << "others wait meanwhile";
  std::string unread;
  for (std::size_t session = 0; session < count && unread.empty(); ++session) {
    const auto id = "s" + std::to_string(session);
    if (!second->judge->find(id)) unread = id;
  }
  ASSERT_FALSE(unread.empty());
  (void)say(second->store, unread, {{.kind = ReportKind::wait, .name = "approval"}});
  second->look();
  const auto reported = second->judge->find(unread);
  ASSERT_TRUE(reported.has_value()) << "a report does not wait for the rest";
  EXPECT_EQ(reported->judged.history.lifecycle, Lifecycle::waiting);
  for (int look = 0; look < 1'000 && Sharing(second->store).is_taking_over(); ++look)
    second->look();
  EXPECT_EQ(second->judge->watched(), count + 2);
  EXPECT_EQ(second->store.reader().session("parent")->lifecycle, Lifecycle::waiting);
  // The time in which nobody judged them does not count.
  clock_.advance(10s);
  second->look();
  EXPECT_EQ(
      Postgres::shared().run("SELECT count(*) FROM sessions WHERE health IN ('dead', 'silent')"),
      "0");
}

TEST_F(SharedServer, a_take_over_finds_the_ends_that_the_former_judge_did_not_see) {
  ASSERT_TRUE(Postgres::is_installed()) << "install the package postgresql, as scripts/test does";
  const auto first = monitor();
  const auto second = monitor();
  share(*first, *second);
  report_all(*first, 40);
  for (int session = 0; session < 40; ++session)
    (void)say(first->store, "s" + std::to_string(session), {{.kind = ReportKind::idle}});
  (void)say(first->store, "old", {change(), ending()});
  for (int passed = 0; passed < 150; passed += 5) {
    first->look();
    second->look();
    clock_.advance(5s);
  }
  const auto keys = [&] {
    const auto found = Sharing(second->store).sessions_to_take_over();
    EXPECT_TRUE(found.ok()) << found.error().message;
    return std::set<SessionKey>(found->begin(), found->end());
  };
  EXPECT_EQ(keys().size(), 40U) << "running ones, however long they were silent";
  std::set<SessionKey> ended;
  for (int session = 0; session < 20; ++session)
    ended.insert(
        say(first->store, "s" + std::to_string(session), {ending(OutcomeKind::failed)})->key);
  EXPECT_EQ(keys().size(), 40U);
  for (int round = 0; round < 4; ++round) {
    clock_.advance(5s);
    second->look();
  }
  EXPECT_EQ(Sharing(second->store).shares().shards, 256);
  EXPECT_EQ(second->claim().size(), ended.size()) << "an alert of each";
  EXPECT_EQ(second->judge->watched(), 20U);
  EXPECT_EQ(keys().size(), 20U) << "each end is judged";
}

TEST_F(SharedServer, sessions_of_a_boot_that_is_over_are_dead_on_whatever_machine) {
  ASSERT_TRUE(Postgres::is_installed()) << "install the package postgresql, as scripts/test does";
  const auto judge = monitor();
  // Machine m booted again. Two machines have the id c: both go on being seen.
  (void)Postgres::shared().run(
      "INSERT INTO watchdog.boots (boot_id, offset_ms, machine, host, seen_ms) VALUES "
      "('m-1', 1000, 'm', 'there', 2000), ('i-1', 1000, 'm', 'one', 2000), ('m-2', 3000, 'm', "
      "'there', 90000), "
      "('c-1', 1000, 'c', 'copy', 89000), ('c-2', 3000, 'c', 'copy', 90000), ('old', 1, NULL, "
      "NULL, "
      "NULL)");
  for (const auto& [id, boot, host] : {std::tuple{"gone", "m-1", "there"},
                                       {"lives", "m-2", "there"},
                                       {"copied", "c-1", "copy"},
                                       {"unknown", "old", "there"},
                                       {"image", "i-1", "one"},
                                       {"other", "m-1", "elsewhere"}}) {
    Report begin{.kind = ReportKind::start};
    begin.detail = ProcessFacts{.pid = 4'711, .start_ticks = 12, .boot_id = boot, .host = host};
    (void)say(judge->store, id, {begin, change()});
  }
  for (int passed = 0; passed < 80; passed += 5) {
    clock_.advance(5s);
    judge->look();
  }
  EXPECT_EQ(Postgres::shared().run("SELECT name FROM watchdog.sessions WHERE health = 'dead'"),
            "gone");
  if (!machine_identity().empty()) {
    EXPECT_EQ(Postgres::shared().run("SELECT count(*) FROM watchdog.boots WHERE machine = '" +
                                     machine_identity() + "' AND seen_ms IS NOT NULL"),
              "1")
        << "a monitor signs its own boot";
  }
}

/// The jump comes after the monitor asked for the time, and before another one's report.
TEST_F(SharedServer, a_clock_that_is_set_ahead_makes_no_session_quiet) {
  ASSERT_TRUE(Postgres::is_installed()) << "install the package postgresql, as scripts/test does";
  auto store = Store::open({.database = Postgres::shared().url()});
  auto other = Store::open({.database = Postgres::shared().url()});
  ASSERT_TRUE(store.ok() && other.ok());
  const auto judge = std::move(*Observer::start(*store, {.alerts = rules_}));
  ASSERT_TRUE(say(*store, "works", {change()}).ok());
  ASSERT_TRUE(judge->look().ok());
  ASSERT_TRUE(judge->arrive().ok());
  (void)Postgres::shared().run(
      "UPDATE watchdog.turn SET offset_ms = coalesce(offset_ms, 0) + 8 * 3600000");
  ASSERT_TRUE(say(*other, "works", {change()}).ok());
  ASSERT_TRUE(judge->look().ok());
  EXPECT_EQ(judge->find("works")->judged.history.absences->size(), 1U);
  EXPECT_EQ(Postgres::shared().run("SELECT reason FROM watchdog.transitions WHERE health NOT IN "
                                   "('unknown', 'starting', 'progressing')"),
            "");
}

TEST_F(SharedServer, each_knows_how_many_sessions_all_judge) {
  ASSERT_TRUE(Postgres::is_installed()) << "install the package postgresql, as scripts/test does";
  const auto first = monitor();
  const auto second = monitor();
  share(*first, *second);
  for (int session = 0; session < 30; ++session)
    (void)say(first->store, "s" + std::to_string(session), {change()});
  for (int round = 0; round < 3; ++round) {
    clock_.advance(1s);
    first->look();
    second->look();
  }
  for (const auto* monitor : {&first, &second}) {
    auto sum = (*monitor)->judge->tally();
    EXPECT_LT(sum.states[static_cast<std::size_t>(SessionState::progressing)], 30);
    sum.add((*monitor)->judge->tally_of_others());
    EXPECT_EQ(sum.states[static_cast<std::size_t>(SessionState::progressing)], 30);
    const auto read = tally_from_json(to_json(sum));
    ASSERT_TRUE(read);
    EXPECT_EQ(read->states, sum.states);
    EXPECT_EQ(read->healths, sum.healths);
  }
  EXPECT_FALSE(tally_from_json("{}"));
  EXPECT_FALSE(tally_from_json(R"({"healths":[],"states":[],"blockedOnPeople":0})"));
}

}  // namespace
}  // namespace watchdog
