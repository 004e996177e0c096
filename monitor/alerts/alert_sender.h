/// \file
/// One attempt to send alerts through a channel.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "alerts/alert_text.h"
#include "watchdog/settings.h"

namespace watchdog::monitor {

/// The result of an attempt. A plain value.
struct SendResult {
  /// `refused`: the channel works and does not want this message.
  enum class Kind : std::uint8_t { taken, failed, refused };
  Kind kind = Kind::taken;
  std::string answer;                 ///< The response, for a person, without secrets.
  std::optional<Millis> retry_after;  ///< The pause that the channel asks for.
};

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
  [[nodiscard]] SendResult run_it(const AlertMessage& message, const std::stop_token& stop) const;

  Options options_;
};

}  // namespace watchdog::monitor
