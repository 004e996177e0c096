#include "facts/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace watchdog {

std::uint64_t digest_of(std::string_view bytes) noexcept {
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace watchdog
