#include <gtest/gtest.h>

#include <random>

#include "support/scenario.h"
#include "watchdog/wait.h"

namespace watchdog {
namespace {

using H = HealthKind;
using L = Lifecycle;

Awaited awaited(std::string_view text, OnStuck on_stuck = OnStuck::fail) {
  auto parsed = awaited_from(text);
  EXPECT_TRUE(parsed.ok()) << text;
  parsed->on_stuck = on_stuck;
  return *parsed;
}

Ruling after(const Awaited& what, const std::vector<SessionSample>& samples) {
  WaitMemory memory;
  for (const auto& finding : samples) see(memory, finding);
  return ruling(what, memory);
}

TEST(WaitRule, each_goal_is_met_by_what_it_names_and_by_nothing_else) {
  const struct {
    std::string_view goal;
    SessionSample now;
    Ruling expected;
  } table[] = {
      {"completed", {.lifecycle = L::running}, Ruling::go_on},
      {"completed", {.lifecycle = L::completed}, Ruling::met},
      {"completed", {.lifecycle = L::failed}, Ruling::ended},
      {"completed", {.lifecycle = L::incomplete}, Ruling::ended},
      {"completed", {.lifecycle = L::cancelled}, Ruling::ended},
      {"completed", {.lifecycle = L::waiting, .health = H::blocked}, Ruling::go_on},
      {"completed", {.lifecycle = L::idle}, Ruling::go_on},
      {"completed", {.health = H::suspect}, Ruling::go_on},
      {"completed", {.health = H::silent}, Ruling::go_on},
      {"completed", {.health = H::dead}, Ruling::dead},
      {"completed", {.gone = true}, Ruling::dead},
      {"completed", {.lifecycle = L::completed, .gone = true}, Ruling::met},
      {"completed", {.lifecycle = L::completed, .health = H::stuck}, Ruling::met},
      {"failed", {.lifecycle = L::failed}, Ruling::met},
      {"failed", {.lifecycle = L::completed}, Ruling::ended},
      {"cancelled", {.lifecycle = L::cancelled}, Ruling::met},
      {"incomplete", {.lifecycle = L::incomplete}, Ruling::met},
      {"end", {.lifecycle = L::failed}, Ruling::met},
      {"end", {.lifecycle = L::idle}, Ruling::go_on},
      {"health=stuck", {.health = H::stuck}, Ruling::met},
      {"health=stuck", {.health = H::looping}, Ruling::go_on},
      {"health=stuck", {.lifecycle = L::completed, .health = H::stuck}, Ruling::ended},
      {"health=dead", {.health = H::dead}, Ruling::met},
      {"state-change", {.holds = true}, Ruling::met},
      {"state-change", {.holds = false}, Ruling::go_on},
      {"state-change", {.lifecycle = L::completed, .holds = true}, Ruling::met},
      {"state-change", {.lifecycle = L::completed}, Ruling::ended},
  };
  for (const auto& row : table) {
    EXPECT_EQ(after(awaited(row.goal), {row.now}), row.expected)
        << row.goal << " " << name_of(row.now.lifecycle) << " " << name_of(row.now.health);
  }
}

TEST(WaitRule, a_stuck_session_fails_after_three_more_iterations) {
  const SessionSample begins{.health = H::stuck, .beats = 10};
  const auto later = [](std::int64_t beats, std::int64_t rounds = 0) {
    return SessionSample{.health = H::looping, .beats = beats, .rounds = rounds};
  };
  EXPECT_EQ(after(awaited("completed"), {begins, later(12)}), Ruling::go_on);
  EXPECT_EQ(after(awaited("completed"), {begins, later(13)}), Ruling::stuck);
  EXPECT_EQ(after(awaited("completed"), {begins, later(10, 2)}), Ruling::go_on);
  EXPECT_EQ(after(awaited("completed"), {begins, later(10, 3)}), Ruling::stuck);
  EXPECT_EQ(after(awaited("completed"), {begins, later(12, 2)}), Ruling::go_on)
      << "a heartbeat and a call of one iteration are one";
  EXPECT_EQ(after(awaited("completed", OnStuck::ask), {begins, later(13)}), Ruling::ask);
  EXPECT_EQ(after(awaited("completed", OnStuck::keep), {begins, later(1'000)}), Ruling::go_on);
}

TEST(WaitRule, a_verdict_that_is_taken_back_is_forgiven) {
  const SessionSample stuck{.health = H::stuck, .beats = 10};
  const SessionSample well{.health = H::progressing, .beats = 12};
  const SessionSample again{.health = H::stuck, .beats = 20};
  EXPECT_EQ(after(awaited("completed"), {stuck, well, {.health = H::stuck, .beats = 20}}),
            Ruling::go_on);
  EXPECT_EQ(after(awaited("completed"), {stuck, well, again, {.health = H::stuck, .beats = 23}}),
            Ruling::stuck);
  // Silence says nothing of what was concluded before it.
  EXPECT_EQ(after(awaited("completed"), {stuck, {.health = H::silent, .beats = 10}, again}),
            Ruling::stuck);
}

TEST(WaitRule, a_user_who_says_to_go_on_is_asked_again_after_three_more_iterations) {
  const auto what = awaited("completed", OnStuck::ask);
  WaitMemory memory;
  see(memory, {.health = H::stuck, .beats = 1});
  see(memory, {.health = H::stuck, .beats = 4});
  EXPECT_EQ(ruling(what, memory), Ruling::ask);
  forgive(memory);
  see(memory, {.health = H::stuck, .beats = 6});
  EXPECT_EQ(ruling(what, memory), Ruling::go_on);
  see(memory, {.health = H::stuck, .beats = 7});
  EXPECT_EQ(ruling(what, memory), Ruling::ask);
}

TEST(WaitRule, a_doubt_ends_the_wait_only_where_that_was_asked_for) {
  const SessionSample suspect{.health = H::suspect};
  const SessionSample quiet{.health = H::slow, .quiet = true};
  auto what = awaited("completed");
  EXPECT_EQ(after(what, {suspect}), Ruling::go_on);
  EXPECT_EQ(after(what, {quiet}), Ruling::go_on);
  what.on_suspect = OnDoubt::fail;
  EXPECT_EQ(after(what, {suspect}), Ruling::suspect);
  EXPECT_EQ(after(what, {suspect, {.health = H::progressing}}), Ruling::go_on) << "it is over";
  EXPECT_EQ(after(what, {quiet}), Ruling::go_on);
  what.on_quiet = OnDoubt::fail;
  EXPECT_EQ(after(what, {quiet}), Ruling::quiet);
  EXPECT_EQ(after(what, {{.lifecycle = L::completed, .quiet = true}}), Ruling::met);
}

TEST(WaitRule, an_agent_that_is_started_again_is_dead_only_by_its_health) {
  auto what = awaited("completed");
  what.restarts = true;
  EXPECT_EQ(after(what, {{.gone = true}}), Ruling::go_on);
  EXPECT_EQ(after(what, {{.health = H::dead, .gone = true}}), Ruling::dead);
}

TEST(WaitRule, goals_are_read_as_they_are_written) {
  for (const std::string text : {"completed", "failed", "incomplete", "cancelled", "end",
                                 "health=looping", "state-change", "state-change=file_read"}) {
    const auto parsed = awaited_from(text);
    ASSERT_TRUE(parsed.ok()) << text;
    EXPECT_EQ(text_of(*parsed), text);
  }
  for (const std::string text : {"", "done", "health", "health=", "health=fine",
                                 "state-change=", "outcome", "condition", "completed=1", "end=1"}) {
    EXPECT_FALSE(awaited_from(text).ok()) << text;
  }
}

TEST(WaitRule, whatever_is_seen_it_fails_only_for_a_reason_that_was_seen) {
  std::mt19937 random(test::random_seed());
  const auto below = [&](int bound) {
    return std::uniform_int_distribution<int>(0, bound - 1)(random);
  };
  for (int run = 0; run < test::repetitions(20'000); ++run) {
    Awaited what =
        awaited(below(2) == 0 ? "completed" : "state-change", static_cast<OnStuck>(below(3)));
    what.further_max = 1 + below(5);
    what.restarts = below(2) == 0;
    WaitMemory memory;
    SessionSample now;
    std::int64_t worse_since = -1;  // by a second, simpler book
    const int steps = 1 + below(20);
    for (int step = 0; step < steps; ++step) {
      now.health = static_cast<H>(below(10));
      now.beats += below(3);
      now.lifecycle = below(30) == 0 ? static_cast<L>(3 + below(4)) : static_cast<L>(below(3));
      now.holds = below(40) == 0;
      now.gone = below(40) == 0;
      see(memory, now);
      const bool trouble = now.health == H::stuck || now.health == H::looping;
      if (trouble && worse_since < 0) worse_since = now.beats;
      if (!trouble && now.health != H::silent) worse_since = -1;
      const bool lasted = worse_since >= 0 && now.beats - worse_since >= what.further_max;
      const bool dead = now.health == H::dead || (now.gone && !what.restarts);
      const bool met = what.goal == Goal::state_change ? now.holds : now.lifecycle == L::completed;
      switch (ruling(what, memory)) {
        case Ruling::met:
          EXPECT_TRUE(met);
          break;
        case Ruling::ended:
          EXPECT_TRUE(!met && is_end(now.lifecycle));
          break;
        case Ruling::dead:
          EXPECT_TRUE(!met && dead && !is_end(now.lifecycle));
          break;
        case Ruling::ask:
        case Ruling::stuck:
          EXPECT_TRUE(lasted && !met && !dead && !is_end(now.lifecycle));
          EXPECT_NE(what.on_stuck, OnStuck::keep);
          break;
        case Ruling::suspect:
        case Ruling::quiet:
          ADD_FAILURE() << "nobody asked for it";
          break;
        case Ruling::go_on:
          EXPECT_FALSE(met || dead || is_end(now.lifecycle));
          EXPECT_TRUE(!lasted || what.on_stuck == OnStuck::keep);
          break;
      }
    }
  }
}

TEST(WaitRule, trouble_that_began_before_the_wait_is_found_in_the_changes) {
  const auto changes = [](std::vector<H> healths) {
    std::vector<Transition> rows;
    for (const auto health : healths) {
      rows.push_back({.seq = static_cast<Seq>(rows.size() + 1)});
      rows.back().health.kind = health;
    }
    return stuck_since(rows);
  };
  EXPECT_EQ(changes({}), std::nullopt);
  EXPECT_EQ(changes({H::stuck, H::progressing}), std::nullopt);
  EXPECT_EQ(changes({H::stuck, H::progressing, H::looping, H::silent, H::stuck}), Seq{3});
}

TEST(WaitRule, one_false_alarm_in_a_hundred_makes_no_flaky_test) {
  // The agent makes progress, but one iteration of a hundred is wrongly called stuck. The next
  // novel event ends this verdict. Nine iterations of ten bring one.
  std::mt19937 random(test::random_seed());
  std::bernoulli_distribution alarm(0.01);
  std::bernoulli_distribution novel(0.9);
  int failed = 0;
  constexpr int tests = 500;
  for (int test = 0; test < tests; ++test) {
    WaitMemory memory;
    SessionSample now{.health = H::progressing};
    bool over = false;
    for (int iteration = 0; iteration < 50 && !over; ++iteration) {
      ++now.beats;
      if (novel(random)) now.health = H::progressing;
      if (alarm(random)) now.health = H::stuck;
      see(memory, now);
      over = ruling(awaited("completed"), memory) == Ruling::stuck;
    }
    failed += over ? 1 : 0;
  }
  EXPECT_LT(failed, 5) << "of " << tests << "; without the three further iterations some 200";
}

TEST(WaitRule, iterations_are_heartbeats_of_the_loop_and_rounds_of_calls) {
  const auto count = [](std::string_view letters) {
    IterationCount counted;
    for (const auto& event : test::events_of(letters)) counted.fold(event);
    return std::pair{counted.beats, counted.rounds};
  };
  EXPECT_EQ(count("hhSh"), std::pair(3L, 0L));
  EXPECT_EQ(count("hsss"), std::pair(1L, 0L)) << "a helper's heartbeats are none";
  EXPECT_EQ(count("crce"), std::pair(0L, 2L));
  EXPECT_EQ(count("cccrrr"), std::pair(0L, 1L)) << "calls at once are one round";
}

}  // namespace
}  // namespace watchdog
