#include "store/lock.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

namespace watchdog {
namespace {

/// Every open lock file of this process, so that a forked child can close its copies. Never
/// destroyed: a fork may happen while the program ends.
struct OpenLocks {
  std::mutex mutex;
  std::vector<int> fds;
  /// Of databases, given up while connections were open. Closing any descriptor of a file drops the
  /// locks that SQLite holds on it for the whole process.
  std::vector<int> given_up;
  std::atomic<int> generation{0};
  std::atomic<int> connections{0};
  std::atomic<bool> inherited{false};
};

OpenLocks& open_locks() {
  static OpenLocks& locks = *[] {
    auto* made = new OpenLocks;  // NOLINT: lives as long as the process
    pthread_atfork([] { open_locks().mutex.lock(); }, [] { open_locks().mutex.unlock(); },
                   [] {
                     auto& mine = open_locks();
                     for (const int fd : mine.fds) close(fd);
                     for (const int fd : mine.given_up) close(fd);
                     mine.fds.clear();
                     mine.given_up.clear();
                     ++mine.generation;
                     if (mine.connections > 0) mine.inherited = true;
                     mine.mutex.unlock();
                   });
    return made;
  }();
  return locks;
}

}  // namespace

int fork_generation() noexcept {
  return open_locks().generation.load(std::memory_order_relaxed);
}

void count_connection(int change) noexcept {
  auto& locks = open_locks();
  const std::lock_guard guard(locks.mutex);
  locks.connections += change;
  if (locks.connections > 0) return;
  for (const int fd : locks.given_up) close(fd);
  locks.given_up.clear();
}
bool inherited_connections() noexcept {
  return open_locks().inherited;
}

Result<FileLock> FileLock::open(const std::string& path) {
  return open(path, O_RDWR | O_CREAT);
}

Result<FileLock> FileLock::open_database(const std::string& path) {
  auto lock = open(path, O_RDONLY);
  if (lock) lock->database_ = true;
  return lock;
}

Result<FileLock> FileLock::open(const std::string& path, int flags) {
  auto& locks = open_locks();
  const std::lock_guard guard(locks.mutex);
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd < 0) {
    return Error{ErrorCode::unavailable, "lock file " + path + ": " + std::strerror(errno)};
  }
  locks.fds.push_back(fd);
  FileLock lock;
  lock.fd_ = fd;
  return lock;
}

FileLock::~FileLock() {
  if (fd_ < 0) return;
  auto& locks = open_locks();
  const std::lock_guard guard(locks.mutex);
  // In a forked child the number may mean another file by now: close only what is still ours.
  const auto mine = std::find(locks.fds.begin(), locks.fds.end(), fd_);
  if (mine == locks.fds.end()) return;
  locks.fds.erase(mine);
  if (database_ && locks.connections > 0) {
    flock(fd_, LOCK_UN);
    locks.given_up.push_back(fd_);
  } else {
    close(fd_);
  }
}

FileLock::FileLock(FileLock&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), database_(other.database_) {}
FileLock& FileLock::operator=(FileLock&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(database_, other.database_);
  return *this;
}

void FileLock::lock() {
  while (flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
  }
}

bool FileLock::try_lock() {
  return flock(fd_, LOCK_EX | LOCK_NB) == 0;
}
void FileLock::unlock() {
  flock(fd_, LOCK_UN);
}

void FileLock::write_pid() {
  const auto text = std::to_string(getpid()) + "\n";
  if (ftruncate(fd_, 0) == 0 && pwrite(fd_, text.data(), text.size(), 0) < 0) {
    // Only the error message for the second process then lacks the pid.
  }
}

long FileLock::read_pid() const {
  std::array<char, 32> text{};
  return pread(fd_, text.data(), text.size() - 1, 0) > 0 ? std::strtol(text.data(), nullptr, 10)
                                                         : 0;
}

}  // namespace watchdog
