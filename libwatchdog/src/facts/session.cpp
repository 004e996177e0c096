#include "watchdog/session.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "facts/ids.h"
#include "facts/process.h"

namespace watchdog {
namespace {

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
  if (spec.title.size() > label_bytes_max) {
    return refuse("title", "is longer than " + std::to_string(label_bytes_max) + " bytes");
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
  const auto found = process_at(pid);
  return {.pid = pid,
          .start_ticks = found ? found->start_ticks : 0,
          .boot_id = system_clock().boot_id(),
          .host = host_name()};
}

std::optional<bool> is_running(const ProcessFacts& process) {
  static const std::string boot = system_clock().boot_id();
  static const std::string host = host_name();
  if (process.pid <= 0 || process.pid > INT32_MAX || process.boot_id != boot ||
      process.host != host)
    return std::nullopt;
  const auto found = process_at(process.pid);
  if (!found) {
    // /proc may hide other users' processes; only the kernel's word is a fact.
    const bool gone = kill(static_cast<pid_t>(process.pid), 0) != 0 && errno == ESRCH;
    return gone ? std::optional(false) : std::nullopt;
  }
  return found->state != 'Z' && found->state != 'X' &&
         (process.start_ticks == 0 || process.start_ticks == found->start_ticks);
}

}  // namespace watchdog
