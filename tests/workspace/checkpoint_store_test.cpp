#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <random>
#include <set>
#include <thread>

#include "support/manual_clock.h"
#include "support/scenario.h"
#include "support/temp_dir.h"
#include "support/text_file.h"
#include "watchdog/workspace.h"
#include "workspace/checkpoint_record.h"

namespace watchdog::test {
namespace {

using test::content_of;
using test::write_file;
namespace fs = std::filesystem;
using Paths = std::vector<fs::path>;

unsigned mode_of(const fs::path& path) {
  struct stat facts {};
  EXPECT_EQ(stat(path.c_str(), &facts), 0);
  return facts.st_mode & 07777U;
}

std::set<std::string> names_in(const fs::path& path) {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(path))
    if (!entry.is_directory()) names.insert(fs::relative(entry.path(), path));
  return names;
}

class CheckpointTest : public testing::Test {
 protected:
  TempDir dir;
  ManualClock clock;
  fs::path work = fs::canonical(dir.path()) / "work";
  fs::path file = work / "file";

  CheckpointTest() { write_file(file, "before"); }

  [[nodiscard]] CheckpointStore open() const {
    auto store = CheckpointStore::open(dir / "checkpoints", clock);
    EXPECT_TRUE(store.ok()) << store.error().message;
    return std::move(*store);
  }
  static std::string snapshot(CheckpointStore& store, const Paths& paths,
                              const std::string& call = "call-1") {
    const auto id = store.snapshot(paths, call);
    EXPECT_TRUE(id.ok()) << id.error().message;
    return id ? *id : "";
  }
  static Restored restored(CheckpointStore& store, const std::string& id, bool force = false) {
    const auto done = store.restore(id, force);
    EXPECT_TRUE(done.ok()) << done.error().message;
    return done ? *done : Restored{};
  }
  /// A tool that writes files: with a checkpoint around it.
  static std::string change(CheckpointStore& store,
                            const std::vector<std::pair<fs::path, std::string>>& files) {
    Paths paths;
    for (const auto& [path, content] : files) paths.push_back(path);
    auto id = snapshot(store, paths);
    for (const auto& [path, content] : files) write_file(path, content);
    EXPECT_TRUE(store.seal(id).ok());
    return id;
  }
};

TEST_F(CheckpointTest, a_file_that_a_tool_changed_is_restored) {
  auto store = open();
  fs::permissions(file, fs::perms(0751));
  const auto id = snapshot(store, {file});
  fs::remove(file);
  write_file(file, "after");
  fs::permissions(file, fs::perms(0600));
  ASSERT_TRUE(store.seal(id).ok());
  const auto done = restored(store, id);
  EXPECT_EQ(done.restored, Paths{file});
  EXPECT_EQ(done.removed, Paths{});
  EXPECT_EQ(done.skipped_changed, Paths{});
  EXPECT_EQ(content_of(file), "before");
  EXPECT_EQ(mode_of(file), 0751U);
  EXPECT_EQ(names_in(work), std::set<std::string>{"file"});
}

TEST_F(CheckpointTest, a_changed_mode_is_brought_back_too) {
  auto store = open();
  fs::permissions(file, fs::perms(0640));
  const auto id = snapshot(store, {file});
  fs::permissions(file, fs::perms(0777));
  ASSERT_TRUE(store.seal(id).ok());
  EXPECT_EQ(restored(store, id).restored, Paths{file});
  EXPECT_EQ(mode_of(file), 0640U);
}

TEST_F(CheckpointTest, a_file_that_was_changed_later_is_left_alone_unless_forced) {
  auto store = open();
  const auto id = change(store, {{file, "after"}, {work / "made", "made"}});
  write_file(file, "edited by the user");
  write_file(work / "made", "edited, too");
  auto done = restored(store, id);
  EXPECT_EQ(done.restored, Paths{});
  EXPECT_EQ(done.skipped_changed, (Paths{file, work / "made"}));
  EXPECT_EQ(done.undo, "");
  EXPECT_EQ(content_of(file), "edited by the user");

  done = restored(store, id, true);
  EXPECT_EQ(done.restored, Paths{file});
  EXPECT_EQ(done.removed, Paths{work / "made"});
  EXPECT_EQ(content_of(file), "before");
  EXPECT_FALSE(fs::exists(work / "made"));

  restored(store, done.undo);
  EXPECT_EQ(content_of(file), "edited by the user");
  EXPECT_EQ(content_of(work / "made"), "edited, too");
}

TEST_F(CheckpointTest, a_file_that_a_tool_made_is_removed_and_one_it_removed_is_made_again) {
  auto store = open();
  write_file(work / "gone" / "deep", "deep");
  const auto id = snapshot(store, {work / "made" / "new", work / "gone" / "deep"});
  write_file(work / "made" / "new", "new");
  write_file(work / "made" / "of the user", "kept");
  fs::remove_all(work / "gone");
  ASSERT_TRUE(store.seal(id).ok());
  const auto done = restored(store, id);
  EXPECT_EQ(done.removed, Paths{work / "made" / "new"});
  EXPECT_EQ(done.restored, Paths{work / "gone" / "deep"});
  EXPECT_EQ(names_in(work), (std::set<std::string>{"file", "gone/deep", "made/of the user"}));
  EXPECT_EQ(content_of(work / "gone" / "deep"), "deep");
}

TEST_F(CheckpointTest, nothing_but_the_named_paths_is_touched) {
  auto store = open();
  write_file(work / ".git" / "index", "index");
  write_file(work / "untracked", "mine");
  const auto id = change(store, {{file, "after"}});
  write_file(work / "untracked", "still mine");
  write_file(work / "newer", "also mine");
  restored(store, id, true);
  EXPECT_EQ(names_in(work), (std::set<std::string>{".git/index", "file", "newer", "untracked"}));
  EXPECT_EQ(content_of(work / "untracked"), "still mine");
}

TEST_F(CheckpointTest, a_restore_can_be_undone_and_that_as_well) {
  auto store = open();
  const auto id = change(store, {{file, "after"}, {work / "made", "made"}});
  const auto first = restored(store, id);
  EXPECT_EQ(content_of(file), "before");
  const auto second = restored(store, first.undo);
  EXPECT_EQ(content_of(file), "after");
  EXPECT_EQ(content_of(work / "made"), "made");
  EXPECT_EQ(second.restored, (Paths{file, work / "made"}));
  const auto third = restored(store, second.undo);
  EXPECT_EQ(content_of(file), "before");
  EXPECT_EQ(third.removed, Paths{work / "made"});
}

TEST_F(CheckpointTest, restoring_twice_changes_nothing_more) {
  auto store = open();
  const auto id = change(store, {{file, "after"}, {work / "made", "made"}});
  restored(store, id);
  const auto again = restored(store, id);
  EXPECT_EQ(again.restored, Paths{file});
  EXPECT_EQ(again.removed, Paths{work / "made"});
  EXPECT_EQ(again.undo, "") << "nothing was overwritten";
}

TEST_F(CheckpointTest, without_a_seal_only_force_overwrites) {
  auto store = open();
  const auto id = snapshot(store, {file});
  write_file(file, "half written by a tool that crashed");
  EXPECT_EQ(restored(store, id).skipped_changed, Paths{file});
  EXPECT_EQ(restored(store, id, true).restored, Paths{file});
  EXPECT_EQ(content_of(file), "before");
}

TEST_F(CheckpointTest, contents_of_any_kind_and_names_of_any_bytes_are_kept) {
  auto store = open();
  std::string big(3'000'000, '\0');
  std::minstd_rand random(1);
  for (auto& c : big) c = static_cast<char>(random() >> 8U);
  const auto odd = work / "new\nline \\n \xff\xfe";
  const auto longest = work / std::string(255, 'x');
  write_file(odd, big);
  write_file(longest, "");
  const auto id = change(store, {{odd, "1"}, {longest, "2"}});
  EXPECT_EQ(restored(store, id).restored.size(), 2U);
  EXPECT_EQ(content_of(odd), big);
  EXPECT_EQ(content_of(longest), "");
  EXPECT_EQ(store.list()->back().paths, (Paths{odd, longest}));
}

TEST_F(CheckpointTest, only_files_are_taken) {
  auto store = open();
  ASSERT_EQ(mkfifo((work / "pipe").c_str(), 0600), 0);
  fs::create_symlink("file", work / "link");
  for (const fs::path& path : {work, work / "pipe", work / "link", fs::path("/dev/null"),
                               fs::path("/"), work / "file" / "below", work / "dir" / ""}) {
    const auto id = store.snapshot(Paths{file, path}, "call");
    ASSERT_FALSE(id.ok()) << path;
    EXPECT_EQ(id.error().code, ErrorCode::invalid) << path;
  }
  fs::resize_file(file, std::uintmax_t{3} << 30U);
  EXPECT_EQ(store.snapshot(Paths{file}, "call").error().code, ErrorCode::exhausted);
  EXPECT_EQ(store.list()->size(), 0U);
}

TEST_F(CheckpointTest, a_path_that_became_something_else_is_left_alone_even_when_forced) {
  auto store = open();
  write_file(work / "sub" / "inner", "inner");
  write_file(dir / "outside" / "inner", "outside");
  const auto id = change(store, {{file, "after"}, {work / "sub" / "inner", "after"}});
  fs::remove(file);
  fs::create_directory(file);
  // A directory that became a link elsewhere: what it leads to was never named.
  fs::rename(work / "sub", work / "moved");
  fs::create_directory_symlink(dir / "outside", work / "sub");
  write_file(dir / "outside" / "inner", "after");
  EXPECT_EQ(restored(store, id, true).skipped_changed, (Paths{file, work / "sub" / "inner"}));
  EXPECT_TRUE(fs::is_directory(file));
  EXPECT_EQ(content_of(dir / "outside" / "inner"), "after");
}

TEST_F(CheckpointTest, a_path_through_a_link_is_kept_where_it_leads) {
  auto store = open();
  fs::create_directory_symlink(work, dir / "link");
  const auto id = change(store, {{dir / "link" / "file", "after"}});
  EXPECT_EQ(restored(store, id).restored, Paths{file});
  EXPECT_EQ(content_of(file), "before");
}

TEST_F(CheckpointTest, they_are_listed_the_newest_first) {
  auto store = open();
  EXPECT_EQ(store.list()->size(), 0U);
  std::vector<std::string> ids;
  for (int i = 0; i < 12; ++i) ids.push_back(snapshot(store, {file}, "call-" + std::to_string(i)));
  ASSERT_TRUE(store.seal(ids[11]).ok());
  const auto list = store.list(10);
  ASSERT_TRUE(list.ok());
  ASSERT_EQ(list->size(), 10U);
  for (std::size_t i = 0; i < 10; ++i) {
    EXPECT_EQ((*list)[i].id, ids[11 - i]);
    EXPECT_EQ((*list)[i].call, "call-" + std::to_string(11 - i));
    EXPECT_EQ((*list)[i].at, clock.wall());
    EXPECT_EQ((*list)[i].paths, Paths{file});
    EXPECT_EQ((*list)[i].sealed, i == 0);
  }
}

TEST_F(CheckpointTest, hostile_ids_are_not_found) {
  auto store = open();
  const auto id = snapshot(store, {file});
  for (const std::string& name :
       {std::string(), std::string("."), std::string(".."), "../checkpoints/" + id, id + "/",
        std::string("/etc/passwd"), std::string("00000001-../../.."), id.substr(0, 8),
        std::string("99999999-AAAAAAAA"), std::string(100'000, '0'), id + std::string(1, '\0')}) {
    EXPECT_EQ(store.restore(name).error().code, ErrorCode::not_found) << name.substr(0, 40);
    EXPECT_EQ(store.seal(name).error().code, ErrorCode::not_found) << name.substr(0, 40);
  }
}

TEST_F(CheckpointTest, trimming_keeps_the_newest_and_what_they_need) {
  auto store = open();
  std::vector<std::string> ids;
  for (int i = 0; i < 6; ++i) {
    write_file(file, "version " + std::to_string(i % 5));
    ids.push_back(snapshot(store, {file, work / "absent"}));
  }
  EXPECT_EQ(names_in(dir / "checkpoints" / "objects").size(), 5U);
  EXPECT_EQ(*store.trim(2), 4U);
  EXPECT_EQ(store.list()->size(), 2U);
  EXPECT_EQ(names_in(dir / "checkpoints" / "objects").size(), 2U);
  EXPECT_EQ(store.restore(ids[0]).error().code, ErrorCode::not_found);
  restored(store, ids[4], true);
  EXPECT_EQ(content_of(file), "version 4");
  EXPECT_EQ(*store.trim(0), 3U);
  EXPECT_EQ(names_in(dir / "checkpoints" / "objects").size(), 0U);
  const auto later = snapshot(store, {file});
  EXPECT_EQ(store.restore(ids[0]).error().code, ErrorCode::not_found)
      << "an old name is no new checkpoint's";
  EXPECT_EQ(store.list()->front().id, later);
}

TEST_F(CheckpointTest, damage_is_found_before_anything_is_touched) {
  auto store = open();
  const auto other = work / "other";
  write_file(other, "other before");
  const auto id = change(store, {{file, "after"}, {other, "other after"}});
  const auto objects = dir / "checkpoints" / "objects";
  for (const auto& name : names_in(objects))
    if (content_of(objects / name) == "other before") write_file(objects / name, "other befare");
  EXPECT_EQ(store.restore(id).error().code, ErrorCode::corrupt);
  EXPECT_EQ(content_of(file), "after");

  write_file(other, "other before");
  snapshot(store, {other});  // what was damaged is mended by being kept again
  write_file(other, "other after");
  EXPECT_EQ(restored(store, id).restored.size(), 2U);

  const auto record = dir / "checkpoints" / "checkpoints" / id;
  const auto text = content_of(record);
  for (std::size_t at = 0; at < text.size(); ++at) {
    auto damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    EXPECT_EQ(decoded_checkpoint(damaged).error().code, ErrorCode::corrupt) << at;
    EXPECT_EQ(decoded_checkpoint(text.substr(0, at)).error().code, ErrorCode::corrupt) << at;
  }
  write_file(record, text.substr(0, text.size() / 2));
  EXPECT_EQ(store.restore(id).error().code, ErrorCode::corrupt);
}

TEST_F(CheckpointTest, it_is_for_its_owner_alone) {
  auto store = open();
  fs::permissions(file, fs::perms(0666));
  snapshot(store, {file});
  EXPECT_EQ(mode_of(dir / "checkpoints"), 0700U);
  for (const auto& name : names_in(dir / "checkpoints"))
    EXPECT_EQ(mode_of(dir / "checkpoints" / name), 0600U) << name;
}

TEST_F(CheckpointTest, where_the_disk_is_full_there_is_no_checkpoint_and_no_trace) {
  write_file(file, std::string(200'000, 'x'));
  auto store = open();
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100'000, 100'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    const auto id = store.snapshot(Paths{file}, "call");
    _exit(!id && id.error().code == ErrorCode::exhausted ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(names_in(dir / "checkpoints"), std::set<std::string>{"lock"});
}

TEST_F(CheckpointTest, a_restore_that_fails_is_not_made_up_for_later) {
  write_file(file, std::string(200'000, 'x'));
  std::string id;
  {
    auto store = open();
    id = change(store, {{work / "a", "after"}, {file, "after"}});
    const pid_t child = fork();
    if (child == 0) {
      signal(SIGXFSZ, SIG_IGN);
      const rlimit limit{100'000, 100'000};
      setrlimit(RLIMIT_FSIZE, &limit);
      const auto done = store.restore(id);
      const bool right = !done && done.error().code == ErrorCode::exhausted &&
                         done.error().message.find("can be undone") != std::string::npos;
      _exit(right ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(content_of(file), "after");
  auto store = open();
  EXPECT_EQ(content_of(file), "after");
  EXPECT_EQ(names_in(work), std::set<std::string>{"file"});
  EXPECT_EQ(restored(store, id).restored, Paths{file});
  EXPECT_EQ(content_of(file), std::string(200'000, 'x'));
}

TEST_F(CheckpointTest, threads_take_turns) {
  auto store = open();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const auto mine = work / ("file " + std::to_string(i));
      for (int round = 0; round < 5; ++round) {
        const auto content = std::to_string(i) + " " + std::to_string(round);
        write_file(mine, content);
        const auto id = change(store, {{mine, "after"}});
        EXPECT_EQ(restored(store, id).restored, Paths{mine});
        EXPECT_EQ(content_of(mine), content);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(store.list()->size(), 2U * 8 * 5);
}

/// Spins: the moment is to be anywhere, not after a turn of the scheduler.
void spin_for(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

TEST_F(CheckpointTest, a_restore_that_is_killed_anywhere_is_completed_by_the_next_open) {
  std::mt19937 random(random_seed());
  constexpr int files = 8;
  int completed = 0;
  int not_begun = 0;
  const int rounds = repetitions(200);
  std::chrono::microseconds whole{0};
  for (int round = 0; round < rounds; ++round) {
    const TempDir place;
    const auto root = fs::canonical(place.path());
    std::vector<std::pair<fs::path, std::string>> changes;
    for (int i = 0; i < files; ++i) {
      const auto path = root / "work" / std::to_string(i);
      if (i % 3 != 0) write_file(path, "before " + std::to_string(i) + std::string(i * 1'000, 'x'));
      changes.emplace_back(path, i % 4 == 0 ? "same for some" : "after " + std::to_string(i));
    }
    std::string id;
    {
      auto store = std::move(*CheckpointStore::open(root / "checkpoints", clock));
      id = change(store, changes);
    }
    const auto start = std::chrono::steady_clock::now();
    const pid_t child = fork();
    if (child == 0) {
      auto store = CheckpointStore::open(root / "checkpoints", clock);
      _exit(store && store->restore(id) ? 0 : 1);
    }
    if (round == 0) {
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ASSERT_EQ(status, 0);
      whole = std::chrono::duration_cast<std::chrono::microseconds>(
          std::chrono::steady_clock::now() - start);
    } else {
      spin_for(std::chrono::microseconds(random() % static_cast<unsigned>(whole.count() + 1)));
      kill(child, SIGKILL);
      ASSERT_EQ(waitpid(child, nullptr, 0), child);
    }
    // One file was changed by somebody between the crash and now.
    const bool edit = round % 3 == 1;
    if (edit) write_file(changes[5].first, "edited");
    auto store = CheckpointStore::open(root / "checkpoints", clock);
    ASSERT_TRUE(store.ok()) << store.error().message;
    int back = 0;
    int left = 0;
    for (int i = 0; i < files; ++i) {
      if (edit && i == 5) continue;
      const auto& [path, after] = changes[static_cast<std::size_t>(i)];
      const auto before = i % 3 == 0 ? std::string("nothing")
                                     : "before " + std::to_string(i) + std::string(i * 1'000, 'x');
      const auto now = content_of(path);
      ASSERT_TRUE(now == before || now == after) << path;
      ++(now == before ? back : left);
    }
    EXPECT_TRUE(back == 0 || left == 0) << "half a restore: " << back << " of " << back + left;
    ++(back > 0 ? completed : not_begun);
    if (edit) {
      EXPECT_EQ(content_of(changes[5].first), "edited");
    }
    EXPECT_FALSE(fs::exists(root / "checkpoints" / "restoring"));
    EXPECT_TRUE(fs::is_empty(root / "checkpoints" / "tmp"));
    for (const auto& name : names_in(root / "work"))
      EXPECT_EQ(name.find(".wd-"), std::string::npos);
    if (left == 0 && !edit) {
      const auto undo = store->list(1)->front();
      restored(*store, undo.id);
      for (const auto& [path, after] : changes) EXPECT_EQ(content_of(path), after);
    }
  }
  std::printf("killed %d times: %d completed, %d not begun\n", rounds - 1, completed, not_begun);
}

TEST_F(CheckpointTest, a_broken_off_restore_that_cannot_be_finished_says_what_to_do) {
  {
    auto store = open();
    const auto id = change(store, {{file, "after"}});
    restored(store, id);
  }
  write_file(dir / "checkpoints" / "restoring", "00000099-AAAAAAAA");
  const auto store = CheckpointStore::open(dir / "checkpoints", clock);
  ASSERT_FALSE(store.ok());
  EXPECT_NE(store.error().message.find((dir / "checkpoints" / "restoring").string()),
            std::string::npos)
      << store.error().message;
}

}  // namespace
}  // namespace watchdog::test
