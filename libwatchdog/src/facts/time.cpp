#include "watchdog/time.h"

#include <ctime>
#include <fstream>

namespace watchdog {
namespace {

class SystemClock final : public Clock {
 public:
  Millis since_boot() const noexcept override {
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    return Millis{now.tv_sec * 1000 + now.tv_nsec / 1'000'000};
  }
  WallTime wall() const noexcept override {
    return std::chrono::time_point_cast<Millis>(std::chrono::system_clock::now());
  }
  std::string boot_id() const override {
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string id;
    file >> id;
    return id.empty() ? "unknown" : id;
  }
};

}  // namespace

const Clock& system_clock() noexcept {
  static const SystemClock clock;
  return clock;
}

}  // namespace watchdog
