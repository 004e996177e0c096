/// \file
/// The loop of a thread that serves connections.
#pragma once

#include <boost/asio/io_context.hpp>
#include <new>

namespace watchdog::monitor {

/// Runs handlers until there are none. A handler for which no memory is left ends, and the others
/// go on: connections give up by themselves before it comes to that.
inline void run_to_end(boost::asio::io_context& context) {
  while (true) {
    try {
      context.run();
      return;
    } catch (const std::bad_alloc&) {
    }
  }
}

}  // namespace watchdog::monitor
