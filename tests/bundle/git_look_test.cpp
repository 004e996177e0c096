// Git about the folder of a session, also where the repository is hostile.

#include "bundle/git_look.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "support/temp_dir.h"

namespace watchdog::monitor {
namespace {

using Path = std::filesystem::path;

class GitLooks : public testing::Test {
 protected:
  GitLooks() {
    setenv("WATCHDOG_EXEC", WATCHDOG_EXEC_BUILT, 1);  // NOLINT(concurrency-mt-unsafe): one thread
    std::filesystem::create_directories(folder());
    run("git -c init.defaultBranch=main init -q .");
    write("gate.py", "open\n");
    run("git add . && git -c user.name=a -c user.email=a@b commit -q -m first");
  }

  [[nodiscard]] Path folder() const { return dir_ / "shop"; }
  [[nodiscard]] Path mark() const { return dir_ / "mark"; }

  /// In the repository, as its owner: that proves nothing about a look.
  void run(const std::string& command) const {
    const auto whole =
        "cd " + folder().string() + " && { " + command + "; } >/dev/null 2>&1 </dev/null";
    ASSERT_EQ(std::system(whole.c_str()), 0)
        << command;  // NOLINT(concurrency-mt-unsafe): one thread
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder() / name) << text;
  }
  /// A program that leaves a mark when it runs.
  [[nodiscard]] std::string trap() const {
    const auto program = dir_ / "trap";
    std::ofstream(program) << "#!/bin/sh\necho ran >> " + mark().string() + "\nexit 1\n";
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    return program.string();
  }
  [[nodiscard]] static std::string look(const Path& where) {
    const auto found = look_with_git(where, {});
    return found.missing + found.status + found.stat;
  }

 private:
  test::TempDir dir_;
};

TEST_F(GitLooks, names_what_changed_and_changes_nothing) {
  write("gate.py", "shut\n");
  write("new file.py", "x\n");
  const auto index = std::filesystem::last_write_time(folder() / ".git" / "index");
  const auto found = look_with_git(folder(), {});
  EXPECT_EQ(found.missing, "");
  EXPECT_EQ(found.commit.size(), 40U);
  EXPECT_EQ(found.branch, "main");
  EXPECT_EQ(found.status, " M gate.py\n?? \"new file.py\"\n");
  EXPECT_EQ(found.stat, " gate.py | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)\n");
  EXPECT_EQ(std::filesystem::last_write_time(folder() / ".git" / "index"), index);
  std::filesystem::create_directories(folder() / "deep" / "er");
  EXPECT_EQ(look_with_git(folder() / "deep" / "er", {}).status, found.status);
}

TEST_F(GitLooks, runs_no_program_of_a_hostile_repository) {
  const auto program = trap();
  for (const auto* setting :
       {"core.fsmonitor", "diff.external", "core.pager", "core.sshCommand", "core.editor",
        "filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv",
        "diff.evil.command", "pager.status", "pager.diff", "alias.status",
        "interactive.diffFilter"})
    run(std::string("git config ") + setting + " " + program);
  run("git config filter.evil.required true");
  run("git config core.attributesFile " + (folder() / "attributes").string());
  write("attributes", "* filter=evil diff=evil\n");
  write(".gitattributes", "* filter=evil diff=evil\n");
  std::ofstream(folder() / ".git" / "info" / "attributes") << "* filter=evil diff=evil\n";
  for (const auto* hook : {"post-index-change", "pre-commit", "fsmonitor-watchman"}) {
    const auto path = folder() / ".git" / "hooks" / hook;
    std::filesystem::create_directories(path.parent_path());
    std::filesystem::copy_file(program, path);
  }
  write("gate.py", "shut\n");
  EXPECT_TRUE(look(folder()).starts_with(" M gate.py\n")) << look(folder());
  EXPECT_FALSE(std::filesystem::exists(mark()));
  run("git status --porcelain || true");  // as anybody else would ask
  EXPECT_TRUE(std::filesystem::exists(mark())) << "the trap does not work";
}

TEST_F(GitLooks, fetches_nothing_that_is_missing) {
  const auto program = trap();
  run("git config extensions.partialClone origin && git config remote.origin.promisor true && "
      "git config remote.origin.url " +
      (folder() / "other").string() + " && git config remote.origin.uploadpack " + program);
  run("git init -q other");
  run("find .git/objects -type f -delete");
  write("gate.py", "shut\n");
  (void)look(folder());
  EXPECT_FALSE(std::filesystem::exists(mark()));
  run("git status --porcelain || true");
  EXPECT_TRUE(std::filesystem::exists(mark())) << "the trap does not work";
}

TEST_F(GitLooks, looks_at_no_folder_that_a_setting_names) {
  std::filesystem::create_directories(folder().parent_path() / "private");
  std::ofstream(folder().parent_path() / "private" / "letters") << "x";
  run("git config core.worktree " + folder().parent_path().string());
  EXPECT_EQ(look(folder()), "the repository's settings name another folder.");
}

TEST_F(GitLooks, leaves_submodules_alone) {
  const auto program = trap();
  run("git init -q part && cd part && echo x > y && git add . && "
      "git -c user.name=a -c user.email=a@b commit -q -m x && git config core.fsmonitor " +
      program);
  run("git add part");
  std::filesystem::remove(mark());
  (void)look(folder());
  EXPECT_FALSE(std::filesystem::exists(mark()));
}

TEST_F(GitLooks, knows_a_second_work_tree_and_a_repository_without_commits) {
  run("git worktree add -q ../second");
  const auto second = folder().parent_path() / "second";
  std::ofstream(second / "more.py") << "x";
  EXPECT_EQ(look(second), "?? more.py\n");
  EXPECT_EQ(look_with_git(second, {}).branch, "second");
  std::filesystem::create_directories(folder() / "empty");
  run("cd empty && git -c init.defaultBranch=main init -q . && echo x > y");
  const auto found = look_with_git(folder() / "empty", {});
  EXPECT_EQ(found.missing + found.commit, "");
  EXPECT_EQ(found.branch, "main");
  EXPECT_EQ(found.status, "?? y\n");
}

TEST_F(GitLooks, leaves_out_what_the_repository_ignores) {
  std::ofstream(folder() / ".git" / "info" / "exclude") << "*.log\n";
  write(".gitignore", "*.tmp\n.gitignore\n");
  for (const auto* name : {"a.log", "b.tmp", "c.py"}) write(name, "x");
  EXPECT_EQ(look(folder()), "?? c.py\n");
}

TEST_F(GitLooks, bounds_what_it_keeps) {
  for (int number = 0; number < 2'000; ++number)
    write("file-with-a-rather-long-name-" + std::to_string(10'000 + number), "");
  const auto found = look_with_git(folder(), {});
  EXPECT_LE(found.status.size(), git_bytes_max + 64);
  EXPECT_TRUE(found.status.ends_with("\n… more was left out\n"));
}

TEST_F(GitLooks, says_why_it_has_nothing) {
  EXPECT_EQ(look("relative"), "the session's folder is not known.");
  EXPECT_EQ(look(folder() / "gone"),
            "the session's folder is not there, or belongs to another user.");
  EXPECT_EQ(look(folder().parent_path()), "the folder is not in a repository that git may read.");
  std::stop_source stopped;
  stopped.request_stop();
  EXPECT_TRUE(
      look_with_git(folder(), stopped.get_token()).missing.starts_with("git did not answer: "));
}

}  // namespace
}  // namespace watchdog::monitor
