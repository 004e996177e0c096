/// \file
/// What a command of a shell is for, as far as its words say it.
#pragma once

#include <string_view>

namespace watchdog {

/// A plain value.
struct CommandPurpose {
  bool waits = false;       ///< It sleeps, or watches something that runs.
  bool reads_only = false;  ///< Each of its programs is known to change no file.
};

/// Reads the first 4 KiB of a command. An empty one waits for what runs already. Linear.
[[nodiscard]] CommandPurpose purpose_of_command(std::string_view command);

}  // namespace watchdog
