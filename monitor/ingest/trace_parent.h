/// \file
/// The value `traceparent` of W3C Trace Context, in a header or in `_meta` of MCP.
#pragma once

#include <string>
#include <string_view>

namespace watchdog::monitor {

/// True for 32 hexadecimal digits in lower case, not all of them 0. Pure.
[[nodiscard]] bool is_trace_id(std::string_view text);

/// Returns the trace's id, 32 hexadecimal digits in lower case. Empty: the text is not valid. Pure.
[[nodiscard]] std::string trace_in(std::string_view traceparent);

}  // namespace watchdog::monitor
