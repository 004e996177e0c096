#include "cli/browser.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "cli/endpoint.h"

namespace watchdog::monitor {

void open_in_browser(std::string url) {
  if (environment("DISPLAY").empty() && environment("WAYLAND_DISPLAY").empty()) return;
  std::string program = "xdg-open";
  char* const words[] = {program.data(), url.data(), nullptr};
  // Its words must not mix with the data on standard output.
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  pid_t helper = 0;
  const int failed = posix_spawnp(&helper, program.c_str(), &files, nullptr, words, environ);
  posix_spawn_file_actions_destroy(&files);
  if (failed != 0) return;
  // The browser's helper may run as long as the browser. This thread collects its exit status and
  // uses nothing else, so the end of the program may cut it off.
  std::thread([helper] {
    int status = 0;
    waitpid(helper, &status, 0);
  }).detach();
}

void open_for_person(const std::string& url) {
  if (isatty(STDOUT_FILENO) == 1 && environment("CI").empty()) open_in_browser(url);
}

}  // namespace watchdog::monitor
