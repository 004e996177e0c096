/// \file
/// Text of agents, files and servers, made safe for a terminal.
///
/// Three kinds of characters are never sent to a terminal unchanged. The first kind is control
/// characters: C0, DEL, C1, and invalid UTF-8, which some terminals take for C1. The second kind
/// changes the direction or the lines of a text: bidirectional controls, U+2028 and U+2029. The
/// third kind is invisible: zero width, fillers, tags and other format characters.
#pragma once

#include <string>
#include <string_view>

namespace watchdog {

/// Returns the text with each such character replaced by its number: `<U+202E>`, a stray byte by
/// `<9B>`. Line feeds and tabs stay. Thread-safe, linear.
[[nodiscard]] std::string terminal_text(std::string_view text);

/// Returns the same in one line: line feeds and tabs become spaces, so no text forges a line.
[[nodiscard]] std::string terminal_line(std::string_view text);

/// Returns JSON with each such character as `\uXXXX`, which means the same; a stray byte as
/// `\ufffd`. Line feeds stay: they are between values, never within a string.
[[nodiscard]] std::string terminal_json(std::string_view json);

}  // namespace watchdog
