/// \file
/// The process behind a port or a connection of this machine, as /proc shows it.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "net/url.h"
#include "process/search_allowance.h"
#include "watchdog/report.h"
#include "watchdog/time.h"

namespace watchdog::monitor {

/// Identifies a process, also against a later one with the same pid. A plain value.
struct ServerProcess {
  pid_t pid = 0;
  std::int64_t start_ticks = 0;
  std::string name{};  ///< As `comm` has it.
};

/// True if its host is this machine by loopback. Thread-safe.
[[nodiscard]] bool is_this_machine(const Url& server);

/// Returns the process that accepts connections at the server's port, if its host is this machine
/// by loopback and the process is accessible. Nothing for programs that only forward (ssh,
/// docker-proxy, …): their idleness says nothing. Reads the descriptors of all processes: some
/// milliseconds. Thread-safe.
[[nodiscard]] std::optional<ServerProcess> process_behind(const Url& server);

/// A process with a server's socket, and its parent. A plain value.
struct SocketHolder {
  ServerProcess process;
  pid_t parent = 0;
};
/// The one that was started first; the others got the socket from it. Numbers of processes begin
/// again when they run out, so the least one need not be the oldest. Nothing: there is none.
[[nodiscard]] std::optional<ServerProcess> first_of(const std::vector<SocketHolder>& holders);

/// A client's connection, as its server sees it. A plain value.
struct ClientConnection {
  std::string peer;             ///< The client's address, without its port.
  std::uint16_t peer_port = 0;  ///< 0: unknown.
  std::uint16_t own_port = 0;   ///< Where the server accepted it.
};

/// True if the address is loopback's. Thread-safe.
[[nodiscard]] bool is_loopback(std::string_view address);

/// Finds the owner of the client's end of connections over loopback. Thread-safe.
class SocketOwners {
 public:
  /// Returns the process; of several that share it, the one that was started first. Nothing: the
  /// client is on another machine or in a container, the connection is closed, or its owner is not
  /// accessible. Reads /proc: some milliseconds for a new process. Nothing, too, while searches
  /// have used up their `SearchAllowance`.
  [[nodiscard]] std::optional<ServerProcess> find(const ClientConnection& connection);
  /// Returns the process of this number if it has the client's end of the connection, so that it
  /// sent what came over it. Reads the descriptors of that process alone.
  [[nodiscard]] std::optional<ServerProcess> confirm(const ClientConnection& connection, pid_t pid);

 private:
  /// Returns the client's socket of a connection. The set is empty if no socket or several sockets
  /// have these ports.
  std::set<std::string> sockets_of(const ClientConnection& connection);

  std::mutex mutex_;
  std::vector<ServerProcess> known_;  ///< Found before, the latest last.
  /// Sockets of clients that are connected to `seen_port_`, by the client's port, from one reading
  /// of the kernel's table. An empty name means that several sockets have this port. `sockets_of`
  /// removes the entry that it returns. Many clients often connect at once, and the table may be
  /// long, so one reading serves them all.
  std::unordered_map<int, std::string> seen_;
  int seen_port_ = 0;
  std::chrono::steady_clock::time_point seen_at_;
  SearchAllowance allowance_;
};

/// A running process of this machine; nothing: there is none of this number. Thread-safe.
[[nodiscard]] std::optional<ServerProcess> process_now(pid_t pid);
/// True if `ancestor` is the process itself, or one that it comes from. Thread-safe.
[[nodiscard]] bool comes_from(pid_t pid, pid_t ancestor);
/// Returns when it was started, since boot. The kernel counts in ticks of 10 ms. Thread-safe.
[[nodiscard]] Millis started_at(const ServerProcess& process);
/// Returns a variable of the environment that a process was started with; empty: it has none, or is
/// not accessible. Thread-safe.
[[nodiscard]] std::string variable_of(pid_t pid, std::string_view name);
/// The same as reports have it. Thread-safe.
[[nodiscard]] ProcessFacts facts_of(const ServerProcess& process);

/// The use of resources by a process and its descendants so far. A plain value.
struct ProcessUse {
  Millis cpu{};  ///< With those that it reaped.
  std::optional<std::int64_t> io_bytes{};
  std::int64_t memory_bytes = 0;
  std::vector<pid_t> below{};    ///< In the order of their numbers.
  std::vector<pid_t> stopped{};  ///< Likewise, and of all of it: those in state T.
};
/// Nothing: it is gone. Thread-safe.
[[nodiscard]] std::optional<ProcessUse> use_of(const ServerProcess& process);

/// The ports that llama.cpp servers among these processes were started with. Thread-safe.
[[nodiscard]] std::vector<std::string> llama_ports_of(const std::vector<pid_t>& processes);

/// Returns the load of the busiest GPU whose driver reports it in /sys; nothing: none does.
/// Thread-safe.
[[nodiscard]] std::optional<int> gpu_percent_in_sysfs();
/// Reads the output of `nvidia-smi`: one number per line, of which the greatest counts. Nothing: no
/// number.
[[nodiscard]] std::optional<int> gpu_percent_from(std::string_view lines);

}  // namespace watchdog::monitor
