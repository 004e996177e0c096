// Settings of rules that act on sessions.
#include "config/configured.h"

namespace watchdog::test {
namespace {

TEST_F(Configured, rules_of_recovery_are_read) {
  write(R"([recovery]
on_ready = ["/bin/resume"]
[recovery.rules.tell]
dry_run = true
[recovery.rules.deny]
on = ["looping", "stuck"]
step = "refuse"
agent = "codex"
label = "team:mine"
at_most = 3
)");
  sources.environment["WATCHDOG_RECOVERY_RULES_DENY_AT_MOST"] = "2";
  const auto configuration = load();
  const auto& recovery = configuration.settings().recovery;
  EXPECT_EQ(recovery.on_ready, std::vector<std::string>{"/bin/resume"});
  ASSERT_EQ(recovery.rules.size(), 2U);
  const auto& tell = recovery.rules.at("tell");
  EXPECT_EQ(tell.on, std::vector{RecoveryState::looping});
  EXPECT_EQ(tell.step, RecoveryStep::nudge);
  EXPECT_EQ(tell.at_most, 1);
  EXPECT_TRUE(tell.dry_run);
  const auto& deny = recovery.rules.at("deny");
  EXPECT_EQ(deny.on, (std::vector{RecoveryState::looping, RecoveryState::stuck}));
  EXPECT_EQ(deny.step, RecoveryStep::refuse);
  EXPECT_EQ(deny.agent, "codex");
  EXPECT_EQ(deny.label, "team:mine");
  EXPECT_EQ(deny.at_most, 2);
  EXPECT_FALSE(deny.dry_run);
}

TEST_F(Configured, without_a_rule_nothing_acts) {
  EXPECT_TRUE(load().settings().recovery.rules.empty());
}

TEST_F(Configured, a_rule_that_must_not_be_is_refused_with_its_line) {
  const auto refused = [&](const std::string& text) {
    write("[recovery.rules.a]\n" + text + "\n");
    auto said = refusal();
    return said.substr(said.find("watchdog.toml"));
  };
  const std::string states = "; it must be one of \"looping\", \"stuck\", \"quiet\", \"dead\"\n";
  for (const auto* state : {"suspect", "slow", "waiting", "blocked"})
    EXPECT_EQ(refused("on = ['" + std::string(state) + "']"),
              "watchdog.toml:2: recovery.rules.a.on is \"" + std::string(state) + "\"" + states);
  EXPECT_EQ(refused("on = []"),
            "watchdog.toml:2: recovery.rules.a.on is empty; it must name a state, such as "
            "\"looping\"\n");
  EXPECT_EQ(refused("step = 'kill'"),
            "watchdog.toml:2: recovery.rules.a.step is \"kill\"; it must be one of \"nudge\", "
            "\"refuse\", \"end_call\", \"cancel\", \"command\"\n");
  EXPECT_EQ(refused("on = ['quiet']"),
            "watchdog.toml:2: recovery.rules.a.on has \"quiet\"; the step nudge is for "
            "\"looping\" and \"stuck\"\n");
  EXPECT_EQ(refused("on = ['looping']\nstep = 'end_call'"),
            "watchdog.toml:2: recovery.rules.a.on has \"looping\"; the step end_call needs on = "
            "[\"quiet\"]\n");
  EXPECT_EQ(refused("step = 'command'"),
            "watchdog.toml:2: recovery.rules.a.command is missing; the step command runs it\n");
  EXPECT_EQ(refused("command = ['ls']"),
            "watchdog.toml:2: recovery.rules.a.command is set; only the step command runs it\n");
  EXPECT_EQ(refused("step = 'command'\ncommand = ['ls']\nat_most = 4"),
            "watchdog.toml:4: recovery.rules.a.at_most is 4; of the step command at most 3 are "
            "allowed\n");
  EXPECT_EQ(refused("at_most = 3"),
            "watchdog.toml:2: recovery.rules.a.at_most is 3; of the step nudge at most 2 are "
            "allowed\n");
  EXPECT_EQ(refused("step = 'cancel'\nat_most = 2"),
            "watchdog.toml:3: recovery.rules.a.at_most is 2; of the step cancel at most 1 is "
            "allowed\n");
  EXPECT_EQ(refused("at_most = 0"),
            "watchdog.toml:2: recovery.rules.a.at_most is 0; it must be an integer from 1 to "
            "10\n");
  EXPECT_EQ(refused("label = 'mine'"),
            "watchdog.toml:2: recovery.rules.a.label is \"mine\"; it must be KEY:VALUE\n");
  EXPECT_EQ(refused("after_seconds = 60"),
            "watchdog.toml:2: unknown setting recovery.rules.a.after_seconds\n");
  write("[recovery.rules.\"a b\"]\nstep = 'nudge'\n");
  EXPECT_NE(refusal().find("a rule's name is 1 to 64 letters, digits, _ and -"), std::string::npos)
      << refusal();
  write("[[recovery]]\nstep = 'nudge'\n");
  EXPECT_NE(refusal().find("recovery is a section: [recovery]"), std::string::npos) << refusal();
}

}  // namespace
}  // namespace watchdog::test
