/// \file
/// How the bytes of an answer's body are divided, by its head or by how it begins.
#pragma once

#include <cstdint>
#include <string_view>

namespace watchdog::monitor {

/// How a reader finds the parts of a body.
enum class AnswerForm : std::uint8_t {
  opaque,  ///< any bytes: every piece counts
  events,  ///< server-sent events: comments and pings do not
  lines    ///< JSON lines: blank ones do not
};

/// Returns the form that a content type names, in any case and with any parameters; `opaque` for
/// all other types.
[[nodiscard]] AnswerForm form_of_type(std::string_view content_type) noexcept;

/// The kind of a body by its first bytes.
enum class AnswerStart : std::uint8_t {
  unknown,  ///< too few of them came
  events,   ///< a field or a comment of server-sent events
  json,     ///< an object: a line, or an answer in one piece
  other     ///< something else, such as a page or a sentence
};

/// Looks at the first bytes that are not blank. Many servers send streams under a wrong type.
[[nodiscard]] AnswerStart start_of_body(std::string_view bytes) noexcept;

}  // namespace watchdog::monitor
