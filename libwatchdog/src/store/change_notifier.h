/// \file
/// Notifies a process when another one appended to the same store.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "watchdog/report.h"
#include "watchdog/result.h"

namespace watchdog {

/// A datagram socket in the directory `<database>.bells`, which is readable after a change. A
/// notification is a hint and may get lost, so waiters also look now and then. Use from one thread
/// at a time.
class ChangeListener {
 public:
  /// Receives a notification for everything that is appended. Errors: `unavailable`.
  [[nodiscard]] static Result<ChangeListener> for_all(const std::filesystem::path& database);
  /// Receives one only when another process addresses the session (a cancel).
  [[nodiscard]] static Result<ChangeListener> for_session(const std::filesystem::path& database,
                                                          SessionKey session);
  ChangeListener() = default;
  ~ChangeListener();
  ChangeListener(ChangeListener&& other) noexcept;
  ChangeListener& operator=(ChangeListener&& other) noexcept;
  ChangeListener(const ChangeListener&) = delete;
  ChangeListener& operator=(const ChangeListener&) = delete;

  /// Readable after a notification; -1 for a default-constructed listener.
  [[nodiscard]] int fd() const noexcept { return fd_; }
  /// Drops the notifications so far.
  void clear() const noexcept;

 private:
  [[nodiscard]] static Result<ChangeListener> bind_socket(const std::filesystem::path& database,
                                                          const std::string& prefix);
  int fd_ = -1;
  std::filesystem::path socket_;
  int pid_ = 0;  ///< A forked child must not remove its parent's socket.
};

/// Notifies the listeners of a store. Use from one thread at a time.
class ChangeNotifier {
 public:
  explicit ChangeNotifier(std::filesystem::path database);
  ~ChangeNotifier();
  ChangeNotifier(const ChangeNotifier&) = delete;
  ChangeNotifier& operator=(const ChangeNotifier&) = delete;

  /// Notifies the listeners to everything, and those of the given sessions.
  void notify(const std::vector<SessionKey>& addressed);

 private:
  void look_again();

  std::filesystem::path directory_;
  int fd_ = -1;
  std::int64_t seen_change_ns_ = -1;
  std::vector<std::string> names_;
};

}  // namespace watchdog
