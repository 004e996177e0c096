/// \file
/// The words of a person among those that an agent adds to them.
#pragma once

#include <string_view>

namespace watchdog {

/// Returns what a person typed below the blocks `<name>…</name>` that known programs put before it,
/// as a part of `text`. A block of another name, such as Cline's `<task>`, is typed. Empty: a
/// program wrote it all. Linear.
[[nodiscard]] std::string_view typed(std::string_view text);

}  // namespace watchdog
