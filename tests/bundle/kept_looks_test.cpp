// The folder of looks: one look for each session, also after a crash, and none of a session that is
// gone.
#include "bundle/kept_looks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "support/temp_dir.h"

namespace watchdog::monitor {
namespace {

namespace fs = std::filesystem;

struct KeptLooksTest : testing::Test {
  const test::TempDir dir;
  const fs::path folder = KeptLooks::folder_of(dir.path() / "w.db");
  KeptLooks looks{folder};

  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder))
      names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
  }
};

TEST_F(KeptLooksTest, the_newest_look_of_a_session_replaces_its_earlier_one) {
  EXPECT_TRUE(looks.moments().empty());
  EXPECT_EQ(looks.look("s").text, "");
  ASSERT_TRUE(looks.keep("s", "looping-17", "first"));
  ASSERT_TRUE(looks.keep("s:2@host", "dead-4", "of another"));
  ASSERT_TRUE(looks.keep("s", "cancel-1", "second"));
  EXPECT_EQ(looks.look("s").moment, "cancel-1");
  EXPECT_EQ(looks.look("s").text, "second");
  EXPECT_EQ(looks.moments(),
            (std::map<std::string, std::string>{{"s", "cancel-1"}, {"s:2@host", "dead-4"}}));
  EXPECT_EQ(files(), (std::vector<std::string>{"s:2@host~dead-4.txt", "s~cancel-1.txt"}));
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
}

TEST_F(KeptLooksTest, a_look_at_the_model_server_stays_beside_that_at_the_agent) {
  ASSERT_TRUE(looks.keep("s", "looping-17", "agent"));
  ASSERT_TRUE(looks.keep("s", "hung-1", "old", LookOf::server));
  ASSERT_TRUE(looks.keep("s", "hung-4711", "server", LookOf::server));
  ASSERT_TRUE(looks.keep("t", "hung-4711", "server", LookOf::server));
  EXPECT_EQ(looks.look("s").text, "agent");
  EXPECT_EQ(looks.look("s", LookOf::server).text, "server");
  EXPECT_EQ(looks.look("s", LookOf::server).moment, "hung-4711");
  EXPECT_EQ(looks.look("t").text, "");
  EXPECT_EQ(looks.moments(), (std::map<std::string, std::string>{{"s", "looping-17"}}));
  ASSERT_TRUE(looks.keep("s", "dead-40", "agent"));
  EXPECT_EQ(looks.look("s", LookOf::server).text, "server");
  looks.remove_unless([](const std::string& session) { return session == "s"; });
  EXPECT_EQ(files(), (std::vector<std::string>{"s~dead-40.txt", "s~hung-4711.server"}));
}

TEST_F(KeptLooksTest, a_look_is_cut_and_a_draft_of_a_crash_is_replaced) {
  ASSERT_TRUE(looks.keep("s", "dead-4", "one"));
  std::ofstream(folder / "s~dead-5.txt.new") << "half";
  EXPECT_EQ(looks.moments().size(), 1U) << "it does not list a draft";
  ASSERT_TRUE(looks.keep("s", "dead-5", std::string(KeptLooks::bytes_max + 1, 'x')));
  EXPECT_EQ(looks.look("s").text.size(), KeptLooks::bytes_max);
  EXPECT_EQ(files(), std::vector<std::string>{"s~dead-5.txt"});
}

TEST_F(KeptLooksTest, looks_of_sessions_that_are_gone_are_removed_and_other_files_stay) {
  for (const auto* session : {"a", "b", "c"}) ASSERT_TRUE(looks.keep(session, "dead-1", "x"));
  std::ofstream(folder / "notes") << "of its owner";
  looks.remove_unless([](const std::string& session) { return session == "b"; });
  EXPECT_EQ(files(), (std::vector<std::string>{"b~dead-1.txt", "notes"}));
}

TEST_F(KeptLooksTest, nothing_is_written_where_the_folder_is_a_link) {
  fs::create_directory(dir.path() / "elsewhere");
  fs::create_directory_symlink(dir.path() / "elsewhere", folder);
  EXPECT_FALSE(looks.keep("s", "dead-1", "x"));
  EXPECT_TRUE(looks.moments().empty());
  EXPECT_TRUE(fs::is_empty(dir.path() / "elsewhere"));
}

}  // namespace
}  // namespace watchdog::monitor
