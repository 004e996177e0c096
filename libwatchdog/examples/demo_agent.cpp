// Plays one of seven agents for `watchdog-monitor demo`, and shows how an agent reports: all it
// needs is a ProgressTracker. The model's part is scripted here. Each role is a function that runs
// until `busy` returns false, which happens once somebody cancels the session. `main` then ends the
// session as cancelled. The kernel ends an agent whose starter dies.
#include <signal.h>
#include <sys/prctl.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <thread>

#include "usage.h"
#include "watchdog/terminal_text.h"
#include "watchdog/tracker.h"

namespace {

using namespace std::chrono_literals;
using watchdog::Advice;
using watchdog::ProgressTracker;

/// Works for this time and checks for a cancel. Returns false once one was requested.
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
    tracker.state_change("reflection_complete",
                         R"({"next_action":"step )" + std::to_string(iteration) + R"( of 12"})");
  }
}

/// Repeats its loop without progress.
void spinner(ProgressTracker& tracker) {
  tracker.state_change("plan_generated", R"({"steps":3})");
  for (int iteration = 1;; ++iteration) {
    tracker.heartbeat({.iteration = iteration, .phase = "reflection"});
    if (!busy(tracker, 2s)) return;
  }
}

/// Busy without progress: the same file, the same test, nearly the same fix, all over
/// again.
void looper(ProgressTracker& tracker) {
  // Returns true while no cancel was requested.
  const auto call = [&](const char* tool, const std::string& arguments, const char* result,
                        const char* error) {
    tracker.tool_call(tool, arguments);
    if (!busy(tracker, 700ms)) return false;
    if (error != nullptr) {
      tracker.tool_error(tool, error);
    } else {
      tracker.tool_result(tool, result);
    }
    return true;
  };
  for (int iteration = 1;; ++iteration) {
    tracker.heartbeat({.iteration = iteration, .phase = "execution"});
    const auto patch = R"({"path":"src/parser.cpp","patch":"- int parse(const char* text);\n)"
                       R"(+ int parse(std::string_view text);  // attempt )" +
                       std::to_string(iteration) + R"(: this time with a view instead"})";
    if (!call("read_file", R"({"path":"src/parser.cpp"})", "int parse(const char* text);",
              nullptr) ||
        !call("apply_patch", patch, nullptr, "hunk 1 of 1 failed at line 42: context differs") ||
        !call("run_tests", "{}", "2 of 40 tests failed: parses_empty_text, parses_comment",
              nullptr)) {
      return;
    }
  }
}

/// Works for some seconds; then its loop freezes, and only its heartbeat thread lives on.
void frozen(ProgressTracker& tracker) {
  for (int iteration = 1; iteration <= 8; ++iteration) {
    tracker.heartbeat({.iteration = iteration, .phase = "execution"});
    if (!busy(tracker, 1s)) return;
    tracker.state_change("file_done", R"({"file":)" + std::to_string(iteration) + "}");
  }
  while (busy(tracker, 1s)) {
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

/// The demo does not want to wait half an hour: its frozen agent is known to be quick.
watchdog::PolicyPatch policy_of(const std::string& role) {
  watchdog::PolicyPatch policy{.heartbeat_interval = 2s};
  if (role == "frozen") {
    policy.usual_interval = 1s;
    policy.slow_min = 3s;
    policy.suspect_min = 8s;
  }
  return policy;
}

}  // namespace

int main(int argc, char** argv) {
  struct Role {
    std::function<void(ProgressTracker&)> play;
    const char* task;
  };
  // `doomed` works like `quick`; its starter kills it.
  const std::map<std::string, Role> roles{{"quick", {quick, "Document the library's headers"}},
                                          {"thinker", {thinker, "Design the new storage layer"}},
                                          {"spinner", {spinner, "Fix the failing build"}},
                                          {"looper", {looper, "Parse empty files as well"}},
                                          {"frozen", {frozen, "Translate the manual"}},
                                          {"approval", {approval, "Deploy the web site"}},
                                          {"doomed", {quick, "Rename the settings module"}}};
  constexpr auto usage =
      "Usage: watchdog-demo-agent quick|thinker|spinner|looper|frozen|approval|doomed --db FILE\n"
      "Plays one of seven agents and reports to a database. `watchdog-monitor demo` starts it.\n";
  if (const auto done = answer_about("watchdog-demo-agent", usage, argc, argv, 3)) return *done;
  if (argc != 4 || std::strcmp(argv[2], "--db") != 0 || !roles.contains(argv[1])) {
    std::cerr << usage;
    return 2;
  }
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // a demo that is killed leaves no agents behind

  const std::string role = argv[1];
  const auto& [play, task] = roles.at(role);
  ProgressTracker tracker({.session = role,
                           .spec = {.agent = "demo-agent", .task = task, .policy = policy_of(role)},
                           .database = argv[3]});
  play(tracker);
  if (const auto ended = tracker.cancelled("user"); !ended) {
    std::cerr << watchdog::terminal_text(ended.error().message) << '\n';
    return 1;
  }
  return 0;
}
