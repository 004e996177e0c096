/// \file
/// Runs a command unchanged under a supervisor.
#pragma once

#include <signal.h>
#include <termios.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "process/descendants.h"
#include "watchdog/result.h"
#include "wrapper/file_descriptor.h"

namespace watchdog::monitor {

/// A command and its files. A plain value.
struct Launch {
  std::vector<std::string> words;     ///< The program, looked up in PATH, and its arguments.
  std::vector<std::string> set;       ///< NAME=VALUE, of its environment,
  std::vector<std::string> unset;     ///< NAME, not in it.
  std::array<int, 3> files{0, 1, 2};  ///< -1: closed.
  bool has_terminal = false;          ///< Then files[0] is the terminal of its session.
  sigset_t signals{};                 ///< Blocked for it.
  std::vector<int> ignored;           ///< SIGPIPE and SIGXFSZ, as far as it ignores them.
  int caller_terminal = -1;  ///< Terminal to be put back like this if the caller is killed; or -1.
  termios caller_terminal_settings{};
};

/// News of a command. A plain value.
struct CommandNews {
  enum class Kind : std::uint8_t {
    failed,   ///< it could not be run: errno
    stopped,  ///< by this signal
    exited,   ///< with this status, as of wait(2)
    lost      ///< unknown: its supervisor was killed
  };
  Kind kind = Kind::lost;
  int number = 0;
};

/// A command below a supervisor, which is a process of its own. The supervisor leads the command's
/// session, so that Ctrl-Z stops the command. It adopts the processes that the command leaves
/// behind, and passes on their output to its end. If the caller is killed, it sends SIGHUP to the
/// command and restores the terminal. Use from one thread at a time.
class Command {
 public:
  /// Starts the leader, as a fork: REQUIRES: this process has one thread. The command begins with
  /// `begin`. Errors: `exhausted`.
  [[nodiscard]] static Result<Command> prepare(const Launch& launch);
  /// A running command goes on.
  ~Command();
  Command(Command&& other) noexcept;
  Command& operator=(Command&&) = delete;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  /// From now on it runs.
  void begin() const;
  /// Readable when there may be news.
  [[nodiscard]] int news_fd() const { return channel_.get(); }
  /// REQUIRES: that is readable.
  [[nodiscard]] std::optional<CommandNews> news();
  /// To the command alone; as soon as it is there.
  void signal(int number);
  /// Lets it and its job go on after a stop.
  void resume() const;
  /// From now on the supervisor passes on what comes out of `from`, for as long as a process may
  /// write to it, also when this process has ended.
  void keep(FileDescriptor from, int to);
  /// The command, and all that it started and that still runs.
  [[nodiscard]] std::vector<Descendant> family() const;
  /// Milliseconds that it and all that it started have used.
  [[nodiscard]] std::int64_t cpu_ms();

 private:
  Command() = default;
  FileDescriptor channel_;
  FileDescriptor process_;
  pid_t supervisor_ = -1;
  pid_t pid_ = -1;
  std::int64_t cpu_ms_ = 0;  ///< The most that was seen.
  bool keeps_ = false;       ///< The supervisor outlives this process.
  std::vector<int> early_;   ///< Signals that came before it did.
};

}  // namespace watchdog::monitor
