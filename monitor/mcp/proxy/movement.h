/// \file
/// Whether a call of a tool server still moves, and when it is given up.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "watchdog/deadline.h"
#include "watchdog/time.h"

namespace watchdog::monitor::mcp {

/// Recognises what a timer sends: the same content at a fixed distance. A plain value.
class Rhythm {
 public:
  /// Equal messages at equal distances are movement this often.
  static constexpr int beats_max = 5;
  /// Faster ones are work, which may be regular.
  static constexpr Millis period_min{1'000};

  /// Returns true if this one comes as a timer's would, once too often. `is_same`: its content says
  /// nothing new.
  [[nodiscard]] bool is_beat(bool is_same, Instant now);

 private:
  std::optional<Instant> last_{};
  Millis period_{};
  int beats_ = 0;
};

/// The movement of one call. Movement is what the server says about it; that its processes work
/// only puts the deadline off. A plain value; use from one thread at a time.
class Movement {
 public:
  /// While processes work and nothing moves, a call may take this many times its deadline.
  static constexpr int alive_max = 10;

  /// `idle`: the longest time without movement; empty: none.
  Movement(std::optional<Millis> idle, Instant start);

  /// Each returns true if it is movement. Progress has to rise; without a total, a value that a
  /// timer raises by one counts `Rhythm::beats_max` times.
  bool progress(double value, std::optional<double> total, std::string_view message, Instant now);
  bool message(std::string_view text, Instant now);
  bool task(std::string_view updated_at, std::string_view status_message, Instant now);
  /// The server's processes used CPU or disks.
  void alive(Instant now);

  /// The call waits for a person or for the client.
  void pause(Instant now) { deadline_.pause(PauseReason::awaiting_input, now); }
  void resume(Instant now) { deadline_.resume(PauseReason::awaiting_input, now); }
  /// The machine or this program stood still for this time.
  void compensate(Millis stall) { deadline_.compensate(stall); }

  [[nodiscard]] bool is_over(Instant now) const { return deadline_.expired(now).has_value(); }
  [[nodiscard]] Instant next_expiry() const { return deadline_.next_expiry(); }
  /// Without pauses.
  [[nodiscard]] Millis elapsed(Instant now) const { return deadline_.active(now); }
  /// True if processes put the deadline off since the newest movement.
  [[nodiscard]] bool was_alive() const { return was_alive_; }
  [[nodiscard]] std::int64_t accepted() const { return accepted_; }
  /// Progress as the server reports it; nothing: it reports none.
  [[nodiscard]] std::optional<double> value() const { return value_; }
  [[nodiscard]] std::optional<double> total() const { return total_; }
  /// The newest message of progress.
  [[nodiscard]] const std::string& words() const { return words_; }

 private:
  bool move(Instant now);

  std::optional<Millis> idle_;
  ActivityDeadline deadline_;
  std::uint64_t steps_ = 0;
  Millis moved_at_{};  ///< In active time.
  bool was_alive_ = false;
  std::int64_t accepted_ = 0;
  std::optional<double> value_{};
  std::optional<double> total_{};
  std::string words_{};
  std::string message_{};
  std::string updated_at_{};
  std::string status_message_{};
  Rhythm progress_rhythm_{};
  Rhythm message_rhythm_{};
};

}  // namespace watchdog::monitor::mcp
