// Whether acts help. The simulation draws sessions that recover with known probabilities, with and
// without an act. The book must find these, switch off what does harm, and leave alone what does
// not.
#include "core/recovery_trial.h"

#include <gtest/gtest.h>

#include <random>

#include "core/recovery_act.h"
#include "core/recovery_rule.h"
#include "support/agent.h"

namespace watchdog::monitor {
namespace {

using test::Agent;

Health looping(Seq first) {
  return {
      .kind = HealthKind::looping, .pattern = Pattern::same_call, .evidence = {first, first + 9}};
}

AuditEntry act(const std::string& rule, const std::string& session, Seq verdict, bool is_held_out,
               bool dry_run = false) {
  return entry_of(
      planned({.rule = rule, .dry_run = dry_run, .is_held_out = is_held_out}, looping(verdict), 0),
      session, {});
}

/// Ends the only open trial.
void end(TrialBook& book, bool recovered, std::string_view agent = "codex") {
  const auto open = book.open();
  ASSERT_EQ(open.size(), 1U);
  book.add(end_of(open.front(), recovered, agent));
}

TEST(RecoveryTrials, a_first_act_is_a_trial_and_a_dry_run_is_none) {
  TrialBook book;
  book.add(act("tell", "s", 12, false, true));
  EXPECT_TRUE(book.open().empty());
  book.add(act("tell", "s", 12, false));
  book.add(act("tell", "s", 12, false));
  const auto open = book.open();
  ASSERT_EQ(open.size(), 1U) << "the second act is of the same trial";
  EXPECT_EQ(open[0].verdict, 12);
  EXPECT_FALSE(open[0].is_held_out);
  EXPECT_EQ(open[0].proof, "looping (R1), events 12 to 21");
}

TEST(RecoveryActs, an_outcome_is_taken_apart_as_it_was_put_together) {
  const auto said = [](std::string_view outcome) {
    const auto parts = proven(outcome);
    return parts ? parts->result + " | " + parts->proof + " | " + std::to_string(parts->first) +
                       " | " + std::to_string(parts->last)
                 : std::string("no proof");
  };
  EXPECT_EQ(said(act("tell", "s", 12, false).outcome),
            "ok | looping (R1), events 12 to 21 | 12 | 21");
  EXPECT_EQ(said(act("tell", "s", 12, false, true).outcome),
            "would nudge | looping (R1), events 12 to 21 | 12 | 21");
  EXPECT_EQ(said(act("tell", "s", 12, true).outcome),
            "held out | looping (R1), events 12 to 21 | 12 | 21");
  EXPECT_EQ(said("did not start: no such program: x: dead (F4), event 40"),
            "did not start: no such program: x | dead (F4), event 40 | 40 | 40");
  EXPECT_EQ(said("2 processes ended: slow (F8)"), "2 processes ended | slow (F8) | 0 | 0");
  for (const auto* none : {"ok", "404", "", ": ", "does harm: 0 of 20 recovered", "x: looping",
                           "x: loop (R1), event 3", "looping (R1), event 3"})
    EXPECT_EQ(said(none), "no proof") << none;
  EXPECT_EQ(said("x: dead (F4), events 99999999999999999999 to 5"),
            "x | dead (F4), events 99999999999999999999 to 5 | 0 | 5");
}

TEST(RecoveryTrials, ends_are_counted_once_by_rule_and_agent) {
  TrialBook book;
  book.add(act("tell", "s", 12, false));
  const auto done = end_of(book.open().front(), true, "codex");
  EXPECT_EQ(done.outcome, "recovered (codex): looping (R1), events 12 to 21");
  book.add(done);
  book.add(done);
  book.add(act("tell", "s", 12, false));
  EXPECT_TRUE(book.open().empty()) << "a late entry of another monitor";
  book.add(act("tell", "t", 7, true));
  end(book, false, "a name (with) signs: odd");
  const auto& counts = book.counts();
  ASSERT_EQ(counts.size(), 2U);
  EXPECT_EQ(counts.at({"tell", "codex"}).acted.recovered, 1);
  EXPECT_EQ(counts.at({"tell", "codex"}).acted.all, 1);
  EXPECT_EQ(counts.at({"tell", "other"}).held_out.recovered, 0);
  EXPECT_EQ(counts.at({"tell", "other"}).held_out.all, 1);
}

TEST(RecoveryTrials, an_end_counts_although_its_act_is_too_old_to_be_kept) {
  TrialBook before;
  before.add(act("tell", "s", 3, true));
  const auto done = end_of(before.open().front(), true, "codex");
  TrialBook book;
  book.add(done);
  EXPECT_EQ(book.counts().at({"tell", "codex"}).held_out.recovered, 1);
}

TEST(RecoveryTrials, a_verdict_is_drawn_once_and_evenly) {
  EXPECT_EQ(draw_of("s", 12), draw_of("s", 12));
  int held_out = 0;
  constexpr int sessions = 10'000;
  for (int at = 0; at < sessions; ++at) {
    const double draw = draw_of("session-" + std::to_string(at / 10), at % 10);
    ASSERT_GE(draw, 0);
    ASSERT_LT(draw, 1);
    if (draw < 0.2) ++held_out;
  }
  EXPECT_NEAR(held_out, sessions / 5, 160) << "four deviations";
}

TEST(RecoveryTrials, a_held_out_verdict_gets_no_other_act) {
  const RecoveryRules rules{{"tell", {.hold_out = 0.2}},
                            {"stop", {.step = RecoveryStep::cancel, .hold_out = 0.2}}};
  RecoveryFacts facts{.health = looping(3),
                      .is_identical_call = true,
                      .repeated_at = 30,
                      .draw = 0.3,
                      .nudge = {.now = true, .ever = true}};
  EXPECT_FALSE(decide(rules, facts).is_held_out);
  facts.draw = 0.1;
  const auto decision = decide(rules, facts);
  EXPECT_TRUE(decision.is_held_out);
  EXPECT_EQ(decision.rule, "tell");
  EXPECT_EQ(planned(decision, facts.health, 0).words(), "held out: nudge");
  EXPECT_FALSE(planned(decision, facts.health, 0).does_something());
  facts.acts["tell"] = 1;
  EXPECT_EQ(decide(rules, facts).why_not, "the verdict is held out");
  facts.off = {"tell"};
  EXPECT_EQ(decide(rules, facts).rule, "stop");
}

TEST(RecoveryTrials, a_loop_recovers_when_it_is_over_and_not_by_time) {
  Agent agent;
  agent.kind(ReportKind::start);
  const auto call = [&] { agent.call("Bash", R"({"command":"make"})", "2 failed"); };
  for (int at = 0; at < 40 && !has_verdict(agent.judged); ++at) call();
  ASSERT_TRUE(has_verdict(agent.judged));
  const auto start = TrialStart::of(agent.judged);
  EXPECT_GE(start.pace, 3);
  EXPECT_EQ(has_recovered(start, agent.judged), std::nullopt);
  agent.pass(std::chrono::hours{24});
  EXPECT_EQ(has_recovered(start, agent.judged), std::nullopt) << "time says nothing";
  auto other = agent;
  for (int at = 0; at < start.pace; ++at) call();
  EXPECT_EQ(has_recovered(start, agent.judged), false);
  for (int at = 0; at < 12 && has_verdict(other.judged); ++at)
    other.call("Edit", R"({"file":"part)" + std::to_string(at) + R"(.c"})",
               "line " + std::string(static_cast<std::size_t>(at) + 1, 'x'));
  EXPECT_EQ(has_recovered(start, other.judged), true);
}

TEST(RecoveryTrials, an_end_of_the_session_ends_its_trial) {
  Agent agent;
  agent.kind(ReportKind::start);
  for (int at = 0; at < 40 && !has_verdict(agent.judged); ++at)
    agent.call("Bash", R"({"command":"make"})", "2 failed");
  const auto start = TrialStart::of(agent.judged);
  const auto ended = [&](OutcomeKind kind) {
    auto copy = agent;
    Report report{.kind = ReportKind::end};
    report.detail = Outcome{.kind = kind};
    copy.say(std::move(report));
    return has_recovered(start, copy.judged);
  };
  EXPECT_EQ(ended(OutcomeKind::completed), true);
  EXPECT_EQ(ended(OutcomeKind::failed), false);
}

/// Shares of sessions that recover, and what the book made of them.
struct Simulated {
  TrialBook book;
  int trials_until_off = 0;  ///< 0: the rule was never off.

  Simulated(double with_act, double without, double hold_out, int trials, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> any(0, 1);
    for (int at = 1; at <= trials && trials_until_off == 0; ++at) {
      const auto session = std::to_string(seed) + "-" + std::to_string(at);
      const bool is_held_out = draw_of(session, 5) < hold_out;
      book.add(act("tell", session, 5, is_held_out));
      const bool recovered = any(random) < (is_held_out ? without : with_act);
      book.add(end_of(book.open().front(), recovered, "codex"));
      for (const auto& [rule, counts] : book.harmful()) {
        book.add(switch_off(rule, counts));
        trials_until_off = at;
      }
    }
  }
};

TEST(RecoveryTrials, the_report_finds_the_truth) {
  int covered = 0;
  constexpr int rules = 100;
  for (int at = 0; at < rules; ++at) {
    const Simulated simulated(0.45, 0.16, 0.2, 300, at);
    const auto& counts = simulated.book.counts().at({"tell", "codex"});
    const auto with = counts.acted.interval();
    const auto without = counts.held_out.interval();
    covered += with.low <= 0.45 && 0.45 <= with.high ? 1 : 0;
    covered += without.low <= 0.16 && 0.16 <= without.high ? 1 : 0;
    EXPECT_EQ(simulated.trials_until_off, 0) << "it helps";
  }
  EXPECT_GE(covered, 2 * rules * 0.92)
      << "95 of 100 intervals must contain the true share, less the chance of so few rules";
}

TEST(RecoveryTrials, a_rule_that_harms_is_off_soon_and_one_that_does_nothing_stays) {
  constexpr int rules = 200;
  int off = 0;
  int falsely_off = 0;
  for (int at = 0; at < rules; ++at) {
    off += Simulated(0.2, 0.6, 0.2, 400, at).trials_until_off > 0 ? 1 : 0;
    falsely_off += Simulated(0.4, 0.4, 0.2, 1'000, 10'000 + at).trials_until_off > 0 ? 1 : 0;
  }
  EXPECT_GE(off, rules * 0.95);
  EXPECT_LE(falsely_off, rules * 0.05);
  RecordProperty("off", off);
  RecordProperty("falsely_off", falsely_off);
}

TEST(RecoveryTrials, resuming_lets_a_rule_act_and_begins_its_count_again) {
  TrialBook book;
  for (int at = 0; at < 40; ++at) {
    book.add(act("tell", std::to_string(at), 5, at % 2 == 0));
    end(book, at % 2 == 0);
  }
  ASSERT_EQ(book.harmful().size(), 1U);
  const auto entry = switch_off("tell", book.harmful().at("tell"));
  EXPECT_EQ(entry.outcome, "does harm: 0 of 20 recovered after an act, and 20 of 20 without one");
  book.add(entry);
  EXPECT_TRUE(book.harmful().empty());
  EXPECT_EQ(book.off(), std::set<std::string>{"tell"});
  book.add({.action = AuditAction::resume_recovery, .outcome = "ok"});
  EXPECT_TRUE(book.off().empty());
  EXPECT_TRUE(book.harmful().empty());
  EXPECT_EQ(book.counts().at({"tell", "codex"}).acted.all, 20) << "the report keeps all";
}

}  // namespace
}  // namespace watchdog::monitor
