/// \file
/// Adds patterns of secrets, and redacts texts besides contents.
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

/// Returns the first secret in the text at or after `from`. Called from many threads at once.
using SecretFinder = std::function<Stretch(std::string_view text, std::size_t from)>;

/// Adds a finder that `redact` uses from now on, everywhere in the process. It must not match
/// `secret_mask`, or texts that are redacted twice change twice. Call it at the start of a program;
/// it cannot be removed. Thread-safe.
void add_redaction(SecretFinder finder);

/// Returns the secret that contains `at` but does not begin there; none: empty, at `at`. It looks
/// at 8 KiB around. Thread-safe.
[[nodiscard]] Stretch secret_around(std::string_view text, std::size_t at);

/// Replaces a secret; in an identifier with a digest in place of the last character, so different
/// ids stay different.
inline constexpr std::string_view secret_mask = "[redacted]";

/// An identifier without secrets: `call-[redacted-1a2b3c4d5e6f7081]`. Thread-safe.
[[nodiscard]] std::string redact_identifier(std::string_view text);

/// Redacts the properties of a session, except its id and its parent's.
void redact(SessionSpec& spec);
/// Redacts each text of a report that was not sealed (see content.h).
void redact(Report& report);
/// Redacts names of tools and arguments; they stay distinguishable.
void redact(PolicyPatch& patch);

/// Redacts single lines of a longer text. Earlier lines can make a secret of a line: a private
/// key's begin, a netrc file's host, a name with its value below. Use from one thread at a time.
class LineRedactor {
 public:
  /// Returns the next line without secrets.
  [[nodiscard]] std::string redacted(std::string_view line) const;
  /// Moves to the line after it. Copies at most its last 512 bytes.
  void pass(std::string_view line);

 private:
  std::string before_;      ///< The end of the lines before, each with a newline.
  int key_lines_left_ = 0;  ///< Lines that may still belong to a private key.
};

}  // namespace watchdog
