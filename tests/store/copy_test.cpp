// A copy that is interrupted, and one that fails.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "store/store.h"
#include "support/faulty_files.h"
#include "support/reports.h"
#include "support/temp_dir.h"

namespace watchdog {
namespace {

namespace fs = std::filesystem;
using test::FaultyFiles;
using test::FileCall;

class StoreCopying : public testing::Test {
 protected:
  test::TempDir dir;
  fs::path path = dir / "w.db";
  fs::path copy = dir / "copies/copy.db";

  void SetUp() override {
    fs::create_directory(copy.parent_path());
    auto store = Store::open({.database = path});
    for (int i = 0; i < 20; ++i)
      ASSERT_TRUE(test::say(*store, "s" + std::to_string(i), {test::change()}).ok());
  }
  /// Copies the database in a process in which the write with this number is the last call of all;
  /// returns its exit code: 0 if it made the copy.
  int copy_until(int write, FaultyFiles::Failure how) {
    const pid_t child = fork();
    if (child == 0) {
      FaultyFiles files;
      auto reader = StoreReader::open(path);
      files.fail(FileCall::write, write, how);
      _exit(reader->copy_to(copy).ok() ? 0 : 1);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WEXITSTATUS(status);
  }
  std::vector<std::string> copies() {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(copy.parent_path()))
      names.push_back(entry.path().filename());
    return names;
  }
};

TEST_F(StoreCopying, killed_copy_has_no_name_and_does_not_block_the_next_copy) {
  int write = 1;
  for (; copy_until(write, FaultyFiles::Failure::half_end) == FaultyFiles::end_code; ++write) {
    EXPECT_FALSE(fs::exists(copy)) << write;
    auto reader = StoreReader::open(path);
    const auto made = reader->copy_to(copy);
    ASSERT_TRUE(made.ok()) << made.error().message;
    EXPECT_EQ(made->events, 20);
    EXPECT_EQ(copies(), std::vector<std::string>{"copy.db"});
    fs::remove(copy);
  }
  EXPECT_GT(write, 10) << "it was killed at each write";
}

TEST_F(StoreCopying, failed_copy_leaves_nothing) {
  int write = 1;
  for (; copy_until(write, FaultyFiles::Failure::full) != 0; ++write)
    ASSERT_EQ(copies(), std::vector<std::string>{}) << write;
  EXPECT_GT(write, 10);
  EXPECT_EQ(copies(), std::vector<std::string>{"copy.db"});
}

TEST_F(StoreCopying, one_copy_at_a_time_and_only_of_ones_own) {
  auto reader = StoreReader::open(path);
  const auto partial = copy.string() + ".partial";
  const int other = open(partial.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  auto refused = reader->copy_to(copy);
  EXPECT_EQ(refused.error().code, ErrorCode::conflict);
  EXPECT_NE(refused.error().message.find("another copy is being written"), std::string::npos);
  EXPECT_TRUE(fs::exists(partial)) << "it is the other one's";
  close(other);
  EXPECT_TRUE(reader->copy_to(copy).ok()) << "the other one is gone";

  const auto victim = dir / "victim";
  std::ofstream(victim) << "text";
  fs::create_symlink(victim, copy.string() + "2.partial");
  EXPECT_FALSE(reader->copy_to(copy.string() + "2").ok());
  fs::create_hard_link(victim, copy.string() + "3.partial");
  EXPECT_EQ(reader->copy_to(copy.string() + "3").error().code, ErrorCode::conflict);
  EXPECT_EQ(fs::file_size(victim), 4U);
}

}  // namespace
}  // namespace watchdog
