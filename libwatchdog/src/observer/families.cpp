#include "observer/families.h"

#include <utility>

namespace watchdog {
namespace {

bool waits_for_children(const History& history) {
  return history.lifecycle == Lifecycle::waiting &&
         history.notes->waiting_for == wait_reports::children;
}

bool may_change(const History& history) {
  return history.lifecycle == Lifecycle::idle || waits_for_children(history);
}

/// True if nothing shows that the session still works: a subagent whose end nobody reports becomes
/// quiet like that, and its parent must not wait for it for ever.
bool is_quiet(const Case& judged) {
  const auto& health = judged.health;
  return health.kind == HealthKind::dead || health.kind == HealthKind::silent ||
         (health.kind == HealthKind::suspect && health.pattern == Pattern::below_pace);
}

}  // namespace

void Families::note(const LiveSession& session) {
  if (may_change(session.judged.history)) may_wait_.insert(session.judged.session);
  const auto* parent = sessions_.parent_of(session.judged.session);
  if (parent != nullptr && may_change(parent->judged.history))
    may_wait_.insert(parent->judged.session);
}

void Families::note_parent(std::string_view id) {
  if (const auto* parent = sessions_.find(id)) may_wait_.insert(parent->judged.session);
}

/// True if a session below this one works or waits for something else than its children.
bool Families::has_working_child(std::string_view id, std::set<SessionKey>& seen) const {
  for (const auto key : sessions_.children_of(id)) {
    if (seen.size() > LiveSessions::children_max || !seen.insert(key).second) continue;
    const auto& child = sessions_.all().at(key);
    const auto& history = child.judged.history;
    if (is_end(history.lifecycle) || is_quiet(child.judged)) continue;
    if (!may_change(history) || has_working_child(child.id, seen)) return true;
  }
  return works_elsewhere_(id);
}

/// True if the session's turn is done while a child still works and it does not wait for that, or
/// if it waits for children of which none works.
bool Families::is_wrong_about_children(SessionKey key) const {
  const auto found = sessions_.all().find(key);
  if (found == sessions_.all().end()) return false;
  const auto& [id, judged] = std::tie(found->second.id, found->second.judged);
  const bool waits = waits_for_children(judged.history);
  if (!waits && judged.health.kind != HealthKind::idle) return false;
  std::set<SessionKey> seen{key};
  return waits != has_working_child(id, seen);
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
    const bool waits = waits_for_children(session.judged.history);
    auto& batch = batches.emplace_back(
        Batch{.session = session.id, .creation = Creation::refuse, .by = ReportOrigin::monitor});
    auto& report = batch.reports.emplace_back();
    report.kind = waits ? ReportKind::idle : ReportKind::wait;
    report.name = waits ? idle_reports::children : wait_reports::children;
  }
  return batches;
}

}  // namespace watchdog
