// Advice about calls that a developer pairs by hand.
#include "api/hints.h"

#include <gtest/gtest.h>

namespace watchdog::monitor {
namespace {

using Kind = CallStep::Kind;

TEST(Hints, a_call_and_its_result_are_a_pair) {
  Hints hints;
  hints.begin("s");
  const CallStep pair[] = {{Kind::call, "a"}, {Kind::result, "a"}, {Kind::rest, ""}};
  const auto unpaired = hints.follow("s", pair);
  EXPECT_EQ(unpaired.call + unpaired.result, "");
}

TEST(Hints, halves_of_pairs_are_named) {
  Hints hints;
  hints.begin("s");
  const CallStep halves[] = {{Kind::call, "a"}, {Kind::result, "b"}, {Kind::rest, ""}};
  const auto unpaired = hints.follow("s", halves);
  EXPECT_EQ(unpaired.call, "a");
  EXPECT_EQ(unpaired.result, "b");
  EXPECT_EQ(hints.follow("s", std::span(halves, 1)).call, "") << "the turn is not over";
}

TEST(Hints, nothing_is_said_where_the_beginning_is_not_known) {
  Hints hints;
  const CallStep result[] = {{Kind::result, "a"}, {Kind::rest, ""}};
  EXPECT_EQ(hints.follow("never begun", result).result, "");
  hints.begin("left");
  hints.leave("left");
  EXPECT_EQ(hints.follow("left", result).result, "");
}

TEST(Hints, a_session_with_too_many_open_calls_is_left_alone) {
  Hints hints;
  hints.begin("s");
  for (std::size_t at = 0; at <= Hints::calls_max; ++at) {
    const CallStep call[] = {{Kind::call, std::to_string(at)}};
    EXPECT_EQ(hints.follow("s", call).call, "");
  }
  const CallStep rest[] = {{Kind::rest, ""}};
  EXPECT_EQ(hints.follow("s", rest).call, "");
}

TEST(Hints, only_turns_that_were_not_broken_off_end_calls) {
  std::vector<Report> reports(4);
  reports[0].kind = ReportKind::idle;
  reports[1].kind = ReportKind::idle;
  reports[1].name = idle_reports::interrupted;
  reports[2].kind = ReportKind::end;
  reports[2].detail = Outcome{.kind = OutcomeKind::cancelled};
  reports[3].kind = ReportKind::end;
  reports[3].detail = Outcome{};
  EXPECT_EQ(call_steps(reports).size(), 2);
}

}  // namespace
}  // namespace watchdog::monitor
