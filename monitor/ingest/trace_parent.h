/// \file
/// The header `traceparent` of W3C Trace Context.
#pragma once

#include <string>
#include <string_view>

namespace watchdog::monitor {

/// Returns the trace's id, 32 hexadecimal digits in lower case. Empty: the text is not valid. Pure.
[[nodiscard]] std::string trace_in(std::string_view traceparent);

}  // namespace watchdog::monitor
