// Writes the conclusions of the judge: transitions, snapshots and the alerts that follow from them,
// in one transaction. `alone` holds the writers' lock over several such calls. No agent does this.

#include "codec/facts.h"
#include "store/sharing.h"
#include "store/store_state.h"
#include "text/json_writer.h"

namespace watchdog {

Result<Seq> Store::append_observer(ObserverGap absence) {
  auto seq = state_->in_turn<Seq>([&]() -> Result<Seq> {
    state_->appender.put_absence(absence.gap);
    return state_->appender.observer.seq;
  });
  if (seq) state_->notify();
  return seq;
}

Result<std::int64_t> Store::record(const Conclusions& verdicts) {
  auto first = state_->in_turn<std::int64_t>([&]() -> Result<std::int64_t> {
    if (auto holds = state_->check_holds(verdicts); !holds) return holds.error();
    const auto written = state_->write(verdicts);
    Sharing(*state_).put_tally();
    return written;
  });
  if (first && !verdicts.transitions.empty() && !state_->alone) state_->notify();
  return first;
}

std::int64_t Store::State::newest_transition() {
  auto& query = sql(newest_transition_sql);
  const ResetLater later(query);
  query.step();
  return query.integer(0);
}

std::int64_t Store::State::write(const Conclusions& verdicts) {
  const auto first = verdicts.transitions.empty() ? 0 : newest_transition() + 1;
  auto id = first;
  auto& transition_sql =
      sql("INSERT INTO transitions (session, seq, tick_ms, at_ms, from_health, health, pattern, "
          "reason, evidence, detector, policy_digest, situation, id) "
          "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  for (const auto& transition : verdicts.transitions) {
    JsonWriter evidence;
    evidence.open_array();
    for (const auto seq : transition.health.evidence) {
      if (seq != 0) evidence.value(seq);
    }
    evidence.close_array();
    transition_sql.reset();
    transition_sql.bind(1, transition.session).bind(2, transition.seq);
    transition_sql.bind(3, transition.tick.time_since_epoch().count());
    transition_sql.bind(4, transition.at.time_since_epoch().count());
    transition_sql.bind(5, name_of(transition.from)).bind(6, name_of(transition.health.kind));
    transition_sql.bind(7, name_of(transition.health.pattern)).bind(8, transition.reason);
    transition_sql.bind(9, evidence.text()).bind(10, detector_version);
    transition_sql.bind(11, static_cast<std::int64_t>(transition.policy_digest));
    transition_sql.bind(12, transition.situation, true).bind(13, id++);
    transition_sql.run();
  }
  for (const auto* judged : verdicts.snapshots) {
    const auto text = snapshot_of(*judged);
    auto& snapshot =
        sql("INSERT INTO snapshots (session, seq, format, text) VALUES (?, ?, ?, ?) ON "
            "CONFLICT (session) DO UPDATE SET seq = excluded.seq, format = "
            "excluded.format, text = excluded.text");
    snapshot.bind(1, judged->session)
        .bind(2, judged->folded)
        .bind(3, snapshot_format)
        .bind(4, text);
    snapshot.run();
    // Only `append` writes an end; it may already have, in an event that is not judged yet.
    auto& session = sql(
        "UPDATE sessions SET health = ?1, lifecycle = CASE WHEN ended_ms IS NULL THEN ?2 "
        "ELSE lifecycle END, updated_ms = CASE WHEN updated_ms < ?3 THEN ?3 ELSE updated_ms END "
        "WHERE id = ?4");
    const auto lifecycle =
        is_end(judged->history.lifecycle) ? Lifecycle::running : judged->history.lifecycle;
    session.bind(1, name_of(judged->health.kind)).bind(2, name_of(lifecycle));
    session.bind(3, judged->health_since.time_since_epoch().count()).bind(4, judged->session);
    session.run();
  }
  if (verdicts.alerts != nullptr) alerts.notice(verdicts);
  return first;
}

Result<void> Store::alone(const std::function<Result<void>()>& work) {
  // The work changes memory, which cannot be undone, so it is never done twice.
  struct Off {
    bool& flag;
    ~Off() { flag = false; }
  } const once{state_->once};
  state_->once = true;
  auto done = state_->in_turn<bool>([&]() -> Result<bool> {
    state_->stamp();
    state_->alone = true;
    const Off together{state_->alone};
    if (auto result = work(); !result) return result.error();
    return true;
  });
  if (!done) return done.error();
  state_->notify();
  return {};
}

}  // namespace watchdog
