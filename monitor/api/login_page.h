/// \file
/// The page on which a browser submits its token: HTML without JavaScript.
#pragma once

#include <string_view>

#include "api/message.h"

namespace watchdog::monitor {

/// The form. `trouble`: why the last try was refused; empty: there was none.
[[nodiscard]] Response login_page(std::string_view trouble = {});
/// The same for a refusal, with its status and headers.
[[nodiscard]] Response login_page(const Response& refusal, std::string_view trouble = {});

}  // namespace watchdog::monitor
