/// \file
/// What a server says went wrong, in whichever of the usual shapes.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace watchdog {

/// A plain value.
struct ErrorBody {
  std::string message;
  std::string type;
  std::string code;  ///< A word; a number is in `status`.
  int status = 0;    ///< As an HTTP status; 0: not known.
};

/// Reads `{"error":{…}}`, `{"error":"…"}`, `{"object":"error",…}`, `{"detail":…}`; nothing: it is
/// not an error.
[[nodiscard]] std::optional<ErrorBody> error_body_from(const nlohmann::json& value);
/// The same, and for text that is not JSON the text itself as message.
[[nodiscard]] ErrorBody error_body_from(std::string_view text);

}  // namespace watchdog
