/// \file
/// The process of a tool server that speaks on its standard input and output.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "process/process_sample.h"
#include "watchdog/result.h"
#include "wrapper/file_descriptor.h"

namespace watchdog::monitor {

/// It has this process's environment and standard error, and a process group of its own. Use from
/// one thread at a time.
class ToolServer {
 public:
  /// `words`: the program, looked up in PATH, and its arguments. Errors: `not_found`, `invalid` (it
  /// may not be executed), `exhausted`.
  [[nodiscard]] static Result<ToolServer> start(const std::vector<std::string>& words);
  /// A running process gets SIGKILL.
  ~ToolServer();
  ToolServer(ToolServer&& other) noexcept;
  ToolServer& operator=(ToolServer&&) = delete;
  ToolServer(const ToolServer&) = delete;
  ToolServer& operator=(const ToolServer&) = delete;

  /// Neither blocks. The input's is -1 after it was closed.
  [[nodiscard]] int input() const { return input_.get(); }
  [[nodiscard]] int output() const { return output_.get(); }
  void close_input() { input_.reset(); }
  /// Readable when the process has ended.
  [[nodiscard]] int ended() const { return process_.get(); }

  /// To its group.
  void signal(int number) const;
  /// True if the process has ended; then its status is known.
  [[nodiscard]] bool has_ended();
  /// The convention of shells: its code, or 128 + the signal. REQUIRES: has_ended().
  [[nodiscard]] int status() const;
  /// `exited with code 1`. REQUIRES: has_ended().
  [[nodiscard]] std::string end_words() const;
  /// CPU and disks of it and its descendants so far; nothing: it is gone.
  [[nodiscard]] std::optional<ProcessUse> use() const;

 private:
  ToolServer() = default;
  FileDescriptor input_;
  FileDescriptor output_;
  FileDescriptor process_;
  pid_t pid_ = -1;
  ServerProcess named_{};
  std::optional<int> wait_status_{};
};

}  // namespace watchdog::monitor
