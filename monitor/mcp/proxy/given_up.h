/// \file
/// Calls that were answered by the proxy, and whose late results nobody wants.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>

namespace watchdog::monitor::mcp {

/// Keys of requests. Use from one thread at a time.
class GivenUpCalls {
 public:
  /// Beyond: the oldest is forgotten.
  static constexpr std::size_t kept_max = 1'024;

  void add(const std::string& key) {
    if (keys_.size() == kept_max) keys_.pop_front();
    keys_.push_back(key);
  }
  [[nodiscard]] bool contains(const std::string& key) const {
    return std::ranges::find(keys_, key) != keys_.end();
  }
  /// True if it was there.
  bool erase(const std::string& key) { return std::erase(keys_, key) > 0; }
  void clear() { keys_.clear(); }
  [[nodiscard]] std::size_t size() const { return keys_.size(); }

 private:
  std::deque<std::string> keys_;
};

}  // namespace watchdog::monitor::mcp
