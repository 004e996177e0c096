/// \file
/// What the program does without arguments.
#pragma once

namespace watchdog::monitor {

/// Runs the monitor as `serve --follow` does, opens its page, and prints which sessions need a
/// person. If a monitor has the database or the address already, it prints and opens that of this
/// one and returns 0. Returns the exit code.
[[nodiscard]] int serve_here();

}  // namespace watchdog::monitor
