/// \file
/// Server-sent events, cut out of bytes that arrive in any pieces.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace watchdog {

/// The text/event-stream format, and two deviations by which model servers report an error: a field
/// called `error`, and a line that is a JSON object. Both count as data. Use from one thread at a
/// time.
class EventStream {
 public:
  /// The data of an event, its lines joined by newlines. False: nothing more is wanted.
  using Sink = std::function<bool(std::string_view data)>;

  explicit EventStream(std::size_t event_bytes_max) : event_bytes_max_(event_bytes_max) {}

  enum class Fed : std::uint8_t { more, enough, too_large };
  /// `too_large`: a line or an event is above `event_bytes_max`.
  Fed feed(std::string_view bytes, const Sink& sink);
  /// At the end of the body: an event that lacks nothing but its last newlines counts.
  Fed end(const Sink& sink);

 private:
  Fed feed_line(std::string_view line, const Sink& sink);
  Fed dispatch(const Sink& sink);

  std::size_t event_bytes_max_;
  std::string line_;
  std::string data_;
  bool has_data_ = false;
  bool after_return_ = false;  ///< The newline that may follow belongs to it.
  bool first_line_ = true;
};

}  // namespace watchdog
