/// \file
/// The meanings of a model server's refusals.
#pragma once

#include <string_view>

namespace watchdog::monitor {

[[nodiscard]] constexpr bool is_error(int status) noexcept {
  return status >= 400;
}

[[nodiscard]] constexpr bool is_redirect(int status) noexcept {
  return status >= 300 && !is_error(status);
}

/// Returns the subject of the wait after an error (see wait_reports); empty: none. Some servers
/// have only a text where others have a status.
[[nodiscard]] std::string_view wait_after_refusal(int status, std::string_view error);

/// Returns the reason (see reasons.h) of an end after a wait for `what`. `status` 0: the server did
/// not answer. `reached`: it accepted the connection.
[[nodiscard]] std::string_view reason_of_refusal(std::string_view what, int status, bool reached);

}  // namespace watchdog::monitor
