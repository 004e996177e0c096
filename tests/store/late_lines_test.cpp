// Lines of a transcript that are read after a hook said that the turn is over. They count by their
// own time: they neither end the rest nor decide how the session ended.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "store/store.h"
#include "support/manual_clock.h"
#include "support/temp_dir.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;
using test::ManualClock;
using test::TempDir;
using K = ReportKind;

class LateLines : public testing::Test {
 protected:
  TempDir dir;
  ManualClock clock;
  Result<Store> opened = Store::open({.database = dir / "w.db", .clock = &clock});
  Store& store = *opened;

  void say(ReportOrigin by, const std::vector<Report>& reports) {
    Batch batch{.session = "s", .reports = reports, .by = by};
    ASSERT_TRUE(store.append({&batch, 1}).ok());
  }
  /// A call that only the transcript knows, such as one that the agent itself refused.
  void line(Millis ago, K kind, const std::string& text) {
    Report report{.kind = kind, .name = "Bash", .content = text, .call_id = "c"};
    report.at = clock.wall() - ago;
    say(ReportOrigin::transcript, {report});
  }
  void call(Millis ago) {
    line(ago, K::tool_call, R"({"command":"sleep 25"})");
    line(ago, K::error, "Blocked: sleep 25");
  }
  void stop() {
    say(ReportOrigin::hooks,
        {{.kind = K::message, .name = "assistant", .content = "It is done."}, {.kind = K::idle}});
  }
  Case judged() { return *store.reader().fold(*store.reader().session("s")); }
  std::string end() {
    Report gone{.kind = K::end};
    gone.detail = Outcome{.reason = "other", .stated = false, .by_answer = true};
    say(ReportOrigin::hooks, {gone});
    return std::string(name_of(judged().history.notes->outcome->kind));
  }

  void SetUp() override {
    say(ReportOrigin::hooks, {{.kind = K::user_input, .content = "Please wait."}});
    clock.advance(1s);
  }
};

TEST_F(LateLines, of_a_turn_that_is_over_end_no_rest) {
  stop();
  clock.advance(100ms);
  call(350ms);
  EXPECT_EQ(judged().history.lifecycle, Lifecycle::idle);
  EXPECT_TRUE(judged().history.open_calls->empty());
  EXPECT_EQ(end(), "completed");
}

TEST_F(LateLines, of_a_later_turn_end_the_rest) {
  stop();
  clock.advance(1s);
  call(100ms);
  EXPECT_EQ(judged().history.lifecycle, Lifecycle::running);
  EXPECT_EQ(end(), "incomplete");
}

TEST_F(LateLines, that_are_in_time_count_in_their_order) {
  call(100ms);
  stop();
  EXPECT_EQ(judged().history.lifecycle, Lifecycle::idle);
  EXPECT_EQ(end(), "completed");
}

TEST_F(LateLines, of_many_calls_are_all_in_their_place) {
  stop();
  clock.advance(100ms);
  for (int i = 0; i < 12; ++i) call(900ms - 10ms * i);
  EXPECT_EQ(end(), "completed");
}

TEST_F(LateLines, without_a_stop_show_that_the_work_was_not_over) {
  call(100ms);
  EXPECT_EQ(end(), "incomplete");
}

TEST_F(LateLines, alone_count_in_the_order_of_the_file) {
  for (int i = 0; i < 50; ++i) call(500ms - 10ms * i);
  EXPECT_EQ(end(), "incomplete");
}

}  // namespace
}  // namespace watchdog
