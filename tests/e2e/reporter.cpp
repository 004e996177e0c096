// An agent for tests: reports state changes as fast as it can, and says on standard output which of
// them are durable. Whatever it said must be there after any accident.
#include <cstdlib>
#include <iostream>
#include <string>

#include "watchdog/tracker.h"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string session = argv[2];
  const int count = argc > 3 ? std::atoi(argv[3]) : 1'000'000;
  watchdog::ProgressTracker tracker(
      {.session = session,
       .spec = {.policy = {.heartbeat_interval = watchdog::Millis{500}}},
       .database = argv[1]});
  for (int i = 1; i <= count; ++i) {
    tracker.heartbeat({.iteration = i, .phase = "work"});
    tracker.state_change("n" + std::to_string(i), R"({"some":"data"})");
    if (!tracker.flush()) continue;
    std::cout << i << std::endl;
  }
  return tracker.complete() ? 0 : 1;
}
