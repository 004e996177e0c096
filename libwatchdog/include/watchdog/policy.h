/// \file
/// The causes of a judgement, and the thresholds by which a session is judged.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

/// The cause of a judgement. `none`: nothing was wrong.
enum class Pattern : std::uint8_t {
  none,
  no_state_change,       ///< iterations without a state change
  repetition,            ///< repetition; always shown by its kind, R1 … R15
  below_pace,            ///< below its own pace
  silence,               ///< heartbeats stopped
  server_status,         ///< the state of the model server
  model_check,           ///< a model's answer about the session
  declared_wait,         ///< a declared wait
  same_call,             ///< the same call with the same result, round after round
  same_failing_call,     ///< the same call failing, round after round
  cycle_of_calls,        ///< a cycle of 2 … 8 rounds
  repeated_calls,        ///< repetition and near-repetition within the latest rounds
  same_error,            ///< one tool with changing arguments, always the same error
  invalid_calls,         ///< unknown tools, or arguments that do not parse
  same_message,          ///< the same message with nothing between
  messages_only,         ///< messages with nothing between
  repeated_text,         ///< a text that repeats itself
  recurring_states,      ///< states that come back, in a cycle of 1 … 4
  repeated_compactions,  ///< context compactions with nothing between
  nothing_new,           ///< rounds that bring nothing new
  restated_text,         ///< messages that say what earlier ones said, in other words
  same_failure,          ///< a call that fails in the same way each time, with other work between
  rephrased_calls,       ///< one tool is asked for the same in other words
  repeated_turns,        ///< turns, or requests to the model, that begin or end as before
  quiet,                 ///< for long nothing moves, and nothing shows that it works

  // The codes by which schemas and older programs name them.
  F1 = no_state_change,
  F2 = repetition,
  F3 = below_pace,
  F4 = silence,
  F5 = server_status,
  F6 = model_check,
  F7 = declared_wait,
  F8 = quiet,
  R1 = same_call,
  R2 = same_failing_call,
  R3 = cycle_of_calls,
  R4 = repeated_calls,
  R5 = same_error,
  R6 = invalid_calls,
  R7 = same_message,
  R7b = messages_only,
  R8 = repeated_text,
  R9 = recurring_states,
  R10 = repeated_compactions,
  R11 = nothing_new,
  R12 = restated_text,
  R13 = same_failure,
  R14 = rephrased_calls,
  R15 = repeated_turns,
};

template <>
struct Names<Pattern> {
  static constexpr std::string_view all[] = {
      "none", "F1", "F2",  "F3", "F4", "F5",  "F6",  "F7",  "R1",  "R2",  "R3",  "R4", "R5",
      "R6",   "R7", "R7b", "R8", "R9", "R10", "R11", "R12", "R13", "R14", "R15", "F8"};
};

inline constexpr std::size_t pattern_count =
    std::size(Names<Pattern>::all);  ///< The number of patterns, `none` included.

/// Returns true for a kind of repetition.
[[nodiscard]] constexpr bool is_repetition(Pattern pattern) noexcept {
  return pattern >= Pattern::same_call && pattern <= Pattern::repeated_turns;
}

/// Returns true for signs that are too weak to count as a loop, however often they come. A session
/// with one of them stays suspect until a model, or the agent itself, says that it loops.
[[nodiscard]] constexpr bool is_graded(Pattern pattern) noexcept {
  return pattern >= Pattern::restated_text && pattern <= Pattern::rephrased_calls;
}

/// How a tool's calls count for repetition.
enum class ToolUse : std::uint8_t {
  ordinary,
  paging,  ///< requests the next part each time: a repeat counts half
  poll,    ///< asks until something happens: a repeated answer counts nothing
  exempt   ///< does not count
};

template <>
struct Names<ToolUse> {
  static constexpr std::string_view all[] = {"ordinary", "paging", "poll", "exempt"};
};

/// A rule for one tool. A plain value.
struct ToolRule {
  ToolUse use = ToolUse::ordinary;  ///< How its calls count.
  /// Members of the arguments that identify a call; empty: all. At most 16 names.
  std::vector<std::string> identity{};

  friend bool operator==(const ToolRule&, const ToolRule&) = default;
};

/// The counts of a pattern from which a session is suspect, and from which it is looping; `stuck`
/// 0: never. Lower counts find loops earlier and raise more false alarms.
struct Bounds {
  double suspect = 0;  ///< From this count on the session is suspect.
  double stuck = 0;    ///< From this count on it is looping; 0: never.
  friend bool operator==(const Bounds&, const Bounds&) = default;
};

/// Constants of the rules of repetition, chosen on recorded runs. No setting, session or patch
/// changes them: they are members of the policy so that a study can try other values. The page
/// *Measurements of the detection* has the result of each.
struct RepetitionWeights {
  int window = 8;              ///< Latest rounds that a round is compared with; 1 … 8.
  double repeated_once = 1.0;  ///< The same call and result, once in the window.
  double repeated_more = 1.5;  ///< And more than once.
  double nearly_once = 0.75;   ///< Other arguments, the same informative result.
  double nearly_more = 1.0;    ///< And more than once.
  /// The same call, failing with the same exit code but another text. Alone it is a suspicion at
  /// most, because the number of failing tests may fall.
  double failed_alike = 0.5;
  double decay = 0.75;       ///< Subtracted by a round that repeats nothing.
  double similar_min = 0.3;  ///< Similarity of the arguments of a near-repetition.
  /// Factor for a repeat that follows something new: after an edit the same test is run again, and
  /// may fail as before. Such repeats alone never confirm a loop.
  double tested_again = 0.5;
  double tested_often = 0.25;  ///< For the third time, and more.
  /// A new state is worth more than an empty bucket: four rounds after it prove nothing yet.
  double credit = 1.5;
  int pass_min = 12;  ///< A pass over many things visits this number; a second pass is work.

  /// A message of which so much was said before says little new. Below the other share most is new.
  double restated_share = 0.75;
  double new_share = 0.5;  ///< See restated_share.
  int failure_rounds =
      20;  ///< After as many rounds without it, a failure gives way to another one.
  double rephrased_min = 0.3;   ///< Similarity of the arguments of requests that say the same.
  int new_round_subtracts = 2;  ///< New rounds end a slow circle faster than old ones make it.

  friend bool operator==(const RepetitionWeights&, const RepetitionWeights&) = default;
};

inline constexpr std::size_t tools_max = 64;  ///< Rules of tools in a policy, at most.

/// Thresholds of one session. A plain value. No field ends a session: they change a label, start a
/// check or send a notice.
struct Policy {
  /// The usual interval of a live agent's heartbeats. 100 ms … 1 h. Longer: `alive` and `silent`
  /// react later.
  Millis heartbeat_interval{10'000};
  /// Loop heartbeats without a state change that make a session stuck; as many rounds or heartbeats
  /// without anything new confirm a suspicion. 2 … 10,000. Higher: empty loops are found later;
  /// lower: agents with long phases cause false alarms.
  std::int64_t stuck_threshold = 5;
  /// Missed intervals before silence, on top of the longest gap seen lately. 1 … 1,000.
  std::int64_t silence_intervals = 3;
  /// How long an open tool call without progress excuses missing state changes. 1 s … 7 days.
  Millis call_idle_max{120'000};
  /// True: a model may be asked about a suspicious session.
  bool concurrent_checks = true;

  /// The expected time between two changes before a session has its own; these outweigh it from the
  /// ninth on. 10 ms … 7 days.
  Millis usual_interval{30'000};
  /// Standard deviations of the logarithm of its own intervals from which a session is slow, and
  /// suspect; 0.1 … 10. The defaults mean one interval in 1,000 and in 100,000 (phi 3 and 5 of a
  /// normal distribution; Hayashibara et al., The phi accrual failure detector, 2004).
  double slow_deviations = 3.09;
  /// See slow_deviations.
  double suspect_deviations = 4.265;
  /// Shorter durations are never slow, or suspect. 0 … 7 days.
  Millis slow_min{15'000};
  /// See slow_min.
  Millis suspect_min{45'000};

  /// Bounds of each pattern of repetition. They are counts (calls, laps, messages, hits, rounds),
  /// and for `repeated_calls` the score of the window.
  std::array<Bounds, pattern_count> patterns = default_patterns();
  /// Repeated pairs of call and result among the latest 20 rounds that make a session looping
  /// (`repeated_calls`); a pair that follows something new counts half. 0.5 … 19: the first of 20
  /// repeats nothing.
  double repeated_of_20 = 4.5;
  /// New states that revoke an alarm; two new calls count as one. 1 … 100. Higher: an agent that
  /// breaks out of its loop is called looping for longer; lower: the alarm flaps.
  std::int64_t recovery_changes = 2;
  /// Rules of tools, by name. At most `tools_max`.
  std::map<std::string, ToolRule> tools{};
  RepetitionWeights weights{};  ///< Constants; see there.

  /// Returns the default bounds.
  [[nodiscard]] static constexpr std::array<Bounds, pattern_count> default_patterns() {
    std::array<Bounds, pattern_count> bounds{};
    const auto set = [&](Pattern pattern, double suspect, double stuck) {
      bounds[static_cast<std::size_t>(pattern)] = {suspect, stuck};
    };
    set(Pattern::same_call, 3, 5);
    set(Pattern::same_failing_call, 3, 5);
    set(Pattern::cycle_of_calls, 3, 4);
    set(Pattern::repeated_calls, 2.0, 2.75);
    set(Pattern::same_error, 5, 8);
    set(Pattern::invalid_calls, 3, 8);
    set(Pattern::same_message, 3, 5);
    set(Pattern::messages_only, 6, 0);
    set(Pattern::repeated_text, 1, 2);
    set(Pattern::recurring_states, 3, 4);
    set(Pattern::repeated_compactions, 3, 10);
    set(Pattern::nothing_new, 8, 25);
    set(Pattern::restated_text, 8, 0);
    set(Pattern::same_failure, 5, 0);
    set(Pattern::rephrased_calls, 5, 0);
    set(Pattern::repeated_turns, 5, 8);
    return bounds;
  }

  friend bool operator==(const Policy&, const Policy&) = default;
};

/// A change of one pattern's bounds.
struct BoundsPatch {
  std::optional<double> suspect{};  ///< See Bounds.
  std::optional<double> stuck{};    ///< See Bounds.
  friend bool operator==(const BoundsPatch&, const BoundsPatch&) = default;
};

/// A change to a policy: only the fields that are set change. A plain value.
struct PolicyPatch {
  std::optional<Millis> heartbeat_interval{};       ///< See Policy, as of all further members.
  std::optional<std::int64_t> stuck_threshold{};    ///< See Policy.
  std::optional<std::int64_t> silence_intervals{};  ///< See Policy.
  std::optional<Millis> call_idle_max{};            ///< See Policy.
  std::optional<bool> concurrent_checks{};          ///< See Policy.
  std::optional<Millis> usual_interval{};           ///< See Policy.
  std::optional<double> slow_deviations{};          ///< See Policy.
  std::optional<double> suspect_deviations{};       ///< See Policy.
  std::optional<Millis> slow_min{};                 ///< See Policy.
  std::optional<Millis> suspect_min{};              ///< See Policy.
  std::map<Pattern, BoundsPatch> patterns{};        ///< See Policy.
  std::optional<double> repeated_of_20{};           ///< See Policy.
  std::optional<std::int64_t> recovery_changes{};   ///< See Policy.
  std::map<std::string, ToolRule> tools{};          ///< Each replaces the rule of its tool.

  friend bool operator==(const PolicyPatch&, const PolicyPatch&) = default;
};

/// The policy with the patch applied.
[[nodiscard]] Policy patched(Policy policy, const PolicyPatch& patch);
/// One patch that does what both do, one after the other.
[[nodiscard]] PolicyPatch patched(PolicyPatch first, const PolicyPatch& then);
/// Returns the policy of a session: its own statements count before those for all sessions, which
/// are left out where both together would not be allowed.
[[nodiscard]] Policy policy_of(const PolicyPatch& for_all, const PolicyPatch& own);

/// Checks that each field is in its range. Errors: `invalid`, naming the field and its range.
[[nodiscard]] Result<void> check(const PolicyPatch& patch);
/// Checks that the thresholds are consistent. Errors: `invalid`, naming the field and the reason.
[[nodiscard]] Result<void> check(const Policy& policy);

/// Returns a digest of all thresholds. Transitions carry it, so readers know their policy.
[[nodiscard]] std::uint64_t digest_of(const Policy& policy);

}  // namespace watchdog
