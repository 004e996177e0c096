/// \file
/// The slots of a server, remembered one by one from look to look.
#pragma once

#include <vector>

#include "server/server_evidence.h"

namespace watchdog {

/// A slot at work. A plain value.
struct WorkingSlot {
  SlotSample seen{};
  Instant first{};   ///< The sample that first showed its task: later requests cannot own it.
  Millis changed{};  ///< When its counters last did,
  int looks = 0;     ///< and the looks since then,
  int looks_of_others = 0;  ///< and those of them at which others' counters changed.
  int moves = 0;            ///< Changes of its counters, in this phase of its task,
  Millis gap{};             ///< and the longest time between two of them.
  bool is_shared = false;   ///< At some look it might have been one of several requests'.
  bool is_new = false;      ///< This look shows its task for the first time,
  bool has_moved = false;   ///< or counters of it that changed.

  [[nodiscard]] bool writes() const { return seen.written.value_or(0) > 0; }
};

/// Bounded by the slots that are shown. Use from one thread at a time.
class SlotHistory {
 public:
  /// Adds what a look showed. `now` is its time on an axis of the caller's.
  void add(const std::vector<SlotSample>& slots, Instant at, Millis now);

  /// Those at work; the task that came first first.
  [[nodiscard]] const std::vector<WorkingSlot>& working() const { return working_; }
  /// That slot of `working` might be one of several requests'.
  void share(std::size_t at) { working_[at].is_shared = true; }
  [[nodiscard]] bool has_free() const { return has_free_; }
  /// At the latest look: a counter changed; or that, or a task began or ended.
  [[nodiscard]] bool has_moved() const { return has_moved_; }
  [[nodiscard]] bool has_news() const { return has_news_; }

 private:
  std::vector<WorkingSlot> working_;
  bool has_free_ = false, has_moved_ = false, has_news_ = false;
};

}  // namespace watchdog
