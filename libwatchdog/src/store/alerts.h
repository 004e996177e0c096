/// \file
/// Alerts and their deliveries as the store keeps them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "judge/alert_rule.h"
#include "watchdog/report.h"
#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

/// The state of an alert's delivery to one channel.
enum class DeliveryState : std::uint8_t {
  pending,  ///< To be sent, again if that failed.
  sent,     ///< The channel took it.
  dead,     ///< Given up: the channel does not want this message.
  held      ///< Not sent: a person acknowledged it before.
};

template <>
struct Names<DeliveryState> {
  static constexpr std::string_view all[] = {"pending", "sent", "dead", "held"};
};

/// A plain value.
struct Delivery {
  std::string channel{};
  DeliveryState state = DeliveryState::pending;
  std::int64_t attempts = 0;
  std::string error{};  ///< Of the newest attempt; empty: there was none.
};

/// An alert and its session. A plain value.
struct Alert {
  std::int64_t id = 0;  ///< Rises, never used again.
  std::string session, agent, parent, task;
  std::string folder{};  ///< The name of the one that the session works in; empty: not known.
  AlertKind kind = AlertKind::alert;
  std::string word{};  ///< The session's health or lifecycle.
  std::string reason{};
  std::string detail{};  ///< The session's own text: a question, or the error with which it ended.
  WallTime at{};         ///< Since when the condition holds.
  Instant episode{};     ///< All alerts about one trouble share it.
  std::string
      message{};  ///< Alerts with the same one are sent together; empty: it waits for others.
  std::optional<Instant> sent_with{};  ///< When it became part of the message.
  std::string acknowledged_by{};       ///< The person who acknowledged it; empty: nobody did.
  WallTime acknowledged_at{};
  std::optional<WallTime> snoozed_until{};
  std::vector<Delivery> deliveries{};
};

/// The reason with the session's own text, for people who may read the session.
[[nodiscard]] inline std::string whole_reason(const Alert& alert) {
  return alert.detail.empty() ? alert.reason : alert.reason + ": " + alert.detail;
}

/// Selects alerts to list; empty fields match all. Newest first.
struct AlertFilter {
  std::optional<DeliveryState> state{};  ///< To any channel.
  std::string session{};
  std::int64_t after = 0;  ///< Continue below this id; 0: from the newest.
  int limit = 100;
};

/// The result of one attempt to send alerts to a channel. A plain value.
struct Attempt {
  std::string channel{};
  std::vector<std::int64_t> alerts{};
  DeliveryState state = DeliveryState::sent;
  std::string error{};
};

}  // namespace watchdog
