#include "wrapper/lines.h"

#include <algorithm>
#include <cstring>

namespace watchdog::monitor {
namespace {

void emit(std::string_view line, const LineReader::Sink& sink) {
  line = line.substr(0, LineReader::line_bytes_max);
  if (line.ends_with('\r')) line.remove_suffix(1);
  sink(line);
}

}  // namespace

std::uint64_t newlines_in(std::string_view bytes) {
  std::uint64_t count = 0;
  while (!bytes.empty()) {
    // As many as a byte can count: compilers make vectors of bytes of it.
    const auto block = bytes.substr(0, 255);
    std::uint8_t found = 0;
    for (const char byte : block) found = static_cast<std::uint8_t>(found + (byte == '\n' ? 1 : 0));
    count += found;
    bytes.remove_prefix(block.size());
  }
  return count;
}

void LineReader::keep(std::string_view bytes) {
  begun_.append(bytes.substr(0, line_bytes_max - std::min(line_bytes_max, begun_.size())));
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
