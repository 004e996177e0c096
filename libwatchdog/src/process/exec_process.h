/// \file
/// A running `watchdog-exec` with the program it supervises, as seen by who started it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>

#include "process/descriptor.h"
#include "process/exec_message.h"
#include "watchdog/result.h"
#include "watchdog/subprocess.h"

namespace watchdog {

namespace detail {
/// As the installed `exec_place.h` declares it, which exists in no build.
bool offer_exec(std::filesystem::path header, const char* relative) noexcept;
}  // namespace detail

/// Ended with its object, at the latest.
class ExecProcess {
 public:
  /// The specification as it is run: refused where no program could be run by it. Environment and
  /// mark as documented there.
  [[nodiscard]] static Result<ExecProcess> start(const SpawnSpec& spec, const std::string& mark);

  ExecProcess(ExecProcess&&) = default;
  ExecProcess& operator=(ExecProcess&&) = delete;
  ExecProcess(const ExecProcess&) = delete;
  ExecProcess& operator=(const ExecProcess&) = delete;
  ~ExecProcess();

  void order(ExecMessage::Kind kind) const;
  /// The next message. Nothing: none yet, or (`gone`) it has ended.
  [[nodiscard]] std::optional<ExecMessage> message();
  [[nodiscard]] bool gone() const { return gone_; }
  /// Kills the helper alone. That does not end its program.
  void kill() const;
  /// Waits until it has ended. Its exit code, if it exited.
  std::optional<int> reap();

  /// Of the helper: the program and all that it started are below it.
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] int channel() const { return channel_.get(); }
  /// Read ends, which never block.
  [[nodiscard]] const Descriptor& out() const { return out_; }
  [[nodiscard]] const Descriptor& err() const { return err_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  ExecProcess() = default;

  std::string path_;
  pid_t pid_ = -1;
  Descriptor process_;
  Descriptor channel_;
  Descriptor out_;
  Descriptor err_;
  bool gone_ = false;
};

}  // namespace watchdog
