/// \file
/// When the process of a silent session is looked for, and what follows if it is gone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "facts/process.h"
#include "observer/live_sessions.h"
#include "store/store_reader.h"
#include "watchdog/report.h"

namespace watchdog {

/// Sees the processes of this machine, and knows which boots are over. Use from one thread at a
/// time.
class ProcessLooks {
 public:
  explicit ProcessLooks(const std::vector<Boot>& boots);
  /// Whatever ran in these boots is gone, except in the present one.
  void learn(const std::vector<Boot>& boots);
  ProcessLooks(const ProcessLooks&) = delete;
  ProcessLooks& operator=(const ProcessLooks&) = delete;

  [[nodiscard]] const std::string& host() const { return host_; }
  /// True if the session's process is known and is one of this machine.
  [[nodiscard]] bool runs_here(const History& history) const;
  /// Returns when its process is looked for next; `never`: not at all.
  [[nodiscard]] Instant next(const LiveSession& session) const;
  /// Looks for it if it is time. Returns what to report of a session whose process is gone: the end
  /// of the session, or `exited`; or of one whose command began although it waits for permission.
  [[nodiscard]] std::optional<Report> look(const LiveSession& session, Instant now);
  void forget(SessionKey session) { looked_.erase(session); }

  /// A look of the observer begins, in which `tree_of` inspects some processes.
  void begin_look();
  /// Returns the session's process and what runs below it. Nothing: it is another machine's, it is
  /// gone, or this look inspected too many already.
  [[nodiscard]] std::optional<ProcessTree> tree_of(const History& history);
  /// Returns true if what runs below its process may be inspected. It counts as one inspection.
  [[nodiscard]] bool inspects(const History& history);

 private:
  [[nodiscard]] std::optional<Report> permission_seen(const History& history, Instant now);
  [[nodiscard]] ProcessFacts facts_of(const History& history) const;
  [[nodiscard]] Instant looked_at(SessionKey session) const;
  [[nodiscard]] bool may_inspect(const History& history);
  [[nodiscard]] bool is_of_former_boot(const History& history) const;

  std::string boot_, host_;
  std::uint64_t machine_ = 0;
  /// The hosts of boots that are over, by machine_of().
  std::unordered_map<std::uint64_t, std::string> former_hosts_;
  int left_ = 0;  ///< Processes that this look may still inspect.
  /// When silent sessions' processes were last looked for.
  std::unordered_map<SessionKey, Instant> looked_;
};

}  // namespace watchdog
