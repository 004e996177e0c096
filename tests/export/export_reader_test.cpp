// The exporter reads what was judged.
#include "export/export_reader.h"

#include <gtest/gtest.h>

#include "observer/observer.h"
#include "support/manual_clock.h"
#include "support/reports.h"
#include "support/temp_dir.h"

namespace watchdog::monitor {
namespace {

TEST(ExportReader, waits_for_the_judge_so_that_no_span_lacks_its_changes_of_health) {
  const test::TempDir directory;
  const test::ManualClock clock;
  const auto database = directory / "w.db";
  auto store = Store::open({.database = database, .clock = &clock});
  ASSERT_TRUE(store.ok());
  auto judge = Observer::start(*store, {});
  ASSERT_TRUE(judge.ok());
  Seq judged = (*judge)->folded();
  ExportReader reader({.database = database, .judged = [&] { return judged; }});
  ASSERT_TRUE(reader.open());
  for (int turn = 0; turn < 3; ++turn) {
    // A report is stored before it is judged, and the exporter may look in between.
    (void)test::say(*store, "s" + std::to_string(turn), {test::change(), test::ending()});
    EXPECT_EQ(reader.read().size(), 0U);
    ASSERT_TRUE((*judge)->look().ok());
    EXPECT_EQ(reader.read().size(), 0U) << "nobody said yet that it is judged";
    judged = (*judge)->folded();
    const auto items = reader.read();
    ASSERT_GE(items.size(), 2U);
    const auto span = std::ranges::find(items, ExportSignal::traces, &ExportItem::signal);
    ASSERT_NE(span, items.end());
    EXPECT_NE(span->json.find("watchdog.health"), std::string::npos) << span->json;
    EXPECT_EQ(reader.read().size(), 0U) << "each once";
  }
}

TEST(ExportReader, reads_all_where_nobody_says_what_is_judged) {
  const test::TempDir directory;
  auto store = Store::open({.database = directory / "w.db"});
  ASSERT_TRUE(store.ok());
  ExportReader reader({.database = directory / "w.db"});
  ASSERT_TRUE(reader.open());
  (void)test::say(*store, "s", {test::change(), test::ending()});
  EXPECT_EQ(reader.read().size(), 1U);
}

}  // namespace
}  // namespace watchdog::monitor
