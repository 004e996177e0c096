/// \file
/// Notifies when resources change: the list of sessions, and sessions.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "mcp/loop.h"
#include "mcp/source.h"

namespace watchdog::monitor::mcp {

inline constexpr std::string_view sessions_uri = "watchdog://sessions";
inline constexpr std::string_view session_uri_begin = "watchdog://session/";
inline constexpr std::string_view session_uri_template = "watchdog://session/{id}";
inline constexpr const char* resource_type = "application/json";

/// Returns the session of a resource, empty for the list of sessions; nothing: there is no such
/// resource. Pure.
[[nodiscard]] std::optional<std::string> session_of_uri(const std::string& uri);

/// Of a loop's steps alone. Destroying it ends it.
class ResourceWatch : public std::enable_shared_from_this<ResourceWatch> {
 public:
  static constexpr std::size_t watched_max = 100;
  /// Between two notifications about one resource.
  static constexpr Millis notify_every{1'000};

  ResourceWatch(Loop& loop, std::shared_ptr<Source> source,
                std::function<void(const std::string& uri)> updated)
      : loop_(loop), source_(std::move(source)), updated_(std::move(updated)) {}

  /// Returns false if there is no such resource, or too many are watched.
  [[nodiscard]] bool add(const std::string& uri);
  void remove(const std::string& uri);

 private:
  struct Watched {
    std::unique_ptr<Following> following{};
    bool is_due = false;  ///< A notification is planned.
  };
  void changed(const std::string& uri);

  Loop& loop_;
  const std::shared_ptr<Source> source_;
  const std::function<void(const std::string&)> updated_;
  std::map<std::string, Watched> watched_;
};

}  // namespace watchdog::monitor::mcp
