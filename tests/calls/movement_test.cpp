// Movement of a call, as tables; the time is a number.
#include "calls/movement.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace watchdog::test {
namespace {

constexpr Instant start{Millis{1'000'000}};

Instant at(double seconds) {
  return start + Millis{static_cast<std::int64_t>(seconds * 1'000)};
}

struct Step {
  double seconds;
  double value;
  std::optional<double> total;
  std::string_view words;
  bool moves;
};

struct Table {
  const char* name;
  std::vector<Step> steps;
};

TEST(Movement, ProgressCountsWhenItRisesOrSaysSomethingNew) {
  const auto infinite = std::numeric_limits<double>::infinity();
  const std::vector<Table> tables = {
      {"rising", {{1, 1, 10, "", true}, {2, 2, 10, "", true}, {9, 9, 10, "", true}}},
      {"equal or falling",
       {{1, 5, {}, "", true},
        {2, 5, {}, "", false},
        {3, 4, {}, "a", true},
        {4, 4, {}, "b", true},
        {5, 4, {}, "a", false}}},
      {"no number", {{1, std::nan(""), {}, "", false}, {2, infinite, {}, "", false}}},
      {"a count without a total",
       {{5, 1, {}, "working", true},
        {10, 2, {}, "working", true},
        {15, 3, {}, "working", true},
        {20, 4, {}, "working", true},
        {25, 5, {}, "working", true},
        {30, 6, {}, "working", true},
        {35, 7, {}, "working", true}}},
      {"equal words with times of day",
       {{5, 1, {}, "12:00:05 waits for the press", true},
        {10, 1, {}, "12:00:10 waits for the press", false},
        {15, 1, {}, "2026-11-28T12:00:15.250Z waits for the press", false},
        {20, 1, {}, "1764331220 waits  for the press", false},
        {25, 1, {}, "12:00:25 waits for the press, 3 of 7", true}}},
      {"items at an equal distance, towards a total",
       {{5, 1, 50, "", true},
        {10, 2, 50, "", true},
        {15, 3, 50, "", true},
        {20, 4, 50, "", true},
        {25, 5, 50, "", true},
        {30, 6, 50, "", true},
        {35, 7, 50, "", true}}},
      {"fast items",
       {{0.1, 1, {}, "", true},
        {0.2, 2, {}, "", true},
        {0.3, 3, {}, "", true},
        {0.4, 4, {}, "", true},
        {0.5, 5, {}, "", true},
        {0.6, 6, {}, "", true},
        {0.7, 7, {}, "", true}}},
      {"items at irregular distances",
       {{5, 1, {}, "", true},
        {10, 2, {}, "", true},
        {13, 3, {}, "", true},
        {21, 4, {}, "", true},
        {24, 5, {}, "", true},
        {33, 6, {}, "", true},
        {36, 7, {}, "", true},
        {45, 8, {}, "", true}}},
  };
  for (const auto& table : tables) {
    Movement movement({.idle = Millis{120'000}}, start);
    for (const auto& step : table.steps)
      EXPECT_EQ(movement.progress(step.value, step.total, step.words, at(step.seconds)), step.moves)
          << table.name << " at " << step.seconds;
  }
}

TEST(Movement, OnlyMovementAndBusyProcessesPutTheDeadlineOff) {
  Movement movement({.idle = Millis{120'000}}, start);
  EXPECT_FALSE(movement.is_over(at(119)));
  EXPECT_TRUE(movement.is_over(at(120)));
  EXPECT_TRUE(movement.message("compiling a.c", at(100)));
  EXPECT_FALSE(movement.is_over(at(219)));
  EXPECT_TRUE(movement.task("2026-01-01T00:00:00Z", "", at(200)));
  EXPECT_FALSE(movement.task("2026-01-01T00:00:00Z", "", at(210)));
  EXPECT_TRUE(movement.task("2026-01-01T00:00:00Z", "reading", at(215)));
  EXPECT_FALSE(movement.is_over(at(334)));
  EXPECT_FALSE(movement.deadline().was_put_off());
  movement.alive(at(330));
  EXPECT_TRUE(movement.deadline().was_put_off());
  EXPECT_FALSE(movement.is_over(at(449)));
  EXPECT_TRUE(movement.is_over(at(450)));
  EXPECT_EQ(movement.deadline().accepted(), 3);
}

TEST(Movement, BusyProcessesAloneDoNotPutItOffForEver) {
  Movement movement({.idle = Millis{10'000}}, start);
  double seconds = 0;
  while (!movement.is_over(at(seconds)) && seconds < 1'000) {
    movement.alive(at(seconds));
    ++seconds;
  }
  EXPECT_GE(seconds, 100);
  EXPECT_LE(seconds, 120);
}

TEST(Movement, WithoutADeadlineACallIsNeverOver) {
  Movement movement({}, start);
  movement.alive(at(1));
  EXPECT_FALSE(movement.is_over(at(1e7)));
  EXPECT_EQ(movement.deadline().next_expiry(), never);
}

TEST(Movement, WaitingForAPersonAndStallsOfTheMachineDoNotCount) {
  Movement movement({.idle = Millis{120'000}}, start);
  movement.pause(PauseReason::awaiting_input, at(100));
  EXPECT_FALSE(movement.is_over(at(5'000)));
  movement.resume(PauseReason::awaiting_input, at(5'000));
  EXPECT_FALSE(movement.is_over(at(5'019)));
  movement.compensate(Millis{3'600'000});
  EXPECT_FALSE(movement.is_over(at(8'619)));
  EXPECT_TRUE(movement.is_over(at(8'620)));
}

TEST(Movement, EqualMessagesOfATimerStopCounting) {
  Movement movement({.idle = Millis{120'000}}, start);
  for (int beat = 0; beat <= Rhythm::beats_max; ++beat)
    EXPECT_TRUE(movement.message("still here", at(10.0 * beat))) << beat;
  EXPECT_FALSE(movement.message("still here", at(60)));
  EXPECT_TRUE(movement.message("done with a.c", at(70)));
}

struct Piece {
  std::string_view text;
  bool moves;
};

TEST(Movement, OutputCountsIfItHasANewLine) {
  const std::vector<std::pair<const char*, std::vector<Piece>>> tables = {
      {"the same line", {{"waits\n", true}, {"waits\n", false}, {"waits\nwaits\n", false}}},
      {"two lines by turns", {{"a\n", true}, {"b\n", true}, {"a\n", false}, {"b\na\n", false}}},
      {"the same line in parts",
       {{"the press ", true}, {"waits\n", true}, {"the press ", false}, {"waits\n", false}}},
      {"points", {{".", true}, {".", false}, {".", false}, {".\n", true}, {".", false}}},
      {"a wheel", {{"\r|", true}, {"\r/", true}, {"\r-", true}, {"\r\\", true}, {"\r|", false}}},
      {"a count", {{"row 1\n", true}, {"row 2\n", true}, {"row 3\n", true}}},
      {"a clock", {{"[12:00:01] waits\n", true}, {"[12:00:02] waits\n", false}}},
      {"blanks", {{" \n\n", false}, {"\t", false}}},
  };
  for (const auto& [name, pieces] : tables) {
    Movement movement({.idle = Millis{120'000}}, start);
    std::uint64_t bytes = 0;
    for (const auto& piece : pieces) {
      EXPECT_EQ(movement.output(piece.text, at(1)), piece.moves) << name << ": " << piece.text;
      bytes += piece.text.size();
    }
    EXPECT_EQ(movement.deadline().bytes(), bytes) << name;
  }
}

TEST(Movement, ALongLineMovesWithEachNewPiece) {
  Movement movement({.idle = Millis{120'000}}, start);
  for (int piece = 0; piece < 2'000; ++piece)
    EXPECT_TRUE(movement.output("cell " + std::to_string(piece) + ";", at(1))) << piece;
}

TEST(Movement, AFloodOfEqualLinesIsNotPutOffByItsOwnCpu) {
  std::string many;
  for (int line = 0; line < 10'000; ++line) many += "y\n";
  Movement movement({.idle = Millis{10'000}}, start);
  double seconds = 0;
  for (; !movement.is_over(at(seconds)) && seconds < 1'000; ++seconds) {
    for (int piece = 0; piece < 10; ++piece) movement.output(many, at(seconds));
    movement.alive(at(seconds));
  }
  EXPECT_LE(seconds, 20);
}

}  // namespace
}  // namespace watchdog::test
