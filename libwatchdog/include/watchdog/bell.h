/// \file
/// How a process learns at once that another one appended to the same store.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "watchdog/report.h"
#include "watchdog/result.h"

namespace watchdog {

/// A doorbell: a datagram socket in the directory `<database>.bells`. Ringing is a hint and may get
/// lost; whoever waits looks by itself now and then. Use from one thread at a time.
class Bell {
 public:
  /// Rings for everything that is appended. Errors: `unavailable`.
  [[nodiscard]] static Result<Bell> for_all(const std::filesystem::path& database);
  /// Rings only when somebody else addresses the session (a cancel).
  [[nodiscard]] static Result<Bell> for_session(const std::filesystem::path& database,
                                                SessionKey session);
  Bell() = default;
  ~Bell();
  Bell(Bell&& other) noexcept;
  Bell& operator=(Bell&& other) noexcept;
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  /// Readable when it rang; -1 for a bell that was never hung.
  [[nodiscard]] int fd() const noexcept { return fd_; }
  /// Forgets the rings so far.
  void hush() const noexcept;

 private:
  [[nodiscard]] static Result<Bell> hang(const std::filesystem::path& database,
                                         const std::string& prefix);
  int fd_ = -1;
  std::filesystem::path socket_;
  int pid_ = 0;  ///< A forked child must not take down its parent's bell.
};

/// Rings the bells of a store. Use from one thread at a time.
class BellRope {
 public:
  explicit BellRope(std::filesystem::path database);
  ~BellRope();
  BellRope(const BellRope&) = delete;
  BellRope& operator=(const BellRope&) = delete;

  /// Everybody's, and those of the sessions given.
  void ring(const std::vector<SessionKey>& addressed);

 private:
  void look_again();

  std::filesystem::path directory_;
  int fd_ = -1;
  std::int64_t seen_change_ns_ = -1;
  std::vector<std::string> names_;
};

}  // namespace watchdog
