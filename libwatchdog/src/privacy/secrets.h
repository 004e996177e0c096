/// \file
/// Finds secrets of well-known shapes in a text. Pure and linear in the text: a search that finds
/// nothing looks at a bounded stretch only, and one that finds a secret is not repeated within it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
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
/// So many bytes of a value decide whether it is a secret.
inline constexpr std::size_t deciding_bytes = 192;

/// The value at `begin`, if `is_secret(Stretch)` holds for its first bytes. `end_in(text)` returns
/// where the value ends, and sees the whole text only if it is a secret.
template <class End, class IsSecret>
[[nodiscard]] Stretch decided(std::string_view text, std::size_t begin, const End& end_in,
                              const IsSecret& is_secret) {
  const auto seen = end_in(text.substr(0, begin + deciding_bytes));
  if (seen <= begin || !is_secret(Stretch{begin, seen})) return {};
  return {begin, seen < begin + deciding_bytes / 2 ? seen : end_in(text)};
}

/// Remembers which programs the line of a text names. Its places never go back.
class NamedPrograms {
 public:
  /// Returns whether the line up to `at`, or its last 400 bytes, names a program that begins with
  /// `command`, or with its first word and then has the other. A pipe begins another line.
  [[nodiscard]] bool has(std::string_view text, std::size_t at, std::string_view command);

 private:
  void read_to(std::string_view text, std::size_t end);

  std::size_t read_ = 0;                 ///< Up to here.
  std::size_t line_ = 0;                 ///< The begin of the line.
  std::array<std::size_t, 16> first_{};  ///< One after the last place of each one's first word.
  std::array<std::size_t, 16> whole_{};  ///< The same, if the other word followed. 0: not named.
};

/// Returns whether a private key begins in the line and does not end in it.
[[nodiscard]] bool begins_key(std::string_view line);
/// Returns the parts of a line that may belong to a private key: long runs of base64, or all of it.
[[nodiscard]] std::vector<Stretch> key_parts(std::string_view line);

/// True for the mask, of whatever kind, and for the begin of one that was cut.
[[nodiscard]] bool is_masked(std::string_view value);

/// The value of the name at `at`, if the name makes it a secret. It may end a longer name.
[[nodiscard]] Stretch named_secret(std::string_view text, std::size_t at, const SecretShape& name);

/// Returns the value that the flag before `at` gives to its command, if that is a secret.
[[nodiscard]] Stretch flag_secret(std::string_view text, std::size_t at, const SecretShape& flag,
                                  NamedPrograms& programs);

/// Adds the values of parameters in queries, fragments and forms whose names make them secrets.
void add_query_secrets(std::string_view text, std::vector<Stretch>& all);

/// The password of a line for a host in a netrc file that begins at `at`.
[[nodiscard]] Stretch netrc_secret(std::string_view text, std::size_t at);

/// The value at `at`, quoted or not, if it can be one that people chose.
[[nodiscard]] Stretch chosen_secret(std::string_view text, std::size_t at);

/// The text around a bare value.
enum class Surroundings : std::uint8_t {
  text,
  query,            ///< `&` ends it,
  semicolon_query,  ///< or `;`,
  encoded_query,    ///< or `%26`: of a URL within a URL.
};

/// Returns the end of a bare value that begins at `from`: at a blank, a quote, a closing bracket.
[[nodiscard]] std::size_t bare_end(std::string_view text, std::size_t from, Surroundings within);

/// A quoted text at `at`, without its quotes.
[[nodiscard]] std::optional<Stretch> quoted_at(std::string_view text, std::size_t at);

/// Returns whether a word may begin here: not within another one. The end of an escape is not a
/// letter of a word: `\n` in JSON, `\u0026`, `%3D`, the `m` after a change of colour.
[[nodiscard]] bool may_begin_word(std::string_view text, std::size_t at);

/// Returns whether the text is a placeholder: `${NAME}`, `<password>`, `****`, `[hidden]`.
[[nodiscard]] bool is_placeholder(std::string_view value);

/// Types, and words of people who write about secrets.
[[nodiscard]] bool is_harmless_word(std::string_view word);

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
