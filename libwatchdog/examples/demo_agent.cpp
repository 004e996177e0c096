// Plays one of five agents for `watchdog-monitor demo`, and shows how an agent reports: all it
// needs is a ProgressTracker. What a model would do is scripted here.
#include <signal.h>
#include <sys/prctl.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <thread>

#include "watchdog/tracker.h"

namespace {

using namespace std::chrono_literals;
using watchdog::Advice;
using watchdog::ProgressTracker;

/// Works for so long, listening for a cancel. False once somebody asked for one.
bool busy(ProgressTracker& tracker, std::chrono::milliseconds time) {
  for (; time > 0ms; time -= 100ms) {
    if (tracker.directive().cancel) return false;
    std::this_thread::sleep_for(100ms);
  }
  return true;
}

/// Reflects, acts, checks; a step every other second.
void quick(ProgressTracker& tracker) {
  for (int iteration = 1;; ++iteration) {
    tracker.heartbeat({.iteration = iteration, .phase = "reflection"});
    if (!busy(tracker, 1s)) return;
    tracker.state_change("reflection_complete", R"({"next_action":"read_file"})");
    tracker.heartbeat({.iteration = iteration, .phase = "execution"});
    const auto file = R"({"path":"src/part-)" + std::to_string(iteration) + R"(.cpp"})";
    tracker.tool_call("read_file", file);
    if (!busy(tracker, 1s)) return;
    tracker.tool_result("read_file", "// part " + std::to_string(iteration));
  }
}

/// One reflection takes half a minute, as on a large model on a small machine.
void thinker(ProgressTracker& tracker) {
  tracker.state_change("plan_generated", R"({"steps":12})");
  for (int iteration = 1;; ++iteration) {
    tracker.heartbeat({.iteration = iteration, .phase = "reflection"});
    if (!busy(tracker, 30s)) return;
    tracker.state_change("reflection_complete", R"({"confidence":0.8})");
  }
}

/// Goes round and round and gets nowhere.
void spinner(ProgressTracker& tracker) {
  tracker.state_change("plan_generated", R"({"steps":3})");
  for (int iteration = 1;; ++iteration) {
    tracker.heartbeat({.iteration = iteration, .phase = "reflection"});
    if (!busy(tracker, 2s)) return;
  }
}

/// Wants a person's consent before it goes on.
void approval(ProgressTracker& tracker) {
  tracker.heartbeat({.iteration = 1, .phase = "execution"});
  tracker.state_change("diff_ready", R"({"files":2})");
  tracker.wait_for("approval");
  while (busy(tracker, 1s)) {
  }
}

}  // namespace

int main(int argc, char** argv) {
  // `doomed` works like `quick`; whoever started it kills it.
  const std::map<std::string, std::function<void(ProgressTracker&)>> roles{{"quick", quick},
                                                                           {"thinker", thinker},
                                                                           {"spinner", spinner},
                                                                           {"approval", approval},
                                                                           {"doomed", quick}};
  if (argc != 4 || std::strcmp(argv[2], "--db") != 0 || !roles.contains(argv[1])) {
    std::cerr << "usage: watchdog-demo-agent quick|thinker|spinner|approval|doomed --db FILE\n";
    return 2;
  }
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // a demo that is killed leaves no agents behind

  const std::string role = argv[1];
  ProgressTracker tracker({.session = role,
                           .spec = {.agent = "demo-agent",
                                    .task = "tidy the repository",
                                    .policy = {.heartbeat_interval = watchdog::Millis{2'000}}},
                           .database = argv[3]});
  roles.at(role)(tracker);
  if (const auto ended = tracker.cancelled("user"); !ended) {
    std::cerr << ended.error().message << '\n';
    return 1;
  }
  return 0;
}
