// Slots remembered one by one, and what is concluded of a request only because they are.

#include "server/slot_history.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "server/server_evidence.h"

namespace watchdog {
namespace {

using S = ServerState;

constexpr Millis look_time{10'000};

SlotSample at_work(int id, std::int64_t task, std::int64_t read, std::int64_t written) {
  return {.id = id, .is_processing = true, .task = task, .prompt_read = read, .written = written};
}

TEST(SlotHistory, pace_is_of_one_phase_of_one_task) {
  SlotHistory slots;
  const auto add = [&](int look, std::vector<SlotSample> shown) {
    slots.add(shown, Instant{look * look_time}, look * look_time);
    return slots.working().front();
  };
  EXPECT_TRUE(add(0, {at_work(0, 1, 0, 0)}).is_new);
  EXPECT_EQ(add(3, {at_work(0, 1, 100, 0)}).gap, Millis{}) << "it may have begun at any time";
  EXPECT_EQ(add(8, {at_work(0, 1, 200, 0)}).gap, 5 * look_time);
  EXPECT_EQ(add(9, {at_work(0, 1, 200, 1)}).moves, 1) << "writing is another phase";
  const auto stands = add(10, {at_work(0, 1, 200, 1), at_work(1, 2, 0, 0)});
  EXPECT_EQ(stands.looks, 1);
  EXPECT_EQ(stands.looks_of_others, 0) << "a task that begins is no batch that ends";
  EXPECT_TRUE(slots.has_news());
  EXPECT_EQ(add(11, {at_work(0, 1, 200, 1), at_work(1, 2, 50, 0)}).looks_of_others, 1);
  EXPECT_TRUE(add(12, {at_work(0, 3, 200, 1)}).is_new) << "the same numbers of another task";
}

TEST(SlotHistory, idle_slots_show_the_past) {
  SlotHistory slots;
  slots.add({{.id = 0, .is_processing = false, .task = 4, .prompt_read = 9, .written = 9}},
            Instant{}, Millis{});
  EXPECT_TRUE(slots.has_free());
  EXPECT_TRUE(slots.working().empty());
}

/// A server and requests, looked at every ten seconds.
struct Looks {
  ServerWatch watch;
  ServerSample sample{.at = Instant{Millis{1'000'000}}, .slots = Asked::answered};
  std::map<RequestId, RequestSample> open{{1, {.since = sample.at}}};
  std::vector<ServerFinding> found;

  /// The states of the last request in the next `looks` looks, each once per change.
  std::vector<S> states(int looks, const std::function<void()>& with = {}) {
    std::vector<S> all;
    while (looks-- > 0) {
      sample.at += look_time;
      if (with) with();
      found = watch.look(sample, open);
      const S state = found.back().evidence.state;
      if (all.empty() || all.back() != state) all.push_back(state);
    }
    return all;
  }
  [[nodiscard]] bool was_hung(int looks, const std::function<void()>& with = {}) {
    const auto all = states(looks, with);
    return std::ranges::find(all, S::hung) != all.end();
  }
};

TEST(OneSlotAtATime, a_request_that_comes_while_a_batch_runs_is_not_swallowed) {
  Looks looks;
  looks.sample.slot = {at_work(0, 1, 0, 0), {.id = 1}};
  (void)looks.states(2);
  looks.open[2] = {.since = looks.sample.at};
  EXPECT_FALSE(looks.was_hung(500)) << looks.found.back().why;
  EXPECT_TRUE(looks.was_hung(100, [&] { *looks.sample.slot[0].prompt_read += 10; }))
      << "batches end, and it is given no slot";
}

TEST(OneSlotAtATime, a_first_batch_far_away_may_take_as_long_as_it_takes) {
  Looks looks;
  looks.sample.slot = {at_work(0, 1, 0, 0)};
  EXPECT_FALSE(looks.was_hung(1'000)) << looks.found.back().why;
  (void)looks.states(20, [&] { *looks.sample.slot[0].prompt_read += 10; });
  EXPECT_TRUE(looks.was_hung(1'000)) << "its pace is known";
}

TEST(OneSlotAtATime, a_prompt_may_have_to_wait_for_room_in_the_batches) {
  Looks looks;
  looks.open[2] = {.since = looks.sample.at + Millis{1}};
  looks.sample.slot = {at_work(0, 1, 0, 0), at_work(1, 2, 0, 0)};
  (void)looks.states(10, [&] {
    for (auto& slot : looks.sample.slot) *slot.prompt_read += 10;
  });
  EXPECT_FALSE(looks.was_hung(500, [&] {
    *looks.sample.slot[0].prompt_read += 20;
    looks.open[1].prompt_tokens = 100'000;
    looks.open[1].prompt_read += 20;
  })) << looks.found.back().why;
}

TEST(OneSlotAtATime, a_slot_that_stands_still_is_charged_to_nobody_if_it_may_be_anybodys) {
  Looks looks;
  looks.open[2] = {.since = looks.sample.at + Millis{1}};
  looks.open[3] = {.since = looks.sample.at + Millis{2}};
  looks.sample.cpu = Millis{};
  looks.sample.slot = {at_work(0, 1, 50, 5), at_work(1, 2, 50, 5), at_work(2, 3, 50, 5)};
  EXPECT_FALSE(looks.was_hung(500, [&] {
    *looks.sample.cpu += look_time;
    ++*looks.sample.slot[0].written;
  })) << looks.found.back().why;
}

TEST(OneSlotAtATime, a_piece_that_is_seen_together_with_a_restart_came_before_it) {
  Looks looks;
  looks.sample.started = 100;
  looks.sample.slot = {at_work(0, 1, 50, 5)};
  (void)looks.states(3, [&] { ++looks.open[1].pieces; });
  looks.sample.slot = {{.id = 0}};
  looks.sample.started = 200;
  ++looks.open[1].pieces;
  EXPECT_EQ(looks.states(50), (std::vector<S>{S::writing, S::restarted}));
}

TEST(OneSlotAtATime, a_long_gap_between_looks_says_nothing_of_the_process) {
  Looks looks;
  looks.sample.slots = Asked::waiting;
  looks.sample.cpu = Millis{};
  (void)looks.states(50, [&] { *looks.sample.cpu += look_time; });
  looks.sample.at += Millis{28'800'000};
  EXPECT_EQ(looks.states(3, [&] { *looks.sample.cpu += look_time; }), std::vector<S>{S::working});
}

}  // namespace
}  // namespace watchdog
