#include "calls/resource_locks.h"

#include <algorithm>
#include <filesystem>
#include <utility>

namespace watchdog {

class ResourceLocks::Ticket {
 public:
  std::vector<ResourceKey> keys;
  std::shared_ptr<Wakeup> waiter;
  std::vector<const void*> lineage;
  bool granted = false;
  bool tainted = false;
  bool has_others_ask = false;

  [[nodiscard]] bool conflicts(const Ticket& later) const {
    return std::any_of(keys.begin(), keys.end(), [&](const ResourceKey& mine) {
      return std::any_of(later.keys.begin(), later.keys.end(), [&](const ResourceKey& other) {
        if (mine.key != other.key) return false;
        if (tainted) return mine.write && other.write;
        return mine.write || (other.write && !has_others_ask);
      });
    });
  }

  [[nodiscard]] bool belongs_to(const Ticket& other) const {
    return lineage.size() > 1 && !other.lineage.empty() &&
           std::find(lineage.begin() + 1, lineage.end(), other.lineage.front()) != lineage.end();
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
                                                std::shared_ptr<Wakeup> waiter,
                                                std::vector<const void*> lineage) {
  auto ticket = std::make_shared<Ticket>();
  for (auto& key : keys) key.key = canonical_key(key.key);
  ticket->keys = std::move(keys);
  ticket->waiter = std::move(waiter);
  ticket->lineage = std::move(lineage);
  const std::lock_guard guard(mutex_);
  for (const auto& earlier : tickets_) {
    if (earlier->has_others_ask || !ticket->belongs_to(*earlier)) continue;
    earlier->has_others_ask = true;
    ring_waiting();
  }
  tickets_.push_back(ticket);
  return ticket;
}

ResourceLocks::Standing ResourceLocks::standing(const TicketPtr& ticket) {
  const std::lock_guard guard(mutex_);
  if (ticket->granted) return Standing::granted;
  auto standing = Standing::granted;
  std::vector<const Ticket*> above;
  for (const auto& earlier : tickets_) {
    if (earlier == ticket) break;
    if (ticket->belongs_to(*earlier)) {
      above.push_back(earlier.get());
      continue;
    }
    if (!earlier->conflicts(*ticket)) continue;
    const auto holds_up = [&](const Ticket* own) { return own->conflicts(*earlier); };
    if (!earlier->granted && std::any_of(above.begin(), above.end(), holds_up)) continue;
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
