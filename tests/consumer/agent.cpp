// An agent whose main loop is the library's, outside this project.

#include <watchdog/model_client.h>
#include <watchdog/run.h>
#include <watchdog/settings.h>
#include <watchdog/subprocess.h>

#include <iostream>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  if (!watchdog::Configuration::load({.file = "", .environment = {}})) return 1;
  if (watchdog::ModelClient::to({.base_url = "nowhere"})) return 1;
  if (const auto end = watchdog::run_process({.argv = {"true"}}); !end || end->status() != 0) {
    std::cout << (end ? "a program failed" : end.error().message) << "\n";
    return 1;
  }
  watchdog::ProgressTracker tracker({.session = "agent", .database = argv[1]});
  watchdog::Run run(
      {.tracker = tracker,
       .callbacks = {
           .reflect =
               [](watchdog::Iteration& now) {
                 return watchdog::Reflection{.assessment = now.number() == 2
                                                               ? watchdog::Assessment::task_complete
                                                               : watchdog::Assessment::going_on};
               },
           .act = [](watchdog::Iteration&,
                     const watchdog::Reflection&) { return watchdog::Act{.tool = "look"}; }}});
  const auto end = run.go();
  std::cout << "ok: " << end.outcome.reason << "\n";
}
