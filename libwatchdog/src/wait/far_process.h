/// \file
/// Another process, whose end is noticed at once.
#pragma once

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "watchdog/session.h"

namespace watchdog {

/// A descriptor that is closed with its owner. Use from one thread at a time.
class OwnedFd {
 public:
  explicit OwnedFd(int fd = -1) noexcept : fd_(fd) {}
  ~OwnedFd() {
    if (fd_ >= 0) close(fd_);
  }
  OwnedFd(OwnedFd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  OwnedFd& operator=(OwnedFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  OwnedFd(const OwnedFd&) = delete;
  OwnedFd& operator=(const OwnedFd&) = delete;
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_;
};

/// Use from one thread at a time.
class FarProcess {
 public:
  FarProcess() = default;
  explicit FarProcess(ProcessFacts facts) : facts_(std::move(facts)) {
    if (facts_.pid <= 0 || facts_.pid == getpid()) return;
    fd_ = OwnedFd(static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(facts_.pid), 0)));
    // Opened first, so that what is looked at below is what was opened.
    if (is_running(facts_) == false) gone_ = true;
  }
  [[nodiscard]] bool is(std::int64_t pid, std::int64_t start_ticks) const noexcept {
    return facts_.pid == pid && facts_.start_ticks == start_ticks;
  }
  /// Readable when it is gone; -1 once that is known, or where it cannot be.
  [[nodiscard]] int fd() const noexcept { return gone_ ? -1 : fd_.get(); }
  [[nodiscard]] bool gone() {
    pollfd end{fd(), POLLIN, 0};
    if (!gone_ && end.fd >= 0 && poll(&end, 1, 0) == 1) gone_ = true;
    return gone_;
  }
  [[nodiscard]] const ProcessFacts& facts() const noexcept { return facts_; }

 private:
  ProcessFacts facts_;
  OwnedFd fd_;
  bool gone_ = false;
};

}  // namespace watchdog
