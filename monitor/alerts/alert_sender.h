/// \file
/// One attempt to send alerts through a channel.
#pragma once

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "alerts/alert_text.h"
#include "alerts/send_result.h"
#include "watchdog/settings.h"

namespace watchdog::monitor {

/// A channel, ready to be used. Thread-safe.
class AlertSender {
 public:
  struct Options {
    AlertChannel channel;
    ChannelSecrets secrets;
    AlertWording wording;
    /// Gets the messages of a channel of type log.
    std::function<void(const std::string&)> log;
  };
  explicit AlertSender(Options options) : options_(std::move(options)) {}

  /// True if each alert needs a message of its own.
  [[nodiscard]] bool is_single() const;
  /// Tries once, for the channel's timeout at most.
  [[nodiscard]] SendResult send(const AlertMessage& message,
                                const std::stop_token& stop = {}) const;

 private:
  [[nodiscard]] SendResult post_it(const AlertMessage& message, const std::stop_token& stop) const;
  [[nodiscard]] SendResult mail_it(const AlertMessage& message, const std::stop_token& stop) const;
  [[nodiscard]] SendResult run_it(const std::vector<std::string>& command, std::string input,
                                  const std::stop_token& stop) const;

  Options options_;
};

}  // namespace watchdog::monitor
