/// \file
/// Which sessions a monitor judges where several share a database. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/report.h"
#include "watchdog/time.h"

namespace watchdog {

/// A session belongs to one of these, by its key.
inline constexpr int shard_count = 256;
/// How long a lease lasts, and how often it is renewed, by the database's clock.
inline constexpr Millis lease_for{15'000};
inline constexpr Millis lease_renewed_every{5'000};
/// The monitor that holds this one sends alerts and does the upkeep of the database.
inline constexpr int upkeep_shard = 0;

/// A lease is late if it was not renewed for this long.
inline constexpr Millis lease_late_after = 2 * lease_renewed_every;

/// How the leases of a monitor stand, this long after they were renewed.
enum class LeaseState : std::uint8_t {
  held,  ///< Renewed in time.
  late,  ///< A renewal did not come through; the shards are still this monitor's.
  ended  ///< Other monitors may judge by now, and this one does not.
};
template <>
struct Names<LeaseState> {
  static constexpr std::string_view all[] = {"held", "late", "ended"};
};
[[nodiscard]] LeaseState lease_state(Millis since_renewal) noexcept;

[[nodiscard]] int shard_of(SessionKey session) noexcept;

/// A row of the database. A plain value.
struct ShardLease {
  int shard = 0;
  std::string owner{};     ///< Empty: nobody had it yet.
  std::int64_t epoch = 0;  ///< Rises with each new holding, also by the same owner.
  Millis until{};          ///< Of the database's clock; from then on it is free.
};

/// The next step of a monitor with its leases. Shards in order; those of `keep` stay as they are.
struct LeasePlan {
  std::vector<int> keep{};  ///< Held, and renewed.
  std::vector<int> take{};  ///< Free ones, with the next epoch.
  std::vector<int> give{};  ///< More than its share: free from now on.
};

/// `leases`: at most one for each shard; a shard without one is free. `monitors`: the names of
/// those that are there, `me` included or not. `leaves`: it gives all and takes none.
[[nodiscard]] LeasePlan plan_leases(std::string_view me, Millis now,
                                    std::span<const ShardLease> leases,
                                    std::span<const std::string> monitors, bool leaves = false);

/// How long a monitor waits until its next step: until it renews, or until a lease of another one
/// ends before that. `leases`: after its plan was carried out.
[[nodiscard]] Millis lease_wait(std::string_view me, Millis now,
                                std::span<const ShardLease> leases) noexcept;

/// The epochs of the shards that a monitor holds, as it knows them. Nothing it does is valid unless
/// the database still has that epoch.
class HeldShards {
 public:
  /// The changes since the last time. A plain value.
  struct Change {
    std::vector<int> gained{};
    std::vector<int> lost{};  ///< Also those that were lost and gained again.
    [[nodiscard]] bool empty() const noexcept { return gained.empty() && lost.empty(); }
  };

  /// Takes over what the database says after a plan was carried out.
  Change learn(std::string_view me, Millis now, std::span<const ShardLease> leases);
  [[nodiscard]] bool holds(int shard) const noexcept {
    return epochs_[static_cast<std::size_t>(shard)] != 0;
  }
  /// 0: not held.
  [[nodiscard]] std::int64_t epoch_of(int shard) const noexcept {
    return epochs_[static_cast<std::size_t>(shard)];
  }
  [[nodiscard]] int count() const noexcept;
  /// The held shards in order, for people: `0-84, 90`. Empty: none.
  [[nodiscard]] std::string text() const;

 private:
  std::int64_t epochs_[shard_count] = {};
};

}  // namespace watchdog
