#include "watchdog/session.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <sstream>
#include <utility>

#include "watchdog/ids.h"

namespace watchdog {
namespace {

/// State letter and start time of a process, from /proc/PID/stat (proc(5), fields 3 and 22).
std::optional<std::pair<char, std::int64_t>> stat_of(std::int64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  // The name in field 2 may hold anything, also parentheses and blanks.
  const auto after_name = line.rfind(") ");
  if (after_name == std::string::npos) return std::nullopt;
  std::istringstream fields(line.substr(after_name + 2));
  char state = '?';
  fields >> state;
  std::string skipped;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  std::int64_t start = 0;
  fields >> start;
  if (!fields) return std::nullopt;
  return std::pair{state, start};
}

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return {};
  return name.data();
}

}  // namespace

Result<void> check(const SessionSpec& spec) {
  const auto refuse = [](std::string field, std::string what) {
    return Error{ErrorCode::invalid, field + " " + std::move(what), field};
  };
  if (!spec.parent.empty() && !is_session_id(spec.parent)) {
    return refuse("parentSessionId", "must match [A-Za-z0-9._:@-]{1,128}");
  }
  if (spec.agent.size() > label_bytes_max) {
    return refuse("agent", "is longer than " + std::to_string(label_bytes_max) + " bytes");
  }
  if (spec.task.size() > task_bytes_max) {
    return refuse("task", "is longer than " + std::to_string(task_bytes_max) + " bytes");
  }
  if (spec.labels.size() > labels_max) {
    return refuse("labels", "are more than " + std::to_string(labels_max));
  }
  for (const auto& [key, value] : spec.labels) {
    if (key.empty() || key.size() > label_bytes_max || value.size() > label_bytes_max) {
      return refuse("labels", "need keys and values of at most " + std::to_string(label_bytes_max) +
                                  " bytes, keys not empty");
    }
  }
  if (auto allowed = check(spec.policy); !allowed) return allowed;
  return check(patched(Policy{}, spec.policy));
}

ProcessFacts this_process() {
  const auto pid = static_cast<std::int64_t>(getpid());
  const auto stat = stat_of(pid);
  return {.pid = pid,
          .start_ticks = stat ? stat->second : 0,
          .boot_id = system_clock().boot_id(),
          .host = host_name()};
}

std::optional<bool> is_running(const ProcessFacts& process) {
  static const std::string boot = system_clock().boot_id();
  static const std::string host = host_name();
  if (process.pid <= 0 || process.boot_id != boot || process.host != host) return std::nullopt;
  const auto stat = stat_of(process.pid);
  if (!stat) return false;
  return stat->first != 'Z' && stat->first != 'X' &&
         (process.start_ticks == 0 || process.start_ticks == stat->second);
}

}  // namespace watchdog
