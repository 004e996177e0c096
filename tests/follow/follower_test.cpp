// Files that grow, shrink, move and vanish, and what is read of them. The store is real; a
// transcript's lines are made for each test, with times of now.
#include "follow/follower.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <future>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "follow/follow_home.h"
#include "follow/positions.h"
#include "support/process.h"
#include "support/reports.h"
#include "support/scenario.h"
#include "support/server.h"
#include "support/temp_dir.h"

namespace watchdog::monitor {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::TempDir;
using namespace test_follow;
using Followed = FollowHome;

/// Lines of Claude Code, one millisecond apart, the first one that long ago.
class ClaudeLines {
 public:
  explicit ClaudeLines(std::string session, std::chrono::milliseconds ago = std::chrono::minutes(1))
      : session_(std::move(session)), at_(system_clock().wall() - ago) {}

  std::string prompt(const std::string& text) {
    return line("user", {{"role", "user"}, {"content", text}});
  }
  std::string call(const std::string& id, const std::string& command) {
    return line("assistant", {{"id", "msg_" + id},
                              {"stop_reason", "tool_use"},
                              {"usage", {{"input_tokens", 10}, {"output_tokens", 5}}},
                              {"content",
                               {{{"type", "tool_use"},
                                 {"id", id},
                                 {"name", "Bash"},
                                 {"input", {{"command", command}}}}}}});
  }
  std::string result(const std::string& id, const std::string& text) {
    return line("user",
                {{"role", "user"},
                 {"content", {{{"type", "tool_result"}, {"tool_use_id", id}, {"content", text}}}}});
  }
  std::string answer(const std::string& text) {
    return line("assistant", {{"id", "msg_" + text},
                              {"stop_reason", "end_turn"},
                              {"content", {{{"type", "text"}, {"text", text}}}}});
  }
  /// A prompt, some calls, an answer.
  std::string turn(int calls, std::size_t bytes = 20) {
    auto text = prompt("please " + std::to_string(++turns_));
    for (int i = 0; i < calls; ++i) {
      const auto id = session_ + "-" + std::to_string(turns_) + "-" + std::to_string(i);
      text += call(id, "make " + id) + result(id, std::string(bytes, 'x') + id);
    }
    return text + answer("done " + std::to_string(turns_));
  }

 private:
  std::string line(const char* type, const json& message) {
    at_ += Millis{1};
    return json{{"type", type},
                {"sessionId", session_},
                {"cwd", "/home/u/project"},
                {"isSidechain", false},
                {"uuid", std::to_string(++lines_)},
                {"timestamp", stamp_of(at_)},
                {"message", message}}
               .dump() +
           "\n";
  }
  std::string session_;
  WallTime at_;
  int turns_ = 0;
  int lines_ = 0;
};

TEST(Follower, reads_a_file_that_grows_at_random_cuts_as_if_it_had_been_there) {
  const auto seed = test::random_seed();
  SCOPED_TRACE("WATCHDOG_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < test::repetitions(10); ++round) {
    ClaudeLines lines("grows");
    const auto text = lines.turn(3) + lines.turn(0) + lines.turn(2) + lines.prompt("and now");
    Followed whole;
    append(whole.file("grows"), text);
    whole.read();

    Followed cut;
    append(cut.file("grows"), "");
    for (std::size_t at = 0; at < text.size();) {
      const auto length = std::min<std::size_t>(1 + random() % 700, text.size() - at);
      append(cut.file("grows"), std::string_view(text).substr(at, length));
      at += length;
      if (random() % 2 == 0) cut.read();
      if (random() % 10 == 0) fs::remove(cut.dir() / "positions");  // all is read again
    }
    cut.read();
    const auto names = [](const Followed& of) {
      std::vector<std::string> all;
      for (const auto& event : of.events("grows"))
        all.push_back(std::string(name_of(event.report.kind)) + " " + event.report.event_id);
      return all;
    };
    auto expected = names(whole);
    auto found = names(cut);
    // A turn's end may be found between two reads.
    std::ranges::sort(expected);
    std::ranges::sort(found);
    ASSERT_EQ(found, expected);
  }
}

TEST(Follower, goes_on_where_it_was_and_reports_nothing_twice) {
  Followed here;
  ClaudeLines lines("s");
  append(here.file("s"), lines.turn(2));
  EXPECT_EQ(here.read().lines, 6);
  const auto kept = here.kept;
  EXPECT_EQ(here.read().lines, 0);
  EXPECT_EQ(here.kept, kept);
  append(here.file("s"), lines.turn(1));
  EXPECT_EQ(here.read().lines, 4);
  auto kinds = here.kinds("s");
  EXPECT_EQ(kinds["user_input"], 2);
  EXPECT_EQ(kinds["tool_call"], 3);
  EXPECT_EQ(kinds["tool_result"], 3);
  EXPECT_EQ(kinds["idle"], 2);
  struct stat facts {};
  ASSERT_EQ(stat((here.dir() / "positions").c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
}

TEST(Follower, waits_for_the_rest_of_a_line) {
  Followed here;
  ClaudeLines lines("s");
  const auto line = lines.prompt("the whole prompt");
  append(here.file("s"), line.substr(0, line.size() / 2));
  EXPECT_EQ(here.read().lines, 0);
  EXPECT_FALSE(here.exists("s"));
  append(here.file("s"), line.substr(line.size() / 2));
  EXPECT_EQ(here.read().lines, 1);
  EXPECT_EQ(here.events("s").front().report.content, "the whole prompt");
}

TEST(Follower, survives_truncation_replacement_and_rotation) {
  Followed here;
  ClaudeLines lines("s");
  const auto first = lines.turn(2);
  append(here.file("s"), first);
  here.read();
  const auto second = lines.turn(1);
  replace(here.file("s"), second);  // shorter
  EXPECT_EQ(here.read().lines, 4);
  const auto third = lines.turn(4, 300);
  replace(here.file("s"), third);  // longer, the same inode
  EXPECT_EQ(here.read().lines, 10);
  const auto fourth = lines.turn(1, 2'000);
  append(here.file("new"), fourth);  // another inode under the same name
  fs::rename(here.file("new"), here.file("s"));
  EXPECT_EQ(here.read().lines, 4);
  // Renamed, it is the same file. A new one takes its name.
  fs::rename(here.file("s"), here.file("old"));
  append(here.file("s"), lines.turn(1));
  EXPECT_EQ(here.read().lines, 4);
  auto kinds = here.kinds("s");
  EXPECT_EQ(kinds["user_input"], 5);
  EXPECT_EQ(kinds["tool_call"], 2 + 1 + 4 + 1 + 1);
  EXPECT_EQ(kinds["idle"], 5);
}

TEST(Follower, reads_all_of_a_rewritten_file_with_the_same_beginning) {
  Followed here;
  ClaudeLines lines("s");
  const auto first = lines.turn(8, 300);
  append(here.file("s"), first);
  here.read();
  const auto longer = first.substr(0, first.find('\n', 1'024) + 1) + lines.turn(9, 333);
  ASSERT_GT(longer.size(), first.size());
  replace(here.file("s"), longer);  // the same inode
  EXPECT_EQ(here.read().lines, std::ranges::count(longer, '\n'));
}

TEST(Follower, reads_no_links_pipes_folders_or_other_names) {
  Followed here;
  ClaudeLines lines("linked");
  append(here.dir() / "elsewhere.jsonl", lines.turn(1));
  fs::create_directories(here.file("x").parent_path() / "folder.jsonl");
  fs::create_symlink(here.dir() / "elsewhere.jsonl", here.file("link"));
  fs::create_directory_symlink("/", here.file("x").parent_path() / "root");
  fs::create_symlink("nowhere", here.file("dangling"));
  ASSERT_EQ(mkfifo(here.file("pipe").c_str(), 0600), 0);
  append(here.file("x").parent_path() / "notes.txt", lines.turn(1));
  append(here.file("s"), ClaudeLines("s").turn(1));
  EXPECT_EQ(here.read().files, 1);
  EXPECT_FALSE(here.exists("linked"));
  EXPECT_TRUE(here.exists("s"));
}

TEST(Follower, skips_and_counts_what_it_cannot_read) {
  Followed here;
  ClaudeLines lines("s");
  append(here.file("s"), lines.prompt("begin"));
  append(here.file("s"), "no json\n\n   \n" + std::string(100, '\0') + "\n[1,2]\n");
  append(here.file("s"), std::string(100'000, '[') + "\n");
  const std::string piece(1 << 20, 'x');
  append(here.file("s"), "{\"type\":\"user\",\"text\":\"");
  for (int i = 0; i < 17; ++i) append(here.file("s"), piece);
  EXPECT_EQ(here.read().skipped, 0) << "it may go on";
  append(here.file("s"), "\"}\n" + lines.answer("end"));
  const auto figures = here.read();
  EXPECT_EQ(figures.skipped, 1);
  EXPECT_EQ(figures.lines, 1);
  auto kinds = here.kinds("s");
  EXPECT_EQ(kinds["user_input"], 1);
  EXPECT_EQ(kinds["idle"], 1);
  EXPECT_TRUE(std::ranges::any_of(
      here.log, [](const auto& text) { return text.starts_with("skipped a line"); }));
}

TEST(Follower, makes_sessions_of_the_last_day_only) {
  Followed here;
  append(here.file("old"), ClaudeLines("old", std::chrono::hours(50)).turn(1));
  make_old(here.file("old"), std::chrono::hours(49));
  append(here.file("new"), ClaudeLines("new").turn(1));
  const auto figures = here.read();
  EXPECT_EQ(figures.lines, 4) << "the old one is not even read";
  EXPECT_FALSE(here.exists("old"));
  // It goes on: what is new of it is reported, under the title that it had.
  append(here.file("old"), ClaudeLines("old").prompt("go on\nplease"));
  here.read();
  const auto events = here.events("old");
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events.front().report.kind, ReportKind::user_input);
  auto reader = StoreReader::open(here.dir() / "w.db");
  EXPECT_EQ(reader->session("old")->spec.title, "please 1");
}

TEST(Follower, reads_a_recording_that_was_copied_into_place) {
  Followed here;
  ClaudeLines before("run", std::chrono::hours(24 * 32));
  ClaudeLines lines("run", std::chrono::hours(24 * 30));
  const auto begins = system_clock().wall() - std::chrono::hours(24 * 30);
  append(here.file("run"), before.prompt("begin"));
  append(here.file("run"), lines.turn(3, 200'000));
  append(here.file("run"), lines.prompt("more"));
  append(here.file("run"), lines.call("c", "make"));
  EXPECT_EQ(here.read().files, 1);
  auto kinds = here.kinds("run");
  EXPECT_EQ(kinds["user_input"], 2) << "the last day of the run is reported";
  EXPECT_EQ(kinds["tool_call"], 4);
  EXPECT_EQ(kinds["idle"], 2);
  const auto last = here.events("run").back();
  EXPECT_EQ(last.report.kind, ReportKind::idle) << "the run is over, whenever it was copied";
  EXPECT_EQ(last.report.name, idle_reports::failed);
  EXPECT_LT(last.at, begins + std::chrono::hours(1));
  EXPECT_EQ(StoreReader::open(here.dir() / "w.db")->session("run")->spec.title, "begin");
  EXPECT_EQ(here.read().lines, 0) << "it is not read once more";
  // Its agent takes it up again.
  append(here.file("run"), ClaudeLines("run").prompt("go on"));
  EXPECT_EQ(here.read().lines, 1);
  EXPECT_EQ(here.kinds("run")["user_input"], 3);
}

TEST(Follower, adds_no_recording_to_a_session_that_another_source_reported) {
  Followed here;
  Batch batch{.session = "s", .by = ReportOrigin::hooks};
  auto& report = batch.reports.emplace_back();
  report.kind = ReportKind::user_input;
  report.content = "hello";
  ASSERT_TRUE(here.store().append({&batch, 1}));
  append(here.file("s"), ClaudeLines("s", std::chrono::hours(48)).turn(3));
  here.read();
  EXPECT_EQ(here.events("s").size(), 1U);
}

TEST(Follower, leaves_a_turn_that_was_quiet_before_anybody_read_it) {
  Followed here;
  ClaudeLines quiet("quiet", std::chrono::hours(3));
  append(here.file("quiet"), quiet.prompt("do it") + quiet.call("c1", "make"));
  make_old(here.file("quiet"), std::chrono::hours(2));
  ClaudeLines now("now");
  append(here.file("now"), now.prompt("do it") + now.call("c2", "make"));
  here.read();
  const auto last = here.events("quiet").back();
  EXPECT_EQ(last.report.kind, ReportKind::idle);
  EXPECT_EQ(last.report.name, idle_reports::failed);
  EXPECT_NE(last.report.content.find("quiet"), std::string::npos);
  EXPECT_NE(here.events("now").back().report.kind, ReportKind::idle);
}

TEST(Follower, reports_only_what_is_newer_than_another_source_knows) {
  Followed here;
  Batch batch{.session = "s", .by = ReportOrigin::hooks};
  auto& report = batch.reports.emplace_back();
  report.kind = ReportKind::user_input;
  report.content = "hello";
  ASSERT_TRUE(here.store().append({&batch, 1}));
  ClaudeLines before("s", std::chrono::hours(1));
  append(here.file("s"), before.turn(3));
  here.read();
  EXPECT_EQ(here.events("s").size(), 1U);
  ClaudeLines after("s", std::chrono::milliseconds(0));
  append(here.file("s"), after.turn(1));
  here.read();
  EXPECT_EQ(here.kinds("s")["tool_call"], 1);
}

TEST(Follower, begins_a_session_again_that_goes_on_after_its_end) {
  Followed here;
  ClaudeLines lines("s", std::chrono::minutes(5));
  append(here.file("s"), lines.turn(1));
  here.read();
  Batch batch{.session = "s", .by = ReportOrigin::hooks};
  auto& end = batch.reports.emplace_back();
  end.kind = ReportKind::end;
  end.at = system_clock().wall() - std::chrono::minutes(2);
  end.detail = Outcome{.kind = OutcomeKind::completed, .reason = "task_complete", .error = {}};
  ASSERT_TRUE(here.store().append({&batch, 1}));
  append(here.file("s"), ClaudeLines("s", std::chrono::seconds(5)).prompt("one more"));
  here.read();
  EXPECT_EQ(here.kinds("s")["start"], 1);
  EXPECT_EQ(StoreReader::open(here.dir() / "w.db")->session("s")->attempt, 2);
}

TEST(Follower, keeps_reports_while_the_monitor_is_away) {
  Followed here;
  append(here.file("s"), ClaudeLines("s").turn(2));
  here.away = true;
  here.read();
  EXPECT_FALSE(here.exists("s"));
  here.away = false;
  here.read();
  EXPECT_EQ(here.kinds("s")["tool_call"], 2);
}

TEST(Follower, reads_of_some_sources_only_what_is_named) {
  Followed here;
  ClaudeLines lines("named");
  append(here.file("named"), lines.turn(1));
  append(here.file("other"), ClaudeLines("other").turn(1));
  const auto elsewhere = here.file("x").parent_path().parent_path().parent_path() / "out.jsonl";
  append(elsewhere, ClaudeLines("elsewhere").turn(1));
  fs::create_symlink(elsewhere, here.file("link"));
  auto options = here.options();
  options.sources.front().only_named = true;
  std::array<std::promise<void>, 2> turns;
  options.progress = [&, seen = std::size_t{0}](const FollowFigures&) mutable {
    const auto calls = static_cast<std::size_t>(here.kinds("named")["tool_call"]);
    while (seen < std::min(calls, turns.size())) turns.at(seen++).set_value();
  };
  auto follower = TranscriptFollower::start(std::move(options));
  ASSERT_TRUE(follower.ok());
  std::thread thread([&] { (*follower)->run(); });
  for (const auto& path : {elsewhere, here.file("link"), here.file("missing"), here.file("named")})
    (*follower)->name(path.string());
  turns[0].get_future().wait();
  append(here.file("other"), ClaudeLines("other").turn(1));
  append(here.file("named"), lines.turn(1));
  turns[1].get_future().wait();
  (*follower)->stop();
  thread.join();
  EXPECT_FALSE(here.exists("other"));
  EXPECT_FALSE(here.exists("elsewhere")) << "it is not below the folder of transcripts";
}

TEST(Follower, is_the_only_one_with_its_positions) {
  Followed here;
  const auto first = TranscriptFollower::start(here.options());
  ASSERT_TRUE(first.ok());
  const auto second = TranscriptFollower::start(here.options());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::conflict);
}

TEST(Positions, outlive_a_half_written_line_and_many_writes) {
  TempDir dir;
  const auto path = dir / "positions";
  {
    auto positions = Positions::open(path);
    ASSERT_TRUE(positions.ok());
    for (int i = 0; i < 20'000; ++i) {
      const SavedTranscript saved{.position = {.inode = 5, .offset = i},
                                  .state = "{\"x\":" + std::to_string(i) + "}"};
      ASSERT_TRUE(positions->put("/a/" + std::to_string(i % 10), saved).ok());
    }
  }
  EXPECT_LT(fs::file_size(path), 1'000'000U) << "it is written anew";
  append(path, "{\"file\":\"/a/1\",\"off");
  auto positions = Positions::open(path);
  ASSERT_TRUE(positions.ok());
  ASSERT_EQ(positions->all().size(), 10U);
  EXPECT_EQ(positions->all().at("/a/1").position.offset, 19'991);
  EXPECT_EQ(positions->all().at("/a/1").state, "{\"x\":19991}");
  ASSERT_TRUE(positions->put("/b", {}).ok());
  positions = Result<Positions>(Positions());
  EXPECT_EQ(Positions::open(path)->all().size(), 11U) << "the half line was not continued";
}

TEST(Positions, are_refused_where_others_could_read_them) {
  TempDir dir;
  append(dir / "positions", "");
  fs::permissions(dir / "positions", fs::perms(0644));
  EXPECT_EQ(Positions::open(dir / "positions").error().code, ErrorCode::invalid);
  fs::remove(dir / "positions");
  fs::create_symlink("elsewhere", dir / "positions");
  EXPECT_FALSE(Positions::open(dir / "positions").ok());
}

/// Reads a set of transcripts on a thread that may need a fifth of a core, and returns the share
/// that this process needed.
double share_needed(Followed& here, std::int64_t bytes) {
  auto options = here.options();
  std::promise<void> done;
  std::int64_t seen = 0;
  options.progress = [&](const FollowFigures& figures) {
    if (figures.bytes >= bytes && std::exchange(seen, figures.bytes) < bytes) done.set_value();
  };
  auto follower = TranscriptFollower::start(std::move(options));
  EXPECT_TRUE(follower.ok());
  const auto began = std::chrono::steady_clock::now();
  const auto used = std::clock();
  std::thread thread([&] { (*follower)->run(); });
  done.get_future().wait();
  const auto cpu = static_cast<double>(std::clock() - used) / CLOCKS_PER_SEC;
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - began;
  (*follower)->stop();
  thread.join();
  std::printf("%.0f MB: %.1f s of processor in %.1f s, %.1f %%\n", static_cast<double>(bytes) / 1e6,
              cpu, wall.count(), 100 * cpu / wall.count());
  return cpu / wall.count();
}

TEST(Follower, needs_a_fifth_of_a_core_for_what_was_there_before) {
  Followed here;
  const std::int64_t wanted = test::repetitions(500'000'000, 25);
  std::int64_t bytes = 0;
  for (int i = 0; bytes < wanted; ++i) {
    ClaudeLines lines("s" + std::to_string(i), std::chrono::hours(1));
    std::string text;
    while (text.size() < 2'000'000) text += lines.turn(8, 20'000);
    append(here.file("s" + std::to_string(i)), text);
    bytes += static_cast<std::int64_t>(text.size());
  }
  EXPECT_LE(share_needed(here, bytes), 0.2);
  EXPECT_GT(here.kinds("s0")["tool_call"], 50);
}

// The real monitor

/// Waits until the monitor says so, at most a minute.
bool comes(const std::function<bool()>& there) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!there()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

json events_of(test::Server& server, const std::string& session) {
  const auto body = server.get("/api/autonomous/sessions/" + session + "/events?limit=1000").body;
  return json::parse(body, nullptr, false).value("events", json::array());
}

int count_of(const json& events, const std::string& kind) {
  return static_cast<int>(
      std::ranges::count_if(events, [&](const json& event) { return event["kind"] == kind; }));
}

struct ClaudeHome {
  TempDir dir;
  [[nodiscard]] fs::path file(const std::string& name) const {
    return dir / "claude" / "projects" / "p" / (name + ".jsonl");
  }
  [[nodiscard]] test::Process::Options environment() const {
    return {.environment = {"CLAUDE_CONFIG_DIR=" + (dir / "claude").string(),
                            "CODEX_HOME=" + (dir / "codex").string(),
                            "XDG_STATE_HOME=" + (dir / "state").string()}};
  }
};

TEST(Follow, serve_sees_a_transcript_grow) {
  ClaudeHome home;
  append(home.file("before"), ClaudeLines("before").turn(1));
  test::Server server(home.dir / "w.db", {"--follow"}, home.environment());
  EXPECT_TRUE(comes([&] { return count_of(events_of(server, "before"), "idle") == 1; }));
  ClaudeLines lines("live");
  append(home.file("live"), lines.prompt("do it") + lines.call("c1", "make"));
  ASSERT_TRUE(comes([&] { return count_of(events_of(server, "live"), "tool_call") == 1; }));
  EXPECT_EQ(server.progress("live")["tools"][0]["name"], "Bash");
  EXPECT_EQ(server.progress("live")["title"], "do it");
  append(home.file("live"), lines.result("c1", "ok") + lines.answer("done"));
  ASSERT_TRUE(comes([&] { return server.progress("live")["health"] == "idle"; }));
  // A day's folder of Codex that is made later.
  const auto rollout = home.dir / "codex" / "sessions" / "2026" / "11" / "25" / "rollout-1.jsonl";
  append(rollout, json{{"type", "session_meta"},
                       {"timestamp", stamp_of(system_clock().wall())},
                       {"payload", {{"id", "codex-1"}, {"cwd", "/p"}}}}
                          .dump() +
                      "\n");
  append(rollout, json{{"type", "event_msg"},
                       {"timestamp", stamp_of(system_clock().wall())},
                       {"payload", {{"type", "user_message"}, {"message", "hello codex"}}}}
                          .dump() +
                      "\n");
  EXPECT_TRUE(comes([&] { return count_of(events_of(server, "codex-1"), "user_input") == 1; }));
}

TEST(Follow, a_killed_monitor_goes_on_without_a_second_report) {
  ClaudeHome home;
  ClaudeLines lines("s");
  const int turns = 60;
  std::string text;
  for (int i = 0; i < turns; ++i) text += lines.turn(2, 3'000);
  append(home.file("s"), text.substr(0, text.size() / 2));
  for (int round = 0; round < 4; ++round) {
    test::Server server(home.dir / "w.db", {"--follow", "claude-code"}, home.environment());
    EXPECT_TRUE(comes([&] { return count_of(events_of(server, "s"), "tool_call") > round * 10; }));
    server.process().signal(SIGKILL);
    server.process().wait();
  }
  append(home.file("s"), text.substr(text.size() / 2));
  test::Server server(home.dir / "w.db", {"--follow", "claude-code"}, home.environment());
  EXPECT_TRUE(comes([&] { return count_of(events_of(server, "s"), "idle") >= turns; }));
  const auto events = events_of(server, "s");
  EXPECT_EQ(count_of(events, "idle"), turns);
  EXPECT_EQ(count_of(events, "user_input"), turns);
  EXPECT_EQ(count_of(events, "tool_call"), 2 * turns);
  EXPECT_EQ(count_of(events, "tool_result"), 2 * turns);
}

TEST(Follow, command_reports_to_a_monitor_and_says_what_it_read) {
  ClaudeHome home;
  test::Server server(home.dir / "w.db", {}, home.environment());
  append(home.file("s"), ClaudeLines("s").turn(2));
  std::vector<std::string> words{test::program, "follow", "claude-code", "--once", "--json"};
  for (const auto& word : server.flags()) words.push_back(word);
  auto ran = test::run(words, home.environment());
  EXPECT_EQ(ran.code, 0) << ran.output;
  const auto done = json::parse(ran.output.substr(ran.output.rfind("{\"event\":\"done\"")));
  EXPECT_EQ(done["lines"], 6);
  EXPECT_EQ(done["sessions"], 1);
  const auto events = events_of(server, "s");
  EXPECT_EQ(count_of(events, "tool_call"), 2);
  EXPECT_EQ(count_of(events, "idle"), 1);
  EXPECT_EQ(server.progress("s")["labels"]["via"], "transcript");
  // The time of an event is its line's.
  EXPECT_LT(events[0]["at_ms"].get<std::int64_t>(),
            (system_clock().wall() - std::chrono::seconds(30)).time_since_epoch().count());
  ran = test::run(words, home.environment());
  EXPECT_EQ(ran.code, 0);
  EXPECT_NE(ran.output.find("\"lines\":0"), std::string::npos) << ran.output;
}

TEST(Follow, command_ends_on_a_signal_and_refuses_what_is_not_there) {
  ClaudeHome home;
  test::Server server(home.dir / "w.db", {}, home.environment());
  std::vector<std::string> words{test::program, "follow", "claude-code"};
  for (const auto& word : server.flags()) words.push_back(word);
  append(home.file("s"), ClaudeLines("s").turn(1));
  test::Process follow(words, home.environment());
  EXPECT_TRUE(comes([&] { return count_of(events_of(server, "s"), "idle") == 1; }));
  follow.signal(SIGTERM);
  EXPECT_EQ(follow.wait(), 0);
  words.insert(words.end(), {"--once", (home.dir / "nowhere").string()});
  EXPECT_EQ(test::run(words, home.environment()).code, 5);
  words[2] = "emacs";
  EXPECT_EQ(test::run(words, home.environment()).code, 2);
}

TEST(Follower, ends_a_subagent_whose_file_is_read_after_its_parents) {
  Followed followed;
  const auto now = stamp_of(system_clock().wall() - Millis{60'000});
  const auto line = [&](const char* type, const json& more, const json& message) {
    auto made = json{{"type", type}, {"sessionId", "p1"}, {"timestamp", now}, {"message", message}};
    made.update(more);
    return made.dump() + "\n";
  };
  const auto child = followed.file("agent-a1");
  append(child, line("user", {{"isSidechain", true}, {"agentId", "a1"}, {"uuid", "1"}},
                     {{"content", "write tests"}}) +
                    line("assistant", {{"isSidechain", true}, {"agentId", "a1"}, {"uuid", "2"}},
                         {{"stop_reason", "end_turn"},
                          {"content", {{{"type", "text"}, {"text", "written"}}}}}));
  make_old(child, std::chrono::hours(1));
  append(followed.file("p1"),
         line("user", {{"uuid", "3"}}, {{"content", "go"}}) +
             line("user",
                  {{"uuid", "4"}, {"toolUseResult", {{"agentId", "a1"}, {"status", "completed"}}}},
                  {{"content",
                    {{{"type", "tool_result"}, {"tool_use_id", "t"}, {"content", "ok"}}}}}));
  followed.read();
  EXPECT_EQ(followed.kinds("p1:a1")["end"], 1);
  EXPECT_EQ(followed.kinds("p1:a1")["idle"], 1);
}

}  // namespace
}  // namespace watchdog::monitor
