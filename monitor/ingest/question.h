/// \file
/// Whether an answer asks its reader something.
#pragma once

#include <string>
#include <string_view>

namespace watchdog::monitor {

/// Returns the question with which an answer ends, on one line and of at most 200 characters;
/// empty: it ends otherwise. It is the last line that ends with a question mark, if nothing follows
/// but choices, or a last line with `(y/n)` or the like. Only the last 2,000 bytes count. Pure.
[[nodiscard]] std::string closing_question(std::string_view answer);

}  // namespace watchdog::monitor
