#include "wrapper/pump.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <ctime>
#include <mutex>
#include <utility>
#include <vector>

namespace watchdog::monitor {
namespace {

constexpr std::size_t piece_bytes = 256 * 1'024;
/// A program that writes blocks of this size writes the next one at once. The pump waits this long
/// after such a block, and then reads many blocks together. Waking the thread for each block costs
/// more than copying it. After a shorter piece the pump does not wait: it may be the last one.
constexpr std::ptrdiff_t block_bytes = 4'096;
constexpr timespec moment{.tv_sec = 0, .tv_nsec = 50'000};
/// The capacity of a terminal; that of a pipe is known.
constexpr int terminal_bytes = 64 * 1'024;

}  // namespace

struct Pump::State {
  FileDescriptor from;
  int to;
  Tap tap;
  FileDescriptor drain{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  FileDescriptor stopped{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::atomic<bool> held{false};
  std::mutex tapping{};
  bool given_up = false;

  void run() {
    pass_all();
    if (!hand_over({})) return;
    from.reset();
    eventfd_write(stopped.get(), 1);
  }

  /// Returns false if the receiver is not interested any more.
  bool hand_over(std::string_view bytes) {
    const std::lock_guard guard(tapping);
    if (!given_up) tap(bytes);
    return !given_up;
  }

  void pass_all() {
    std::vector<char> piece(piece_bytes);
    bool draining = false;
    // Writers may go on as fast as this reads; no more than was held when it began is owed.
    std::ptrdiff_t owed = 0;
    while (!draining || owed > 0) {
      const auto count = read(from.get(), piece.data(), piece.size());
      if (count > 0) {
        const std::string_view bytes(piece.data(), static_cast<std::size_t>(count));
        if (!hand_over(bytes) || !pass(bytes)) return;
        if (draining) owed -= count;
        if (!draining && count >= block_bytes && bytes.size() < piece.size())
          nanosleep(&moment, nullptr);
        continue;
      }
      if (count < 0 && errno == EINTR) continue;
      if (count == 0 || errno != EAGAIN) return;  // a terminal that all have left says EIO
      if (draining) break;
      std::array<pollfd, 2> fds{pollfd{from.get(), POLLIN, 0}, pollfd{drain.get(), POLLIN, 0}};
      poll(fds.data(), fds.size(), -1);
      draining = fds[1].revents != 0;
      if (draining) owed = std::max(fcntl(from.get(), F_GETPIPE_SZ), terminal_bytes);
    }
    held = true;
  }

  [[nodiscard]] bool pass(std::string_view bytes) const {
    while (!bytes.empty()) {
      const auto count = write(to, bytes.data(), bytes.size());
      if (count >= 0) {
        bytes.remove_prefix(static_cast<std::size_t>(count));
      } else if (errno == EAGAIN) {
        pollfd room{to, POLLOUT, 0};
        poll(&room, 1, -1);
      } else if (errno != EINTR) {
        return false;
      }
    }
    return true;
  }
};

Pump::Pump(FileDescriptor from, int to, Tap tap)
    : state_(new State{.from = std::move(from), .to = to, .tap = std::move(tap)}) {
  const int number = state_->from.get();
  fcntl(number, F_SETFL, fcntl(number, F_GETFL) | O_NONBLOCK);
  thread_ = std::thread([state = state_] { state->run(); });
}

Pump::~Pump() {
  drain();
  if (thread_.joinable()) thread_.join();
}

void Pump::drain() {
  eventfd_write(state_->drain.get(), 1);
}

void Pump::give_up() {
  {
    const std::lock_guard guard(state_->tapping);
    state_->given_up = true;
  }
  if (thread_.joinable()) thread_.detach();
}

int Pump::stopped_fd() const {
  return state_->stopped.get();
}

bool Pump::is_held() const {
  return state_->held;
}

}  // namespace watchdog::monitor
