/// \file
/// JSON of which only the beginning is known.
#pragma once

#include <string>
#include <string_view>

namespace watchdog {

/// Returns a JSON text of the complete values in its beginning, the begin of a last string, and the
/// missing brackets. Empty: no value is complete. Wrong JSON stays wrong. One pass. Pure.
[[nodiscard]] std::string closed_json(std::string_view beginning);

}  // namespace watchdog
