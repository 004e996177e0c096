// Files that older versions made.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <fstream>
#include <iterator>
#include <regex>

#include "observer/observer.h"
#include "store/event_reader.h"
#include "store/sqlite.h"
#include "store/transition_reader.h"
#include "support/manual_clock.h"
#include "support/reports.h"
#include "support/sql.h"
#include "support/temp_dir.h"
#include "support/text_file.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;
using test::beat;
using test::change;

class OldFile : public testing::Test {
 protected:
  test::TempDir dir;
  std::filesystem::path path = dir / "old.db";

  void run_sql(const std::string& sql) { test::run_sql(path, sql); }
  std::int64_t number(const std::string& sql) {
    sqlite3* connection = nullptr;
    EXPECT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(connection, sql.c_str(), -1, &statement, nullptr), SQLITE_OK);
    EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW);
    const auto found = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(connection);
    return found;
  }

  static std::string hexadecimal_bytes(std::string_view bytes) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    std::string text;
    for (const unsigned char byte : bytes) (text += digits[byte >> 4U]) += digits[byte & 15U];
    return text;
  }
  static std::string whole_schema() {
    std::ifstream file(std::string(PROJECT_ROOT) + "/schemas/store.sql");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// The tables as version 1.0 made them: without what came since.
  static std::string first_schema() {
    auto sql = whole_schema();
    // The comma before a last column goes with it; comments may stand behind it.
    sql.resize(sql.find("-- Since 1.3, all that follows"));
    const std::regex added(R"(,([^\n]*)\n  \w+ \w+ +-- since 1\.\d:[^\n]*)");
    while (std::regex_search(sql, added)) sql = std::regex_replace(sql, added, "$1");
    const std::regex added_table(R"(\n-- since 1\.\d:[^\n]*\nCREATE TABLE[\s\S]*?\n\);)");
    sql = std::regex_replace(sql, added_table, "");
    EXPECT_EQ(sql.find("since 1."), std::string::npos);
    EXPECT_EQ(sql.find("situation"), std::string::npos);
    return sql;
  }

  /// A session with one change and five passes of its loop, and the transition to progressing.
  void make() {
    std::string sql =
        "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; BEGIN;" + first_schema() +
        "INSERT INTO sessions (id, name, spec, created_ms, attempt, lifecycle, health, updated_ms) "
        "VALUES (1, 's', '{}', 1000, 1, 'running', 'unknown', 1000);"
        "INSERT INTO events (seq, session, prev, tick_ms, at_ms, kind, late, name, content) "
        "VALUES (1, 1, 0, 1000, 1000, 2, 0, 'step', '{}');"
        "INSERT INTO transitions (session, seq, tick_ms, at_ms, from_health, health, pattern, "
        "reason, evidence, detector, policy_digest) VALUES (1, 1, 1000, 1000, 'unknown', "
        "'progressing', 'none', 'its newest state change is step', '[1]', '1', 7);";
    for (int seq = 2; seq <= 6; ++seq) {
      const auto n = std::to_string(seq);
      sql += "INSERT INTO events (seq, session, prev, tick_ms, at_ms, kind, late, facts) VALUES (" +
             n + ", 1, " + std::to_string(seq - 1) + ", " + n + "000, " + n +
             "000, 1, 0, '{\"source\":\"loop\"}');";
    }
    const auto application = [&] {
      { auto store = Store::open({.database = path}); }
      const auto id = number("PRAGMA application_id");
      std::filesystem::remove(path);
      return id;
    }();
    sql += "INSERT INTO heads VALUES (1, 6, 6); PRAGMA application_id = " +
           std::to_string(application) + "; PRAGMA user_version = 1000; COMMIT";
    run_sql(sql);
  }
  void expect_up_to_date() {
    EXPECT_EQ(number("PRAGMA user_version"), 1004);
    EXPECT_EQ(number("SELECT count(*) FROM pragma_table_info('events') WHERE name IN ('marks', "
                     "'origin')"),
              2);
    EXPECT_EQ(
        number("SELECT count(*) FROM pragma_table_info('transitions') WHERE name = 'situation'"),
        1);
    EXPECT_EQ(number("SELECT count(*) FROM pragma_table_info('sessions') WHERE name IN ('turns', "
                     "'aborts')"),
              2);
    EXPECT_EQ(number("SELECT count(*) FROM audit"), 0);
    // The tables that a migration makes are the same as those of a new file.
    const auto tables_of = [](const std::filesystem::path& file) {
      return text_in(file,
                     "SELECT group_concat(sql, ';') FROM (SELECT sql FROM sqlite_schema WHERE "
                     "name = 'audit' OR name LIKE 'alert%' OR name LIKE 'deliver%' ORDER BY name)");
    };
    { auto store = Store::open({.database = dir / "new.db"}); }
    EXPECT_NE(tables_of(path), "");
    EXPECT_EQ(tables_of(path), tables_of(dir / "new.db"));
  }
  static std::string text_in(const std::filesystem::path& file, const std::string& sql) {
    sqlite3* connection = nullptr;
    EXPECT_EQ(sqlite3_open(file.c_str(), &connection), SQLITE_OK);
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(connection, sql.c_str(), -1, &statement, nullptr), SQLITE_OK);
    EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW);
    const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
    const std::string found = text != nullptr ? text : "";
    sqlite3_finalize(statement);
    sqlite3_close(connection);
    return found;
  }
  static void expect_to_fold(StoreReader& reader) {
    const auto row = reader.session("s");
    ASSERT_TRUE(row.ok());
    std::vector<Transition> changes;
    const auto judged = reader.fold(*row, &changes);
    ASSERT_TRUE(judged.ok());
    EXPECT_EQ(judged->health.kind, HealthKind::stuck);
    EXPECT_EQ(judged->history.heartbeats, 5);
    ASSERT_EQ(judged->history.sources.size(), 1U);
    EXPECT_EQ(judged->history.sources[0].origin, ReportOrigin::unknown);
    EXPECT_EQ(judged->history.sources[0].reports, 6);
    ASSERT_EQ(changes.size(), 1U) << "the first is written";
    EXPECT_EQ(changes.back().seq, 6);
    EXPECT_EQ(changes.back().situation, "") << "nobody watched";
    const auto written = TransitionReader(reader).of(row->key, 0, 10);
    ASSERT_TRUE(written.ok()) << written.error().message;
    ASSERT_EQ(written->size(), 1U);
    EXPECT_EQ(written->front().transition.situation, "");
  }
};

TEST_F(OldFile, is_brought_up_to_date_by_a_writer) {
  make();
  {
    auto store = Store::open({.database = path});
    ASSERT_TRUE(store.ok()) << store.error().message;
    expect_to_fold(store->reader());
    ASSERT_TRUE(test::say(*store, "s", {change("step", R"({"n":1})")}));
    EXPECT_EQ(test::all_events(store->reader(), "s").size(), 7U);
    ASSERT_TRUE(test::say(*store, "s", {test::turn(turn_reports::turn_start, "t")}));
    const auto asked = test::say(*store, "s", {test::abort_of("t")});
    ASSERT_TRUE(asked.ok());
    EXPECT_EQ(asked->directive.aborts.size(), 1U) << "it can be asked of what an old file began";
  }
  expect_up_to_date();
}

// A reader treats missing tables and columns as empty. It does not change the file.
TEST_F(OldFile, is_read_and_not_changed_by_a_reader) {
  make();
  const auto before = test::content_of(path);
  {
    auto reader = StoreReader::open(path);
    ASSERT_TRUE(reader.ok()) << reader.error().message;
    expect_to_fold(*reader);
    const auto row = reader->session("s");
    ASSERT_TRUE(row.ok());
    EXPECT_EQ(reader->sessions({.limit = 10})->size(), 1U);
    EXPECT_EQ(EventReader(*reader).page(row->key, 0, 100)->events.size(), 6U);
    EXPECT_EQ(EventReader(*reader).page_before(row->key, 7, 100)->events.size(), 6U);
    EXPECT_EQ(EventReader(*reader).after(0, 100)->size(), 6U);
    EXPECT_EQ(EventReader(*reader).up_to(6, 100)->size(), 6U);
    EXPECT_EQ(EventReader(*reader).latest(row->key, 100)->size(), 1U);
    EXPECT_EQ(reader->sessions_to_judge()->size(), 1U);
    EXPECT_EQ(TransitionReader(*reader).after(0, 100, 100)->size(), 1U);
    EXPECT_TRUE(TransitionReader(*reader).unwritten(*row, Instant{1h}).ok());
    EXPECT_TRUE(reader->running_children("s", 10)->empty());
    EXPECT_FALSE(reader->directive_of("s")->cancel);
    EXPECT_TRUE(reader->sessions_with_turns(INT64_MAX, 10)->empty());
    EXPECT_TRUE(reader->alerts({})->empty());
    EXPECT_TRUE(reader->audit(0, 10)->empty());
    EXPECT_TRUE(reader->next_message("any", false)->empty());
    EXPECT_EQ(*TransitionReader(*reader).newest_id(), 1);
    EXPECT_EQ(EventReader(*reader).newest()->first, 6);
    EXPECT_TRUE(reader->latest_tick().ok());
    EXPECT_EQ(reader->copy_to(dir / "copy.db")->events, 6);
  }
  EXPECT_EQ(test::content_of(path), before);
  EXPECT_EQ(number("PRAGMA user_version"), 1000);
}

// A writer that comes meanwhile brings it up to date under the reader.
TEST_F(OldFile, is_brought_up_to_date_under_a_reader) {
  make();
  auto reader = StoreReader::open(path);
  expect_to_fold(*reader);
  {
    auto store = Store::open({.database = path});
    ASSERT_TRUE(test::say(*store, "s", {change("step", R"({"n":1})")}));
    ASSERT_TRUE(test::say(*store, "s", {test::turn(turn_reports::turn_start, "t")}));
    ASSERT_TRUE(test::say(*store, "s", {test::abort_of("t")}).ok());
  }
  EXPECT_EQ(test::all_events(*reader, "s").size(), 9U);
  EXPECT_EQ(reader->directive_of("s")->aborts.size(), 1U);
  expect_up_to_date();
}

// The newest step alone, which has other columns to show than a step from the first version.
TEST_F(OldFile, of_1_3_has_events_without_an_origin) {
  const std::regex added(R"(,([^\n]*)\n  origin INTEGER[^\n]*)");
  run_sql("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; BEGIN;" +
          std::regex_replace(whole_schema(), added, "$1") +
          "INSERT INTO sessions (id, name, spec, created_ms, attempt, lifecycle, health, "
          "updated_ms) VALUES (1, 's', '{}', 1000, 1, 'running', 'unknown', 1000);"
          "INSERT INTO events (seq, session, prev, tick_ms, at_ms, kind, late, name, marks) "
          "VALUES (1, 1, 0, 1000, 1000, 2, 0, 'step', X'" +
          hexadecimal_bytes(encoded(Marks{.identity = 7})) +
          "');"
          "INSERT INTO heads VALUES (1, 1, 1); PRAGMA application_id = " +
          std::to_string(application_id) + "; PRAGMA user_version = 1003; COMMIT");
  ASSERT_EQ(number("SELECT count(*) FROM pragma_table_info('events') WHERE name = 'origin'"), 0);
  const auto origins = [](StoreReader& reader) {
    std::vector<ReportOrigin> found;
    for (const auto& event : test::all_events(reader, "s")) found.push_back(event.origin);
    return found;
  };
  {
    auto reader = StoreReader::open(path);
    ASSERT_TRUE(reader.ok()) << reader.error().message;
    EXPECT_EQ(origins(*reader), std::vector{ReportOrigin::unknown});
    const auto event = test::all_events(*reader, "s").front();
    const auto* marks = std::get_if<Marks>(&event.report.detail);
    EXPECT_TRUE(marks != nullptr && marks->identity == 7) << "its other columns are its own";
  }
  EXPECT_EQ(number("PRAGMA user_version"), 1003);
  auto store = Store::open({.database = path});
  ASSERT_TRUE(store.ok()) << store.error().message;
  std::vector<Batch> batches{
      {.session = "s", .reports = {change("step", R"({"n":2})")}, .by = ReportOrigin::hooks}};
  ASSERT_TRUE(store->append(batches));
  EXPECT_EQ(origins(store->reader()), (std::vector{ReportOrigin::unknown, ReportOrigin::hooks}));
  EXPECT_EQ(number("PRAGMA user_version"), 1004);
}

TEST_F(OldFile, is_judged_on_with_situations) {
  make();
  auto store = Store::open({.database = path});
  ASSERT_TRUE(store.ok());
  ASSERT_TRUE(Observer::start(*store, {}).ok());
  const auto written = TransitionReader(store->reader()).of(1, 0, 10);
  ASSERT_TRUE(written.ok() && !written->empty());
  EXPECT_EQ(written->front().transition.situation, "") << "of another time";
  EXPECT_EQ(written->back().transition.health.kind, HealthKind::stuck);
  EXPECT_NE(written->back().transition.situation.find(R"("lastEvents":[1,2,3,4,5,6])"),
            std::string::npos)
      << written->back().transition.situation;
}

}  // namespace
}  // namespace watchdog
