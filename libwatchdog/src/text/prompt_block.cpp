#include <array>
#include <cmath>
#include <cstdio>

#include "watchdog/budget.h"

namespace watchdog {
namespace {

/// At most four decimals, none of them for show.
std::string shown(double amount) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.4f", amount);
  std::string all(text.data());
  while (all.back() == '0') all.pop_back();
  if (all.back() == '.') all.pop_back();
  return all;
}
std::string shown(std::int64_t count) {
  return std::to_string(count);
}

/// Rounded down: 70 % is shown when it is reached. The share of 29 % may be stored a little lower.
std::string percent(double share) {
  return std::to_string(static_cast<std::int64_t>(std::floor(share * 100 + 1e-9))) + "%";
}

/// Things with a comma between them.
class Line {
 public:
  explicit Line(std::string label) : label_(std::move(label)) {}
  void add(const std::string& thing) { things_ += (things_.empty() ? "" : ", ") + thing; }
  [[nodiscard]] std::string text() const { return things_.empty() ? "" : label_ + things_ + "\n"; }

 private:
  std::string label_;
  std::string things_;
};

constexpr const char* cost_unit = " cost";  // whatever the owner counts; has no plural

template <class T>
void add_to(Line& progress, Line& left, const std::string& label, const std::string& unit, T used,
            const std::optional<T>& limit) {
  if (!limit) return;
  progress.add(label + shown(used) + "/" + shown(*limit));
  const T rest = std::max(*limit - used, T{});
  left.add(shown(rest) + unit + (unit == cost_unit || rest == T{1} ? "" : "s"));
}

/// Said from `low` on: what to do, and what of the budget it is where no figure shows it.
std::string advice_of(const BudgetFigures& figures) {
  if (figures.stage >= BudgetStage::finalize) {
    return "\nAdvice: say what you found, what is done and what is not.";
  }
  if (figures.stage < BudgetStage::low) return "";
  const bool by_time = figures.axis == BudgetAxis::time && !figures.enforce_time;
  return std::string("\nAdvice: ") +
         (by_time ? "most of the time planned for this task has passed; " : "") +
         "save partial results, then answer.";
}

std::string_view status_of(BudgetStage stage) {
  switch (stage) {
    case BudgetStage::nominal:
      return "NOMINAL (Continue normally)";
    case BudgetStage::low:
    case BudgetStage::warn:
      return "LOW BUDGET (Prioritize wrapping up. Provide final answer soon.)";
    case BudgetStage::finalize:
    case BudgetStage::exhausted:
      break;
  }
  return "FINAL STEP (Answer now with what you have. No more tools.)";
}

}  // namespace

std::string prompt_block(const BudgetFigures& figures) {
  const BudgetLimits& limits = figures.limits;
  const bool timed = figures.enforce_time && limits.duration;
  Line progress("Current Progress: ");
  Line used("");
  Line left("Remaining: ");
  if (timed) left.add(shown(*remaining_seconds(figures)) + " seconds");
  add_to(progress, left, "Step ", " step", figures.steps, limits.steps);
  if (timed) {
    const auto all = std::chrono::ceil<std::chrono::seconds>(*limits.duration).count();
    progress.add("Elapsed: " + shown(elapsed_seconds(figures)) + "/" + shown(all) + " seconds");
  }
  add_to(progress, left, "Tool Calls: ", " tool call", figures.tool_calls, limits.tool_calls);
  add_to(progress, left, "Tokens: ", " token", figures.tokens, limits.tokens);
  add_to(progress, left, "Cost: ", cost_unit, figures.cost, limits.cost);

  using Label = std::pair<BudgetAxis, const char*>;
  for (const auto& [axis, label] :
       {Label{BudgetAxis::time, "Time Used: "}, Label{BudgetAxis::steps, "Steps Used: "},
        Label{BudgetAxis::tool_calls, "Tool Calls Used: "},
        Label{BudgetAxis::tokens, "Tokens Used: "}, Label{BudgetAxis::cost, "Cost Used: "}}) {
    if (axis == BudgetAxis::time && !timed) continue;
    if (const auto share = share_used(figures, axis)) used.add(label + percent(*share));
  }

  const auto lines = progress.text() + used.text() + left.text();
  if (lines.empty() && figures.stage == BudgetStage::nominal) return "";
  return "[EXECUTION BUDGET]\n" + lines + "Status: " + std::string(status_of(figures.stage)) +
         advice_of(figures);
}

}  // namespace watchdog
