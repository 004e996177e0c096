/// \file
/// A session as a line of text. Each letter is one event; one second passes before each.
///
///   h loop heartbeat of the next iteration    s sidecar heartbeat      b bare heartbeat
///   S state change     c tool call    r its result    e its failure    m message
///   w wait             i idle         u user input    E end (completed)  ! start
///   x its process is gone             + ten seconds pass               B budget
///   t a turn begins    T it ends    a somebody wants it to stop    k a tool call of it
///   p the call says that it got further    l nobody waits for it any longer
///   R the model's server reads its prompt further    q queues it    H hangs    O it is over
///   Q is quiet         y heartbeat of who relays the request
///   (blank) nothing
#pragma once

#include <string_view>
#include <vector>

#include "watchdog/health.h"

namespace watchdog::test {

inline const Instant scenario_start{Millis{1'000'000}};

/// The events, numbered from 1.
[[nodiscard]] std::vector<Event> events_of(std::string_view letters);

/// The case after the events, and what changed on the way.
struct Replayed {
  Case judged;
  std::vector<Transition> changes;
  Instant now{};
};
[[nodiscard]] Replayed replay(std::string_view letters, const Policy& policy = {});
[[nodiscard]] Replayed replay(const std::vector<Event>& events, const Policy& policy = {});

/// The health kinds a session went through, joined by blanks.
[[nodiscard]] std::string path_of(const Replayed& replayed);

/// Seed of random tests: from WATCHDOG_SEED, else fresh; printed once.
[[nodiscard]] unsigned random_seed();
/// How often random tests repeat: `whole` if WATCHDOG_FULL is set, else one `share`-th of it, and
/// under a sanitizer, where all is slower, a fifth of that. At least once.
[[nodiscard]] int repetitions(int whole, int share = 10);

}  // namespace watchdog::test
