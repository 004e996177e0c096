/// \file
/// What somebody probably meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace watchdog {

/// The word that takes the fewest changed letters to come from; empty: none is near.
[[nodiscard]] std::string nearest(std::string_view word, const std::vector<std::string>& words);

}  // namespace watchdog
