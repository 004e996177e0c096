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
  /// Gives each record that is whole; false if `told` said false, and then no more of this piece.
  bool feed(std::string_view bytes, const std::function<bool(const SseRecord&)>& told);
  /// Of the newest record that was whole: where to go on.
  [[nodiscard]] const std::string& last_id() const noexcept { return last_id_; }
  /// Another connection begins.
  void restart();

 private:
  void take_line(std::string_view line);

  std::string line_;  ///< What has come of it.
  SseRecord record_;
  std::string id_;  ///< Of the record that is coming.
  std::string last_id_;
};

}  // namespace watchdog::monitor
