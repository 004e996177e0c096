// An agent for tests that does what its words say, one after the other, each durable before the
// next: scripted_agent DATABASE SESSION WORD…
//   beat            a heartbeat of its loop         state:TYPE      a state change
//   call:TOOL:ARGS  a call and its result           again:TOOL      the same call, failing alike
//   go:FIFO         waits until somebody opens it   say:TEXT        a line on standard output
//   complete, fail:ERROR, incomplete:REASON, cancelled
//   crash           is killed                       stay            goes on, and says nothing
// Or `scripted_agent wait DATABASE SESSION [GOAL]`: waits, reports on SIGTERM, and says what came.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <iostream>
#include <string>

#include "watchdog/tracker.h"
#include "watchdog/wait.h"

namespace {

int wait_for(const std::string& database, const std::string& session, const std::string& goal) {
  const watchdog::Termination on_termination;
  bool reported = false;
  const auto result = watchdog::wait({.session = session,
                                      .database = database,
                                      .until = *watchdog::awaited_from(goal),
                                      .seen = [&](const watchdog::Observed*) {
                                        if (!reported) std::cout << "waiting" << std::endl;
                                        reported = true;
                                      }});
  std::cout << (result ? "came" : result.error().text()) << std::endl;
  return result ? 0 : 1;
}

/// False if there is nothing more to do.
bool act(watchdog::ProgressTracker& tracker, const std::string& word, const std::string& value) {
  static int iteration = 0;
  if (word == "beat") tracker.heartbeat({.iteration = ++iteration, .phase = "work"});
  if (word == "state") tracker.state_change(value);
  if (word == "call") {
    const auto colon = value.find(':');
    tracker.tool_call(value.substr(0, colon), value.substr(colon + 1));
    tracker.tool_result(value.substr(0, colon), "done with " + value.substr(colon + 1));
  }
  if (word == "again") {
    tracker.tool_call(value, R"({"path":"a.txt"})");
    tracker.tool_error(value, "there is no file a.txt, and there never was one");
  }
  if (word == "go") close(open(value.c_str(), O_RDONLY | O_CLOEXEC));
  if (word == "say") std::cout << value << std::endl;
  if (word == "complete") return !tracker.complete();
  if (word == "fail") return !tracker.fail(value);
  if (word == "incomplete") return !tracker.incomplete(value);
  if (word == "cancelled") return !tracker.cancelled("user");
  if (!tracker.flush()) return false;
  if (word == "crash") std::raise(SIGKILL);
  while (word == "stay") pause();
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  if (argv[1] == std::string("wait"))
    return wait_for(argv[2], argv[3], argc > 4 ? argv[4] : "completed");
  watchdog::ProgressTracker tracker(
      {.session = argv[2],
       .spec = {.agent = "scripted", .policy = {.heartbeat_interval = watchdog::Millis{100}}},
       .database = argv[1],
       .sidecar = false});
  for (int at = 3; at < argc; ++at) {
    const std::string words = argv[at];
    const auto colon = words.find(':');
    const auto value = colon == std::string::npos ? "" : words.substr(colon + 1);
    if (!act(tracker, words.substr(0, colon), value)) break;
  }
}
