/// \file
/// An act of a rule, as the session's events and the audit log have it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/recovery_rule.h"
#include "store/audit.h"
#include "watchdog/report.h"

namespace watchdog::monitor {

/// How the outcome of an entry begins for a dry run, and for a verdict that is held out.
inline constexpr std::string_view would_words = "would ";
inline constexpr std::string_view held_out_words = "held out";

/// One act, ready to be claimed. A plain value.
struct PlannedAct {
  RecoveryDecision decision{};
  std::string fact{};   ///< For people and the agent.
  std::string proof{};  ///< See proof_of.
  Seq verdict = 0;      ///< The event where its evidence begins.
  int number = 0;       ///< Of the rule's acts for this verdict, from 1.

  /// The store takes an id once in each session, from any monitor.
  [[nodiscard]] std::string id() const;
  /// `did nudge`, `would nudge`, `held out: nudge`.
  [[nodiscard]] std::string words() const;
  /// False for a dry run and for a verdict that is held out.
  [[nodiscard]] bool does_something() const noexcept {
    return !decision.dry_run && !decision.is_held_out;
  }
};

/// Returns an act of the number after `done`, the number of earlier ones.
[[nodiscard]] PlannedAct planned(RecoveryDecision decision, const Health& health, int done);

/// Returns the verdict with its events: `looping (R1), events 3 to 17`.
[[nodiscard]] std::string proof_of(const Health& health);

/// The parts of an entry's outcome that ends with a proof. A plain value.
struct ProvenOutcome {
  std::string result{};  ///< Before the proof: `ok`, `would nudge`, `recovered (codex)`.
  std::string proof{};   ///< See proof_of.
  Seq first = 0;         ///< The first event of the proof; 0: it names none.
  Seq last = 0;          ///< Its last one; 0: it names none. With one event both are the same.
};
/// Returns the parts; nothing: the outcome names no proof, as those of people's acts.
[[nodiscard]] std::optional<ProvenOutcome> proven(std::string_view outcome);

/// Returns the message that claims the act. It has the role of hooks, which says nothing about the
/// agent.
[[nodiscard]] Report claim_of(const PlannedAct& act);

/// Returns the entry of the audit log. `came_of_it`: empty for an act without a result of its own.
[[nodiscard]] AuditEntry entry_of(const PlannedAct& act, const std::string& session,
                                  const std::string& came_of_it);

}  // namespace watchdog::monitor
