#include "tools/resource_locks.h"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace watchdog {

class ResourceLocks::Ticket {
 public:
  std::vector<ResourceKey> keys;
  std::shared_ptr<Wakeup> waiter;
  bool granted = false;
  bool tainted = false;

  [[nodiscard]] bool conflicts(const Ticket& later) const {
    return std::any_of(keys.begin(), keys.end(), [&](const ResourceKey& mine) {
      return std::any_of(later.keys.begin(), later.keys.end(), [&](const ResourceKey& other) {
        if (mine.key != other.key) return false;
        return tainted ? mine.write && other.write : mine.write || other.write;
      });
    });
  }
};

std::string canonical_key(const std::string& key) {
  if (key.empty() || key.front() != '/') return key;
  std::error_code error;
  auto path = std::filesystem::weakly_canonical(key, error);
  return error ? std::filesystem::path(key).lexically_normal().string() : path.string();
}

ResourceLocks& ResourceLocks::of_process() {
  // Never destroyed: abandoned threads may release after main.
  static auto& locks = *new ResourceLocks;
  return locks;
}

ResourceLocks::TicketPtr ResourceLocks::request(std::vector<ResourceKey> keys,
                                                std::shared_ptr<Wakeup> waiter) {
  auto ticket = std::make_shared<Ticket>();
  for (auto& key : keys) key.key = canonical_key(key.key);
  ticket->keys = std::move(keys);
  ticket->waiter = std::move(waiter);
  const std::lock_guard guard(mutex_);
  tickets_.push_back(ticket);
  return ticket;
}

ResourceLocks::Standing ResourceLocks::standing(const TicketPtr& ticket) {
  const std::lock_guard guard(mutex_);
  if (ticket->granted) return Standing::granted;
  auto standing = Standing::granted;
  for (const auto& earlier : tickets_) {
    if (earlier == ticket) break;
    if (!earlier->conflicts(*ticket)) continue;
    if (earlier->tainted) return Standing::tainted;
    standing = Standing::waiting;
  }
  ticket->granted = standing == Standing::granted;
  return standing;
}

void ResourceLocks::ring_waiting() {
  for (const auto& ticket : tickets_) {
    if (!ticket->granted) ticket->waiter->ring();
  }
}

void ResourceLocks::release(const TicketPtr& ticket) {
  const std::lock_guard guard(mutex_);
  tickets_.remove(ticket);
  ring_waiting();
}

void ResourceLocks::taint(const TicketPtr& ticket) {
  const std::lock_guard guard(mutex_);
  ticket->tainted = true;
  ring_waiting();
}

}  // namespace watchdog
