// The judge learns only from the time in which a session worked. A pause anywhere in its life
// changes no later verdict: not a sleep of the machine, not a wait for a person, not a restart.
#include "judge/worked.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "support/agent.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;
using test::Agent;

void observer_was_away(Agent& agent, Millis gap) {
  Event event{.seq = ++agent.seq, .session = observer_key, .tick = agent.now};
  event.report.kind = ReportKind::observer;
  event.report.detail = ObserverGap{gap};
  agent.judged.fold(event, agent.changes);
}

/// Its helper goes on as before while the agent waits.
void helper_goes_on(Agent& agent, Millis time) {
  const Millis interval = Policy{}.heartbeat_interval;
  Report report;
  report.kind = ReportKind::heartbeat;
  Heartbeats beats{.source = Source::sidecar};
  beats.count = time / interval;
  beats.max_gap = interval;
  beats.first = agent.now + interval;
  agent.now += time;
  beats.last = agent.now;
  report.detail = beats;
  Event event{.seq = ++agent.seq, .session = 1, .tick = agent.now};
  event.report = std::move(report);
  agent.judged.fold(event, agent.changes);
}

void sleep(Agent& agent, Millis time) {
  agent.now += time;
  observer_was_away(agent, time);
}

void wait_for_a_person(Agent& agent, Millis time) {
  const bool has_helper = agent.judged.history.periodic_beats > 0;
  agent.kind(ReportKind::wait, "approval");
  if (has_helper) {
    helper_goes_on(agent, time);
  } else {
    agent.now += time;
  }
  agent.kind(ReportKind::resume);
}

using Step = std::function<void(Agent&)>;

/// Each step is some seconds of work and a report.
std::vector<Step> random_life(std::mt19937& random, bool has_helper) {
  std::vector<Step> steps;
  const auto up_to = [&](int count) {
    return static_cast<int>(random() % static_cast<unsigned>(count));
  };
  bool calls = false;
  for (int number = 0; number < 60; ++number) {
    const Millis work{1'000 + up_to(28'000)};
    const auto text = std::to_string(number);
    Step report;
    switch (up_to(has_helper ? 5 : 4)) {
      case 0:
        report = [text](Agent& agent) { agent.state(text); };
        break;
      case 1:
        report = [text, calls](Agent& agent) {
          if (calls) {
            agent.done("make", "result " + text);
          } else {
            agent.begin("make", "target " + text);
          }
        };
        calls = !calls;
        break;
      case 2:
        report = [](Agent& agent) { agent.loop(); };
        break;
      case 3:
        report = [text](Agent& agent) { agent.call("read", "file " + text, "text " + text); };
        break;
      default:
        report = [](Agent& agent) { agent.helper(); };
        break;
    }
    steps.push_back([work, report](Agent& agent) {
      agent.pass(work);
      report(agent);
    });
  }
  return steps;
}

/// How long it takes each kind of activity to become slow, and suspect.
std::string learned_pace(const Agent& agent) {
  std::string text;
  for (const auto kind :
       {Pace::kind_of_phase(""), Pace::kind_of_tool("make"), Pace::kind_of_tool("read")}) {
    const auto bounds = agent.judged.history.pace->bounds(kind, {});
    text += "slow after " + std::to_string(bounds.slow.count()) + " ms, suspect after " +
            std::to_string(bounds.suspect.count()) + " ms; ";
  }
  return text;
}

/// The verdicts if nothing more is ever reported.
std::string verdicts(Agent& agent) {
  std::string text;
  for (const Millis later : {Millis{20s}, Millis{1min}, Millis{10min}, Millis{1h}, Millis{24h}})
    text += std::string(name_of(agent.pass(later).health())) + " ";
  return text;
}

TEST(Worked, no_pause_changes_a_later_verdict) {
  const std::pair<const char*, void (*)(Agent&, Millis)> pauses[] = {
      {"sleep", sleep}, {"wait for a person", wait_for_a_person}};
  for (unsigned seed = 1; seed <= 200; ++seed) {
    std::mt19937 random(seed);
    const auto life = random_life(random, seed % 2 == 0);
    const auto place = 1 + random() % (life.size() / 2);
    for (const auto& [name, pause] : pauses) {
      for (const Millis time : {Millis{1min}, Millis{30min}, Millis{8h}}) {
        Agent plain;
        Agent paused;
        for (std::size_t at = 0; at < life.size(); ++at) {
          if (at == place) pause(paused, time);
          life[at](plain);
          life[at](paused);
        }
        const auto what = std::string(name) + " of " + std::to_string(time.count()) + " ms, seed " +
                          std::to_string(seed);
        ASSERT_EQ(learned_pace(paused), learned_pace(plain)) << what;
        // During a wait the helper beats on, and the gaps of that time are gaps, too.
        if (pause == wait_for_a_person && plain.judged.history.periodic_beats > 0) continue;
        ASSERT_EQ(silence_bound(paused.judged.history, {}), silence_bound(plain.judged.history, {}))
            << what;
        ASSERT_EQ(verdicts(paused), verdicts(plain)) << what;
      }
    }
  }
}

TEST(Worked, an_absence_that_comes_after_the_next_heartbeat_counts_all_the_same) {
  Agent agent;
  for (int beat = 0; beat < 5; ++beat) agent.pass(10s).helper();
  const auto before = silence_bound(agent.judged.history, {});
  agent.now += 8h;
  agent.helper();
  agent.now += 300ms;
  observer_was_away(agent, 8h + 300ms);
  EXPECT_EQ(silence_bound(agent.judged.history, {}), before);
  agent.pass(10s).helper();
  EXPECT_EQ(silence_bound(agent.judged.history, {}), before);
  EXPECT_EQ(name_of(agent.pass(before).health()), "silent");
}

TEST(Worked, an_agent_that_reports_beside_an_absent_observer_is_working) {
  const auto usual = [](bool was_away) {
    Agent agent;
    for (int step = 0; step < 30; ++step) agent.pass(20s).state(std::to_string(step));
    const auto left = agent.now;
    for (int step = 30; step < 60; ++step) agent.pass(20s).state(std::to_string(step));
    if (was_away) observer_was_away(agent, agent.now - left);
    for (int step = 60; step < 90; ++step) agent.pass(20s).state(std::to_string(step));
    return agent.judged.history.pace->bounds(Pace::kind_of_phase(""), {}).usual;
  };
  EXPECT_EQ(usual(true), usual(false));
}

TEST(Worked, the_time_between_two_processes_of_a_session_is_not_a_usual_gap) {
  Agent agent;
  agent.kind(ReportKind::start);
  for (int beat = 0; beat < 5; ++beat) agent.pass(10s).helper();
  const auto before = silence_bound(agent.judged.history, {});
  agent.pass(3h).kind(ReportKind::start);
  for (int beat = 0; beat < 3; ++beat) agent.pass(10s).helper();
  EXPECT_EQ(silence_bound(agent.judged.history, {}), before);
}

TEST(Worked, a_call_that_waited_for_its_permission_until_it_ended_teaches_nothing) {
  Agent agent;
  agent.begin("Bash", "make", "c1").kind(ReportKind::wait, "approval").pass(8h);
  agent.done("Bash", "done", "c1");
  EXPECT_EQ(agent.judged.history.pace->bounds(Pace::kind_of_tool("Bash"), {}).slow,
            Pace{}.bounds(Pace::kind_of_tool("Bash"), {}).slow);
}

TEST(Worked, a_call_has_its_whole_deadline_after_its_permission) {
  Agent agent;
  agent.state("1").pass(5s).begin("Bash", "make", "c1");
  agent.kind(ReportKind::wait, "approval").pass(8h).kind(ReportKind::resume);
  EXPECT_GT(pace_now(agent.judged.history, {}).slow_at, agent.now);
  EXPECT_EQ(name_of(agent.pass(1s).health()), "progressing") << agent.story();
}

TEST(Worked, usual_gaps_that_are_long_count_with_the_next_silence) {
  Agent agent;
  for (int beat = 0; beat < 3; ++beat) agent.pass(10s).helper();
  agent.pass(28s).helper();
  EXPECT_GE(silence_bound(agent.judged.history, {}), 28s) << "at once: the next gap may be as long";
}

}  // namespace
}  // namespace watchdog
