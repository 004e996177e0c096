/// \file
/// Regular expressions that a user wrote, as RE2 has them: linear in the text, whatever they are.
#pragma once

#include <string>

namespace watchdog {

/// Why it must not be used, to be read after its name; empty: it may.
[[nodiscard]] std::string pattern_fault(const std::string& pattern);

}  // namespace watchdog
