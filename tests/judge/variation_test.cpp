// What makes a result new, and what does not: how agents dress results up, and what differs between
// two runs of the same thing.
#include "judge/variation.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <iterator>
#include <random>

#include "facts/agent_tools.h"
#include "facts/digest.h"
#include "support/agent.h"
#include "support/corpus.h"
#include "support/scenario.h"
#include "watchdog/repetition.h"

namespace watchdog {
namespace {

using test::Agent;

// --- Texts.

struct Pair {
  const char* one;
  const char* other;
};

TEST(Variation, differences_between_runs_do_not_make_a_result_new) {
  const Pair same[] = {
      {"Process Group PGID: 21752", "Process Group PGID: 21779"},
      {"Background PIDs: 12, 13", "Background PIDs: 2210, 2211"},
      {"started (pid 4711)", "started (pid 12)"},
      {R"({"ppid":17,"ok":true})", R"({"ppid":4,"ok":true})"},
      {"Process ID = 33", "Process ID = 1033"},
      {"finished in 0.42s", "finished in 11.9s"},
      {"real\t0m0.043s", "real\t1m12.1s"},
      {"built in 1m 3s", "built in 58s"},
      {R"({"durationMs":41,"code":404})", R"({"durationMs":1207,"code":404})"},
      {"duration_seconds: 0.1", "duration_seconds: 12.25"},
      {"Wall time: 0.0427 seconds", "Wall time: 6.1 seconds"},
      {"elapsed=12", "elapsed=9"},
      {"chunk_id: 01a5c2", "chunk_id: a06115"},
      {"request id: req_011CSHoEeqs5C35K2UUqR7Fy", "request id: req_018EeWyXxfu5pfWkrYcMdjWG"},
      {R"("x-request-id": "8f1b22")", R"("x-request-id": "00aa17")"},
      {"failed: toolu_01A09q90qw90lq917835lq9", "failed: toolu_9Zk38fkw02mmc88d1k2l0aa"},
      {"2026-11-22T10:27:17.243Z refused", "2026-11-23T01:02:03Z refused"},
      {"at 2026-11-22 10:27 it", "at 2026-11-22 11:30 it"},
      {"-rw-r--r-- 1 u u 10 Nov 22 10:26 a", "-rw-r--r-- 1 u u 10 Nov  3 09:01 a"},
      {"log 20261122T102739Z", "log 20261122T102801Z"},
      {R"({"timestamp":1795343205535})", R"({"timestamp":1795343999999})"},
      {"1795343205.535 connect", "1795343999.101 connect"},
      {R"(refused\n10:27:39 retry)", R"(refused\n10:28:40 retry)"},
      {"wrote /tmp/tmpab12cd34/out.txt", "wrote /tmp/tmpzzy8x0q1/out.txt"},
      {"see /tmp/tmp.Xa93kQbbQ1/log", "see /tmp/tmp.9QwLLk2bcd/log"},
      {"in /tmp/go-build1234567/b001", "in /tmp/go-build7654321/b001"},
      {"/tmp/pytest-of-u/pytest-12/test_a0", "/tmp/pytest-of-u/pytest-13/test_a0"},
      {"/tmp/foo-AbC123/x", "/tmp/foo-x9QwT4/x"},
      {"at 0x7ffee4b1", "at 0x55d0c1aa"},
      {"id 01a202cc-15e8-7451-8b63-9a029cff292d", "id 9872a6a6-0d8b-46d6-9add-8609530fdaa1"},
      {"\x1b[31mred\x1b[0m", "red"},
  };
  for (const auto& [one, other] : same)
    EXPECT_EQ(without_variation(one), without_variation(other)) << one;
}

TEST(Variation, differences_in_the_work_make_a_result_new) {
  const Pair different[] = {
      {"59 failed, 3 passed", "58 failed, 4 passed"},
      {"line 12: unexpected token", "line 13: unexpected token"},
      {"exit code 1", "exit code 2"},
      {"HTTP 404", "HTTP 500"},
      {"took 3 attempts", "took 4 attempts"},
      {"3 tests, 5 methods", "3 tests, 6 methods"},
      {"version 1.2.3", "version 1.2.4"},
      {"/tmp/project/a.c:7: error", "/tmp/project/b.c:7: error"},
      {"/tmp/test10/log", "/tmp/test11/log"},
      {"/tmp/tmpab12cd34/x.py: 4 errors", "/tmp/tmpab12cd34/x.py: 3 errors"},
      {"HEAD is 6b371d0b940da722be78c91181a202869b513994",
       "HEAD is 7c481d0b940da722be78c91181a202869b513994"},
      {"total 20", "total 24"},
      {"port 8080", "port 8081"},
      {"the time is up: 3 left", "the time is up: 2 left"},
      {"2026-11-22", "2026-11-23"},
      {"progress 40%", "progress 41%"},
      {"rapid 1", "rapid 2"},
      {"May 3 tests fail", "May 4 tests fail"},
      {"request id is missing", "request id is wrong"},
  };
  for (const auto& [one, other] : different)
    EXPECT_NE(without_variation(one), without_variation(other)) << one;
}

TEST(Variation, no_bytes_are_read_that_are_not_there) {
  std::mt19937 random(7);
  const std::string parts[] = {"/tmp/",     "tmp.", "pid",      ": ", "12",       "Nov ",
                               "10:2",      "req_", "\x1b[",    "0x", "1m",       "\\n",
                               "20261122T", "-",    "ab12cd34", "/",  "\xC2\xB5s"};
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (auto count = random() % 6; count > 0; --count) text += parts[random() % std::size(parts)];
    text.resize(text.size() - std::min<std::size_t>(text.size(), random() % 3));
    EXPECT_LE(without_variation(text).size(), text.size() + text.size() / 2 + 1) << text;
  }
}

// --- How agents dress results up. The texts are what Codex 0.169 and Gemini CLI 0.61 sent.

TEST(Decoration, agents_own_lines_go_and_the_output_stays) {
  const auto codex = [](const char* chunk, const char* time) {
    return "Chunk ID: " + std::string(chunk) + "\nWall time: " + time +
           " seconds\nProcess exited with code 0\nOriginal token count: 2\nOutput:\none\ntwo\n";
  };
  EXPECT_EQ(undecorated("exec_command", codex("01a5c2", "0.0427")),
            "Process exited with code 0\none\ntwo\n");
  EXPECT_EQ(undecorated("exec_command", codex("01a5c2", "0.0427")),
            undecorated("exec_command", codex("dfbbcf", "6.0713")));
  EXPECT_EQ(undecorated("shell", "Exit code: 2\nWall time: 0.1 seconds\nOutput:\nno such file"),
            "Exit code: 2\nno such file");
  EXPECT_EQ(undecorated("mcp__files__read", "Wall time: 0.1 seconds\nOutput:\nx"), "x");
  EXPECT_EQ(undecorated("run_shell_command",
                        "<untrusted_context>\nOutput: done\nProcess Group PGID: 21779\n"
                        "</untrusted_context>"),
            "Output: done");
  EXPECT_EQ(undecorated("run_shell_command",
                        "Output: (empty)\nExit Code: 2\nBackground PIDs: 7, 8\n"
                        "Process Group PGID: 6"),
            "Output: (empty)\nExit Code: 2");
  EXPECT_EQ(undecorated("", "Chunk ID: a\nWall time: 1 seconds\nOutput:\nx"), "x")
      << "a result that does not name its tool";
}

TEST(Decoration, output_that_looks_like_it_stays) {
  for (const char* text : {"Output:\nx", "one\nChunk ID: 7\n", "x\nProcess Group PGID: 7\ny",
                           "Exit code: 1\nx", "a <untrusted_context> b", "", "\n", "Output:"}) {
    EXPECT_EQ(undecorated("exec_command", text), text);
  }
  EXPECT_EQ(undecorated("query", "Chunk ID: 7\nrow"), "Chunk ID: 7\nrow")
      << "another tool's output";
}

TEST(Decoration, exit_codes_are_read_from_the_first_and_last_lines) {
  const std::pair<const char*, int> reported[] = {
      {"Process exited with code 2\nx", 2},
      {"Process exited with code 0\nx", 0},
      {"Output: x\nExit Code: 127", 127},
      {"Exit code 1\nstderr", 1},
      {R"({"output":"x","metadata":{"exit_code":3,"duration_seconds":0.1}})", 3},
      {R"({"exit": 4})", 4},
      {"<returncode>5</returncode>", 5},
      {"exit status 1", 1},
      {"exited with code -9", 255},
      {"exit code: none", 0},
      {"the exit is 3 doors on", 0},
      {"", 0},
  };
  for (const auto& [text, code] : reported) EXPECT_EQ(exit_code_in(text), code) << text;
  EXPECT_EQ(exit_code_in(std::string(5'000, 'x') + "\nExit Code: 2\n"), 2);
  EXPECT_EQ(exit_code_in(std::string(2'000, 'x') + " exit code 2 " + std::string(2'000, 'x')), 0);
}

TEST(Decoration, a_tool_is_one_tool_under_all_its_names) {
  const auto call = [](const char* tool, const char* arguments) {
    Report report{.kind = ReportKind::tool_call, .name = tool, .content = arguments};
    mark(report);
    return std::get<Marks>(report.detail).identity;
  };
  const auto one = call("exec_command", R"({"cmd":"ls -la","yield_time_ms":60000})");
  EXPECT_EQ(call("Bash", R"({"command":"ls -la"})"), one);
  EXPECT_EQ(call("run_shell_command", R"({"command":"ls -la","description":"Runs it"})"), one);
  EXPECT_EQ(call("bash", R"({"command":"ls  -la","timeout":120000,"description":"x"})"), one);
  EXPECT_NE(call("Bash", R"({"command":"ls -l"})"), one);
  EXPECT_NE(call("Bash", R"({"command":"ls -la","workdir":"/a"})"), one);
  EXPECT_NE(call("grep", R"({"command":"ls -la"})"), one);
  EXPECT_EQ(call("apply_patch", R"({"command":"*** Begin Patch"})"),
            call("apply_patch", "*** Begin Patch"));
  EXPECT_NE(call("Bash", R"({"description":"a"})"), call("Bash", R"({"description":"b"})"))
      << "without a command all of it counts";
}

// --- Loops under decoration.

std::string digits(std::mt19937& random, int count) {
  std::string text(1, static_cast<char>('1' + random() % 9));
  while (--count > 0) text += static_cast<char>('0' + random() % 10);
  return text;
}
std::string hexadecimals(std::mt19937& random, int count) {
  std::string text;
  for (; count > 0; --count) text += "0123456789abcdef"[random() % 16];
  return text;
}

constexpr int noises = 10;
/// A line of one of the kinds that make no result new.
std::string noise(int kind, std::mt19937& random) {
  const auto number = [&](int count) { return digits(random, count); };
  const auto two = [&] { return std::to_string(10 + random() % 50); };
  switch (kind) {
    case 0:
      return "server started, pid " + number(5);
    case 1:
      return "Background PIDs: " + number(4) + ", " + number(5);
    case 2:
      return "done in " + number(2) + "." + number(3) + " s";
    case 3:
      return "real 0m" + number(1) + "." + number(3) + "s";
    case 4:
      return R"({"durationMs": )" + number(3) + "}";
    case 5:
      return "chunk id: 1" + hexadecimals(random, 5);
    case 6:
      return "x-request-id: req_9" + hexadecimals(random, 20);
    case 7:
      return "[2026-11-22T" + two() + ":" + two() + ":" + two() + "." + number(3) + "Z] starting";
    case 8:
      return "drwxr-xr-x 6 u u 4096 Nov " + two() + " " + two() + ":" + two() + " .";
    default:
      return "log is in /tmp/tmp.9a" + hexadecimals(random, 8) + "/log";
  }
}

/// The text with lines of noise: which, and where, depends on the text, what they say on `random`.
std::string with_noise(const std::string& text, std::mt19937& random) {
  std::mt19937 places(static_cast<std::uint32_t>(digest_of(text)));
  std::string noisy = text;
  for (auto count = 1 + places() % 3; count > 0; --count) {
    const auto line = noise(static_cast<int>(places() % noises), random) + "\n";
    const auto end = noisy.find('\n', places() % (noisy.size() + 1));
    noisy.insert(end == std::string::npos ? 0 : end + 1, line);
  }
  return noisy;
}

std::string as_codex(const std::string& text, std::mt19937& random) {
  return "Chunk ID: " + hexadecimals(random, 6) + "\nWall time: " + digits(random, 1) + "." +
         digits(random, 4) + " seconds\nOriginal token count: " + digits(random, 3) +
         "\nOutput:\n" + text;
}
std::string as_gemini(const std::string& text, std::mt19937& random) {
  return "<untrusted_context>\n" + text + "\nBackground PIDs: " + digits(random, 4) +
         "\nProcess Group PGID: " + digits(random, 5) + "\n</untrusted_context>";
}

/// Reports of a run; the digests that their source took of undecorated texts are taken out.
std::vector<Report> reports_in(const std::string& file) {
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  auto list = reports_from_json(text);
  EXPECT_TRUE(list) << file;
  if (!list) return {};
  for (auto& report : list->reports) report.hash.clear();
  return std::move(list->reports);
}

bool is_result(const Report& report) {
  return report.kind == ReportKind::tool_result || report.kind == ReportKind::error;
}

struct Course {
  int confirmed_at = 0;
  int suspicions = 0;
  std::vector<Pattern> patterns;
  friend bool operator==(const Course&, const Course&) = default;
};

template <class Change>
Course course_of(const std::vector<Report>& run, Change&& change) {
  Agent agent;
  for (auto report : run) {
    if (is_result(report)) change(report);
    if (report.kind == ReportKind::tool_call) ++agent.calls;
    agent.say(std::move(report));
  }
  Course course{.confirmed_at = agent.confirmed_at};
  for (const auto& transition : agent.changes) {
    course.suspicions += transition.health.kind == HealthKind::suspect ? 1 : 0;
    course.patterns.push_back(transition.health.pattern);
  }
  return course;
}

/// As a result of that tool would be marked, whatever it is called in the run.
void mark_as(const char* tool, Report& report) {
  auto copy = report;
  copy.name = tool;
  mark(copy);
  report.detail = copy.detail;
}

TEST(DecoratedRuns, random_decoration_changes_no_conclusion) {
  const auto files = test::some_recorded_runs();
  if (files.empty()) GTEST_SKIP() << test::no_recorded_runs;
  int loops = 0;
  int others = 0;
  for (const auto& file : files) {
    const auto run = reports_in(file);
    std::mt19937 random(static_cast<std::uint32_t>(digest_of(file)));
    const auto plain = course_of(run, [](Report& report) { mark_as("exec_command", report); });
    if (plain.confirmed_at == 0 && ++others % 4 != 0) continue;  // they take long
    const auto codex = course_of(run, [&](Report& report) {
      report.content = as_codex(report.content, random);
      mark_as("exec_command", report);
    });
    const auto gemini = course_of(run, [&](Report& report) {
      while (report.content.ends_with('\n')) report.content.pop_back();
      report.content = as_gemini(report.content, random);
      mark_as("run_shell_command", report);
    });
    EXPECT_EQ(plain, codex) << file;
    EXPECT_EQ(plain, gemini) << file;
    loops += plain.confirmed_at > 0 ? 1 : 0;

    // Noise makes results longer, and so more informative: the same lines that always say the same
    // are what it is compared with.
    const auto steady = course_of(run, [](Report& report) {
      std::mt19937 always(1);
      report.content = with_noise(report.content, always);
    });
    const auto noisy = course_of(
        run, [&](Report& report) { report.content = with_noise(report.content, random); });
    EXPECT_EQ(steady, noisy) << file;
  }
  EXPECT_GE(loops, test::repetitions(20, 1)) << "runs with loops, or nothing was tested";
}

TEST(DecoratedRuns, real_progress_is_not_a_loop) {
  const auto files = test::some_recorded_runs();
  if (files.empty()) GTEST_SKIP() << test::no_recorded_runs;
  const std::array by_calls{Pattern::same_call,      Pattern::same_failing_call,
                            Pattern::cycle_of_calls, Pattern::repeated_calls,
                            Pattern::same_error,     Pattern::invalid_calls,
                            Pattern::nothing_new};
  for (const auto& file : files) {
    std::mt19937 random(static_cast<std::uint32_t>(digest_of(file)));
    int failing = 1'000;
    const auto working = course_of(reports_in(file), [&](Report& report) {
      report.kind = ReportKind::tool_result;
      report.content = std::to_string(failing--) + " failed\n" + with_noise(report.content, random);
      if (random() % 2 == 0) report.content = as_codex(report.content, random);
    });
    for (const auto pattern : working.patterns)
      EXPECT_EQ(std::ranges::find(by_calls, pattern), by_calls.end())
          << name_of(pattern) << " in " << file;
  }
}

// --- The same failure, call after call, as each agent reports it.

/// The call at which the loop of equal failing calls is found; 0: never.
int found_at(const char* tool, const char* arguments,
             const std::function<std::string(int)>& result) {
  Agent agent;
  for (int i = 1; i <= 12; ++i) {
    const auto id = "call_" + std::to_string(i);
    agent.begin(tool, arguments, id).pass(Millis{100});
    agent.done(tool, result(i), id);
  }
  return agent.confirmed_at;
}

TEST(DecoratedRuns, twelve_equal_failing_calls_are_found_by_the_sixth) {
  std::mt19937 random(3);
  const auto within = [](int found) { return found > 0 && found <= 6; };
  EXPECT_TRUE(within(found_at("exec_command", R"({"cmd":"make"})", [&](int i) {
    return "Chunk ID: " + hexadecimals(random, 6) + "\nWall time: 0.0" + std::to_string(i) +
           " seconds\nProcess exited with code 2\nOriginal token count: 9\nOutput:\nmake: *** No "
           "targets.  Stop.\n";
  })));
  EXPECT_TRUE(within(found_at("run_shell_command", R"({"command":"make"})", [&](int) {
    return "<untrusted_context>\nOutput: make: *** No targets.  Stop.\nExit Code: 2\nProcess Group "
           "PGID: " +
           digits(random, 5) + "\n</untrusted_context>";
  })));
  EXPECT_TRUE(within(found_at("bash", R"({"command":"make"})",
                              [](int) { return "make: *** No targets.  Stop.\n"; })));
}

TEST(DecoratedRuns, same_exit_code_with_other_texts_is_a_suspicion_and_no_more) {
  const auto run = [](auto&& between) {
    Agent agent;
    for (int i = 0; i < 12; ++i) {
      agent.call("bash", R"({"command":"make test"})",
                 "Exit code: 1\n" + std::string(static_cast<std::size_t>(60 - i), 'x') + " failed");
      between(agent, i);
    }
    return agent;
  };
  const auto again = run([](Agent&, int) {});
  EXPECT_TRUE(again.ever(HealthKind::suspect));
  EXPECT_FALSE(again.ever_confirmed()) << again.story();
  const auto edited = run([](Agent& agent, int i) {
    agent.call("edit", R"({"line":)" + std::to_string(i) + "}", "ok");
  });
  EXPECT_FALSE(edited.ever(HealthKind::suspect)) << edited.story();
  // With equal ones among them it takes fewer of these.
  Agent mixed;
  for (int i = 0; i < 6; ++i) {
    const auto text = i < 3 ? std::string(static_cast<std::size_t>(9 - i), 'x') : std::string("y");
    mixed.call("bash", R"({"command":"make"})", "Exit code: 1\n" + text);
  }
  EXPECT_TRUE(mixed.ever_confirmed()) << mixed.story();
}

}  // namespace
}  // namespace watchdog
