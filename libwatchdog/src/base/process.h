/// \file
/// Processes of this machine as /proc shows them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "watchdog/report.h"
#include "watchdog/time.h"

namespace watchdog {

/// One process at one moment. A plain value.
struct ProcessSight {
  std::int64_t pid = 0;
  std::int64_t parent = 0;
  std::int64_t start_ticks = 0;
  std::int64_t threads = 0;
  char state = '?';     ///< As in proc(5): R, S, D, Z, T, …
  Millis cpu{};         ///< That it has used, in user and in kernel mode.
  std::string command;  ///< At most 64 bytes, whatever bytes the process chose; empty: not told.
  std::string wchan;    ///< Where in the kernel it waits; empty: nowhere, or not told.
};

/// A process and those that it started. A plain value.
struct ProcessTree {
  static constexpr std::size_t children_max = 16;
  static constexpr int levels_max = 3;

  ProcessSight root;
  /// Of all levels, those above first. Empty: there are none, or the kernel does not tell.
  std::vector<ProcessSight> children;
};

/// The process of this number now; nothing where there is none, or none that may be seen. Without
/// `command` and `wchan`.
[[nodiscard]] std::optional<ProcessSight> process_at(std::int64_t pid);

/// The process of these facts with its children; nothing if it is gone, another one has its number,
/// or it belongs to another machine or boot. Its command lines are not read: that may wait for the
/// process, and they may hold secrets. Reads a bounded number of small files.
[[nodiscard]] std::optional<ProcessTree> process_tree(const ProcessFacts& process);

}  // namespace watchdog
