#include "judge/lease_rule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <queue>
#include <random>
#include <set>

#include "store/server.h"

namespace watchdog {
namespace {

using namespace std::chrono_literals;

/// The table of leases, as a database carries plans out: one after the other, by its own clock.
struct LeaseTable {
  std::map<int, ShardLease> leases;
  std::map<std::string, Millis> monitors;

  std::vector<ShardLease> rows() const {
    std::vector<ShardLease> all;
    for (const auto& [shard, lease] : leases) all.push_back(lease);
    return all;
  }
  std::vector<std::string> there(Millis now) const {
    std::vector<std::string> names;
    for (const auto& [name, until] : monitors)
      if (until > now) names.push_back(name);
    return names;
  }
  HeldShards::Change renew(const std::string& me, Millis now, HeldShards& held,
                           bool leaves = false) {
    if (leaves) {
      monitors.erase(me);
    } else {
      monitors[me] = now + lease_for;
    }
    const auto plan = plan_leases(me, now, rows(), there(now), leaves);
    for (const int shard : plan.keep) leases[shard].until = now + lease_for;
    for (const int shard : plan.give) leases[shard].until = now;
    for (const int shard : plan.take) {
      auto& lease = leases[shard];
      lease = {.shard = shard, .owner = me, .epoch = lease.epoch + 1, .until = now + lease_for};
    }
    return held.learn(me, now, rows());
  }
  /// The check of each write of a verdict.
  bool is_valid(const std::string& me, int shard, std::int64_t epoch) const {
    const auto found = leases.find(shard);
    return found != leases.end() && found->second.owner == me && found->second.epoch == epoch;
  }
};

TEST(LeaseRule, spreads_sessions_over_all_shards) {
  std::vector<int> counts(shard_count);
  for (SessionKey session = 1; session <= 100'000; ++session)
    ++counts[static_cast<std::size_t>(shard_of(session))];
  const auto [least, most] = std::ranges::minmax(counts);
  EXPECT_GT(least, 280);
  EXPECT_LT(most, 510);
}

TEST(LeaseRule, one_monitor_takes_all_and_renews_them) {
  LeaseTable table;
  HeldShards held;
  EXPECT_EQ(table.renew("a", 0ms, held).gained.size(), 256U);
  EXPECT_TRUE(table.renew("a", 5s, held).empty());
  EXPECT_EQ(held.count(), shard_count);
  EXPECT_EQ(table.leases.at(7).until, 20s);
}

TEST(LeaseRule, a_monitor_that_slept_past_its_lease_gets_another_epoch) {
  LeaseTable table;
  HeldShards held;
  table.renew("a", 0ms, held);
  const auto change = table.renew("a", 60s, held);
  EXPECT_EQ(change.lost.size(), 256U);
  EXPECT_EQ(change.gained.size(), 256U);
  EXPECT_EQ(held.epoch_of(3), 2);
  EXPECT_FALSE(table.is_valid("a", 3, 1));
}

TEST(LeaseRule, a_monitor_that_comes_or_goes_moves_its_share_only) {
  LeaseTable table;
  std::map<std::string, HeldShards> held;
  Millis now{};
  const auto round = [&] {
    for (auto& [name, own] : held) table.renew(name, now += 1s, own);
  };
  const auto owners = [&] {
    std::map<int, std::string> all;
    for (const auto& [shard, lease] : table.leases)
      if (lease.until > now) all[shard] = lease.owner;
    return all;
  };
  for (const std::string name : {"a", "b", "c"}) {
    held[name];
    for (int rounds = 0; rounds < 3; ++rounds) round();
  }
  const auto three = owners();
  ASSERT_EQ(three.size(), 256U);
  for (const auto& [name, own] : held) EXPECT_NEAR(own.count(), 85, 1);
  held["d"];
  for (int rounds = 0; rounds < 3; ++rounds) round();
  const auto four = owners();
  ASSERT_EQ(four.size(), 256U);
  int moved = 0;
  for (const auto& [shard, owner] : four) {
    if (owner == three.at(shard)) continue;
    EXPECT_EQ(owner, "d");
    ++moved;
  }
  EXPECT_EQ(moved, 64);
  table.renew("d", now, held["d"], true);
  held.erase("d");
  for (int rounds = 0; rounds < 3; ++rounds) round();
  EXPECT_EQ(owners().size(), 256U);
  for (const auto& [shard, owner] : owners()) {
    if (four.at(shard) != "d") {
      EXPECT_EQ(owner, four.at(shard));
    }
  }
}

/// A monitor of the simulation. Its clock runs a little wrong, and may stand wrong by hours.
struct SimulatedMonitor {
  std::string name;
  HeldShards held;
  double clock_rate = 1;  ///< Of its own waiting.
  Millis away_until{};    ///< Paused, or cut off from the database.
  bool runs = true;
};

/// Events in virtual time: each monitor renews and judges; faults come by chance.
class LeaseSimulation {
 public:
  explicit LeaseSimulation(unsigned seed) : random_(seed) {
    for (SessionKey session = 1; session <= sessions_of_all; ++session)
      sessions_[static_cast<std::size_t>(shard_of(session))].push_back(session);
    for (int at = 0; at < monitors_of_all; ++at) start(Millis{pick(5'000)});
  }

  void run(Millis until) {
    while (!queue_.empty() && queue_.top().at <= until) {
      const auto next = queue_.top();
      queue_.pop();
      now_ = next.at;
      look_at_gaps();
      next.is_fault ? fault() : step(next.monitor);
    }
    now_ = until;
    look_at_gaps();
  }
  /// The time by which the table goes: its machine's clock may be set, and jumps by hours.
  Millis database_now() { return line_.advance(now_ + skew_); }
  void begin_faults() { queue_.push({.at = now_ + 1s, .is_fault = true}); }
  void end_faults() { faults_ = false; }

  std::int64_t acts = 0;
  std::int64_t refused = 0;
  std::int64_t wrong = 0;  ///< Two owners of one epoch, or an older epoch after a newer one.
  Millis longest_gap{};
  int faults = 0;
  int skews = 0;

  void expect_all_owned_evenly() {
    std::map<std::string, int> counts;
    for (const auto& [shard, lease] : table_.leases)
      if (lease.until > database_now()) ++counts[lease.owner];
    int owned = 0;
    int running = 0;
    for (const auto& monitor : monitors_) running += monitor.runs ? 1 : 0;
    for (const auto& [name, count] : counts) {
      owned += count;
      EXPECT_NEAR(count, shard_count / running, 1);
    }
    EXPECT_EQ(owned, shard_count);
  }

 private:
  static constexpr int monitors_of_all = 50;
  static constexpr SessionKey sessions_of_all = 100'000;

  struct Next {
    Millis at{};
    int monitor = 0;
    bool is_fault = false;
    bool operator<(const Next& other) const { return at > other.at; }
  };

  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }

  void start(Millis after) {
    monitors_.push_back({.name = "m" + std::to_string(monitors_.size()),
                         .clock_rate = 0.98 + 0.04 * pick(100) / 100});
    queue_.push({.at = now_ + after, .monitor = static_cast<int>(monitors_.size()) - 1});
  }

  /// A session of a shard is judged: the write counts only with the epoch of the database.
  void act(SimulatedMonitor& monitor, int shard) {
    const auto& sessions = sessions_[static_cast<std::size_t>(shard)];
    const auto session =
        sessions[static_cast<std::size_t>(pick(static_cast<int>(sessions.size())))];
    const auto epoch = monitor.held.epoch_of(shard);
    if (!table_.is_valid(monitor.name, shard, epoch)) {
      ++refused;
      return;
    }
    ++acts;
    auto& last = judged_[session];
    const bool same = last.first == epoch && last.second != monitor.name && !last.second.empty();
    if (epoch < last.first || same) ++wrong;
    last = {epoch, monitor.name};
  }

  void step(int at) {
    auto& monitor = monitors_[static_cast<std::size_t>(at)];
    if (!monitor.runs) return;
    if (monitor.away_until > now_) {
      queue_.push({.at = monitor.away_until, .monitor = at});
      return;
    }
    // It goes on where it was: with what it knew before it was away.
    for (int shard = 0; shard < shard_count; ++shard)
      if (monitor.held.holds(shard)) act(monitor, shard);
    const auto clock = database_now();
    table_.renew(monitor.name, clock, monitor.held);
    for (int shard = 0; shard < shard_count; ++shard)
      if (monitor.held.holds(shard)) act(monitor, shard);
    // It looks ten times a second whether it is time.
    const auto wait = lease_wait(monitor.name, clock, table_.rows());
    const auto pause = static_cast<double>(wait.count()) * monitor.clock_rate;
    queue_.push({.at = now_ + Millis{static_cast<std::int64_t>(pause) + pick(100)}, .monitor = at});
  }

  void fault() {
    if (!faults_) return;
    ++faults;
    queue_.push({.at = now_ + Millis{2'000 + pick(20'000)}, .is_fault = true});
    auto& monitor = monitors_[static_cast<std::size_t>(pick(static_cast<int>(monitors_.size())))];
    if (!monitor.runs) return;
    switch (pick(5)) {
      case 0:  // killed; another one is started
        monitor.runs = false;
        start(Millis{pick(30'000)});
        break;
      case 1:  // it leaves in order
        table_.renew(monitor.name, database_now(), monitor.held, true);
        monitor.runs = false;
        start(Millis{pick(30'000)});
        break;
      case 2:  // somebody sets the clock of the database, forward or back by up to six hours
        skew_ += Millis{pick(12 * 3'600'000) - 6 * 3'600'000};
        ++skews;
        break;
      default:  // stopped, or cut off
        monitor.away_until = now_ + Millis{pick(60'000)};
    }
  }

  /// How long shards are without a monitor that could act.
  void look_at_gaps() {
    const auto clock = database_now();
    for (int shard = 0; shard < shard_count; ++shard) {
      const auto found = table_.leases.find(shard);
      bool acts_for_it = false;
      if (found != table_.leases.end() && found->second.until > clock) {
        const auto number = static_cast<std::size_t>(std::stoi(found->second.owner.substr(1)));
        const auto& owner = monitors_[number];
        acts_for_it = owner.runs && owner.away_until <= now_;
      }
      auto& since = without_[static_cast<std::size_t>(shard)];
      if (acts_for_it) {
        since = now_;
      } else {
        longest_gap = std::max(longest_gap, now_ - since);
      }
    }
  }

  std::mt19937 random_;
  Millis now_{};
  Millis skew_{};
  SteadyLine line_;
  bool faults_ = true;
  LeaseTable table_;
  std::vector<SimulatedMonitor> monitors_;
  std::priority_queue<Next> queue_;
  std::vector<SessionKey> sessions_[shard_count];
  std::map<SessionKey, std::pair<std::int64_t, std::string>> judged_;
  Millis without_[shard_count] = {};
};

TEST(LeaseRule, a_time_line_never_goes_back) {
  SteadyLine line;
  EXPECT_EQ(line.advance(100s), 100s);
  EXPECT_EQ(line.advance(40s), 100s) << "somebody set the clock back";
  EXPECT_EQ(line.advance(43s), 103s) << "it goes on at the pace of the clock";
  EXPECT_EQ(line.advance(500s), 560s);
}

TEST(LeaseRule, waits_until_the_lease_of_another_monitor_ends) {
  const std::vector<ShardLease> leases{{.shard = 1, .owner = "me", .epoch = 1, .until = 12s},
                                       {.shard = 2, .owner = "other", .epoch = 1, .until = 13s},
                                       {.shard = 3, .owner = "gone", .epoch = 1, .until = 9s}};
  EXPECT_EQ(lease_wait("me", 5s, leases), 4s);
  EXPECT_EQ(lease_wait("me", 10s, leases), 3s);
  EXPECT_EQ(lease_wait("me", 14s, leases), lease_renewed_every);
}

TEST(LeaseRule, says_which_shards_are_held) {
  HeldShards held;
  EXPECT_EQ(held.text(), "");
  std::vector<ShardLease> leases;
  for (const int shard : {0, 1, 2, 7, 255})
    leases.push_back({.shard = shard, .owner = "me", .epoch = 1, .until = 15s});
  held.learn("me", 0s, leases);
  EXPECT_EQ(held.text(), "0-2, 7, 255");
  EXPECT_EQ(lease_state(9'999ms), LeaseState::held);
  EXPECT_EQ(lease_state(10s), LeaseState::late);
  EXPECT_EQ(lease_state(15s), LeaseState::ended);
}

TEST(LeaseRule, keeps_one_owner_through_kills_pauses_partitions_and_set_clocks) {
  const char* chosen = std::getenv("WATCHDOG_SEED");
  const auto seed =
      chosen != nullptr ? static_cast<unsigned>(std::atoll(chosen)) : std::random_device{}();
  std::printf("WATCHDOG_SEED=%u\n", seed);
  LeaseSimulation simulation(seed);
  simulation.run(30s);
  simulation.longest_gap = {};
  simulation.begin_faults();
  simulation.run(1'200s);
  EXPECT_GT(simulation.faults, 50);
  EXPECT_GT(simulation.acts, 10'000);
  EXPECT_GT(simulation.refused, 0) << "some slept past their leases, and were refused";
  EXPECT_EQ(simulation.wrong, 0);
  EXPECT_GT(simulation.longest_gap, 5s);
  // A lease lasts 15 s. Then a monitor takes the shard, at once or after another one gave it up.
  // The next fault may stop the monitor that takes the shard. Then the gap is twice as long.
  constexpr Millis once = lease_for + lease_renewed_every * 102 / 100 + 200ms;
  EXPECT_LE(simulation.longest_gap, 2 * once);
  EXPECT_GT(simulation.skews, 5);
  std::printf("%d faults, %lld acts, %lld refused, longest without an owner %lld ms\n",
              simulation.faults, static_cast<long long>(simulation.acts),
              static_cast<long long>(simulation.refused),
              static_cast<long long>(simulation.longest_gap.count()));
  simulation.end_faults();
  simulation.run(1'300s);
  simulation.expect_all_owned_evenly();
}

}  // namespace
}  // namespace watchdog
