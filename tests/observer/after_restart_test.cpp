// A monitor judges sessions whose reports came before it was started, or before it made room.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "judge/source_note.h"
#include "observer/observer.h"
#include "store/event_reader.h"
#include "store/retention.h"
#include "support/manual_clock.h"
#include "support/reports.h"
#include "support/scenario.h"
#include "support/sql.h"
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

Report begin(const std::string& boot, const std::string& host) {
  Report report;
  report.kind = ReportKind::start;
  report.detail = ProcessFacts{.pid = 4'711, .start_ticks = 12, .boot_id = boot, .host = host};
  return report;
}

Report wait_for(std::string_view subject) {
  Report report;
  report.kind = ReportKind::wait;
  report.name = subject;
  return report;
}

class AfterRestart : public testing::Test {
 protected:
  TempDir dir;
  std::filesystem::path path = dir / "w.db";
  const std::string host = this_process().host;

  Store open(const Clock& clock, std::optional<PolicyPatch> policy = PolicyPatch{}) const {
    auto store = Store::open({.database = path, .clock = &clock, .policy = std::move(policy)});
    EXPECT_TRUE(store.ok()) << (store ? "" : store.error().message);
    return std::move(*store);
  }
  static void pass(Observer& observer, ManualClock& clock, Millis time) {
    for (; time > 0ms; time -= 1s) {
      clock.advance(1s);
      ASSERT_TRUE(observer.look().ok());
    }
  }
  static HealthKind health_of(Store& store, const std::string& session) {
    const auto row = store.reader().session(session);
    return row ? row->health : HealthKind::unknown;
  }
};

TEST_F(AfterRestart, a_run_from_before_the_machine_was_started_again_is_dead) {
  {
    ManualClock before("boot-1");
    auto store = open(before);
    (void)say(store, "worked", {begin("boot-1", host), change()});
    (void)say(store, "waited", {begin("boot-1", host), change(), wait_for("approval")});
    (void)say(store, "beat", {begin("boot-1", host), beat(), change()});
    (void)say(store, "elsewhere", {begin("boot-1", "another-host"), change()});
    (void)say(store, "nameless", {change()});
    (void)say(store, "done", {begin("boot-1", host), change(), ending()});
  }
  ManualClock after("boot-2");
  after.advance(60s);
  auto store = open(after);
  auto observer = Observer::start(store, {});
  ASSERT_TRUE(observer.ok());
  (void)say(store, "goes on", {begin("boot-2", "another-host"), change()});
  pass(**observer, after, 120s);
  EXPECT_EQ(health_of(store, "worked"), HealthKind::dead);
  EXPECT_EQ(health_of(store, "waited"), HealthKind::dead);
  EXPECT_EQ(health_of(store, "beat"), HealthKind::dead);
  EXPECT_NE(health_of(store, "elsewhere"), HealthKind::dead) << "that machine may go on";
  EXPECT_NE(health_of(store, "nameless"), HealthKind::dead) << "its process is not known";
  EXPECT_EQ(store.reader().session("done")->lifecycle, Lifecycle::completed);
}

TEST_F(AfterRestart, a_session_that_starts_again_after_the_boot_lives) {
  {
    ManualClock before("boot-1");
    auto store = open(before);
    (void)say(store, "s", {begin("boot-1", host), beat(), change()});
  }
  ManualClock after("boot-2");
  after.advance(60s);
  auto store = open(after);
  auto observer = Observer::start(store, {});
  ASSERT_TRUE(observer.ok());
  (void)say(store, "s", {begin("boot-9", "another-host"), change()});
  pass(**observer, after, 120s);
  EXPECT_NE(health_of(store, "s"), HealthKind::dead);
}

TEST_F(AfterRestart, an_absence_of_the_observer_does_not_count_as_a_report) {
  ManualClock clock;
  auto store = open(clock);
  auto observer = Observer::start(store, {});
  ASSERT_TRUE(observer.ok());
  (void)say(store, "s", {change()});
  ASSERT_TRUE((*observer)->look().ok());
  const auto newest = newest_report((*observer)->find("s")->judged.history);
  clock.advance(1h);
  ASSERT_TRUE((*observer)->look().ok());
  EXPECT_EQ(newest_report((*observer)->find("s")->judged.history), newest);
  (void)say(store, "s", {change()});
  ASSERT_TRUE((*observer)->look().ok());
  EXPECT_GT(newest_report((*observer)->find("s")->judged.history), newest);
}

/// Retention as the monitor does it while the file is too large: it ends what nobody attends to.
void make_room(Store& store, Observer& observer, std::int64_t bytes_max, Millis attended_for) {
  ASSERT_TRUE(observer.checkpoint().ok());
  Retention retention{.bytes_max = bytes_max, .folded_through = observer.folded()};
  bool more_end = true;
  for (int piece = 0; piece < 1'000; ++piece) {
    const auto ended = observer.abandon(store.now() - attended_for, 200);
    ASSERT_TRUE(ended.ok());
    more_end = *ended > 0;
    retention.more_end = more_end;
    const auto more = RetentionActs(store).trim(retention);
    ASSERT_TRUE(more.ok()) << more.error().message;
    observer.forget(RetentionActs(store).drain_dropped());
    if (!*more && !more_end) return;
  }
  FAIL() << "retention does not come to an end";
}

TEST_F(AfterRestart, a_limit_of_size_never_ends_a_session_that_reported_lately) {
  constexpr Millis attended_for{600'000};
  const auto seed = test::random_seed();
  std::mt19937_64 random(seed);
  ManualClock clock;
  auto store = open(clock);
  auto observer = Observer::start(store, {});
  ASSERT_TRUE(observer.ok());
  std::map<std::string, Millis> reported;
  for (int step = 0; step < 400 && !HasFatalFailure(); ++step) {
    const auto id = "s" + std::to_string(random() % 12);
    const auto count = 1 + random() % 400;
    (void)say(store, id, std::vector<Report>(count, change("x", std::string(150, 'd'))));
    reported[id] = clock.since_boot();
    ASSERT_TRUE((*observer)->look().ok());
    clock.advance(Millis{static_cast<std::int64_t>(random() % 120'000)});
    ASSERT_TRUE((*observer)->look().ok());
    if (step % 4 == 3) make_room(store, **observer, 300'000, attended_for);
    for (const auto& [session, at] : reported) {
      if (clock.since_boot() - at >= attended_for) continue;
      const auto row = store.reader().session(session);
      ASSERT_TRUE(row.ok()) << session << " vanished, seed " << seed << ", step " << step;
      ASSERT_EQ(row->lifecycle, Lifecycle::running)
          << session << " was ended, seed " << seed << ", step " << step;
    }
  }
}

TEST_F(AfterRestart, alerts_that_nobody_got_keep_their_session) {
  ManualClock clock;
  auto store = open(clock);
  auto observer = Observer::start(store, {.alerts = AlertRules{.hold = 0ms, .channels = {"hook"}}});
  ASSERT_TRUE(observer.ok());
  (void)say(store, "old", {change()});
  clock.advance(24h * 31);
  ASSERT_TRUE((*observer)->look().ok());
  Report failed = ending();
  failed.detail = Outcome{.kind = OutcomeKind::failed, .reason = "error", .error = "no disk"};
  (void)say(store, "old", {failed});
  ASSERT_TRUE((*observer)->look().ok());
  ASSERT_EQ(store.reader().alerts({})->size(), 1U);
  const auto trim = [&] {
    EXPECT_TRUE((*observer)->look().ok());
    const Retention hour{.ended_for = 1h, .folded_through = (*observer)->folded()};
    while (*RetentionActs(store).trim(hour)) {
    }
  };
  clock.advance(90min);
  trim();
  EXPECT_EQ(store.reader().alerts({})->size(), 1U);
  EXPECT_TRUE(store.reader().session("old").ok());
  // Not for ever.
  clock.advance(1h);
  trim();
  EXPECT_FALSE(store.reader().session("old").ok());
}

TEST_F(AfterRestart, a_session_that_goes_on_during_a_round_keeps_its_new_work) {
  ManualClock clock;
  auto store = open(clock);
  for (int at = 0; at < 5; ++at)
    (void)say(store, "old" + std::to_string(at), std::vector<Report>(600, change()));
  for (int at = 0; at < 5; ++at) (void)say(store, "old" + std::to_string(at), {ending()});
  clock.advance(24h * 31);
  Retention retention{.folded_through = EventReader(store.reader()).newest()->first};
  ASSERT_TRUE(*RetentionActs(store).trim(retention));
  // Work that was done and ended within this round.
  for (int at = 0; at < 5; ++at)
    (void)say(store, "old" + std::to_string(at),
              {begin("boot-1", host), change("fresh"), ending()});
  while (*RetentionActs(store).trim(retention)) {
  }
  for (int at = 0; at < 5; ++at) {
    const auto events = test::all_events(store.reader(), "old" + std::to_string(at));
    ASSERT_GE(events.size(), 3U) << at;
    EXPECT_EQ(events[events.size() - 2].report.name, "fresh");
  }
}

TEST_F(AfterRestart, thresholds_for_all_sessions_hold_for_those_that_state_none) {
  ManualClock clock;
  const PolicyPatch own{.stuck_threshold = 9};
  const auto threshold = [](Observer& observer, const std::string& session) {
    return observer.find(session)->judged.policy->stuck_threshold;
  };
  {
    auto store = open(clock, PolicyPatch{.heartbeat_interval = 20s, .stuck_threshold = 3});
    auto observer = Observer::start(store, {});
    ASSERT_TRUE(observer.ok());
    (void)say(store, "plain", {change()});
    (void)say(store, "own", {change()}, Creation::demand, {.policy = own});
    (void)say(store, "patched", {change()});
    Report patch{.kind = ReportKind::policy};
    patch.detail = PolicyPatch{.stuck_threshold = 7};
    (void)say(store, "patched", {patch});
    ASSERT_TRUE((*observer)->look().ok());
    EXPECT_EQ(threshold(**observer, "plain"), 3);
    EXPECT_EQ(threshold(**observer, "own"), 9);
    EXPECT_EQ(threshold(**observer, "patched"), 7);
    EXPECT_EQ((*observer)->find("own")->judged.policy->heartbeat_interval, 20s);
    for (int beats = 0; beats < 3; ++beats) {
      clock.advance(1s);
      (void)say(store, "plain", {beat(Source::loop)});
      (void)say(store, "own", {beat(Source::loop)});
    }
    ASSERT_TRUE((*observer)->look().ok());
    EXPECT_EQ(health_of(store, "plain"), HealthKind::stuck);
    EXPECT_NE(health_of(store, "own"), HealthKind::stuck);
    ASSERT_TRUE((*observer)->checkpoint().ok());
  }
  // Other settings after a restart, with snapshots and without.
  for (const bool with_snapshots : {true, false}) {
    auto store = open(clock, PolicyPatch{.stuck_threshold = 4});
    auto observer = Observer::start(store, {});
    ASSERT_TRUE(observer.ok());
    EXPECT_EQ(threshold(**observer, "plain"), 4) << with_snapshots;
    EXPECT_EQ(threshold(**observer, "own"), 9) << with_snapshots;
    EXPECT_EQ(threshold(**observer, "patched"), 7) << with_snapshots;
    EXPECT_EQ((*observer)->find("plain")->judged.policy->heartbeat_interval, 10s);
    if (with_snapshots) test::run_sql(path, "DELETE FROM snapshots");
  }
  // A reader without settings shows what the judge used.
  auto store = open(clock, PolicyPatch{.stuck_threshold = 4});
  auto observer = Observer::start(store, {});
  ASSERT_TRUE((*observer)->checkpoint().ok());
  auto reader = StoreReader::open(path);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(reader->fold(*reader->session("plain"))->policy->stuck_threshold, 4);
}

}  // namespace
}  // namespace watchdog
