// The leases of monitors that share a server. All is done in a writer's turn, so plans are carried
// out one by one, and a check of an epoch holds until the end of its transaction. With each renewal
// a monitor also signs the boot of its machine: others learn from that which boots are over.
#include <algorithm>
#include <set>

#include "facts/process.h"
#include "store/sharing.h"
#include "store/store_state.h"

namespace watchdog {
namespace {

std::vector<std::int64_t> numbers(const std::vector<int>& shards) {
  return {shards.begin(), shards.end()};
}

}  // namespace

std::vector<ShardLease> Store::State::read_leases() {
  auto& query = sql("SELECT shard, owner, epoch, until_ms FROM leases");
  const ResetLater later(query);
  std::vector<ShardLease> leases;
  while (query.step())
    leases.push_back({.shard = static_cast<int>(query.integer(0)),
                      .owner = query.text(1),
                      .epoch = query.integer(2),
                      .until = Millis{query.integer(3)}});
  return leases;
}

void Store::State::carry_out(const LeasePlan& plan, Millis clock) {
  const auto until = (clock + lease_for).count();
  const auto change = [&](std::string_view text, const std::vector<int>& shards,
                          std::int64_t time) {
    if (shards.empty()) return;
    auto& update = sql(text);
    const auto keys = numbers(shards);
    update.bind(1, time).bind(2, std::string_view(monitor_name)).bind_numbers(3, keys);
    update.run();
  };
  change("UPDATE leases SET until_ms = ? WHERE owner = ? AND shard = ANY(?)", plan.keep, until);
  change("UPDATE leases SET until_ms = ? WHERE owner = ? AND shard = ANY(?)", plan.give,
         clock.count());
  if (plan.take.empty()) return;
  auto& take = sql(
      "INSERT INTO leases (shard, owner, epoch, until_ms) VALUES (?, ?, 1, ?) ON CONFLICT (shard) "
      "DO UPDATE SET owner = excluded.owner, epoch = leases.epoch + 1, until_ms = "
      "excluded.until_ms");
  for (const int shard : plan.take) {
    take.reset().bind(1, shard).bind(2, std::string_view(monitor_name)).bind(3, until);
    take.run();
  }
}

/// Says that this monitor is there, and that the boot of its machine is not over. In one statement:
/// the other monitors wait for its answer. REQUIRES: the transaction under way, on a server.
void Sharing::sign_monitor() {
  auto& state = state_;
  static const std::string machine = machine_identity();
  static const std::string host = this_process().host;
  state.tally_written = true;
  auto& here = state.sql(
      "WITH signed AS (INSERT INTO boots (boot_id, offset_ms, machine, host, seen_ms) SELECT ?, ?, "
      "?, ?, ? WHERE ? <> '' ON CONFLICT (boot_id) DO UPDATE SET machine = excluded.machine, "
      "host = excluded.host, seen_ms = excluded.seen_ms) "
      "INSERT INTO monitors (name, until_ms, tally) VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE "
      "SET until_ms = excluded.until_ms, tally = excluded.tally");
  const auto boot = state.options.clock->boot_id();
  here.bind(1, std::string_view(boot))
      .bind(2, (state.turn_clock - state.options.clock->since_boot()).count())
      .bind(3, std::string_view(machine))
      .bind(4, std::string_view(host))
      .bind(5, state.turn_clock.count())
      .bind(6, std::string_view(machine))
      .bind(7, std::string_view(state.monitor_name))
      .bind(8, (state.turn_clock + lease_for).count())
      .bind(9, state.tally, true);
  here.run();
}

Result<HeldShards::Change> Sharing::renew(std::string_view name, bool leaves) {
  auto& state = state_;
  if (state.server == nullptr) return HeldShards::Change{};
  state.monitor_name = name;
  using Seen = std::pair<std::vector<ShardLease>, std::vector<std::string>>;
  auto seen = state.in_turn<Seen>([&]() -> Result<Seen> {
    const auto clock = state.turn_clock;
    if (leaves) {
      auto& gone = state.sql("DELETE FROM monitors WHERE name = ? OR until_ms < ?");
      gone.bind(1, name).bind(2, (clock - lease_for).count());
      gone.run();
    } else {
      sign_monitor();
    }
    auto& others = state.sql("SELECT name FROM monitors WHERE until_ms > ? ORDER BY name");
    others.bind(1, clock.count());
    std::vector<std::string> monitors;
    while (others.step()) monitors.push_back(others.text(0));
    others.reset();
    state.carry_out(plan_leases(name, clock, state.read_leases(), monitors, leaves), clock);
    return Seen(state.read_leases(), std::move(monitors));
  });
  if (!seen) return seen.error();
  state.monitors = seen->second;
  if (leaves) state.monitor_name.clear();
  const auto since_boot = state.options.clock->since_boot();
  auto change = state.held.learn(name, state.turn_clock, seen->first);
  const bool ended = lease_state(since_boot - state.leases_renewed) == LeaseState::ended;
  if (ended && !change.lost.empty()) ++state.step_downs;
  state.leases_renewed = since_boot;
  state.renewal_wait = lease_wait(name, state.turn_clock, seen->first);
  return change;
}

bool Store::owns(SessionKey session) const noexcept {
  return state_->server == nullptr || state_->held.holds(shard_of(session));
}

bool Sharing::does_upkeep() const noexcept {
  return state_.server == nullptr || state_.held.holds(upkeep_shard);
}

bool Store::is_on_server() const noexcept {
  return state_ && state_->server != nullptr;
}

Sharing::Shares Sharing::shares() const {
  if (state_.server == nullptr) return {};
  return {.shards = state_.held.count(),
          .held = state_.held.text(),
          .monitors = state_.monitors,
          .renewed = state_.leases_renewed,
          .step_downs = state_.step_downs};
}

/// REQUIRES: the transaction under way.
Result<void> Store::State::check_holds(const Conclusions& verdicts) {
  if (server == nullptr || monitor_name.empty()) return {};
  std::set<std::int64_t> sessions;
  for (const auto& transition : verdicts.transitions) sessions.insert(transition.session);
  for (const auto* judged : verdicts.snapshots) sessions.insert(judged->session);
  std::set<std::int64_t> shards;
  for (const auto session : sessions) shards.insert(shard_of(session));
  const std::vector<std::int64_t> keys(shards.begin(), shards.end());
  auto& query = sql("SELECT shard, epoch FROM leases WHERE owner = ? AND shard = ANY(?)");
  query.bind(1, std::string_view(monitor_name)).bind_numbers(2, keys);
  std::size_t valid = 0;
  while (query.step()) {
    if (query.integer(1) == held.epoch_of(static_cast<int>(query.integer(0)))) ++valid;
  }
  query.reset();
  if (valid != shards.size())
    return Error{ErrorCode::conflict, "another monitor judges these sessions by now"};
  const std::vector<std::int64_t> ids(sessions.begin(), sessions.end());
  auto& there = sql("SELECT count(*) FROM sessions WHERE id = ANY(?)");
  const ResetLater later(there);
  there.bind_numbers(1, ids);
  if (!there.step() || there.integer(0) != static_cast<std::int64_t>(ids.size()))
    return Error{ErrorCode::conflict, "another monitor dropped one of these sessions"};
  return {};
}

}  // namespace watchdog
