/// \file
/// Decides which rule of the monitor's owner acts on a session, and what an agent reads of it.
/// Pure: no clock, no memory, no I/O.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/health.h"
#include "watchdog/settings.h"

namespace watchdog::monitor {

/// Rules by their names.
using RecoveryRules = std::map<std::string, RecoveryRule>;

/// What a decision depends on: the session at one event of its agent's hook, or between events. A
/// plain value.
struct RecoveryFacts {
  bool is_paused = false;  ///< The owner paused all rules.
  Health health{};         ///< The verdict with its proof.
  Lifecycle lifecycle = Lifecycle::running;
  bool is_cancelled = false;          ///< Somebody asked it to stop.
  bool is_server_unwell = false;      ///< Its model server hangs or cannot be reached.
  std::string agent{};                ///< The name of its agent.
  std::vector<std::string> labels{};  ///< Each as `KEY:VALUE`.
  /// The event is a call that the newest same calls answered with the same result, and nothing new
  /// came since.
  bool is_identical_call = false;
  Seq repeated_at = 0;  ///< The newest finished call, if it repeats an earlier one; else 0.
  Seq acted_at = 0;     ///< The session's newest event at the newest act for this verdict; 0: none.
  std::map<std::string, int> acts{};  ///< Acts for this verdict so far, by rule.
  double draw = 1;                    ///< See draw_of.
  std::set<std::string> off{};        ///< Rules that switched themselves off.
  /// Whether the agent takes such an act at this event, and at any event.
  struct Reach {
    bool now = false;
    bool ever = false;
  };
  Reach nudge{}, refuse{}, end_call{}, command{};
  Reach cancel{.now = true, .ever = true};
  /// A pause follows each act of the steps end_call and command.
  bool is_pause_over = true;
};

/// The pause after the act of this number: 1 min, 5 min, 25 min.
[[nodiscard]] Millis pause_after(int number);

/// One act of a rule, or the reason why no rule acts. A plain value.
struct RecoveryDecision {
  std::string rule{};  ///< Empty: nothing is done.
  RecoveryStep step = RecoveryStep::nudge;
  bool dry_run = false;
  bool is_held_out = false;    ///< Nothing is done for this verdict, to compare.
  std::string_view why_not{};  ///< Why nothing is done.

  [[nodiscard]] explicit operator bool() const noexcept { return !rule.empty(); }
};

/// Decides. For one verdict the mildest step comes first; a harder one follows only after its rules
/// are used up, and only if the agent repeated something since. A rule may hold a verdict out when
/// its turn comes; then nothing more is done for that verdict. Nothing acts on a suspicion, a
/// prediction or a time, nor while the session waits or rests.
[[nodiscard]] RecoveryDecision decide(const RecoveryRules& rules, const RecoveryFacts& facts);

/// Returns whether the session runs, and is looping, stuck, quiet or dead.
[[nodiscard]] bool has_verdict(const Case& judged);
/// Returns whether a model server of the session hangs, restarted or cannot be reached.
[[nodiscard]] bool is_server_unwell(const History& history);
/// Returns the newest finished call, if it repeats an earlier one; else 0.
[[nodiscard]] Seq newest_repeat(const Repetition& repetition);

/// Returns whether the newest two same calls had the same result, and nothing new came since.
[[nodiscard]] bool is_identical_call(const Repetition& repetition, const CallMark& call);

/// An agent reads at most this many characters of us.
inline constexpr std::size_t said_chars_max = 300;

/// Returns what the session repeats and how often, without its prefix: a fact, no advice.
/// `command`: of the newest call; empty: unknown. Secrets are redacted.
[[nodiscard]] std::string fact_of(const Case& judged, std::string_view command);
/// Returns the same of one call that is denied.
[[nodiscard]] std::string refusal_of(const Repetition& repetition, const OpenCall& call);
/// Puts the sender before a fact, and cuts it to `said_chars_max`.
[[nodiscard]] std::string said_to_agent(std::string_view fact);

}  // namespace watchdog::monitor
