/// \file
/// Server-sent events out of the pieces in which they arrive.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace watchdog::monitor {

/// One of them. A plain value.
struct SseRecord {
  std::string event;  ///< Its kind.
  std::string data;
};

/// Use from one thread at a time.
class SseReader {
 public:
  /// No line of a monitor is longer: a snapshot comes in pages.
  static constexpr std::size_t line_bytes_max = 64U * 1024 * 1024;

  /// Passes on each complete record; returns false if `sink` did, and skips the rest of this piece.
  /// A line above `line_bytes_max` and its record are skipped.
  bool feed(std::string_view bytes, const std::function<bool(const SseRecord&)>& sink);
  /// Returns the id of the newest complete record: where to continue.
  [[nodiscard]] const std::string& last_id() const noexcept { return last_id_; }
  /// Another connection begins.
  void restart();

 private:
  void feed_piece(std::string_view piece);
  void feed_line(std::string_view line);

  std::string line_;       ///< The incomplete line.
  bool too_long_ = false;  ///< A line of this record was.
  SseRecord record_;
  std::string id_;  ///< Of the record that is coming.
  std::string last_id_;
};

}  // namespace watchdog::monitor
