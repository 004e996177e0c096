/// \file
/// The shared state of an executor, its batches and its threads. Abandoned threads keep it alive.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "calls/call_state.h"
#include "calls/resource_locks.h"
#include "calls/workers.h"
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
  struct Abandoned {
    Instant since;
    bool counts = false;  ///< For its tool's quarantine.
  };
  std::map<const CallState*, Abandoned> abandoned;  ///< Held by their threads.
  std::uint64_t abandoned_total = 0;
  std::uint64_t reclaimed_total = 0;
  std::set<std::string, std::less<>> shaky;  ///< Tools that were off in an earlier turn.

  [[nodiscard]] Instant now() const { return Instant{options.clock->since_boot()}; }
  void publish(const ToolEvent& event) noexcept;
  void report_error(const CallReport& report) noexcept;

  /// On a worker's thread: the call from its beginning to its end, whatever that is.
  void carry_out(const std::shared_ptr<CallState>& state, Tool& tool,
                 const ResourceLocks::TicketPtr& ticket) noexcept;
  /// A tool's words as the model gets them.
  [[nodiscard]] Output shown(const ToolReply& reply, const ToolSpec& spec) const;
  /// Records that a thread is abandoned. `in_time`: its own time ran out.
  void abandon(const CallState& state, Instant since, bool in_time);

  [[nodiscard]] bool is_quarantined(std::string_view tool) const;
  /// Tools, by how many calls that count hang. REQUIRES: mutex held.
  [[nodiscard]] std::map<std::string_view, std::size_t> hanging() const;
  /// Returns true if all threads run abandoned calls.
  [[nodiscard]] bool is_saturated() const;

 private:
  [[nodiscard]] HandlerResult invoke(const std::shared_ptr<CallState>& state, Tool& tool);
  [[nodiscard]] std::optional<ToolDenied> confirm(CallState& state, const Tool::Preview& preview);
  void came_late(const CallState& state, const HandlerResult& home) noexcept;
};

}  // namespace watchdog
