/// \file
/// One recorded run before our detector and the peers' rules.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "ingest/trace.h"
#include "score/peer_rules.h"
#include "watchdog/health.h"

namespace watchdog::monitor {

/// The place in a run where something was first noticed.
struct Notice {
  std::int64_t seq = 0;  ///< The trace's own number of the newest event known then.
  int calls = 0;         ///< Begun up to that event.
  bool at_end = false;   ///< Only the run's end brought it up.
  Pattern pattern = Pattern::none;
};

/// A rule's finding about a run. The peers' rules have no suspicion.
struct Finding {
  std::optional<Notice> suspicion;  ///< First `suspect`.
  std::optional<Notice> alarm;      ///< First `stuck` or `looping`.
};

/// A tool call, and the rules that take it for a repetition.
struct Step {
  std::int64_t seq = 0;
  std::size_t call = 0;  ///< The same for the same name and arguments.
  RuleSet repeated;
};

/// The findings about a run. A plain value.
struct Findings {
  int events = 0;
  int calls = 0;
  std::array<Finding, rule_count> by_rule{};
  std::vector<Step> steps;  ///< Every call, in order.

  [[nodiscard]] const Finding& of(Rule rule) const { return by_rule.at(place_of(rule)); }
};

/// Takes a run's lines in order, in memory. Time stands still where the trace has none. Use from
/// one thread at a time.
class Evaluation {
 public:
  explicit Evaluation(const Policy& policy = {});
  /// A line whose `event_id` was taken already changes nothing.
  void fold(TraceLine line);
  [[nodiscard]] const Findings& findings() const noexcept { return findings_; }

 private:
  /// A call without its result.
  struct OpenCall {
    std::size_t step;
    std::string name;
    std::string call_id;
    std::string identity;
  };

  void move_to(std::optional<std::int64_t> ts_ms);
  std::optional<std::size_t> compare(const TraceLine& line);
  std::optional<OpenCall> close_call(const Report& result);
  void note(RuleSet holding, std::size_t step, std::int64_t seq);
  void note(RuleSet holding, std::int64_t seq);
  void note(const std::vector<Transition>& changes, const Notice& here);

  Case judged_;
  PeerRules peers_;
  Findings findings_;
  Notice before_;  ///< The event before.
  Instant now_;
  std::optional<std::int64_t> last_ms_;
  bool ended_ = false;
  std::vector<OpenCall> open_;
  std::unordered_set<std::string> seen_ids_;
};

}  // namespace watchdog::monitor
