#include "watchdog/workspace.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

#include "files/sha256.h"
#include "support/scenario.h"
#include "support/temp_dir.h"
#include "support/text_file.h"
#include "text/utf8.h"
#include "watchdog/artifact_store.h"
#include "workspace/line_diff.h"

namespace watchdog::test {
namespace {

using test::content_of;
using test::write_file;
namespace fs = std::filesystem;

unsigned mode_of(const fs::path& path) {
  struct stat facts {};
  EXPECT_EQ(stat(path.c_str(), &facts), 0);
  return facts.st_mode & 07777U;
}

class WorkspaceTest : public testing::Test {
 protected:
  TempDir dir;
  fs::path inside = dir / "inside";
  fs::path outside = dir / "outside";

  WorkspaceTest() {
    write_file(inside / "file", "inside");
    write_file(inside / "sub" / "deep" / "file", "deep");
    write_file(outside / "file", "secret");
  }

  [[nodiscard]] Workspace open() const { return std::move(*Workspace::open({inside})); }
  [[nodiscard]] std::set<std::string> names_in(const fs::path& path) const {
    std::set<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator(path))
      names.insert(fs::relative(entry.path(), path));
    return names;
  }
};

/// The bytes that were read, or the code of the refusal.
std::string read(const Workspace& workspace, std::string_view path) {
  const auto part = workspace.read(path);
  return part ? part->bytes : std::string(name_of(part.error().code));
}

TEST_F(WorkspaceTest, files_are_read_by_relative_and_by_absolute_paths) {
  const auto workspace = open();
  for (const std::string& path :
       {std::string("file"), std::string("./file"), std::string("sub/../file"),
        std::string("sub//deep/.././../file"), (inside / "file").string(),
        (inside / "sub" / ".." / "file").string()})
    EXPECT_EQ(read(workspace, path), "inside") << path;
  EXPECT_EQ(*workspace.resolve("sub/./deep/../new"), workspace.root() / "sub" / "new");
  EXPECT_EQ(*workspace.resolve("not/there/yet"), workspace.root() / "not" / "there" / "yet");
  EXPECT_EQ(*workspace.resolve("."), workspace.root());
}

TEST_F(WorkspaceTest, a_path_that_leads_outside_is_refused) {
  const auto workspace = open();
  fs::create_symlink(outside, inside / "link");
  fs::create_symlink("../outside/file", inside / "filelink");
  fs::create_symlink("sub/../../outside", inside / "sneaky");
  fs::create_symlink("/", inside / "rootlink");
  fs::create_symlink("/proc/self/root", inside / "magic");
  fs::create_symlink("/proc/self/cwd", inside / "magiccwd");
  for (const std::string& path :
       {std::string("../outside/file"), std::string("sub/../../outside/file"),
        std::string("link/file"), std::string("filelink"), std::string("sneaky/file"),
        "rootlink" + (outside / "file").string(), "magic" + (outside / "file").string(),
        std::string("magiccwd/file"), (outside / "file").string(), std::string("/etc/passwd"),
        inside.string() + "/../outside/file", inside.string() + "side", std::string("/"),
        std::string("..")}) {
    EXPECT_EQ(read(workspace, path), "invalid") << path;
    EXPECT_EQ(workspace.resolve(path).error().code, ErrorCode::invalid) << path;
    EXPECT_EQ(workspace.digest(path).error().code, ErrorCode::invalid) << path;
    EXPECT_EQ(workspace.stage(path, "x").error().code, ErrorCode::invalid) << path;
    EXPECT_EQ(workspace.stage(path + "/new", "x").error().code, ErrorCode::invalid) << path;
    EXPECT_EQ(workspace.diff(path, "x").error().code, ErrorCode::invalid) << path;
  }
  EXPECT_EQ(names_in(outside), std::set<std::string>{"file"});
}

TEST_F(WorkspaceTest, links_that_stay_inside_are_followed) {
  const auto workspace = open();
  fs::create_symlink("sub/deep", inside / "relative");
  fs::create_symlink(inside / "sub", inside / "absolute");
  fs::create_symlink("../../file", inside / "sub" / "deep" / "up");
  fs::create_symlink("new", inside / "dangling");
  EXPECT_EQ(read(workspace, "relative/file"), "deep");
  EXPECT_EQ(read(workspace, "absolute/deep/file"), "deep");
  EXPECT_EQ(read(workspace, "relative/up"), "inside");
  EXPECT_EQ(read(workspace, "relative/../deep/file"), "deep") << "back to where the link led";
  EXPECT_EQ(*workspace.resolve("absolute/deep/up"), workspace.root() / "file");
  EXPECT_EQ(read(workspace, "dangling"), "not_found");
  EXPECT_EQ(workspace.stage("dangling", "x")->parent_path(), workspace.root());
}

TEST_F(WorkspaceTest, a_path_may_name_any_of_several_roots) {
  write_file(dir / "other" / "file", "other");
  write_file(inside / "sub" / "file", "sub");
  fs::create_directory_symlink(inside, dir / "spelled");
  const auto workspace = Workspace::open({dir / "spelled", dir / "other", inside / "sub"});
  ASSERT_TRUE(workspace.ok());
  EXPECT_EQ(workspace->root(), fs::canonical(inside));
  EXPECT_EQ(read(*workspace, "file"), "inside");
  EXPECT_EQ(read(*workspace, (dir / "spelled" / "file").string()), "inside");
  EXPECT_EQ(read(*workspace, (inside / "file").string()), "inside");
  EXPECT_EQ(read(*workspace, (dir / "other" / "file").string()), "other");
  EXPECT_EQ(read(*workspace, (inside / "sub" / "file").string()), "sub");
  EXPECT_EQ(read(*workspace, "../other/file"), "invalid");
  fs::create_directory_symlink(dir / "other", inside / "toother");
  EXPECT_EQ(read(*workspace, "toother/file"), "other") << "it is inside, too";
}

TEST_F(WorkspaceTest, hostile_paths_are_refused) {
  const auto workspace = open();
  fs::create_symlink("loop", inside / "loop");
  fs::create_symlink("b", inside / "a");
  fs::create_symlink("a", inside / "b");
  std::string deep;
  for (int i = 0; i < 1'000; ++i) deep += "a1/";
  for (const std::string& path :
       {std::string(), std::string("file\0x", 6), std::string("loop"), std::string("a/x"),
        std::string("file/x"), std::string("file/.."), std::string(5'000, 'x'),
        std::string(300, 'x'), "new/" + std::string(300, 'x'), deep,
        std::string("new/../../outside/file"), std::string("new/../file")}) {
    EXPECT_EQ(read(workspace, path), "invalid") << path.substr(0, 40);
    EXPECT_EQ(workspace.stage(path, "x").error().code, ErrorCode::invalid) << path.substr(0, 40);
  }
  EXPECT_EQ(read(workspace, std::string(255, 'x')), "not_found");
  EXPECT_EQ(names_in(outside), std::set<std::string>{"file"});
}

TEST_F(WorkspaceTest, a_path_that_is_not_a_regular_file_is_refused_without_waiting) {
  const auto workspace = open();
  ASSERT_EQ(mkfifo((inside / "pipe").c_str(), 0600), 0);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::snprintf(address.sun_path, sizeof address.sun_path, "%s", (inside / "socket").c_str());
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  close(fd);
  for (const std::string path : {"pipe", "socket", "sub", "."}) {
    EXPECT_EQ(read(workspace, path), "invalid") << path;
    EXPECT_EQ(workspace.digest(path).error().code, ErrorCode::invalid) << path;
    EXPECT_EQ(workspace.stage(path, "x").error().code, ErrorCode::invalid) << path;
    EXPECT_EQ(workspace.diff(path, "x").error().code, ErrorCode::invalid) << path;
  }
  const auto devices = Workspace::open({"/dev"});
  ASSERT_TRUE(devices.ok());
  EXPECT_EQ(read(*devices, "null"), "invalid");
  EXPECT_EQ(read(*devices, "zero"), "invalid");
}

TEST_F(WorkspaceTest, a_part_of_a_file_is_read_and_its_size_said) {
  const auto workspace = open();
  const auto part = workspace.read("file", 2, 3);
  ASSERT_TRUE(part.ok());
  EXPECT_EQ(part->bytes, "sid");
  EXPECT_EQ(part->offset, 2U);
  EXPECT_EQ(part->total, 6U);
  EXPECT_EQ(workspace.read("file", 6)->bytes, "");
  EXPECT_EQ(workspace.read("file", 7).error().code, ErrorCode::invalid);
  EXPECT_EQ(workspace.read("file", UINT64_MAX).error().code, ErrorCode::invalid);
  write_file(inside / "big", "");
  fs::resize_file(inside / "big", std::uintmax_t{1} << 40U);
  const auto big = workspace.read("big", 0, SIZE_MAX);
  EXPECT_EQ(big->bytes.size(), Workspace::file_bytes_max);
  EXPECT_EQ(big->total, std::uint64_t{1} << 40U);
  EXPECT_EQ(workspace.digest("big").error().code, ErrorCode::exhausted);
  EXPECT_NE(workspace.diff("big", "x")->find("1099511627776 bytes become 1"), std::string::npos);
}

TEST_F(WorkspaceTest, a_digest_is_of_the_content_and_empty_for_what_is_not_there) {
  const auto workspace = open();
  EXPECT_EQ(*workspace.digest("file"), sha256_of("inside"));
  EXPECT_EQ(*workspace.digest("missing"), std::nullopt);
  EXPECT_EQ(*workspace.digest("missing/too"), std::nullopt);
}

TEST_F(WorkspaceTest, roots_must_be_directories) {
  EXPECT_EQ(Workspace::open({dir / "missing"}).error().code, ErrorCode::not_found);
  EXPECT_EQ(Workspace::open({inside, inside / "file"}).error().code, ErrorCode::invalid);
}

TEST_F(WorkspaceTest, a_staged_file_lies_beside_its_target_with_its_mode) {
  const auto workspace = open();
  fs::permissions(inside / "file", fs::perms(0751));
  const auto staged = workspace.stage("file", "new content");
  ASSERT_TRUE(staged.ok()) << staged.error().message;
  EXPECT_EQ(staged->parent_path(), workspace.root());
  EXPECT_TRUE(staged->filename().string().starts_with(".file.wd-")) << *staged;
  EXPECT_EQ(content_of(*staged), "new content");
  EXPECT_EQ(mode_of(*staged), 0751U);
  EXPECT_EQ(content_of(inside / "file"), "inside") << "only the gate renames";

  fs::permissions(inside / "file", fs::perms(04755));
  EXPECT_EQ(mode_of(*workspace.stage("file", "x")), 0755U) << "nobody's rights are lent";
}

TEST_F(WorkspaceTest, a_new_file_gets_the_usual_mode_and_its_directories) {
  const auto workspace = open();
  const auto old = umask(027);
  const auto staged = workspace.stage("new/dir/file.txt", "x");
  umask(old);
  ASSERT_TRUE(staged.ok()) << staged.error().message;
  EXPECT_EQ(staged->parent_path(), workspace.root() / "new" / "dir");
  EXPECT_EQ(mode_of(*staged), 0640U);
  EXPECT_EQ(mode_of(inside / "new" / "dir"), 0750U);
}

TEST_F(WorkspaceTest, a_staged_file_of_a_long_name_has_a_shorter_one) {
  const auto workspace = open();
  std::string name;
  while (name.size() < 254) name += "\u00e9";
  const auto staged = workspace.stage(name, "x");
  ASSERT_TRUE(staged.ok()) << staged.error().message;
  EXPECT_LE(staged->filename().string().size(), 255U);
  EXPECT_TRUE(is_utf8(staged->filename().string()));
}

TEST_F(WorkspaceTest, where_the_disk_is_full_nothing_is_staged) {
  const auto workspace = open();
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{10'000, 10'000};
    setrlimit(RLIMIT_FSIZE, &limit);
    const auto staged = workspace.stage("file", std::string(20'000, 'x'));
    _exit(!staged && staged.error().code == ErrorCode::exhausted ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(names_in(inside), (std::set<std::string>{"file", "sub", "sub/deep", "sub/deep/file"}));
}

TEST_F(WorkspaceTest, a_directory_that_is_swapped_for_a_link_meanwhile_leads_nowhere) {
  const auto workspace = open();
  fs::create_directory_symlink(outside, inside / "link");
  write_file(inside / "sub" / "file", "inside");
  write_file(outside / "file", "secret");
  std::atomic<bool> done = false;
  std::thread swapper([&] {
    const auto real = inside / "sub";
    const auto link = inside / "link";
    while (!done) renameat2(AT_FDCWD, real.c_str(), AT_FDCWD, link.c_str(), RENAME_EXCHANGE);
  });
  int through = 0;
  int refused = 0;
  for (int round = 0; round < 200'000 && (round < 20'000 || through == 0 || refused == 0);
       ++round) {
    const auto content = read(workspace, "sub/file");
    ASSERT_NE(content, "secret");
    ++(content == "inside" ? through : refused);
    if (round % 50 == 0) {
      ASSERT_NE(*workspace.digest("file"), sha256_of("secret"));
      const auto staged = workspace.stage("sub/new/name", "staged");
      const auto shown = workspace.diff("sub/file", "x");
      ASSERT_TRUE(!shown || shown->find("secret") == std::string::npos);
    }
  }
  done = true;
  swapper.join();
  EXPECT_GT(through, 0);
  EXPECT_GT(refused, 0);
  EXPECT_EQ(names_in(outside), std::set<std::string>{"file"});
  EXPECT_EQ(content_of(outside / "file"), "secret");
}

// --- diff --------------------------------------------------------------------------------------

TEST_F(WorkspaceTest, a_diff_shows_what_would_change) {
  write_file(inside / "text", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
  const auto workspace = open();
  EXPECT_EQ(*workspace.diff("text", "1\n2\n3\n4\nfive\n6\n7\n8\n9\nten\n"),
            "--- text\n+++ text\n@@ -2,8 +2,9 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n 9\n+ten\n");
  EXPECT_EQ(*workspace.diff("text", "1\n2\n3\n4\n5\n6\n7\n8\n9\n"), "");
  EXPECT_EQ(
      *workspace.diff("sub/new", "one\ntwo"),
      "--- /dev/null\n+++ sub/new\n@@ -0,0 +1,2 @@\n+one\n+two\n\\ No newline at end of file\n");
  EXPECT_EQ(*workspace.diff("text", ""),
            "--- text\n+++ text\n@@ -1,9 +0,0 @@\n-1\n-2\n-3\n-4\n-5\n-6\n-7\n-8\n-9\n");
  EXPECT_EQ(*workspace.diff("text", std::string("\0\1", 2)),
            "text is not a text that can be compared: 18 bytes become 2.\n");
  EXPECT_EQ(*workspace.diff("binary", "\xff"), "binary is new and no text: 1 bytes.\n");
}

TEST(LineDiff, far_changes_get_hunks_of_their_own) {
  std::string before;
  for (int i = 1; i <= 20; ++i) before += std::to_string(i) + "\n";
  auto after = before;
  after.replace(after.find("2\n"), 1, "two");
  after.replace(after.find("\n18\n") + 1, 2, "eighteen");
  EXPECT_EQ(unified_diff(before, after, "a", "b", 10'000),
            "--- a\n+++ b\n@@ -1,5 +1,5 @@\n 1\n-2\n+two\n 3\n 4\n 5\n"
            "@@ -15,6 +15,6 @@\n 15\n 16\n 17\n-18\n+eighteen\n 19\n 20\n");
}

TEST(LineDiff, a_control_character_is_shown_by_its_number_and_not_sent) {
  EXPECT_EQ(unified_diff("", "a\x1b[2K\r\u009bb\u202Ec\u2066\x7f\td\n", "a\x1b", "b", 1'000),
            "--- a<U+001B>\n+++ b\n@@ -0,0 +1 @@\n"
            "+a<U+001B>[2K<U+000D><U+009B>b<U+202E>c<U+2066><U+007F>\td\n");
}

TEST(LineDiff, lines_that_do_not_fit_are_counted) {
  std::string after;
  for (int i = 0; i < 1'000; ++i) after += "line\n";
  const auto diff = unified_diff("", after, "a", "b", 1'000);
  EXPECT_LE(characters_in(diff), 1'000U);
  const auto shown = static_cast<std::size_t>(std::count(diff.begin(), diff.end(), '+')) - 4;
  EXPECT_NE(diff.find("[… " + std::to_string(1'000 - shown) +
                      " more lines of this diff; in all 0 lines go and 1000 come]"),
            std::string::npos)
      << diff;
  for (std::size_t chars = 0; chars < 300; ++chars) {
    EXPECT_LE(characters_in(unified_diff("", after, "a", "b", chars)), chars);
    EXPECT_LE(characters_in(unified_diff("", std::string(1'000, 'x'), "a", "b", chars)), chars);
  }
}

TEST(LineDiff, big_and_different_texts_cost_bounded_time) {
  std::string before;
  std::string after;
  for (int i = 0; i < 300'000; ++i) {
    before += std::to_string(i % 7) + "\n";
    after += std::to_string(i % 11) + "\n";
  }
  EXPECT_LE(characters_in(unified_diff(before, after, "a", "b", 8'000)), 8'000U);
}

/// A line of a text, and whether it has an end.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size() - 1);
    lines.push_back(text.substr(at, end + 1 - at));
    at = end + 1;
  }
  return lines;
}

/// Two ranges of lines, counted from 0.
struct Hunk {
  std::size_t before = 0;
  std::size_t before_count = 0;
  std::size_t after = 0;
  std::size_t after_count = 0;
};

std::optional<Hunk> hunk_of(const std::string& line) {
  static const std::regex head(R"(@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@\n)");
  std::smatch found;
  if (!std::regex_match(line, found, head)) return std::nullopt;
  const auto count = [&](std::size_t at) {
    return found[at].matched ? std::stoul(found[at]) : 1UL;
  };
  Hunk hunk{std::stoul(found[1]), count(2), std::stoul(found[3]), count(4)};
  if (hunk.before_count > 0) --hunk.before;
  if (hunk.after_count > 0) --hunk.after;
  return hunk;
}

/// What becomes of a text when a diff is applied to it; strictly: every line and number must be
/// right.
std::string patched(const std::string& text, const std::string& diff) {
  const auto before = lines_of(text);
  const auto patch = lines_of(diff);
  std::vector<std::string> after;
  std::size_t at = 0;
  for (std::size_t i = 2; i < patch.size();) {
    const auto hunk = hunk_of(patch[i]);
    if (!hunk) return "no hunk: " + patch[i];
    while (at < hunk->before) after.push_back(before.at(at++));
    if (after.size() != hunk->after) return "wrong start: " + patch[i];
    for (++i; i < patch.size() && !patch[i].starts_with("@@"); ++i) {
      if (patch[i].starts_with('\\')) continue;
      auto line = patch[i].substr(1);
      if (i + 1 < patch.size() && patch[i + 1].starts_with('\\')) line.pop_back();
      if (!patch[i].starts_with('+') && before.at(at++) != line) return "wrong: " + line;
      if (!patch[i].starts_with('-')) after.push_back(line);
    }
    if (at != hunk->before + hunk->before_count || after.size() != hunk->after + hunk->after_count)
      return "wrong counts";
  }
  after.insert(after.end(), before.begin() + static_cast<std::ptrdiff_t>(at), before.end());
  std::string result;
  for (const auto& line : after) result += line;
  return result;
}

TEST(LineDiff, applied_to_the_old_text_it_gives_the_new_one_with_as_few_lines_as_diff) {
  TempDir dir;
  const bool has_diff = std::system("diff --version >/dev/null 2>&1") == 0;
  if (!has_diff) std::printf("diff(1) is not installed: the number of lines is not compared\n");
  std::mt19937 random(random_seed());
  for (int round = repetitions(3'000); round > 0; --round) {
    const auto alphabet = 1 + random() % 6;
    std::string before;
    std::string after;
    for (auto lines = random() % 60; lines > 0; --lines) {
      const auto line = std::string(1, static_cast<char>('a' + random() % alphabet)) + "\n";
      if (random() % 8 != 0) before += line;
      if (random() % 8 != 0) after += line;
    }
    if (random() % 5 == 0) before += "end";
    if (random() % 5 == 0) after += "end";
    const auto diff = unified_diff(before, after, "a", "b", SIZE_MAX);
    if (before == after) {
      ASSERT_EQ(diff, "");
      continue;
    }
    ASSERT_EQ(patched(before, diff), after) << before << "---\n" << after << "---\n" << diff;
    if (!has_diff || round % 10 != 0) continue;
    write_file(dir / "a", before);
    write_file(dir / "b", after);
    const auto command = "cd " + dir.path().string() + "; diff -d -u a b > diff";
    ASSERT_NE(std::system(command.c_str()), -1);
    const auto changed = [](const std::string& text) {
      std::istringstream lines(text);
      int count = -2;  // the names
      for (std::string line; std::getline(lines, line);)
        count += line.starts_with('-') || line.starts_with('+') ? 1 : 0;
      return count;
    };
    ASSERT_EQ(changed(diff), changed(content_of(dir / "diff"))) << diff;
  }
}

}  // namespace
}  // namespace watchdog::test
