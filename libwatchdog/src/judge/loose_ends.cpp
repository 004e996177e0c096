#include "judge/loose_ends.h"

#include <algorithm>
#include <bit>

#include "judge/plan_items.h"
#include "text/figures.h"
#include "text/sentence.h"

namespace watchdog {
namespace {

constexpr std::uint8_t tasks_max = 64;

AnswerEnd end_of_answer(const Report& report) noexcept {
  if (report.content == early_ends::length) return AnswerEnd::length;
  if (report.content == early_ends::calls) return AnswerEnd::calls;
  return AnswerEnd::usual;
}

/// A new plan, or one task of it that is new or changed.
LooseEnds with_plan(LooseEnds ends, PlanTool tool, const PlanItems& items) {
  if (tool == PlanTool::list) {
    ends.plan = items;
    ends.tasks_over = 0;
    return ends;
  }
  auto& [open, all] = ends.plan;
  if (tool == PlanTool::new_task) {
    if (all < tasks_max) ++all;
  } else if (items.all > 0 && items.all <= tasks_max) {
    const auto bit = std::uint64_t{1} << (items.all - 1U);
    ends.tasks_over = items.open == 0 ? ends.tasks_over | bit : ends.tasks_over & ~bit;
  }
  const auto over = static_cast<std::uint8_t>(std::popcount(ends.tasks_over));
  open = static_cast<std::uint8_t>(all - std::min(all, over));
  // As of lists: agents often stop without a last update.
  if (open == 1 && all > 1) open = 0;
  return ends;
}

LooseEnds after_call(LooseEnds ends, const Report& report) {
  ends.promises = false;
  ends.answer_end = AnswerEnd::usual;
  const auto tool = plan_tool(report.name);
  if (tool == PlanTool::none) return ends;
  const auto* marks = std::get_if<Marks>(&report.detail);
  return with_plan(ends, tool, marks != nullptr ? marks->plan : PlanItems{});
}

/// Returns the loose ends after a report.
LooseEnds ends_after(LooseEnds ends, const Event& event) {
  const Report& report = event.report;
  switch (report.kind) {
    case ReportKind::user_input:
      return {};
    case ReportKind::state_change:
      // The proxy reports a person's input so.
      return report.name == "input" ? LooseEnds{} : ends;
    case ReportKind::tool_call:
      return after_call(ends, report);
    case ReportKind::tool_result:
    case ReportKind::error:
    case ReportKind::tool_timeout:
      ends.promises = false;
      return ends;
    case ReportKind::message: {
      if (report.name == "user") return {};
      const auto* marks = std::get_if<Marks>(&report.detail);
      if (report.name == "assistant") ends.promises = marks != nullptr && marks->promises;
      return ends;
    }
    case ReportKind::idle:
      if (report.name == idle_reports::relayed && event.origin == ReportOrigin::proxy)
        ends.answer_end = end_of_answer(report);
      return ends;
    default:
      return ends;
  }
}

}  // namespace

void fold_loose_ends(History& history, const Event& event) {
  const auto& before = history.notes->loose_ends;
  auto ends = ends_after(before, event);
  if (ends != before) history.notes.edit().loose_ends = ends;
}

std::string unfinished_note(const History& history) {
  const auto& notes = *history.notes;
  if (history.lifecycle != Lifecycle::idle) return {};
  constexpr std::string_view otherwise[] = {idle_reports::interrupted, idle_reports::failed,
                                            idle_reports::goes_on};
  if (std::ranges::any_of(otherwise, [&](auto why) { return notes.idle_why.starts_with(why); }))
    return {};
  const auto& [plan, tasks_over, promises, answer_end] = notes.loose_ends;
  std::string text;
  if (answer_end == AnswerEnd::length)
    text = "the model's last answer was cut at its limit of length";
  if (answer_end == AnswerEnd::calls)
    text = "the model's last answer ended for a tool call that it does not have";
  if (plan.open > 0)
    text += (text.empty() ? "" : "; ") + std::string("the turn ended with ") +
            std::to_string(plan.open) + " of " + counted_as(plan.all, "plan item") + " open";
  if (promises)
    text += (text.empty() ? "" : "; ") +
            std::string("the last message announces an act, and no call followed");
  return sentence(std::move(text));
}

}  // namespace watchdog
