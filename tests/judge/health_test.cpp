#include "watchdog/health.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

#include "support/agent.h"
#include "support/scenario.h"

namespace watchdog {
namespace {

using test::events_of;
using test::path_of;
using test::replay;
using namespace std::chrono_literals;

struct Expectation {
  const char* letters;
  HealthKind kind;
};

class HealthTable : public testing::TestWithParam<Expectation> {};

TEST_P(HealthTable, judges_by_what_was_said) {
  EXPECT_EQ(name_of(replay(GetParam().letters).judged.health.kind), name_of(GetParam().kind))
      << GetParam().letters;
}

INSTANTIATE_TEST_SUITE_P(
    Sessions, HealthTable,
    testing::Values(
        Expectation{"", HealthKind::unknown}, Expectation{"!", HealthKind::unknown},
        Expectation{"h", HealthKind::starting}, Expectation{"s", HealthKind::starting},
        Expectation{"m", HealthKind::starting}, Expectation{"c", HealthKind::starting},
        Expectation{"S", HealthKind::progressing}, Expectation{"cr", HealthKind::progressing},
        Expectation{"ce", HealthKind::progressing}, Expectation{"hhhh", HealthKind::starting},
        Expectation{"hhhhh", HealthKind::stuck}, Expectation{"S hhhh", HealthKind::progressing},
        Expectation{"S hhhhh", HealthKind::stuck}, Expectation{"hhhhS", HealthKind::progressing},
        Expectation{"hhhhh S", HealthKind::progressing},
        Expectation{"S hhhhh r", HealthKind::progressing},
        Expectation{"S sssssssss", HealthKind::progressing},
        Expectation{"S hhhhh u", HealthKind::progressing},
        Expectation{"S mmmmm", HealthKind::progressing},
        Expectation{"S mmmmmmm", HealthKind::suspect}, Expectation{"S w", HealthKind::blocked},
        Expectation{"S w ssss", HealthKind::blocked}, Expectation{"S hhhhh w", HealthKind::blocked},
        Expectation{"S w S", HealthKind::progressing},
        Expectation{"S hw h", HealthKind::progressing},
        Expectation{"S i hhhhhhhh", HealthKind::idle}, Expectation{"bbbbb", HealthKind::starting}),
    [](const auto& chosen) { return "session" + std::to_string(chosen.index); });

/// Of the loop, and without its iteration: a later one would close the call.
std::vector<Event> unnumbered(std::string_view letters) {
  auto events = events_of(std::string(letters));
  for (auto& event : events)
    if (auto* beats = std::get_if<Heartbeats>(&event.report.detail)) beats->source = Source::loop;
  return events;
}

TEST(Health, open_call_excuses_missing_state_changes_until_its_deadline) {
  auto events = unnumbered("S c bbbbbbb");
  const auto replayed = replay(events);
  EXPECT_EQ(replayed.judged.health.kind, HealthKind::progressing);
  EXPECT_EQ(replayed.judged.health.valid_until, events[1].tick + Policy{}.call_idle_max);
  EXPECT_EQ(judge(replayed.judged.history, {}, replayed.judged.health.valid_until).kind,
            HealthKind::stuck);
}

TEST(Health, deadline_of_a_call_replaces_the_default) {
  auto events = unnumbered("S c bbbbbbb");
  events[1].report.deadline = 20s;
  EXPECT_EQ(replay(events).judged.health.valid_until, events[1].tick + 20s);
}

TEST(Health, later_iteration_of_the_loop_closes_open_calls) {
  EXPECT_EQ(replay("S h c hhhhh").judged.health.kind, HealthKind::stuck);
}

TEST(Health, counters_that_rise_excuse_missing_state_changes) {
  auto events = events_of("S hhhhhhhh");
  double tokens = 0;
  for (auto& event : events) {
    if (auto* beats = std::get_if<Heartbeats>(&event.report.detail))
      beats->counters = {{"tokens", ++tokens}};
  }
  EXPECT_EQ(replay(events).judged.health.kind, HealthKind::progressing);
  for (auto& event : events) {
    if (auto* beats = std::get_if<Heartbeats>(&event.report.detail))
      beats->counters = {{"tokens", 7}};
  }
  EXPECT_EQ(replay(events).judged.health.kind, HealthKind::stuck);
}

TEST(Health, helper_that_beats_and_stops_is_silent_at_a_computed_moment) {
  const auto events = events_of("S s+s+s");
  const auto replayed = replay(events);
  ASSERT_EQ(replayed.judged.health.kind, HealthKind::progressing);
  // Three intervals of ten seconds, and the longest gap in whole intervals.
  EXPECT_EQ(replayed.judged.health.valid_until, events.back().tick + 40s);
  EXPECT_EQ(judge(replayed.judged.history, {}, replayed.judged.health.valid_until - 1ms).kind,
            HealthKind::progressing);
  EXPECT_EQ(judge(replayed.judged.history, {}, replayed.judged.health.valid_until).kind,
            HealthKind::silent);
}

TEST(Health, loop_that_blocks_in_a_slow_model_is_never_silent) {
  const auto replayed = replay("S hShShS");
  EXPECT_EQ(silence_begins(replayed.judged.history, {}) > replayed.now, true);
  EXPECT_EQ(judge(replayed.judged.history, {}, replayed.now + 10min).kind, HealthKind::progressing);
  EXPECT_EQ(judge(replayed.judged.history, {}, replayed.now + 24h).kind, HealthKind::suspect);
}

TEST(Health, is_unknown_after_the_usual_pace_where_only_reports_show_that_the_agent_works) {
  const auto after_a_pause = [](bool beats, bool calls) {
    test::Agent agent;
    for (int step = 0; step < 8; ++step) {
      if (beats) agent.loop();
      agent.state(std::to_string(step)).pass(20s);
    }
    if (calls) agent.begin("make", "{}");
    const auto slow_at = pace_now(agent.judged.history, {}).slow_at;
    return judge(agent.judged.history, {}, slow_at);
  };
  EXPECT_EQ(name_of(after_a_pause(false, false).kind), "unknown");
  EXPECT_EQ(name_of(after_a_pause(true, false).kind), "slow");
  EXPECT_EQ(name_of(after_a_pause(false, true).kind), "slow");

  test::Agent agent;
  agent.state("1").pass(12min);
  const auto reason = reason_of(agent.judged, agent.now);
  EXPECT_EQ(reason.substr(0, 22), "Last report 12 min ago") << reason;
  EXPECT_EQ(name_of(agent.pass(24h).health()), "suspect") << "a hang is noticed all the same";
}

TEST(Health, prompt_of_330_seconds_is_slow_after_reflections_of_28) {
  test::Agent agent;
  for (int step = 0; step < 40; ++step) {
    agent.loop().pass(28s).state("{\"step\":" + std::to_string(step) + "}");
  }
  for (int s = 0; s < 330; s += 10) agent.pass(10s).helper();
  EXPECT_EQ(name_of(agent.health()), "slow") << agent.story();
  EXPECT_FALSE(agent.ever(HealthKind::suspect));
  EXPECT_EQ(name_of(agent.pass(1h).health()), "silent") << "its helper stopped";
}

TEST(Health, process_that_is_gone_makes_silence_death) {
  EXPECT_EQ(path_of(replay("S ss ++++ s")), "progressing silent progressing");
  EXPECT_EQ(path_of(replay("S ss ++++ x")), "progressing silent dead");
  EXPECT_EQ(path_of(replay("S ss x ++++ ")), "progressing");
  EXPECT_EQ(path_of(replay("S ss ++++ x S")), "progressing silent dead progressing");
}

TEST(Health, observer_that_was_away_waits_as_long_again_but_no_longer_than_silence_takes) {
  auto events = events_of("S ss ++++++ s");
  events.pop_back();
  Event absence{.seq = 9, .session = observer_key, .tick = events.back().tick + 60s};
  absence.report.kind = ReportKind::observer;
  absence.report.detail = ObserverGap{60s};
  events.push_back(absence);
  const auto replayed = replay(events);
  EXPECT_EQ(replayed.judged.health.kind, HealthKind::progressing) << "nobody was there to hear it";
  EXPECT_EQ(replayed.judged.health.valid_until, absence.tick + 30s);
}

TEST(Health, observer_that_was_away_again_before_it_could_hear_anybody_waits_again) {
  // Away for 60 s, back for 1 s, away for 60 s, and so on: more often than absences are kept.
  auto events = events_of("S ss ++++++ s");
  events.pop_back();
  for (int times = 1; times <= 9; ++times) {
    Event absence{.seq = 8 + times, .session = observer_key, .tick = events.back().tick + 61s};
    absence.report.kind = ReportKind::observer;
    absence.report.detail = ObserverGap{60s};
    events.push_back(absence);
    const auto replayed = replay(events);
    EXPECT_EQ(path_of(replayed), "progressing") << times;
    EXPECT_EQ(replayed.judged.health.valid_until, absence.tick + 30s) << times;
    EXPECT_LE(replayed.judged.history.absences->size(), absences_max);
  }
}

TEST(Health, a_session_that_was_silent_before_an_observer_gap_stays_silent) {
  auto events = events_of("S ss +++++ m");
  events.pop_back();
  Event absence{.seq = 9, .session = observer_key, .tick = events.back().tick + 600s};
  absence.report.kind = ReportKind::observer;
  absence.report.detail = ObserverGap{300s};
  events.push_back(absence);
  const auto replayed = replay(events);
  EXPECT_EQ(path_of(replayed), "progressing silent") << "nobody is told twice";
}

TEST(Health, end_is_final_and_start_opens_the_next_attempt) {
  const auto replayed = replay("S hhhhh E hhh S");
  EXPECT_EQ(replayed.judged.history.lifecycle, Lifecycle::completed);
  EXPECT_EQ(replayed.judged.health.kind, HealthKind::stuck) << "the last health stays";
  EXPECT_EQ(replayed.judged.history.state_changes, 1) << "late events change nothing";
  EXPECT_FALSE(is_alive(replayed.judged.history, {}, replayed.now));

  const auto again = replay("S hhhhh E ! S");
  EXPECT_EQ(again.judged.history.attempt, 2);
  EXPECT_EQ(again.judged.history.state_changes, 1);
  EXPECT_EQ(again.judged.health.kind, HealthKind::progressing);
}

TEST(Health, alive_is_younger_than_two_intervals) {
  const auto replayed = replay("S h");
  EXPECT_TRUE(is_alive(replayed.judged.history, {}, replayed.now + 19'999ms));
  EXPECT_FALSE(is_alive(replayed.judged.history, {}, replayed.now + 20s));
  EXPECT_FALSE(is_alive(replay("S").judged.history, {}, replayed.now)) << "no heartbeat yet";
}

TEST(Health, results_close_calls_by_id_then_by_name_then_if_only_one_is_open) {
  auto events = events_of("ccc rrr");
  events[0].report.call_id = "a";
  events[1].report.call_id = "b";
  events[3].report.call_id = "b";
  events[4].report.name = "unheard of";
  events[4].report.call_id = "z";
  const auto replayed = replay(events);
  ASSERT_EQ(replayed.judged.history.open_calls->size(), 1U);
  EXPECT_EQ(replayed.judged.history.open_calls->front().call_id, "")
      << "the oldest of that name was closed";
  EXPECT_EQ(replayed.judged.history.state_changes, 3);
  EXPECT_EQ(replayed.judged.history.last_change_type, "tool_call");
}

// P-2 as it is written: of the latest N loop heartbeats, no state change at or after the first.
bool literal_base_rule(const std::vector<Event>& events, std::int64_t threshold) {
  std::deque<std::size_t> beats;
  for (std::size_t at = 0; at < events.size(); ++at) {
    const auto* row = std::get_if<Heartbeats>(&events[at].report.detail);
    if (row != nullptr && row->source == Source::loop) beats.push_back(at);
  }
  if (beats.size() < static_cast<std::size_t>(threshold)) return false;
  const auto first = beats[beats.size() - static_cast<std::size_t>(threshold)];
  return std::none_of(events.begin() + static_cast<std::ptrdiff_t>(first), events.end(),
                      [](const Event& event) {
                        return event.report.kind == ReportKind::state_change ||
                               event.report.kind == ReportKind::tool_result ||
                               event.report.kind == ReportKind::error;
                      });
}

std::string random_letters(std::mt19937& random, std::string_view alphabet, int length_max) {
  std::string letters;
  const auto length = std::uniform_int_distribution<>(0, length_max)(random);
  for (int i = 0; i < length; ++i) {
    letters += alphabet[std::uniform_int_distribution<std::size_t>(0, alphabet.size() - 1)(random)];
  }
  return letters;
}

// The requirement names 10^5 sequences: all of them, but a fifth under a sanitizer.
TEST(Health, constant_time_base_rule_agrees_with_the_literal_one) {
  std::mt19937 random(test::random_seed());
  const int rounds = test::repetitions(100'000, 1);
  int stuck = 0;
  for (int i = 0; i < rounds; ++i) {
    const auto letters = random_letters(random, i % 2 == 0 ? "hhhhhsSm" : "hhhhhhhhhscrem", 24);
    const Policy policy{.stuck_threshold = std::uniform_int_distribution<>(2, 7)(random)};
    const auto events = events_of(letters);
    const bool expected = literal_base_rule(events, policy.stuck_threshold);
    ASSERT_EQ(base_rule(replay(events, policy).judged.history, policy), expected)
        << letters << " threshold " << policy.stuck_threshold;
    stuck += expected ? 1 : 0;
  }
  EXPECT_GT(stuck, rounds / 10) << "both answers must occur";
}

TEST(Health, answer_does_not_change_before_valid_until_and_may_at_it) {
  std::mt19937 random(test::random_seed());
  int expiring = 0;
  for (int i = 0; i < test::repetitions(20'000); ++i) {
    const auto letters = random_letters(random, "hsbSccrewiux!+mEtTakplRqQHOy", 20);
    const auto replayed = replay(letters);
    if (is_end(replayed.judged.history.lifecycle)) continue;
    const auto& health = replayed.judged.health;
    const auto horizon = std::min(health.valid_until, replayed.now + 48h);
    for (int look = 0; look < 20; ++look) {
      const auto span = (horizon - replayed.now).count();
      const auto at = replayed.now + Millis{std::uniform_int_distribution<std::int64_t>(
                                         0, std::max<std::int64_t>(span - 1, 0))(random)};
      if (at >= health.valid_until) continue;
      ASSERT_TRUE(judge(replayed.judged.history, *replayed.judged.policy, at).same_as(health))
          << letters;
    }
    if (health.valid_until == never) continue;
    ++expiring;
    const auto next = judge(replayed.judged.history, *replayed.judged.policy, health.valid_until);
    ASSERT_GT(next.valid_until, health.valid_until) << letters << ": time must move on";
  }
  EXPECT_GT(expiring, 100);
}

TEST(Health, looking_in_between_changes_nothing_that_is_concluded) {
  std::mt19937 random(test::random_seed());
  for (int i = 0; i < test::repetitions(20'000); ++i) {
    const auto letters = random_letters(random, "hsbSccrewiux!+++mEtTakplRqQHOy", 30);
    const auto events = events_of(letters);
    const auto at_once = replay(events);
    Case watched;
    watched.session = 1;
    std::vector<Transition> changes;
    for (const auto& event : events) {
      // The observer looks at random moments before the event.
      for (auto at = watched.history.tick; at < event.tick && at.time_since_epoch().count() > 0;
           at += Millis{1 + random() % 4'000}) {
        watched.expire(at, changes);
      }
      watched.fold(event, changes);
    }
    ASSERT_EQ(changes.size(), at_once.changes.size()) << letters;
    for (std::size_t at = 0; at < changes.size(); ++at) {
      ASSERT_TRUE(changes[at].health.same_as(at_once.changes[at].health)) << letters;
      ASSERT_EQ(changes[at].tick, at_once.changes[at].tick) << letters;
      ASSERT_EQ(changes[at].seq, at_once.changes[at].seq) << letters;
    }
  }
}

}  // namespace
}  // namespace watchdog
