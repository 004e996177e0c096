// Files that are replaced as a whole: the earlier file stays until the new one is complete, and
// nothing else is left.
#include "files/durable_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>
#include <thread>

#include "support/temp_dir.h"
#include "watchdog/tool_outcome.h"

namespace watchdog {
namespace {

namespace fs = std::filesystem;

struct DurableFileTest : testing::Test {
  const test::TempDir dir;
  const fs::path folder = dir.path() / "in";
  const fs::path path = folder / "file";

  void SetUp() override { fs::create_directory(folder); }

  static std::string text(const fs::path& from) {
    std::ifstream file(from);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : fs::directory_iterator(folder))
      all.push_back(entry.path().filename().string());
    std::ranges::sort(all);
    return all;
  }
  static mode_t mode(const fs::path& of) {
    struct stat facts {};
    EXPECT_EQ(stat(of.c_str(), &facts), 0);
    return facts.st_mode & 07777U;
  }
};

TEST_F(DurableFileTest, a_file_is_replaced_as_a_whole) {
  EXPECT_EQ(put_file(path, "first"), 0);
  EXPECT_EQ(mode(path), 0600U);
  const std::ifstream reader(path);
  EXPECT_EQ(put_file(path, "second", 0644), 0);
  EXPECT_EQ(text(path), "second");
  EXPECT_EQ(names(), std::vector<std::string>{"file"});
}

TEST_F(DurableFileTest, a_file_that_is_to_stay_stays) {
  EXPECT_EQ(put_file(path, "first", 0600, Existing::keep), 0);
  EXPECT_EQ(put_file(path, "second", 0600, Existing::keep), EEXIST);
  EXPECT_EQ(text(path), "first");
  EXPECT_EQ(names(), std::vector<std::string>{"file"});
}

TEST_F(DurableFileTest, a_file_that_is_not_placed_is_gone) {
  EXPECT_EQ(put_file(path, "first"), 0);
  {
    DurableFile half(path);
    ASSERT_TRUE(half.file());
    EXPECT_EQ(half.file().write("half"), 0);
    EXPECT_EQ(names().size(), 2U);
  }
  EXPECT_EQ(text(path), "first");
  EXPECT_EQ(names(), std::vector<std::string>{"file"});
  EXPECT_EQ(put_file(folder / "no" / "file", "x"), ENOENT);
}

TEST_F(DurableFileTest, drafts_of_a_crash_are_removed_after_an_hour) {
  const auto old = folder / ".file.0123456789ab.new";
  const auto young = folder / ".file.0123456789ac.new";
  const auto of_another = folder / ".file2.0123456789ab.new";
  for (const auto& draft : {old, young, of_another}) std::ofstream(draft) << "half";
  for (const auto& draft : {old, of_another})
    fs::last_write_time(draft, fs::file_time_type::clock::now() - std::chrono::hours{2});
  EXPECT_EQ(put_file(path, "whole"), 0);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young)) << "its writer may be at work";
  EXPECT_TRUE(fs::exists(of_another));
}

TEST_F(DurableFileTest, folders_are_made_with_their_parents) {
  const auto deep = folder / "a" / "b" / "c";
  EXPECT_EQ(make_folders(deep, 0700), 0);
  EXPECT_EQ(make_folders(deep, 0700), 0) << "it is there";
  EXPECT_EQ(mode(deep), 0700U);
  EXPECT_EQ(put_file(path, "x"), 0);
  EXPECT_EQ(make_folders(path / "d", 0700), ENOTDIR);
}

TEST_F(DurableFileTest, numbers_of_calls_are_given_once_to_all_who_share_the_file) {
  constexpr int programs = 4;
  constexpr int refills = 8;
  std::vector<std::vector<Epoch>> given(programs);
  std::vector<std::thread> threads;
  for (auto& numbers : given) {
    threads.emplace_back([&] {
      for (int at = 0; at < refills; ++at) {
        auto source = EpochSource::open(path);
        ASSERT_TRUE(source);
        numbers.push_back(*source->next());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  std::vector<Epoch> all;
  for (const auto& numbers : given) {
    EXPECT_TRUE(std::ranges::is_sorted(numbers));
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
  EXPECT_EQ(all.size(), static_cast<std::size_t>(programs * refills));
}

}  // namespace
}  // namespace watchdog
