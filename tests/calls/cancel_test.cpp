// Calling off: turns, single calls, what they started, and what is said of it.

#include <gtest/gtest.h>

#include <atomic>

#include "support/tool_bench.h"
#include "watchdog/executor.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;
using test::as;
using test::eventually;
using test::Latch;
using test::said;
using test::ToolBench;
using Kind = ToolEvent::Kind;

/// A tool that waits until somebody requests its stop.
ToolReply obedient(ToolContext& now) {
  const Latch latch;
  now.partial("half");
  now.heartbeat("in there");
  return {.ok = latch.wait(now.stop()), .text = "stopped"};
}

/// How many calls wait in `obedient`. The start of a call is reported before its tool runs: only
/// the tool's note shows that it runs.
int obedient_in(ToolBench& bench) {
  int count = 0;
  for (const auto& turn : bench.turns().active()) {
    for (const auto& call : turn.running) count += call.note == "in there" ? 1 : 0;
  }
  return count;
}

TEST(Cancel, aborting_a_turn_stops_what_runs_and_starts_nothing_more) {
  ToolBench bench;
  bench.add({.name = "run", .effect = Effect::local_write}, obedient);
  auto turn = bench.turn();
  auto batch = std::async(std::launch::async, [&] { return bench.calls(turn, {"run", "run"}); });
  ASSERT_TRUE(eventually([&] { return obedient_in(bench) == 1; }));
  EXPECT_EQ(bench.turns().abort(turn.id(), {.origin = CancelOrigin::user}), AbortResult::aborted);
  EXPECT_FALSE(turn.accepting_writes());
  const auto reports = batch.get();
  ASSERT_EQ(reports.size(), 2U);
  const auto& first = as<ToolCancelled>(reports[0]);
  EXPECT_TRUE(first.started);
  EXPECT_FALSE(first.still_running);
  EXPECT_EQ(first.partial.text, "half");
  EXPECT_EQ(first.why.origin, CancelOrigin::parent);
  EXPECT_EQ(first.why.scope, CancelScopeKind::turn);
  EXPECT_FALSE(as<ToolCancelled>(reports[1]).started);
  EXPECT_NE(render_for_model(reports[0]).find("was interrupted after"), std::string::npos);
  EXPECT_NE(render_for_model(reports[1]).find("was not started"), std::string::npos);
  EXPECT_EQ(bench.count(Kind::start), 1);
}

TEST(Cancel, a_turn_that_is_not_there_is_not_found) {
  ToolBench bench;
  EXPECT_EQ(bench.turns().abort("01ARZ3NDEKTSV4RRFFQ69G5FAV", {}), AbortResult::not_found);
  std::string id;
  {
    const auto turn = bench.turn();
    id = turn.id();
    EXPECT_EQ(bench.turns().abort_call(id, "1", {}), AbortResult::not_found);
    EXPECT_TRUE(bench.turns().find(id));
  }
  EXPECT_EQ(bench.turns().abort(id, {}), AbortResult::not_found);
  EXPECT_FALSE(bench.turns().find(id));
}

TEST(Cancel, twice_is_once_and_the_first_reason_stays) {
  ToolBench bench;
  auto turn = bench.turn();
  EXPECT_EQ(bench.turns().abort(turn.id(), {.origin = CancelOrigin::user, .text = "first"}),
            AbortResult::aborted);
  EXPECT_EQ(bench.turns().abort(turn.id(), {.origin = CancelOrigin::watchdog}),
            AbortResult::already_aborting);
  EXPECT_EQ(turn.scope().reason()->text, "first");
  EXPECT_TRUE(bench.turns().active()[0].aborting);
}

TEST(Cancel, of_one_call_leaves_the_others_and_the_turn) {
  ToolBench bench;
  const Latch latch;
  bench.add({.name = "hang"}, obedient);
  bench.add({.name = "work"}, [latch](ToolContext&) {
    latch.wait();
    return said("x");
  });
  auto turn = bench.turn();
  auto batch = std::async(std::launch::async, [&] {
    return bench.calls(turn, {"hang", "work", "hang"});
  });
  latch.await();
  ASSERT_TRUE(eventually([&] { return obedient_in(bench) == 2; }));
  EXPECT_EQ(bench.turns().abort_call(turn.id(), "0", {.origin = CancelOrigin::api}),
            AbortResult::aborted);
  ASSERT_TRUE(eventually([&] { return bench.count(Kind::result) == 1; }));
  EXPECT_EQ(bench.turns().abort_call(turn.id(), "0", {}), AbortResult::not_found);
  EXPECT_EQ(bench.turns().abort_call(turn.id(), "2", {.origin = CancelOrigin::api}),
            AbortResult::aborted);
  latch.open();
  const auto reports = batch.get();
  EXPECT_EQ(as<ToolCancelled>(reports[0]).why.scope, CancelScopeKind::call);
  EXPECT_EQ(as<ToolExecutionResult>(reports[1]).output.text, "x");
  EXPECT_EQ(as<ToolCancelled>(reports[2]).why.origin, CancelOrigin::api);
  EXPECT_TRUE(turn.accepting_writes());
}

TEST(Cancel, of_a_tool_that_ignores_it_takes_the_grace_and_leaves_the_thread_behind) {
  ToolBench bench;
  const Latch latch;
  bench.add({.name = "deaf"}, [latch](ToolContext&) {
    latch.wait();
    return said("late");
  });
  auto turn = bench.turn();
  auto running = bench.begin(turn, "deaf");
  latch.await();
  const auto begin = std::chrono::steady_clock::now();
  bench.turns().abort(turn.id(), {.origin = CancelOrigin::user});
  const auto report = running.get();
  const auto took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(took, 2s - 100ms);
  EXPECT_LT(took, 12s) << "2.25 s, on a busy machine";
  EXPECT_TRUE(as<ToolCancelled>(report).still_running);
  EXPECT_EQ(bench.executor().leaks().abandoned, 1U);
  latch.open();
  EXPECT_TRUE(eventually([&] { return bench.executor().leaks().reclaimed_total == 1; }));
}

TEST(Cancel, a_call_reported_as_not_started_did_not_run) {
  const auto rounds = 2'000;
  std::atomic<int> invoked{0};
  std::atomic<int> reported_started{0};
  ToolBench bench;
  bench.add({.name = "t"}, [&](ToolContext&) {
    ++invoked;
    return said("x");
  });
  for (int round = 0; round < rounds; ++round) {
    auto turn = bench.turn();
    std::thread canceller([&] { turn.scope().cancel({}); });
    const auto report = bench.executor().execute(turn, {"1", "t", "{}"});
    const auto* cancelled = std::get_if<ToolCancelled>(&report.outcome);
    if (cancelled == nullptr || cancelled->started) ++reported_started;
    canceller.join();
  }
  EXPECT_EQ(invoked, reported_started) << "no handler ran whose call was reported as not started";
}

TEST(Cancel, reaches_child_turns_and_what_they_run) {
  ToolBench bench;
  const auto inner_outcome = std::make_shared<std::promise<std::string>>();
  bench.add({.name = "inner"}, obedient);
  bench.add({.name = "agent"}, [&](ToolContext& now) {
    const auto scope = now.child_scope();
    auto child = bench.turns().begin_in(scope, {.agent = "child"}, now.turn());
    const auto report = bench.executor().execute(*child, {"i", "inner", "{}"});
    inner_outcome->set_value(std::string(name_of(report.outcome)));
    return said("the child says: " + render_for_model(report));
  });
  auto turn = bench.turn();
  auto running = bench.begin(turn, "agent");
  ASSERT_TRUE(eventually([&] { return obedient_in(bench) == 1; }));
  const auto active = bench.turns().active();
  ASSERT_EQ(active.size(), 2U);
  EXPECT_EQ(active[1].parent, active[0].id);
  EXPECT_EQ(active[1].depth, 1);
  bench.turns().abort(turn.id(), {.origin = CancelOrigin::user, .text = "enough"});
  EXPECT_EQ(inner_outcome->get_future().get(), "cancelled");
  EXPECT_TRUE(std::holds_alternative<ToolCancelled>(running.get().outcome));
  const auto events = bench.turn_events();
  EXPECT_EQ(std::count_if(events.begin(), events.end(),
                          [](const TurnEvent& event) {
                            return event.kind == TurnEvent::Kind::abort && event.reason == "user";
                          }),
            2)
      << "both turns say so";
}

TEST(Cancel, a_childs_failure_is_the_parents_to_judge) {
  ToolBench bench;
  bench.add({.name = "broken"}, [](ToolContext&) -> ToolReply { throw 1; });
  bench.add({.name = "agent"}, [&](ToolContext& now) {
    auto child = bench.turns().begin_in(now.child_scope(), {}, now.turn());
    child->scope().cancel({.origin = CancelOrigin::user});
    const auto report = bench.executor().execute(*child, {"i", "broken", "{}"});
    return said(std::string(name_of(report.outcome)));
  });
  bench.add({.name = "other"}, [](ToolContext&) { return said("x"); });
  auto turn = bench.turn();
  const auto reports = bench.calls(turn, {"agent", "other"});
  EXPECT_EQ(as<ToolExecutionResult>(reports[0]).output.text, "cancelled");
  EXPECT_EQ(as<ToolExecutionResult>(reports[1]).output.text, "x");
  EXPECT_TRUE(turn.accepting_writes());
}

TEST(Cancel, turns_nest_to_a_bound) {
  TurnRegistry turns;
  std::vector<Turn> nest;
  nest.push_back(std::move(*turns.begin({})));
  for (int depth = 1; depth <= turn_depth_max; ++depth) {
    auto next = turns.begin({}, &nest.back());
    ASSERT_TRUE(next.ok());
    nest.push_back(std::move(*next));
  }
  const auto deeper = turns.begin({}, &nest.back());
  ASSERT_FALSE(deeper.ok());
  EXPECT_EQ(deeper.error().code, ErrorCode::exhausted);
  nest.front().scope().cancel({});
  EXPECT_FALSE(nest.back().accepting_writes());
  EXPECT_EQ(turns.begin({}, &nest.front()).error().code, ErrorCode::cancelled);
}

TEST(Cancel, a_thousand_turns_leave_nothing_behind) {
  ToolBench bench;
  bench.add({.name = "t"}, [](ToolContext&) { return said("x"); });
  for (int at = 0; at < 1'000; ++at) {
    auto turn = bench.turn();
    (void)bench.executor().execute(turn, {"1", "t", "{}"});
    if (at % 3 == 0) bench.turns().abort(turn.id(), {});
  }
  EXPECT_TRUE(bench.turns().active().empty());
  const auto events = bench.turn_events();
  const auto count = [&](TurnEvent::Kind kind) {
    return std::count_if(events.begin(), events.end(),
                         [&](const TurnEvent& event) { return event.kind == kind; });
  };
  EXPECT_EQ(count(TurnEvent::Kind::start), 1'000);
  EXPECT_EQ(count(TurnEvent::Kind::abort), 334);
  EXPECT_EQ(count(TurnEvent::Kind::end), 1'000);
  EXPECT_EQ(bench.executor().leaks().abandoned_total, 0U);
}

TEST(Cancel, a_turn_whose_client_is_gone_is_aborted_after_a_grace) {
  ToolBench bench;
  bench.stop_the_clock();
  auto left = bench.turn();
  auto came_back = bench.turn();
  auto watched = bench.turn();
  auto detached = bench.turn({.on_disconnect = DisconnectPolicy::detach});
  auto at_once = bench.turn({.on_disconnect = DisconnectPolicy::abort_now});
  for (const auto* turn : {&left, &came_back, &detached, &at_once}) {
    bench.turns().client_connected(turn->id());
  }
  bench.turns().client_connected(watched.id());
  bench.turns().client_connected(watched.id());
  for (const auto* turn : {&left, &came_back, &watched, &detached, &at_once}) {
    bench.turns().client_disconnected(turn->id());
  }
  EXPECT_FALSE(at_once.accepting_writes());
  bench.advance(9'999ms);
  bench.turns().client_connected(came_back.id());
  EXPECT_TRUE(left.accepting_writes());
  EXPECT_TRUE(eventually([&] {
    bench.advance(1ms);
    return !left.accepting_writes();
  }));
  EXPECT_EQ(left.scope().reason()->origin, CancelOrigin::client_disconnect);
  bench.advance(1h);
  EXPECT_TRUE(came_back.accepting_writes());
  EXPECT_TRUE(watched.accepting_writes()) << "one of its clients is still there";
  EXPECT_TRUE(detached.accepting_writes());
  bench.turns().client_disconnected("no such turn");
  auto ownerless = bench.turn();
  bench.turns().client_disconnected(ownerless.id());
  bench.advance(1h);
  EXPECT_TRUE(ownerless.accepting_writes());
}

TEST(Cancel, everything_can_be_called_off_at_once) {
  ToolBench bench;
  auto one = bench.turn();
  auto two = bench.turn();
  EXPECT_EQ(bench.turns().abort_all({.origin = CancelOrigin::shutdown}), 2U);
  EXPECT_EQ(bench.turns().abort_all({.origin = CancelOrigin::shutdown}), 0U);
  EXPECT_FALSE(one.accepting_writes());
}

TEST(Turns, that_outlive_their_registry_report_nobody) {
  std::atomic<int> reported{0};
  std::optional<Turn> turn;
  {
    TurnRegistry turns({.observer = [&](const TurnEvent&) { ++reported; }});
    turn = std::move(*turns.begin({}));
    EXPECT_EQ(reported, 1);
  }
  turn->scope().cancel({});
  turn.reset();
  EXPECT_EQ(reported, 1) << "who would be told may be gone";
}

TEST(Turns, an_observer_of_turns_may_abort_and_throw) {
  TurnRegistry* known = nullptr;
  std::atomic<int> reported{0};
  TurnRegistry turns({.observer = [&](const TurnEvent& event) {
    ++reported;
    if (event.kind == TurnEvent::Kind::start) known->abort(event.turn, {});
    throw 1;
  }});
  known = &turns;
  { const auto turn = turns.begin({}); }
  EXPECT_EQ(reported, 3);
}

}  // namespace
}  // namespace watchdog
