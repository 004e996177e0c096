#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

#include "watchdog/deadline.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;

bool wait_for(const std::function<bool()>& condition) {
  const auto until = std::chrono::steady_clock::now() + 30s;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST(CancelScope, goes_down_and_neither_up_nor_sideways) {
  auto run = CancelScope::root();
  auto turn = run.child(CancelScopeKind::turn);
  auto call = turn.child(CancelScopeKind::call);
  auto sibling = turn.child(CancelScopeKind::call);
  auto below = call.child(CancelScopeKind::turn);
  EXPECT_TRUE(call.cancel({.origin = CancelOrigin::api, .text = "not needed"}));
  EXPECT_TRUE(below.cancelled());
  EXPECT_FALSE(turn.cancelled());
  EXPECT_FALSE(run.cancelled());
  EXPECT_FALSE(sibling.cancelled());
  EXPECT_EQ(call.reason()->origin, CancelOrigin::api);
  EXPECT_EQ(call.reason()->scope, CancelScopeKind::call);
  EXPECT_EQ(below.reason()->origin, CancelOrigin::parent);
  EXPECT_EQ(below.reason()->scope, CancelScopeKind::call) << "where it was asked for";
  EXPECT_EQ(below.reason()->text, "the call above was called off by api: not needed");
  run.cancel({.origin = CancelOrigin::shutdown});
  EXPECT_TRUE(sibling.cancelled());
}

TEST(CancelScope, the_first_reason_stays) {
  auto scope = CancelScope::root();
  EXPECT_TRUE(scope.cancel({.origin = CancelOrigin::user, .text = "first"}));
  EXPECT_FALSE(scope.cancel({.origin = CancelOrigin::deadline, .text = "second"}));
  EXPECT_EQ(scope.reason()->text, "first");
}

TEST(CancelScope, late_children_and_callbacks_find_it_cancelled) {
  auto scope = CancelScope::root();
  scope.cancel({});
  EXPECT_TRUE(scope.child(CancelScopeKind::turn).cancelled());
  EXPECT_TRUE(scope.token().stop_requested());
  pollfd ready{scope.wait_fd(), POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 0), 1);
  std::atomic<int> reported{0};
  const auto guard = scope.on_cancel([&](const CancelReason&) { ++reported; });
  EXPECT_TRUE(wait_for([&] { return reported == 1; }));
}

TEST(CancelScope, token_descriptor_and_callback_all_hear_of_it) {
  auto scope = CancelScope::root();
  auto child = scope.child(CancelScopeKind::turn);
  const auto token = child.token();
  const int fd = child.wait_fd();
  std::atomic<int> reported{0};
  const auto guard = child.on_cancel([&](const CancelReason&) { ++reported; });
  const auto gone = [&] {
    auto taken_back = child.on_cancel([&](const CancelReason&) { reported += 100; });
  };
  gone();
  pollfd ready{fd, POLLIN, 0};
  EXPECT_EQ(poll(&ready, 1, 0), 0);
  scope.cancel({});
  EXPECT_TRUE(wait_for([&] { return token.stop_requested() && reported == 1; }));
  EXPECT_EQ(poll(&ready, 1, 10'000), 1);
}

TEST(CancelScope, callbacks_that_throw_or_block_hold_up_nobody) {
  auto scope = CancelScope::root();
  std::promise<void> let_go;
  const auto fence = let_go.get_future().share();
  std::vector<CancelScope::Guard> guards;
  std::vector<CancelScope> children;
  for (int at = 0; at < 4; ++at) {
    children.push_back(scope.child(CancelScopeKind::turn));
    guards.push_back(children.back().on_cancel([fence](const CancelReason&) { fence.wait(); }));
    guards.push_back(children.back().on_cancel([](const CancelReason&) { throw 42; }));
  }
  std::atomic<bool> reported{false};
  const auto last = scope.on_cancel([&](const CancelReason&) { reported = true; });
  scope.cancel({});
  EXPECT_TRUE(wait_for([&] { return reported.load(); }));
  let_go.set_value();
}

TEST(CancelScope, callbacks_that_block_hold_up_no_stop_token) {
  std::promise<void> let_go;
  const auto fence = let_go.get_future().share();
  std::vector<CancelScope::Guard> guards;
  std::vector<CancelScope> scopes;
  for (int at = 0; at < 40; ++at) {
    scopes.push_back(CancelScope::root());
    guards.push_back(scopes.back().on_cancel([fence](const CancelReason&) { fence.wait(); }));
    scopes.back().cancel({});
  }
  auto scope = CancelScope::root();
  const auto token = scope.token();
  scope.cancel({});
  EXPECT_TRUE(wait_for([&] { return token.stop_requested(); }));
  let_go.set_value();
}

// See github.com/facebookexperimental/libunifex, issue 670. A thread that destroys a callback waits
// for it, and the callback waits for a lock that this thread holds.
TEST(CancelScope, canceller_and_destroyer_may_hold_the_lock_that_a_callback_takes) {
  for (int round = 0; round < 300; ++round) {
    // A guard does not wait for a call under way: what the call uses is its own.
    const auto locked = std::make_shared<std::mutex>();
    auto& user = *locked;
    auto parent = CancelScope::root();
    std::thread canceller;
    {
      auto child = std::make_unique<CancelScope>(parent.child(CancelScopeKind::call));
      auto guard = child->on_cancel([](const CancelReason&) {});
      canceller = std::thread([&] {
        const std::lock_guard holds(user);
        parent.cancel({});
      });
      const std::lock_guard holds(user);
      guard = {};
      child.reset();
    }
    canceller.join();
    // A callback that takes the lock while its canceller holds it: another thread runs it.
    auto scope = CancelScope::root();
    const auto ran = std::make_shared<std::promise<void>>();
    auto done = ran->get_future();
    const auto locking = scope.on_cancel([locked, ran](const CancelReason&) {
      const std::lock_guard takes(*locked);
      ran->set_value();
    });
    {
      const std::lock_guard holds(user);
      scope.cancel({});
    }
    done.wait();
  }
}

TEST(CancelScope, trees_may_be_built_cancelled_and_torn_down_at_once) {
  for (int round = 0; round < 200; ++round) {
    auto root = CancelScope::root();
    std::thread builder([&] {
      for (int at = 0; at < 20; ++at) {
        auto child = root.child(CancelScopeKind::turn);
        auto below = child.child(CancelScopeKind::call);
        if (root.cancelled()) {
          EXPECT_TRUE(wait_for([&] { return below.cancelled(); }));
        }
      }
    });
    root.cancel({});
    builder.join();
  }
}

TEST(CancelScope, clean_up_goes_on_after_the_cancel_and_is_bounded_itself) {
  EXPECT_TRUE(CancelScope::shielded(
      30s, [](const std::stop_token& stop) { EXPECT_FALSE(stop.stop_requested()); }));
  const auto heard = std::make_shared<std::promise<void>>();
  auto cut = heard->get_future();
  EXPECT_FALSE(CancelScope::shielded(20ms, [heard](const std::stop_token& stop) {
    std::mutex mutex;
    std::condition_variable_any changed;
    std::unique_lock guard(mutex);
    changed.wait(guard, stop, [] { return false; });
    heard->set_value();
  }));
  EXPECT_EQ(cut.wait_for(30s), std::future_status::ready);
  EXPECT_TRUE(CancelScope::shielded(30s, [](const std::stop_token&) { throw 1; }));
}

TEST(CancelScope, whose_parent_is_a_passing_value_is_still_reached_from_above) {
  auto root = CancelScope::root();
  auto below = root.child(CancelScopeKind::call).child(CancelScopeKind::turn);
  root.cancel({.origin = CancelOrigin::user});
  EXPECT_TRUE(below.cancelled());
}

}  // namespace
}  // namespace watchdog
