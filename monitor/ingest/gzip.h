/// \file
/// Inflates bodies that clients compressed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "watchdog/result.h"

namespace watchdog::monitor {

/// Returns the content of a gzip file with one or more members. Errors: `malformed`: it is not
/// gzip, is cut off or has a wrong check sum; `exhausted`: it has more than `bytes_max` bytes.
/// Never takes much more memory than that. Pure.
[[nodiscard]] Result<std::string> inflated(std::string_view gzip, std::size_t bytes_max);

}  // namespace watchdog::monitor
