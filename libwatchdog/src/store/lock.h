/// \file
/// A lock between processes: flock(2) on a file of its own. The kernel serves waiting processes in
/// order.
#pragma once

#include <string>

#include "watchdog/result.h"

namespace watchdog {

/// Counts the forks this process came from; changes in a child, never in a parent.
[[nodiscard]] int fork_generation() noexcept;

/// Connections open in this process. SQLite's bookkeeping of locks is per process and does not
/// survive a fork: where a parent had one open, `inherited_connections` stays true in its children.
void count_connection(int change) noexcept;
[[nodiscard]] bool inherited_connections() noexcept;

/// An open lock file. A forked child loses its copy at once, so that a dead parent's lock does not
/// live on in its children. Use from one thread at a time.
class FileLock {
 public:
  FileLock() = default;
  /// Opens (creates, mode 0600) the file without locking it. Errors: `unavailable`.
  [[nodiscard]] static Result<FileLock> open(const std::string& path);
  /// Opens a database itself: whatever name it was found by, it is the same lock. Errors:
  /// `unavailable`.
  [[nodiscard]] static Result<FileLock> open_database(const std::string& path);
  ~FileLock();
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  /// Waits until no other process holds it.
  void lock();
  /// Returns false if another process holds it.
  [[nodiscard]] bool try_lock();
  void unlock();

  /// Writes the holder's pid into the file, for the error message of a second process.
  void write_pid();
  [[nodiscard]] long read_pid() const;

 private:
  [[nodiscard]] static Result<FileLock> open(const std::string& path, int flags);
  int fd_ = -1;
  bool database_ = false;
};

}  // namespace watchdog
