/// \file
/// How much of agents' contents is kept, and which parts never are.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "watchdog/session.h"

namespace watchdog {

inline constexpr std::size_t preview_chars_max = 200;

/// Returns the text with every secret of a well-known shape replaced by `[redacted]`. These shapes
/// are private keys, JSON web tokens, and tokens as their providers publish them (`sk-…`, `ghp_…`,
/// `AKIA…`, …). They are also credentials and cookies of headers, passwords in URLs and commands,
/// and values of names such as password, secret, token or api_key. Users may add shapes (see
/// redaction.h). Linear in the text. Thread-safe.
[[nodiscard]] std::string redact(std::string_view text);

/// Returns the text as it is compared, if it has secrets: each of them is replaced by 8 bits of its
/// digest. Two passwords then differ nearly always. Nevertheless a digest of the result helps
/// little to guess one: of any list of guesses one in 256 remains, whatever is known of the rest.
/// Secrets after the first 64 KiB stay as they are. Linear in these. Thread-safe.
[[nodiscard]] std::optional<std::string> as_compared(std::string_view text);

/// Computes digest and size of the whole content, as it was sent (see as_compared). No effect if
/// the report has them.
void measure(Report& report);

/// Computes digest and size of the whole content, then cuts it to what `level` keeps. Secrets are
/// removed from every text of the report at each level. Sealing twice has the effect of the
/// stricter level.
void seal(Report& report, ContentLevel level);

/// Returns the bytes of all texts, which they take in memory besides the size of the value.
[[nodiscard]] std::size_t text_bytes(const Report& report);
[[nodiscard]] std::size_t text_bytes(const SessionSpec& spec);

/// The first `chars_max` characters of a UTF-8 text, never half of one.
[[nodiscard]] std::string_view first_characters(std::string_view text,
                                                std::size_t chars_max) noexcept;

}  // namespace watchdog
