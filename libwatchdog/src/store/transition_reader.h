/// \file
/// Reads the transitions of a store: the changes of health.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/store_reader.h"

namespace watchdog {

struct TransitionRow {
  std::int64_t id = 0;
  Transition transition{};
  std::string detector{};
  /// The time from the newest event then to the change: 0 if that event caused it, more if an
  /// earlier health expired. Empty: that event was dropped.
  std::optional<Millis> quiet{};
};

/// A change of a session's health, in short. A plain value.
struct HealthChange {
  std::string session{};  ///< Its id.
  WallTime at{};
  HealthKind from = HealthKind::unknown;
  HealthKind health = HealthKind::unknown;
  Pattern pattern = Pattern::none;
};

/// Reads transitions on the connection of a StoreReader. Use from the reader's thread.
class TransitionReader {
 public:
  /// The reader must outlive it.
  explicit TransitionReader(StoreReader& reader) : reader_(reader), state_(*reader.state_) {}

  /// Returns a session's transitions after an id, oldest first.
  [[nodiscard]] Result<std::vector<TransitionRow>> of(SessionKey session, std::int64_t after,
                                                      int count_max);
  /// Returns a session's newest transitions, oldest first.
  [[nodiscard]] Result<std::vector<TransitionRow>> latest(SessionKey session, int count_max);
  /// Returns transitions of all sessions after an id, in order; none that follows from an event
  /// after `through`.
  [[nodiscard]] Result<std::vector<TransitionRow>> after(std::int64_t id, Seq through,
                                                         int count_max);
  /// Returns changes of health of all sessions since then, the newest first.
  [[nodiscard]] Result<std::vector<HealthChange>> changes_since(WallTime since, int count_max);
  /// Returns the newest transition's id, also if it was dropped; 0: there was none.
  [[nodiscard]] Result<std::int64_t> newest_id();
  /// Returns the transitions that follow from the events and from the time up to `now`, but that no
  /// judge has recorded. Their ids continue the session's; the same events give the same ids.
  [[nodiscard]] Result<std::vector<TransitionRow>> unwritten(const SessionRow& row, Instant now);

 private:
  StoreReader& reader_;
  StoreReader::State& state_;
};

}  // namespace watchdog
