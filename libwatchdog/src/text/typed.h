/// \file
/// The words of a person among those that an agent adds to them.
#pragma once

#include <string_view>

namespace watchdog {

/// Returns what a person typed below the blocks `<name>…</name>` that agents put before it, as a
/// part of `text`. Empty: a program wrote it all. A block without an end counts as typed, unless it
/// is one of a known program. Linear.
[[nodiscard]] std::string_view typed(std::string_view text);

}  // namespace watchdog
