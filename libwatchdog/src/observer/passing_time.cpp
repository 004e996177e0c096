// What the observer concludes from the passing of time: sessions fall silent, processes are gone,
// parents wait for children that nobody reports about, and sessions are abandoned. Each of these
// happens while no other process can append, after all events are folded.
#include <algorithm>
#include <chrono>

#include "observer/observer_state.h"
#include "store/event_reader.h"
#include "watchdog/reasons.h"

namespace watchdog {
namespace {

/// The caller looks at least this often.
constexpr Millis look_every{1'000};
/// A look that comes later than it should by less than this missed nothing.
constexpr Millis lateness_min{100};
/// About how long a turn on a server lasts in which time passes for sessions. The other sessions
/// wait for the next look. Other writers wait, and details of trouble take some round trips each.
constexpr std::chrono::milliseconds expiry_max{300};
/// Levels to which the end of one session is passed up in one look. Each may end the wait of those
/// above; an odd family may not go on for ever.
constexpr int family_levels_max = 8;

Batch report_for(std::string session, Report report) {
  Batch batch{
      .session = std::move(session), .creation = Creation::refuse, .by = ReportOrigin::monitor};
  batch.reports.push_back(std::move(report));
  return batch;
}

/// Returns running sessions that no known process will end, oldest activity first.
std::vector<std::pair<Seq, const LiveSession*>> unattended(const LiveSessions& sessions,
                                                           const ProcessLooks& processes,
                                                           std::size_t count_max) {
  std::vector<std::pair<Seq, const LiveSession*>> found;
  for (const auto& [key, session] : sessions.all()) {
    const auto& history = session.judged.history;
    const bool is_attended = processes.runs_here(history) && !history.notes->process_found;
    if (is_end(history.lifecycle) || is_attended) continue;
    found.emplace_back(history.seq, &session);
  }
  const auto count = std::min(count_max, found.size());
  std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count), found.end(),
                    [](const auto& a, const auto& b) { return a.first < b.first; });
  found.resize(count);
  return found;
}

}  // namespace

Result<void> Observer::State::alone(const std::function<Result<void>()>& act) {
  auto done = store.alone([&]() -> Result<void> {
    if (auto caught = catch_up(); !caught) return caught;
    return act();
  });
  if (done) return done;
  if (auto again = Loading(*this).begin_again(); !again) return again;
  return done;
}

Result<bool> Observer::State::missed_some(Instant now) {
  const auto should_have = [&](Instant at) {
    return std::min(std::max(at, last_look), last_look + look_every);
  };
  const auto first = schedule.first();
  if (incomplete || first == never || now - should_have(first) < lateness_min) return false;
  // Events that others wrote into the file meanwhile were received in time.
  if (auto caught = catch_up(); !caught) return caught.error();
  bool missed = false;
  for (const auto key : schedule.drain(now)) {
    LiveSession& session = *sessions.find(key);
    const Case& judged = session.judged;
    const History& history = judged.history;
    // Looks at processes are frequent, and do not show what was missed.
    const bool is_frequent = history.notes->process_found || calls.next(session) != never;
    const auto at = is_frequent ? judged.health.valid_until : schedule.next_due(session);
    schedule.enqueue(session);
    if (at > now) continue;
    const bool silence = at >= silence_begins(history, *judged.policy);
    const auto quiet_from = silence ? history.last_sign : history.pace_from;
    missed |= 4 * (now - should_have(at)) > at - quiet_from;
  }
  return missed;
}

Result<void> Observer::State::arrive() {
  if (const auto renewed = renew_when_due(); !renewed) return renewed.error();
  const auto now = store.now();
  const auto away = now - last_look;
  auto absent = away > options.late_max ? Result<bool>(true) : missed_some(now);
  if (!absent) return absent.error();
  here = now;
  if (!*absent) return {};
  if (auto concluded = store.append_observer({away}); !concluded) return concluded.error();
  last_look = here = store.now();
  return {};
}

Result<void> Observer::State::expire() {
  const Instant now = here;
  const auto due = schedule.drain(now);
  if (due.empty()) return {};
  std::vector<Batch> seen;
  auto done = alone([&]() -> Result<void> {
    const auto begun = std::chrono::steady_clock::now();
    for (const auto key : due) {
      LiveSession* session = sessions.find(key);
      if (session == nullptr) continue;
      const std::lock_guard guard(sessions.mutex);
      if (!name.empty() && std::chrono::steady_clock::now() - begun > expiry_max) {
        schedule.enqueue(*session);
        continue;
      }
      const auto before = changes.size();
      session->judged.expire(now, changes, &details);
      if (auto report = processes.look(*session, now))
        seen.push_back(report_for(session->id, std::move(*report)));
      else if (auto news = calls.look(*session, now))
        seen.push_back(report_for(session->id, std::move(*news)));
      settle(*session, changes.size() != before);
    }
    return keep();
  });
  if (!done || seen.empty()) return done;
  if (auto appended = store.append(seen); !appended) return appended.error();
  return catch_up();
}

Result<void> Observer::State::notify_parents() {
  if (!families.has_news()) return {};
  return alone([&]() -> Result<void> {
    for (int level = 0; level < family_levels_max; ++level) {
      auto reports = families.reports();
      if (reports.empty()) return {};
      if (auto appended = store.append(reports); !appended) return appended.error();
      if (auto caught = catch_up(); !caught) return caught;
      if (auto kept = keep(); !kept) return kept;
    }
    return {};
  });
}

Result<std::size_t> Observer::State::abandon(Instant then, std::size_t count_max) {
  std::vector<std::string> quiet;
  auto done = alone([&]() -> Result<void> {
    // First those of which there never was an event: only the wall clock says how old they are.
    auto eventless =
        store.reader().sessions_without_events(WallTime{then.time_since_epoch()}, count_max);
    if (!eventless) return eventless.error();
    quiet = std::move(*eventless);
    for (const auto& [seq, session] : unattended(sessions, processes, count_max - quiet.size())) {
      // Each question to a server is a round trip, and all writers wait for this turn. Memory also
      // knows what the limit of size has dropped.
      if (session->judged.history.last_sign > then) continue;
      const auto tick = EventReader(store.reader()).tick_of(seq);
      if (!tick) return tick.error();
      if (tick->value_or(Instant{}) > then) break;  // so are all that come after it
      if (std::ranges::find(quiet, session->id) == quiet.end()) quiet.push_back(session->id);
    }
    std::vector<Batch> ends;
    for (const auto& id : quiet) {
      Report end{.kind = ReportKind::end};
      end.detail =
          Outcome{.kind = OutcomeKind::incomplete, .reason = std::string(reasons::abandoned)};
      ends.push_back(report_for(id, std::move(end)));
    }
    if (ends.empty()) return {};
    if (auto stored = store.append(ends); !stored) return stored.error();
    if (auto caught = catch_up(); !caught) return caught;
    return keep();
  });
  if (!done) return done.error();
  return quiet.size();
}

}  // namespace watchdog
