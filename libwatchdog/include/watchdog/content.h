/// \file
/// How much of what agents say is kept, and what never is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "watchdog/names.h"
#include "watchdog/report.h"

namespace watchdog {

/// What is kept of arguments, results, data and messages: nothing, digests and size, those and the
/// first 200 characters (the default), or everything. Secrets are taken out of what is kept. With
/// nothing kept, repetition of calls cannot be told from work.
enum class ContentLevel : std::uint8_t { none, digest, preview, full };

template <>
struct Names<ContentLevel> {
  static constexpr std::string_view all[] = {"none", "digest", "preview", "full"};
};

inline constexpr std::size_t preview_chars_max = 200;

/// The text with every secret of a well-known shape replaced by `[redacted]`: PEM private keys,
/// provider keys (`sk-…`, `ghp_…`, `AKIA…`, …), JSON web tokens, bearer and basic credentials,
/// passwords in URLs, and values of keys called password, secret, token, api_key and the like; and
/// what was added (see redaction.h). Linear in the text. Thread-safe.
[[nodiscard]] std::string redact(std::string_view text);

/// Takes digest and size of the whole content, then cuts it to what `level` keeps. Secrets go from
/// every text of the report, whatever the level. Sealing twice changes nothing more than the
/// stricter of the two levels would.
void seal(Report& report, ContentLevel level);

/// The first `chars_max` characters of a UTF-8 text, never half of one.
[[nodiscard]] std::string_view first_characters(std::string_view text,
                                                std::size_t chars_max) noexcept;

}  // namespace watchdog
