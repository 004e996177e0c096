/// \file
/// Secrets of one's own, and where they are taken out besides contents.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "watchdog/report.h"
#include "watchdog/session.h"

namespace watchdog {

/// A stretch of a text. A plain value.
struct Stretch {
  std::size_t begin = 0;
  std::size_t end = 0;  ///< Not above `begin`: there is none.
};

/// The first secret in the text at or after `from`. Called from many threads at once.
using SecretFinder = std::function<Stretch(std::string_view text, std::size_t from)>;

/// From now on `redact` takes out what this finds as well, everywhere in the process. It is not to
/// find anything in `secret_mask`, or texts that are redacted twice change twice. For the start of
/// a program: nothing takes it back. Thread-safe.
void add_redaction(SecretFinder finder);

/// What stands where a secret was; in an identifier with a digest instead of the last character, so
/// that two of them stay two.
inline constexpr std::string_view secret_mask = "[redacted]";

/// An identifier without secrets: `call-[redacted-1a2b3c4d5e6f7081]`. Thread-safe.
[[nodiscard]] std::string redact_identifier(std::string_view text);

/// Takes secrets out of what is said about a session, but not out of its id and its parent's.
void redact(SessionSpec& spec);
/// Names of tools and arguments, by which they are told apart afterwards as well.
void redact(PolicyPatch& patch);

}  // namespace watchdog
