/// \file
/// Finds secrets of well-known shapes in a text. Pure and linear in the text.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "privacy/redaction.h"
#include "privacy/secret_shapes.h"

namespace watchdog {

/// The secrets of well-known shapes in the text, in order and without overlap.
[[nodiscard]] std::vector<Stretch> well_known_secrets(std::string_view text);

/// The largest distance of a secret from what makes it one: its name, its command, the begin of its
/// URL.
inline constexpr std::size_t secret_context = 512;

/// Returns whether a private key begins in the line and does not end in it.
[[nodiscard]] bool begins_key(std::string_view line);
/// Returns the parts of a line that may belong to a private key: long runs of base64, or all of it.
[[nodiscard]] std::vector<Stretch> key_parts(std::string_view line);

/// True for the mask, of whatever kind, and for the begin of one that was cut.
[[nodiscard]] bool is_masked(std::string_view value);

/// The value of the name at `at`, if the name makes it a secret. It may end a longer name.
[[nodiscard]] Stretch named_secret(std::string_view text, std::size_t at, const SecretShape& name);

/// Returns the value that the flag before `at` gives to its command, if that is a secret.
[[nodiscard]] Stretch flag_secret(std::string_view text, std::size_t at, const SecretShape& flag);

/// The password of a line for a host in a netrc file that begins at `at`.
[[nodiscard]] Stretch netrc_secret(std::string_view text, std::size_t at);

/// The value at `at`, quoted or not, if it can be one that people chose.
[[nodiscard]] Stretch chosen_secret(std::string_view text, std::size_t at);

/// Returns the end of a bare value that begins at `from`: at a blank, a quote, a closing bracket.
[[nodiscard]] std::size_t bare_end(std::string_view text, std::size_t from, bool in_query);

/// A quoted text at `at`, without its quotes.
[[nodiscard]] std::optional<Stretch> quoted_at(std::string_view text, std::size_t at);

/// Returns whether a word may begin here: not within another one. The end of an escape is not a
/// letter of a word: `\n` in JSON, `\u0026`, `%3D`, the `m` after a change of colour.
[[nodiscard]] bool may_begin_word(std::string_view text, std::size_t at);

/// Returns whether the text is a placeholder: `${NAME}`, `<password>`, `****`, `[hidden]`.
[[nodiscard]] bool is_placeholder(std::string_view value);

/// Returns whether a program may have made it: digits and letters, or letters at random.
[[nodiscard]] bool looks_random(std::string_view text);

/// Returns the end of a run of characters of `set`.
[[nodiscard]] inline std::size_t skip(std::string_view text, std::size_t at, std::string_view set) {
  const auto end = text.find_first_not_of(set, at);
  return end == std::string_view::npos ? text.size() : end;
}

// Letters, digits and such in ASCII, whatever the locale.

[[nodiscard]] constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
[[nodiscard]] constexpr char folded(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}
[[nodiscard]] constexpr bool is_letter(char c) {
  return folded(c) >= 'a' && folded(c) <= 'z';
}
[[nodiscard]] constexpr bool is_alnum(char c) {
  return is_letter(c) || is_digit(c);
}
/// Control characters count, such as the one that begins a change of colour.
[[nodiscard]] constexpr bool is_blank(char c) {
  return static_cast<unsigned char>(c) <= ' ' || c == '\x7f';
}
[[nodiscard]] constexpr bool is_quote(char c) {
  return c == '"' || c == '\'' || c == '`';
}

/// Returns whether `lower` is at `at`, in any case.
[[nodiscard]] constexpr bool has_folded(std::string_view text, std::size_t at,
                                        std::string_view lower) {
  if (at > text.size() || text.size() - at < lower.size()) return false;
  for (std::size_t i = 0; i < lower.size(); ++i)
    if (folded(text[at + i]) != lower[i]) return false;
  return true;
}

}  // namespace watchdog
