/// \file
/// The sessions that an observer keeps in memory, found by key, by id and by parent.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "codec/progress.h"
#include "observer/tally.h"
#include "store/store_reader.h"
#include "watchdog/health.h"

namespace watchdog {

/// A session in memory.
struct LiveSession {
  Case judged;
  std::string id;
  std::shared_ptr<const Description> description;
  WallTime created{};
  std::int32_t since_snapshot = 0;       ///< Events that are in no snapshot yet.
  std::optional<Tally::Part> counted{};  ///< In the tally.
  Instant queued = never;                ///< Its earliest place in the queue of due sessions.
};

/// Only the observer's thread changes it, with `mutex` held. That thread reads it without the
/// mutex, other threads with it. Addresses of sessions hold until they are forgotten.
class LiveSessions {
 public:
  /// More children of one session are not looked at: others wait meanwhile.
  static constexpr std::size_t children_max = 1'000;

  mutable std::mutex mutex;

  [[nodiscard]] const std::unordered_map<SessionKey, LiveSession>& all() const { return sessions_; }
  [[nodiscard]] std::unordered_map<SessionKey, LiveSession>& all() { return sessions_; }
  /// Null: it is not in memory.
  [[nodiscard]] LiveSession* find(SessionKey session);
  [[nodiscard]] const LiveSession* find(std::string_view id) const;
  /// The one that started this session. Null: none, or it is not in memory.
  [[nodiscard]] const LiveSession* parent_of(SessionKey session) const;
  [[nodiscard]] Family family_of(SessionKey session) const {
    return parents_.contains(session) ? Family::child : Family::root;
  }
  /// The keys of the sessions that it started, newest first, at most `children_max`.
  [[nodiscard]] std::vector<SessionKey> children_of(std::string_view id) const;
  /// Those that have open turns, oldest first.
  [[nodiscard]] const std::set<SessionKey>& with_turns() const { return with_turns_; }

  /// Adds it, or replaces what is known of it. REQUIRES: mutex held, as of the next ones.
  LiveSession& enter(SessionRow&& row, Case&& judged);
  /// After an event: its turns may have begun or ended.
  void note_turns(const LiveSession& session);
  void forget(SessionKey session);
  void clear();

 private:
  /// Sessions are found by their own ids.
  static std::string_view id_of(const LiveSession* session) { return session->id; }
  static std::string_view id_of(std::string_view id) { return id; }
  struct IdHash {
    using is_transparent = void;
    std::size_t operator()(const auto& item) const noexcept {
      return std::hash<std::string_view>{}(id_of(item));
    }
  };
  struct SameId {
    using is_transparent = void;
    bool operator()(const auto& a, const auto& b) const noexcept { return id_of(a) == id_of(b); }
  };
  struct DescriptionHash {
    std::size_t operator()(const std::shared_ptr<const Description>& one) const noexcept {
      return std::hash<std::string_view>{}(one->members);
    }
  };
  struct SameDescription {
    bool operator()(const std::shared_ptr<const Description>& a,
                    const std::shared_ptr<const Description>& b) const noexcept {
      return *a == *b;
    }
  };

  [[nodiscard]] std::shared_ptr<const Description> described(const SessionSpec& spec);

  std::unordered_map<SessionKey, LiveSession> sessions_;
  std::unordered_set<const LiveSession*, IdHash, SameId> by_id_;
  /// Of sessions with a parent; apart from the sessions, because few have one.
  std::unordered_map<SessionKey, std::string> parents_;
  std::set<std::pair<std::string_view, SessionKey>> by_parent_;  ///< The ids are in `parents_`.
  std::set<SessionKey> with_turns_;
  /// Sessions of one agent with one task share their description.
  std::unordered_set<std::shared_ptr<const Description>, DescriptionHash, SameDescription>
      descriptions_;
};

}  // namespace watchdog
