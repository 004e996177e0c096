// Synthetic sessions in random variants: work that looks like a loop and must never be called one,
// and loops that look like work and must not be missed. And what holds for all sessions.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "codec/facts.h"
#include "support/agent.h"
#include "support/scenario.h"

namespace watchdog {
namespace {

using test::Agent;
using test::long_text;
using namespace std::chrono_literals;

/// One variant: a generator of its own, reproducible from the printed seed.
class Dice {
 public:
  explicit Dice(unsigned variant) : engine_(test::random_seed() * 7'919U + variant) {}
  int from(int min, int max) { return std::uniform_int_distribution<>(min, max)(engine_); }
  bool once_in(int n) { return from(1, n) == 1; }
  std::string word() {
    std::string text;
    for (int length = from(3, 10); length > 0; --length) text += static_cast<char>(from('a', 'z'));
    return text;
  }
  std::string words(int count) {
    std::string text;
    while (count-- > 0) text += word() + " ";
    return text;
  }
  template <class List>
  const auto& one_of(const List& list) {
    return list[static_cast<std::size_t>(from(0, static_cast<int>(list.size()) - 1))];
  }

 private:
  std::mt19937 engine_;
};

int variants() {
  return test::repetitions(1'000, 50);
}

/// What an agent does in between anyway: nothing, a thought, a heartbeat of loop or helper.
void breathe(Agent& agent, Dice& dice) {
  agent.pass(Millis{dice.from(100, 20'000)});
  if (dice.once_in(2)) agent.message("Thought: " + dice.words(12), "thought");
  if (dice.once_in(3)) agent.helper();
}

std::string object(const std::string& name, const std::string& value) {
  return "{\"" + name + "\":\"" + value + "\"}";
}

#define EXPECT_WORK(agent, variant) \
  EXPECT_FALSE((agent).ever_confirmed()) << "variant " << (variant) << ": " << (agent).story()

// --- Work.

TEST(Work, batch_over_different_targets) {
  for (int variant = 0; variant < variants(); ++variant) {
    Dice dice(static_cast<unsigned>(variant));
    Agent agent;
    const auto tool = dice.word();
    const auto confirmation = dice.once_in(2) ? std::string("ok") : long_text("the file");
    for (int target = 0; target < dice.from(10, 60); ++target) {
      agent.call(tool, object("path", "src/" + dice.word() + std::to_string(target) + ".cpp"),
                 confirmation);
      breathe(agent, dice);
    }
    EXPECT_WORK(agent, variant);
  }
}

TEST(Work, paging_through_results) {
  for (int variant = 0; variant < variants(); ++variant) {
    Dice dice(static_cast<unsigned>(variant));
    Agent agent;
    for (int page = 0; page < dice.from(10, 60); ++page) {
      agent.call("read", R"({"path":"a.log","page":)" + std::to_string(page) + "}",
                 "page " + std::to_string(page) + ": " + dice.words(30));
      breathe(agent, dice);
    }
    EXPECT_WORK(agent, variant);
  }
}

TEST(Work, incremental_edits) {
  for (int variant = 0; variant < variants(); ++variant) {
    Dice dice(static_cast<unsigned>(variant));
    Agent agent;
    for (int edit = 0; edit < dice.from(10, 40); ++edit) {
      agent.call(
          "edit",
          R"({"path":"main.cpp","old":")" + dice.words(6) + R"(","new":")" + dice.words(8) + "\"}",
          "The file main.cpp was edited.");
      breathe(agent, dice);
    }
    EXPECT_WORK(agent, variant);
  }
}

TEST(Work, testing_again_after_edits) {
  for (int variant = 0; variant < variants(); ++variant) {
    Dice dice(static_cast<unsigned>(variant));
    Agent agent;
    const bool same_failure = dice.once_in(2);
    for (int round = 0; round < dice.from(5, 30); ++round) {
      for (int edits = dice.from(1, 3); edits > 0; --edits) {
        agent.call("edit", object("patch", dice.words(10)), "edited");
        breathe(agent, dice);
      }
      agent.fail(
          "run_tests", "{}",
          long_text(same_failure ? "59 failures" : std::to_string(59 - round) + " failures"));
      breathe(agent, dice);
    }
    EXPECT_WORK(agent, variant);
  }
}

TEST(Work, polling_whose_result_changes) {
  for (int variant = 0; variant < variants(); ++variant) {
    Dice dice(static_cast<unsigned>(variant));
    Agent agent;
    int percent = 0;
    while (percent < 100) {
      percent += dice.from(1, 5);
      agent.call("job_status", R"({"job":"b-17"})",
                 "running, " + std::to_string(percent) + " % of the build are done");
      breathe(agent, dice);
    }
    EXPECT_WORK(agent, variant);
  }
}

TEST(Work, trying_again_with_variations) {
  for (int variant = 0; variant < variants(); ++variant) {
    Dice dice(static_cast<unsigned>(variant));
    Agent agent;
    for (int task = 0; task < dice.from(2, 8); ++task) {
      const auto error = "error: " + dice.words(5);
      for (int attempt = dice.from(1, 4); attempt > 0; --attempt) {
        agent.fail("install", object("version", dice.word() + "-" + std::to_string(attempt)),
                   error);
        breathe(agent, dice);
      }
      agent.call("install", object("version", dice.word()), "installed " + dice.words(4));
      breathe(agent, dice);
    }
    EXPECT_WORK(agent, variant);
  }
}

TEST(Work, reading_again_after_a_compaction) {
  for (int variant = 0; variant < variants(); ++variant) {
    Dice dice(static_cast<unsigned>(variant));
    Agent agent;
    std::vector<std::string> files(static_cast<std::size_t>(dice.from(2, 6)));
    for (auto& file : files) file = dice.word();
    for (int round = 0; round < dice.from(2, 6); ++round) {
      for (const auto& file : files) {
        agent.call("read", object("path", file), long_text(file));
        breathe(agent, dice);
      }
      for (int step = dice.from(3, 10); step > 0; --step) {
        agent.call("edit", object("patch", dice.words(9)), "edited " + dice.words(3));
        breathe(agent, dice);
      }
      agent.kind(ReportKind::compaction);
    }
    EXPECT_WORK(agent, variant);
  }
}

TEST(Work, reading_a_prompt_for_330_seconds) {
  for (int variant = 0; variant < variants(); ++variant) {
    Dice dice(static_cast<unsigned>(variant));
    Agent agent;
    for (int round = 0; round < dice.from(3, 30); ++round) {
      agent.loop();
      for (int s = 0; s < 330; s += 10) agent.pass(10s).helper();
      agent.state(object("reflection", dice.words(12)), "reflection_complete");
      agent.pass(Millis{dice.from(500, 28'000)});
      agent.call("edit", object("patch", dice.words(5)), dice.words(5));
    }
    EXPECT_WORK(agent, variant);
    EXPECT_FALSE(agent.ever(HealthKind::silent)) << agent.story();
  }
}

TEST(Work, tool_that_runs_for_24_hours_with_heartbeats) {
  for (int variant = 0; variant < variants() / 10 + 1; ++variant) {
    Dice dice(static_cast<unsigned>(variant));
    Agent agent;
    agent.state(R"({"plan":"train"})").begin("train", "{}");
    for (int minute = 0; minute < 24 * 60; ++minute) {
      agent.pass(Millis{60'000 - dice.from(0, 5'000)});
      for (int i = 0; i < 2; ++i) agent.helper();
      EXPECT_TRUE(minute != 20 * 60 || agent.health() == HealthKind::slow) << agent.story();
    }
    agent.done("train", "loss 0.1");
    EXPECT_WORK(agent, variant);
    EXPECT_FALSE(agent.ever(HealthKind::suspect)) << agent.story();
    EXPECT_EQ(agent.health(), HealthKind::progressing);
  }
}

// --- Loops.

TEST(Loop, cycle_of_one_to_eight_rounds_with_noise) {
  for (int variant = 0; variant < variants(); ++variant) {
    Dice dice(static_cast<unsigned>(variant));
    Agent agent;
    const int period = dice.from(1, 8);
    std::vector<std::pair<std::string, std::string>> lap;
    for (int i = 0; i < period; ++i) {
      lap.emplace_back(object("path", dice.word() + std::to_string(i)), dice.words(5));
    }
    int noise = 0;
    for (int round = 0; round < 6 * period + 6 && !agent.ever_confirmed(); ++round) {
      const auto& [args, result] = lap[static_cast<std::size_t>(round % period)];
      agent.call("read", args, result);
      breathe(agent, dice);
      if (dice.once_in(8)) {
        agent.call("look", object("at", dice.words(2)), dice.words(3));
        ++noise;
      }
    }
    ASSERT_TRUE(agent.ever_confirmed()) << variant << " period " << period << ": " << agent.story();
    EXPECT_LE(agent.confirmed_at, 4 * period + 4 + 2 * noise) << variant << " period " << period;
  }
}

TEST(Loop, exact_cycle_is_found_within_four_laps_and_a_call) {
  for (int variant = 0; variant < variants(); ++variant) {
    Dice dice(static_cast<unsigned>(variant));
    Agent agent;
    const int period = dice.from(1, 8);
    std::vector<std::string> lap(static_cast<std::size_t>(period));
    for (auto& args : lap) args = dice.words(dice.from(1, 6));
    const auto result = dice.once_in(2) ? std::string() : dice.words(20);
    for (int round = 0; round < 4 * period + 1; ++round) {
      agent.call("shell", lap[static_cast<std::size_t>(round % period)], result);
      breathe(agent, dice);
    }
    EXPECT_TRUE(agent.ever(HealthKind::looping)) << variant << " period " << period;
    EXPECT_EQ(agent.health(), HealthKind::looping);
  }
}

TEST(Loop, thrash_with_varying_arguments) {
  for (int variant = 0; variant < variants(); ++variant) {
    Dice dice(static_cast<unsigned>(variant));
    Agent agent;
    const auto error = "error: " + dice.words(6);
    for (int attempt = 0; attempt < 8; ++attempt) {
      agent.fail("open", object("path", dice.word() + "/" + dice.word()), error);
      breathe(agent, dice);
    }
    EXPECT_TRUE(agent.ever_confirmed()) << variant << ": " << agent.story();
  }
}

TEST(Loop, repeated_failure_whose_message_changes) {
  for (int variant = 0; variant < variants(); ++variant) {
    Dice dice(static_cast<unsigned>(variant));
    Agent agent;
    const auto args = object("target", dice.word());
    for (int attempt = 0; attempt < 5; ++attempt) {
      agent.fail("make", args, "error at " + dice.words(6));
      breathe(agent, dice);
    }
    EXPECT_TRUE(agent.ever_confirmed()) << variant << ": " << agent.story();
  }
}

TEST(Loop, repeated_text) {
  for (int variant = 0; variant < variants(); ++variant) {
    Dice dice(static_cast<unsigned>(variant));
    Agent agent;
    const auto unit = dice.words(dice.from(2, 16));
    std::string text;
    for (int i = 0; i < 60; ++i) text += unit;
    agent.message("I begin with " + dice.words(30) + text);
    EXPECT_TRUE(agent.ever_confirmed()) << variant << ": " << unit << agent.story();
  }
}

TEST(Loop, frozen_while_its_heartbeat_thread_lives) {
  for (int variant = 0; variant < variants(); ++variant) {
    Dice dice(static_cast<unsigned>(variant));
    Agent agent;
    const int usual = dice.from(500, 30'000);
    for (int round = 0; round < dice.from(1, 60); ++round) {
      agent.loop().pass(Millis{dice.from(usual / 2, usual * 2)});
      agent.state(object("done", dice.words(4)));
    }
    const auto bound = pace_now(agent.judged.history, *agent.judged.policy).bounds.suspect;
    EXPECT_LE(bound, 1h) << "a hang must be noticed";
    for (const auto frozen = agent.now; agent.now - frozen < bound;) agent.pass(5s).helper();
    EXPECT_EQ(agent.health(), HealthKind::suspect) << variant << ": " << agent.story();
    for (int i = 0; i < 1'000; ++i) agent.pass(5s).helper();
    EXPECT_EQ(agent.health(), HealthKind::suspect) << "and no heartbeat of a helper clears it";
  }
}

TEST(Loop, silent_death) {
  for (int variant = 0; variant < variants(); ++variant) {
    Dice dice(static_cast<unsigned>(variant));
    Agent agent;
    for (int beat = dice.from(2, 40); beat > 0; --beat) {
      agent.pass(Millis{dice.from(8'000, 12'000)}).helper();
      if (dice.once_in(4)) agent.state(object("done", dice.words(4)));
    }
    agent.pass(silence_bound(agent.judged.history, *agent.judged.policy));
    EXPECT_EQ(agent.health(), HealthKind::silent) << variant << ": " << agent.story();
  }
}

// --- What holds for all sessions.

/// Something that an agent may report, whatever it is.
void anything(Agent& agent, Dice& dice) {
  const auto some = [&](int n) { return std::to_string(dice.from(1, n)); };
  switch (dice.from(0, 15)) {
    case 0:
    case 1:
    case 2:
      agent.call("tool" + some(2), object("a", some(3)), "result " + some(2));
      break;
    case 3:
      agent.fail("tool" + some(2), object("a", some(3)), "error " + some(2));
      break;
    case 4:
      agent.begin("tool" + some(2), object("a", some(3)), some(4));
      break;
    case 5:
      agent.done("tool" + some(2), "result " + some(2), some(4));
      break;
    case 6:
      agent.state(object("s", some(4)));
      break;
    case 7:
      agent.state("");
      break;
    case 8:
      agent.message("message " + some(2), dice.once_in(4) ? "user" : "assistant");
      break;
    case 9:
      agent.kind(dice.one_of(std::array{ReportKind::wait, ReportKind::idle, ReportKind::user_input,
                                        ReportKind::compaction, ReportKind::retry,
                                        ReportKind::text_repetition}));
      break;
    case 10:
      agent.opinion(dice.one_of(std::array{Verdict::none, Verdict::progressing, Verdict::looping,
                                           Verdict::blocked}),
                    dice.once_in(2) ? std::optional(0.95) : std::nullopt,
                    dice.once_in(2) ? 0 : dice.from(1, static_cast<int>(agent.seq) + 1),
                    dice.once_in(3) ? "self" : "model");
      break;
    case 11:
      agent.loop();
      break;
    case 12:
      agent.helper();
      break;
    case 13:
      if (dice.once_in(20)) {
        Report end{.kind = ReportKind::end};
        end.detail = Outcome{};
        agent.say(std::move(end));
      } else if (dice.once_in(3)) {
        agent.kind(ReportKind::start);
      }
      break;
    default:
      agent.pass(Millis{dice.once_in(10) ? dice.from(0, 5'000'000) : dice.from(0, 30'000)});
  }
}

TEST(Sessions, replayed_give_the_same_healths) {
  for (int variant = 0; variant < variants(); ++variant) {
    Dice dice(static_cast<unsigned>(variant));
    Agent agent;
    for (int i = 0; i < 80; ++i) anything(agent, dice);
    agent.pass(1ms);
    Case again;
    again.session = 1;
    std::vector<Transition> changes;
    for (const auto& event : agent.events) again.fold(event, changes);
    again.expire(agent.now, changes);
    ASSERT_EQ(changes.size(), agent.changes.size()) << variant;
    for (std::size_t i = 0; i < changes.size(); ++i) {
      ASSERT_TRUE(changes[i].health.same_as(agent.changes[i].health)) << variant;
      ASSERT_EQ(changes[i].tick, agent.changes[i].tick) << variant;
      ASSERT_EQ(changes[i].reason, agent.changes[i].reason) << variant;
    }
  }
}

TEST(Sessions, go_on_the_same_from_a_snapshot) {
  for (int variant = 0; variant < variants(); ++variant) {
    Dice dice(static_cast<unsigned>(variant));
    Agent agent;
    for (int i = dice.from(0, 60); i > 0; --i) anything(agent, dice);
    const auto text = snapshot_of(agent.judged);
    Case restored;
    restored.session = 1;
    const auto read = read_snapshot(restored, text);
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_EQ(snapshot_of(restored), text) << variant;
    const auto from = agent.events.size();
    const auto known = agent.changes.size();
    for (int i = 0; i < 40; ++i) anything(agent, dice);
    std::vector<Transition> changes;
    for (auto at = from; at < agent.events.size(); ++at) restored.fold(agent.events[at], changes);
    restored.expire(agent.now, changes);
    ASSERT_EQ(changes.size(), agent.changes.size() - known) << variant;
    ASSERT_EQ(snapshot_of(restored), snapshot_of(agent.judged)) << variant;
  }
}

TEST(Sessions, change_only_when_they_said_they_would) {
  for (int variant = 0; variant < variants(); ++variant) {
    Dice dice(static_cast<unsigned>(variant));
    Agent agent;
    for (int i = 0; i < 60; ++i) {
      anything(agent, dice);
      const Case& judged = agent.judged;
      if (is_end(judged.history.lifecycle)) continue;
      const auto until = judged.health.valid_until;
      ASSERT_GT(until, agent.now) << variant;
      const auto horizon = until == never ? agent.now + 1000h : until - 1ms;
      const auto span = (horizon - agent.now).count();
      for (int look = 0; look < 3; ++look) {
        const auto at =
            agent.now +
            Millis{span > 0
                       ? dice.from(0, static_cast<int>(std::min<std::int64_t>(span, 2'000'000'000)))
                       : 0};
        const auto health = judge(judged.history, *judged.policy, at);
        ASSERT_TRUE(health.same_as(judged.health))
            << variant << ": " << name_of(judged.health.kind) << " became " << name_of(health.kind);
      }
    }
  }
}

TEST(Sessions, with_something_new_every_four_rounds_are_never_stuck) {
  for (int variant = 0; variant < variants(); ++variant) {
    Dice dice(static_cast<unsigned>(variant));
    Agent agent;
    const auto args = object("a", dice.word());
    for (int state = 0; state < 20; ++state) {
      agent.state(object("n", std::to_string(state)));
      for (int round = dice.from(0, 4); round > 0; --round) {
        if (dice.once_in(2)) {
          agent.call("read", args, "the same");
        } else {
          agent.fail("read", args, "the same");
        }
      }
    }
    EXPECT_WORK(agent, variant);
  }
}

TEST(Sessions, new_state_always_clears_a_suspicion) {
  int suspicions = 0;
  // They are rare, and few variants may have none.
  for (int variant = 0; variant < variants() || (suspicions == 0 && variant < 200); ++variant) {
    Dice dice(static_cast<unsigned>(variant));
    Agent agent;
    for (int i = 0; i < 60; ++i) {
      anything(agent, dice);
      if (agent.health() != HealthKind::suspect) continue;
      ++suspicions;
      agent.state(object("new", std::to_string(i)));
      ASSERT_NE(agent.health(), HealthKind::suspect) << variant << ": " << agent.story();
    }
  }
  EXPECT_GT(suspicions, 0);
}

TEST(Sessions, end_is_final) {
  for (int variant = 0; variant < variants(); ++variant) {
    Dice dice(static_cast<unsigned>(variant));
    Agent agent;
    for (int i = 0; i < 20; ++i) anything(agent, dice);
    Report end{.kind = ReportKind::end};
    end.detail = Outcome{};
    agent.say(std::move(end));
    const auto known = agent.changes.size();
    for (int i = 0; i < 30; ++i) {
      if (dice.once_in(2)) {
        agent.call("read", "a", "b");
      } else {
        agent.pass(1h).loop();
      }
    }
    ASSERT_EQ(agent.changes.size(), known) << variant;
  }
}

TEST(Sessions, stay_small_whatever_is_reported) {
  Dice dice(1);
  Agent agent;
  std::size_t largest = 0;
  for (int i = 0; i < test::repetitions(100'000); ++i) {
    agent.begin("tool " + std::to_string(i) + std::string(200, 'x'), dice.words(80),
                std::to_string(i) + std::string(200, 'y'));
    if (dice.once_in(2)) agent.done("tool " + std::to_string(i - dice.from(0, 3)), dice.words(3));
    agent.events.clear();
    if (i % 500 == 0) largest = std::max(largest, snapshot_of(agent.judged).size());
  }
  EXPECT_LT(largest, 64'000U) << "as JSON text, which is several times what it takes in memory";
}

}  // namespace
}  // namespace watchdog
