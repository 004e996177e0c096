/// \file
/// The state of the channels that send alerts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
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
  dead      ///< So many attempts failed that it is tried only now and then.
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
  std::string error;                    ///< Of the newest attempt; empty: it succeeded.
  std::optional<Instant> unsent_since;  ///< When the oldest undelivered alert was made.
};

/// The result of a test message; `answer` is for a person. A plain value.
struct ChannelTest {
  bool sent = false;
  std::string answer;
};
/// Called once, from any thread.
using ChannelTested = std::function<void(const ChannelTest&)>;

/// Thread-safe.
class ChannelStatusRegistry {
 public:
  /// By which a test message is sent through a channel; null: not any more.
  void connect(const std::string& channel, std::function<void(ChannelTested)> test) {
    const std::lock_guard guard(mutex_);
    test ? void(tests_[channel] = std::move(test)) : void(tests_.erase(channel));
  }
  /// Sends a test message. False: there is no such channel.
  [[nodiscard]] bool test(const std::string& channel, ChannelTested done) const {
    const std::lock_guard guard(mutex_);
    const auto found = tests_.find(channel);
    if (found != tests_.end()) found->second(std::move(done));
    return found != tests_.end();
  }
  void put(ChannelStatus status) {
    const std::lock_guard guard(mutex_);
    const auto known = std::ranges::find(channels_, status.name, &ChannelStatus::name);
    known == channels_.end() ? channels_.push_back(std::move(status))
                             : void(*known = std::move(status));
  }
  /// Forgets the channels of other names.
  void retain(const std::vector<std::string>& names) {
    const std::lock_guard guard(mutex_);
    std::erase_if(channels_, [&](const ChannelStatus& known) {
      return std::ranges::find(names, known.name) == names.end();
    });
  }
  [[nodiscard]] std::vector<ChannelStatus> channels() const {
    const std::lock_guard guard(mutex_);
    return channels_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<ChannelStatus> channels_;
  std::map<std::string, std::function<void(ChannelTested)>> tests_;
};

}  // namespace watchdog::monitor
