// An agent outside this project: knows the installed package and nothing else.

#include <watchdog/tracker.h>
#include <watchdog/wait.h>

#include <iostream>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "Usage: consumer DATABASE\n";
    return 2;
  }
  {
    watchdog::ProgressTracker tracker({.session = "s", .database = argv[1]});
    tracker.heartbeat({.iteration = 1});
    tracker.tool_call("read_file", R"({"path":"a.txt"})", "1");
    tracker.tool_result("read_file", "the text", "1");
    tracker.state_change("file_read");
    if (!tracker.complete()) return 1;
  }
  const auto ended = watchdog::wait({.session = "s", .database = argv[1], .must_exist = true});
  if (!ended) {
    std::cout << ended.error().text() << "\n";
    return 1;
  }
  if (ended->judged.history.lifecycle != watchdog::Lifecycle::completed) return 1;
  std::cout << "ok: " << ended->judged.history.state_changes << " state changes\n";
}
