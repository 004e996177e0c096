#include "cli/periodic.h"

#include <condition_variable>
#include <exception>
#include <mutex>
#include <utility>

namespace watchdog::monitor {
namespace {

void run(const std::stop_token& stop, Millis every, const std::function<void()>& look) {
  std::mutex mutex;
  std::condition_variable_any never_notified;
  std::unique_lock guard(mutex);
  while (true) {
    never_notified.wait_for(guard, stop, every, [] { return false; });
    if (stop.stop_requested()) return;
    try {
      look();
    } catch (const std::exception&) {
      // No memory, or no thread: later.
    }
  }
}

}  // namespace

Periodic::Periodic(Millis every, std::function<void()> look)
    : thread_([every, look = std::move(look)](const std::stop_token& stop) {
        run(stop, every, look);
      }) {}

}  // namespace watchdog::monitor
