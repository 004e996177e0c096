/// \file
/// What the proxy remembers of each session.
#pragma once

#include <cstdint>
#include <list>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "proxy/sessions/attribution.h"
#include "proxy/sessions/conversation.h"
#include "watchdog/report.h"
#include "watchdog/session.h"

namespace watchdog::monitor {

/// The memory of a session.
struct SessionMemory {
  SessionSpec spec;
  Conversation conversation;
  std::int64_t requests = 0;
  double tokens = 0;                ///< Of all answers that are over.
  double tokens_reported = 0;       ///< Running totals never fall.
  std::vector<std::uint64_t> open;  ///< Exchanges.
  WallTime beat_at{};
  bool has_tools = false;                   ///< It offered some.
  bool has_unread = false;                  ///< It was reported that a request is not read.
  bool compacts = false;                    ///< Its client said so: then its history gets shorter.
  std::optional<ProcessFacts> process{};    ///< Its agent's, as reported.
  std::optional<ProcessFacts> once_seen{};  ///< Asked once; maybe it does nothing else.
  std::string waits_for{};                  ///< As reported because of its latest requests.
  bool is_closing = false;                  ///< Its client said that this is the last request.
  bool is_over = false;                     ///< And that was answered.
  /// The latest requests came to nothing: since when, why, and how far apart they were.
  std::optional<WallTime> refused_at{};
  std::string refused_why{};
  std::string_view refused_reason{};  ///< One of reasons.h.
  Millis refused_gap{};
  Millis refused_pause{};  ///< The server takes no request before.
  std::list<std::string>::iterator place;
};

/// The memories of all sessions; beyond the limit, the one is forgotten that was quiet longest and
/// has no open exchange. Use from one thread at a time.
class SessionMemories {
 public:
  explicit SessionMemories(std::size_t count_max) : count_max_(count_max) {}

  /// Null: it is not known.
  [[nodiscard]] SessionMemory* find(const std::string& session) {
    const auto found = memories_.find(session);
    return found == memories_.end() ? nullptr : &found->second;
  }
  /// REQUIRES: it is known.
  [[nodiscard]] SessionMemory& at(const std::string& session) { return memories_.at(session); }
  /// The memory of a session that is used now; a new one gets its properties from the others.
  SessionMemory& of(const std::string& session, const Attribution& from, const std::string& model,
                    const std::string& server, const std::string& origin);

 private:
  const std::size_t count_max_;
  std::unordered_map<std::string, SessionMemory> memories_;
  std::list<std::string> by_use_;  ///< The latest first.
};

}  // namespace watchdog::monitor
