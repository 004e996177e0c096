// Whether a rule acts. The property test draws histories of facts and lets the rules act on them.
// No act may happen that a promise excludes, whatever came before.
#include "core/recovery_rule.h"

#include <gtest/gtest.h>

#include <random>

#include "support/agent.h"

namespace watchdog::monitor {
namespace {

using namespace std::chrono_literals;
using test::Agent;

constexpr RecoveryFacts::Reach reached{.now = true, .ever = true};

RecoveryRules all_steps() {
  return {{"a-stop", {.step = RecoveryStep::cancel}},
          {"b-deny", {.step = RecoveryStep::refuse, .at_most = 2}},
          {"c-tell", {.step = RecoveryStep::nudge}}};
}

RecoveryFacts looping() {
  return {
      .health = {.kind = HealthKind::looping, .pattern = Pattern::same_call, .evidence = {3, 17}},
      .is_identical_call = true,
      .repeated_at = 17,
      .nudge = reached,
      .refuse = reached};
}

TEST(RecoveryRules, the_mildest_step_comes_first_and_the_next_one_when_it_is_used_up) {
  auto facts = looping();
  std::vector<std::string> acts;
  while (const auto decision = decide(all_steps(), facts)) {
    acts.push_back(decision.rule);
    ++facts.acts[decision.rule];
    facts.acted_at = 20;
  }
  EXPECT_EQ(acts, (std::vector<std::string>{"c-tell", "b-deny", "b-deny", "a-stop"}));
  EXPECT_EQ(decide(all_steps(), facts).why_not, "no rule is left for this verdict");
}

TEST(RecoveryRules, a_harder_step_waits_for_something_that_is_repeated) {
  auto facts = looping();
  facts.is_identical_call = false;
  EXPECT_EQ(decide(all_steps(), facts).rule, "c-tell");
  facts.acts = {{"c-tell", 1}};
  facts.acted_at = 17;
  EXPECT_FALSE(decide(all_steps(), facts));
  facts.repeated_at = 18;
  EXPECT_FALSE(decide(all_steps(), facts)) << "only an identical call is refused";
  facts.is_identical_call = true;
  EXPECT_EQ(decide(all_steps(), facts).rule, "b-deny");
}

TEST(RecoveryRules, an_agent_that_takes_no_nudge_is_refused_at_once) {
  auto facts = looping();
  facts.nudge = {.now = false, .ever = true};
  EXPECT_FALSE(decide(all_steps(), facts)) << "it takes one at another event";
  facts.nudge = {};
  EXPECT_EQ(decide(all_steps(), facts).rule, "b-deny");
  facts.refuse = {};
  EXPECT_EQ(decide(all_steps(), facts).rule, "a-stop");
}

TEST(RecoveryRules, a_quiet_or_dead_session_has_its_own_steps) {
  const RecoveryRules rules{{"end", {.on = {RecoveryState::quiet}, .step = RecoveryStep::end_call}},
                            {"again",
                             {.on = {RecoveryState::dead},
                              .step = RecoveryStep::command,
                              .command = {"restart"},
                              .at_most = 2}}};
  RecoveryFacts facts{.health = {.kind = HealthKind::slow, .pattern = Pattern::quiet},
                      .end_call = reached,
                      .command = reached};
  EXPECT_EQ(decide(rules, facts).rule, "end");
  facts.end_call.now = false;
  EXPECT_FALSE(decide(rules, facts)) << "its processes were seen to work, or are not known";
  facts.end_call.now = true;
  facts.health.pattern = Pattern::below_pace;
  EXPECT_FALSE(decide(rules, facts)) << "it is only slow";
  facts.health = {.kind = HealthKind::dead};
  EXPECT_EQ(decide(rules, facts).rule, "again");
  facts.acts = {{"again", 1}};
  facts.is_pause_over = false;
  EXPECT_FALSE(decide(rules, facts));
  facts.is_pause_over = true;
  EXPECT_EQ(decide(rules, facts).rule, "again");
  facts.acts = {{"again", 2}};
  EXPECT_FALSE(decide(rules, facts)) << "then a person is needed";
}

TEST(RecoveryRules, a_program_waits_for_the_milder_steps_at_hooks) {
  auto rules = all_steps();
  rules["d-run"] = {.step = RecoveryStep::command, .command = {"reset"}};
  auto facts = looping();
  facts.nudge = facts.refuse = facts.cancel = {.now = false, .ever = true};  // between events
  facts.command = reached;
  EXPECT_FALSE(decide(rules, facts));
  facts.nudge = facts.refuse = facts.cancel = {};  // the agent has no hooks
  EXPECT_EQ(decide(rules, facts).rule, "d-run");
}

TEST(RecoveryRules, pauses_grow) {
  EXPECT_EQ(pause_after(1), 1min);
  EXPECT_EQ(pause_after(2), 5min);
  EXPECT_EQ(pause_after(3), 25min);
}

/// One of the values, by chance.
template <class T>
T any_of(std::mt19937& random, std::initializer_list<T> values) {
  return *(values.begin() + random() % values.size());
}

RecoveryRules any_rules(std::mt19937& random) {
  RecoveryRules rules;
  for (const auto* name : {"a", "b", "c", "d"}) {
    const auto step =
        any_of(random, {RecoveryStep::nudge, RecoveryStep::refuse, RecoveryStep::cancel,
                        RecoveryStep::end_call, RecoveryStep::command});
    rules[name] = {.on = any_of<std::vector<RecoveryState>>(
                       random, {{RecoveryState::looping},
                                {RecoveryState::stuck},
                                {RecoveryState::quiet},
                                {RecoveryState::dead, RecoveryState::stuck},
                                {RecoveryState::looping, RecoveryState::stuck}}),
                   .step = step,
                   .agent = any_of<std::string>(random, {"", "", "codex"}),
                   .label = any_of<std::string>(random, {"", "", "team:mine"}),
                   .at_most = step == RecoveryStep::cancel ? 1 : any_of(random, {1, 2})};
  }
  return rules;
}

RecoveryFacts any_facts(std::mt19937& random) {
  const auto chance = [&](unsigned of) { return random() % of == 0; };
  constexpr auto healths = static_cast<unsigned>(std::size(Names<HealthKind>::all));
  RecoveryFacts facts;
  facts.is_paused = chance(8);
  facts.health.kind = chance(3) ? static_cast<HealthKind>(random() % healths) : HealthKind::looping;
  facts.health.pattern =
      chance(3) ? static_cast<Pattern>(random() % pattern_count) : Pattern::same_call;
  facts.lifecycle = any_of(random, {Lifecycle::running, Lifecycle::running, Lifecycle::running,
                                    Lifecycle::waiting, Lifecycle::idle, Lifecycle::failed});
  facts.is_cancelled = chance(8);
  facts.is_server_unwell = chance(8);
  facts.agent = any_of<std::string>(random, {"codex", "claude-code"});
  if (chance(2)) facts.labels = {"team:mine"};
  facts.is_identical_call = chance(2);
  facts.repeated_at = static_cast<Seq>(random() % 50);
  facts.nudge = {.now = chance(2), .ever = true};
  facts.refuse = {.now = chance(2), .ever = true};
  for (auto* reach : {&facts.end_call, &facts.command, &facts.cancel}) {
    reach->ever = chance(2);
    reach->now = reach->ever && chance(2);
  }
  facts.is_pause_over = !chance(4);
  return facts;
}

void expect_allowed(const RecoveryDecision& decision, const RecoveryRule& rule,
                    const RecoveryFacts& facts) {
  const auto kind = facts.health.kind;
  const bool is_quiet = kind == HealthKind::slow && facts.health.pattern == Pattern::quiet;
  const bool repeats = kind == HealthKind::looping || kind == HealthKind::stuck;
  EXPECT_TRUE(repeats || is_quiet || kind == HealthKind::dead) << name_of(kind);
  const auto wanted = is_quiet                      ? RecoveryState::quiet
                      : kind == HealthKind::looping ? RecoveryState::looping
                      : kind == HealthKind::stuck   ? RecoveryState::stuck
                                                    : RecoveryState::dead;
  EXPECT_TRUE(std::ranges::find(rule.on, wanted) != rule.on.end());
  // Of a server, a pace, silence, a model or a turn that an error ended nobody here is guilty.
  EXPECT_TRUE(!repeats || is_repetition(facts.health.pattern) ||
              facts.health.pattern == Pattern::no_state_change)
      << name_of(facts.health.pattern);
  EXPECT_FALSE(repeats && facts.health.pattern == Pattern::repeated_turns);
  EXPECT_EQ(facts.lifecycle, Lifecycle::running) << "it waits for a person, quota or a server";
  EXPECT_FALSE(facts.is_paused || facts.is_cancelled || facts.is_server_unwell);
  EXPECT_TRUE(!repeats || facts.is_identical_call || facts.repeated_at > facts.acted_at);
  EXPECT_TRUE(rule.agent.empty() || rule.agent == facts.agent);
  EXPECT_TRUE(rule.label.empty() || !facts.labels.empty());
  EXPECT_EQ(decision.step, rule.step);
  EXPECT_TRUE(decision.step != RecoveryStep::nudge || facts.nudge.now);
  EXPECT_TRUE(decision.step != RecoveryStep::end_call || facts.end_call.now);
  EXPECT_TRUE(decision.step != RecoveryStep::command || facts.command.now);
  EXPECT_TRUE(decision.step != RecoveryStep::cancel || facts.cancel.now);
  EXPECT_TRUE(decision.step != RecoveryStep::refuse ||
              (facts.refuse.now && facts.is_identical_call));
}

TEST(RecoveryRules, whatever_happens_no_act_breaks_a_promise) {
  std::mt19937 random(7);  // NOLINT: the same histories each time
  int done = 0;
  for (int history = 0; history < 2'000; ++history) {
    const auto rules = any_rules(random);
    std::map<std::string, int> acts;
    Seq acted_at = 0;
    for (int event = 0; event < 60; ++event) {
      auto facts = any_facts(random);
      facts.acts = acts;
      facts.acted_at = acted_at;
      const auto decision = decide(rules, facts);
      if (!decision) {
        EXPECT_FALSE(decision.why_not.empty());
        continue;
      }
      ++done;
      const auto& rule = rules.at(decision.rule);
      expect_allowed(decision, rule, facts);
      EXPECT_LE(++acts[decision.rule], rule.at_most);
      acted_at = std::max(acted_at, facts.repeated_at);
    }
  }
  EXPECT_GT(done, 2'000) << "the histories are too poor";
}

/// The mark of the call that the agent makes now.
CallMark mark_of(Agent& agent, const std::string& tool, const std::string& args) {
  agent.begin(tool, args);
  return agent.judged.history.open_calls->back().mark;
}

TEST(RecoveryRules, a_call_is_identical_if_its_newest_two_results_were_the_same) {
  const std::string args = R"({"command":"pytest tests/a"})";
  const auto is_identical = [](Agent& agent, const std::string& command) {
    const auto call = mark_of(agent, "Bash", R"({"command":")" + command + "\"}");
    return is_identical_call(*agent.judged.history.repetition, call);
  };
  Agent once;
  once.call("Bash", args, "2 failed");
  EXPECT_FALSE(is_identical(once, "pytest tests/a"));
  Agent twice;
  twice.call("Bash", args, "2 failed").call("Bash", args, "2 failed");
  EXPECT_TRUE(is_identical(twice, "pytest tests/a"));
  Agent other = twice;
  other.done("Bash", "2 failed");
  EXPECT_FALSE(is_identical(other, "pytest tests/b"));
  Agent changes;
  changes.call("Bash", args, "2 tests failed here").call("Bash", args, "1 test failed there");
  EXPECT_FALSE(is_identical(changes, "pytest tests/a"));
  Agent edits;
  edits.call("Bash", args, "2 failed").call("Bash", args, "2 failed");
  edits.call("Edit", R"({"file_path":"a.py","new_string":"x"})", "the file was changed");
  EXPECT_FALSE(is_identical(edits, "pytest tests/a")) << "after an edit its result may be another";
}

TEST(RecoveryRules, a_fact_counts_and_names_and_gives_no_advice) {
  const std::string args = R"({"command":"pytest tests/a"})";
  Agent agent;
  for (int i = 0; i < 6; ++i) agent.call("Bash", args, "2 failed");
  EXPECT_EQ(said_to_agent(fact_of(agent.judged, "pytest tests/a")),
            "watchdog-monitor (a local monitor that the user installed): the last 6 calls of Bash "
            "`pytest tests/a` gave the same result.");
  EXPECT_EQ(fact_of(agent.judged, ""), "the last 6 calls of Bash gave the same result.");
  agent.begin("Bash", args);
  const auto& history = agent.judged.history;
  EXPECT_EQ(refusal_of(*history.repetition, history.open_calls->back()),
            "the last 6 calls of Bash `pytest tests/a` gave the same result, so this one was not "
            "run.");
  Agent cycle;
  for (int i = 0; i < 6; ++i)
    cycle.call("read", "a", "text of a").call("grep", "b", "text of b that is another one");
  ASSERT_EQ(cycle.health(), HealthKind::looping);
  EXPECT_NE(fact_of(cycle.judged, "").find("read"), std::string::npos) << fact_of(cycle.judged, "");
}

TEST(RecoveryRules, a_sentence_has_no_secret_and_at_most_300_characters) {
  Agent agent;
  const std::string secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ";
  for (int i = 0; i < 6; ++i) agent.call("Bash", "x", "2 failed");
  EXPECT_EQ(fact_of(agent.judged, "curl -H 'Authorization: Bearer " + secret + "'").find(secret),
            std::string::npos);
  EXPECT_LE(said_to_agent(fact_of(agent.judged, std::string(4'000, 'x'))).size(), said_chars_max);
}

}  // namespace
}  // namespace watchdog::monitor
