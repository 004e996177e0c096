#include "store/sharing.h"

#include <utility>

#include "store/store_state.h"

namespace watchdog {
namespace {

/// Older events were judged, whatever happened to their judge.
constexpr Millis unjudged_max{120'000};

}  // namespace

Millis Sharing::renewal_wait() const noexcept {
  return state_.renewal_wait;
}

bool Sharing::holds(int shard) const noexcept {
  return state_.held.holds(shard);
}

Result<std::vector<Alert>> Sharing::claim_message(std::string_view channel, bool single,
                                                  Millis time) {
  using Alerts = std::vector<Alert>;
  if (state_.server == nullptr) return state_.reader.next_message(channel, single);
  const auto some = state_.reader.state_->guarded<bool>(
      [&]() -> Result<bool> { return state_.alerts.has_own_message(channel); });
  if (!some) return some.error();
  if (!*some) return Alerts{};
  return state_.in_turn<Alerts>(
      [&]() -> Result<Alerts> { return state_.alerts.claim(channel, single, time); });
}

/// An event number at or a little before the first one since then. Ticks rise with the numbers,
/// which have gaps.
Seq Sharing::first_event_since(Instant tick) {
  constexpr Seq near = 1'000;
  auto& newest = state_.sql("SELECT coalesce(max(seq), 0) FROM events");
  const ResetLater newest_later(newest);
  if (!newest.step()) return 0;
  auto& query = state_.sql("SELECT tick_ms FROM events WHERE seq >= ? ORDER BY seq LIMIT 1");
  const ResetLater later(query);
  Seq before = 0;
  for (Seq after = newest.integer(0); after - before > near;) {
    const Seq middle = before + (after - before) / 2;
    query.reset().bind(1, middle);
    const bool is_since = !query.step() || Instant{Millis{query.integer(0)}} >= tick;
    (is_since ? after : before) = middle;
  }
  return before;
}

Result<std::vector<SessionKey>> Sharing::sessions_to_take_over() {
  using Keys = std::vector<SessionKey>;
  auto& reader = state_.reader;
  if (state_.server == nullptr) return reader.sessions_to_judge();
  return reader.state_->guarded<Keys>([&]() -> Result<Keys> {
    const Transaction one_view(*state_.database, Transaction::Kind::read);
    const auto from = first_event_since(reader.state_->latest_tick() - unjudged_max);
    auto& query = state_.sql(
        "SELECT id FROM sessions WHERE lifecycle IN ('running', 'waiting', 'idle') AND ended_ms IS "
        "NULL UNION SELECT s.id FROM (SELECT DISTINCT session FROM events WHERE seq >= ?) r JOIN "
        "sessions s ON s.id = r.session LEFT JOIN heads h ON h.session = s.id LEFT JOIN snapshots "
        "p ON p.session = s.id WHERE s.ended_ms IS NULL OR coalesce(p.seq, 0) < coalesce(h.seq, "
        "0)");
    const ResetLater later(query);
    query.bind(1, from);
    Keys keys;
    while (query.step()) keys.push_back(query.integer(0));
    return keys;
  });
}

void Sharing::set_taking_over(bool is_taking_over) noexcept {
  state_.is_taking_over = is_taking_over;
}

bool Sharing::is_taking_over() const noexcept {
  return state_.is_taking_over;
}

void Sharing::set_tally(std::string text) {
  if (text == state_.tally) return;
  state_.tally = std::move(text);
  state_.tally_written = false;
}

void Sharing::put_tally() {
  if (state_.tally_written || state_.server == nullptr || state_.monitor_name.empty()) return;
  auto& update = state_.sql("UPDATE monitors SET tally = ? WHERE name = ?");
  update.bind(1, state_.tally).bind(2, std::string_view(state_.monitor_name));
  update.run();
  state_.tally_written = true;
}

Result<void> Sharing::write_tally() {
  if (state_.tally_written) return {};
  const auto done = state_.in_turn<bool>([&]() -> Result<bool> {
    put_tally();
    return true;
  });
  return done ? Result<void>{} : done.error();
}

Result<std::vector<std::string>> Sharing::tallies_of_others() {
  return state_.reader.state_->guarded<std::vector<std::string>>(
      [&]() -> Result<std::vector<std::string>> {
        auto& query = state_.sql(
            "SELECT tally FROM monitors WHERE name <> ? AND until_ms > ? AND tally IS NOT NULL");
        const ResetLater later(query);
        query.bind(1, std::string_view(state_.monitor_name)).bind(2, state_.turn_clock.count());
        std::vector<std::string> texts;
        while (query.step()) texts.push_back(query.text(0));
        return texts;
      });
}

}  // namespace watchdog
