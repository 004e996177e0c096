#include "judge/attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "codec/facts.h"
#include "support/agent.h"
#include "support/scenario.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;
using test::Agent;
using test::replay;

TEST(Attention, every_session_has_one_state_and_one_group) {
  using A = Attention;
  using H = HealthKind;
  using L = Lifecycle;
  using S = SessionState;
  struct Row {
    StandingFacts facts;
    S state;
    A attention;
  };
  const Row rows[] = {
      {{L::running, H::unknown}, S::unknown, A::working},
      {{L::running, H::starting}, S::starting, A::working},
      {{L::running, H::progressing}, S::progressing, A::working},
      {{L::running, H::slow}, S::slow, A::working},
      {{L::running, H::suspect}, S::suspect, A::watch},
      {{L::running, H::stuck}, S::stuck, A::needs_you},
      {{L::running, H::looping}, S::looping, A::needs_you},
      {{L::running, H::blocked}, S::needs_input, A::needs_you},  // by a model's opinion
      {{L::running, H::silent}, S::silent, A::needs_you},
      {{L::running, H::dead}, S::dead, A::needs_you},
      {{L::idle, H::idle}, S::your_turn, A::ready},
      {{L::idle, H::idle, "", true}, S::idle, A::resting},
      {{L::idle, H::dead}, S::dead, A::needs_you},
      {{L::waiting, H::blocked, "approval"}, S::needs_input, A::needs_you},
      {{L::waiting, H::blocked, "input"}, S::needs_input, A::needs_you},
      {{L::waiting, H::blocked, "login"}, S::needs_input, A::needs_you},
      {{L::waiting, H::blocked, "permission"}, S::needs_input, A::needs_you},
      {{L::waiting, H::blocked, "quota"}, S::waiting, A::watch},
      {{L::waiting, H::blocked, "overload"}, S::waiting, A::watch},
      {{L::waiting, H::blocked, "retry"}, S::waiting, A::watch},
      {{L::waiting, H::blocked, "backend"}, S::waiting, A::watch},
      {{L::waiting, H::blocked, "children"}, S::waiting, A::working},
      {{L::waiting, H::blocked, "children", false, true}, S::waiting, A::watch},
      {{L::running, H::slow, "", false, true}, S::slow, A::watch},
      {{L::waiting, H::blocked, ""}, S::waiting, A::watch},
      {{L::waiting, H::silent, "approval"}, S::silent, A::needs_you},
      {{L::running, H::looping, "", false, false, true}, S::looping, A::watch},  // acknowledged
      {{L::running, H::silent, "", false, false, true}, S::silent, A::watch},
      {{L::running, H::dead, "", false, false, true}, S::dead, A::resting},
      {{L::waiting, H::blocked, "input", false, false, true}, S::needs_input, A::needs_you},
      {{L::running, H::progressing, "", false, false, true}, S::progressing, A::working},
      {{L::completed, H::looping}, S::completed, A::resting},
      {{L::cancelled, H::stuck}, S::cancelled, A::resting},
      {{L::failed, H::progressing}, S::failed, A::needs_you},
      {{L::failed, H::progressing, "", true}, S::failed, A::resting},
      {{L::incomplete, H::idle}, S::incomplete, A::needs_you},
      {{L::incomplete, H::idle, "", true}, S::incomplete, A::resting},
  };
  std::set<S> states;
  for (const auto& row : rows) {
    const auto standing = standing_of(row.facts);
    EXPECT_EQ(name_of(standing.state), name_of(row.state));
    EXPECT_EQ(name_of(standing.attention), name_of(row.attention)) << name_of(row.state);
    states.insert(row.state);
  }
  EXPECT_EQ(states.size(), std::size(Names<S>::all));
}

/// The table of states, written again: an end hides everything, `blocked` is two states, and the
/// other healths are states of the same name.
TEST(Attention, every_combination_has_the_state_of_the_table) {
  const std::string_view persons[] = {"approval", "input", "login", "permission", "answer"};
  const std::string_view others[] = {"", "quota", "overload", "retry", "backend", "children"};
  std::vector<std::string_view> waits(std::begin(persons), std::end(persons));
  waits.insert(waits.end(), std::begin(others), std::end(others));
  int combinations = 0;
  for (const auto life : Names<Lifecycle>::all) {
    for (const auto condition : Names<HealthKind>::all) {
      const auto lifecycle = *named<Lifecycle>(life);
      const auto health = *named<HealthKind>(condition);
      for (std::size_t wait = 0; wait < waits.size(); ++wait) {
        for (const bool settled : {false, true}) {
          const bool is_person = wait < std::size(persons);
          std::string_view state = condition;
          if (health == HealthKind::blocked)
            state = life != "waiting" || is_person ? "needs_input" : "waiting";
          if (health == HealthKind::idle && !settled) state = "your_turn";
          if (is_end(lifecycle)) state = life;
          const auto one_of = [&](std::initializer_list<std::string_view> words) {
            return std::ranges::find(words, state) != words.end();
          };
          const std::string_view attention =
              one_of({"failed", "incomplete"}) ? (settled ? "resting" : "needs_you")
              : one_of({"needs_input", "stuck", "looping", "dead", "silent"}) ? "needs_you"
              : state == "waiting" && waits[wait] == "children"               ? "working"
              : one_of({"suspect", "waiting"})                                ? "watch"
              : state == "your_turn"                                          ? "ready"
              : one_of({"idle", "completed", "cancelled"})                    ? "resting"
                                                                              : "working";
          const auto standing = standing_of({lifecycle, health, waits[wait], settled});
          ASSERT_EQ(name_of(standing.state), state) << life << ' ' << waits[wait];
          ASSERT_EQ(name_of(standing.attention), attention) << life << ' ' << state;
          ++combinations;
        }
      }
    }
  }
  EXPECT_EQ(combinations, 7 * 11 * 11 * 2);
}

TEST(Attention, lists_begin_with_what_needs_a_person_for_the_longest) {
  const auto made = [](SessionState state, std::int64_t since) {
    return Urgency{{state, attention_of(state)}, WallTime{Millis{since}}};
  };
  const std::vector order{made(SessionState::dead, 9),        made(SessionState::stuck, 3),
                          made(SessionState::stuck, 5),       made(SessionState::needs_input, 1),
                          made(SessionState::waiting, 2),     made(SessionState::waiting, 4),
                          made(SessionState::progressing, 9), made(SessionState::progressing, 1),
                          made(SessionState::idle, 7),        made(SessionState::completed, 8),
                          made(SessionState::completed, 2)};
  for (std::size_t a = 0; a < order.size(); ++a)
    for (std::size_t b = 0; b < order.size(); ++b)
      EXPECT_EQ(is_before(order[a], order[b]), a < b) << a << " " << b;
}

TEST(Attention, a_wait_that_follows_a_wait_begins_its_state) {
  Agent agent;
  agent.kind(ReportKind::wait, "quota");
  const auto& history = agent.judged.history;
  const auto first = standing_since(agent.judged, history.tick, history.at);
  EXPECT_EQ(first, agent.judged.health_since);
  agent.pass(90s).kind(ReportKind::wait, "approval");
  EXPECT_EQ(standing_since(agent.judged, history.tick, history.at), history.at);
  EXPECT_EQ(agent.judged.health_since, first) << "it is blocked all the time";
}

TEST(Attention, a_failed_end_needs_a_person_for_a_day) {
  Agent agent;
  Report end{.kind = ReportKind::end};
  end.detail = Outcome{.kind = OutcomeKind::failed, .reason = "error"};
  agent.say(std::move(end));
  const auto at = agent.judged.history.notes->outcome_at;
  EXPECT_EQ(standing_of(agent.judged, at + 24h - 1ms).attention, Attention::needs_you);
  EXPECT_EQ(standing_of(agent.judged, at + 24h).attention, Attention::resting);
}

TEST(Attention, a_finished_turn_is_a_persons_for_a_day_and_not_a_parents) {
  Agent agent;
  agent.kind(ReportKind::idle);
  const auto at = agent.judged.health_since;
  EXPECT_EQ(standing_of(agent.judged, at + 24h - 1ms).state, SessionState::your_turn);
  EXPECT_EQ(standing_of(agent.judged, at + 24h).state, SessionState::idle);
  EXPECT_EQ(standing_of(agent.judged, at, Family::child).attention, Attention::resting);
  Agent busy;
  busy.kind(ReportKind::idle, std::string(idle_reports::goes_on));
  EXPECT_EQ(standing_of(busy.judged, busy.judged.health_since).state, SessionState::idle);
}

TEST(Idle, a_complete_answer_is_idle_whatever_came_before) {
  for (const auto* letters : {"i", "mi", "Si", "cri", "c+++i", "uhhhhhhhhi", "wi", "tki", "wui"}) {
    const auto replayed = replay(std::string("!") + letters);
    EXPECT_EQ(name_of(replayed.judged.health.kind), "idle") << letters;
    EXPECT_EQ(replayed.judged.health.valid_until, never) << letters;
    EXPECT_TRUE(replayed.judged.history.open_calls->empty()) << letters;
    const auto later = judge(replayed.judged.history, {}, replayed.now + 240h);
    EXPECT_EQ(name_of(later.kind), "idle") << "pace does not count; " << letters;
  }
}

TEST(Idle, the_next_sign_of_work_ends_it) {
  EXPECT_EQ(path_of(replay("!uSiuS")), "starting progressing idle progressing");
  EXPECT_EQ(path_of(replay("!uSicr")), "starting progressing idle progressing");
  EXPECT_EQ(path_of(replay("!uSiw")), "starting progressing idle blocked");
  EXPECT_EQ(path_of(replay("!uSiE")), "starting progressing idle");
}

TEST(Idle, an_idle_report_from_a_relay_leaves_calls_open) {
  Agent agent;
  agent.begin("shell", "{}", "c1").kind(ReportKind::idle, "relay");
  EXPECT_EQ(name_of(agent.health()), "starting") << "the agent still runs its call";
  EXPECT_EQ(agent.judged.history.open_calls->size(), 1U);
  agent.kind(ReportKind::idle);
  EXPECT_EQ(name_of(agent.health()), "idle");
}

TEST(Idle, a_confirmed_loop_of_the_turn_that_ended_stays_visible_until_the_next) {
  Agent agent;
  for (int i = 0; i < 12; ++i) agent.fail("shell", R"({"command":"make"})", "no rule");
  ASSERT_EQ(name_of(agent.health()), "looping");
  agent.kind(ReportKind::idle);
  EXPECT_EQ(name_of(agent.health()), "idle");
  EXPECT_EQ(reason_of(agent.judged.health, agent.judged.history, {}),
            "The answer is complete; last turn: looping");
  agent.kind(ReportKind::user_input).kind(ReportKind::idle);
  EXPECT_EQ(reason_of(agent.judged.health, agent.judged.history, {}), "The answer is complete");
}

TEST(Idle, an_interrupted_turn_says_so) {
  Agent agent;
  agent.begin("shell", "{}", "c1").kind(ReportKind::idle, "interrupted");
  EXPECT_EQ(name_of(agent.health()), "idle");
  EXPECT_EQ(reason_of(agent.judged.health, agent.judged.history, {}),
            "A person interrupted the turn");
  agent.kind(ReportKind::user_input).kind(ReportKind::idle);
  EXPECT_EQ(reason_of(agent.judged.health, agent.judged.history, {}), "The answer is complete");
}

TEST(Idle, a_reminder_ends_no_wait_for_a_person) {
  for (const auto* what : {"approval", "input", "login", "quota", "children"}) {
    Agent agent;
    agent.kind(ReportKind::wait, what).kind(ReportKind::idle, "reminder");
    EXPECT_EQ(name_of(agent.health()), "blocked") << what;
    EXPECT_EQ(name_of(agent.kind(ReportKind::idle).health()), "idle") << what;
  }
  Agent agent;
  agent.kind(ReportKind::wait, "retry").kind(ReportKind::idle, "reminder");
  EXPECT_EQ(name_of(agent.health()), "idle") << "nobody tries again";
}

TEST(Idle, said_again_it_keeps_its_first_reason_and_late_results_are_no_work) {
  Agent agent;
  agent.begin("shell", "{}", "c1").kind(ReportKind::idle, "interrupted");
  agent.kind(ReportKind::idle, "reminder").done("shell", "aborted", "c1").kind(ReportKind::idle);
  EXPECT_EQ(name_of(agent.health()), "idle");
  EXPECT_EQ(agent.judged.history.state_changes, 0);
  EXPECT_EQ(reason_of(agent.judged.health, agent.judged.history, {}),
            "A person interrupted the turn");
}

TEST(Reason, begins_with_a_capital_letter) {
  const auto begins = [](const std::string& text) {
    return !text.empty() && (text[0] < 'a' || text[0] > 'z');
  };
  for (std::size_t kind = 0; kind < std::size(Names<HealthKind>::all); ++kind) {
    for (std::size_t pattern = 0; pattern < std::size(Names<Pattern>::all); ++pattern) {
      Health health;
      health.kind = static_cast<HealthKind>(kind);
      health.pattern = static_cast<Pattern>(pattern);
      const auto reason = reason_of(health, History{}, {});
      EXPECT_TRUE(begins(reason)) << reason;
    }
  }
  for (const auto* error : {"", "the disk is full", "read_file failed", "make: *** No rule"}) {
    for (const auto* why : {"", "error", "tool_error"}) {
      const auto reason = end_in_words({.reason = why, .error = error}, 0);
      EXPECT_TRUE(begins(reason)) << reason;
    }
  }
  EXPECT_EQ(end_in_words({.reason = "error", .error = "read_file failed"}, 2),
            "Error: read_file failed; 2 calls wasted in a loop");
}

TEST(Reason, keeps_the_letters_of_a_tool) {
  Agent agent;
  for (int i = 0; i < 12; ++i) agent.fail("shell", R"({"command":"make"})", "no rule");
  EXPECT_EQ(reason_of(agent.judged.health, agent.judged.history, {}).substr(0, 12), "Calls shell ");
  Agent other;
  for (int i = 0; i < 12; ++i) other.fail("apply_patch", std::to_string(i), "no hunk");
  EXPECT_EQ(reason_of(other.judged.health, other.judged.history, {}).substr(0, 24),
            "Tool apply_patch failed ");
}

TEST(Wait, ends_with_what_it_was_for_and_not_with_another) {
  Agent agent;
  agent.begin("shell", "{}", "c1").kind(ReportKind::wait, "approval");
  EXPECT_EQ(name_of(agent.kind(ReportKind::resume, "retry").health()), "blocked");
  EXPECT_EQ(name_of(agent.kind(ReportKind::resume, "approval").health()), "starting");
  EXPECT_EQ(agent.judged.history.open_calls->size(), 1U) << "the call runs on";
  agent.kind(ReportKind::wait, "input");
  EXPECT_EQ(name_of(agent.kind(ReportKind::resume).health()), "starting");
  agent.kind(ReportKind::idle);
  EXPECT_EQ(name_of(agent.kind(ReportKind::resume).health()), "idle") << "it did not wait";
}

TEST(Wait, for_one_call_is_not_ended_by_another) {
  Agent agent;
  const auto ask = [&](const std::string& call) {
    agent.say({.kind = ReportKind::wait, .name = "approval", .call_id = call});
  };
  agent.begin("read", "1", "c1").begin("shell", "2", "c2");
  ask("c2");
  agent.done("read", "text", "c1");
  EXPECT_EQ(name_of(agent.health()), "blocked");
  agent.begin("read", "3", "c3").failed("read", "no", "c3");
  EXPECT_EQ(name_of(agent.health()), "blocked");
  agent.kind(ReportKind::wait, "approval").begin("read", "4", "c4");
  EXPECT_EQ(name_of(agent.health()), "blocked") << "said again without its name";

  const auto text = snapshot_of(agent.judged);
  agent.judged.history = {};
  ASSERT_TRUE(read_snapshot(agent.judged, text));
  agent.done("read", "text", "c4");
  EXPECT_EQ(name_of(agent.health()), "blocked") << "a snapshot keeps it";
  agent.done("shell", "done", "c2");
  EXPECT_EQ(name_of(agent.health()), "progressing");

  agent.begin("shell", "5", "c5");
  ask("gone");
  EXPECT_EQ(name_of(agent.begin("read", "6", "c6").health()), "progressing")
      << "of a call that is not open the next call says that it is over";
  ask("c5");
  EXPECT_EQ(name_of(agent.kind(ReportKind::user_input).health()), "progressing");
  ask("c5");
  EXPECT_EQ(name_of(agent.state("further").health()), "progressing");
}

TEST(Wait, says_what_is_asked_and_until_when) {
  Agent agent;
  Report wait{.kind = ReportKind::wait, .name = "quota", .content = "resets at nine"};
  wait.until = WallTime{std::chrono::seconds(1'795'806'400)};
  agent.say(wait);
  EXPECT_EQ(reason_of(agent.judged.health, agent.judged.history, {}),
            "Waits for quota until 2026-11-27 19:07 UTC: resets at nine");
  EXPECT_EQ(agent.judged.history.notes->wait_until, wait.until);
  wait.provider = "anthropic";
  agent.say(wait);
  EXPECT_EQ(reason_of(agent.judged.health, agent.judged.history, {}),
            "Waits for quota of anthropic until 2026-11-27 19:07 UTC: resets at nine");
  agent.kind(ReportKind::user_input);
  EXPECT_FALSE(agent.judged.history.notes->wait_until);
  EXPECT_EQ(agent.judged.history.notes->wait_provider, "");
}

}  // namespace
}  // namespace watchdog
