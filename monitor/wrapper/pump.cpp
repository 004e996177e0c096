// A pump has two phases, and what happens decides what it does next. While the command runs, it is
// passing; then it is draining. A draining pump that has never a quiet second stops as `held` after
// `drain_max`. It stops between two pieces, so the next reader loses nothing.
//
//              bytes      nothing yet          no writer is left   the receiver refuses
//   passing    pass them  wait                 stop: writers_left  stop: reader_left or failed
//   draining   pass them  wait a second, then  stop: writers_left  stop: reader_left or failed
//                         stop: held
#include "wrapper/pump.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <ctime>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace watchdog::monitor {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::size_t piece_bytes = 256 * 1'024;
/// A program that writes blocks of this size writes the next one at once. The pump waits this long
/// after such a block, and then reads many blocks together. Waking the thread for each block costs
/// more than copying it. After a shorter piece the pump does not wait: it may be the last one.
constexpr std::ptrdiff_t block_bytes = 4'096;
constexpr timespec moment{.tv_sec = 0, .tv_nsec = 50'000};
constexpr milliseconds quiet_time{1'000};
constexpr milliseconds drain_max{10'000};

}  // namespace

struct Pump::State {
  FileDescriptor from;
  int to;
  Tap tap;
  FileDescriptor drain{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  FileDescriptor stopped{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::mutex tapping{};
  bool given_up = false;
  PumpEnd end{};                             ///< Set before `stopped` is readable.
  std::optional<Clock::time_point> until{};  ///< Draining, at most until then; empty: passing.

  void run() {
    const auto ended = pass_all();
    if (!ended || !hand_over({})) return;
    {
      // The owner of the pump polls `stopped`, which orders nothing between threads.
      const std::lock_guard guard(tapping);
      end = *ended;
      if (end.kind != PumpEnd::Kind::held) from.reset();
    }
    eventfd_write(stopped.get(), 1);
  }

  /// Returns false if the receiver is not interested any more.
  bool hand_over(std::string_view bytes) {
    const std::lock_guard guard(tapping);
    if (!given_up) tap(bytes);
    return !given_up;
  }

  /// Nothing: this process is about to end.
  std::optional<PumpEnd> pass_all() {
    std::vector<char> piece(piece_bytes);
    while (true) {
      const auto count = read(from.get(), piece.data(), piece.size());
      if (count > 0) {
        const std::string_view bytes(piece.data(), static_cast<std::size_t>(count));
        if (!hand_over(bytes)) return std::nullopt;
        if (const auto refused = pass(bytes)) return refused;
        if (until && Clock::now() >= *until) return PumpEnd{PumpEnd::Kind::held};
        if (!until && count >= block_bytes && bytes.size() < piece.size())
          nanosleep(&moment, nullptr);
        continue;
      }
      if (count < 0 && errno == EINTR) continue;
      // A terminal that all have left says EIO.
      if (count == 0 || errno != EAGAIN) return PumpEnd{PumpEnd::Kind::writers_left};
      if (!wait_for_bytes()) return PumpEnd{PumpEnd::Kind::held};
    }
  }

  /// Returns false if a draining pump has waited long enough.
  bool wait_for_bytes() {
    std::array<pollfd, 2> fds{pollfd{from.get(), POLLIN, 0},
                              pollfd{until ? -1 : drain.get(), POLLIN, 0}};
    const int count =
        poll(fds.data(), fds.size(), until ? static_cast<int>(quiet_time.count()) : -1);
    if (fds[1].revents != 0) until = Clock::now() + drain_max;
    return count != 0;
  }

  /// Nothing: all is written.
  [[nodiscard]] std::optional<PumpEnd> pass(std::string_view bytes) const {
    while (!bytes.empty()) {
      const auto count = write(to, bytes.data(), bytes.size());
      if (count >= 0) {
        bytes.remove_prefix(static_cast<std::size_t>(count));
      } else if (errno == EAGAIN) {
        pollfd room{to, POLLOUT, 0};
        poll(&room, 1, -1);
      } else if (errno == EPIPE) {
        return PumpEnd{PumpEnd::Kind::reader_left};
      } else if (errno != EINTR) {
        return PumpEnd{PumpEnd::Kind::failed, errno};
      }
    }
    return std::nullopt;
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

PumpEnd Pump::end() const {
  const std::lock_guard guard(state_->tapping);
  return state_->end;
}

FileDescriptor Pump::extract_source() {
  const std::lock_guard guard(state_->tapping);
  return std::move(state_->from);
}

}  // namespace watchdog::monitor
