/// \file
/// The process behind a port of this machine, as /proc shows it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/time.h"
#include "watchdog/url.h"

namespace watchdog::monitor {

/// Tells a process from a later one of the same number. A plain value.
struct ServerProcess {
  pid_t pid = 0;
  std::int64_t start_ticks = 0;
  std::string name{};  ///< As `comm` has it.
};

/// True if its host is this machine by loopback. Thread-safe.
[[nodiscard]] bool is_this_machine(const Url& server);

/// Who accepts connections at the server's port, if its host is this machine by loopback and we may
/// look into it. Nothing for programs that only pass on what another machine or a container does
/// (ssh, docker-proxy, …): their idleness says nothing. Reads the descriptors of all processes:
/// some milliseconds. Thread-safe.
[[nodiscard]] std::optional<ServerProcess> process_behind(const Url& server);

/// What a process and everything below it used so far. A plain value.
struct ProcessUse {
  Millis cpu{};  ///< With those that it reaped.
  std::optional<std::int64_t> io_bytes{};
  std::int64_t memory_bytes = 0;
  std::vector<pid_t> below{};  ///< In the order of their numbers.
};
/// Nothing: it is gone. Thread-safe.
[[nodiscard]] std::optional<ProcessUse> use_of(const ServerProcess& process);

/// The ports that llama.cpp servers among these processes were started with. Thread-safe.
[[nodiscard]] std::vector<std::string> llama_ports_of(const std::vector<pid_t>& processes);

/// Of the busiest GPU whose driver tells in /sys; nothing: none does. Thread-safe.
[[nodiscard]] std::optional<int> gpu_percent_in_sysfs();
/// What `nvidia-smi` prints: a number a line, the greatest of which counts. Nothing: no number.
[[nodiscard]] std::optional<int> gpu_percent_from(std::string_view lines);

}  // namespace watchdog::monitor
