/// \file
/// Runs a program that may hang, fork, or refuse to end. The caller bounds its time, and no process
/// of it survives.
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

#include "watchdog/result.h"
#include "watchdog/time.h"
#if __has_include("exec_place.h")
#include "exec_place.h"  // in an installation, beside this header
#endif

namespace watchdog {

/// How to handle processes that survive their leader's own exit. `kill` ends them by the ladder, so
/// they can clean up. After a stop they are always killed.
enum class Survivors : std::uint8_t { kill, leave };

template <>
struct Names<Survivors> {
  static constexpr std::string_view all[] = {"kill", "leave"};
};

/// The steps that end a program. First all of its processes get SIGTERM and SIGCONT. After
/// `terminate` all of them get SIGKILL, even if the leader has ended. Then the helper checks, for
/// at most `kill_verify`, that none is left. A plain value.
struct KillLadder {
  Millis terminate{1'000};    ///< Between SIGTERM and SIGKILL.
  Millis kill_verify{2'000};  ///< How long the helper looks for survivors.
};

/// The program to run, and its environment. A plain value.
struct SpawnSpec {
  /// The program and its arguments. Without a slash the program is looked up in PATH.
  std::vector<std::string> argv{};
  std::filesystem::path cwd{};  ///< Empty: the caller's.
  /// Variables of the program, besides PATH, HOME, USER, LANG, LC_*, TZ, TMPDIR of the caller.
  /// Prompts, pagers and editors are switched off (GIT_TERMINAL_PROMPT=0, PAGER=cat, TERM=dumb,
  /// EDITOR=false, DEBIAN_FRONTEND=noninteractive, …), also those of the user's git settings.
  std::map<std::string, std::string> env{};
  std::string input{};       ///< Its standard input.
  bool inherit_env = false;  ///< The caller's whole environment; it may hold secrets.
  /// Marks all its processes (`WATCHDOG_CALL`), so that escaped ones can be found. Empty: a new
  /// mark.
  std::string mark{};
  KillLadder ladder{};                    ///< The steps that end it.
  Survivors survivors = Survivors::kill;  ///< See Survivors.
  std::size_t head_bytes = 512U << 10U;   ///< The stored size of the beginning of the output, and
  std::size_t tail_bytes = 512U << 10U;   ///< of its end. Memory does not exceed them.
  /// After the leader's exit its descendants' output is read until none came for this time, but for
  /// at most 10 s if this time is shorter. The leader's own output is always read to its last byte.
  Millis drain_grace{1'000};
};

/// The stream of a piece of output.
enum class OutputStream : std::uint8_t { out, err };

/// Called during the run, on the waiting thread. Both may be empty.
struct ProcessHooks {
  /// Ends the program by its ladder.
  std::stop_token stop{};
  /// Receives each piece of output before any cut. It should not block, because the program waits
  /// for it. If it throws, the program is stopped, and it is not called again.
  std::function<void(std::string_view bytes, OutputStream from)> output{};
  /// Called about every `look_every` in which its processes used CPU or disks.
  std::function<void()> working{};
  Millis look_every{2'000};  ///< See working.
};

/// How it ended, and its output. A plain value.
struct ProcessEnd {
  std::optional<int> code{};    ///< Its exit code; empty: a signal ended it.
  std::optional<int> signal{};  ///< That signal; empty: it exited.
  bool stopped = false;         ///< `stop` was requested before its exit.
  std::string head{};           ///< Of both streams, in the order of reading, and
  std::string tail{};  ///< what follows the part that was left out: `output_bytes` - head - tail.
  std::string err_tail{};                     ///< The end of standard error alone, at most 4 KiB.
  std::uint64_t output_bytes = 0;             ///< The size of the whole output.
  std::size_t survivors = 0;                  ///< Processes that survived their leader.
  std::size_t survivors_killed = 0;           ///< Those of them that were killed.
  std::vector<std::string> survivor_names{};  ///< `NAME (PID)`, at most 16.

  /// Some could not be ended (another user's, or in an uninterruptible wait), or may have escaped
  /// because the helper program and its guard were both killed.
  bool containment_lost = false;
  bool output_held = false;  ///< A process held the output open when reading ended.
  bool output_cut = false;   ///< Processes that were killed could still have written.

  /// Returns the shells' convention: the code, or 128 + the signal.
  [[nodiscard]] int status() const noexcept { return code ? *code : 128 + signal.value_or(0); }
};

/// Runs a program to its end and reads its output. It returns when its leader has exited and
/// survivors were handled, or when `stop` was requested and its ladder is done. A process that
/// holds the output open delays it by `drain_grace`, or longer while it writes.
/// Standard input is `input`; the program has no terminal and none of the caller's files. It dies
/// with the caller, also after SIGKILL. The caller's own children are not touched. Thread-safe.
///
/// Errors about the program: `not_found` (no such program or directory), `invalid` (may not be
/// executed, arguments too long). Errors about the machine: `exhausted` (processes, files, memory),
/// `unavailable` (the helper program is missing). `cancelled`: a stop was requested before, so
/// nothing was started.
///
/// It needs the helper program; see process_helper.
[[nodiscard]] Result<ProcessEnd> run_process(const SpawnSpec& spec, const ProcessHooks& hooks = {});

/// Returns the path of the helper program `watchdog-exec`, which is installed with the library and
/// which run_process needs. Call it at the start of a program.
/// The environment variable WATCHDOG_EXEC names it. Otherwise the library looks beside the running
/// program and beside itself, and in `../libexec/watchdog` of these. Then it looks in the prefix of
/// the program's headers, and in the prefix for which the library was configured. Error:
/// `unavailable`; the message lists every place. Thread-safe.
[[nodiscard]] Result<std::filesystem::path> process_helper();

}  // namespace watchdog
