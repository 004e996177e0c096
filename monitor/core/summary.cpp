#include "core/summary.h"

#include "core/session_row.h"
#include "text/json_writer.h"

namespace watchdog::monitor {
namespace {

Standing standing_of_end(const SessionRow& row, WallTime wall) {
  return standing_of({.lifecycle = row.lifecycle,
                      .health = row.health,
                      .settled = row.acknowledged || wall - row.updated >= end_fresh_for});
}

}  // namespace

Result<Urgency> urgency_of(const Backend& backend, StoreReader& reader, const SessionRow& row,
                           WallTime wall) {
  if (is_end(row.lifecycle)) return Urgency{standing_of_end(row, wall), row.updated};
  const auto watched = look_up(backend, reader, row);
  if (!watched) return watched.error();
  return Urgency{standing_of(watched->judged, wall, watched->description->family),
                 standing_since(watched->judged, backend.now(), wall)};
}

Result<std::string> summary_of(Backend& backend, StoreReader& reader, WallTime wall) {
  const auto tally = backend.tally();
  if (!tally) return tally.error();
  const auto ends = reader.ends(wall - end_fresh_for);
  if (!ends) return ends.error();
  auto states = tally->states;
  const auto of = [&](SessionState state) -> std::int64_t& {
    return states[static_cast<std::size_t>(state)];
  };
  of(SessionState::completed) += ends->completed;
  of(SessionState::failed) += ends->failed;
  of(SessionState::incomplete) += ends->incomplete;
  of(SessionState::cancelled) += ends->cancelled;
  std::int64_t total = 0;
  for (const auto count : states) total += count;
  auto attention = tally->attentions_at(wall);
  // Of ends that need a person, those that are old or acknowledged do not any more.
  attention[static_cast<std::size_t>(Attention::needs_you)] += ends->fresh;
  attention[static_cast<std::size_t>(Attention::resting)] +=
      ends->completed + ends->cancelled + ends->failed + ends->incomplete - ends->fresh;

  JsonWriter out;
  out.open_object().field("total", total).key("attention").open_object();
  for (std::size_t at = 0; at < attention.size(); ++at)
    out.field(Names<Attention>::all[at], attention[at]);
  out.close_object().key("states").open_object();
  for (std::size_t at = 0; at < states.size(); ++at)
    out.field(Names<SessionState>::all[at], states[at]);
  out.close_object().close_object();
  return out.finish();
}

void publish_changed(Feed& feed, Backend& backend, StoreReader& reader) {
  const auto wall = system_clock().wall();
  for (const auto& session : feed.drain_changed()) {
    const auto row = reader.session(session);
    if (!row) continue;
    if (const auto text = session_row(backend, reader, *row, wall)) feed.session(row->key, *text);
  }
  if (const auto summary = summary_of(backend, reader, wall)) feed.summary(*summary);
  feed.flush();
}

}  // namespace watchdog::monitor
