#include "llm/slots.h"

#include <nlohmann/json.hpp>

#include "llm/members.h"

namespace watchdog {

using nlohmann::json;

namespace {
constexpr std::int64_t slots_max = 100'000;

/// A client's range of seeds has 4,096 of those from 2^30 to 2^31, where few people's own are.
constexpr std::int64_t seeds_in_range = 1 << 12;
constexpr std::int64_t ranges = 1 << 18;
}  // namespace

std::optional<std::vector<Slot>> slots_from(std::string_view body) {
  const auto value = json_from(body);
  if (!value || !value->is_array()) return std::nullopt;
  std::vector<Slot> slots;
  for (const json& entry : *value) {
    const auto id = integer_member(entry, "id");
    const json* processing = member(entry, "is_processing");
    if (!id || *id < 0 || *id >= slots_max || processing == nullptr || !processing->is_boolean())
      return std::nullopt;
    auto task = integer_member(entry, "id_task");
    if (task && *task < 0) task.reset();  // older servers: never used
    const json* params = object_member(entry, "params");
    slots.push_back({.id = static_cast<int>(*id),
                     .is_processing = processing->get<bool>(),
                     .task = task,
                     .seed = params ? integer_member(*params, "seed") : std::nullopt});
  }
  return slots;
}

CheckSeeds::CheckSeeds(std::uint32_t random)
    : first_((ranges + static_cast<std::int64_t>(random) % ranges) * seeds_in_range) {}

std::int64_t CheckSeeds::next() noexcept {
  return first_ + static_cast<std::int64_t>(given_++) % seeds_in_range;
}

bool CheckSeeds::has(std::int64_t seed) const noexcept {
  return seed >= first_ && seed < first_ + seeds_in_range;
}

std::optional<int> free_slot(const std::vector<Slot>& slots, const CheckSeeds& own) {
  std::optional<int> unused;
  for (const Slot& slot : slots) {
    if (slot.is_processing) continue;
    if (!slot.task) {
      unused = unused.value_or(slot.id);
      continue;
    }
    if (slot.seed && own.has(*slot.seed)) return slot.id;
  }
  return unused;
}

}  // namespace watchdog
