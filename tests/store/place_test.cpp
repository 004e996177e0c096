// Which files can be a database, who may use one, and by which names.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "observer/observer.h"
#include "store/change_notifier.h"
#include "store/lock.h"
#include "support/reports.h"
#include "support/temp_dir.h"

namespace watchdog {
namespace {

namespace fs = std::filesystem;
using test::change;
using test::say;

class StorePlace : public testing::Test {
 protected:
  test::TempDir dir;
  fs::path path = dir / "w.db";

  void make() {
    auto store = Store::open({.database = path});
    ASSERT_TRUE(store.ok()) << store.error().message;
    ASSERT_TRUE(say(*store, "s", {change()}).ok());
  }
  static mode_t mode_of(const fs::path& file) {
    struct stat info {};
    EXPECT_EQ(lstat(file.c_str(), &info), 0) << file;
    return info.st_mode & 0777U;
  }
  static void expect_invalid(const Error& error, const std::string& why) {
    EXPECT_EQ(error.code, ErrorCode::invalid) << error.message;
    EXPECT_NE(error.message.find(why), std::string::npos) << error.message;
  }
};

TEST_F(StorePlace, two_judges_are_refused_by_whatever_name) {
  make();
  const auto link = dir / "link.db";
  fs::create_symlink(path, link);
  fs::create_directory(dir / "deep");
  fs::create_symlink("../link.db", dir / "deep/again.db");
  auto store = Store::open({.database = path});
  auto judge = Observer::start(*store, {});
  ASSERT_TRUE(judge.ok());
  for (const auto& name : {path, link, dir / "deep/again.db"}) {
    auto other = Store::open({.database = name});
    ASSERT_TRUE(other.ok()) << other.error().message;
    const auto second = Observer::start(*other, {});
    ASSERT_FALSE(second.ok()) << name;
    EXPECT_EQ(second.error().code, ErrorCode::conflict);
    EXPECT_NE(second.error().message.find(std::to_string(getpid())), std::string::npos)
        << second.error().message;
  }
  // The lock is the file's, not its lock file's.
  fs::remove(path.string() + "-judge");
  {
    auto other = Store::open({.database = link});
    EXPECT_EQ(Observer::start(*other, {}).error().code, ErrorCode::conflict);
  }
  judge->reset();
  auto other = Store::open({.database = link});
  EXPECT_TRUE(Observer::start(*other, {}).ok()) << "the first one is gone";
}

TEST_F(StorePlace, names_of_one_file_share_its_queue_and_its_bells) {
  make();
  const auto link = dir / "link.db";
  fs::create_symlink(path, link);
  auto listener = ChangeListener::for_all(path);
  ASSERT_TRUE(listener.ok());
  auto store = Store::open({.database = link});
  ASSERT_TRUE(say(*store, "s", {change()}).ok());
  char byte = 0;
  EXPECT_EQ(read(listener->fd(), &byte, 1), 1) << "it rang";
  for (const char* suffix : {"-writer", "-wal", "-shm", ".bells"}) {
    EXPECT_TRUE(fs::exists(path.string() + suffix)) << suffix;
    EXPECT_FALSE(fs::exists(link.string() + suffix)) << suffix;
  }
}

// A link that leads to nothing yet: the file is made there.
TEST_F(StorePlace, symbolic_link_may_come_before_its_file) {
  fs::create_symlink("later.db", path);
  make();
  EXPECT_TRUE(fs::is_regular_file(dir / "later.db"));
  EXPECT_TRUE(fs::exists(dir / "later.db-writer"));
}

TEST_F(StorePlace, file_of_two_names_is_refused_by_both) {
  make();
  const auto other = dir / "other.db";
  fs::create_hard_link(path, other);
  for (const auto& name : {path, other}) {
    expect_invalid(Store::open({.database = name}).error(), "2 hard links");
    expect_invalid(StoreReader::open(name).error(), "2 hard links");
  }
  fs::remove(other);
  EXPECT_TRUE(Store::open({.database = path}).ok());
}

TEST_F(StorePlace, only_regular_files_are_opened) {
  const auto pipe = dir / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const auto listening = dir / "socket";
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  listening.string().copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  close(fd);
  const std::pair<fs::path, const char*> cases[] = {{pipe, "a named pipe"},
                                                    {listening, "a socket"},
                                                    {dir.path(), "a directory"},
                                                    {"/dev/null", "a device"}};
  for (const auto& [file, kind] : cases) {
    expect_invalid(Store::open({.database = file}).error(), kind);
    expect_invalid(StoreReader::open(file).error(), kind);
  }
}

TEST_F(StorePlace, is_taken_from_others) {
  make();
  auto first = Store::open({.database = path});  // so that the log stays
  for (const char* suffix : {"", "-wal", "-shm", "-writer"})
    fs::permissions(path.string() + suffix, fs::perms(0666));
  auto store = Store::open({.database = path});
  ASSERT_TRUE(store.ok()) << store.error().message;
  for (const char* suffix : {"", "-wal", "-shm", "-writer"})
    EXPECT_EQ(mode_of(path.string() + suffix), 0600U) << suffix;
}

TEST_F(StorePlace, is_private_without_a_umask_too) {
  const auto before = umask(0);
  path = dir / "new/w.db";
  auto store = Store::open({.database = path});
  auto judge = Observer::start(*store, {});
  auto listener = ChangeListener::for_all(path);
  ASSERT_TRUE(judge.ok() && listener.ok());
  ASSERT_TRUE(say(*store, "s", {change()}).ok());
  ASSERT_TRUE(store->reader().copy_to(dir / "copy.db").ok());
  umask(before);
  int seen = 0;
  for (const auto& entry : fs::recursive_directory_iterator(dir.path())) {
    EXPECT_EQ(mode_of(entry.path()) & 0077U, 0U) << entry.path();
    ++seen;
  }
  EXPECT_GE(seen, 9) << "directory, file, log, index, two locks, bells, a listener, the copy";
}

TEST_F(StorePlace, file_of_another_user_is_refused) {
  make();
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files to others";
  constexpr uid_t stranger = 12'345;
  for (const char* suffix : {"", "-wal", "-shm", "-journal", "-writer", "-judge"}) {
    SCOPED_TRACE(suffix);
    const auto file = path.string() + suffix;
    const bool planted = !fs::exists(file);
    if (planted) std::ofstream(file).put('x');
    ASSERT_EQ(chown(file.c_str(), stranger, 0), 0);
    const auto refused = Store::open({.database = path});
    ASSERT_FALSE(refused.ok());
    expect_invalid(refused.error(), "belongs to user 12345");
    ASSERT_EQ(chown(file.c_str(), 0, 0), 0);
    if (planted) fs::remove(file);
  }
  EXPECT_TRUE(Store::open({.database = path}).ok());
  fs::create_symlink(dir / "elsewhere", path.string() + "-wal");
  expect_invalid(Store::open({.database = path}).error(), "a symbolic link");
  fs::remove(path.string() + "-wal");

  // Root's file may be used, but not one that everybody may write.
  fs::permissions(dir.path(), fs::perms(0777));
  for (const auto& entry : fs::directory_iterator(dir.path())) fs::remove_all(entry);
  std::ofstream(path).flush();
  const auto opened_by_stranger = [&] {
    const pid_t child = fork();
    if (child == 0) {
      if (setgid(stranger) != 0 || setuid(stranger) != 0) _exit(9);
      const auto store = Store::open({.database = path});
      _exit(store.ok()                                                        ? 0
            : store.error().message.find("make it 0600") != std::string::npos ? 1
                                                                              : 2);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  };
  fs::permissions(path, fs::perms(0666));
  EXPECT_EQ(opened_by_stranger(), 1) << "its mode cannot be changed";
  ASSERT_EQ(chown(path.c_str(), 0, stranger), 0);
  fs::permissions(path, fs::perms(0660));
  EXPECT_EQ(opened_by_stranger(), 0) << "root gave it to the group";
}

// A copy on a medium that cannot be written, seen by a user who may only read it.
TEST_F(StorePlace, read_only_copy_is_read) {
  make();
  auto store = Store::open({.database = path});
  ASSERT_TRUE(say(*store, "s", {change()}).ok());
  const auto medium = dir / "100% read-only?#";
  fs::create_directory(medium);
  const auto copy = medium / "copy.db";
  ASSERT_TRUE(store->reader().copy_to(copy).ok());
  const auto plain = medium / "plain.db";  // without its log
  const auto with_log = medium / "with_log.db";
  fs::copy_file(path.string() + "-wal", with_log.string() + "-wal");
  fs::copy_file(path, with_log);
  store->close();
  fs::copy_file(path, plain);
  for (const auto& entry : fs::directory_iterator(medium)) fs::permissions(entry, fs::perms(0444));
  fs::permissions(dir.path(), fs::perms(0755));
  fs::permissions(medium, fs::perms(0555));
  /// The events that somebody who cannot write there finds; -1: refused, for the log.
  const auto events_in = [](const fs::path& file) {
    const pid_t child = fork();
    if (child == 0) {
      if (geteuid() == 0 && setuid(12'345) != 0) _exit(99);
      auto reader = StoreReader::open(file);
      if (!reader)
        _exit(reader.error().message.find("-wal holds events") != std::string::npos ? 98 : 97);
      _exit(static_cast<int>(test::all_events(*reader, "s").size()));
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  };
  EXPECT_EQ(events_in(copy), 2);
  EXPECT_EQ(events_in(plain), 2);
  EXPECT_EQ(events_in(with_log), 98) << "it does not pretend that the log is empty";
  // The directory can be written, the file cannot. The files that one reader leaves beside it do
  // not stop another reader.
  const auto locked = dir / "locked";
  fs::create_directory(locked);
  fs::copy_file(plain, locked / "plain.db");
  fs::permissions(locked, fs::perms(0777));
  EXPECT_EQ(events_in(locked / "plain.db"), 2);
  EXPECT_EQ(events_in(locked / "plain.db"), 2);
  fs::permissions(locked, fs::perms(0555));
  EXPECT_EQ(events_in(locked / "plain.db"), 2);
  fs::permissions(medium, fs::perms(0755));
}

// Closing any descriptor of a file drops the locks of the whole process on it. Without them another
// process that ends takes the log away.
TEST_F(StorePlace, stores_of_one_process_leave_each_other_their_locks) {
  make();
  auto store = Store::open({.database = path});
  ASSERT_TRUE(say(*store, "s", {change()}).ok());
  const auto is_locked = [&] {
    const pid_t child = fork();
    if (child == 0) {
      const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
      struct flock shared {};  // the bytes by which SQLite says that a file is in use
      shared.l_type = F_WRLCK;
      shared.l_whence = SEEK_SET;
      shared.l_start = 0x40000002;
      shared.l_len = 510;
      _exit(fcntl(fd, F_GETLK, &shared) == 0 && shared.l_type == F_RDLCK ? 1 : 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status) == 1;
  };
  ASSERT_TRUE(is_locked());
  { auto other = Store::open({.database = path}); }
  EXPECT_TRUE(is_locked()) << "after another store";
  {
    auto other = Store::open({.database = path});
    auto judge = Observer::start(*other, {});
    ASSERT_TRUE(judge.ok());
  }
  EXPECT_TRUE(is_locked()) << "after a judge";
  { auto reader = StoreReader::open(path); }
  EXPECT_TRUE(is_locked()) << "after a reader";
  ASSERT_TRUE(store->reader().copy_to(dir / "copy.db").ok());
  EXPECT_TRUE(is_locked()) << "after a copy";
}

}  // namespace
}  // namespace watchdog
