/// \file
/// What a command of a shell is for, as far as its words say it.
#pragma once

#include <string>
#include <string_view>

namespace watchdog {

/// A plain value.
struct CommandPurpose {
  bool waits = false;       ///< It sleeps, or watches something that runs.
  bool reads_only = false;  ///< Each of its programs is known to change no file.
  /// It is not empty, and runs nothing but `true` or `:`. Comments and punctuation run nothing.
  bool does_nothing = false;
};

/// Returns the first 60 bytes of the command among the arguments of a call, on one line. They
/// are a JSON object, or the command itself. Empty: they hold none. It looks at 4 KiB.
[[nodiscard]] std::string command_in(std::string_view arguments);

/// Reads the first 4 KiB of a command. An empty one waits for what runs already. Linear.
[[nodiscard]] CommandPurpose purpose_of_command(std::string_view command);

}  // namespace watchdog
