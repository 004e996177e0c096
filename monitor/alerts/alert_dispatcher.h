/// \file
/// Brings what the store has for a channel to it, one message after the other, until it took them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "alerts/alert_sender.h"
#include "core/backend.h"

namespace watchdog::monitor {

/// A thread for one channel: a channel that hangs delays no other. Each result is stored before the
/// next message goes out, so after a crash only the message under way is sent again, with the same
/// key. Thread-safe.
class AlertDispatcher {
 public:
  struct Options {
    std::string name;
    ChannelType type = ChannelType::log;
    Millis retry_first{1'000};
    Millis retry_longest{300'000};
    Millis timeout{10'000};      ///< Of one try of the channel.
    Metrics* metrics = nullptr;  ///< Null: not counted.
    /// Gets what an operator should know. Called from the dispatcher's thread.
    std::function<void(const std::string&)> log;
  };

  /// `backend` and `registry` must outlive it. Overdue messages are sent at once.
  AlertDispatcher(Backend& backend, ChannelStatusRegistry& registry, AlertSender sender,
                  Options options);
  /// Lets a message that is under way arrive, for some seconds after `stop`.
  ~AlertDispatcher();
  AlertDispatcher(const AlertDispatcher&) = delete;
  AlertDispatcher& operator=(const AlertDispatcher&) = delete;

  /// There may be something to send.
  void wake();
  /// Begins no further message.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace watchdog::monitor
