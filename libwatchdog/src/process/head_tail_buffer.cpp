#include "process/head_tail_buffer.h"

#include <algorithm>

namespace watchdog {
namespace {

/// Takes as much as there is room for. Grows as strings do, but never beyond its room.
void fill(std::string& text, std::size_t bytes_max, std::string_view& bytes) {
  const auto part = bytes.substr(0, bytes_max - text.size());
  const auto needed = text.size() + part.size();
  if (needed > text.capacity())
    text.reserve(std::min(bytes_max, std::max(needed, 2 * text.capacity())));
  text += part;
  bytes.remove_prefix(part.size());
}

}  // namespace

void HeadTailBuffer::add(std::string_view bytes) {
  fill(head_, head_max_, bytes);
  fill(tail_, tail_max_, bytes);
  if (tail_max_ == 0) return;
  if (bytes.size() > tail_max_) bytes.remove_prefix(bytes.size() - tail_max_);
  while (!bytes.empty()) {
    const auto count = std::min(bytes.size(), tail_max_ - tail_begin_);
    bytes.copy(tail_.data() + tail_begin_, count);
    tail_begin_ = (tail_begin_ + count) % tail_max_;
    bytes.remove_prefix(count);
  }
}

std::string HeadTailBuffer::release_tail() {
  std::rotate(tail_.begin(), tail_.begin() + static_cast<std::ptrdiff_t>(tail_begin_), tail_.end());
  tail_begin_ = 0;
  return std::move(tail_);
}

}  // namespace watchdog
