/// \file
/// Writes all of some bytes to a descriptor.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <string_view>

namespace watchdog {

/// Writes until all bytes are written; a signal only interrupts it. Returns 0 or an errno.
[[nodiscard]] inline int write_all(int descriptor, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const auto count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno;
    if (count == 0) return EIO;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return 0;
}

}  // namespace watchdog
