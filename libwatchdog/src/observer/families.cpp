#include "observer/families.h"

#include <utility>

#include "judge/attention.h"

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

/// True if nothing shows that the session still works. It may, or its end was not reported.
bool is_quiet(const Case& judged) {
  const auto& health = judged.health;
  return health.pattern == Pattern::quiet ||
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

Families::Below Families::below(std::string_view id, std::set<SessionKey>& seen) const {
  Below found;
  for (const auto key : sessions_.children_of(id)) {
    if (seen.size() > LiveSessions::children_max || !seen.insert(key).second) continue;
    const auto& child = sessions_.all().at(key);
    const auto& history = child.judged.history;
    if (is_end(history.lifecycle) || is_gone(child.judged)) continue;
    Below further;
    if (may_change(history)) {
      further = below(child.id, seen);
    } else if (is_quiet(child.judged)) {
      further.quiet = &child;
    } else {
      further.works = true;
    }
    if (further.works) return further;
    if (found.quiet == nullptr) found.quiet = further.quiet;
  }
  found.works = works_elsewhere_(id);
  return found;
}

Families::Below Families::below(SessionKey session) const {
  std::set<SessionKey> seen{session};
  return below(sessions_.all().at(session).id, seen);
}

/// True if the session's turn is done while a child still works and it does not wait for that. Or
/// if it waits for children of which none does, and it was not reported that they are quiet.
bool Families::is_wrong_about_children(SessionKey key) const {
  const auto found = sessions_.all().find(key);
  if (found == sessions_.all().end()) return false;
  const auto& judged = found->second.judged;
  const bool waits = waits_for_children(judged.history);
  if (!waits && judged.health.kind != HealthKind::idle) return false;
  const auto [works, quiet] = below(key);
  if (!waits) return works;
  const bool is_quiet_wait = !judged.history.notes->wait_why.empty();
  return works ? is_quiet_wait : quiet == nullptr || !is_quiet_wait;
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
    const auto [works, quiet] = below(key);
    const bool waits = works || quiet != nullptr;
    auto& batch = batches.emplace_back(
        Batch{.session = session.id, .creation = Creation::refuse, .by = ReportOrigin::monitor});
    auto& report = batch.reports.emplace_back();
    report.kind = waits ? ReportKind::wait : ReportKind::idle;
    report.name = waits ? wait_reports::children : idle_reports::children;
    if (!works && quiet != nullptr)
      report.content = quiet->id + ": " + reason_of(quiet->judged, quiet->judged.history.tick);
  }
  return batches;
}

}  // namespace watchdog
