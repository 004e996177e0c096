#include <fcntl.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <thread>

#include "observer/observer.h"
#include "store/retention.h"
#include "support/faulty_files.h"
#include "support/manual_clock.h"
#include "support/reports.h"
#include "support/scenario.h"
#include "support/temp_dir.h"
#include "support/text_file.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;
using test::beat;
using test::change;
using test::ending;
using test::ManualClock;
using test::say;
using test::TempDir;
using test::with_id;

class Erasing : public testing::Test {
 protected:
  TempDir dir;
  ManualClock clock;
  std::filesystem::path path = dir / "w.db";
  Result<Store> opened = Store::open({.database = path, .clock = &clock});
  Store& store = *opened;

  /// Which of the store's files hold the bytes.
  std::string files_with(std::string_view bytes) {
    std::string found;
    for (const char* suffix : {"", "-wal", "-shm", "-writer", "-judge"}) {
      const auto text = test::content_of(path.string() + suffix);
      if (text.find(bytes) != std::string::npos) found += std::string("db") + suffix + " ";
    }
    return found;
  }

  std::string integrity() {
    sqlite3* file = nullptr;
    std::string said;
    sqlite3_open_v2(path.c_str(), &file, SQLITE_OPEN_READONLY, nullptr);
    sqlite3_exec(
        file, "PRAGMA integrity_check",
        [](void* into, int, char** values, char**) {
          *static_cast<std::string*>(into) += values[0];
          return 0;
        },
        &said, nullptr);
    sqlite3_close(file);
    return said;
  }
};

TEST_F(Erasing, leaves_no_byte_of_a_session_in_any_file) {
  std::mt19937 random(test::random_seed());
  auto observer = Observer::start(store, {});
  ASSERT_TRUE(observer.ok());
  // Among others, whose rows make its own move between pages.
  const std::string session = "planted-session";
  for (int i = 0; i < test::repetitions(4'000); ++i) {
    clock.advance(1s);
    const bool own = i % 7 == 3;
    const auto name = own ? session : "other" + std::to_string(random() % 40);
    const std::string mark = own ? "planted" : "other";
    const SessionSpec spec{.agent = mark + "-agent-" + name,
                           .task = mark + " task " + name + std::string(random() % 900, 'x'),
                           .labels = {{mark + "key" + name, mark + "value"}}};
    const std::string filler(random() % 700, 'y');
    (void)say(
        store, name,
        {with_id(change(mark + "type", mark + " data " + filler), mark + std::to_string(random())),
         with_id({.kind = ReportKind::tool_call,
                  .name = mark + "tool",
                  .content = mark + filler,
                  .call_id = mark + "call"},
                 std::to_string(random()) + mark),
         beat()},
        Creation::attach, spec);
    if (i % 5 == 0) {
      ASSERT_TRUE((*observer)->look().ok());
    }
    if (i % 50 == 0) {
      ASSERT_TRUE((*observer)->checkpoint().ok());
    }
  }
  (void)say(store, session, {ending(OutcomeKind::failed)});
  (void)say(store, "child", {change()}, Creation::attach, {.parent = session});
  ASSERT_TRUE((*observer)->look().ok());
  ASSERT_NE(files_with("planted"), "");

  const auto erased = store.erase({.sessions = {session}});
  ASSERT_TRUE(erased.ok()) << erased.error().message;
  EXPECT_EQ(*erased, std::vector<std::string>{session});
  (*observer)->forget(RetentionActs(store).drain_dropped());
  // The parent's name in the child's row belongs to the child.
  auto text = test::content_of(path);
  std::size_t left = 0;
  for (auto at = text.find("planted"); at != std::string::npos; at = text.find("planted", at + 1)) {
    EXPECT_EQ(text.substr(at, session.size()), session) << text.substr(at, 60);
    ++left;
  }
  EXPECT_LE(left, 3U);  // its column, the column's index, its properties
  for (const char* suffix : {"-wal", "-shm"})
    EXPECT_EQ(test::content_of(path.string() + suffix).find("planted"), std::string::npos)
        << suffix;
  EXPECT_EQ(integrity(), "ok");

  // Everybody else goes on.
  EXPECT_TRUE(store.reader().session("child").ok());
  EXPECT_FALSE(store.reader().session(session).ok());
  ASSERT_TRUE(say(store, "child", {change()}).ok());
  ASSERT_TRUE((*observer)->look().ok());
  ASSERT_TRUE((*observer)->checkpoint().ok());
  EXPECT_EQ(files_with("planteddata"), "");
}

TEST_F(Erasing, a_running_session_prevents_the_whole_erasure_unless_forced) {
  (void)say(store, "over", {change(), ending()});
  (void)say(store, "running", {change()});
  EXPECT_EQ(store.erase({.sessions = {"over", "running"}}).error().code, ErrorCode::conflict);
  EXPECT_EQ(store.erase({.sessions = {"over", "unknown"}}).error().code, ErrorCode::not_found);
  EXPECT_EQ(store.erase({.sessions = {"over"}, .only_say = true})->size(), 1U);
  EXPECT_TRUE(store.reader().session("over").ok());
  EXPECT_TRUE(store.erase({.sessions = {"over", "running"}, .running_too = true}).ok());
  EXPECT_FALSE(store.reader().session("running").ok());
  // Its number is not given again, nor those of its events.
  const auto again = say(store, "running", {change()});
  EXPECT_EQ(again->key, 3);
  EXPECT_EQ(again->last, 4);
}

TEST_F(Erasing, takes_what_ended_long_ago_and_the_dead) {
  auto observer = Observer::start(store, {});
  (void)say(store, "old", {change(), ending()});
  (void)say(store, "dead", {change(), {.kind = ReportKind::exited}});
  (void)say(store, "running", {change()});
  for (int second = 0; second < 60; ++second) {
    clock.advance(1s);
    ASSERT_TRUE((*observer)->look().ok());
  }
  const auto then = clock.wall();
  clock.advance(48h);
  (void)say(store, "fresh", {change(), ending()});
  EXPECT_EQ(*store.erase({.ended_before = then}), (std::vector<std::string>{"old", "dead"}));
  EXPECT_TRUE(store.reader().session("fresh").ok());
  EXPECT_TRUE(store.reader().session("running").ok());
  EXPECT_EQ(store.erase({.ended_before = then})->size(), 0U);
}

TEST_F(Erasing, file_shrinks_by_itself) {
  const auto size = [&] { return std::filesystem::file_size(path); };
  for (int i = 0; i < 400; ++i) {
    const auto name = "s" + std::to_string(i);
    (void)say(
        store, name,
        {{.kind = ReportKind::message, .name = "assistant", .content = std::string(9'000, 'z')},
         ending()},
        Creation::attach, {.content = ContentLevel::full});
  }
  // The log reaches the file with a checkpoint, which happens by itself as well.
  const auto settled = [&] {
    sqlite3* file = nullptr;
    sqlite3_open(path.c_str(), &file);
    sqlite3_exec(file, "PRAGMA wal_checkpoint(TRUNCATE)", nullptr, nullptr, nullptr);
    sqlite3_close(file);
    return size();
  };
  const auto full = settled();
  ASSERT_GT(full, 3'600'000U);
  clock.advance(24h * 31);
  while (*RetentionActs(store).trim({})) {
  }
  EXPECT_LT(settled(), full / 10);

  (void)say(store, "big",
            {{.kind = ReportKind::message, .content = std::string(900'000, 'z')}, ending()},
            Creation::attach, {.content = ContentLevel::full});
  const auto before = settled();
  ASSERT_TRUE(store.erase({.sessions = {"big"}}).ok());
  EXPECT_LT(size(), before - 850'000);
}

TEST_F(Erasing, store_is_readable_by_its_owner_only_whatever_the_umask_says) {
  const auto old = umask(0);
  const auto place = dir / "deep" / "er" / "w.db";
  {
    auto other = Store::open({.database = place});
    ASSERT_TRUE(other.ok());
    auto observer = Observer::start(*other, {});
    ASSERT_TRUE(say(*other, "s", {change()}).ok());
    ASSERT_TRUE(other->reader().copy_to(dir / "copy.db").ok());
  }
  auto other = Store::open({.database = place});
  ASSERT_TRUE(say(*other, "s", {change()}).ok());
  umask(old);
  const auto mode = [](const std::filesystem::path& file) {
    struct stat facts {};
    EXPECT_EQ(stat(file.c_str(), &facts), 0) << file;
    return facts.st_mode & 0777U;
  };
  EXPECT_EQ(mode(place.parent_path()), 0700U);
  EXPECT_EQ(mode(dir / "copy.db"), 0600U);
  for (const char* suffix : {"", "-wal", "-shm", "-writer", "-judge"})
    EXPECT_EQ(mode(place.string() + suffix), 0600U) << suffix;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(place.parent_path()))
    EXPECT_EQ(mode(entry.path()) & 077U, 0U) << entry.path();
}

TEST_F(Erasing, nothing_in_a_files_schema_is_run) {
  (void)say(store, "s", {change()});
  sqlite3* file = nullptr;
  sqlite3_open(path.c_str(), &file);
  EXPECT_EQ(sqlite3_exec(
                file, "CREATE TRIGGER evil AFTER INSERT ON events BEGIN DELETE FROM sessions; END",
                nullptr, nullptr, nullptr),
            SQLITE_OK);
  sqlite3_close(file);
  auto again = Store::open({.database = path});
  ASSERT_TRUE(again.ok());
  ASSERT_TRUE(say(*again, "s", {change()}).ok());
  EXPECT_TRUE(again->reader().session("s").ok());
}

// Wherever an erasure is cut off, the session is still there, or the next judge finishes it.
class ErasingInterrupted : public testing::Test {
 protected:
  test::TempDir dir;
  std::filesystem::path path = dir / "w.db";
  const std::string session = "planted-session";

  void make(const std::filesystem::path& file) {
    auto store = Store::open({.database = file});
    std::mt19937 random(7);
    for (int i = 0; i < 300; ++i) {
      const bool own = i % 3 == 0;
      const auto name = own ? session : "other" + std::to_string(i % 5);
      (void)say(*store, name,
                {with_id(change("step", std::string(own ? "planted" : "other") +
                                            std::string(random() % 300, 'x')),
                         std::to_string(i))});
    }
    (void)say(*store, session, {ending()});
  }
  /// Erases in a process for which the call with this number is the last one; its exit code.
  int erase_until(test::FileCall call, int number) {
    const pid_t child = fork();
    if (child == 0) {
      test::FaultyFiles files;
      auto store = Store::open({.database = path});
      files.fail(call, number, test::FaultyFiles::Failure::half_end);
      _exit(store->erase({.sessions = {session}}).ok() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  }
  bool is_planted_anywhere() {
    for (const auto& entry : std::filesystem::directory_iterator(dir.path())) {
      if (entry.is_regular_file() && entry.path() != dir / "template.db" &&
          test::content_of(entry.path()).find("planted") != std::string::npos)
        return true;
    }
    return false;
  }
};

TEST_F(ErasingInterrupted, is_finished_by_the_next_erasure) {
  const auto whole = dir / "template.db";
  make(whole);
  int half_gone = 0;
  int there = 0;
  for (const auto& [call, step] :
       {std::pair{test::FileCall::write, std::max(1, 100 / test::repetitions(100))},
        {test::FileCall::sync, 1},
        {test::FileCall::truncate, 1}}) {
    for (int number = 1;; number += step) {
      SCOPED_TRACE(std::string(test::name_of(call)) + " " + std::to_string(number));
      for (const char* suffix : {"-wal", "-shm"}) std::filesystem::remove(path.string() + suffix);
      std::filesystem::copy_file(whole, path, std::filesystem::copy_options::overwrite_existing);
      const int code = erase_until(call, number);
      if (code == 0) break;
      ASSERT_EQ(code, test::FaultyFiles::end_code);
      auto store = Store::open({.database = path});
      ASSERT_TRUE(store.ok()) << store.error().message;
      const bool erased = !store->reader().session(session).ok();
      const bool left = is_planted_anywhere();
      const auto again = store->erase({.sessions = {session}});
      if (erased) {
        if (left) ++half_gone;
        ASSERT_FALSE(again.ok());
        EXPECT_EQ(again.error().code, ErrorCode::not_found);
        EXPECT_TRUE(!left || again.error().message.find("is finished now") != std::string::npos)
            << again.error().message;
      } else {
        ++there;
        ASSERT_TRUE(again.ok()) << again.error().message;
      }
      EXPECT_FALSE(is_planted_anywhere());
      EXPECT_EQ(store->reader().sessions({.limit = 100})->size(), 5U);
      EXPECT_TRUE(store->erase({}).ok()) << "nothing is left to do";
    }
  }
  EXPECT_GT(half_gone, 0) << "of some, pieces were left";
  EXPECT_GT(there, 0);
}

TEST_F(Erasing, copies_are_whole_and_never_replace_anything) {
  for (int i = 0; i < 50; ++i) (void)say(store, "s" + std::to_string(i), {change(), beat()});
  const auto copy = store.reader().copy_to(dir / "copy.db");
  ASSERT_TRUE(copy.ok()) << copy.error().message;
  EXPECT_EQ(copy->sessions, 50);
  EXPECT_EQ(copy->events, 100);
  EXPECT_EQ(copy->bytes, static_cast<std::int64_t>(std::filesystem::file_size(dir / "copy.db")));
  EXPECT_EQ(store.reader().copy_to(dir / "copy.db").error().code, ErrorCode::conflict);
  EXPECT_EQ(store.reader().copy_to(path).error().code, ErrorCode::conflict);
  EXPECT_EQ(store.reader().copy_to(dir / "no" / "copy.db").error().code, ErrorCode::unavailable);
  std::filesystem::create_symlink(dir / "gone.db", dir / "link.db");
  EXPECT_EQ(store.reader().copy_to(dir / "link.db").error().code, ErrorCode::conflict);

  // It is a store as any other.
  auto restored = Store::open({.database = dir / "copy.db", .clock = &clock});
  ASSERT_TRUE(restored.ok()) << restored.error().message;
  EXPECT_TRUE(say(*restored, "s7", {change()}).ok());
  EXPECT_EQ(restored->reader().sessions({.limit = 100})->size(), 50U);
}

TEST_F(Erasing, copies_are_of_one_moment_while_others_write) {
  (void)say(store, "s", {change()});
  std::atomic<bool> done{false};
  std::thread writer([&] {
    auto other = Store::open({.database = path});
    while (!done) (void)say(*other, "s", {change("a"), change("b")});
  });
  auto reader = StoreReader::open(path);
  ASSERT_TRUE(reader.ok());
  for (int i = 0; i < 10; ++i) {
    const auto copy = reader->copy_to(dir / ("copy" + std::to_string(i)));
    ASSERT_TRUE(copy.ok()) << copy.error().message;
    EXPECT_EQ(copy->events % 2, 1) << "two reports of one batch belong together";
  }
  done = true;
  writer.join();
}

}  // namespace
}  // namespace watchdog
