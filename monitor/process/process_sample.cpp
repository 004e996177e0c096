// /proc leads from a port to its sockets, and from a socket to the processes that hold it. The
// oldest of them counts: the others inherited it. A pid counts only with its start time, because
// pids are used again. The name in `stat` may hold any character, so its end is the last
// parenthesis. Known owners are asked before all processes, and a search is followed by a rest of
// 19 times its length. Descendants are collected until no more are found.
#include "process/process_sample.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/address.hpp>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "watchdog/session.h"

namespace watchdog::monitor {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t arguments_bytes_max = 64U << 10U;
constexpr std::string_view passers_on[] = {
    "ssh",    "sshd",    "docker-proxy", "rootlessport", "nginx",       "haproxy",
    "caddy",  "envoy",   "socat",        "kubectl",      "slirp4netns", "pasta",
    "conmon", "traefik", "cloudflared",  "tailscaled",   "litellm"};

std::string beginning_of(const fs::path& path, std::size_t bytes_max) {
  std::string text(bytes_max, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(text.data(), static_cast<std::streamsize>(bytes_max));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

fs::path folder_of(pid_t pid) {
  return fs::path("/proc") / std::to_string(pid);
}

template <class Number>
std::optional<Number> number_from(std::string_view text, int base = 10) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc{} || end == text.data()) return std::nullopt;
  return number;
}

struct SocketRow {
  int own_port = 0;
  int other_port = 0;
  bool listens = false;
  std::string_view number;  ///< A descriptor's link names it.
};

std::string socket_link(const SocketRow& row) {
  return "socket:[" + std::string(row.number) + "]";
}

/// Removes the first word from the line, and returns it.
std::string_view first_word(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const auto word = line.substr(0, line.find(' '));
  line.remove_prefix(word.size());
  return word;
}

/// Visits all TCP sockets of this network namespace. A busy machine has tens of thousands of
/// sockets that ended.
template <class Visit>
void each_socket(const Visit& visit) {
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);
    while (std::getline(file, line)) {
      // proc(5): number, local address, remote address, state, queues, timer, retries, user,
      // timeout, inode.
      std::array<std::string_view, 10> field;
      std::string_view rest = line;
      for (auto& text : field) text = first_word(rest);
      const auto port = [&](std::string_view address) {
        const auto colon = address.rfind(':');
        if (colon == std::string_view::npos) return 0;
        return number_from<int>(address.substr(colon + 1), 16).value_or(0);
      };
      if (field[9].empty() || field[9] == "0") continue;  // nobody has it any more
      visit(SocketRow{.own_port = port(field[1]),
                      .other_port = port(field[2]),
                      .listens = field[3] == "0A",
                      .number = field[9]});
    }
  }
}

/// The sockets that listen at a port.
std::set<std::string> listeners_at(int port) {
  std::set<std::string> sockets;
  each_socket([&](const SocketRow& row) {
    if (row.listens && row.own_port == port) sockets.insert(socket_link(row));
  });
  return sockets;
}

std::vector<pid_t> all_processes() {
  std::vector<pid_t> all;
  std::error_code error;
  for (auto entry = fs::directory_iterator("/proc", error); !error && entry != fs::end(entry);
       entry.increment(error)) {
    if (const auto pid = number_from<pid_t>(entry->path().filename().string())) all.push_back(*pid);
  }
  std::ranges::sort(all);
  return all;
}

bool holds_any(pid_t pid, const std::set<std::string>& sockets) {
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder_of(pid) / "fd", error);
       !error && entry != fs::end(entry); entry.increment(error)) {
    std::error_code gone;
    if (sockets.contains(fs::read_symlink(entry->path(), gone).string())) return true;
  }
  return false;
}

/// The fields of one process's `stat`.
struct StatLine {
  pid_t parent = 0;
  std::int64_t start_ticks = 0;
  Millis cpu{};
  std::int64_t memory_bytes = 0;
  bool is_stopped = false;
  std::string name;
};

std::optional<StatLine> stat_of(pid_t pid) {
  const auto line = beginning_of(folder_of(pid) / "stat", 2'048);
  // The name may hold anything, also parentheses, blanks and newlines.
  const auto name = line.find('(');
  const auto after_name = line.rfind(") ");
  if (name == std::string::npos || after_name == std::string::npos || after_name < name) return {};
  std::istringstream fields(line.substr(after_name + 2));
  std::array<std::string, 22> field;  // proc(5): 3 to 24
  for (auto& text : field) fields >> text;
  if (!fields || field[0] == "Z" || field[0] == "X") return {};
  const auto at = [&](std::size_t number) {
    return number_from<std::int64_t>(field[number - 3]).value_or(0);
  };
  static const std::int64_t ticks_per_second = sysconf(_SC_CLK_TCK);
  static const std::int64_t page_bytes = sysconf(_SC_PAGESIZE);
  const auto ticks = at(14) + at(15) + at(16) + at(17);
  return StatLine{.parent = static_cast<pid_t>(at(4)),
                  .start_ticks = at(22),
                  .cpu = Millis{ticks * 1'000 / ticks_per_second},
                  .memory_bytes = at(24) * page_bytes,
                  .is_stopped = field[0] == "T",  // "t" is a tracer's, and may last a moment
                  .name = line.substr(name + 1, after_name - name - 1)};
}

/// Returns the bytes that it read from disks; nothing: it belongs to another user.
std::optional<std::int64_t> read_bytes_of(pid_t pid) {
  const auto text = beginning_of(folder_of(pid) / "io", 1'024);
  static constexpr std::string_view key = "read_bytes: ";
  const auto at = text.find(key);
  if (at == std::string::npos) return std::nullopt;
  return number_from<std::int64_t>(std::string_view(text).substr(at + key.size()));
}

}  // namespace

bool is_this_machine(const Url& server) {
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(server.host, error);
  return error ? server.host == "localhost" : address.is_loopback();
}

namespace {

/// The processor time of this thread so far.
std::chrono::nanoseconds thread_cpu() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

/// Returns the process that has one of the sockets.
std::optional<ServerProcess> first_holder(const std::vector<pid_t>& processes,
                                          const std::set<std::string>& sockets) {
  std::vector<SocketHolder> holders;
  for (const pid_t pid : processes) {
    if (!holds_any(pid, sockets)) continue;
    const auto stat = stat_of(pid);
    if (!stat) continue;
    if (std::ranges::find(passers_on, stat->name) != std::end(passers_on)) return std::nullopt;
    holders.push_back(
        {{.pid = pid, .start_ticks = stat->start_ticks, .name = stat->name}, stat->parent});
  }
  return first_of(holders);
}

}  // namespace

bool is_loopback(std::string_view address) {
  boost::system::error_code error;
  const auto ip = boost::asio::ip::make_address(std::string(address), error);
  if (error) return false;
  if (ip.is_v6() && ip.to_v6().is_v4_mapped())
    return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, ip.to_v6()).is_loopback();
  return ip.is_loopback();
}

std::set<std::string> SocketOwners::sockets_of(const ClientConnection& connection) {
  constexpr std::chrono::seconds seen_time{1};
  const auto claim = [&]() -> std::set<std::string> {
    auto found = seen_.extract(connection.peer_port);
    if (found.empty() || found.mapped().empty()) return {};
    return {std::move(found.mapped())};
  };
  const auto now = std::chrono::steady_clock::now();
  if (connection.own_port == seen_port_ && now - seen_at_ < seen_time) {
    if (auto found = claim(); !found.empty()) return found;
  }
  seen_.clear();
  seen_port_ = connection.own_port;
  seen_at_ = now;
  each_socket([this](const SocketRow& row) {
    if (row.listens || row.other_port != seen_port_) return;
    const auto [at, is_new] = seen_.try_emplace(row.own_port, socket_link(row));
    if (!is_new) at->second.clear();
  });
  return claim();
}

std::optional<ServerProcess> SocketOwners::find(const ClientConnection& connection) {
  constexpr std::size_t known_max = 64;
  if (connection.peer_port == 0 || !is_loopback(connection.peer)) return std::nullopt;
  const std::lock_guard guard(mutex_);
  if (!allowance_.allows(std::chrono::steady_clock::now())) return std::nullopt;
  const auto began = thread_cpu();
  std::optional<ServerProcess> owner;
  if (const auto sockets = sockets_of(connection); !sockets.empty()) {
    std::vector<pid_t> known;
    for (const auto& process : known_) known.push_back(process.pid);
    owner = first_holder(known, sockets);
    if (!owner) owner = first_holder(all_processes(), sockets);
  }
  if (owner) {
    std::erase_if(known_, [&](const ServerProcess& one) { return one.pid == owner->pid; });
    if (known_.size() >= known_max) known_.erase(known_.begin());
    known_.push_back(*owner);
  }
  allowance_.spend(thread_cpu() - began);
  return owner;
}

std::optional<ServerProcess> SocketOwners::confirm(const ClientConnection& connection, pid_t pid) {
  if (connection.peer_port == 0 || !is_loopback(connection.peer)) return std::nullopt;
  const std::lock_guard guard(mutex_);
  const auto sockets = sockets_of(connection);
  if (sockets.empty()) return std::nullopt;
  return first_holder({pid}, sockets);
}

std::optional<ServerProcess> process_now(pid_t pid) {
  const auto stat = stat_of(pid);
  if (!stat) return std::nullopt;
  return ServerProcess{.pid = pid, .start_ticks = stat->start_ticks, .name = stat->name};
}

bool comes_from(pid_t pid, pid_t ancestor) {
  constexpr int levels_max = 32;
  for (int level = 0; level < levels_max && pid > 0; ++level) {
    if (pid == ancestor) return true;
    const auto stat = stat_of(pid);
    if (!stat) return false;
    pid = stat->parent;
  }
  return false;
}

Millis started_at(const ServerProcess& process) {
  static const std::int64_t ticks_per_second = sysconf(_SC_CLK_TCK);
  return Millis{process.start_ticks * 1'000 / std::max<std::int64_t>(ticks_per_second, 1)};
}

std::string variable_of(pid_t pid, std::string_view name) {
  constexpr std::size_t environment_bytes_max = 256U << 10U;
  const auto all = '\0' + beginning_of(folder_of(pid) / "environ", environment_bytes_max);
  const auto begin = '\0' + std::string(name) + '=';
  const auto found = all.find(begin);
  if (found == all.npos) return {};
  const auto value = all.substr(found + begin.size());
  return value.substr(0, value.find('\0'));
}

ProcessFacts facts_of(const ServerProcess& process) {
  static const auto self = this_process();
  return {.pid = process.pid,
          .start_ticks = process.start_ticks,
          .boot_id = self.boot_id,
          .host = self.host,
          .known_by = KnownBy::connection};
}

std::optional<ServerProcess> process_behind(const Url& server) {
  const auto port = number_from<int>(server.port);
  if (!port || !is_this_machine(server)) return std::nullopt;
  const auto sockets = listeners_at(*port);
  if (sockets.empty()) return std::nullopt;
  return first_holder(all_processes(), sockets);
}

std::optional<ServerProcess> first_of(const std::vector<SocketHolder>& holders) {
  const SocketHolder* first = nullptr;
  for (const auto& holder : holders) {
    const bool is_older = first == nullptr ||
                          holder.process.start_ticks < first->process.start_ticks ||
                          (holder.process.start_ticks == first->process.start_ticks &&
                           first->parent == holder.process.pid);
    if (is_older) first = &holder;
  }
  if (first == nullptr) return std::nullopt;
  return first->process;
}

std::optional<ProcessUse> use_of(const ServerProcess& process) {
  std::map<pid_t, StatLine> all;
  for (const pid_t pid : all_processes()) {
    if (auto stat = stat_of(pid)) all.emplace(pid, std::move(*stat));
  }
  const auto root = all.find(process.pid);
  if (root == all.end() || root->second.start_ticks != process.start_ticks) return std::nullopt;
  std::set<pid_t> tree{process.pid};
  // A child's number may be lower than its parent's.
  for (bool more = true; more;) {
    more = false;
    for (const auto& [pid, stat] : all)
      more = (tree.contains(stat.parent) && tree.insert(pid).second) || more;
  }
  ProcessUse use;
  for (const pid_t pid : tree) {
    use.cpu += all.at(pid).cpu;
    use.memory_bytes += all.at(pid).memory_bytes;
    if (const auto bytes = read_bytes_of(pid)) use.io_bytes = use.io_bytes.value_or(0) + *bytes;
    if (pid != process.pid) use.below.push_back(pid);
    if (all.at(pid).is_stopped) use.stopped.push_back(pid);
  }
  return use;
}

std::vector<std::string> llama_ports_of(const std::vector<pid_t>& processes) {
  std::vector<std::string> ports;
  for (const pid_t pid : processes) {
    const auto line = beginning_of(folder_of(pid) / "cmdline", arguments_bytes_max);
    std::vector<std::string> arguments;
    std::istringstream text(line);
    for (std::string argument; std::getline(text, argument, '\0');) arguments.push_back(argument);
    if (arguments.empty() || arguments.front().find("llama") == std::string::npos) continue;
    const auto option = std::ranges::find(arguments, "--port");
    if (option == arguments.end() || option + 1 == arguments.end()) continue;
    const auto port = number_from<int>(*(option + 1));
    if (port && *port > 0 && *port < 65'536) ports.push_back(std::to_string(*port));
  }
  return ports;
}

std::optional<int> gpu_percent_in_sysfs() {
  std::optional<int> busiest;
  std::error_code error;
  for (auto card = fs::directory_iterator("/sys/class/drm", error); !error && card != fs::end(card);
       card.increment(error)) {
    const auto percent =
        gpu_percent_from(beginning_of(card->path() / "device/gpu_busy_percent", 16));
    if (percent) busiest = std::max(busiest.value_or(0), *percent);
  }
  return busiest;
}

std::optional<int> gpu_percent_from(std::string_view lines) {
  std::optional<int> busiest;
  std::istringstream text{std::string(lines.substr(0, 4'096))};
  for (std::string line; std::getline(text, line);) {
    const auto first = line.find_first_not_of(' ');
    if (first == std::string::npos) continue;
    const auto percent = number_from<int>(std::string_view(line).substr(first));
    if (percent && *percent >= 0) busiest = std::clamp(*percent, busiest.value_or(0), 100);
  }
  return busiest;
}

}  // namespace watchdog::monitor
