#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "observer/observer.h"
#include "store/event_reader.h"
#include "store/transition_reader.h"
#include "support/manual_clock.h"
#include "support/reports.h"
#include "support/scenario.h"
#include "support/temp_dir.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;
using test::beat;
using test::change;
using test::ManualClock;
using test::say;
using test::TempDir;

/// A monitor that gets reports from others, as the store thread of the real one does: it arrives,
/// stores what came in, and looks.
class LateObserver : public testing::Test {
 protected:
  struct Agent {
    std::string id;
    Millis interval{};
    Millis next{};
    bool alive = true;
  };

  TempDir dir;
  ManualClock clock;
  Result<Store> store = Store::open({.database = dir / "w.db", .clock = &clock});
  std::unique_ptr<Observer> observer = std::move(*Observer::start(*store, {}));
  std::vector<Agent> agents;
  std::vector<Batch> inbox;
  Millis due{};          ///< When the observer must look again.
  Millis commit_time{};  ///< The time to store a batch.

  void add_agents(int count, Millis interval) {
    for (int at = 0; at < count; ++at) {
      agents.push_back(
          {"s" + std::to_string(at), interval, clock.since_boot() + at * interval / count});
      SessionSpec spec;
      spec.policy.heartbeat_interval = interval;
      ASSERT_TRUE(say(*store, agents.back().id, {change()}, Creation::demand, spec).ok());
    }
    turn();
  }

  /// Lets the agents beat until that moment. If the monitor is not on time, their heartbeats wait
  /// for its next turn.
  void agents_live(Millis until) {
    while (true) {
      auto next = std::min_element(agents.begin(), agents.end(), [](auto& a, auto& b) {
        return std::pair(!a.alive, a.next) < std::pair(!b.alive, b.next);
      });
      if (next == agents.end() || !next->alive || next->next > until) break;
      clock.advance(std::max(next->next - clock.since_boot(), 0ms));
      inbox.push_back({.session = next->id, .reports = {beat(Source::sidecar)}});
      next->next += next->interval;
      if (on_time) turn();
    }
    clock.advance(std::max(until - clock.since_boot(), 0ms));
  }

  void turn() {
    ASSERT_TRUE(observer->arrive().ok());
    if (!inbox.empty()) {
      ASSERT_TRUE(store->append(inbox).ok());
      inbox.clear();
      clock.advance(commit_time);
    }
    const auto next = observer->look();
    ASSERT_TRUE(next.ok());
    const auto left = *next == never ? 1'000ms : std::clamp(*next - store->now(), 0ms, 1'000ms);
    due = clock.since_boot() + left;
  }

  /// The monitor's usual round: it looks whenever something comes in or is due.
  void pass(Millis time) {
    on_time = true;
    for (const auto end = clock.since_boot() + time; clock.since_boot() < end;) {
      agents_live(std::min(end, due));
      turn();
    }
  }

  /// The monitor stands still while its agents do not.
  void stall(Millis time) {
    on_time = false;
    agents_live(clock.since_boot() + time);
  }

  int silent() {
    int count = 0;
    for (const auto& agent : agents) {
      const auto changes =
          TransitionReader(store->reader()).of(store->reader().session(agent.id)->key, 0, 1'000);
      count +=
          static_cast<int>(std::count_if(changes->begin(), changes->end(), [](const auto& row) {
            return row.transition.health.kind == HealthKind::silent;
          }));
    }
    return count;
  }

  bool on_time = true;
};

TEST_F(LateObserver, calls_nobody_silent_whom_it_could_not_hear) {
  std::mt19937 random(test::random_seed());
  const Millis intervals[] = {500ms, 1'000ms, 2'000ms, 10'000ms};
  const int rounds = test::repetitions(300);
  // A delay below 100 ms, or below a quarter of the session's quiet, is not noticed: an observer
  // that is always a little late must find silence too. Intervals below 500 ms are that close to
  // it.
  int mistaken = 0;
  for (int round = 0; round < rounds; ++round) {
    agents.clear();
    inbox.clear();
    observer.reset();
    store = Store::open({.database = ":memory:", .clock = &clock});
    observer = std::move(*Observer::start(*store, {}));
    const auto interval = intervals[random() % std::size(intervals)];
    add_agents(8, interval);
    pass(interval * (4 + random() % 8) + Millis{random() % 1'000});
    for (int stalls = 1 + static_cast<int>(random() % 3); stalls > 0; --stalls) {
      stall(Millis{random() % 8'000});
      if (random() % 2 == 0) {  // the store thread wakes before the one that reads the sockets
        auto later = std::exchange(inbox, {});
        turn();
        inbox = std::move(later);
      }
      turn();
      pass(interval * (random() % 4));
    }
    const int before = silent();
    mistaken += before > 0 ? 1 : 0;
    // The observer still finds the agent that really stops, and no other agent.
    agents[0].alive = false;
    stall(Millis{random() % 4'000});
    pass(interval * 8 + 10'000ms);
    ASSERT_EQ(silent(), before + 1) << "seed " << test::random_seed() << " round " << round;
  }
  EXPECT_LE(mistaken, std::max(1, rounds / 100)) << "seed " << test::random_seed();
}

TEST_F(LateObserver, slow_disk_is_its_own_lag) {
  add_agents(8, 500ms);
  pass(5s);
  commit_time = 3s;
  for (int slow = 0; slow < 10; ++slow) {
    turn();
    stall(0ms);
  }
  agents_live(clock.since_boot());
  turn();
  EXPECT_EQ(silent(), 0);
}

TEST_F(LateObserver, restart_in_some_seconds_accuses_nobody) {
  add_agents(8, 500ms);
  pass(5s);
  observer.reset();
  stall(4s);
  observer = std::move(*Observer::start(*store, {}));
  turn();
  pass(2s);
  EXPECT_EQ(silent(), 0);
}

TEST_F(LateObserver, delay_that_hides_nothing_is_not_an_event) {
  add_agents(8, 10s);
  pass(60s);
  agents[0].alive = false;
  pass(30s);
  const auto before = EventReader(store->reader()).newest()->first;
  stall(2s);  // of a quiet time of 40 s
  for (int looks = 0; looks < 20; ++looks) {
    stall(1'400ms);
    turn();
  }
  EXPECT_EQ(silent(), 1);
  const auto events = EventReader(store->reader()).after(before, 1'000);
  EXPECT_TRUE(std::none_of(events->begin(), events->end(),
                           [](const Event& event) { return event.session == observer_key; }));
}

// While nothing can be stored nothing is heard.
TEST_F(LateObserver, failed_turns_are_an_absence) {
  add_agents(4, 500ms);
  pass(5s);
  stall(4s);
  ASSERT_TRUE(observer->arrive().ok());  // and what came in could not be stored
  stall(500ms);
  turn();
  EXPECT_EQ(silent(), 0);
  pass(5s);
  EXPECT_EQ(silent(), 0);
}

}  // namespace
}  // namespace watchdog
