#include "progress/slot_history.h"

#include <algorithm>

namespace watchdog {

void SlotHistory::take(const std::vector<SlotSight>& slots, Instant at, Millis now) {
  std::vector<WorkingSlot> current;
  std::size_t goes_on = 0;
  has_free_ = false;
  for (const SlotSight& shown : slots) {
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
