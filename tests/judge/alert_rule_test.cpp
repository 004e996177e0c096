#include "judge/alert_rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <sstream>

#include "support/scenario.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;

const Instant start{Millis{1'000'000}};

/// A session by a line of text: a word for how it is, or `+SECONDS`, `ack`, `snooze SECONDS`.
/// `notices_of` returns the alerts, each as `SECOND:WORD`. A recovery has a `-` before the word.
class Line {
 public:
  /// The lines count in minutes.
  explicit Line(AlertRules rules = {}) : rules_(std::move(rules)) {
    if (rules_.needs_input_for == AlertRules{}.needs_input_for) rules_.needs_input_for = 60s;
  }

  std::string notices_of(const std::string& text) {
    std::istringstream words(text);
    for (std::string word; words >> word;) {
      if (word.front() == '+') {
        pass(std::chrono::seconds(std::stoi(word.substr(1))));
      } else if (word == "ack") {
        acknowledge(state_);
      } else if (word == "snooze") {
        words >> word;
        snooze(state_, now_ + std::chrono::seconds(std::stoi(word)));
      } else {
        note(fold(state_, condition(word), rules_));
      }
    }
    return text_;
  }
  [[nodiscard]] const AlertState& state() const { return state_; }
  [[nodiscard]] const std::vector<AlertNotice>& notices() const { return notices_; }

 private:
  Condition condition(const std::string& word) {
    const auto health = named<HealthKind>(word);
    const auto wait = named<AlertCause>(word).value_or(AlertCause::blocked);
    const bool waits = wait == AlertCause::needs_input || wait == AlertCause::quota;
    auto made =
        waits ? condition_of(Health{.kind = HealthKind::blocked}, rules_, wait)
        : word == "quiet"
            ? condition_of(Health{.kind = HealthKind::slow, .pattern = Pattern::quiet}, rules_)
        : health ? condition_of(Health{.kind = *health}, rules_)
                 : condition_of(*named<Lifecycle>(word), rules_);
    made.reason = "it is " + word;
    made.tick = now_;
    made.at = WallTime{now_.time_since_epoch()};
    return made;
  }
  void pass(Millis time) {
    const auto until = now_ + time;
    while (due_of(state_, rules_) <= until) {
      now_ = std::max(now_, due_of(state_, rules_));
      note(next_due_notice(state_, now_, rules_));
    }
    now_ = until;
  }
  void note(const std::optional<AlertNotice>& notice) {
    if (!notice) return;
    notices_.push_back(*notice);
    if (!text_.empty()) text_ += ' ';
    const auto second = (now_ - start).count() / 1'000;
    text_ +=
        std::to_string(second) + (notice->kind == AlertKind::recovery ? ":-" : ":") + notice->word;
    if (notice->reason.starts_with("The trouble came and went")) text_ += "~";
  }

  AlertRules rules_;
  AlertState state_;
  Instant now_ = start;
  std::string text_;
  std::vector<AlertNotice> notices_;
};

struct Announced {
  const char* line;
  const char* notices_of;
};

TEST(AlertRule, reports_trouble_once_and_its_end_only_if_the_trouble_was_reported) {
  for (const auto& [line, notices_of] : {
           Announced{"progressing +10 slow +10 suspect +10 progressing", ""},
           Announced{"stuck +99999", "0:stuck"},
           Announced{"stuck +10 progressing +10 stuck", "0:stuck 10:-progressing 20:stuck"},
           Announced{"stuck +5 looping +5 stuck +5 slow", "0:stuck 15:-slow"},
           Announced{"stuck +5 suspect +5 silent +5 progressing", "0:stuck 15:-progressing"},
           Announced{"stuck +5 silent +5 dead +5 progressing", "0:stuck 10:dead 15:-progressing"},
           Announced{"stuck +5 failed", "0:stuck 5:failed"},
           Announced{"stuck +5 completed", "0:stuck 5:-completed"},
           Announced{"stuck +5 cancelled", "0:stuck 5:-cancelled"},
           Announced{"dead +5 failed", "0:dead"},
           Announced{"incomplete +5 unknown +5 failed", "0:incomplete 5:-unknown 10:failed"},
           Announced{"silent +100 progressing", ""},
           Announced{"blocked +1799 progressing", ""},
           Announced{"blocked +1801 progressing", "1800:blocked 1801:-progressing"},
           Announced{"blocked +1000 blocked +801", "1800:blocked"},
           Announced{"stuck +5 blocked +2000 stuck", "0:stuck 5:-blocked 1805:blocked 2005:stuck"},
       }) {
    EXPECT_EQ(Line().notices_of(line), notices_of) << line;
  }
}

TEST(AlertRule, reports_a_wait_for_a_person_after_a_minute) {
  for (const auto& [line, notices_of] : {
           Announced{"needs_input +59 progressing +100", ""},
           Announced{"needs_input +61 progressing", "60:needs_input 61:-progressing"},
           Announced{"needs_input +30 needs_input +31", "60:needs_input"},
           Announced{"needs_input +99999", "60:needs_input"},
           // The cause of the wait changes during the wait.
           Announced{"blocked +500 needs_input +61", "560:needs_input"},
           Announced{"blocked +1900 needs_input +61 progressing",
                     "1800:blocked 1960:needs_input 1961:-progressing"},
           Announced{"needs_input +61 blocked +1801", "60:needs_input"},
           Announced{"needs_input +61 blocked +9 progressing", "60:needs_input 70:-progressing"},
           Announced{"needs_input +61 quota +99 needs_input +9", "60:needs_input"},
           Announced{"needs_input +30 blocked +40 progressing", ""},
           Announced{"stuck +5 needs_input +61", "0:stuck 5:-needs_input 65:needs_input"},
           Announced{"needs_input +61 dead", "60:needs_input 61:dead"},
           Announced{"needs_input +61 ack +99999 progressing",
                     "60:needs_input 100060:-progressing"},
       }) {
    EXPECT_EQ(Line().notices_of(line), notices_of) << line;
  }
  EXPECT_EQ(Line({.hold = 300s}).notices_of("needs_input +61"), "60:needs_input");
  EXPECT_EQ(Line({.needs_input_for = 7s}).notices_of("needs_input +8"), "7:needs_input");
  EXPECT_EQ(Line({.on = {AlertCause::blocked}}).notices_of("needs_input +61"), "60:needs_input");
  EXPECT_EQ(Line({.on = {AlertCause::needs_input}}).notices_of("blocked +9999 needs_input +61"),
            "10059:needs_input");
  EXPECT_EQ(Line({.on = {AlertCause::dead}}).notices_of("needs_input +9999"), "");
  // A second wait is not a recovery, also if nobody wants to hear of it.
  EXPECT_EQ(Line({.on = {AlertCause::needs_input}})
                .notices_of("needs_input +61 blocked +9 needs_input +61 progressing"),
            "60:needs_input 131:-progressing");
}

TEST(AlertRule, reports_the_begin_and_the_end_of_a_wait_for_quota) {
  for (const auto& [line, notices_of] : {
           Announced{"quota +59 progressing +100", ""},
           Announced{"quota +61 progressing", "60:quota 61:-progressing"},
           Announced{"quota +99999", "60:quota"},
           Announced{"quota +61 blocked +1900", "60:quota"},
           Announced{"quota +61 needs_input +61", "60:quota 121:needs_input"},
       }) {
    EXPECT_EQ(Line().notices_of(line), notices_of) << line;
  }
  EXPECT_EQ(Line({.on = {AlertCause::blocked}}).notices_of("quota +61"), "60:quota");
  EXPECT_EQ(Line({.on = {AlertCause::dead}}).notices_of("quota +9999"), "");
}

TEST(AlertRule, calls_for_a_quiet_session_late_and_once) {
  for (const auto& [line, notices_of] : {
           Announced{"quiet +599 progressing +9999", ""},
           Announced{"quiet +9999", "600:quiet"},
           Announced{"quiet +601 progressing", "600:quiet 601:-progressing"},
           Announced{"quiet +601 stuck", "600:quiet 601:stuck"},
           Announced{"quiet +9 suspect +9999", "600:quiet"},
           Announced{"suspect +9999", ""},
       }) {
    EXPECT_EQ(Line().notices_of(line), notices_of) << line;
  }
  EXPECT_EQ(Line({.on = {AlertCause::stuck}}).notices_of("quiet +9999"), "");
}

TEST(AlertRule, calls_for_a_loop_or_a_suspicion_only_if_it_lasts) {
  for (const auto* word : {"looping", "suspect"}) {
    const auto notices_of = [&](const std::string& rest) {
      return Line({.on = {AlertCause::looping, AlertCause::suspect}}).notices_of(word + rest);
    };
    EXPECT_EQ(notices_of(" +19 progressing +9999"), "") << word;
    EXPECT_EQ(notices_of(" +29 progressing"), std::string("20:") + word + " 29:-progressing");
  }
}

TEST(AlertRule, waits_until_a_trouble_holds_where_it_is_to) {
  for (const auto& [line, notices_of] : {
           Announced{"stuck +59 progressing +100", ""},
           Announced{"stuck +61", "60:stuck"},
           Announced{"stuck +40 looping +40", "60:looping"},
           Announced{"stuck +30 silent +31 progressing", "60:stuck 61:-progressing"},
           Announced{"failed", "0:failed"},
           Announced{"stuck +30 failed", "30:failed"},
       }) {
    EXPECT_EQ(Line({.hold = 60s}).notices_of(line), notices_of) << line;
  }
}

TEST(AlertRule, reports_only_what_is_wanted) {
  const AlertRules rules{.on = {AlertCause::dead}};
  for (const auto& [line, notices_of] : {
           Announced{"stuck +10 failed", ""},
           Announced{"dead +10 stuck +10 progressing", "0:dead 20:-progressing"},
           Announced{"dead +10 incomplete", "0:dead 10:-incomplete"},
           Announced{"blocked +9999", ""},
           Announced{"dead +10 blocked", "0:dead 10:-blocked"},
       }) {
    EXPECT_EQ(Line(rules).notices_of(line), notices_of) << line;
  }
}

TEST(AlertRule, is_quiet_once_somebody_knows) {
  for (const auto& [line, notices_of] : {
           Announced{"stuck +5 ack +5 dead +5 progressing +5 stuck",
                     "0:stuck 15:-progressing 20:stuck"},
           Announced{"stuck +5 snooze 60 +99", "0:stuck 65:stuck"},
           Announced{"stuck +5 snooze 60 +10 dead +99", "0:stuck 65:dead"},
           Announced{"stuck +5 snooze 60 +10 progressing +99", "0:stuck 15:-progressing"},
           Announced{"stuck +5 snooze 60 +10 progressing +10 stuck +10 progressing",
                     "0:stuck 15:-progressing"},
           Announced{"stuck +5 snooze 60 +10 progressing +10 stuck +99",
                     "0:stuck 15:-progressing 65:stuck"},
           Announced{"stuck +5 snooze 60 +5 ack +99", "0:stuck"},
           Announced{"stuck +5 ack +5 snooze 60 +99", "0:stuck 70:stuck"},
           Announced{"snooze 60 stuck +5 progressing +99", ""},
       }) {
    EXPECT_EQ(Line().notices_of(line), notices_of) << line;
  }
}

TEST(AlertRule, says_once_that_something_comes_and_goes) {
  const AlertRules rules{.flap_changes = 3, .flap_window = 100s};
  for (const auto& [line, notices_of] : {
           Announced{"stuck +1 slow +1 stuck +1 slow +1 stuck +1 slow +99",
                     "0:stuck 1:-slow 2:stuck 3:slow~"},
           Announced{"stuck +1 slow +1 stuck +1 slow +1 stuck +1 slow +100",
                     "0:stuck 1:-slow 2:stuck 3:slow~ 105:-slow"},
           Announced{"stuck +1 slow +1 stuck +1 slow +1 stuck +100",
                     "0:stuck 1:-slow 2:stuck 3:slow~ 104:stuck"},
           Announced{"stuck +60 slow +60 stuck +60 slow +60 stuck",
                     "0:stuck 60:-slow 120:stuck 180:-slow 240:stuck"},
           Announced{"stuck +1 ack slow +1 stuck +1 ack +1 slow +1 stuck",
                     "0:stuck 1:-slow 2:stuck 4:-slow 5:stuck~"},
       }) {
    EXPECT_EQ(Line(rules).notices_of(line), notices_of) << line;
  }
}

TEST(AlertRule, gives_all_alerts_about_one_trouble_the_same_mark) {
  Line line;
  line.notices_of("stuck +5 dead +5 progressing +5 stuck");
  const auto& notices_of = line.notices();
  ASSERT_EQ(notices_of.size(), 4U);
  EXPECT_EQ(notices_of[1].episode, notices_of[0].episode);
  EXPECT_EQ(notices_of[2].episode, notices_of[0].episode);
  EXPECT_NE(notices_of[3].episode, notices_of[0].episode);
}

TEST(AlertRule, forgets_sessions_that_are_calm) {
  Line line({.flap_window = 10s});
  line.notices_of("stuck +1 progressing");
  EXPECT_FALSE(line.state().is_forgettable(start + 10s, {.flap_window = 10s}));
  EXPECT_TRUE(line.state().is_forgettable(start + 11s, {.flap_window = 10s}));
}

TEST(AlertRule, a_finished_turn_is_alerted_where_it_is_wanted_and_its_end_is_not) {
  const auto notices_of = [](const std::string& line) {
    return Line({.on = {AlertCause::idle, AlertCause::looping, AlertCause::blocked}})
        .notices_of(line);
  };
  EXPECT_EQ(notices_of("idle +119 progressing +500"), "");
  EXPECT_EQ(notices_of("idle +121 progressing +500"), "120:idle");
  EXPECT_EQ(notices_of("idle +121 completed +500"), "120:idle");
  EXPECT_EQ(notices_of("looping +25 idle +500"), "20:looping 25:-idle 145:idle");
  EXPECT_EQ(notices_of("idle +121 needs_input +61"), "120:idle 181:needs_input");
  EXPECT_EQ(notices_of("idle +121 progressing +9 idle +121"), "120:idle 250:idle");
  std::string turns;
  for (int turn = 0; turn < 9; ++turn) turns += "idle +121 progressing +1 ";
  EXPECT_EQ(notices_of(turns).find('~'), std::string::npos) << "turns do not flap";
  EXPECT_EQ(Line().notices_of("idle +9999 silent +9999"), "") << "by default";
  EXPECT_EQ(Line({.on = {AlertCause::silent}}).notices_of("silent +5 progressing"),
            "0:silent 5:-progressing");
}

TEST(AlertRule, holds_its_promises_whatever_happens) {
  std::mt19937 random(test::random_seed());
  const auto pick = [&](int below) {
    return static_cast<int>(random() % static_cast<unsigned>(below));
  };
  const std::vector<std::string> words{"progressing", "stuck",      "looping", "blocked",
                                       "dead",        "suspect",    "silent",  "failed",
                                       "completed",   "needs_input"};
  for (int round = 0; round < test::repetitions(20'000); ++round) {
    AlertRules rules{.hold = std::chrono::seconds(pick(2) * 20),
                     .blocked_for = 50s,
                     .needs_input_for = 20s,
                     .flap_changes = pick(3) * 2,
                     .flap_window = 60s};
    AlertState state;
    Instant now = start;
    bool open = false;  // an alert was sent, and no recovery yet
    bool known = false;
    Instant quiet_until{};
    std::vector<Instant> alerts;
    const auto check = [&](const std::optional<AlertNotice>& notice) {
      if (!notice) return;
      if (notice->kind == AlertKind::recovery) {
        EXPECT_TRUE(open) << "a recovery of what was not told";
        open = known = false;
        return;
      }
      EXPECT_FALSE(known) << "somebody knew";
      EXPECT_GE(now, quiet_until) << "it was snoozed";
      open = true;
      alerts.push_back(now);
    };
    for (int step = 0; step < 40; ++step) {
      switch (pick(12)) {
        case 0:
          if (open && state.episode != never) {
            acknowledge(state);
            known = true;
            quiet_until = {};
          }
          break;
        case 1:
          quiet_until = now + std::chrono::seconds(pick(100));
          snooze(state, quiet_until);
          known = false;
          break;
        default: {
          const auto& word = words[static_cast<std::size_t>(pick(static_cast<int>(words.size())))];
          const auto health = named<HealthKind>(word);
          auto condition = word == "needs_input" ? condition_of(Health{.kind = HealthKind::blocked},
                                                                rules, AlertCause::needs_input)
                           : health              ? condition_of(Health{.kind = *health}, rules)
                                                 : condition_of(*named<Lifecycle>(word), rules);
          condition.word = word;
          condition.tick = now;
          check(fold(state, condition, rules));
        }
      }
      EXPECT_EQ(open, state.episode != never);
      const auto until = now + std::chrono::seconds(pick(70));
      for (int notices_of = 0; due_of(state, rules) <= until; ++notices_of) {
        ASSERT_LT(notices_of, 4) << "it does not come to an end";
        EXPECT_FALSE(due_of(state, rules) > now &&
                     next_due_notice(state, due_of(state, rules) - 1ms, rules))
            << "before it is due";
        now = std::max(now, due_of(state, rules));
        check(next_due_notice(state, now, rules));
      }
      now = until;
    }
    if (rules.flap_changes == 0) continue;
    for (std::size_t at = 0; at < alerts.size(); ++at) {
      // The session goes to and fro `flap_changes` times, and one alert reports that. Trouble may
      // get worse twice each time. The rest is for snoozes.
      const auto within = std::ranges::count_if(
          alerts, [&](Instant other) { return alerts[at] <= other && other < alerts[at] + 60s; });
      EXPECT_LE(within, 3 * (rules.flap_changes + 1) + 12);
    }
  }
}

TEST(AlertGrouping, sends_alerts_together_that_belong_together_or_are_too_many) {
  const AlertRules rules{.messages_max = 3, .group_window = 60s};
  // A question is `?`, and a question of a child of p is `?p`.
  const auto messages_of = [&](const std::vector<std::string>& parents,
                               const std::vector<MessageMade>& recent, std::size_t asked = 0) {
    std::vector<AlertMade> alerts;
    for (const auto& parent : parents) {
      const bool asks = parent.starts_with('?');
      alerts.push_back({.parent = asks ? parent.substr(1) : parent, .asks = asks});
    }
    const auto grouping = group_alerts(alerts, recent, asked, start + 100s, rules);
    std::string text;
    for (const auto& message : grouping.messages) {
      text += '[';
      for (const auto at : message) text += std::to_string(at);
      text += ']';
    }
    if (grouping.next != never)
      text += "@" + std::to_string((grouping.next - start).count() / 1'000);
    return text;
  };
  const MessageMade a{.at = start + 70s};
  const MessageMade b{.at = start + 80s};
  const MessageMade c{.at = start + 90s};
  const MessageMade of_p{.at = start + 75s, .parent = "p"};
  EXPECT_EQ(messages_of({}, {}), "");
  EXPECT_EQ(messages_of({""}, {}), "[0]");
  EXPECT_EQ(messages_of({"", "", ""}, {}), "[0][1][2]");
  EXPECT_EQ(messages_of({"", "", "", ""}, {}), "[0123]");
  EXPECT_EQ(messages_of({"p", "q", "p", "p", "q"}, {}), "[023][14]");
  EXPECT_EQ(messages_of({"", ""}, {a, b}), "[01]");
  EXPECT_EQ(messages_of({"", ""}, {a, b, c}), "@130");
  EXPECT_EQ(messages_of({""}, {{.at = start + 40s}, a, b}), "[0]") << "the oldest counts no more";
  EXPECT_EQ(messages_of({"p", "", "q", "p"}, {of_p}), "[1][2]@135");
  EXPECT_EQ(messages_of({}, {a, b, c}), "") << "nobody waits";
  EXPECT_EQ(messages_of({"", "?", "?"}, {a, b, c}), "[1][2]@130") << "questions go out at once";
  EXPECT_EQ(messages_of({"?p", "?p", "p"}, {of_p}), "[0][1]@135") << "and alone";
  EXPECT_EQ(messages_of({"", "?", "", "", "?", ""}, {}), "[1][4][0235]");
  const std::vector<std::string> many(questions_alone_max + 5, "?");
  EXPECT_TRUE(messages_of(many, {}).ends_with("[19][2021222324]")) << "a storm is one message more";
  EXPECT_EQ(messages_of({"?", "?", "?", "?", "?"}, {}, questions_alone_max - 1), "[0][1234]")
      << "those of the last minute count";
}

}  // namespace
}  // namespace watchdog
