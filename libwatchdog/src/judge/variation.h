/// \file
/// Removes from a text what differs between two runs of the same thing.
#pragma once

#include <string>
#include <string_view>

namespace watchdog {

/// Returns the text with replacements for the parts that differ between two runs of the same thing.
/// These are times and durations, ids of processes, requests and chunks, UUIDs, addresses, random
/// parts of temporary paths, and colours. Other numbers stay: "59 failed" is not "58 failed". White
/// space is folded. Linear in the text.
[[nodiscard]] std::string without_variation(std::string_view text);

}  // namespace watchdog
