/// \file
/// The slots of a llama.cpp server: who holds a prompt that must not be displaced.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

namespace watchdog {

/// What `/props` says. A plain value.
struct ServerProps {
  std::optional<int> total_slots{};
  bool is_sleeping = false;
};
/// Nothing: it is not a llama.cpp server's.
[[nodiscard]] std::optional<ServerProps> props_from(std::string_view body);

/// One of `/slots`. A plain value.
struct Slot {
  int id = 0;
  bool is_processing = false;
  std::optional<std::int64_t> task{};  ///< Its latest; nothing: it was never used.
};
/// Nothing: it is no such list.
[[nodiscard]] std::optional<std::vector<Slot>> slots_from(std::string_view body);

/// Slots by their latest task, for those that a task of ours used.
using OwnTasks = std::map<int, std::int64_t>;

/// An idle slot that holds nobody else's prompt: one that ours used last, or one that nobody ever
/// used. The first of those, because the server gives new agents the last one.
[[nodiscard]] std::optional<int> free_slot(const std::vector<Slot>& slots, const OwnTasks& own);

}  // namespace watchdog
