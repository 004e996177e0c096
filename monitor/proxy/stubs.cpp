#include "proxy/chronicle.h"
#include "proxy/client_limits.h"
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
std::string sentence_of_leaving(std::string_view, Millis, Millis, bool) {
  return "left";
}
}  // namespace watchdog::monitor
