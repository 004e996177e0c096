// The files behind a store are removed or replaced while it is open.
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "store/store.h"
#include "store/transition_reader.h"
#include "support/reports.h"
#include "support/temp_dir.h"

namespace watchdog {
namespace {

namespace fs = std::filesystem;
using test::all_events;
using test::change;
using test::say;

class StoreFilesGone : public testing::Test {
 protected:
  test::TempDir dir;
  fs::path path = dir / "w.db";
  fs::path log = path.string() + "-wal";
  fs::path index = path.string() + "-shm";

  static void replace(const fs::path& file, const fs::path& by) {
    fs::copy_file(by, file.string() + ".new", fs::copy_options::overwrite_existing);
    fs::rename(file.string() + ".new", file);
  }

  /// Stores `count` events of the session, opening the file again where it vanished.
  static bool store_some(Store& store, const fs::path& path, int count) {
    for (int i = 0; i < count;) {
      if (store.vanished()) {
        store.close();
        auto opened = Store::open({.database = path});
        if (!opened) return false;
        store = std::move(*opened);
      }
      if (say(store, "s", {change()}).ok()) ++i;
    }
    return true;
  }

  /// Stores 40 events, lets `harm` happen, stores 5 more, and is killed.
  void in_a_process_that_is_killed(const std::function<void()>& before,
                                   const std::function<void()>& harm) {
    const pid_t child = fork();
    if (child == 0) {
      auto store = Store::open({.database = path});
      if (!store || !store_some(*store, path, 20)) _exit(1);
      before();
      if (!store_some(*store, path, 20)) _exit(2);
      harm();
      if (!store->vanished()) _exit(3);
      if (!store_some(*store, path, 5)) _exit(4);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    ASSERT_EQ(WEXITSTATUS(status), 0);
  }

  std::string integrity() {
    sqlite3* file = nullptr;
    std::string found;
    sqlite3_open_v2(path.c_str(), &file, SQLITE_OPEN_READWRITE, nullptr);
    sqlite3_exec(
        file, "PRAGMA integrity_check",
        [](void* into, int, char** values, char**) {
          *static_cast<std::string*>(into) += values[0];
          return 0;
        },
        &found, nullptr);
    sqlite3_close(file);
    return found;
  }

  void expect_events(std::size_t count) {
    EXPECT_EQ(integrity(), "ok");
    auto reader = StoreReader::open(path);
    ASSERT_TRUE(reader.ok()) << reader.error().message;
    EXPECT_EQ(all_events(*reader, "s").size(), count);
  }
};

TEST_F(StoreFilesGone, lose_nothing_that_was_acknowledged) {
  const auto nothing = [] {};
  const auto earlier = dir / "earlier";
  const auto empty = dir / "empty";
  struct Harm {
    const char* name;
    std::function<void()> before;
    std::function<void()> harm;
  };
  const Harm harms[] = {
      {"log removed", nothing, [&] { fs::remove(log); }},
      {"index removed", nothing, [&] { fs::remove(index); }},
      {"both removed", nothing,
       [&] {
         fs::remove(log);
         fs::remove(index);
       }},
      {"log replaced by nothing", nothing,
       [&] {
         std::ofstream(empty).flush();
         replace(log, empty);
       }},
      {"log replaced by its own copy", nothing, [&] { replace(log, log); }},
      {"log replaced by an earlier copy", [&] { fs::copy_file(log, earlier); },
       [&] { replace(log, earlier); }},
  };
  for (const auto& harm : harms) {
    SCOPED_TRACE(harm.name);
    for (const auto& entry : fs::directory_iterator(dir.path())) fs::remove_all(entry);
    in_a_process_that_is_killed(harm.before, harm.harm);
    expect_events(45);
  }
}

// The turn in which the log vanishes is not acknowledged before its events are in the database.
TEST_F(StoreFilesGone, within_a_turn_are_noticed_before_it_is_acknowledged) {
  const pid_t child = fork();
  if (child == 0) {
    auto store = Store::open({.database = path});
    if (!store || !say(*store, "s", {change()}).ok()) _exit(1);
    const auto done = store->alone([&]() -> Result<void> {
      fs::remove(log);
      Transition transition{.session = 1, .reason = "written without a log"};
      const auto written = store->record({.transitions = {transition}});
      return written ? Result<void>{} : written.error();
    });
    _exit(done.ok() ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  expect_events(1);
  auto reader = StoreReader::open(path);
  EXPECT_EQ(TransitionReader(*reader).of(1, 0, 10)->size(), 1U);
}

// The store does not mix the log of another database into its own.
TEST_F(StoreFilesGone, log_of_another_database_is_not_mixed_in) {
  const auto other = dir / "other.db";
  const auto copy = dir / "other-log";
  {
    auto store = Store::open({.database = other});
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(say(*store, "o", {change()}).ok());
    fs::copy_file(other.string() + "-wal", copy);
  }
  auto store = Store::open({.database = path});
  ASSERT_TRUE(say(*store, "s", {change()}).ok());
  replace(log, copy);
  EXPECT_TRUE(store->vanished());
  const auto refused = say(*store, "s", {change()});
  ASSERT_FALSE(refused.ok()) << "nobody else would see it";
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  EXPECT_NE(refused.error().message.find("removed or replaced"), std::string::npos);
  EXPECT_FALSE(store->close()) << "the log of others is not written over";
  EXPECT_TRUE(fs::file_size(log) > 0);
}

// Several stores of one process share the log's index: none goes on with one that was removed.
TEST_F(StoreFilesGone, removed_index_is_left_by_all_stores_of_a_process) {
  auto one = Store::open({.database = path});
  auto two = Store::open({.database = path});
  ASSERT_TRUE(one.ok() && two.ok());
  ASSERT_TRUE(say(*one, "s", {change()}).ok());
  fs::remove(index);
  EXPECT_TRUE(one->vanished());
  EXPECT_TRUE(two->vanished());
  EXPECT_TRUE(one->close());
  EXPECT_FALSE(Store::open({.database = path}).ok()) << "it would share the removed index";
  EXPECT_TRUE(two->close());
  auto again = Store::open({.database = path});
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_TRUE(say(*again, "s", {change()}).ok());
  EXPECT_FALSE(again->vanished());
  EXPECT_EQ(all_events(again->reader(), "s").size(), 2U);
}

}  // namespace
}  // namespace watchdog
