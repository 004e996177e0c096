/// \file
/// Brings what the store has for a channel to it, one message after the other, until it took them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/backend.h"
#include "watch/alert_sender.h"

namespace watchdog::monitor {

/// A thread of its own: a channel that hangs delays no other. What it took is written down before
/// the next message goes; so after a crash only the one that was under way is sent again, with the
/// same key. Thread-safe.
class Courier {
 public:
  struct Options {
    std::string name;
    ChannelType type = ChannelType::log;
    Millis retry_first{1'000};
    Millis retry_longest{300'000};
    Metrics* metrics = nullptr;  ///< Null: nobody counts.
    /// Gets what an operator should know. Called from the courier's thread.
    std::function<void(const std::string&)> log;
  };

  /// `backend` and `board` must outlive it. What is overdue goes at once.
  Courier(Backend& backend, AlertBoard& board, AlertSender sender, Options options);
  /// Lets a message that is under way arrive, for some seconds after `stop`.
  ~Courier();
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;

  /// There may be something to send.
  void wake();
  /// Begins no further message.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace watchdog::monitor
