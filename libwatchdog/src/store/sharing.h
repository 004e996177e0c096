/// \file
/// What monitors that share a server do with each other's help.
#pragma once

#include "store/store.h"

namespace watchdog {

/// A session, and the changes of health that follow from its events and were not recorded.
struct FoldedSession {
  SessionRow row{};
  Case judged{};
  std::vector<Transition> changes{};
};

/// Acts on a store, which must outlive it. Use from the store's thread.
class Sharing {
 public:
  explicit Sharing(Store& store) : state_(*store.state_) {}

  /// Takes, keeps and gives shards by the rule, as the monitor of that name. Without a server there
  /// is nothing to share.
  [[nodiscard]] Result<HeldShards::Change> renew(std::string_view name, bool leaves = false);
  /// The result of the latest renewal. A plain value.
  struct Shares {
    int shards = 0;
    std::string held{};                   ///< Which ones, see HeldShards::text.
    std::vector<std::string> monitors{};  ///< All that are there, this one included.
    Millis renewed{};                     ///< When, since boot.
    std::int64_t step_downs = 0;          ///< How often leases ended before they were renewed.
  };
  [[nodiscard]] Shares shares() const;
  /// Returns true if this process drops what is old.
  [[nodiscard]] bool does_upkeep() const noexcept;
  /// How long after the latest renewal of leases the next one is due.
  [[nodiscard]] Millis renewal_wait() const noexcept;
  /// On a server.
  [[nodiscard]] bool holds(int shard) const noexcept;

  /// Returns the next alerts to send to a channel, as StoreReader::next_message does. On a server
  /// only those of sessions that this process judges. No other process gets them for `time`, or
  /// until this one has not renewed its leases in time.
  [[nodiscard]] Result<std::vector<Alert>> claim_message(std::string_view channel, bool single,
                                                         Millis time);

  /// Returns the keys of the sessions of all monitors that have not ended, and of those that ended
  /// without a judge in the latest two minutes. A judge that dies is not behind for longer. Other
  /// ended sessions cost nothing.
  [[nodiscard]] Result<std::vector<SessionKey>> sessions_to_take_over();

  /// Returns sessions as judged by all their events, as StoreReader::fold does, in few questions to
  /// a server; those that are gone are left out. Ask for some dozens at once: their events since
  /// their snapshots are in memory together.
  [[nodiscard]] Result<std::vector<FoldedSession>> fold(std::span<const SessionKey> sessions,
                                                        const DetailProvider* details = nullptr);

  /// Notes whether sessions that this monitor judges by now are not in its memory yet.
  void set_taking_over(bool is_taking_over) noexcept;
  [[nodiscard]] bool is_taking_over() const noexcept;

  /// Shows the other monitors a text about the sessions that this one judges, with the next
  /// conclusions or renewal at the latest.
  void set_tally(std::string text);
  /// Writes the text at once, if it was not written yet.
  [[nodiscard]] Result<void> write_tally();
  /// Returns the texts of the other monitors.
  [[nodiscard]] Result<std::vector<std::string>> tallies_of_others();

 private:
  void sign_monitor();
  friend class Store;
  explicit Sharing(Store::State& state) : state_(state) {}
  /// REQUIRES: the transaction under way.
  void put_tally();
  [[nodiscard]] Seq first_event_since(Instant tick);
  [[nodiscard]] Result<std::vector<FoldedSession>> fold_one_by_one(
      std::span<const SessionKey> sessions, const DetailProvider* details);

  Store::State& state_;
};

}  // namespace watchdog
