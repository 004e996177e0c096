#include "observer/live_sessions.h"

#include <limits>

namespace watchdog {

LiveSession* LiveSessions::find(SessionKey session) {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : &found->second;
}

const LiveSession* LiveSessions::find(std::string_view id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : *found;
}

const LiveSession* LiveSessions::parent_of(SessionKey session) const {
  const auto parent = parents_.find(session);
  return parent == parents_.end() ? nullptr : find(parent->second);
}

std::vector<SessionKey> LiveSessions::children_of(std::string_view id) const {
  std::vector<SessionKey> children;
  const auto oldest = by_parent_.lower_bound({id, 0});
  for (auto at = by_parent_.upper_bound({id, std::numeric_limits<SessionKey>::max()});
       at != oldest && children.size() < children_max;)
    children.push_back((--at)->second);
  return children;
}

std::shared_ptr<const Description> LiveSessions::described(const SessionSpec& spec) {
  auto made = std::make_shared<const Description>(description_of(spec));
  if (const auto known = descriptions_.find(made); known != descriptions_.end()) return *known;
  if (descriptions_.size() > 64 + 2 * sessions_.size()) {
    std::erase_if(descriptions_, [](const auto& item) { return item.use_count() == 1; });
  }
  descriptions_.insert(made);
  return made;
}

LiveSession& LiveSessions::enter(SessionRow&& row, Case&& judged) {
  const auto key = row.key;
  LiveSession& session = sessions_[key];
  session.judged = std::move(judged);
  session.id = std::move(row.id);
  session.description = described(row.spec);
  session.created = row.created;
  by_id_.insert(&session);
  if (!row.spec.parent.empty()) {
    const auto& parent = parents_.try_emplace(key, row.spec.parent).first->second;
    by_parent_.emplace(parent, key);
  }
  return session;
}

void LiveSessions::note_turns(const LiveSession& session) {
  if (!session.judged.history.notes->turns->empty()) {
    with_turns_.insert(session.judged.session);
  } else if (!with_turns_.empty()) {
    with_turns_.erase(session.judged.session);
  }
}

void LiveSessions::forget(SessionKey session) {
  const auto gone = sessions_.find(session);
  if (gone == sessions_.end()) return;
  by_id_.erase(&gone->second);
  with_turns_.erase(session);
  if (const auto parent = parents_.find(session); parent != parents_.end()) {
    by_parent_.erase({parent->second, session});
    parents_.erase(parent);
  }
  sessions_.erase(gone);
}

void LiveSessions::clear() {
  by_id_.clear();
  by_parent_.clear();
  parents_.clear();
  with_turns_.clear();
  sessions_.clear();
}

}  // namespace watchdog
