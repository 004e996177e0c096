#include "wrapper/lines.h"

#include <algorithm>
#include <cstring>

namespace watchdog::monitor {

void LineReader::emit(std::string_view line, const Sink& sink) const {
  line = line.substr(0, line_bytes_max_);
  if (line.ends_with('\r')) line.remove_suffix(1);
  sink(line);
}

std::uint64_t newlines_in(std::string_view bytes) {
  std::uint64_t count = 0;
  // No more than a byte can count, and of a fixed size: compilers make vectors of bytes of it.
  constexpr std::size_t block_bytes = 240;
  for (; bytes.size() >= block_bytes; bytes.remove_prefix(block_bytes)) {
    std::uint8_t found = 0;
    for (std::size_t at = 0; at < block_bytes; ++at)
      found = static_cast<std::uint8_t>(found + (bytes.data()[at] == '\n' ? 1 : 0));
    count += found;
  }
  return count + static_cast<std::uint64_t>(std::ranges::count(bytes, '\n'));
}

void LineReader::keep(std::string_view bytes) {
  begun_.append(bytes.substr(0, line_bytes_max_ - std::min(line_bytes_max_, begun_.size())));
}

void LineReader::feed(std::string_view bytes, const Sink& sink) {
  while (!bytes.empty()) {
    const auto* const end = static_cast<const char*>(memchr(bytes.data(), '\n', bytes.size()));
    if (end == nullptr) return keep(bytes);
    const auto line = bytes.substr(0, static_cast<std::size_t>(end - bytes.data()));
    if (begun_.empty()) {
      emit(line, sink);
    } else {
      keep(line);
      emit(begun_, sink);
      begun_.clear();
    }
    bytes.remove_prefix(line.size() + 1);
  }
}

void LineReader::finish(const Sink& sink) {
  if (!begun_.empty()) emit(begun_, sink);
  begun_.clear();
}

}  // namespace watchdog::monitor
