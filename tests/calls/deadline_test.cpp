#include "watchdog/deadline.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "support/scenario.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;

constexpr Instant start{Millis{1'000'000}};

ResolvedDeadline resolved(const DeadlineSettings& settings, std::string_view tool = "x",
                          const DeadlinePolicy& policy = {}, const TimeoutHint& hint = {},
                          const DeadlineBounds& bounds = {}) {
  return resolve(settings, tool, policy, hint, bounds);
}

TEST(Deadline, is_two_minutes_without_progress_unless_somebody_says_otherwise) {
  const auto limits = resolved({});
  EXPECT_EQ(limits.idle, 120s);
  EXPECT_FALSE(limits.hard);
  EXPECT_EQ(limits.provenance, "default");
}

TEST(Deadline, profiles_are_three_sets_of_limits) {
  const auto front = resolved({.profile = DeadlineProfile::interactive});
  EXPECT_EQ(front.idle, 30s);
  EXPECT_EQ(front.hard, 45s);
  EXPECT_EQ(resolved({.profile = DeadlineProfile::batch}).idle, 600s);
}

TEST(Deadline, is_decided_from_the_general_to_the_particular) {
  DeadlineSettings settings{.timeout = 60s, .timeout_origin = "AGENT_TOOL_TIMEOUT"};
  EXPECT_EQ(resolved(settings).idle, 60s);
  EXPECT_EQ(resolved(settings).provenance, "default < AGENT_TOOL_TIMEOUT");
  const DeadlinePolicy own{.idle = 90s};
  EXPECT_EQ(resolved(settings, "x", own).idle, 90s);
  EXPECT_EQ(resolved(settings, "x", own).provenance, "default < AGENT_TOOL_TIMEOUT < tool");
  settings.per_tool["x"] = 7s;
  EXPECT_EQ(resolved(settings, "x", own).idle, 7s);
  EXPECT_EQ(resolved(settings, "x", own, {.timeout = 20s}).idle, 20s);
  EXPECT_EQ(resolved(settings, "x", own, {.timeout = 20s}).provenance,
            "default < AGENT_TOOL_TIMEOUT < tool < configured for the tool < hint");
}

TEST(Deadline, of_browsers_and_fetches_is_their_own) {
  EXPECT_EQ(resolved({}, "browser").idle, 180s);
  EXPECT_EQ(resolved({}, "web_fetch").idle, 60s);
  EXPECT_EQ(resolved({}, "web_search").idle, 60s);
}

TEST(Deadline, zero_is_none) {
  EXPECT_FALSE(resolved({.timeout = 0ms}).idle);
  EXPECT_FALSE(resolved({}, "x", {.idle = 0ms}).idle);
  DeadlineSettings settings;
  settings.per_tool["x"] = 0ms;
  const auto limits = resolved(settings, "x", {.idle = 5s, .hard = 9s});
  EXPECT_FALSE(limits.idle);
  EXPECT_FALSE(limits.hard);
}

TEST(Deadline, a_callers_cap_is_above_a_models_wish_and_says_so) {
  const auto limits = resolved({}, "x", {}, {.timeout = 300s}, {.cap = 45s});
  EXPECT_EQ(limits.hard, 45s);
  EXPECT_EQ(limits.note, "requested 300s, clamped to 45s");
  EXPECT_EQ(limits.provenance, "default < hint < cap");
}

TEST(Deadline, a_models_wish_has_bounds) {
  EXPECT_EQ(resolved({}, "x", {}, {.timeout = 7'200s}).idle, 3'600s);
  EXPECT_EQ(resolved({}, "x", {}, {.timeout = 7'200s}).note, "requested 7200s, clamped to 3600s");
  EXPECT_EQ(resolved({}, "x", {}, {.timeout = 10ms}).idle, 1s);
  EXPECT_EQ(resolved({}, "x", {}, {.timeout = 10ms}).note, "requested 0.010s, raised to 1s");
  EXPECT_EQ(resolved({}, "x", {.hard = 30s}, {.timeout = 50s}).hard, 50s);
  EXPECT_TRUE(resolved({}, "x", {}, {.timeout = 50s}).note.empty());
}

TEST(Deadline, is_never_longer_than_what_it_is_part_of) {
  EXPECT_EQ(resolved({}, "x", {}, {}, {.scope = 10s}).hard, 10s);
  const auto limits = resolved({}, "x", {.hard = 60s}, {}, {.budget = 5s, .scope = 10s});
  EXPECT_EQ(limits.hard, 5s);
  EXPECT_EQ(limits.hard_kind, TimeoutKind::budget);
}

TEST(Deadline, of_a_tool_with_its_own_timeout_is_a_net_below_it) {
  const auto limits = resolved({}, "x", {.tool_managed = true, .ceiling = 40s});
  EXPECT_FALSE(limits.idle);
  ActivityDeadline deadline(limits, start);
  EXPECT_EQ(deadline.expired(start + 40s), TimeoutKind::ceiling);
}

TEST(Deadline, of_remote_progress_has_a_cap_and_of_ones_own_has_none) {
  EXPECT_EQ(resolved({}, "x", {.trust = ProgressTrust::declared}).hard, 3'600s);
  EXPECT_EQ(resolved({}, "x", {.hard = 10s, .trust = ProgressTrust::declared}).hard, 10s);
  EXPECT_FALSE(resolved({}, "x", {.trust = ProgressTrust::trusted}).hard);
}

TEST(Deadline, mistakes_are_refused_and_named) {
  EXPECT_TRUE(check(DeadlineSettings{}).ok());
  for (const auto bad : {Millis{-1}, deadline_max + 1ms, Millis::max(), Millis::min()}) {
    const auto refused = check(DeadlineSettings{.timeout = bad});
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.error().message.find(std::to_string(bad.count())), std::string::npos);
    EXPECT_FALSE(check(DeadlineSettings{.per_tool = {{"x", bad}}}).ok());
    EXPECT_FALSE(check(DeadlineSettings{.hint_max = bad}).ok());
    EXPECT_FALSE(check(DeadlinePolicy{.hard = bad}).ok());
  }
}

TEST(TimeoutHint, is_read_where_models_put_it_and_taken_out) {
  std::string arguments = R"({"a":1,"_meta":{"timeout":5000}})";
  EXPECT_EQ(extract_hint(arguments, {}).timeout, 5s);
  EXPECT_EQ(arguments, R"({"a":1})");
  arguments = R"({"_meta":{"timeout":5000,"more":2}})";
  EXPECT_EQ(extract_hint(arguments, {}).timeout, 5s);
  EXPECT_EQ(arguments, R"({"_meta":{"more":2}})");
  arguments = R"({"_timeout":2500,"z":"ä"})";
  EXPECT_EQ(extract_hint(arguments, {}).timeout, 2'500ms);
  EXPECT_EQ(arguments, R"({"z":"ä"})");
}

TEST(TimeoutHint, stays_where_the_tool_declares_it) {
  std::string arguments = R"({"timeout":3000})";
  EXPECT_FALSE(extract_hint(arguments, {}).timeout) << "it may mean anything";
  EXPECT_EQ(arguments, R"({"timeout":3000})");
  EXPECT_FALSE(extract_hint(arguments, {"timeout"}).timeout) << "its unit is the tool's own";
  EXPECT_EQ(arguments, R"({"timeout":3000})");
  arguments = R"({"_timeout":3000})";
  EXPECT_EQ(extract_hint(arguments, {"_timeout"}).timeout, 3s);
  EXPECT_EQ(arguments, R"({"_timeout":3000})");
}

TEST(TimeoutHint, is_understood_in_the_spellings_of_other_shells) {
  struct Row {
    const char* arguments;
    Millis timeout;
    const char* note;
  };
  for (const auto& row :
       {Row{R"({"timeout_ms":90000})", 90s, ""}, Row{R"({"timeout_ms":1500})", 1'500ms, ""},
        Row{R"({"timeout":10000})", 10s, "timeout is understood as 10000 ms"},
        Row{R"({"timeout":600})", 600s, "timeout is understood as 600000 ms"},
        Row{R"({"timeout_seconds":2.5})", 2'500ms, "timeout_seconds is understood as 2500 ms"},
        Row{R"({"timeoutMs":7000})", 7s, "write timeout_ms"},
        Row{R"({"_timeout":600})", 600s, "_timeout is understood as 600 s"}}) {
    std::string arguments = row.arguments;
    const auto hint = extract_hint(arguments, {"command", "timeout_ms"}, true);
    ASSERT_TRUE(hint.timeout) << row.arguments;
    EXPECT_EQ(*hint.timeout, row.timeout) << row.arguments;
    EXPECT_EQ(arguments, "{}");
    EXPECT_NE(hint.note.find(row.note), std::string::npos) << hint.note;
    EXPECT_EQ(hint.note.empty(), row.note[0] == '\0') << hint.note;
  }
  std::string own = R"({"timeout":5})";
  EXPECT_FALSE(extract_hint(own, {"timeout", "timeout_ms"}, true).timeout)
      << "it is the tool's own";
}

TEST(TimeoutHint, that_is_none_is_ignored_with_a_note) {
  for (const auto* value : {"0", "-5", "\"5000\"", "null", "[]", "0.2", "-1e300", "true"}) {
    auto arguments = std::string(R"({"_timeout":)") + value + "}";
    const auto hint = extract_hint(arguments, {});
    EXPECT_FALSE(hint.timeout) << value;
    EXPECT_NE(hint.note.find("ignored"), std::string::npos) << value;
    EXPECT_EQ(arguments, "{}");
  }
  for (const auto* text : {"", "timeout", "{\"_timeout\":", "[\"_timeout\"]", "\"_timeout\""}) {
    std::string arguments = text;
    EXPECT_FALSE(extract_hint(arguments, {}).timeout);
    EXPECT_EQ(arguments, text);
  }
  std::string huge = R"({"_timeout":1e300})";
  const auto hint = extract_hint(huge, {});
  ASSERT_TRUE(hint.timeout);
  EXPECT_EQ(resolved({}, "x", {}, hint).idle, 3'600s);
}

TEST(ActivityDeadline, progress_keeps_a_call_alive_for_hours) {
  ActivityDeadline deadline(resolved({}), start);
  auto now = start;
  for (int step = 1; step <= 360; ++step) {
    now += 100s;
    ASSERT_FALSE(deadline.expired(now)) << step;
    ASSERT_TRUE(deadline.progress(step, now));
  }
  EXPECT_EQ(now - start, 10h);
  EXPECT_EQ(deadline.next_expiry(), now + 120s);
}

TEST(ActivityDeadline, a_value_that_does_not_rise_is_not_progress) {
  ActivityDeadline deadline(resolved({}), start);
  ASSERT_TRUE(deadline.progress(5, start));
  for (const double value : {5.0, 4.0, std::nan(""), std::numeric_limits<double>::infinity(),
                             -std::numeric_limits<double>::infinity()}) {
    EXPECT_FALSE(deadline.progress(value, start + 60s));
  }
  EXPECT_FALSE(deadline.progress_bytes(0, start + 60s));
  EXPECT_EQ(deadline.accepted(), 1);
  EXPECT_EQ(deadline.rejected(), 6);
  EXPECT_EQ(deadline.expired(start + 120s), TimeoutKind::idle);
  EXPECT_TRUE(deadline.progress_bytes(1, start + 60s));
  EXPECT_FALSE(deadline.expired(start + 120s));
}

// github.com/modelcontextprotocol/typescript-sdk, 2695 and 2817
TEST(ActivityDeadline, the_hard_limit_is_counted_from_the_start) {
  ActivityDeadline deadline(resolved({}, "x", {.hard = 600s}), start);
  for (int second = 1; second < 600; second += 2) deadline.progress(second, start + second * 1s);
  EXPECT_EQ(deadline.next_expiry(), start + 600s);
  EXPECT_FALSE(deadline.expired(start + 599'999ms));
  EXPECT_EQ(deadline.expired(start + 600s), TimeoutKind::hard);
  EXPECT_EQ(ActivityDeadline(resolved({}, "x", {.hard = 10s}), start).next_expiry(), start + 10s);
}

TEST(ActivityDeadline, may_be_a_plain_timeout) {
  ActivityDeadline deadline(resolved({}, "x", {.idle = 10s, .extend_on_progress = false}), start);
  EXPECT_TRUE(deadline.progress(1, start + 9s));
  EXPECT_EQ(deadline.expired(start + 10s), TimeoutKind::idle);
}

TEST(ActivityDeadline, stands_still_while_somebody_is_waited_for) {
  ActivityDeadline deadline(resolved({}, "x", {.hard = 200s}), start);
  deadline.pause(PauseReason::awaiting_confirmation, start + 10s);
  deadline.pause(PauseReason::rate_limited, start + 20s);
  deadline.pause(PauseReason::awaiting_confirmation, start + 30s);
  EXPECT_EQ(deadline.next_expiry(), never);
  EXPECT_FALSE(deadline.expired(start + 1h));
  deadline.resume(PauseReason::awaiting_confirmation, start + 1h);
  EXPECT_TRUE(deadline.paused());
  deadline.resume(PauseReason::rate_limited, start + 1h);
  EXPECT_EQ(deadline.paused_for(), PauseReason::awaiting_confirmation);
  deadline.resume(PauseReason::awaiting_input, start + 1h);  // was not paused for
  EXPECT_TRUE(deadline.paused());
  deadline.resume(PauseReason::awaiting_confirmation, start + 1h + 10s);
  EXPECT_FALSE(deadline.paused());
  EXPECT_EQ(deadline.active(start + 1h + 10s), 10s);
  EXPECT_EQ(deadline.next_expiry(), start + 1h + 10s + 110s);
  EXPECT_EQ(deadline.in_pauses(start + 2h), 1h);
}

TEST(ActivityDeadline, a_machine_that_stood_still_costs_nobody_anything) {
  ActivityDeadline deadline(resolved({}), start);
  deadline.compensate(5s);
  EXPECT_EQ(deadline.next_expiry(), start + 125s);
  deadline.compensate(-5s);
  EXPECT_EQ(deadline.next_expiry(), start + 125s);
}

/// The same, as a list of intervals that count.
struct Reference {
  ResolvedDeadline limits;
  Millis active{};
  Millis progress_at{};
  int holds[4] = {};
  double value = -std::numeric_limits<double>::infinity();

  [[nodiscard]] bool paused() const { return holds[0] + holds[1] + holds[2] + holds[3] > 0; }
  void pass(Millis time) {
    if (!paused()) active += time;
  }
  [[nodiscard]] std::optional<TimeoutKind> expired() const {
    if (paused()) return std::nullopt;
    if (limits.hard && active >= *limits.hard) return limits.hard_kind;
    if (limits.idle && active - progress_at >= *limits.idle) return TimeoutKind::idle;
    return std::nullopt;
  }
};

TEST(ActivityDeadline, random_lives_agree_with_a_reference) {
  std::mt19937 random(test::random_seed());
  const auto below = [&](int bound) { return static_cast<int>(random() % unsigned(bound)); };
  for (int life = test::repetitions(20'000); life > 0; --life) {
    ResolvedDeadline limits;
    if (below(4) > 0) limits.idle = Millis{1 + below(50)};
    if (below(2) > 0) limits.hard = Millis{1 + below(200)};
    Reference expected{.limits = limits};
    ActivityDeadline deadline(limits, start);
    auto now = start;
    for (int step = 0; step < 60; ++step) {
      const auto passed = Millis{below(20)};
      now += passed;
      expected.pass(passed);
      switch (below(4)) {
        case 0: {
          const double value = below(30);
          const bool rises = value > expected.value;
          ASSERT_EQ(deadline.progress(value, now), rises);
          if (rises) {
            expected.value = value;
            expected.progress_at = expected.active;
          }
          break;
        }
        case 1: {
          const int which = below(4);
          ++expected.holds[which];
          deadline.pause(static_cast<PauseReason>(which), now);
          break;
        }
        case 2: {
          const int which = below(4);
          if (expected.holds[which] > 0) --expected.holds[which];
          deadline.resume(static_cast<PauseReason>(which), now);
          break;
        }
        default: {
          const auto stall = Millis{below(10)};
          now += stall;  // passes for the clock only
          deadline.compensate(stall);
          break;
        }
      }
      ASSERT_EQ(deadline.expired(now), expected.expired());
      ASSERT_EQ(deadline.active(now), expected.active);
      const auto expiry = deadline.next_expiry();
      if (expiry == never || expiry <= now) continue;
      ASSERT_FALSE(deadline.expired(expiry - 1ms));
      ASSERT_TRUE(deadline.expired(expiry));
    }
  }
}

}  // namespace
}  // namespace watchdog
