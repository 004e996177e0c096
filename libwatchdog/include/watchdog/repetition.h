/// \file
/// What a session repeats: bounded, folded call by call, independent of how long it runs.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/pattern.h"
#include "watchdog/policy.h"
#include "watchdog/report.h"

namespace watchdog {

/// A finished round: a call with its result, or several calls that ran at once.
struct Step {
  Seq seq = 0;               ///< The event that finished it.
  std::uint64_t call = 0;    ///< Tools and arguments.
  std::uint64_t result = 0;  ///< 0: there was none.
  std::uint64_t exact = 0;   ///< Of the whole result by its source; 0: unknown.
  std::uint32_t tool = 0;
  bool failed = false;
  bool informative = false;  ///< Its result says more than "done".
  bool blind = false;        ///< Its call or its result is not known: it convicts nobody.
  bool again = false;        ///< It repeated something.
  float weight = 0;          ///< As a repeated pair of call and result.
  std::vector<std::uint32_t> shingles;  ///< Of its arguments; only of the newest few, as
  std::vector<Marks::Field> fields;     ///< these.

  /// The results say the same: without what varies, or by the source's own digests.
  [[nodiscard]] bool same_result(const Step& other) const noexcept {
    return result == other.result || (exact != 0 && exact == other.exact);
  }
};

/// How often the same happened in a row.
struct Streak {
  std::int32_t count = 0;
  Seq first = 0;

  void extend(Seq seq) noexcept {
    if (count++ == 0) first = seq;
  }
  void restart(Seq seq) noexcept {
    count = 1;
    first = seq;
  }
};

/// Whether things come in a cycle of one period: each lap is compared with the first, and one of
/// three or more elements may be missing.
class Cycle {
 public:
  static constexpr std::size_t period_max = 8;
  /// The newest things, the last at the end; as many as there were, up to `period_max`.
  using Recent = std::vector<std::pair<std::uint64_t, Seq>>;

  /// Takes the newest of `recent`.
  void take(const Recent& recent, std::size_t period) noexcept;

  std::array<std::uint64_t, period_max> lap{};
  std::uint8_t at = 0;    ///< Which element of the lap is expected.
  bool missed = false;    ///< This lap misses an element already.
  std::int32_t laps = 0;  ///< Complete ones, the first among them.
  Seq first = 0;
};

/// Cycles of some periods over one sequence.
class Cycles {
 public:
  void take(std::uint64_t digest, Seq seq, std::size_t period_min, std::size_t period_max);
  void clear() noexcept { *this = {}; }
  /// The cycle with the most laps, the shortest of several; none without two laps.
  [[nodiscard]] const Cycle* longest() const noexcept;

  Cycle::Recent recent;
  std::vector<Cycle> by_period;  ///< Empty until something was taken.
};

/// The newest digests of a kind, each once.
class Known {
 public:
  static constexpr std::size_t digests_max = 256;
  /// True if it is new; then it is known from now on.
  bool add(std::uint64_t digest);
  [[nodiscard]] bool has(std::uint64_t digest) const noexcept;

  std::vector<std::uint32_t> digests;
  std::uint32_t at = 0;  ///< Where the next one goes once there are `digests_max`.
};

/// Calls that run at once. They count as one step.
struct Round {
  std::uint32_t number = 0;
  std::int32_t open = 0;
  std::int32_t finished = 0;
  Step sum;
  bool malformed = false;
  bool unreachable = false;
  ToolUse use = ToolUse::ordinary;
  std::vector<std::uint64_t> calls;  ///< Different ones; at most 16.
};

/// What is counted of messages; set back when an answer is asked for again.
struct Talk {
  std::uint64_t newest = 0;
  Streak same;
  Streak any;
  Streak chants;
};

/// A confirmed repetition, kept until enough is new.
struct Alarm {
  Pattern pattern = Pattern::none;
  Seq first = 0;
  Seq last = 0;
  double count = 0;
  std::int32_t recovered = 0;  ///< New calls since; a new state counts as two.
};

/// How bad a finding is.
enum class Level : std::uint8_t { none, suspect, stuck };

struct Finding {
  Pattern pattern = Pattern::none;
  Level level = Level::none;
  double count = 0;
  Seq first = 0;           ///< Where it began,
  Seq last = 0;            ///< and its newest event.
  bool conclusive = true;  ///< False: no confirmation makes more of it than a suspicion.
};

/// How a call takes part: by its tool's rule.
struct CallMark {
  std::uint64_t call = 0;
  std::uint32_t tool = 0;
  std::uint32_t round = 0;  ///< 0: it takes no part.
  ToolUse use = ToolUse::ordinary;
  bool malformed = false;
  bool blind = false;  ///< What was asked is not known.
  bool twin = false;   ///< The same call runs in this round already.
};

/// Of a result whose call is not known.
[[nodiscard]] CallMark unknown_call(std::string_view tool);

/// Everything that is remembered of a session to see what it repeats. A plain value of at most some
/// 8 KiB.
class Repetition {
 public:
  static constexpr std::size_t compared_max = 8;
  static constexpr std::size_t steps_max = 20;

  [[nodiscard]] CallMark begin_call(const Report& report, Seq seq, const Policy& policy);
  void finish_call(const CallMark& call, const Report& result, Seq seq, const Policy& policy);
  /// A result whose call is not known. One that says nothing is no step.
  void take_result(const Report& result, Seq seq, const Policy& policy);
  /// A call that nothing more will be heard of.
  void drop_call(const CallMark& call, Seq seq, const Policy& policy);
  /// True if nobody gave up waiting for this tool with these arguments before; it is known from now
  /// on.
  [[nodiscard]] bool add_timeout(const CallMark& call);
  void take_state(const Marks& marks, Seq seq, const Policy& policy);
  /// A change of state that says only that there was one.
  void take_bare_state(Seq seq, const Policy& policy);
  /// `marks` may be null.
  void take_message(std::string_view role, const Marks* marks, Seq seq, const Policy& policy);
  void take_chant(Seq seq);
  void take_compaction(Seq seq);
  /// The newest answer is asked for again: it did not happen.
  void take_retry();
  /// A user's word begins everything anew; what is known stays known.
  void take_user_input(Seq seq);

  /// The worst of what is seen now. Confirmed ones stay until enough is new.
  [[nodiscard]] Finding finding(const Policy& policy) const;
  /// Keeps a confirmed repetition.
  void confirm(const Finding& found);

  std::vector<Step> steps;  ///< Since the newest new state; oldest first.
  double score = 0;         ///< Of R4.
  double evidence = 0;      ///< What the newest step added to it.
  bool echo = false;        ///< The newest step repeats the one right before it.
  Streak same_result;       // R1
  Streak same_error;        // R2
  Streak thrash;            // R5
  Streak unparsed;          // R6
  Streak compactions;       // R10
  Streak barren;            // R11
  Cycles rounds;            // R3
  Cycles states;            // R9
  bool took_step = false;   ///< The newest event was a round, or a state that says enough.
  Talk talk;                // R7, R7b, R8
  Talk before_answer;       ///< The same before the newest message.
  Known known_steps;
  Known known_states;
  Round round;
  bool graced = false;  ///< A compaction was forgiven since the newest thing that was new.
  bool novel = false;   ///< The newest event taken was something new.
  Seq state_seq = 0;    ///< The newest change of state that was new, or did not say what changed.
  Alarm alarm;
  std::string tool;  ///< The newest finished call's, its first 64 bytes.

 private:
  void take_step(Step step, ToolUse use, bool malformed, const Policy& policy);
  void complete_round(Seq seq, const Policy& policy);
  void forget_rounds();
  void quieten();
  void begin_anew();
  void recover(std::int32_t by, const Policy& policy);
};

/// True if two rounds are about different targets: their arguments have the same members, and all
/// that differ are atomic; or they are commands of which one word differs.
[[nodiscard]] bool other_target(const Step& a, const Step& b) noexcept;

/// The similarity of two samples of shingles, 0 … 1: what they have in common of all they have.
[[nodiscard]] double similarity(const std::vector<std::uint32_t>& a,
                                const std::vector<std::uint32_t>& b) noexcept;

}  // namespace watchdog
