#include "watchdog/tracker.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "codec/json.h"
#include "store/change_notifier.h"
#include "support/reports.h"
#include "support/temp_dir.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;
using test::all_events;
using test::say;
using test::TempDir;

/// Collects what the tracker says of its store, and lets a test wait for it.
struct Log {
  std::mutex mutex;
  std::condition_variable said;
  std::vector<std::string> sentences;
  void operator()(const std::string& sentence) {
    const std::lock_guard guard(mutex);
    sentences.push_back(sentence);
    said.notify_all();
  }
  std::string wait_for(std::size_t count) {
    std::unique_lock guard(mutex);
    said.wait(guard, [&] { return sentences.size() >= count; });
    return sentences[count - 1];
  }
};

class Tracking : public testing::Test {
 protected:
  TempDir dir;
  std::filesystem::path path = dir / "w.db";
  Log log;
  ProgressTracker::Config config(std::string session = "s") {
    return {.session = std::move(session),
            .database = path,
            .sidecar = false,
            .refusal_max = 500ms,
            .log = [this](const std::string& sentence) { log(sentence); }};
  }
  std::vector<Event> stored(const std::string& session = "s") {
    auto reader = StoreReader::open(path);
    EXPECT_TRUE(reader.ok()) << (reader ? "" : reader.error().message);
    return all_events(*reader, session);
  }
};

TEST_F(Tracking, an_event_is_in_the_store_when_flush_returns) {
  ProgressTracker tracker(config());
  tracker.heartbeat({.iteration = 1, .phase = "reflection"});
  tracker.state_change("reflection_complete", R"({"n":1})");
  tracker.heartbeat({.iteration = 1, .phase = "execution"});
  ASSERT_TRUE(tracker.flush().ok());
  const auto events = stored();
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0].report.kind, ReportKind::start);
  EXPECT_EQ(std::get<Heartbeats>(events[1].report.detail).phase, "reflection");
  EXPECT_EQ(events[2].report.name, "reflection_complete");
  EXPECT_EQ(std::get<Heartbeats>(events[3].report.detail).phase, "execution");
}

TEST_F(Tracking, every_way_to_end_is_typed_and_durable) {
  const auto outcome_of = [&](const std::string& session) {
    return std::get<Outcome>(stored(session).back().report.detail);
  };
  ASSERT_TRUE(ProgressTracker(config("a")).complete().ok());
  EXPECT_EQ(outcome_of("a").kind, OutcomeKind::completed);
  ASSERT_TRUE(ProgressTracker(config("b")).fail("refused", "connection_refused").ok());
  EXPECT_EQ(outcome_of("b").reason, "connection_refused");
  EXPECT_EQ(outcome_of("b").error, "refused");
  ASSERT_TRUE(ProgressTracker(config("c")).incomplete("max_iterations_reached").ok());
  EXPECT_EQ(outcome_of("c").kind, OutcomeKind::incomplete);
  ProgressTracker tracker(config("d"));
  ASSERT_TRUE(tracker.cancelled("user").ok());
  EXPECT_EQ(outcome_of("d").reason, "cancelled");
  EXPECT_EQ(outcome_of("d").subject, "user");
  EXPECT_EQ(tracker.complete().error().code, ErrorCode::conflict) << "an end is final";
}

TEST_F(Tracking, progress_is_known_in_process_at_once) {
  ProgressTracker tracker(config());
  EXPECT_EQ(tracker.judged().health.kind, HealthKind::unknown);
  tracker.state_change("step");
  for (int i = 0; i < 4; ++i) tracker.heartbeat({.iteration = i});
  EXPECT_EQ(tracker.judged().health.kind, HealthKind::progressing);
  tracker.heartbeat({.iteration = 5});
  EXPECT_EQ(tracker.judged().health.kind, HealthKind::stuck);
  tracker.state_change("step");
  EXPECT_EQ(tracker.judged().health.kind, HealthKind::progressing);
  EXPECT_EQ(tracker.judged().history.heartbeats, 5);
  EXPECT_TRUE(is_json(tracker.progress()));
}

TEST_F(Tracking, cancel_by_another_process_arrives_by_bell) {
  ProgressTracker tracker(config());
  ASSERT_TRUE(tracker.flush().ok());
  {
    auto store = Store::open({.database = path});
    Report cancel{.kind = ReportKind::cancel};
    cancel.detail = CancelRequest{.by = "user", .reason = "enough"};
    ASSERT_TRUE(say(*store, "s", {cancel}).ok());
  }
  while (tracker.heartbeat({}) != Advice::cancel) std::this_thread::yield();
  EXPECT_EQ(tracker.directive().cancel->reason, "enough");
  EXPECT_TRUE(tracker.cancelled("user").ok());
}

/// The aborts that a tracker's listener heard. A test can wait for them.
struct Aborts {
  std::mutex mutex;
  std::condition_variable came;
  std::vector<std::string> heard;
  void operator()(const CancelRequest& abort) {
    const std::lock_guard guard(mutex);
    heard.push_back(abort.turn + "/" + abort.call + " by " + abort.by + ": " + abort.reason);
    came.notify_all();
  }
  /// Waits for `count` aborts, but not unbearably long. Returns all that came.
  std::vector<std::string> wait_for(std::size_t count) {
    std::unique_lock guard(mutex);
    came.wait_for(guard, 60s, [&] { return heard.size() >= count; });
    return heard;
  }
};

TEST_F(Tracking, abort_by_another_process_is_heard_by_bell) {
  Aborts aborts;
  ProgressTracker tracker(config());
  tracker.on_abort([&](const CancelRequest& abort) { aborts(abort); });
  tracker.report(test::turn(turn_reports::turn_start, "t"));
  ASSERT_TRUE(tracker.flush().ok());
  const auto asked = std::chrono::steady_clock::now();
  {
    auto store = Store::open({.database = path});
    ASSERT_TRUE(say(*store, "s", {test::abort_of("t", "c", "too long")}).ok());
  }
  EXPECT_EQ(aborts.wait_for(1), std::vector<std::string>{"t/c by user: too long"});
  EXPECT_LT(std::chrono::steady_clock::now() - asked, 20s) << "at once, on a busy machine";
  EXPECT_EQ(tracker.directive().aborts.front().call, "c");
  EXPECT_EQ(tracker.heartbeat({}), Advice::go_on) << "the session goes on";
  EXPECT_FALSE(tracker.cancel_token().stop_requested());
  tracker.on_abort(nullptr);
}

TEST_F(Tracking, abort_is_heard_without_a_bell_while_a_turn_is_open) {
  Aborts aborts;
  auto chosen = config();
  chosen.spec.policy.heartbeat_interval = 3'600s;  // its own reports would fetch it as well
  ProgressTracker tracker(chosen);
  tracker.on_abort([&](const CancelRequest& abort) { aborts(abort); });
  tracker.report(test::turn(turn_reports::turn_start, "t"));
  ASSERT_TRUE(tracker.flush().ok());
  std::filesystem::remove_all(path.string() + ".bells");
  {
    auto store = Store::open({.database = path});
    ASSERT_TRUE(say(*store, "s", {test::abort_of("t")}).ok());
  }
  EXPECT_EQ(aborts.wait_for(1).size(), 1U);
  tracker.on_abort(nullptr);
}

TEST_F(Tracking, each_abort_is_heard_once_also_what_was_asked_before_somebody_listened) {
  Aborts aborts;
  ProgressTracker tracker(config());
  tracker.report(test::turn(turn_reports::turn_start, "t"));
  ASSERT_TRUE(tracker.flush().ok());
  auto store = Store::open({.database = path});
  ASSERT_TRUE(say(*store, "s", {test::abort_of("t", "a"), test::abort_of("t", "b")}).ok());
  while (tracker.directive().aborts.size() < 2) std::this_thread::yield();
  tracker.on_abort([&](const CancelRequest& abort) { aborts(abort); });
  EXPECT_EQ(aborts.wait_for(2).size(), 2U);
  // Each receipt repeats all of them, and so does the notification.
  tracker.on_abort([&](const CancelRequest& abort) { aborts(abort); });
  for (int i = 0; i < 5; ++i) {
    tracker.state_change("step");
    ASSERT_TRUE(tracker.flush().ok());
  }
  ASSERT_TRUE(say(*store, "s", {test::abort_of("t")}).ok());
  const auto heard = aborts.wait_for(3);
  ASSERT_EQ(heard.size(), 3U);
  EXPECT_EQ(heard.back(), "t/ by user: ");
  tracker.report({.kind = ReportKind::error, .name = "f", .call_id = "a"});
  tracker.report(test::turn(turn_reports::turn_end, "t"));
  ASSERT_TRUE(tracker.flush().ok());
  EXPECT_TRUE(tracker.directive().aborts.empty());
  tracker.on_abort(nullptr);
  EXPECT_EQ(aborts.wait_for(3).size(), 3U);
}

TEST_F(Tracking, listener_may_report_and_is_left_alone_once_it_was_replaced) {
  auto running = std::make_shared<std::atomic<bool>>(false);
  std::atomic<int> heard = 0;
  ProgressTracker tracker(config());
  tracker.report(test::turn(turn_reports::turn_start, "t"));
  ASSERT_TRUE(tracker.flush().ok());
  tracker.on_abort([&, running](const CancelRequest& abort) {
    *running = true;
    ++heard;
    tracker.report(test::turn(turn_reports::turn_abort, abort.turn, {.reason = "user"}));
    for (int i = 0; i < 1'000; ++i) std::this_thread::yield();
    *running = false;
  });
  auto store = Store::open({.database = path});
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(say(*store, "s", {test::abort_of("t", std::to_string(i))}).ok());
  }
  while (heard == 0) std::this_thread::yield();
  tracker.on_abort(nullptr);
  EXPECT_FALSE(*running) << "it had come to its end";
  const int then = heard;
  ASSERT_TRUE(say(*store, "s", {test::abort_of("t", "late")}).ok());
  while (tracker.directive().aborts.size() < 6) std::this_thread::yield();
  EXPECT_EQ(heard, then);
  ASSERT_TRUE(tracker.flush().ok());
  const auto events = stored();
  EXPECT_TRUE(std::any_of(events.begin(), events.end(), [](const Event& event) {
    return event.report.name == turn_reports::turn_abort;
  }));
}

TEST_F(Tracking, sidecar_beats_by_itself_while_the_agent_is_busy) {
  auto chosen = config();
  chosen.sidecar = true;
  chosen.spec.policy.heartbeat_interval = 100ms;
  ProgressTracker tracker(chosen);
  tracker.state_change("step");
  while (tracker.judged().history.heartbeats < 3) std::this_thread::yield();
  EXPECT_EQ(tracker.judged().history.loop_beats_since_change, 0);
  EXPECT_EQ(tracker.judged().health.kind, HealthKind::progressing);
  ASSERT_TRUE(tracker.complete().ok());
}

TEST_F(Tracking, tracker_that_has_nothing_to_do_does_nothing) {
  for (const bool ended : {false, true}) {
    auto chosen = config(ended ? "ended" : "running");
    chosen.sidecar = ended;
    chosen.spec.policy.heartbeat_interval = 100ms;
    ProgressTracker tracker(chosen);
    tracker.report(test::turn(turn_reports::turn_start, "t"));
    ASSERT_TRUE((ended ? tracker.complete() : tracker.flush()).ok());
    const auto before = std::clock();
    std::mutex mutex;
    std::condition_variable never;
    std::unique_lock guard(mutex);
    never.wait_for(guard, 400ms, [] { return false; });
    EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 10) << (ended ? "ended" : "running");
  }
}

TEST_F(Tracking, store_that_cannot_be_opened_stops_nothing_and_is_mentioned_once) {
  std::ofstream(path) << std::string(5'000, 'x');
  ProgressTracker tracker(config());
  for (int i = 0; i < 1'000; ++i) {
    tracker.heartbeat({.iteration = i});
    tracker.state_change("step");
  }
  EXPECT_NE(log.wait_for(1).find("w.db"), std::string::npos);
  EXPECT_EQ(tracker.judged().history.state_changes, 1'000);
  const auto refused = tracker.flush();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  // Once it can be opened, everything is there.
  std::filesystem::remove(path);
  EXPECT_NE(log.wait_for(2).find("again"), std::string::npos);
  ASSERT_TRUE(tracker.complete().ok());
  EXPECT_EQ(stored().size(), 2'002U);
  EXPECT_EQ(log.sentences.size(), 2U);
}

TEST_F(Tracking, log_that_throws_stops_nothing) {
  std::ofstream(path) << std::string(5'000, 'x');
  auto made = config();
  made.log = [this](const std::string& sentence) {
    log(sentence);
    throw std::runtime_error("the log has no room");
  };
  ProgressTracker tracker(std::move(made));
  tracker.state_change("step");
  EXPECT_NE(log.wait_for(1).find("w.db"), std::string::npos);
  EXPECT_FALSE(tracker.flush().ok());
  std::filesystem::remove(path);
  ASSERT_TRUE(tracker.complete().ok());
  EXPECT_EQ(stored().size(), 3U);
}

TEST_F(Tracking, replaced_listener_has_come_to_its_end) {
  ProgressTracker tracker(config());
  std::atomic<bool> began = false, asks = false, may_end = false, ended = false, left = false;
  tracker.listen([&](const Report&) {
    began = true;
    while (!may_end) std::this_thread::yield();
    ended = true;
  });
  std::thread agent([&] { tracker.state_change("step"); });
  while (!began) std::this_thread::yield();
  std::thread owner([&] {
    asks = true;
    tracker.listen(nullptr);
    EXPECT_TRUE(ended);
    left = true;
  });
  while (!asks) std::this_thread::yield();
  for (int i = 0; i < 1'000; ++i)
    std::this_thread::yield();  // enough for an owner that does not wait
  EXPECT_FALSE(left);
  may_end = true;
  agent.join();
  owner.join();
}

TEST_F(Tracking, session_that_no_store_would_take_is_refused_at_once_and_stops_nothing) {
  const auto with = [&](std::string session, SessionSpec spec) {
    auto made = config(std::move(session));
    made.spec = std::move(spec);
    made.sidecar = true;
    made.refusal_max = 24h;  // a tracker that waits for the store exceeds the test's time
    return made;
  };
  PolicyPatch no_tool;
  no_tool.tools[""] = {};
  std::map<std::string, std::string> many;
  for (std::size_t count = 0; count <= labels_max; ++count) many[std::to_string(count)] = "x";
  const std::vector<std::pair<std::string, ProgressTracker::Config>> table{
      {"sessionId", with("two words", {})},
      {"sessionId", with("../../etc", {})},
      {"sessionId", with("s\n", {})},
      {"sessionId", with("sitzung-ü", {})},
      {"sessionId", with(std::string(129, 'a'), {})},
      {"parentSessionId", with("s", {.parent = "my parent"})},
      {"agent", with("s", {.agent = std::string(1'000, 'a')})},
      {"task", with("s", {.task = std::string(task_bytes_max + 1, 'a')})},
      {"labels", with("s", {.labels = {{"", "x"}}})},
      {"labels", with("s", {.labels = many})},
      {"stuckThreshold", with("s", {.policy = {.stuck_threshold = 1}})},
      {"heartbeatInterval", with("s", {.policy = {.heartbeat_interval = 0ms}})},
      {"heartbeatInterval", with("s", {.policy = {.heartbeat_interval = -1ms}})},
      {"silenceIntervals", with("s", {.policy = {.silence_intervals = 0}})},
      {"tools", with("s", {.policy = no_tool})}};
  std::size_t said = 0;
  for (const auto& [field, bad] : table) {
    SCOPED_TRACE(field + " of " + bad.session);
    const auto allowed = check(bad);
    ASSERT_FALSE(allowed.ok());
    EXPECT_EQ(allowed.error().code, ErrorCode::invalid);
    EXPECT_NE(allowed.error().field.find(field), std::string::npos) << allowed.error().field;
    ProgressTracker tracker(bad);
    EXPECT_NE(log.wait_for(++said).find(allowed.error().message), std::string::npos);
    for (int i = 0; i < 4; ++i) tracker.heartbeat({.iteration = i});
    tracker.state_change("step");
    EXPECT_EQ(tracker.judged().history.state_changes, 1) << "the agent still knows how it is doing";
    for (const auto& refused : {tracker.flush(), tracker.complete()}) {
      ASSERT_FALSE(refused.ok());
      EXPECT_EQ(refused.error().code, ErrorCode::invalid);
      EXPECT_EQ(refused.error().message, allowed.error().message);
    }
    EXPECT_EQ(tracker.complete().error().code, ErrorCode::conflict);
  }
  EXPECT_EQ(log.sentences.size(), table.size());
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(check(config()).ok());
}

TEST_F(Tracking, store_that_vanishes_is_created_again) {
  ProgressTracker tracker(config());
  tracker.state_change("one");
  ASSERT_TRUE(tracker.flush().ok());
  for (const char* suffix : {"", "-wal", "-shm", "-writer"})
    std::filesystem::remove(path.string() + suffix);
  tracker.state_change("two");
  ASSERT_TRUE(tracker.complete().ok());
  const auto events = stored();
  ASSERT_GE(events.size(), 3U);
  EXPECT_EQ(events[1].report.name, "two");
}

TEST_F(Tracking, log_that_vanishes_loses_and_repeats_nothing) {
  ProgressTracker tracker(config());
  for (int i = 0; i < 40; ++i) tracker.state_change("n" + std::to_string(i));
  ASSERT_TRUE(tracker.flush().ok());
  std::filesystem::remove(path.string() + "-wal");
  tracker.state_change("last");
  ASSERT_TRUE(tracker.flush().ok());
  std::vector<std::string> changes;
  int starts = 0;
  for (const auto& event : stored()) {
    if (event.report.kind == ReportKind::state_change) changes.push_back(event.report.name);
    if (event.report.kind == ReportKind::start) ++starts;
  }
  ASSERT_EQ(changes.size(), 41U);
  for (std::size_t i = 0; i < 40; ++i) EXPECT_EQ(changes[i], "n" + std::to_string(i));
  EXPECT_EQ(starts, 1);
  ASSERT_TRUE(tracker.complete().ok());
}

TEST_F(Tracking, next_tracker_of_a_session_continues_its_history) {
  {
    ProgressTracker tracker(config());
    for (int i = 0; i < 5; ++i) tracker.state_change("step");
    ASSERT_TRUE(tracker.flush().ok());
  }
  ProgressTracker tracker(config());
  tracker.state_change("step");
  ASSERT_TRUE(tracker.flush().ok());
  EXPECT_EQ(tracker.judged().history.state_changes, 6);
  ASSERT_TRUE(tracker.complete().ok());
  ProgressTracker again(config());
  ASSERT_TRUE(again.flush().ok());
  EXPECT_EQ(again.judged().history.attempt, 2);
}

TEST_F(Tracking, forked_child_reports_nothing_and_harms_nothing) {
  ProgressTracker tracker(config());
  tracker.state_change("parent");
  ASSERT_TRUE(tracker.flush().ok());
  for (int round = 0; round < 5; ++round) {
    tracker.state_change("before");
    const pid_t child = fork();
    if (child == 0) {
      tracker.heartbeat({});
      tracker.state_change("child");
      const bool calm = tracker.complete().ok() && tracker.flush().ok();
#ifndef WATCHDOG_SANITIZE_THREAD  // which cannot follow a thread made after a fork
      {
        auto mine = config("child" + std::to_string(round));
        mine.log = [](const std::string&) {};
        ProgressTracker own(mine);
        own.state_change("child");
        if (own.complete().ok()) _exit(2);  // refused: SQLite does not survive a fork
      }
#endif
      tracker.~ProgressTracker();
      _exit(calm ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  }
  ASSERT_TRUE(tracker.complete().ok());
  EXPECT_EQ(stored().size(), 8U);
  for (const auto& event : stored()) EXPECT_NE(event.report.name, "child");
}

TEST_F(Tracking, many_threads_report_and_nothing_is_lost) {
  ProgressTracker tracker(config());
  std::vector<std::jthread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        tracker.heartbeat({.iteration = i});
        tracker.state_change("step");
        if (i % 100 == 0) (void)tracker.progress();
      }
    });
  }
  threads.clear();
  ASSERT_TRUE(tracker.complete().ok());
  auto reader = StoreReader::open(path);
  const auto judged = reader->fold(*reader->session("s"));
  EXPECT_EQ(judged->history.state_changes, 4'000);
  EXPECT_EQ(judged->history.heartbeats, 4'000);
}

TEST_F(Tracking, content_of_a_long_queue_is_reduced_and_ends_are_never_dropped) {
  std::filesystem::create_directory(path);  // a directory cannot be opened
  {
    ProgressTracker tracker(config());
    for (int i = 0; i < 100; ++i) tracker.state_change("big", std::string(1'000'000, 'x'));
    for (int i = 0; i < 101'000; ++i) tracker.state_change("small");
    EXPECT_EQ(tracker.complete().error().code, ErrorCode::unavailable);
    std::filesystem::remove(path);
    // A flush waits for some seconds, and a sanitizer on a busy machine needs more for all of it.
    auto flushed = tracker.flush();
    for (int again = 0; !flushed && again < 20; ++again) flushed = tracker.flush();
    ASSERT_TRUE(flushed.ok()) << flushed.error().message;
  }
  auto reader = StoreReader::open(path);
  const auto row = reader->session("s");
  EXPECT_EQ(row->lifecycle, Lifecycle::completed);
  const auto events = all_events(*reader, "s", 1'000);
  std::int64_t changes = 0;
  std::int64_t lost = 0;
  for (const auto& event : events) {
    EXPECT_FALSE(event.late);
    if (event.report.kind == ReportKind::state_change) ++changes;
    if (const auto* gap = std::get_if<LostReports>(&event.report.detail)) lost += gap->count;
  }
  EXPECT_GT(lost, 0);
  EXPECT_EQ(changes + lost, 101'100);
}

TEST_F(Tracking, answer_that_repeats_itself_is_heard_while_it_comes) {
  ProgressTracker tracker(config());
  for (int piece = 0; piece < 40; ++piece) tracker.stream("I will now look at it. ");
  EXPECT_EQ(name_of(tracker.judged().health.kind), "looping");
  std::string whole;
  for (int piece = 0; piece < 40; ++piece) whole += "I will now look at it. ";
  const auto heard = tracker.judged().history.repetition->messages.text_repeats.count;
  tracker.message("assistant", whole);
  EXPECT_EQ(tracker.judged().history.repetition->messages.text_repeats.count, heard) << "not twice";
  ASSERT_TRUE(tracker.flush().ok());
  const auto events = stored();
  EXPECT_TRUE(std::any_of(events.begin(), events.end(), [](const Event& event) {
    return event.report.kind == ReportKind::text_repetition &&
           event.report.content.find("I will now") != std::string::npos;
  }));
}

TEST_F(Tracking, answer_that_is_requested_again_starts_from_nothing) {
  ProgressTracker tracker(config());
  for (int time = 0; time < 30; ++time) {
    tracker.stream("I will now look at it. I will now look at it. ");
    tracker.retry();
  }
  EXPECT_EQ(name_of(tracker.judged().health.kind), "starting");
}

TEST_F(Tracking, announced_quiet_is_stored_and_widens_what_is_slow) {
  ProgressTracker tracker(config());
  tracker.state_change("plan", "{\"n\":1}");
  tracker.heartbeat({.iteration = 1, .phase = "reflection", .expect_quiet = 30min});
  ASSERT_TRUE(tracker.flush().ok());
  const auto judged = tracker.judged();
  EXPECT_GE(pace_now(judged.history, *judged.policy).slow_at, judged.history.tick + 29min);
  const auto events = stored();
  EXPECT_EQ(events.back().report.expect_quiet, 30min);
}

TEST_F(Tracking, wait_with_a_known_end_is_stored_and_shown_until_the_agent_goes_on) {
  constexpr WallTime nine{std::chrono::seconds(1'795'813'200)};
  ProgressTracker tracker(config());
  tracker.state_change("plan");
  tracker.wait_for("quota", "resets at nine", nine);
  auto judged = tracker.judged();
  EXPECT_EQ(judged.health.kind, HealthKind::blocked);
  EXPECT_EQ(judged.history.notes->wait_until, nine);
  EXPECT_EQ(reason_of(judged.health, judged.history, {}),
            "Waits for quota until 2026-11-27 21:00 UTC");
  tracker.wait_for("approval");
  EXPECT_FALSE(tracker.judged().history.notes->wait_until) << "the next wait has no known end";
  tracker.wait_for("quota", {}, nine);
  tracker.state_change("step");
  judged = tracker.judged();
  EXPECT_EQ(judged.health.kind, HealthKind::progressing);
  EXPECT_FALSE(judged.history.notes->wait_until);
  ASSERT_TRUE(tracker.flush().ok());
  std::vector<std::optional<WallTime>> ends;
  for (const auto& event : stored())
    if (event.report.kind == ReportKind::wait) ends.push_back(event.report.until);
  EXPECT_EQ(ends, (std::vector<std::optional<WallTime>>{nine, std::nullopt, nine}));
}

TEST_F(Tracking, loop_of_calls_is_known_to_the_agent_itself_without_a_monitor) {
  ProgressTracker tracker(config());
  for (int time = 0; time < 5; ++time) {
    tracker.tool_call("read", "{\"path\":\"a\"}");
    tracker.tool_result("read", "the same");
  }
  EXPECT_EQ(name_of(tracker.judged().health.kind), "looping");
  ASSERT_TRUE(tracker.flush().ok());
  auto reader = StoreReader::open(path);
  const auto row = reader->session("s");
  EXPECT_EQ(reader->fold(*row)->health.kind, HealthKind::looping)
      << "and to whoever reads the file";
}

}  // namespace
}  // namespace watchdog
