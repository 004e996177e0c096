/// \file
/// On whose behalf a process of this machine runs.
#pragma once

#include <sys/types.h>

namespace watchdog::monitor {

/// True if both processes act as the same user, in namespaces of processes of the same depth. Each
/// process comes from processes of root, and a sandboxed one from those outside of its sandbox;
/// only one that acts as they do may speak for them. False if one is gone. Thread-safe.
[[nodiscard]] bool acts_as(pid_t pid, pid_t other);

}  // namespace watchdog::monitor
