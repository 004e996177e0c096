/// \file
/// Whether a call still moves, and when it is given up. The one notion of it, for tools of an agent
/// and for calls of other tool servers.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "watchdog/deadline.h"
#include "watchdog/time.h"

namespace watchdog {

/// Remembers texts, and so recognises one that says something new. A plain value.
class News {
 public:
  /// Different ones that are remembered, the latest.
  static constexpr std::size_t texts_max = 256;

  /// Returns true unless it is empty, or one of the remembered texts but for times of day and
  /// blanks.
  bool is_new(std::string_view text);

 private:
  std::deque<std::uint64_t> digests_{};
};

/// The same for an output in pieces: the texts are its lines. A plain value.
class NewLines {
 public:
  static constexpr std::size_t line_bytes_max = 4'096;
  /// Of one piece; its later ones are not looked at.
  static constexpr int lines_max = 512;

  /// Returns true if the piece has something new. Of a line without an end only the piece counts,
  /// so that a point which is added again and again does not.
  bool add(std::string_view piece);

 private:
  bool add_line(std::string_view line, bool is_whole);

  News news_{};
  std::string begun_{};   ///< A line without its end.
  std::string newest_{};  ///< The newest whole line: many are equal to it.
};

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

/// The movement of one call. Movement is what the call says: progress, output, messages. That its
/// processes work only puts the deadline off. A plain value; use from one thread at a time.
class Movement {
 public:
  /// More output than this without anything new is a flood: its processes are busy with it alone.
  static constexpr std::uint64_t flood_bytes = 1U << 20U;

  Movement(ResolvedDeadline limits, Instant start);

  /// Each returns true if it is movement. Progress has to rise, or its message has to be new.
  bool progress(double value, std::optional<double> total, std::string_view message, Instant now);
  bool message(std::string_view text, Instant now);
  bool task(std::string_view updated_at, std::string_view status_message, Instant now);
  /// A piece of output: it has to have a new line.
  bool output(std::string_view piece, Instant now);
  /// Bytes of which only the number is known.
  bool bytes(std::uint64_t total, Instant now);
  /// Processes of the call used CPU or disks.
  void alive(Instant now);

  void pause(PauseReason reason, Instant now) { deadline_.pause(reason, now); }
  void resume(PauseReason reason, Instant now) { deadline_.resume(reason, now); }
  /// The machine or this program stood still for this time.
  void compensate(Millis stall) { deadline_.compensate(stall); }

  [[nodiscard]] const ActivityDeadline& deadline() const { return deadline_; }
  [[nodiscard]] bool is_over(Instant now) const { return deadline_.expired(now).has_value(); }
  /// Progress as it was reported; nothing: none was.
  [[nodiscard]] std::optional<double> value() const { return value_; }
  [[nodiscard]] std::optional<double> total() const { return total_; }
  /// The newest message of progress.
  [[nodiscard]] const std::string& words() const { return words_; }

 private:
  bool move(Instant now);
  bool stand(bool is_said);

  ActivityDeadline deadline_;
  std::uint64_t stale_bytes_ = 0;  ///< Of output since the newest movement.
  std::optional<double> value_{};
  std::optional<double> total_{};
  std::string words_{};
  std::string message_{};
  std::string updated_at_{};
  std::string status_message_{};
  News news_{};
  NewLines lines_{};
  Rhythm message_rhythm_{};
};

}  // namespace watchdog
