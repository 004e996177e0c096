// The file is replaced as a whole, so the one that is locked may be the former one by then. A lock
// counts only on the file that has the name.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <mutex>
#include <utility>

#include "files/durable_file.h"
#include "watchdog/tool_outcome.h"

namespace watchdog {
namespace {

/// Taken out of the file at once, so that a call does not wait for the disk.
constexpr Epoch range = 1U << 16U;
/// Numbers stay exact in JSON.
constexpr Epoch epoch_max = Epoch{1} << 53U;

class File {
 public:
  explicit File(const std::filesystem::path& path)
      : fd_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {}
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int fd() const noexcept { return fd_; }

  /// Waits until no other process has it. False: errno says why.
  [[nodiscard]] bool lock() const noexcept {
    while (flock(fd_, LOCK_EX) != 0)
      if (errno != EINTR) return false;
    return true;
  }
  /// True if the path leads to this file.
  [[nodiscard]] bool is_at(const std::filesystem::path& path) const noexcept {
    struct stat own {};
    struct stat there {};
    return fstat(fd_, &own) == 0 && lstat(path.c_str(), &there) == 0 &&
           own.st_dev == there.st_dev && own.st_ino == there.st_ino;
  }

 private:
  int fd_;
};

Error failed(const std::filesystem::path& path, const char* what) {
  return {ErrorCode::unavailable,
          path.string() + " cannot be " + what + ": " + std::strerror(errno)};
}

}  // namespace

struct EpochSource::State {
  std::mutex mutex;
  std::filesystem::path file;  ///< Empty: none.
  Epoch next = 1;
  Epoch end = epoch_max;  ///< One behind the last that may be given out.

  /// Takes the next range out of the file. REQUIRES: mutex held.
  Result<void> refill() {
    constexpr int tries_max = 1'000;
    for (int tries = 0; tries < tries_max; ++tries) {
      const File opened(file);
      if (opened.fd() < 0) return failed(file, "opened");
      struct stat facts {};
      if (fstat(opened.fd(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
        return Error{ErrorCode::invalid, file.string() + " is not a regular file"};
      }
      if (!opened.lock()) return failed(file, "locked");
      if (opened.is_at(file)) return refill_from(opened);
    }
    return Error{ErrorCode::unavailable, file.string() + " changes all the time"};
  }

  /// REQUIRES: the file is locked, and at its path.
  Result<void> refill_from(const File& opened) {
    char text[32] = {};
    const auto got = pread(opened.fd(), text, sizeof text - 1, 0);
    if (got < 0) return failed(file, "read");
    Epoch given = 0;
    if (got > 0) {
      const auto [rest, error] = std::from_chars(text, text + got, given);
      if (error != std::errc{} || (*rest != '\n' && *rest != '\0') || given > epoch_max - range) {
        return Error{ErrorCode::invalid, file.string() +
                                             " does not hold the highest number of a "
                                             "tool call that was given out"};
      }
    }
    errno = put_file(file, std::to_string(given + range) + "\n");
    if (errno != 0) return failed(file, "written");
    next = given + 1;
    end = given + range + 1;
    return {};
  }
};

EpochSource::EpochSource() : state_(std::make_unique<State>()) {}
EpochSource::EpochSource(std::unique_ptr<State> state) : state_(std::move(state)) {}
EpochSource::~EpochSource() = default;
EpochSource::EpochSource(EpochSource&&) noexcept = default;
EpochSource& EpochSource::operator=(EpochSource&&) noexcept = default;

Result<EpochSource> EpochSource::open(const std::filesystem::path& file) {
  auto state = std::make_unique<State>();
  state->file = file;
  if (auto ready = state->refill(); !ready) return ready.error();
  return EpochSource(std::move(state));
}

Result<Epoch> EpochSource::next() {
  const std::lock_guard guard(state_->mutex);
  if (state_->next >= state_->end) {
    if (state_->file.empty()) {
      return Error{ErrorCode::exhausted, "all numbers of tool calls are given out"};
    }
    if (auto ready = state_->refill(); !ready) return ready.error();
  }
  return state_->next++;
}

}  // namespace watchdog
