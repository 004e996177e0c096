#include "facts/ids.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <span>

namespace watchdog {
namespace {

void fill_random(std::span<std::uint8_t> bytes) {
  if (getrandom(bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size())) return;
  std::random_device device;
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(device());
}

/// 48 bits of Unix ms, then 80 random ones: what both formats begin with.
std::array<std::uint8_t, 16> stamped(WallTime now) {
  std::array<std::uint8_t, 16> bytes{};
  const auto ms = static_cast<std::uint64_t>(now.time_since_epoch().count());
  for (std::size_t i = 0; i < 6; ++i) bytes[i] = static_cast<std::uint8_t>(ms >> (40 - 8 * i));
  fill_random(std::span(bytes).subspan(6));
  return bytes;
}

bool is_session_id_letter(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("._:@-").find(c) != std::string_view::npos;
}

}  // namespace

bool is_session_id(std::string_view id) noexcept {
  // A browser takes these two for folders, and asks for another path.
  if (id.empty() || id == "." || id == ".." || id.size() > session_id_bytes_max) return false;
  return std::all_of(id.begin(), id.end(), is_session_id_letter);
}

std::string as_session_id(std::string id) {
  for (auto& letter : id)
    if (!is_session_id_letter(letter)) letter = '-';
  id.resize(std::min(id.size(), session_id_bytes_max));
  if (id == "." || id == "..") std::ranges::fill(id, '-');
  return id;
}

std::string new_ulid(WallTime now) {
  static constexpr std::string_view alphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
  const auto bytes = stamped(now);
  std::string text;
  // 128 bits in 26 digits of 5: the first digit holds the top 3.
  for (int shift = 125; shift >= 0; shift -= 5) {
    unsigned digit = 0;
    for (int bit = shift + 4; bit >= shift; --bit) {
      const unsigned value = bit > 127 ? 0 : (bytes[15 - bit / 8] >> (bit % 8)) & 1U;
      digit = digit << 1U | value;
    }
    text += alphabet[digit];
  }
  return text;
}

std::string new_uuid7(WallTime now) {
  static constexpr std::string_view digits = "0123456789abcdef";
  auto bytes = stamped(now);
  bytes[6] = static_cast<std::uint8_t>((bytes[6] & 0x0FU) | 0x70U);
  bytes[8] = static_cast<std::uint8_t>((bytes[8] & 0x3FU) | 0x80U);
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += digits[bytes[i] >> 4U];
    text += digits[bytes[i] & 0x0FU];
  }
  return text;
}

}  // namespace watchdog
