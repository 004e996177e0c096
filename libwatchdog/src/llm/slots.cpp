#include "llm/slots.h"

#include <nlohmann/json.hpp>

#include "llm/members.h"

namespace watchdog {

using nlohmann::json;

namespace {
constexpr std::int64_t slots_max = 100'000;
}  // namespace

std::optional<ServerProps> props_from(std::string_view body) {
  const auto value = json_from(body);
  if (!value) return std::nullopt;
  const auto slots = integer_member(*value, "total_slots");
  if (!slots && object_member(*value, "default_generation_settings") == nullptr)
    return std::nullopt;
  ServerProps props;
  if (slots && *slots >= 0 && *slots < slots_max) props.total_slots = static_cast<int>(*slots);
  const json* sleeping = member(*value, "is_sleeping");
  props.is_sleeping = sleeping != nullptr && sleeping->is_boolean() && sleeping->get<bool>();
  return props;
}

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
    slots.push_back(
        {.id = static_cast<int>(*id), .is_processing = processing->get<bool>(), .task = task});
  }
  return slots;
}

std::optional<int> free_slot(const std::vector<Slot>& slots, const OwnTasks& own) {
  std::optional<int> unused;
  for (const Slot& slot : slots) {
    if (slot.is_processing) continue;
    if (!slot.task) {
      unused = unused.value_or(slot.id);
      continue;
    }
    const auto ours = own.find(slot.id);
    if (ours != own.end() && ours->second == *slot.task) return slot.id;
  }
  return unused;
}

}  // namespace watchdog
