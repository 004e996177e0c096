/// \file
/// How the channels are by which people are told.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "watchdog/settings.h"

namespace watchdog::monitor {

enum class ChannelCondition : std::uint8_t {
  ok,
  failing,  ///< The newest attempts failed.
  dead      ///< So many did that it is tried now and then only.
};

}  // namespace watchdog::monitor

template <>
struct watchdog::Names<watchdog::monitor::ChannelCondition> {
  static constexpr std::string_view all[] = {"ok", "failing", "dead"};
};

namespace watchdog::monitor {

/// A plain value.
struct ChannelStatus {
  std::string name;
  ChannelType type = ChannelType::log;
  ChannelCondition condition = ChannelCondition::ok;
  std::string error;                    ///< Of the newest attempt; empty: it went well.
  std::optional<Instant> unsent_since;  ///< When the oldest alert that it has not got was told.
};

/// Thread-safe.
class AlertBoard {
 public:
  void put(ChannelStatus status) {
    const std::lock_guard guard(mutex_);
    const auto known = std::ranges::find(channels_, status.name, &ChannelStatus::name);
    known == channels_.end() ? channels_.push_back(std::move(status))
                             : void(*known = std::move(status));
  }
  [[nodiscard]] std::vector<ChannelStatus> channels() const {
    const std::lock_guard guard(mutex_);
    return channels_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<ChannelStatus> channels_;
};

}  // namespace watchdog::monitor
