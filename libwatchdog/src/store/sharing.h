/// \file
/// What monitors that share a server do with each other's help.
#pragma once

#include "store/store.h"

namespace watchdog {

/// Acts on a store, which must outlive it. Use from the store's thread.
class Sharing {
 public:
  explicit Sharing(Store& store) : state_(*store.state_) {}

  /// How long after the latest renewal of leases the next one is due.
  [[nodiscard]] Millis renewal_wait() const noexcept;
  /// On a server.
  [[nodiscard]] bool holds(int shard) const noexcept;

  /// Returns the next alerts to send to a channel, as StoreReader::next_message does. On a server
  /// only those of sessions that this process judges. No other process gets them for `time`, or
  /// until this one has not renewed its leases in time.
  [[nodiscard]] Result<std::vector<Alert>> claim_message(std::string_view channel, bool single,
                                                         Millis time);

  /// Shows the other monitors a text about the sessions that this one judges, with the next
  /// conclusions or renewal at the latest.
  void set_tally(std::string text);
  /// Writes the text at once, if it was not written yet.
  [[nodiscard]] Result<void> write_tally();
  /// Returns the texts of the other monitors.
  [[nodiscard]] Result<std::vector<std::string>> tallies_of_others();

 private:
  friend class Store;
  explicit Sharing(Store::State& state) : state_(state) {}
  /// REQUIRES: the transaction under way.
  void put_tally();

  Store::State& state_;
};

}  // namespace watchdog
