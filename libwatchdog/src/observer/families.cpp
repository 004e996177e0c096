#include "observer/families.h"

#include <utility>

#include "judge/unwell_child.h"

namespace watchdog {
namespace {

bool waits_for_children(const History& history) {
  return history.lifecycle == Lifecycle::waiting &&
         history.notes->waiting_for == wait_reports::children;
}

bool may_change(const History& history) {
  return history.lifecycle == Lifecycle::idle || waits_for_children(history);
}

/// True if the session is gone: its parent must not wait for it for ever.
bool is_gone(const Case& judged) {
  const auto kind = judged.health.kind;
  return kind == HealthKind::dead || kind == HealthKind::silent;
}

/// True if nothing shows that the session still works. It may, or its end was not reported: a turn
/// that is done does not begin to wait for it.
bool is_quiet(const Case& judged) {
  const auto& health = judged.health;
  return health.pattern == Pattern::quiet ||
         (health.kind == HealthKind::suspect && health.pattern == Pattern::below_pace);
}

}  // namespace

void Families::note(const LiveSession& session) {
  if (may_change(session.judged.history)) may_wait_.insert(session.judged.session);
  if (!waits_for_children(session.judged.history)) said_.erase(session.judged.session);
  const auto* parent = sessions_.parent_of(session.judged.session);
  if (parent != nullptr && may_change(parent->judged.history))
    may_wait_.insert(parent->judged.session);
}

void Families::note_parent(std::string_view id) {
  if (const auto* parent = sessions_.find(id)) may_wait_.insert(parent->judged.session);
}

void Families::Below::add(const Below& other) {
  works |= other.works;
  holds |= other.holds;
  if (other.unwell == nullptr || (unwell != nullptr && other.attention >= attention)) return;
  unwell = other.unwell;
  attention = other.attention;
}

Families::Below Families::below(std::string_view id, std::set<SessionKey>& seen) const {
  Below found;
  for (const auto key : sessions_.children_of(id)) {
    if (seen.size() > LiveSessions::children_max || !seen.insert(key).second) continue;
    const auto& child = sessions_.all().at(key);
    const auto& history = child.judged.history;
    if (is_end(history.lifecycle) || is_gone(child.judged)) continue;
    if (may_change(history)) {
      found.add(below(child.id, seen));
      continue;
    }
    const auto attention = standing_of(child.judged, WallTime{}, Family::child).attention;
    const bool is_well = attention > Attention::watch;
    found.add({.works = is_well,
               .holds = !is_well && !is_quiet(child.judged),
               .unwell = is_well ? nullptr : &child,
               .attention = attention});
  }
  if (!found.works) found.works = works_elsewhere_(id);
  return found;
}

Families::Below Families::below(SessionKey session) const {
  std::set<SessionKey> seen{session};
  return below(sessions_.all().at(session).id, seen);
}

bool Families::is_said(const LiveSession& parent, const std::string& head) const {
  const auto said = said_.find(parent.judged.session);
  return (said != said_.end() && said->second == head) ||
         parent.judged.history.notes->wait_why.starts_with(head);
}

/// True if the session's turn is done while a child still works and it does not wait for that. Or
/// if it waits for children of which none does, or names another one that is not well.
bool Families::is_wrong_about_children(SessionKey key) const {
  const auto found = sessions_.all().find(key);
  if (found == sessions_.all().end()) return false;
  const auto& judged = found->second.judged;
  const bool waits = waits_for_children(judged.history);
  if (!waits && judged.health.kind != HealthKind::idle) return false;
  const auto [works, holds, unwell, attention] = below(key);
  if (!waits) return works || holds;
  if (unwell == nullptr) return !works || !judged.history.notes->wait_why.empty();
  return !is_said(found->second, unwell_child::head(unwell->id, attention, works));
}

bool Families::has_news() {
  std::erase_if(may_wait_, [&](SessionKey key) { return !is_wrong_about_children(key); });
  return !may_wait_.empty();
}

std::vector<Batch> Families::reports() {
  std::vector<Batch> batches;
  for (const auto key : std::exchange(may_wait_, {})) {
    if (!is_wrong_about_children(key)) continue;
    const auto& session = sessions_.all().at(key);
    const auto [works, holds, unwell, attention] = below(key);
    const bool waits = works || unwell != nullptr;
    auto& batch = batches.emplace_back(
        Batch{.session = session.id, .creation = Creation::refuse, .by = ReportOrigin::monitor});
    auto& report = batch.reports.emplace_back();
    report.kind = waits ? ReportKind::wait : ReportKind::idle;
    report.name = waits ? wait_reports::children : idle_reports::children;
    said_.erase(key);
    if (unwell == nullptr) continue;
    const auto& head = said_[key] = unwell_child::head(unwell->id, attention, works);
    report.content = head + reason_of(unwell->judged, unwell->judged.history.tick);
  }
  return batches;
}

}  // namespace watchdog
