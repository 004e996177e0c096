/// \file
/// Whether a message ends with an act that its agent announces.
#pragma once

#include <string_view>

namespace watchdog {

/// Returns true if the last sentence of a message announces an act of its agent: "Now I will run
/// the tests.", "Let me look at the log:". A question, an offer, a condition, a wait, and a
/// sentence that addresses the reader announce none. English only. Only the last 400 bytes count.
/// Pure.
[[nodiscard]] bool ends_with_promise(std::string_view message);

}  // namespace watchdog
