#include "store/sharing.h"

#include <utility>

#include "store/store_state.h"

namespace watchdog {

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
