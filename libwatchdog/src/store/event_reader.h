/// \file
/// Reads the events of a store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "store/store_reader.h"

namespace watchdog {

/// A page of events ends once it holds this much, or with its first event if that is larger.
inline constexpr std::size_t page_bytes_max = 4 * 1024 * 1024;

/// A part of a session's events.
struct EventPage {
  std::vector<Event> events{};
  std::optional<Seq> next{};  ///< Where the next page begins; empty: this is the last.
};

/// Reads events on the connection of a StoreReader. Use from the reader's thread.
class EventReader {
 public:
  /// The reader must outlive it.
  explicit EventReader(StoreReader& reader) : state_(*reader.state_) {}

  /// Returns events of all sessions after `seq`, in order: as many as are requested or fit, at
  /// least one if there is one.
  [[nodiscard]] Result<std::vector<Event>> after(Seq seq, int count_max,
                                                 std::size_t bytes_max = SIZE_MAX);
  /// Returns a session's events after `after`, oldest first; of one kind, if given. The cost does
  /// not depend on the number of earlier events.
  [[nodiscard]] Result<EventPage> page(SessionKey session, Seq after, int count_max,
                                       std::optional<ReportKind> kind = {},
                                       std::size_t bytes_max = page_bytes_max);
  /// Returns the events before `before`, newest first.
  [[nodiscard]] Result<EventPage> page_before(SessionKey session, Seq before, int count_max,
                                              std::optional<ReportKind> kind = {},
                                              std::size_t bytes_max = page_bytes_max);
  /// Returns the numbers of the event and of earlier ones of its session, at most `count_max`,
  /// oldest first; fewer if they were dropped.
  [[nodiscard]] Result<std::vector<Seq>> up_to(Seq seq, int count_max);
  /// Returns the event's tick; nothing: retention dropped it.
  [[nodiscard]] Result<std::optional<Instant>> tick_of(Seq seq);
  /// Returns a session's newest events without heartbeats, oldest first.
  [[nodiscard]] Result<std::vector<Event>> latest(SessionKey session, int count_max);
  /// Returns the newest judgement of a model with this `event_id`, of any session.
  [[nodiscard]] Result<std::optional<Event>> opinion(std::string_view event_id);
  /// Returns the first event number that was not dropped.
  [[nodiscard]] Result<Seq> first_kept();
  /// Returns the newest event's number and tick, 0 in an empty store.
  [[nodiscard]] Result<std::pair<Seq, Instant>> newest();

 private:
  StoreReader::State& state_;
};

}  // namespace watchdog
