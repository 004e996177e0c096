/// \file
/// The beginning and the end of an output of any length, in bounded memory.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace watchdog {

class HeadTailBuffer {
 public:
  HeadTailBuffer(std::size_t head_bytes, std::size_t tail_bytes)
      : head_max_(head_bytes), tail_max_(tail_bytes) {}

  void add(std::string_view bytes);

  /// Together all of it, if it is not longer than both.
  [[nodiscard]] std::string release_head() { return std::move(head_); }
  [[nodiscard]] std::string release_tail();

 private:
  std::size_t head_max_;
  std::size_t tail_max_;
  std::string head_;
  std::string tail_;            // full: a ring
  std::size_t tail_begin_ = 0;  // of the ring
};

}  // namespace watchdog
