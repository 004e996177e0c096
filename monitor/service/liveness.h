/// \file
/// Reports regularly that the monitor works, so that a missing report is noticed.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/backend.h"

namespace boost::asio {
class io_context;
}

namespace watchdog::monitor {

/// A word is said only if the HTTP thread came here and the store thread came round since the last
/// time: no timer of its own says it blindly. Use from the thread that runs the io_context.
class Liveness {
 public:
  struct Options {
    std::string url;       ///< Requested while reports can be stored; empty: none.
    Millis every{60'000};  ///< Time between two requests.
    /// Gets what an operator should know, from a thread of its own.
    std::function<void(const std::string&)> log;
  };

  /// Reports to systemd that the service is ready, if requested. `backend` must outlive this.
  Liveness(boost::asio::io_context& context, const Backend& backend, Options options);
  ~Liveness();
  Liveness(const Liveness&) = delete;
  Liveness& operator=(const Liveness&) = delete;

  /// The service is about to stop; nothing more is said after that.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace watchdog::monitor
