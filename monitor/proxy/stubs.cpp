#include "proxy/chronicle.h"
#include "proxy/client_limits.h"
#include "proxy/prober.h"
namespace watchdog::monitor {
struct Prober::State {};
Prober::Prober(std::unique_ptr<State> s) : state_(std::move(s)) {}
Prober::~Prober() = default;
Result<std::unique_ptr<Prober>> Prober::start(Options, Listener) {
  return std::unique_ptr<Prober>(new Prober(std::make_unique<State>()));
}
bool Prober::tells_progress() const {
  return false;
}
void Prober::opened(RequestId) {}
void Prober::moved(RequestId, const RequestSight&) {}
void Prober::closed(RequestId) {}
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
