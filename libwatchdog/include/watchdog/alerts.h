/// \file
/// What people were told, are told and are still to be told, as the store keeps it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "watchdog/alert_rule.h"
#include "watchdog/names.h"
#include "watchdog/report.h"
#include "watchdog/time.h"

namespace watchdog {

/// Where an alert is on its way to a channel.
enum class DeliveryState : std::uint8_t {
  pending,  ///< To be sent, again if that failed.
  sent,     ///< The channel took it.
  dead,     ///< Given up: the channel does not want this message.
  held      ///< Not sent: somebody knew of it before.
};

template <>
struct Names<DeliveryState> {
  static constexpr std::string_view all[] = {"pending", "sent", "dead", "held"};
};

/// A plain value.
struct Delivery {
  std::string channel;
  DeliveryState state = DeliveryState::pending;
  std::int64_t attempts = 0;
  std::string error;  ///< Of the newest attempt; empty: there was none.
};

/// Something told, and of whom. A plain value.
struct Alert {
  std::int64_t id = 0;  ///< Rises, never used again.
  std::string session, agent, parent, task;
  AlertKind kind = AlertKind::alert;
  std::string word;  ///< How the session is: a health or a lifecycle.
  std::string reason;
  std::string detail;   ///< The error that it ended with.
  WallTime at{};        ///< Since when it is so.
  Instant episode{};    ///< The same for all that is told of one trouble of the session.
  std::string message;  ///< Alerts with the same one go out together; empty: it waits for others.
  std::optional<Instant> told;  ///< When it became part of the message.
  std::string acknowledged_by;  ///< Empty: nobody said that they know.
  WallTime acknowledged_at{};
  std::optional<WallTime> snoozed_until;
  std::vector<Delivery> deliveries;
};

/// Which alerts to list; empty fields match all. Newest first.
struct AlertFilter {
  std::optional<DeliveryState> state;  ///< To any channel.
  std::string session;
  std::int64_t after = 0;  ///< Continue below this id; 0: from the newest.
  int limit = 100;
};

/// What became of an attempt to send alerts to a channel. A plain value.
struct Attempt {
  std::string channel;
  std::vector<std::int64_t> alerts;
  DeliveryState state = DeliveryState::sent;
  std::string error;
};

}  // namespace watchdog
