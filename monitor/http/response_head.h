/// \file
/// Status lines and headers of responses, as they go over the wire.
#pragma once

#include <cstddef>
#include <string>

#include "api/message.h"

namespace watchdog::monitor {

/// A body of up to this size is copied behind its head, since one buffer is written faster than
/// two. A larger one is written from where it is.
inline constexpr std::size_t copied_body_bytes_max = 16 * 1024;

/// The head of a response that has a body of known length, or none. Has room for a body that is
/// copied behind it.
[[nodiscard]] std::string response_head(const Response& response, bool keep_alive);
/// Returns the head of a response whose body comes in pieces. Without chunks it ends with the
/// connection.
[[nodiscard]] std::string pieces_head(const Response& response, bool chunked, bool keep_alive);

}  // namespace watchdog::monitor
