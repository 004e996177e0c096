/// \file
/// Drops what is old or too much.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/store.h"

namespace watchdog {

/// How long and how much retention keeps.
struct Retention {
  /// How long to keep ended sessions, and the audit log except its newest 1,000 entries.
  Millis ended_for{30LL * 24 * 3'600'000};
  std::int64_t bytes_max = 1'000'000'000;  ///< Of the database file.
  Millis heartbeats_for{3'600'000};        ///< Older heartbeat rows are merged.
  /// Events up to this one are in snapshots: of running sessions, only these may be dropped or
  /// merged.
  Seq folded_through = 0;
  /// The judge still ends abandoned sessions (see Observer::abandon). Until those are dropped,
  /// running sessions keep their events.
  bool more_end = false;
};

/// Acts on a store, which must outlive it. Use from the store's thread.
class RetentionActs {
 public:
  explicit RetentionActs(Store& store) : store_(store), state_(*store.state_) {}

  /// Does a bounded piece (some milliseconds) of retention; returns true while there is more.
  /// Sessions age by the file's time line, since their newest event.
  [[nodiscard]] Result<bool> trim(const Retention& retention);
  /// Returns why nothing is dropped by age now, for a person: the machine's clock differs from the
  /// file's time line, so one of them is wrong. Empty: no such problem. The limit of size always
  /// holds.
  [[nodiscard]] std::optional<std::string> retention_waits() const;
  /// Returns true if the latest `trim` found the file too large and no ended session to drop.
  [[nodiscard]] bool wants_room() const noexcept;
  /// Returns the sessions that `trim` and `erase` dropped since the last call.
  [[nodiscard]] std::vector<SessionKey> drain_dropped();
  /// Frees caches: pages of the file, and the newest event of each session. They are read again
  /// when they are needed.
  void shed_memory();

 private:
  Store& store_;
  Store::State& state_;
};

}  // namespace watchdog
