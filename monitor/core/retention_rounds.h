/// \file
/// Rounds of retention, in pieces between the turns of the store thread.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "observer/observer.h"
#include "store/retention.h"
#include "store/store.h"

namespace watchdog::monitor {

/// `step` and `until_next` are for the store thread; any thread may ask the others.
class RetentionRounds {
 public:
  using Log = std::function<void(const std::string&)>;

  RetentionRounds(Retention limits, Log log) : limits_(limits), log_(std::move(log)) {}

  /// Does one bounded piece, if one is due: every 10 minutes a round begins, and while the file is
  /// too large a piece belongs to each turn.
  [[nodiscard]] Result<void> step(Store& store, Observer& observer);
  /// Until the next piece of a round that is under way; nothing: none is.
  [[nodiscard]] std::optional<Millis> until_next() const;

  /// False while retention cannot keep up: reports are refused meanwhile.
  [[nodiscard]] bool has_room() const { return has_room_.load(); }
  /// Nothing is dropped by its age, because the clocks disagree.
  [[nodiscard]] bool waits() const { return waits_.load(); }

 private:
  [[nodiscard]] Result<void> abandon(Store& store, Observer& observer, bool clocks_differ);
  void learn_wait(const std::optional<std::string>& why);
  void learn_size(std::int64_t bytes);

  const Retention limits_;
  const Log log_;
  std::chrono::steady_clock::time_point next_ =
      std::chrono::steady_clock::now() + std::chrono::seconds(30);
  bool under_way_ = false;
  bool abandoning_ = false;  ///< There may be more sessions to abandon.
  Seq through_ = 0;          ///< Events up to this one are in snapshots.
  std::atomic<bool> has_room_ = true;
  std::atomic<bool> waits_ = false;
};

}  // namespace watchdog::monitor
