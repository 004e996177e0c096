/// \file
/// The speaker of a message, by its role.
#pragma once

#include <cstdint>
#include <string_view>

namespace watchdog {

/// The speaker of a message.
enum class Speaker : std::uint8_t {
  agent,    ///< the agent or one of its models; every role that is not in the table
  person,   ///< a user, or the program that gives instructions in a user's name
  program,  ///< the output of a tool, terminal or environment
  hook      ///< a hook's own message, which says nothing of the agent
};

/// Returns the speaker. Roles are compared as they are written. Pure.
[[nodiscard]] Speaker speaker_of(std::string_view role) noexcept;

/// Returns true for roles that only models have. Other roles of `Speaker::agent` may be anything.
[[nodiscard]] bool is_model(std::string_view role) noexcept;

}  // namespace watchdog
