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
struct ProcessSample {
  std::int64_t pid = 0;
  std::int64_t parent = 0;
  std::int64_t group = 0;
  std::int64_t session = 0;   ///< The pid of its leader.
  std::int64_t terminal = 0;  ///< The device of its controlling terminal; 0: it has none.
  std::int64_t start_ticks = 0;
  std::int64_t threads = 0;
  char state = '?';  ///< As in proc(5): R, S, D, Z, T, …
  Millis cpu{};      ///< That it has used, in user and in kernel mode.
  std::string
      command;        ///< At most 64 bytes of any kind, as the process chose them; empty: unknown.
  std::string wchan;  ///< The kernel function in which it waits; empty: none, or unknown.
};

/// A process and those that it started. A plain value.
struct ProcessTree {
  static constexpr std::size_t children_max = 16;
  static constexpr int levels_max = 3;

  ProcessSample root;
  /// Of all levels, parents first. Empty: there are none, or the kernel does not report them.
  std::vector<ProcessSample> children;
};

/// Returns the process with this pid now; nothing if there is none, or it is not accessible.
/// Without `command` and `wchan`.
[[nodiscard]] std::optional<ProcessSample> process_at(std::int64_t pid);

/// A digest of this machine's id (machine-id(5)), which survives boots; empty: it has none.
[[nodiscard]] std::string machine_identity();

/// The process of these facts with its children; nothing if it is gone, another one has its number,
/// or it belongs to another machine or boot. Its command lines are not read: that may wait for the
/// process, and they may hold secrets. Reads a bounded number of small files.
[[nodiscard]] std::optional<ProcessTree> process_tree(const ProcessFacts& process);

/// Below this share of a core processes idle: timers and collectors of garbage take that much.
inline constexpr int busy_percent_min = 2;
/// The kernel counts in ticks of 10 ms, so less in a short time may be one tick by chance.
inline constexpr Millis busy_min{30};
/// True if processes that used this much in this time work.
[[nodiscard]] constexpr bool is_work(Millis cpu, std::int64_t io_bytes, Millis time) {
  return (cpu >= busy_min && cpu.count() * 100 >= busy_percent_min * time.count()) || io_bytes > 0;
}

}  // namespace watchdog
