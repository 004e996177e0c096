/// \file
/// The loop of a thread that looks at sessions every few seconds.
#pragma once

#include <poll.h>
#include <sys/eventfd.h>

#include <exception>
#include <stop_token>

#include "files/open_file.h"
#include "watchdog/time.h"

namespace watchdog::monitor {

/// Calls `look` until a stop, with a pause after each. A stop ends the pause at once. `look` may
/// throw; `failed` is called then, and the next look comes as usual. A test gives the process a
/// faster clock, which `poll` follows and a condition does not.
template <class Look, class Failed>
void look_in_rounds(const std::stop_token& stop, Millis every, Look look, Failed failed) {
  const OpenFile stopped(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  const std::stop_callback wake(stop, [&] { eventfd_write(stopped.fd(), 1); });
  while (!stop.stop_requested()) {
    try {
      look();
    } catch (const std::exception&) {
      failed();
    }
    pollfd waits{.fd = stopped.fd(), .events = POLLIN, .revents = 0};
    (void)poll(&waits, 1, static_cast<int>(every.count()));
  }
}

}  // namespace watchdog::monitor
