/// \file
/// The target of a request as its server understands it.
#pragma once

#include <string>
#include <string_view>

namespace watchdog::monitor {

/// Returns the target with the characters that the escapes of its path stand for, and without empty
/// segments: servers take `/v1/chat%2Fcompletions` for the path that it means. The query stays as
/// it is. For the question which API is meant; what is sent on is the client's own text.
[[nodiscard]] std::string plain_target(std::string_view target);

}  // namespace watchdog::monitor
