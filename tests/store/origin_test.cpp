// The column `origin`: what a writer stores, and what a reader makes of numbers that it does not
// know.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "observer/observer.h"
#include "store/event_reader.h"
#include "store/retention.h"
#include "support/manual_clock.h"
#include "support/reports.h"
#include "support/sql.h"
#include "support/temp_dir.h"
#include "watchdog/tracker.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;
using test::all_events;
using test::beat;
using test::change;

class Origins : public testing::Test {
 protected:
  test::TempDir dir;
  test::ManualClock clock;
  std::filesystem::path path = dir / "w.db";
  Result<Store> opened = Store::open({.database = path, .clock = &clock});
  Store& store = *opened;

  void say_by(ReportOrigin by, std::vector<Report> reports) {
    std::vector<Batch> batches{{.session = "s", .reports = std::move(reports), .by = by}};
    const auto receipts = store.append(batches);
    ASSERT_TRUE(receipts && receipts->front());
  }
  [[nodiscard]] std::vector<ReportOrigin> stored() {
    std::vector<ReportOrigin> origins;
    for (const auto& event : all_events(store.reader(), "s")) origins.push_back(event.origin);
    return origins;
  }
  void run_sql(const std::string& sql) { test::run_sql(path, sql); }
};

TEST_F(Origins, are_stored_with_each_report_of_a_batch) {
  std::vector<ReportOrigin> said;
  for (std::size_t number = 0; number < std::size(Names<ReportOrigin>::all); ++number) {
    const auto by = static_cast<ReportOrigin>(number);
    say_by(by, {change(), beat(), change()});
    said.insert(said.end(), 3, by);
  }
  EXPECT_EQ(stored(), said);
  std::vector<Batch> both{
      {.session = "s", .reports = {beat()}, .by = ReportOrigin::proxy},
      {.session = "s", .reports = {beat()}, .by = ReportOrigin::agent},
  };
  ASSERT_TRUE(store.append(both));
  said.insert(said.end(), {ReportOrigin::proxy, ReportOrigin::agent});
  EXPECT_EQ(stored(), said) << "one transaction, two origins";
}

TEST_F(Origins, that_this_program_does_not_know_stay_unknown) {
  for (int i = 0; i < 4; ++i) say_by(ReportOrigin::hooks, {change()});
  run_sql(
      "UPDATE events SET origin = 77 WHERE seq = 1; UPDATE events SET origin = -1 WHERE seq = 2; "
      "UPDATE events SET origin = NULL WHERE seq = 3");
  constexpr auto unknown = ReportOrigin::unknown;
  EXPECT_EQ(stored(), (std::vector{unknown, unknown, unknown, ReportOrigin::hooks}));
  const auto judged = store.reader().fold(*store.reader().session("s"));
  ASSERT_TRUE(judged);
  ASSERT_EQ(judged->history.sources.size(), 2U);
  EXPECT_EQ(judged->history.sources[0].reports, 3);
  EXPECT_EQ(judged->history.sources[1].origin, ReportOrigin::hooks);
}

TEST_F(Origins, of_what_the_observer_writes_are_the_monitor) {
  auto observer = Observer::start(store, {});
  ASSERT_TRUE(observer.ok());
  say_by(ReportOrigin::agent, {change()});
  ASSERT_TRUE((*observer)->look().ok());
  clock.advance(24h);
  const auto ended = (*observer)->abandon(store.now(), 10);
  ASSERT_TRUE(ended.ok()) << ended.error().message;
  EXPECT_EQ(*ended, 1U);
  EXPECT_EQ(stored(), (std::vector{ReportOrigin::agent, ReportOrigin::monitor}));
  ASSERT_TRUE(store.append_observer({Millis{5'000}}));
  const auto gap = EventReader(store.reader()).after(2, 10);
  ASSERT_TRUE(gap && gap->size() >= 1U);
  EXPECT_EQ(gap->back().report.kind, ReportKind::observer);
  EXPECT_EQ(gap->back().origin, ReportOrigin::monitor);
}

TEST_F(Origins, keep_heartbeats_of_two_origins_apart_when_rows_are_merged) {
  say_by(ReportOrigin::agent, {change()});
  constexpr int rows = 200;
  for (int row = 0; row < rows; ++row) {
    clock.advance(1s);
    say_by(row < rows / 2 ? ReportOrigin::agent : ReportOrigin::run, {beat(Source::sidecar)});
  }
  const auto folded = [&] { return store.reader().fold(*store.reader().session("s"))->history; };
  const auto before = folded();
  clock.advance(2h);
  for (int piece = 0; piece < 1'000; ++piece) {
    const auto more =
        RetentionActs(store).trim({.folded_through = EventReader(store.reader()).newest()->first});
    ASSERT_TRUE(more.ok());
    if (!*more) break;
  }
  const auto left = stored();
  EXPECT_LT(left.size(), 120U) << "rows were merged";
  const auto after = folded();
  ASSERT_EQ(after.sources.size(), before.sources.size());
  for (std::size_t at = 0; at < after.sources.size(); ++at) {
    EXPECT_EQ(after.sources[at].origin, before.sources[at].origin);
    EXPECT_EQ(after.sources[at].reports, before.sources[at].reports);
    EXPECT_EQ(after.sources[at].first, before.sources[at].first);
    EXPECT_EQ(after.sources[at].last, before.sources[at].last);
  }
}

TEST_F(Origins, of_a_tracker_are_its_agent_or_the_program_that_reports_for_it) {
  for (const auto by : {ReportOrigin::agent, ReportOrigin::run}) {
    ProgressTracker::Config config{
        .session = std::string(name_of(by)), .database = dir / "own.db", .sidecar = false};
    if (by != ReportOrigin::agent) config.origin = by;
    ProgressTracker tracker(config);
    tracker.state_change("step");
    ASSERT_TRUE(tracker.flush());
    ASSERT_EQ(tracker.judged().history.sources.size(), 1U);
    EXPECT_EQ(tracker.judged().history.sources[0].origin, by);
    auto reader = StoreReader::open(dir / "own.db");
    for (const auto& event : all_events(*reader, config.session)) EXPECT_EQ(event.origin, by);
  }
}

}  // namespace
}  // namespace watchdog
