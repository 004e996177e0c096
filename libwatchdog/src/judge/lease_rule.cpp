// Each monitor may hold its share: shard_count / n, rounded down, and one more while not all of the
// remainder have one more. A monitor with too many gives the last ones, and one with too few takes
// free ones. So a monitor that comes or goes moves its share only. The database carries plans out
// one by one.
#include "judge/lease_rule.h"

#include <algorithm>
#include <map>
#include <set>

#include "facts/digest.h"

namespace watchdog {

int shard_of(SessionKey session) noexcept {
  return static_cast<int>(combined(static_cast<std::uint64_t>(session), 0) % shard_count);
}

LeaseState lease_state(Millis since_renewal) noexcept {
  if (since_renewal >= lease_for) return LeaseState::ended;
  return since_renewal >= lease_late_after ? LeaseState::late : LeaseState::held;
}

LeasePlan plan_leases(std::string_view me, Millis now, std::span<const ShardLease> leases,
                      std::span<const std::string> monitors, bool leaves) {
  std::vector<const ShardLease*> held(shard_count, nullptr);
  std::map<std::string_view, int> counts;
  std::set<std::string_view> there(monitors.begin(), monitors.end());
  there.insert(me);
  for (const auto& lease : leases) {
    if (lease.shard < 0 || lease.shard >= shard_count || lease.until <= now) continue;
    held[static_cast<std::size_t>(lease.shard)] = &lease;
    ++counts[lease.owner];
    there.insert(lease.owner);
  }
  const int share = shard_count / static_cast<int>(there.size());
  const int remainder = shard_count % static_cast<int>(there.size());
  const auto with_more = std::count_if(counts.begin(), counts.end(), [&](const auto& count) {
    return count.first != me && count.second > share;
  });
  const int most = leaves ? 0 : share + (with_more < remainder ? 1 : 0);

  LeasePlan plan;
  for (int shard = 0; shard < shard_count; ++shard) {
    const auto* lease = held[static_cast<std::size_t>(shard)];
    if (lease == nullptr || lease->owner != me) continue;
    (static_cast<int>(plan.keep.size()) < most ? plan.keep : plan.give).push_back(shard);
  }
  for (int shard = 0; shard < shard_count; ++shard) {
    if (static_cast<int>(plan.keep.size() + plan.take.size()) >= most) break;
    if (held[static_cast<std::size_t>(shard)] == nullptr) plan.take.push_back(shard);
  }
  return plan;
}

Millis lease_wait(std::string_view me, Millis now, std::span<const ShardLease> leases) noexcept {
  Millis wait = lease_renewed_every;
  for (const auto& lease : leases)
    if (lease.owner != me && lease.until > now) wait = std::min(wait, lease.until - now);
  return wait;
}

HeldShards::Change HeldShards::learn(std::string_view me, Millis now,
                                     std::span<const ShardLease> leases) {
  std::int64_t epochs[shard_count] = {};
  for (const auto& lease : leases) {
    if (lease.shard < 0 || lease.shard >= shard_count) continue;
    if (lease.owner == me && lease.until > now)
      epochs[static_cast<std::size_t>(lease.shard)] = lease.epoch;
  }
  Change change;
  for (int shard = 0; shard < shard_count; ++shard) {
    auto& known = epochs_[static_cast<std::size_t>(shard)];
    const auto epoch = epochs[static_cast<std::size_t>(shard)];
    if (epoch == known) continue;
    if (known != 0) change.lost.push_back(shard);
    if (epoch != 0) change.gained.push_back(shard);
    known = epoch;
  }
  return change;
}

std::string HeldShards::text() const {
  std::string text;
  for (int shard = 0; shard < shard_count; ++shard) {
    if (!holds(shard)) continue;
    const int first = shard;
    while (shard + 1 < shard_count && holds(shard + 1)) ++shard;
    if (!text.empty()) text += ", ";
    text += std::to_string(first);
    if (shard > first) text += "-" + std::to_string(shard);
  }
  return text;
}

int HeldShards::count() const noexcept {
  return static_cast<int>(std::count_if(std::begin(epochs_), std::end(epochs_),
                                        [](std::int64_t epoch) { return epoch != 0; }));
}

}  // namespace watchdog
