/// \file
/// Waits of parents for their children. A session whose turn is done while sessions that it started
/// still work waits for them, and rests with the last of them. Only the observer sees whole
/// families, so it reports that on behalf of the parent: as events, so that the same events give
/// the same judgements whenever they are folded.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "judge/attention.h"
#include "observer/live_sessions.h"
#include "store/store.h"

namespace watchdog {

/// Use from the observer's thread.
class Families {
 public:
  /// Returns true if a child of this session works that is not in memory.
  using WorksElsewhere = std::function<bool(std::string_view id)>;

  Families(const LiveSessions& sessions, WorksElsewhere works_elsewhere)
      : sessions_(sessions), works_elsewhere_(std::move(works_elsewhere)) {}

  /// After something happened to a session: it and its parent may begin or cease to wait.
  void note(const LiveSession& session);
  /// After something happened to a child that is not in memory.
  void note_parent(std::string_view id);
  void clear() {
    may_wait_.clear();
    said_.clear();
  }

  /// Returns true if a parent must begin or cease to wait, or if its wait names another child that
  /// is not well than the worst one.
  [[nodiscard]] bool has_news();
  /// Returns the reports of that.
  [[nodiscard]] std::vector<Batch> reports();

 private:
  /// The state of the sessions below one. A plain value.
  struct Below {
    bool works = false;  ///< One of them works.
    bool holds = false;  ///< One that is not well holds up a turn that is done, too.
    const LiveSession* unwell = nullptr;       ///< The worst one that is not well,
    Attention attention = Attention::working;  ///< and its attention.

    void add(const Below& other);
  };
  [[nodiscard]] Below below(std::string_view id, std::set<SessionKey>& seen) const;
  [[nodiscard]] Below below(SessionKey session) const;
  [[nodiscard]] bool is_wrong_about_children(SessionKey session) const;
  /// True if the parent's wait already has this head, see unwell_child.
  [[nodiscard]] bool is_said(const LiveSession& parent, const std::string& head) const;

  const LiveSessions& sessions_;
  WorksElsewhere works_elsewhere_;
  /// Sessions that may have begun or ceased to wait for their children since the last look.
  std::set<SessionKey> may_wait_;
  /// The heads that were reported of waits. The store may keep less of them.
  std::unordered_map<SessionKey, std::string> said_;
};

}  // namespace watchdog
