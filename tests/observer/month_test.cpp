#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <random>

#include "observer/observer.h"
#include "store/retention.h"
#include "support/manual_clock.h"
#include "support/reports.h"
#include "support/temp_dir.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;

constexpr int agents = 5;
constexpr int days = 2;
constexpr int steps_a_day = 200;

/// Words as an agent would say, never the same twice.
std::string words(std::mt19937& random, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += "word" + std::to_string(random() % 100'000) + " ";
  return text.substr(0, bytes);
}

/// What an agent says in a minute: that it lives, and now and then a step. Heartbeats of a shorter
/// interval take no more, once they are merged.
std::vector<Report> minute_of(std::mt19937& random) {
  Report beat;
  beat.detail =
      Heartbeats{.iteration_first = 1, .iteration = 1, .phase = "think", .source = Source::sidecar};
  std::vector<Report> reports{beat};
  if (random() % (24 * 60) >= steps_a_day) return reports;
  const auto call = "call_" + std::to_string(random());
  reports.push_back(
      {.kind = ReportKind::message, .name = "assistant", .content = words(random, 600)});
  reports.push_back({.kind = ReportKind::tool_call,
                     .name = "shell",
                     .content = R"({"command":")" + words(random, 300) + R"(","cwd":"/src"})",
                     .call_id = call});
  reports.push_back({.kind = ReportKind::tool_result,
                     .name = "shell",
                     .content = words(random, 2'000),
                     .call_id = call});
  return reports;
}

// The figure in docs/how-to/privacy.md: the bytes that an agent takes in a month. The agent is
// alive all the time and does 200 steps a day. A step is a message, a call and its result. Contents
// are stored as previews.
TEST(Month, of_an_agent_takes_what_is_promised) {
  std::mt19937 random(1);
  test::TempDir dir;
  test::ManualClock clock;
  const auto path = dir / "w.db";
  auto store = Store::open({.database = path, .clock = &clock});
  auto observer = Observer::start(*store, {.late_max = 3'600'000ms});
  SessionSpec spec{.agent = "coder", .task = "Make the tests pass"};
  spec.policy.heartbeat_interval = 60s;
  for (int minute = 0; minute < days * 24 * 60; ++minute) {
    clock.advance(60s);
    std::vector<Batch> batches;
    for (int agent = 0; agent < agents; ++agent) {
      batches.push_back({.session = "agent-" + std::to_string(agent),
                         .creation = Creation::attach,
                         .spec = spec,
                         .reports = minute_of(random)});
    }
    ASSERT_TRUE(store->append(batches).ok());
    ASSERT_TRUE((*observer)->look().ok());
  }
  ASSERT_TRUE((*observer)->checkpoint().ok());
  clock.advance(2h);
  while (*RetentionActs(*store).trim({.folded_through = (*observer)->folded()})) {
  }
  const auto copy = store->reader().copy_to(dir / "copy.db");  // without what is free
  ASSERT_TRUE(copy.ok());
  const double month = static_cast<double>(copy->bytes) / agents / days * 30;
  const double step = month / 30 / steps_a_day;
  std::printf("an agent's month: %.1f MB; a step: %.0f bytes; 1,000 agents: %.1f GB\n", month / 1e6,
              step, month / 1e6);
  EXPECT_LT(month, 12e6);
  EXPECT_GT(month, 4e6) << "docs/how-to/privacy.md says more than it takes";
}

}  // namespace
}  // namespace watchdog
