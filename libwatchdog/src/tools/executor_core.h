/// \file
/// What an executor, its batches and its threads share. Abandoned threads keep it alive.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tools/call_state.h"
#include "tools/resource_locks.h"
#include "tools/workers.h"
#include "watchdog/executor.h"

namespace watchdog {

struct ToolExecutor::Core : std::enable_shared_from_this<ToolExecutor::Core> {
  Core(Parts given, ExecutorOptions chosen);

  Parts parts;
  const ExecutorOptions options;
  const std::shared_ptr<Workers> workers;
  ResourceLocks& locks = ResourceLocks::of_process();
  std::string workspace;  ///< The key that every call uses, to read or to write.

  std::mutex observing;  ///< Events come one at a time, and none after the end.
  bool closed = false;

  mutable std::mutex mutex;
  std::set<std::shared_ptr<Wakeup>> batches;
  std::map<const CallState*, Instant> abandoned;  ///< Since when.
  std::map<std::string, std::size_t, std::less<>> abandoned_by_tool;
  std::uint64_t abandoned_total = 0;
  std::uint64_t reclaimed_total = 0;
  std::set<std::string, std::less<>> shaky;  ///< Tools that were off in an earlier turn.

  [[nodiscard]] Instant now() const { return Instant{options.clock->since_boot()}; }
  void tell(const ToolEvent& event) noexcept;
  void tell_error(const CallReport& report) noexcept;

  /// On a worker's thread: the call from its beginning to its end, whatever that is.
  void carry_out(const std::shared_ptr<CallState>& state, Tool& tool,
                 const ResourceLocks::TicketPtr& ticket) noexcept;
  /// Nobody waits for its thread any more. REQUIRES: its `abandoned` was set.
  void abandon(const CallState& state, Instant since);

  [[nodiscard]] bool is_quarantined(std::string_view tool) const;
  /// All threads are taken by calls that nobody waits for.
  [[nodiscard]] bool is_saturated() const;

 private:
  [[nodiscard]] Homecoming invoke(const std::shared_ptr<CallState>& state, Tool& tool);
  [[nodiscard]] ToolReply call(Tool& tool, ToolContext& context) const noexcept;
  void came_back(const CallState& state, const Homecoming& home, bool was_late) noexcept;
};

}  // namespace watchdog
