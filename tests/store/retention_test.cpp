#include "store/retention.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "observer/observer.h"
#include "store/event_reader.h"
#include "support/manual_clock.h"
#include "support/reports.h"
#include "support/scenario.h"
#include "support/temp_dir.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;
using test::all_events;
using test::beat;
using test::change;
using test::ending;
using test::ManualClock;
using test::say;
using test::TempDir;

class RetentionTest : public testing::Test {
 protected:
  TempDir dir;
  ManualClock clock;
  std::filesystem::path path = dir / "w.db";
  Result<Store> opened = Store::open({.database = path, .clock = &clock});
  Store& store = *opened;

  void trim(Retention retention) {
    retention.folded_through = EventReader(store.reader()).newest()->first;
    for (int piece = 0; piece < 100'000; ++piece) {
      const auto more = RetentionActs(store).trim(retention);
      ASSERT_TRUE(more.ok()) << more.error().message;
      if (!*more) return;
    }
    FAIL() << "retention does not come to an end";
  }
};

TEST_F(RetentionTest, ended_sessions_go_after_their_time_and_running_ones_stay) {
  (void)say(store, "old", {change(), ending()}, Creation::demand, {.labels = {{"k", "v"}}});
  (void)say(store, "running", {change()});
  clock.advance(24h * 31);
  (void)say(store, "fresh", {change(), ending()});
  trim({});
  EXPECT_FALSE(store.reader().session("old").ok());
  EXPECT_TRUE(store.reader().session("running").ok());
  EXPECT_TRUE(store.reader().session("fresh").ok());
  EXPECT_EQ(store.reader().sessions({.label_key = "k", .label_value = "v"})->size(), 0U);
}

TEST_F(RetentionTest, dead_session_goes_from_file_and_memory_and_its_key_is_not_given_again) {
  auto observer = Observer::start(store, {});
  ASSERT_TRUE(observer.ok());
  const auto key = say(store, "s", {change(), {.kind = ReportKind::exited}})->key;
  for (int second = 0; second < 60; ++second) {
    clock.advance(1s);
    ASSERT_TRUE((*observer)->look().ok());
  }
  ASSERT_EQ(store.reader().session("s")->health, HealthKind::dead);
  clock.advance(24h * 31);
  ASSERT_TRUE((*observer)->look().ok());
  trim({});
  EXPECT_FALSE(store.reader().session("s").ok());
  (*observer)->forget(RetentionActs(store).drain_dropped());
  EXPECT_EQ((*observer)->watched(), 0U);
  EXPECT_GT(say(store, "t", {change()})->key, key);
}

TEST_F(RetentionTest, memory_that_is_shed_is_read_again) {
  (void)say(store, "s", {change(), change()});
  RetentionActs(store).shed_memory();
  const auto third = say(store, "s", {change(), ending()});
  EXPECT_FALSE(third->created);
  EXPECT_EQ(EventReader(store.reader()).page(third->key, 0, 10)->events.size(), 4U);
  RetentionActs(store).shed_memory();
  EXPECT_EQ(say(store, "s", {change()})->late, 1U) << "it ended";
}

TEST_F(RetentionTest, sequence_numbers_are_not_given_out_again) {
  (void)say(store, "s", {change(), change(), ending()});
  const auto last = EventReader(store.reader()).newest()->first;
  trim({.ended_for = Millis{-1}});
  ASSERT_EQ(EventReader(store.reader()).newest()->first, 0);
  EXPECT_GT(say(store, "t", {change()})->last, last);
  auto again = Store::open({.database = path, .clock = &clock});
  EXPECT_GT(say(*again, "t", {change()})->last, last + 1);
}

TEST_F(RetentionTest, size_limit_takes_ended_sessions_first_then_the_oldest_events) {
  const std::vector<Report> many(2'000, change("x", std::string(180, 'd')));
  (void)say(store, "ended", many);
  (void)say(store, "ended", {ending()});
  (void)say(store, "running", many);
  trim({.bytes_max = 700'000});
  EXPECT_FALSE(store.reader().session("ended").ok());
  EXPECT_EQ(all_events(store.reader(), "running").size(), 2'000U);
  trim({.bytes_max = 400'000});
  const auto left = all_events(store.reader(), "running");
  EXPECT_EQ(left.size(), 1'000U) << "the newest stay";
  EXPECT_EQ(left.back().seq, store.reader().session("running")->head);
}

TEST_F(RetentionTest, heartbeats_of_days_merge_into_few_rows_with_their_counts) {
  auto observer = Observer::start(store, {});
  ASSERT_TRUE(observer.ok());
  (void)say(store, "s", {change()});
  const int beats = test::repetitions(60'000, 3);
  for (int i = 0; i < beats; ++i) {
    clock.advance(10s);
    (void)say(store, "s", {beat(Source::sidecar)});
    if (i % 1000 == 0) {
      ASSERT_TRUE((*observer)->look().ok());
    }
  }
  ASSERT_TRUE((*observer)->look().ok());
  ASSERT_TRUE((*observer)->checkpoint().ok());
  clock.advance(2h);
  const auto before = store.reader().fold(*store.reader().session("s"));
  trim({});
  const auto events = all_events(store.reader(), "s");
  EXPECT_LT(events.size(), 1'000U) << "rows left of " << beats;
  std::int64_t counted = 0;
  for (const auto& event : events) {
    if (const auto* row = std::get_if<Heartbeats>(&event.report.detail)) counted += row->count;
  }
  EXPECT_EQ(counted, beats);
  EXPECT_EQ(store.reader().fold(*store.reader().session("s"))->history.heartbeats,
            before->history.heartbeats);
}

TEST_F(RetentionTest, audit_entries_are_kept_as_long_as_sessions_and_the_newest_1000_longer) {
  const auto acts = [&](int count, const std::string& actor) {
    const AuditEntry entry{.at = clock.wall(),
                           .actor = actor,
                           .action = AuditAction::abort_tool,
                           .target = "t/c",
                           .outcome = "ok"};
    return store.alone([&]() -> Result<void> {  // in one transaction
      for (int i = 0; i < count; ++i)
        if (auto kept = store.keep(entry); !kept) return kept;
      return {};
    });
  };
  ASSERT_TRUE(acts(1'500, "old").ok());
  clock.advance(Millis{40LL * 24 * 3'600'000});
  ASSERT_TRUE(acts(10, "new").ok());
  trim({.ended_for = Millis{50LL * 24 * 3'600'000}});
  EXPECT_EQ(store.reader().audit(0, 10'000)->size(), 1'510U);
  trim({});
  const auto kept = store.reader().audit(0, 10'000);
  ASSERT_EQ(kept->size(), 1'000U);
  EXPECT_EQ(kept->front().id, 511);
  EXPECT_EQ(kept->front().actor, "old");
  EXPECT_EQ(kept->back().actor, "new");
  EXPECT_EQ(kept->back().action, AuditAction::abort_tool);
  EXPECT_EQ(kept->back().target, "t/c");
  EXPECT_EQ(store.reader().audit(1'505, 3)->front().id, 1'506);
  EXPECT_EQ(store.reader().audit(1'505, 3)->size(), 3U);
}

constexpr Millis day{24LL * 3'600'000};

// Decisions by age must not depend on a clock that anybody may set.
TEST_F(RetentionTest, wrong_wall_clock_drops_nothing_and_is_reported) {
  std::mt19937 random(test::random_seed());
  const AuditEntry entry{.at = clock.wall(), .actor = "a", .target = "t", .outcome = "ok"};
  const auto acted = store.alone([&]() -> Result<void> {  // in one transaction
    for (int i = 0; i < 1'001; ++i)
      if (auto kept = store.keep(entry); !kept) return kept;
    return {};
  });
  ASSERT_TRUE(acted.ok());
  (void)say(store, "ended", {change(), ending()});
  (void)say(store, "running", {change()});
  clock.advance(1h);
  ASSERT_FALSE(RetentionActs(store).retention_waits());
  for (int round = 0; round < 20; ++round) {
    const auto wrong = Millis{(random() % 2 == 0 ? 1 : -1) *
                              static_cast<std::int64_t>(3'600'001 + random() % 10'000'000'000)};
    clock.set_wrong(wrong);
    const auto waits = RetentionActs(store).retention_waits();
    ASSERT_TRUE(waits) << wrong.count();
    EXPECT_NE(waits->find(wrong > 0ms ? "ahead of" : "behind"), std::string::npos) << *waits;
    trim({});
    clock.advance(30s);
  }
  // Also what ended while it was wrong ages as it should.
  clock.set_wrong(40 * day);
  (void)say(store, "ended-wrong", {change(), ending()});
  clock.set_wrong(0ms);
  ASSERT_FALSE(RetentionActs(store).retention_waits());
  trim({});
  EXPECT_TRUE(store.reader().session("ended").ok());
  EXPECT_EQ(store.reader().audit(0, 10'000)->size(), 1'001U);
  clock.advance(31 * day);
  trim({});
  EXPECT_FALSE(store.reader().session("ended").ok());
  EXPECT_FALSE(store.reader().session("ended-wrong").ok());
  EXPECT_TRUE(store.reader().session("running").ok());
}

TEST_F(RetentionTest, boot_with_a_wrong_clock_drops_nothing_while_it_may_be_set) {
  (void)say(store, "ended", {change(), ending()});
  ManualClock rebooted("second boot");
  rebooted.set_wrong(40 * day);
  auto again = Store::open({.database = path, .clock = &rebooted});
  ASSERT_TRUE(again.ok());
  const auto trim_again = [&] {
    while (*RetentionActs(*again).trim(
        {.folded_through = EventReader(again->reader()).newest()->first})) {
    }
  };
  EXPECT_TRUE(RetentionActs(*again).retention_waits());
  trim_again();
  rebooted.advance(30s);
  rebooted.set_wrong(0ms);
  EXPECT_TRUE(RetentionActs(*again).retention_waits());
  rebooted.advance(5 * day);
  EXPECT_TRUE(RetentionActs(*again).retention_waits())
      << "its time line is ahead of the clock for good";
  trim_again();
  EXPECT_TRUE(again->reader().session("ended").ok());
  rebooted.set_wrong(40 * day);  // as it does after 40 days
  EXPECT_FALSE(RetentionActs(*again).retention_waits());
  trim_again();
  EXPECT_FALSE(again->reader().session("ended").ok());
}

TEST_F(RetentionTest, limit_of_size_holds_whatever_the_clock_says) {
  const std::vector<Report> many(2'000, change("x", std::string(180, 'd')));
  (void)say(store, "older", many);
  (void)say(store, "older", {ending()});
  (void)say(store, "newer", many);
  clock.set_wrong(-40 * day);
  (void)say(store, "newer", {ending()});
  const auto limit = store.bytes() * 2 / 3;
  trim({.bytes_max = limit});
  EXPECT_FALSE(store.reader().session("older").ok());
  EXPECT_TRUE(store.reader().session("newer").ok()) << "the oldest goes first";
  EXPECT_LE(store.bytes(), limit);
}

class Abandoned : public RetentionTest {
 protected:
  Result<std::unique_ptr<Observer>> observer = Observer::start(store, {});

  std::size_t abandon(Millis quiet) {
    EXPECT_TRUE((*observer)->look().ok());
    const auto count = (*observer)->abandon(store.now() - quiet, 1'000);
    EXPECT_TRUE(count.ok());
    return count.ok() ? *count : 0;
  }
  Lifecycle lifecycle(const std::string& session) {
    const auto row = store.reader().session(session);
    return row ? row->lifecycle : Lifecycle::failed;
  }
};

TEST_F(Abandoned, sessions_end_that_nobody_else_will_end_and_go_like_ended_ones) {
  Report here{.kind = ReportKind::start};
  here.detail = this_process();
  auto elsewhere_facts = this_process();
  elsewhere_facts.boot_id = "another boot";
  Report elsewhere{.kind = ReportKind::start};
  elsewhere.detail = elsewhere_facts;
  (void)say(store, "no-process", {change()});
  (void)say(store, "silent", {beat(Source::sidecar), beat(Source::sidecar)});
  (void)say(store, "waits", {{.kind = ReportKind::wait, .name = "human"}});
  (void)say(store, "empty", {});
  (void)say(store, "of-another-boot", {elsewhere, change()});
  (void)say(store, "runs-here", {here, change()});
  clock.advance(20 * day);
  (void)say(store, "younger", {change()});
  clock.advance(11 * day);
  EXPECT_EQ(abandon(30 * day), 5U);
  EXPECT_EQ(lifecycle("runs-here"), Lifecycle::running);
  EXPECT_EQ(lifecycle("younger"), Lifecycle::running);
  for (const auto* session : {"no-process", "silent", "waits", "empty", "of-another-boot"}) {
    EXPECT_EQ(lifecycle(session), Lifecycle::incomplete) << session;
    EXPECT_EQ(store.reader().session(session)->outcome_reason, "abandoned") << session;
  }
  EXPECT_EQ(abandon(30 * day), 0U);
  trim({});
  for (const auto* session : {"no-process", "silent", "waits", "empty", "of-another-boot"})
    EXPECT_FALSE(store.reader().session(session).ok()) << session;
  EXPECT_TRUE(store.reader().session("runs-here").ok());
  EXPECT_TRUE(store.reader().session("younger").ok());
}

TEST_F(Abandoned, quietest_come_first) {
  for (int at = 0; at < 10; ++at) {
    (void)say(store, "s" + std::to_string(at), {change()});
    clock.advance(1min);
  }
  (void)say(store, "s0", {change()});
  ASSERT_TRUE((*observer)->look().ok());
  EXPECT_EQ(*(*observer)->abandon(store.now(), 3), 3U);
  for (const int at : {1, 2, 3})
    EXPECT_EQ(lifecycle("s" + std::to_string(at)), Lifecycle::incomplete);
  for (const int at : {0, 4, 9}) EXPECT_EQ(lifecycle("s" + std::to_string(at)), Lifecycle::running);
  // The store accepts a session that comes back: it begins its next attempt.
  (void)say(store, "s1", {{.kind = ReportKind::start}, change()});
  EXPECT_EQ(lifecycle("s1"), Lifecycle::running);
}

TEST_F(Abandoned, many_that_never_end_stay_within_the_limit_of_size) {
  constexpr int sessions = 6'000;
  constexpr std::int64_t limit = 2'000'000;
  for (int at = 0; at < sessions; at += 500) {
    std::vector<Batch> batches;
    for (int next = at; next < at + 500; ++next) {
      batches.push_back({.session = "s" + std::to_string(next),
                         .creation = Creation::attach,
                         .spec = {.agent = "a", .labels = {{"run", std::to_string(next)}}},
                         .reports = {change("step", std::to_string(next))}});
    }
    ASSERT_TRUE(store.append(batches).ok());
    ASSERT_TRUE((*observer)->look().ok());
  }
  ASSERT_TRUE((*observer)->checkpoint().ok());
  ASSERT_GT(store.bytes(), 2 * limit);
  clock.advance(11min);
  for (int piece = 0; piece < 10'000; ++piece) {
    std::size_t ended = 0;
    if (RetentionActs(store).wants_room()) ended = abandon(10min);
    const auto more = RetentionActs(store).trim(
        {.bytes_max = limit, .folded_through = (*observer)->folded(), .more_end = ended > 0});
    ASSERT_TRUE(more.ok());
    (*observer)->forget(RetentionActs(store).drain_dropped());
    if (!*more && ended == 0) break;
  }
  EXPECT_LE(store.bytes(), limit);
  EXPECT_FALSE(store.reader().session("s0").ok());
  EXPECT_TRUE(store.reader().session("s" + std::to_string(sessions - 1)).ok()) << "the newest stay";
  EXPECT_TRUE(store.reader().sessions({.label_key = "run", .label_value = "0"})->empty());
}

// Merging must not change what a replay from the beginning concludes.
TEST_F(RetentionTest, merging_keeps_every_transition_and_every_count) {
  std::mt19937 random(test::random_seed());
  auto observer = Observer::start(store, {});
  ASSERT_TRUE(observer.ok());
  for (int i = 0; i < test::repetitions(4'000, 1); ++i) {
    clock.advance(Millis{random() % 9'000});
    const auto kind = random() % 40;
    if (kind == 0)
      (void)say(store, "s", {change()});
    else if (kind == 1)
      clock.advance(60s);
    else
      (void)say(store, "s", {beat(kind % 3 == 0 ? Source::loop : Source::sidecar)});
    ASSERT_TRUE((*observer)->look().ok());
  }
  ASSERT_TRUE((*observer)->checkpoint().ok());
  const auto fold_all = [&](std::vector<Transition>& changes) {
    Case judged;
    const auto row = store.reader().session("s");
    judged.session = row->key;
    const auto events = EventReader(store.reader()).after(0, 100'000);
    for (const auto& event : *events) {
      if (event.session == row->key || judged.history.seq > 0) judged.fold(event, changes);
    }
    return std::pair(judged, events->size());
  };
  std::vector<Transition> before;
  const auto [whole, rows_before] = fold_all(before);
  clock.advance(2h);
  trim({});
  std::vector<Transition> after;
  const auto [merged, rows_after] = fold_all(after);
  EXPECT_LT(rows_after, rows_before);
  EXPECT_EQ(merged.history.heartbeats, whole.history.heartbeats);
  EXPECT_EQ(merged.history.state_changes, whole.history.state_changes);
  EXPECT_EQ(merged.history.loop_beats_since_change, whole.history.loop_beats_since_change);
  ASSERT_EQ(after.size(), before.size());
  for (std::size_t at = 0; at < after.size(); ++at) {
    ASSERT_EQ(after[at].seq, before[at].seq);
    ASSERT_EQ(after[at].tick, before[at].tick);
    ASSERT_TRUE(after[at].health.same_as(before[at].health));
  }
}

}  // namespace
}  // namespace watchdog
