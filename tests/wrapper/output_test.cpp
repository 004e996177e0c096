// The wrapper reads the output of a command. These tests run no command.

#include <algorithm>
#include <random>

#include "support/scenario.h"
#include "wrapper/lines.h"
#include "wrapper/output_watch.h"
#include "wrapper/recognition.h"
#include "wrapper/terminal_progress.h"

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
  for (int n = 0; n < 1'000; ++n) watch.feed("x\n{\"kind\":\"message\"}\n");
  watch.feed("x");
  watch.finish();
  EXPECT_EQ(messages, 1'000);
  EXPECT_GE(changes, OutputWatch::reported_per_second_max);
  EXPECT_LT(changes, 1'000);
  EXPECT_EQ(tally.lines, 2'000U);
}

}  // namespace
}  // namespace watchdog::monitor
