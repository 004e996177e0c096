/// \file
/// Sessions of which hooks told only the start.
#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "ingest/hooks.h"
#include "watchdog/time.h"

namespace watchdog::monitor {

/// An agent that resumes a session may begin another one first, which it never uses
/// (anthropics/claude-code#24265): nobody wants to see that. Remembers the newest starts.
/// Thread-safe.
class FreshStarts {
 public:
  static constexpr std::size_t starts_max = 256;
  static constexpr Millis fresh_for{60'000};

  /// Notes an event. If it resumes a session: returns those that the same agent began in the same
  /// folder a moment before, and of which no hook told anything more.
  [[nodiscard]] std::vector<std::string> note(const HookEvent& event, WallTime now);

 private:
  struct Start {
    std::string session;
    std::string agent;
    std::string folder;
    WallTime at;
  };
  std::mutex mutex_;
  std::deque<Start> starts_;  ///< The newest at the end.
};

}  // namespace watchdog::monitor
