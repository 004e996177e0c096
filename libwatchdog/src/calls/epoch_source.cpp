#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <mutex>
#include <utility>

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
    const File opened(file);
    if (opened.fd() < 0) return failed(file, "opened");
    struct stat facts {};
    if (fstat(opened.fd(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
      return Error{ErrorCode::invalid, file.string() + " is not a regular file"};
    }
    while (flock(opened.fd(), LOCK_EX) != 0) {
      if (errno != EINTR) return failed(file, "locked");
    }
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
    const auto written = std::to_string(given + range) + "\n";
    if (pwrite(opened.fd(), written.data(), written.size(), 0) !=
            static_cast<ssize_t>(written.size()) ||
        fsync(opened.fd()) != 0) {
      return failed(file, "written");
    }
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
