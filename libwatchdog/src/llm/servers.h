/// \file
/// Telling model servers apart by what they answer at their root.
#pragma once

#include <array>
#include <string_view>

#include "watchdog/model_client.h"

namespace watchdog {

/// What is asked for, in this order.
inline constexpr std::array<std::string_view, 3> telling_paths = {"/props", "/api/version",
                                                                  "/version"};

/// What the answer to one of `telling_paths` tells; `unknown`: nothing.
[[nodiscard]] ServerKind server_of(std::string_view path, int status,
                                   std::string_view server_header, std::string_view body);

}  // namespace watchdog
