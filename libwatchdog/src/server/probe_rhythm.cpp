#include <algorithm>

#include "server/server_evidence.h"

namespace watchdog {
namespace {

/// Of `look_every`: how rare looks become while nothing changes, and by how much with each.
constexpr double rarest = 7.5, rarer = 1.5;
/// A look may take a tenth of the time.
constexpr int pause_factor = 10;

Millis times(Millis time, double factor) {
  return Millis{static_cast<std::int64_t>(static_cast<double>(time.count()) * factor)};
}

}  // namespace

void ProbeRhythm::looked(const Look& look) {
  pause_ = (look.took - look.in_vain) * pause_factor;
  const bool stays = look.changed || look.unanswered;
  interval_ = stays ? look_every_ : std::min(times(interval_, rarer), times(look_every_, rarest));
  if (!look.unanswered) ask_at_ = {};
  if (look.unanswered && look.asked) ask_at_ = look.ended + times(look_every_, rarest);
}

}  // namespace watchdog
