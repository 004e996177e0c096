#include "server/slot_history.h"

#include <algorithm>
#include <cmath>

namespace watchdog {

bool may_be_of(const TaskParameters& asked, const TaskParameters& shown) {
  const auto fits = [](const auto& wanted, const auto& is) {
    return !wanted || !is || *wanted == *is;
  };
  // The server keeps them as floats.
  const auto is_near = [](std::optional<double> wanted, std::optional<double> is) {
    return !wanted || !is || std::abs(*wanted - *is) <= 1e-4 * std::max(1.0, std::abs(*wanted));
  };
  // Its owner may have set a lower limit for all answers.
  const bool fits_limit = !asked.max_tokens || !shown.max_tokens || *asked.max_tokens < 0 ||
                          (*shown.max_tokens >= 0 && *shown.max_tokens <= *asked.max_tokens);
  return fits(asked.stream, shown.stream) && fits(asked.seed, shown.seed) &&
         fits(asked.top_k, shown.top_k) && fits_limit &&
         is_near(asked.temperature, shown.temperature) && is_near(asked.top_p, shown.top_p) &&
         is_near(asked.min_p, shown.min_p);
}

void SlotHistory::add(const std::vector<SlotSample>& slots, Instant at, Millis now) {
  std::vector<WorkingSlot> current;
  std::size_t goes_on = 0;
  has_free_ = false;
  for (const SlotSample& shown : slots) {
    // While it does not process, its counters are of a task that is over.
    if (!shown.is_processing) {
      has_free_ = true;
      continue;
    }
    const auto known = std::ranges::find_if(working_, [&](const WorkingSlot& slot) {
      return slot.seen.id == shown.id && slot.seen.task == shown.task;
    });
    WorkingSlot slot;
    if (known == working_.end()) {
      slot = {.first = at, .changed = now, .is_new = true};
    } else {
      ++goes_on;
      slot = *known;
      slot.is_new = false;
      slot.has_moved =
          slot.seen.written != shown.written || slot.seen.prompt_read != shown.prompt_read;
    }
    const bool begins_to_write = !slot.writes() && shown.written.value_or(0) > 0;
    slot.seen = shown;
    if (slot.has_moved) {
      if (begins_to_write) slot.moves = 0;
      if (slot.moves++ > 0) slot.gap = std::max(slot.gap, now - slot.changed);
      slot.changed = now;
      slot.looks = slot.looks_of_others = 0;
    } else if (!slot.is_new) {
      ++slot.looks;
    }
    current.push_back(slot);
  }
  has_moved_ = std::ranges::any_of(current, &WorkingSlot::has_moved);
  has_news_ = has_moved_ || current.size() > goes_on || working_.size() > goes_on;
  for (WorkingSlot& slot : current)
    if (has_moved_ && !slot.has_moved && !slot.is_new) ++slot.looks_of_others;
  std::ranges::stable_sort(current, {}, [](const WorkingSlot& slot) { return slot.seen.task; });
  working_ = std::move(current);
}

}  // namespace watchdog
