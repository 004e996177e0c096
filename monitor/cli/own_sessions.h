/// \file
/// The sessions of a database as examples of predictions.
#pragma once

#include <cstdint>
#include <vector>

#include "predict/example.h"
#include "store/store_reader.h"

namespace watchdog::monitor {

/// A plain value.
struct OwnSessions {
  std::vector<Example> examples;  ///< The oldest first.
  std::int64_t dropped = 0;       ///< Left out: not all their events are kept.
  std::int64_t calls = 0;         ///< Of all examples.
};

/// Reads the ended sessions, the newest `examples_max` of them. Errors: as of the store.
[[nodiscard]] Result<OwnSessions> ended_sessions(StoreReader& reader);

/// Reads one session, whether it has ended or not. Nothing: not all its events are kept.
[[nodiscard]] Result<std::optional<Example>> example_of(StoreReader& reader, const SessionRow& row,
                                                        Seq first_kept);

}  // namespace watchdog::monitor
