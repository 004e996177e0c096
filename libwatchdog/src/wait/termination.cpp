#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>

#include "wait/termination_watch.h"
#include "watchdog/wait.h"

namespace watchdog {
namespace {

struct Caught {
  int number;
  struct sigaction before;
};

// State of the handler: lock-free, or written only while no handler is set.
std::array<Caught, 3> caught{{{SIGTERM, {}}, {SIGINT, {}}, {SIGHUP, {}}}};
std::atomic<int> waits{0};
std::atomic<int> came{0};
std::atomic<int> wake_fd{-1};
static_assert(std::atomic<int>::is_always_lock_free);

std::mutex mutex;  ///< Guards the number of objects.
int objects = 0;

/// Async-signal-safe.
void put_back() {
  for (const auto& one : caught) sigaction(one.number, &one.before, nullptr);
}

void on_signal(int number) {
  const int kept = errno;
  if (waits.load() == 0 || came.exchange(number) != 0) {
    put_back();
    raise(number);  // delivered when this handler returns
  } else {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = write(wake_fd.load(), &one, sizeof one);
  }
  errno = kept;
}

}  // namespace

Termination::Termination() {
  const std::lock_guard guard(mutex);
  if (objects++ > 0) return;
  came = 0;
  wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  // All are known before the first handler may ask for them.
  for (auto& one : caught) sigaction(one.number, nullptr, &one.before);
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (const auto& one : caught) {
    if (one.before.sa_handler != SIG_IGN) sigaction(one.number, &action, nullptr);
  }
}

Termination::~Termination() {
  const std::lock_guard guard(mutex);
  if (--objects > 0) return;
  put_back();
  close(wake_fd.exchange(-1));
}

TerminationWatch::TerminationWatch() {
  ++waits;
  fd_ = wake_fd;
}

TerminationWatch::~TerminationWatch() {
  if (counted_) --waits;
}

int TerminationWatch::signal() noexcept {
  return came;
}

void TerminationWatch::reraise() {
  const int number = came;
  counted_ = false;
  if (--waits > 0) return;
  put_back();
  raise(number);
}

}  // namespace watchdog
