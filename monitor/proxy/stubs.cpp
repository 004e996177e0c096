#include "proxy/chronicle.h"
namespace watchdog::monitor {
struct Chronicle::State {};
Chronicle::Chronicle(Options) {}
Chronicle::~Chronicle() = default;
std::vector<Batch> Chronicle::take(Observation) {
  return {};
}
std::vector<Batch> Chronicle::beat(WallTime) {
  return {};
}
  return "left";
}
}  // namespace watchdog::monitor
