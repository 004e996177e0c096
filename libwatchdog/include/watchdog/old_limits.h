/// \file
/// The time limits of before, for those who move away from them step by step.
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
  status_based,  ///< the default: there are none
  compare        ///< they end nothing; each moment at which they would have is recorded
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
  Millis tool{30'000};                ///< One tool call; phase `execution` where none is reported.
  Millis task{600'000};               ///< The whole run.
  std::int64_t health_attempts = 15;  ///< Tries of one request to the model.
};

/// Watches what the old limits would have done. Each limit speaks once an operation. Times are
/// those of one clock, since whatever it counts from. Thread-safe.
class LimitWatch {
 public:
  LimitWatch(OldLimits limits, Millis now) : limits_(limits), began_(now) {}

  /// A phase begins, and the one before it ends. `execution` counts as a tool call until one
  /// begins; of phases that no limit names nothing is watched. Empty: none begins.
  void begin(std::string_view phase, Millis now);
  /// A tool call begins and ends. At most 64 are watched at a time.
  void begin_call(std::string_view call, Millis now);
  void end_call(std::string_view call, Millis now);
  /// So many tries of one request were made.
  void attempts(std::int64_t count, Millis now);

  /// The limits that were passed since the last call, oldest first.
  [[nodiscard]] std::vector<LimitPassed> take(Millis now);
  /// When the next one will be; empty: none is near.
  [[nodiscard]] std::optional<Millis> next() const;

 private:
  struct Running {
    std::string name;  ///< Of the limit.
    Millis since{};
    Millis limit{};
    bool said = false;
    std::string call{};  ///< Empty: a phase.
  };
  [[nodiscard]] Millis limit_of(std::string_view phase) const;
  void end(std::string_view call);
  /// Notes what was passed by now. REQUIRES: mutex held.
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
