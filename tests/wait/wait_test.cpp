// The waiting harness on real processes and files. Nothing here waits for time.
#include "watchdog/wait.h"

#include <fcntl.h>
#include <gtest/gtest-spi.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <future>
#include <thread>

#include "observer/observer.h"
#include "store/event_reader.h"
#include "support/process.h"
#include "support/temp_dir.h"
#include "watchdog/gtest.h"
#include "watchdog/tracker.h"

namespace watchdog {
namespace {

using test::Process;
using testing::Comes;
using testing::WaitsInVain;
using Waits = Result<Waited, WaitFailure>;

class WaitTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::vector<std::string> agent(std::vector<std::string> script,
                                               const std::string& session = "s") const {
    std::vector<std::string> words{WATCHDOG_SCRIPTED_AGENT, database_.string(), session};
    words.insert(words.end(), script.begin(), script.end());
    return words;
  }
  [[nodiscard]] Wait asked(std::string_view goal = "completed",
                           const std::string& session = "s") const {
    return {.session = session, .database = database_, .until = *awaited_from(goal)};
  }
  /// Two ends that meet: the agent's `go:` and this.
  [[nodiscard]] std::string gate(const std::string& name) const {
    const auto path = (directory_ / name).string();
    mkfifo(path.c_str(), 0600);
    return path;
  }
  static void open_gate(const std::string& path) {
    close(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  }

  [[nodiscard]] ProgressTracker::Config tracked(const std::string& session = "s") const {
    return {.session = session, .database = database_, .sidecar = false};
  }
  /// A pass of the loop, durable.
  static void beat(ProgressTracker& tracker) {
    static int iteration = 0;
    tracker.heartbeat({.iteration = ++iteration});
    EXPECT_TRUE(tracker.flush().ok());
  }

  test::TempDir directory_;
  std::filesystem::path database_ = directory_ / "w.db";
};

/// EXPECT_THAT of GoogleMock does the same.
void expect_that(const Waits& waits, const ::testing::Matcher<const Waits&>& matcher) {
  std::ostringstream expected;
  matcher.DescribeTo(&expected);
  EXPECT_TRUE(matcher.Matches(waits))
      << "expected that it " << expected.str() << ", got: " << ::testing::PrintToString(waits);
}

/// Prints a failure's text, so that it can be read in the log.
std::string said(const Waits& waits) {
  if (waits) return "";
  std::cout << waits.error().text() << "\n";
  return waits.error().text();
}

TEST_F(WaitTest, ends_the_moment_the_agent_completes) {
  Process process(agent({"beat", "state:plan", "call:read:a", "complete"}));
  EXPECT_COMPLETES("s", database_);
  EXPECT_COMPLETES({.session = "s", .database = database_, .pid = process.pid()});
  const auto came = wait(asked());
  ASSERT_TRUE(came.ok());
  EXPECT_EQ(came->judged.history.lifecycle, Lifecycle::completed);
}

TEST_F(WaitTest, waits_for_a_session_in_a_file_that_is_not_there_yet) {
  const auto go = gate("go");
  std::promise<void> looked;
  auto question = asked();
  question.seen = [&, first = true](const Observed* seen) mutable {
    if (std::exchange(first, false)) {
      EXPECT_EQ(seen, nullptr);
      looked.set_value();
    }
  };
  auto waiting = std::async(std::launch::async, [&] { return wait(question); });
  looked.get_future().wait();
  Process process(agent({"complete"}));
  expect_that(waiting.get(), Comes());
}

TEST_F(WaitTest, a_failed_agent_fails_the_wait_at_once_and_says_why) {
  Process process(agent({"beat", "state:plan", "call:read:a", "fail:the disk is full"}));
  const auto waits = wait(asked());
  ASSERT_FALSE(waits.ok());
  EXPECT_EQ(waits.error().end, WaitEnd::ended);
  const auto text = said(waits);
  for (const auto* part : {"session s: it ended as failed instead", "expected  completed",
                           "last      failed (error): the disk is full", "state_change plan",
                           "tool_call read", "end failed (error): the disk is full"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
}

TEST_F(WaitTest, so_do_an_incomplete_and_a_cancelled_one) {
  Process incomplete(agent({"beat", "incomplete:max_iterations_reached"}, "i"));
  Process cancelled(agent({"beat", "cancelled"}, "c"));
  for (const auto* session : {"i", "c"}) {
    const auto waits = wait(asked("completed", session));
    ASSERT_FALSE(waits.ok());
    EXPECT_EQ(waits.error().end, WaitEnd::ended);
    said(waits);
  }
  EXPECT_COMES(asked("incomplete", "i"));
  EXPECT_COMES(asked("cancelled", "c"));
  EXPECT_COMES(asked("end", "c"));
}

TEST_F(WaitTest, an_agent_that_is_killed_is_dead_at_once) {
  Process process(agent({"beat", "state:plan", "crash"}));
  const auto waits = wait(asked());
  ASSERT_FALSE(waits.ok());
  expect_that(waits, WaitsInVain(WaitEnd::dead));
  EXPECT_NE(said(waits).find("its process " + std::to_string(process.pid()) + " is gone"),
            std::string::npos);
}

TEST_F(WaitTest, an_agent_that_may_be_restarted_is_dead_only_once_nobody_did) {
  Process first(agent({"beat", "state:plan", "crash"}));
  EXPECT_EQ(first.wait(), 128 + SIGKILL);
  auto question = asked();
  question.until.restarts = true;
  auto waiting = std::async(std::launch::async, [&] { return wait(question); });
  Process second(agent({"beat", "complete"}));
  expect_that(waiting.get(), Comes());

  // Only what beats by itself falls silent; without a monitor the wait finds out on its own.
  {
    auto config = tracked("silent");
    config.spec.policy = {.heartbeat_interval = Millis{100}, .silence_intervals = 1};
    config.spec.process = ProcessFacts{};
    ProgressTracker tracker(std::move(config));
    for (int i = 0; i < 3; ++i) {
      tracker.heartbeat({.source = Source::sidecar});
      ASSERT_TRUE(tracker.flush().ok());
    }
    Report start{.kind = ReportKind::start};
    auto gone = this_process();
    gone.pid = first.pid() > 0 ? first.pid() : second.pid();
    gone.start_ticks = 1;
    start.detail = gone;
    tracker.report(start);
    ASSERT_TRUE(tracker.flush().ok());
  }
  question.session = "silent";
  const auto waits = wait(question);
  ASSERT_FALSE(waits.ok());
  EXPECT_EQ(waits.error().end, WaitEnd::dead);
  said(waits);
}

TEST_F(WaitTest, an_agent_in_c_reports_as_any_other) {
  const auto ran = test::run({WATCHDOG_C_AGENT, database_.string(), "s"});
  EXPECT_EQ(ran.output, "ok\n");
  EXPECT_EQ(ran.code, 0);
  EXPECT_COMPLETES("s", database_);
  auto reader = StoreReader::open(database_);
  ASSERT_TRUE(reader.ok());
  const auto row = reader->session("s");
  ASSERT_TRUE(row.ok());
  EXPECT_EQ(row->spec.agent, "agent.c");
  const auto calls = EventReader(*reader).page(row->key, 0, 100, ReportKind::error);
  ASSERT_TRUE(calls.ok());
  ASSERT_EQ(calls->events.size(), 1U);
  EXPECT_EQ(calls->events.front().report.content, "it is read-only");
  const auto waits = EventReader(*reader).page(row->key, 0, 100, ReportKind::wait);
  ASSERT_TRUE(waits.ok());
  ASSERT_EQ(waits->events.size(), 2U);
  EXPECT_EQ(waits->events[0].report.name, "quota");
  EXPECT_EQ(waits->events[0].report.content, "resets at nine");
  EXPECT_EQ(waits->events[0].report.until, WallTime{std::chrono::seconds(1'795'813'200)});
  EXPECT_EQ(waits->events[1].report.name, "approval");
  EXPECT_FALSE(waits->events[1].report.until);

  Process cancelled({WATCHDOG_C_AGENT, database_.string(), "c", "cancel"});
  ASSERT_COMES(asked("state-change", "c"));
  auto store = Store::open({.database = database_});
  ASSERT_TRUE(store.ok());
  Batch cancel{.session = "c", .creation = Creation::refuse};
  cancel.reports.push_back({.kind = ReportKind::cancel});
  cancel.reports.back().detail = CancelRequest{.by = "user"};
  ASSERT_TRUE(store->append({&cancel, 1}).ok());
  EXPECT_COMES(asked("cancelled", "c"));
  EXPECT_EQ(cancelled.line(), "ok");
}

TEST_F(WaitTest, a_stuck_agent_fails_the_wait_after_three_further_iterations) {
  std::vector<std::string> script{"state:plan"};
  script.insert(script.end(), 40, "beat");
  script.emplace_back("stay");
  Process process(agent(script));
  const auto waits = wait(asked());
  ASSERT_FALSE(waits.ok());
  EXPECT_EQ(waits.error().end, WaitEnd::stuck);
  const auto text = said(waits);
  EXPECT_NE(text.find("it has been stuck for "), std::string::npos);
  EXPECT_NE(text.find("health progressing → stuck"), std::string::npos);
}

TEST_F(WaitTest, trouble_that_lasted_before_the_wait_began_counts) {
  std::vector<std::string> script{"state:plan"};
  script.insert(script.end(), 7, "beat");
  script.emplace_back("say:ready");
  script.emplace_back("stay");
  Process process(agent(script));
  EXPECT_EQ(process.line(), "ready");
  auto question = asked();
  question.until.further_max = 2;
  expect_that(wait(question), WaitsInVain(WaitEnd::stuck));
}

TEST_F(WaitTest, so_does_one_that_loops) {
  std::vector<std::string> script{"state:plan"};
  script.insert(script.end(), 40, "again:read_file");
  script.emplace_back("stay");
  Process process(agent(script));
  const auto waits = wait(asked());
  ASSERT_FALSE(waits.ok());
  EXPECT_EQ(waits.error().end, WaitEnd::stuck);
  const auto text = said(waits);
  EXPECT_NE(text.find("it has been looping for "), std::string::npos);
  EXPECT_NE(text.find("omitted"), std::string::npos);
}

TEST_F(WaitTest, an_alarm_that_the_next_steps_refute_fails_nothing) {
  ProgressTracker tracker(tracked());
  tracker.state_change("plan");
  for (int i = 0; i < 5; ++i) beat(tracker);
  int alarms = 0;
  auto question = asked();
  question.seen = [&](const Observed* seen) {
    if (seen == nullptr || is_end(seen->judged.history.lifecycle)) return;
    const bool stuck = seen->judged.health.kind == HealthKind::stuck;
    if (!stuck) {
      beat(tracker);
    } else if (further_iterations(seen->memory) < 2) {
      beat(tracker);
    } else if (++alarms < 3) {
      tracker.state_change("step", std::to_string(alarms));
    } else {
      EXPECT_TRUE(tracker.complete().ok());
    }
  };
  EXPECT_COMES(question);
  EXPECT_EQ(alarms, 3);
}

TEST_F(WaitTest, the_ask_callback_decides_whether_the_wait_continues) {
  ProgressTracker tracker(tracked());
  tracker.state_change("plan");
  for (int i = 0; i < 5; ++i) beat(tracker);
  auto question = asked();
  int asked_so_far = 0;
  question.seen = [&](const Observed* seen) {
    if (seen != nullptr) beat(tracker);
  };
  question.ask = [&](const Observed& seen) {
    EXPECT_GE(further_iterations(seen.memory), 3);
    return ++asked_so_far < 3;
  };
  const auto waits = wait(question);
  ASSERT_FALSE(waits.ok());
  EXPECT_EQ(waits.error().end, WaitEnd::user_cancelled_stuck);
  EXPECT_EQ(asked_so_far, 3);
  EXPECT_NE(said(waits).find("chose not to continue"), std::string::npos);
}

TEST_F(WaitTest, the_last_look_counts_also_after_a_no) {
  ProgressTracker tracker(tracked());
  tracker.state_change("plan");
  for (int i = 0; i < 5; ++i) beat(tracker);
  auto question = asked();
  question.seen = [&](const Observed* seen) {
    if (seen != nullptr && !is_end(seen->judged.history.lifecycle)) beat(tracker);
  };
  question.ask = [&](const Observed&) {
    EXPECT_TRUE(tracker.complete().ok());
    return false;
  };
  EXPECT_COMES(question);
}

TEST_F(WaitTest, a_stuck_agent_is_waited_for_if_on_stuck_is_keep) {
  ProgressTracker tracker(tracked());
  tracker.state_change("plan");
  auto question = asked();
  question.until.on_stuck = OnStuck::keep;
  int beats = 0;
  question.seen = [&](const Observed* seen) {
    if (seen == nullptr || is_end(seen->judged.history.lifecycle)) return;
    if (++beats < 30) return beat(tracker);
    EXPECT_EQ(seen->judged.health.kind, HealthKind::stuck);
    EXPECT_TRUE(tracker.complete().ok());
  };
  EXPECT_COMES(question);
}

TEST_F(WaitTest, state_changes_count_before_and_after_the_wait_began) {
  const auto go = gate("go");
  Process process(
      agent({"state:plan", "call:read:a", "go:" + go, "state:plan", "state:written", "complete"}));
  const auto first = wait(asked("state-change=plan"));
  ASSERT_TRUE(first.ok());
  ASSERT_TRUE(wait(asked("state-change=tool_call")).ok());
  auto second = asked("state-change=plan");
  second.after = first->seq;
  auto waiting = std::async(std::launch::async, [&] { return wait(second); });
  open_gate(go);
  const auto came = waiting.get();
  ASSERT_TRUE(came.ok()) << came.error().text();
  EXPECT_GT(came->seq, first->seq);
  EXPECT_COMES(asked("state-change=written"));
  EXPECT_COMES(asked("state-change"));
  const auto never_came = wait(asked("state-change=deployed"));
  ASSERT_FALSE(never_came.ok());
  EXPECT_EQ(never_came.error().end, WaitEnd::ended);
  said(never_came);
}

TEST_F(WaitTest, a_health_is_waited_for_also_where_it_passes) {
  ProgressTracker tracker(tracked());
  tracker.state_change("plan");
  for (int i = 0; i < 5; ++i) beat(tracker);
  EXPECT_COMES(asked("health=stuck"));
  auto question = asked("health=progressing");
  std::atomic<bool> looked = false;
  question.seen = [&](const Observed*) { looked = true; };
  auto waiting = std::async(std::launch::async, [&] { return wait(question); });
  while (!looked) std::this_thread::yield();
  // Back, stuck again and over before anybody can have looked in between.
  tracker.state_change("step");
  for (int i = 0; i < 5; ++i) tracker.heartbeat({.iteration = 1'000 + i});
  ASSERT_TRUE(tracker.complete().ok());
  expect_that(waiting.get(), Comes());
}

TEST_F(WaitTest, a_condition_may_ask_anything_of_the_progress_document) {
  Process process(agent({"beat", "beat", "state:plan", "call:read:a", "call:read:b", "complete"}));
  auto question = asked();
  question.until = {.goal = Goal::condition, .what = "two calls"};
  question.condition = [](const Observed& seen) {
    return seen.document().find(R"("stateChanges":3)") != std::string::npos;
  };
  EXPECT_COMES(question);
  question.condition = [](const Observed& seen) { return seen.judged.history.heartbeats > 100; };
  question.until.what = "a hundred heartbeats";
  const auto waits = wait(question);
  ASSERT_FALSE(waits.ok());
  EXPECT_EQ(waits.error().expected, "a hundred heartbeats");
  said(waits);
}

TEST_F(WaitTest, several_wait_for_one_session) {
  const auto go = gate("go");
  Process process(agent({"state:plan", "go:" + go, "complete"}));
  std::vector<std::future<Waits>> waits;
  for (int i = 0; i < 8; ++i) {
    waits.push_back(std::async(std::launch::async, [&] { return wait(asked()); }));
  }
  open_gate(go);
  for (auto& one : waits) expect_that(one.get(), Comes());
}

TEST_F(WaitTest, a_session_that_never_starts_is_not_waited_for_where_that_is_known) {
  Process other(agent({"complete"}, "another"));
  EXPECT_COMPLETES("another", database_);
  auto question = asked();
  question.must_exist = true;
  auto waits = wait(question);
  ASSERT_FALSE(waits.ok());
  EXPECT_EQ(waits.error().end, WaitEnd::no_session);
  EXPECT_NE(said(waits).find("the newest there are another"), std::string::npos);

  question.must_exist = false;
  Process starter({"/bin/true"});
  question.pid = starter.pid();
  waits = wait(question);
  ASSERT_FALSE(waits.ok());
  EXPECT_EQ(waits.error().end, WaitEnd::no_session);
  EXPECT_NE(said(waits).find(", which was to start it, is gone"), std::string::npos);

  std::stop_source stop;
  question.pid = 0;
  question.stop = stop.get_token();
  question.seen = [&](const Observed*) { stop.request_stop(); };
  waits = wait(question);
  ASSERT_FALSE(waits.ok());
  EXPECT_EQ(waits.error().end, WaitEnd::interrupted);
  said(waits);
}

TEST_F(WaitTest, called_off_it_still_looks_once_more) {
  ProgressTracker tracker(tracked());
  tracker.state_change("plan");
  std::stop_source stop;
  auto question = asked();
  question.stop = stop.get_token();
  question.seen = [&](const Observed* seen) {
    if (seen == nullptr || stop.stop_requested()) return;
    stop.request_stop();
    EXPECT_TRUE(tracker.complete().ok());
  };
  EXPECT_COMES(question);
}

TEST_F(WaitTest, a_file_that_is_replaced_is_followed) {
  ProgressTracker tracker(tracked());
  tracker.state_change("plan");
  ASSERT_TRUE(tracker.flush().ok());
  auto question = asked();
  question.seen = [&, moved = false](const Observed* seen) mutable {
    if (seen == nullptr || moved) return;
    moved = true;
    for (const auto* end : {"", "-wal", "-shm"}) {
      std::filesystem::remove(database_.string() + end);
    }
    EXPECT_TRUE(tracker.complete().ok());
  };
  EXPECT_COMES(question);
}

// The log alone is taken away: the tracker saves what it held, and goes on with another one.
TEST_F(WaitTest, a_log_that_is_removed_is_followed) {
  ProgressTracker tracker(tracked());
  tracker.state_change("plan");
  ASSERT_TRUE(tracker.flush().ok());
  auto question = asked();
  question.seen = [&, moved = false](const Observed* seen) mutable {
    if (seen == nullptr || moved) return;
    moved = true;
    std::filesystem::remove(database_.string() + "-wal");
    tracker.state_change("step");
    EXPECT_TRUE(tracker.flush().ok());
    EXPECT_TRUE(tracker.complete().ok());
  };
  EXPECT_COMES(question);
}

TEST_F(WaitTest, a_judge_who_comes_and_goes_changes_nothing) {
  const auto go = gate("go");
  Process process(agent({"state:plan", "go:" + go, "state:step", "complete"}));
  ASSERT_COMES(asked("state-change=plan"));
  auto waiting = std::async(std::launch::async, [&] { return wait(asked()); });
  for (int i = 0; i < 3; ++i) {
    auto store = Store::open({.database = database_});
    ASSERT_TRUE(store.ok());
    const auto judge = Observer::start(*store, {});
    ASSERT_TRUE(judge.ok()) << judge.error().message;
    ASSERT_TRUE((*judge)->look().ok());
  }
  open_gate(go);
  expect_that(waiting.get(), Comes());
}

TEST_F(WaitTest, a_wait_that_cannot_succeed_is_misuse_and_says_why) {
  ProgressTracker tracker(tracked());
  tracker.state_change("plan");
  ASSERT_TRUE(tracker.flush().ok());
  const auto expect_misuse = [](const Wait& question, const std::string& part) {
    const auto waits = wait(question);
    ASSERT_FALSE(waits.ok());
    EXPECT_EQ(waits.error().end, WaitEnd::misuse);
    EXPECT_NE(said(waits).find(part), std::string::npos) << part;
  };
  expect_misuse({.session = "no session"}, "'no session' is not a session id");
  auto question = asked();
  question.until.goal = Goal::condition;
  expect_misuse(question, "there is no condition");
  question.condition = [](const Observed&) -> bool { throw std::runtime_error("no such key"); };
  expect_misuse(question, "the condition threw: no such key");
  question.until.goal = Goal::outcome;
  expect_misuse(question, "Goal::condition is not asked for");
  question = asked();
  question.until.further_max = 0;
  expect_misuse(question, "further_max");
  question = asked();
  question.pid = getpid();
  expect_misuse(question, "cannot be the one");

  tracker.listen([&](const Report&) { expect_misuse(asked(), "a callback of a tracker"); });
  tracker.message("assistant", "done");
  tracker.listen(nullptr);
}

TEST_F(WaitTest, a_file_that_cannot_be_read_is_not_waited_for) {
  std::filesystem::create_directory(database_);
  const auto waits = wait(asked());
  ASSERT_FALSE(waits.ok());
  EXPECT_EQ(waits.error().end, WaitEnd::unavailable);
  said(waits);
}

TEST_F(WaitTest, sigterm_from_outside_makes_it_report_before_it_ends) {
  Process process(agent({"state:plan", "call:read:a", "say:ready", "stay"}));
  EXPECT_EQ(process.line(), "ready");
  const auto log = (directory_ / "log").string();
  Process waiter({"/bin/sh", "-c", "exec \"$@\" 2>" + log, "sh", WATCHDOG_SCRIPTED_AGENT, "wait",
                  database_.string(), "s"});
  EXPECT_EQ(waiter.line(), "waiting");
  waiter.signal(SIGTERM);
  EXPECT_EQ(waiter.wait(), 128 + SIGTERM);
  std::ifstream file(log);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::cout << text;
  for (const auto* part :
       {"session s: wait interrupted by SIGTERM; session was progressing", "expected  completed",
        "running, progressing", "state_change plan", "tool_result read"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part;
  }
}

TEST_F(WaitTest, a_signal_while_nobody_waits_takes_its_course) {
  EXPECT_EXIT(
      {
        const Termination on_termination;
        raise(SIGTERM);
      },
      ::testing::KilledBySignal(SIGTERM), "");
}

TEST_F(WaitTest, handlers_are_put_back) {
  struct sigaction before {};
  struct sigaction after {};
  sigaction(SIGTERM, nullptr, &before);
  {
    const Termination one;
    const Termination two;
    sigaction(SIGTERM, nullptr, &after);
    EXPECT_NE(after.sa_handler, before.sa_handler);
  }
  sigaction(SIGTERM, nullptr, &after);
  EXPECT_EQ(after.sa_handler, before.sa_handler);
}

TEST_F(WaitTest, an_expectation_that_fails_shows_all_of_it) {
  ProgressTracker tracker(tracked());
  tracker.state_change("plan");
  ASSERT_TRUE(tracker.fail("no tokens left").ok());
  static const ProgressTracker* reported = nullptr;
  reported = &tracker;
  EXPECT_NONFATAL_FAILURE(EXPECT_COMPLETES(*reported), "last      failed (error): no tokens left");
  EXPECT_FATAL_FAILURE(ASSERT_COMPLETES(*reported), "state_change plan");
}

TEST_F(WaitTest, text_from_agents_does_not_control_the_terminal) {
  ProgressTracker tracker(tracked());
  tracker.state_change("\x1b[2Jplan\r\n");
  tracker.tool_error("read", "\x07" + std::string(5'000, 'x') + "\xff");
  ASSERT_TRUE(tracker.fail("\x1b]0;title\x07").ok());
  const auto text = said(wait(asked()));
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\x07'), std::string::npos);
  EXPECT_LT(text.size(), 1'500U);
}

}  // namespace
}  // namespace watchdog
