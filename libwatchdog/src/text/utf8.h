/// \file
/// Finds characters in a text that may be invalid.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace watchdog {

/// Bytes of the UTF-8 character that begins the text, or 0 if none does (RFC 3629: no overlong
/// forms, no surrogates, nothing above U+10FFFF).
[[nodiscard]] std::size_t character_bytes(std::string_view text) noexcept;

/// Takes off the end what a cut left of a character.
void drop_half_character(std::string& text);

[[nodiscard]] bool is_utf8(std::string_view text) noexcept;

/// Returns the number of characters; each invalid byte counts as one.
[[nodiscard]] std::size_t characters_in(std::string_view text) noexcept;

/// Returns the last characters of a UTF-8 text; no character is split.
[[nodiscard]] std::string_view last_characters(std::string_view text, std::size_t count) noexcept;

}  // namespace watchdog
