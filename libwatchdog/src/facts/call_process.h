/// \file
/// Which of an agent's processes run the command of a call.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "facts/process.h"

namespace watchdog {

/// True if the process has the name of a program that the command runs: `npm ci` calls itself so. A
/// shell runs hooks as well, so its name says nothing. Pure.
[[nodiscard]] bool is_named_in(std::string_view command, std::string_view process);

/// How long ago the process began, by the kernel's own clock: a test may give this process a faster
/// one.
[[nodiscard]] Millis age_of(const ProcessSample& process);

/// Returns the moment that long ago as the kernel stamps processes, in ticks since boot.
[[nodiscard]] unsigned long long tick_before(Millis ago);

/// The process of a command that the agent itself started, with all that it started. The first
/// member is the one below the agent. A plain value.
using CallProcesses = std::vector<ProcessSample>;

/// Finds the processes of a command among those of its agent: exactly one child of the agent, with
/// all below it. The child began with the call or after it, and one of them has the name of a
/// program of the command. Nothing, if no child is like that, or several are. `began` is the age of
/// the call.
[[nodiscard]] std::optional<CallProcesses> processes_of_call(const ProcessTree& tree,
                                                             std::string_view command,
                                                             Millis began);

/// True if these are the same processes, and did no work in the time between the looks. Pure.
[[nodiscard]] bool have_rested(const CallProcesses& before, const CallProcesses& now, Millis time);

}  // namespace watchdog
