/// \file
/// The slots of a llama.cpp server, and which hold a prompt that must not be displaced.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "llm/server_probe.h"

namespace watchdog {

/// One of `/slots`. A plain value.
struct Slot {
  int id = 0;
  bool is_processing = false;
  std::optional<std::int64_t> task{};  ///< Its latest; nothing: it was never used.
  std::optional<std::int64_t>
      seed{};  ///< Of the latest task; nothing: the server does not show it.
};
/// Returns nothing if it is not such a list.
[[nodiscard]] std::optional<std::vector<Slot>> slots_from(std::string_view body);

/// The seeds that one client's checks are asked with, so that a slot shows whether one of them used
/// it last. Each check gets another one, or asking again would give the same answer. Thread-safe.
class CheckSeeds {
 public:
  /// `random`: chooses the range.
  explicit CheckSeeds(std::uint32_t random);

  [[nodiscard]] std::int64_t next() noexcept;
  [[nodiscard]] bool has(std::int64_t seed) const noexcept;

 private:
  std::int64_t first_;
  std::atomic<std::uint32_t> given_ = 0;
};

/// Returns an idle slot without another client's prompt: one that our check used last, or one that
/// was never used. The first of those, because the server gives new agents the last one.
[[nodiscard]] std::optional<int> free_slot(const std::vector<Slot>& slots, const CheckSeeds& own);

}  // namespace watchdog
