/// \file
/// The common parts of all pages: head, styles, script, and the content security policy.
#pragma once

#include <string>
#include <string_view>

#include "api/message.h"

namespace watchdog::monitor {

/// The text as HTML shows it. Thread-safe.
[[nodiscard]] std::string escaped(std::string_view text);

/// Returns the page around `body`, which is markup; `title` is text. `page` names the page for the
/// script: list, session, login or notice. Thread-safe.
[[nodiscard]] Response in_shell(std::string_view page, std::string_view title,
                                std::string_view body, int status = 200);

}  // namespace watchdog::monitor
