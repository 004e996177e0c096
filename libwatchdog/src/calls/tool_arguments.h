/// \file
/// Arguments of a call that the executor itself reads or writes, and tools that it does not run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "watchdog/tool.h"

namespace watchdog {

/// True for a JSON object, not nested too deep.
[[nodiscard]] bool is_object(std::string_view arguments);

/// `wait_for_previous: true`, unless the tool declares such an argument itself; then it is left to
/// the tool.
[[nodiscard]] bool waits_for_previous(const std::string& arguments,
                                      const std::vector<std::string>& declares);
/// Removes it, whatever it says.
void extract_wait_for_previous(std::string& arguments, const std::vector<std::string>& declares);

/// The arguments with `confirm_write: true`. REQUIRES: is_object(arguments).
[[nodiscard]] std::string with_confirmation(const std::string& arguments);

/// A text that is the same for calls of one tool with equal arguments. REQUIRES:
/// is_object(arguments).
[[nodiscard]] std::string key_of_call(std::string_view tool, std::string_view arguments);

/// True for a tool whose effects could come at any time after its call was given up.
[[nodiscard]] bool is_unfenced(const ToolSpec& spec) noexcept;

}  // namespace watchdog
