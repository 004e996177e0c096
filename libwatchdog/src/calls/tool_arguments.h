/// \file
/// Arguments of a call that the executor itself reads or writes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace watchdog {

/// True for a JSON object, not nested too deep.
[[nodiscard]] bool is_object(std::string_view arguments);

/// `wait_for_previous: true`, unless the tool declares such an argument itself; then it is left to
/// the tool.
[[nodiscard]] bool waits_for_previous(const std::string& arguments,
                                      const std::vector<std::string>& declares);
/// Removes it, whatever it says.
void extract_wait_for_previous(std::string& arguments, const std::vector<std::string>& declares);

/// The same with `confirm_write: true`. REQUIRES: is_object(arguments).
[[nodiscard]] std::string with_confirmation(const std::string& arguments);

}  // namespace watchdog
