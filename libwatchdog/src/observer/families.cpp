// A session whose turn is done while sessions that it started still work waits for them, and rests
// with the last of them. Only the observer sees whole families, so it reports that on behalf of the
// parent: as events, so that the same events give the same judgements whenever they are folded.
#include "observer/observer_state.h"

namespace watchdog {
namespace {

/// Levels to which the end of one session is passed up in one look.
constexpr int family_levels_max = 8;

bool waits_for_children(const History& history) {
  return history.lifecycle == Lifecycle::waiting &&
         history.notes->waiting_for == wait_reports::children;
}

/// True if nothing shows that the session still works: a subagent whose end nobody reports becomes
/// quiet like that, and its parent must not wait for it for ever.
bool is_quiet(const Case& judged) {
  const auto& health = judged.health;
  return health.kind == HealthKind::dead || health.kind == HealthKind::silent ||
         (health.kind == HealthKind::suspect && health.pattern == Pattern::below_pace);
}

}  // namespace

/// After something happened to a session: it and its parent may begin or cease to wait.
void Observer::State::note_family(SessionKey session, const Entry& entry) {
  const auto note = [&](SessionKey key, const History& history) {
    if (history.lifecycle == Lifecycle::idle || waits_for_children(history)) may_wait.insert(key);
  };
  note(session, entry.judged.history);
  const auto parent = parents.find(session);
  if (parent == parents.end()) return;
  const auto found = by_id.find(std::string_view(parent->second));
  if (found != by_id.end()) note((*found)->judged.session, (*found)->judged.history);
}

/// True if a session below this one works or waits for something else than its children.
bool Observer::State::has_working_child(std::string_view id, std::set<SessionKey>& seen) const {
  for (auto at = by_parent.lower_bound({id, 0}); at != by_parent.end() && at->first == id; ++at) {
    if (seen.size() > children_max || !seen.insert(at->second).second) continue;
    const auto& child = entries.at(at->second);
    const auto& history = child.judged.history;
    if (is_end(history.lifecycle) || is_quiet(child.judged)) continue;
    const bool works = history.lifecycle != Lifecycle::idle && !waits_for_children(history);
    if (works || has_working_child(child.id, seen)) return true;
  }
  return has_working_foreign_child(id);
}

/// True if the session's turn is done while a child still works and it does not wait for that, or
/// if it waits for children of which none works.
bool Observer::State::is_wrong_about_children(SessionKey session) {
  const auto* entry = entry_of(session);
  if (entry == nullptr) return false;
  const bool waits = waits_for_children(entry->judged.history);
  if (!waits && entry->judged.health.kind != HealthKind::idle) return false;
  std::set<SessionKey> seen{session};
  return waits != has_working_child(entry->id, seen);
}

/// Returns the reports for those sessions.
std::vector<Batch> Observer::State::waits_of_parents() {
  std::vector<Batch> batches;
  for (const auto session : std::exchange(may_wait, {})) {
    if (!is_wrong_about_children(session)) continue;
    const auto& entry = entries.at(session);
    const bool waits = waits_for_children(entry.judged.history);
    auto& batch = batches.emplace_back(
        Batch{.session = entry.id, .creation = Creation::refuse, .by = ReportOrigin::monitor});
    auto& report = batch.reports.emplace_back();
    report.kind = waits ? ReportKind::idle : ReportKind::wait;
    report.name = waits ? idle_reports::children : wait_reports::children;
  }
  return batches;
}

/// Lets parents wait for their children, and rest after them.
Result<void> Observer::State::notify_parents() {
  std::erase_if(may_wait, [&](SessionKey key) { return !is_wrong_about_children(key); });
  if (may_wait.empty()) return {};
  // While no other process can append, none of them begins its next turn.
  auto done = store.alone([&]() -> Result<void> {
    if (auto caught = catch_up(); !caught) return caught;
    // Each round may end the wait of those above; an odd family may not go on for ever.
    for (int level = 0; level < family_levels_max; ++level) {
      auto batches = waits_of_parents();
      if (batches.empty()) return {};
      if (auto appended = store.append(batches); !appended) return appended.error();
      if (auto caught = catch_up(); !caught) return caught;
      if (auto kept = keep(); !kept) return kept;
    }
    return {};
  });
  if (done) return done;
  if (auto again = Loading(*this).begin_again(); !again) return again;
  return done;
}

}  // namespace watchdog
