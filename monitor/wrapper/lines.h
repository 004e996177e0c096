/// \file
/// Bytes as lines, while they come.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace watchdog::monitor {

/// Returns the number of newlines. As fast as memory.
[[nodiscard]] std::uint64_t newlines_in(std::string_view bytes);

/// Puts lines together from pieces. A line that is in one piece is not copied, and memory does not
/// grow with lines that never end. Use from one thread at a time.
class LineReader {
 public:
  /// A longer line is cut to this, unless another size is set: the size of an event.
  static constexpr std::size_t line_bytes_max = 1'048'576;
  /// Gets a line without its end, which is LF or CR LF.
  using Sink = std::function<void(std::string_view line)>;

  /// From now on lines are cut to this size.
  void set_line_bytes_max(std::size_t bytes) { line_bytes_max_ = bytes; }
  void feed(std::string_view bytes, const Sink& sink);
  /// Ends the output: text after the last newline is a line as well.
  void finish(const Sink& sink);

 private:
  void keep(std::string_view bytes);
  void emit(std::string_view line, const Sink& sink) const;
  std::size_t line_bytes_max_ = line_bytes_max;
  std::string begun_;  ///< A line whose end has not come.
};

}  // namespace watchdog::monitor
