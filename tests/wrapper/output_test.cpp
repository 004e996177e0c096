// The wrapper reads the output of a command. These tests run no command.

#include <algorithm>
#include <random>

#include "support/scenario.h"
#include "wrapper/lines.h"
#include "wrapper/output_watch.h"
#include "wrapper/recognition.h"
#include "wrapper/terminal_progress.h"
#include "wrapper/wrapper.h"

namespace watchdog::monitor {
namespace {

using State = TerminalProgress::State;

/// The text in pieces of random sizes.
std::vector<std::string> cut(const std::string& text, std::mt19937_64& random) {
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at < text.size();) {
    const auto size = 1 + random() % 7;
    pieces.push_back(text.substr(at, size));
    at += size;
  }
  return pieces;
}

std::vector<std::string> lines_of(const std::vector<std::string>& pieces) {
  std::vector<std::string> lines;
  const auto sink = [&](std::string_view line) { lines.emplace_back(line); };
  LineReader reader;
  for (const auto& piece : pieces) reader.feed(piece, sink);
  reader.finish(sink);
  return lines;
}

TEST(Lines, are_the_same_however_they_are_cut) {
  std::mt19937_64 random(test::random_seed());
  const std::string text = "one\n\ntwo\r\nthr\ree\n" + std::string("a\0b", 3) + "\n\xff\nlast";
  const std::vector<std::string> wanted{"one",  "",    "two", "thr\ree", std::string("a\0b", 3),
                                        "\xff", "last"};
  EXPECT_EQ(lines_of({text}), wanted);
  for (int round = 0; round < 50; ++round) EXPECT_EQ(lines_of(cut(text, random)), wanted);
  EXPECT_TRUE(lines_of({}).empty());
  EXPECT_EQ(lines_of({"\n"}), std::vector<std::string>{""});
}

TEST(Lines, are_reported_up_to_a_bound) {
  const std::string half(LineReader::line_bytes_max - 1, 'x');
  const auto lines = lines_of({half, half, half + "\nnext\n" + half + half + "\n"});
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_EQ(lines[0].size(), LineReader::line_bytes_max);
  EXPECT_EQ(lines[1], "next");
  EXPECT_EQ(lines[2].size(), LineReader::line_bytes_max);
}

TEST(Lines, are_counted) {
  EXPECT_EQ(newlines_in(""), 0U);
  EXPECT_EQ(newlines_in("\n"), 1U);
  EXPECT_EQ(newlines_in(std::string(1'000, '\n')), 1'000U);
  EXPECT_EQ(newlines_in(std::string(255, '\n') + "x" + std::string(255, '\n')), 510U);
  std::mt19937_64 random(test::random_seed());
  for (std::size_t size = 0; size < 2'000; size += 1 + random() % 7) {
    std::string text(size, 'x');
    for (char& byte : text)
      if (random() % 3 == 0) byte = random() % 2 == 0 ? '\n' : '\x8a';
    EXPECT_EQ(newlines_in(text), static_cast<std::uint64_t>(std::ranges::count(text, '\n')));
  }
}

std::optional<TerminalProgress> progress_of(const std::vector<std::string>& pieces) {
  std::optional<TerminalProgress> newest;
  ProgressSequence sequence;
  for (const auto& piece : pieces)
    if (auto found = sequence.feed(piece)) newest = found;
  return newest;
}

TEST(TerminalProgress, is_found_however_it_is_cut) {
  std::mt19937_64 random(test::random_seed());
  const std::vector<std::pair<std::string, TerminalProgress>> cases{
      {"\x1b]9;4;1;40\a", {State::normal, 40}},
      {"text \x1b[31mred\x1b]9;4;2;7\x1b\\more", {State::error, 7}},
      {"\x1b]9;4;0\a", {State::none, 0}},
      {"\x1b]9;4;3;\a", {State::indeterminate, 0}},
      {"\x1b]9;4;4;400\a", {State::paused, 100}},
      {"\x1b]9;4;1;1\a\x1b]9;4;1;2\a", {State::normal, 2}},
      {"\x1b\x1b]9;4;1;3\a", {State::normal, 3}},
      {"\x1b]9;\x1b]9;4;1;4\a", {State::normal, 4}}};
  for (const auto& [text, wanted] : cases) {
    EXPECT_EQ(progress_of({text}), wanted) << text;
    for (int round = 0; round < 20; ++round) EXPECT_EQ(progress_of(cut(text, random)), wanted);
  }
}

TEST(TerminalProgress, is_nothing_else) {
  for (const auto* text : {"", "\x1b", "\x1b]9;4;", "\x1b]9;4;\a", "\x1b]9;4;9;1\a", "\x1b]9;4;x\a",
                           "\x1b]9;4;-1;1\a", "\x1b]0;title\a", "]9;4;1;40\a"})
    EXPECT_FALSE(progress_of({text})) << text;
  EXPECT_FALSE(progress_of({"\x1b]9;4;1;", std::string(100, '1'), "\a"}));
}

TEST(Recognition, finds_expressions_and_events) {
  const auto recognition = Recognition::of({"^done", "[0-9]+/[0-9]+"}, true);
  ASSERT_TRUE(recognition.ok());
  EXPECT_TRUE(recognition->finds("done it"));
  EXPECT_TRUE(recognition->finds("test 3/4"));
  EXPECT_FALSE(recognition->finds("not done"));
  EXPECT_EQ(recognition->event_in(R"({"kind":"heartbeat","iteration":1})")->kind,
            ReportKind::heartbeat);
  for (const auto* line : {"", "{", "{}", "[]", R"({"kind":"start"})", R"({"kind":"cancel"})",
                           R"( {"kind":"message"})", R"({"kind":"state_change"})"})
    EXPECT_FALSE(recognition->event_in(line)) << line;
  EXPECT_FALSE(Recognition::of({}, false)->event_in(R"({"kind":"message"})"));
}

TEST(Recognition, an_invalid_expression_is_named) {
  const auto recognition = Recognition::of({"fine", "(a"}, false);
  ASSERT_FALSE(recognition.ok());
  EXPECT_NE(recognition.error().message.find("(a is not a regular expression"), std::string::npos);
}

TEST(OutputWatch, reports_all_events_but_only_a_limited_number_of_lines_per_second) {
  OutputTally tally;
  int changes = 0;
  int messages = 0;
  OutputWatch watch(*Recognition::of({"x"}, true), tally, [&](const Report& report) {
    ++(report.kind == ReportKind::message ? messages : changes);
  });
  for (int n = 0; n < 1'000; ++n)
    watch.feed("x" + std::to_string(n) + "\n{\"kind\":\"message\"}\n");
  watch.feed("x");
  watch.finish();
  EXPECT_EQ(messages, 1'000);
  EXPECT_GE(changes, OutputWatch::reported_per_second_max);
  EXPECT_LT(changes, 1'000);
  EXPECT_EQ(tally.lines, 2'000U);
}

TEST(OutputWatch, takes_no_line_as_progress_that_says_nothing_new) {
  OutputTally tally;
  int changes = 0;
  OutputWatch watch(*Recognition::of({"ok"}, false), tally, [&](const Report&) { ++changes; });
  for (int n = 0; n < 50; ++n) {
    const auto second = std::to_string(10 + n);
    watch.feed("ok\n2026-11-29 10:00:" + second + " ok, waiting\n");
  }
  EXPECT_EQ(changes, 2);
  watch.feed("ok 1\nok 2\n");
  EXPECT_EQ(changes, 4);
}

/// Lines of `claude -p --output-format stream-json`.
const std::string stream_begin =
    R"({"type":"system","subtype":"init","session_id":"c-1","tools":["Bash"],"model":"m","uuid":"u1"})"
    "\n";
const std::string stream_call =
    R"({"type":"assistant","message":{"id":"m1","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"make"}}],"usage":{"input_tokens":3,"output_tokens":4}},"parent_tool_use_id":null,"session_id":"c-1","uuid":"u2"})"
    "\n";
const std::string stream_child =
    R"({"type":"assistant","message":{"id":"m9","role":"assistant","content":[{"type":"tool_use","id":"t9","name":"Read","input":{}}]},"parent_tool_use_id":"t1","session_id":"c-1","uuid":"u3"})"
    "\n";

std::string stream_result(const std::string& text) {
  return R"({"type":"user","message":{"role":"user","content":[{"tool_use_id":"t1","type":"tool_result","content":")" +
         text + R"("}]},"parent_tool_use_id":null,"session_id":"c-1","uuid":"u4"})" + "\n";
}

std::string stream_end(const std::string& subtype) {
  return R"({"type":"result","subtype":")" + subtype +
         R"(","is_error":false,"num_turns":2,"result":"Done","session_id":"c-1"})" + "\n";
}

struct StreamHeard {
  std::string kinds{};
  std::optional<Outcome> end{};
  std::vector<std::string> hook_ids{};  ///< Of events that the agent's hooks report as well.
};

StreamHeard heard_of(const std::vector<std::string>& pieces) {
  StreamHeard heard;
  OutputTally tally;
  OutputWatch watch(*Recognition::of({}, false), tally, [&](const Report& report) {
    heard.kinds += (heard.kinds.empty() ? "" : " ") + std::string(name_of(report.kind));
    if (!report.call_id.empty()) heard.kinds += ":" + report.call_id;
    if (report.event_id.starts_with("hook:")) heard.hook_ids.push_back(report.event_id);
  });
  for (const auto& piece : pieces) watch.feed(piece);
  watch.finish();
  heard.end = watch.stated_end();
  return heard;
}

TEST(AgentStream, is_read_as_it_passes) {
  const auto text = "make: done\r\n{\"a\":1}\n" + stream_begin + stream_call + stream_child +
                    "a word between\n" + stream_result("ok") + stream_end("success");
  std::mt19937_64 random(test::random_seed());
  const auto heard = heard_of(cut(text, random));
  EXPECT_EQ(heard.kinds, "tool_call:t1 budget tool_result:t1 idle");
  EXPECT_EQ(heard.hook_ids,
            (std::vector<std::string>{"hook:PreToolUse:t1", "hook:PostToolUse:t1"}));
  ASSERT_TRUE(heard.end);
  EXPECT_EQ(heard.end->kind, OutcomeKind::completed);
}

TEST(AgentStream, says_how_its_run_ended) {
  const auto heard = heard_of({stream_begin, stream_call, stream_end("error_max_turns")});
  ASSERT_TRUE(heard.end);
  EXPECT_EQ(heard.end->kind, OutcomeKind::incomplete);
  EXPECT_FALSE(heard_of({stream_begin, stream_call}).end) << "it was ended before";
}

TEST(AgentStream, may_have_long_lines) {
  const std::string image(3UL * LineReader::line_bytes_max, 'x');
  EXPECT_EQ(heard_of({stream_begin, stream_call, stream_result(image)}).kinds,
            "tool_call:t1 budget tool_result:t1");
}

TEST(AgentStream, is_nothing_else) {
  const std::string foreign =
      R"({"type":"assistant","session_id":"x","message":{"role":"assistant","content":"hi"}})"
      "\n";
  EXPECT_EQ(heard_of({foreign, R"({"type":"system"})", "\n", "{broken\n"}).kinds, "");
  EXPECT_EQ(heard_of({stream_call, stream_result("ok")}).kinds, "") << "it has no begin";
  const std::string transcript =
      R"({"type":"user","sessionId":"x","uuid":"u","message":{"role":"user","content":"init"}})"
      "\n";
  EXPECT_EQ(heard_of({transcript}).kinds, "") << "a command prints a file";
  std::string text;
  for (int n = 0; n < AgentStream::lines_before_max; ++n) text += "{}\n";
  EXPECT_EQ(heard_of({text, stream_begin, stream_call}).kinds, "") << "the output began otherwise";
}

TEST(WrapEnd, takes_an_agents_word_unless_the_code_denies_it) {
  const Outcome done{.kind = OutcomeKind::completed, .reason = "task_complete"};
  const Outcome tired{.kind = OutcomeKind::incomplete, .reason = "max_iterations_reached"};
  WrapEnd end;
  end.code = 0;
  end.stated = tired;
  EXPECT_EQ(end.outcome({}).kind, tired.kind);
  end.code = 1;
  EXPECT_EQ(end.outcome({}).kind, tired.kind);
  end.stated = done;
  EXPECT_EQ(end.outcome({}).kind, OutcomeKind::failed);
  const Outcome broken{.kind = OutcomeKind::failed, .reason = "error", .error = "overloaded"};
  end.stated = broken;
  EXPECT_EQ(end.outcome({}).error, "overloaded");
  end.code = 0;
  EXPECT_EQ(end.outcome({}).kind, OutcomeKind::completed) << "the command went on without it";
  end.code.reset();
  end.signal = 9;
  end.stated = tired;
  EXPECT_EQ(end.outcome({}).kind, OutcomeKind::failed);
}

}  // namespace
}  // namespace watchdog::monitor
