/// \file
/// Whether the acts of rules help: each first act for a verdict is a trial, and so is each verdict
/// that a rule holds out. All is read from the audit log. No clock, no I/O.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "store/audit.h"
#include "text/interval.h"
#include "watchdog/health.h"

namespace watchdog::monitor {

/// Returns a number in [0, 1), the same at each call. A rule holds the verdict out if the number is
/// below its `hold_out`.
[[nodiscard]] double draw_of(std::string_view session, Seq verdict) noexcept;

/// What a trial is judged by: the session at its first act, or when that was held out. A plain
/// value.
struct TrialStart {
  Seq at = 0;    ///< The session's newest event.
  int pace = 0;  ///< Calls after which the session has had its chance.

  /// A session that repeats itself gets as many calls as its verdict had, from 3 to 10. Others are
  /// judged when something moves, or when they end.
  [[nodiscard]] static TrialStart of(const Case& judged);
};

/// Returns whether the session recovered: its verdict was over before its pace was, or it
/// completed. Nothing: it is too early to say. No time ends a trial.
[[nodiscard]] std::optional<bool> has_recovered(const TrialStart& start, const Case& judged);

/// A trial whose end is not known. A plain value.
struct OpenTrial {
  std::string rule{};
  std::string session{};
  Seq verdict = 0;
  bool is_held_out = false;
  std::string proof{};  ///< See proof_of.
};

/// Trials that ended. A plain value.
struct TrialArm {
  std::int64_t recovered = 0;
  std::int64_t all = 0;

  /// At 95 %.
  [[nodiscard]] Interval interval() const noexcept { return wilson(recovered, all); }
};

/// The two arms of a rule. A plain value.
struct TrialCounts {
  TrialArm acted{};
  TrialArm held_out{};
};

/// Returns true if sessions surely recover less often with the act: the interval of 99 % of the
/// difference of the two shares lies below 0.
[[nodiscard]] bool is_harmful(const TrialCounts& counts) noexcept;

/// The trials of the audit log. Not thread-safe.
class TrialBook {
 public:
  /// Reads the next entry. Entries of other acts change nothing, and neither does a second end of
  /// the same trial, which another monitor wrote.
  void add(const AuditEntry& entry);

  [[nodiscard]] std::vector<OpenTrial> open() const;
  /// By the rule's name and the agent's.
  using ByRule = std::map<std::pair<std::string, std::string>, TrialCounts>;
  [[nodiscard]] const ByRule& counts() const noexcept { return counts_; }
  /// Rules that switched themselves off. `recovery resume` lets them act again, and the count
  /// begins again.
  [[nodiscard]] const std::set<std::string>& off() const noexcept { return off_; }
  /// Returns rules that act and do harm, with what was counted. A rule is looked at when its
  /// smaller arm has 20 trials, and when that has doubled, because each look can be wrong.
  [[nodiscard]] std::map<std::string, TrialCounts> harmful() const;

 private:
  using Key = std::tuple<std::string, std::string, Seq>;  ///< Rule, session, verdict.

  void end(const AuditEntry& entry, const std::string& rule);
  void judge(const std::string& rule, const TrialArm& counted);

  std::map<Key, OpenTrial> open_;
  std::set<Key> ended_;
  ByRule counts_;
  std::map<std::string, TrialCounts> since_resumed_;  ///< By rule.
  std::map<std::string, TrialCounts> harmful_;
  std::set<std::string> off_;
};

/// Returns the entry that ends a trial. `agent`: the name of the session's agent.
[[nodiscard]] AuditEntry end_of(const OpenTrial& trial, bool recovered, std::string_view agent);
/// Returns the entry that switches a rule off.
[[nodiscard]] AuditEntry switch_off(const std::string& rule, const TrialCounts& counts);

}  // namespace watchdog::monitor
