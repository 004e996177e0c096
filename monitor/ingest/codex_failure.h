/// \file
/// Whether the output of a call of Codex says that the call failed.
#pragma once

#include <string_view>

namespace watchdog::monitor {

/// True for a non-zero exit code in the head of the output, a patch that was not applied, and a
/// call that did not run or was stopped. What a command printed says nothing: it may be any text.
/// Pure.
[[nodiscard]] bool is_codex_failure(std::string_view output);

}  // namespace watchdog::monitor
