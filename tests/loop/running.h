/// \file
/// A small agent in a real run with a real file, for tests.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "support/manual_clock.h"
#include "support/reports.h"
#include "support/temp_dir.h"
#include "watchdog/reasons.h"
#include "watchdog/run.h"

namespace watchdog::test {

using namespace std::chrono_literals;

/// A small agent: what it reflects and does is a script, time is the test's.
class Running : public ::testing::Test {
 protected:
  TempDir directory;
  ManualClock clock;
  std::filesystem::path database = directory / "w.db";
  ProgressTracker tracker{{.session = "s",
                           .spec = {.task = "tidy up"},
                           .database = database,
                           .sidecar = false,
                           .clock = &clock,
                           .log = [](const std::string&) {}}};
  RunOptions options{.check_wait = 0ms, .retry_first = 1ms, .retry_longest = 2ms};
  Model model;
  std::shared_ptr<ExecutionBudget> budget;
  StatusChecker* checker = nullptr;

  std::function<Result<Reflection, Failure>(Iteration&)> reflect = [](Iteration& now) {
    return Reflection{.data = "step " + std::to_string(now.number())};
  };
  std::function<Result<Act, Failure>(Iteration&, const Reflection&)> act = [](Iteration& now,
                                                                              const Reflection&) {
    return Act{.tool = "edit", .data = "file " + std::to_string(now.number())};
  };
  std::function<void(const Trouble&)> recover;

  RunEnd go(const std::stop_token& stop = {}) {
    watchdog::Run run({.tracker = tracker,
                       .callbacks = {.reflect = reflect, .act = act, .recover = recover},
                       .model = model,
                       .budget = budget,
                       .checker = checker,
                       .clock = &clock},
                      options);
    return run.go(stop);
  }

  std::vector<Event> stored() {
    auto reader = StoreReader::open(database);
    EXPECT_TRUE(reader.ok());
    return all_events(*reader, "s");
  }
  Case judged() {
    auto reader = StoreReader::open(database);
    EXPECT_TRUE(reader.ok());
    return *reader->fold(*reader->session("s"));
  }
  void expect_end(const RunEnd& end, OutcomeKind kind, std::string_view reason) {
    EXPECT_EQ(name_of(end.outcome.kind), name_of(kind)) << end.outcome.error;
    EXPECT_EQ(end.outcome.reason, reason) << end.outcome.error;
    EXPECT_TRUE(end.stored);
    // The session's history has the outcome that the run returned.
    const auto kept = judged();
    ASSERT_TRUE(kept.history.notes->outcome);
    EXPECT_EQ(kept.history.notes->outcome->reason, reason);
    EXPECT_EQ(kept.history.notes->outcome->subject, end.outcome.subject);
    EXPECT_EQ(name_of(kept.history.lifecycle), name_of(kind));
  }
};

/// Says ok to everything.
inline Model agreeing(std::vector<ChatRequest>* asked = nullptr) {
  return [asked](const ChatRequest& request, const ChatSink&, const std::stop_token&) {
    if (asked != nullptr) asked->push_back(request);
    return Result<ChatAnswer, Failure>(ChatAnswer{.text = "ok", .output_tokens = 1});
  };
}

}  // namespace watchdog::test
