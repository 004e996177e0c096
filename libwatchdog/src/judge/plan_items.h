/// \file
/// Reads how much of an agent's plan is open from the arguments of the tool that keeps the plan.
#pragma once

#include <string_view>

#include "watchdog/report.h"

namespace watchdog {

/// How a tool keeps its agent's plan.
enum class PlanTool : std::uint8_t {
  none,         ///< It keeps no plan.
  list,         ///< Each call has the whole list.
  new_task,     ///< Each call adds one task.
  changed_task  ///< Each call changes the state of one task.
};
/// Returns how the tool keeps a plan, by its name. Tools of servers (`mcp__server__tool`) count by
/// their own name.
[[nodiscard]] PlanTool plan_tool(std::string_view tool) noexcept;

/// Returns the items in the arguments of a call, see PlanItems. Nothing is known (`all` is 0) if
/// the tool keeps no plan, or the arguments are longer than 64 KiB, cut, or a part of a list. One
/// item that is in progress after finished ones counts as done: agents often stop without a last
/// update.
[[nodiscard]] PlanItems plan_items(std::string_view tool, std::string_view arguments);

}  // namespace watchdog
