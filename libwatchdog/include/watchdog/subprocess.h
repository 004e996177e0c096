/// \file
/// Running a program that may hang, fork, or refuse to end: it is bounded by whoever waits for it,
/// and nothing of it is left behind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/names.h"
#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

/// What becomes of processes that are alive after their leader's own exit. `kill` ends them by the
/// ladder, so that they may clean up. After a stop they are killed always.
enum class Survivors : std::uint8_t { kill, leave };

template <>
struct Names<Survivors> {
  static constexpr std::string_view all[] = {"kill", "leave"};
};

/// How a program is ended: SIGTERM and SIGCONT to all of it, then after `terminate` SIGKILL to all
/// of it, whatever became of the leader, and then for at most `kill_verify` a look whether nothing
/// is left. A plain value.
struct KillLadder {
  Millis terminate{1'000};
  Millis kill_verify{2'000};
};

/// What is run, and how. A plain value.
struct SpawnSpec {
  /// The program and its arguments. Without a slash the program is looked up in PATH.
  std::vector<std::string> argv;
  std::filesystem::path cwd{};  ///< Empty: the caller's.
  /// Set for the program, besides PATH, HOME, USER, LANG, LC_*, TZ, TMPDIR of the caller. What
  /// would wait for a person is switched off: GIT_TERMINAL_PROMPT=0, PAGER=cat, TERM=dumb.
  std::map<std::string, std::string> env{};
  std::string input{};       ///< What it reads from its standard input before that ends.
  bool inherit_env = false;  ///< The caller's whole environment; it may hold secrets.
  /// Marks every process of it (`WATCHDOG_CALL`), so that those that got away are found again.
  /// Empty: a fresh one.
  std::string mark{};
  KillLadder ladder{};
  Survivors survivors = Survivors::kill;
  std::size_t head_bytes = 512U << 10U;  ///< Kept of the beginning of the output, and
  std::size_t tail_bytes = 512U << 10U;  ///< of its end. Memory does not grow beyond them.
  /// How long output of descendants is still read after the leader's exit. What the leader wrote
  /// is read to its last byte in any case.
  Millis drain_grace{100};
};

/// Who wrote a piece of output.
enum class OutputStream : std::uint8_t { out, err };

/// Called while it runs, on the thread that waits. Both may be empty.
struct ProcessHooks {
  /// Ends the program by its ladder.
  std::stop_token stop{};
  /// Each piece of output as it came, before any cut. Should not block: the program waits for it.
  /// Should not throw: that counts as asking for a stop, and it is called no more.
  std::function<void(std::string_view bytes, OutputStream from)> output{};
};

/// How it ended, and what it wrote. A plain value.
struct ProcessEnd {
  std::optional<int> code{};    ///< Its exit code; empty: a signal ended it.
  std::optional<int> signal{};  ///< That signal; empty: it exited.
  bool stopped = false;         ///< `stop` was asked for before its exit.
  std::string head{};           ///< Of both streams, in the order in which they were read, and
  std::string tail{};           ///< behind what is left out: `output_bytes` - head - tail.
  std::string err_tail{};       ///< The end of standard error alone, at most 4 KiB.
  std::uint64_t output_bytes = 0;
  /// Processes that outlived their leader: how many there were, and were killed.
  std::size_t survivors = 0;
  std::size_t survivors_killed = 0;
  std::vector<std::string> survivor_names{};  ///< `NAME (PID)`, at most 16.
  /// Some could not be ended (another user's, or in an uninterruptible wait), or got away.
  bool containment_lost = false;
  bool output_held = false;  ///< Somebody held the output open when reading ended.

  /// The convention of shells: the code, or 128 + the signal.
  [[nodiscard]] int status() const noexcept { return code ? *code : 128 + signal.value_or(0); }
};

/// Runs a program to its end and reads what it writes; returns when its leader has exited and what
/// outlived it was seen to, or when `stop` was asked for and its ladder is done: never later than
/// that, whoever holds the output.
/// Its standard input is `input`, it has no terminal, and of the caller's files it gets none.
/// It dies with the caller, also by SIGKILL. The caller's own children are not touched.
/// Errors: `not_found` (no such program or directory), `invalid` (may not be executed, arguments
/// too long), `exhausted` (processes, files, memory), `unavailable` (the helper program is
/// missing), `cancelled` (a stop was asked for before, nothing was started). Thread-safe.
///
/// The helper program `watchdog-exec` comes with the library. It is looked for beside the running
/// program and the library, in `../libexec/watchdog` of these, and where it was to be installed;
/// the environment variable WATCHDOG_EXEC names another place.
[[nodiscard]] Result<ProcessEnd> run_process(const SpawnSpec& spec, const ProcessHooks& hooks = {});

}  // namespace watchdog
