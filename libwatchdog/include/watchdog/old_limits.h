/// \file
/// The former time limits, for owners who migrate step by step.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/names.h"
#include "watchdog/report.h"
#include "watchdog/time.h"

namespace watchdog {

/// `AUTONOMOUS_STATUS_BASED_TIMEOUT`: 0, 1 or compare.
enum class Migration : std::uint8_t {
  time_based,    ///< the old limits end the run, as `cancelled / legacy_time_limit`
  status_based,  ///< the default: no time limits
  compare        ///< the limits end nothing; each moment at which they would have is recorded
};

template <>
struct Names<Migration> {
  static constexpr std::string_view all[] = {"0", "1", "compare"};
};

/// 0: no such limit. A plain value.
struct OldLimits {
  Migration mode = Migration::status_based;
  Millis planning{30'000};            ///< Phase `planning`.
  Millis implementation{120'000};     ///< Phase `implementation`.
  Millis deployment{180'000};         ///< Phase `deployment`.
  Millis tool{30'000};                ///< One tool call; phase `execution` without reported calls.
  Millis task{600'000};               ///< The whole run.
  std::int64_t health_attempts = 15;  ///< Tries of one request to the model.
};

/// Records which old limits would have fired, each at most once per operation. Times are on one
/// clock, with any origin. Thread-safe.
class LimitWatch {
 public:
  LimitWatch(OldLimits limits, Millis now) : limits_(limits), began_(now) {}

  /// Begins a phase and ends the previous one. `execution` counts as a tool call until a call
  /// begins. A phase without a limit is not watched. Empty: no phase begins.
  void begin(std::string_view phase, Millis now);
  /// Begins or ends a tool call. At most 64 are watched at a time.
  void begin_call(std::string_view call, Millis now);
  void end_call(std::string_view call, Millis now);
  /// Records the number of tries of one request.
  void attempts(std::int64_t count, Millis now);

  /// Returns the limits that were passed since the last call, oldest first.
  [[nodiscard]] std::vector<LimitPassed> take(Millis now);
  /// Returns when the next one will be passed; empty: none is near.
  [[nodiscard]] std::optional<Millis> next() const;

 private:
  struct Running {
    std::string name{};  ///< Of the limit.
    Millis since{};
    Millis limit{};
    bool said = false;
    std::string call{};  ///< Empty: a phase.
  };
  [[nodiscard]] Millis limit_of(std::string_view phase) const;
  void end(std::string_view call);
  /// Records what was passed by `now`. REQUIRES: mutex held.
  void look(Millis now);

  OldLimits limits_;
  Millis began_;
  mutable std::mutex mutex_;
  std::vector<Running> running_;
  bool task_said_ = false;
  bool attempts_said_ = false;
  std::vector<LimitPassed> passed_;
};

}  // namespace watchdog
