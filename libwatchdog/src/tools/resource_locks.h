/// \file
/// Who may use what, in the order in which they asked.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tools/wakeup.h"
#include "watchdog/tool.h"

namespace watchdog {

/// Readers and writers of named things. A request is granted when no earlier one that is not done
/// conflicts with it: nobody is starved, and as each asks for all of its things at once, nobody
/// waits in a circle. Thread-safe.
class ResourceLocks {
 public:
  /// One for the whole process: agents share the machine's files.
  static ResourceLocks& of_process();

  class Ticket;
  using TicketPtr = std::shared_ptr<Ticket>;
  enum class Standing : std::uint8_t {
    granted,
    waiting,
    tainted  ///< Behind one who hangs and may still write.
  };

  /// Paths are made canonical. `waiter` is rung whenever the standing may have changed.
  /// `lineage`: who asks, and what that belongs to. Nobody waits for what it belongs to, nor for
  /// those who wait for that. Who has others ask for it reads nothing by itself meanwhile, or two
  /// such would wait for each other.
  [[nodiscard]] TicketPtr request(std::vector<ResourceKey> keys, std::shared_ptr<Wakeup> waiter,
                                  std::vector<const void*> lineage = {});
  [[nodiscard]] Standing standing(const TicketPtr& ticket);
  void release(const TicketPtr& ticket);
  /// Its holder does not come back: who wants to write one of its things is told so, who reads is
  /// let through. Until `release`.
  void taint(const TicketPtr& ticket);

 private:
  void ring_waiting();

  std::mutex mutex_;
  std::list<TicketPtr> tickets_;  // in order of request
};

/// All names of one file are the same: absolute, without links as far as they exist.
[[nodiscard]] std::string canonical_key(const std::string& key);

}  // namespace watchdog
