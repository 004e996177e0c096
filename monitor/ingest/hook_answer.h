/// \file
/// The answer to an agent's hook, in the form that this agent obeys.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ingest/hooks.h"
#include "watchdog/report.h"
#include "watchdog/settings.h"

namespace watchdog::monitor {

/// An act of the monitor at a hook, and the sentence that says why. A plain value.
struct HookAct {
  /// A nudge or a refusal; the agent's model reads the sentence.
  HookAct(RecoveryStep chosen, std::string said) : step(chosen), sentence(std::move(said)) {}
  /// The session must stop.
  HookAct(const CancelRequest& cancel);

  RecoveryStep step;
  std::string sentence;
};

/// A plain value.
struct HookAnswer {
  std::string body = "{}";  ///< JSON. An empty object: go on.
  bool denies = false;      ///< The tool call of the event does not run.
  bool stops = false;       ///< The agent stops its turn because of it.
};

/// Returns the answer to a hook: `{}` without an act, and where the agent cannot be addressed so at
/// this event. Each agent ignores or rejects members that it does not know at that event, so the
/// answer has no others. Pure.
[[nodiscard]] HookAnswer hook_answer(HookAgent agent, std::string_view event,
                                     const std::optional<HookAct>& act);

/// True if there is an event at which the agent takes such an act. Pure.
[[nodiscard]] bool takes(HookAgent agent, RecoveryStep step);

/// Returns what follows from the answer to an event of a cancelled session: a denied call is over;
/// a stopped session is cancelled. Pure.
[[nodiscard]] std::vector<Report> reports_after(const HookAnswer& answer, const HookEvent& event,
                                                const CancelRequest& cancel);

/// `cancelled by ann: enough`.
[[nodiscard]] std::string cancel_sentence(const CancelRequest& cancel);

/// Returns the end of a cancelled session.
[[nodiscard]] Report cancelled_end(const CancelRequest& cancel);

}  // namespace watchdog::monitor
