/// \file
/// Grants resources in the order of the requests.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "calls/wakeup.h"
#include "watchdog/tool.h"

namespace watchdog {

/// Readers and writers of named resources. A request is granted when no earlier unfinished one
/// conflicts with it. No request starves, and as each names all its resources at once, no circle of
/// waits can form. Thread-safe.
class ResourceLocks {
 public:
  /// One for the whole process: agents share the machine's files.
  static ResourceLocks& of_process();

  class Ticket;
  using TicketPtr = std::shared_ptr<Ticket>;
  enum class Standing : std::uint8_t {
    granted,
    waiting,
    tainted  ///< A hung holder may still write.
  };

  /// Paths are made canonical. `waiter` is notified when the state may have changed. `lineage`: the
  /// caller's scopes. A request does not wait for its own ancestors, nor for requests that wait for
  /// those. While a call has nested calls, it counts as reading nothing itself, or two such calls
  /// would wait for each other.
  [[nodiscard]] TicketPtr request(std::vector<ResourceKey> keys, std::shared_ptr<Wakeup> waiter,
                                  std::vector<const void*> lineage = {});
  [[nodiscard]] Standing standing(const TicketPtr& ticket);
  void release(const TicketPtr& ticket);
  /// The holder does not return: later writers of its resources are refused, readers are granted.
  /// Until `release`.
  void taint(const TicketPtr& ticket);

 private:
  void ring_waiting();

  std::mutex mutex_;
  std::list<TicketPtr> tickets_;  // in order of request
};

/// All names of one file are the same: absolute, without links as far as they exist.
[[nodiscard]] std::string canonical_key(const std::string& key);

}  // namespace watchdog
