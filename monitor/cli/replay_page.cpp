#include "cli/replay_page.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <thread>

#include "api/target.h"
#include "cli/endpoint.h"
#include "cli/monitor.h"
#include "http/event_loop.h"
#include "terminal/output.h"

namespace watchdog::monitor {
namespace {

/// Ended sessions are kept: a recording may be years old.
constexpr double kept_days = 36'500;

/// Opens the URL as the desktop does. Returns the process; 0: there is no display or no program.
pid_t open_in_browser(std::string url) {
  if (environment("DISPLAY").empty() && environment("WAYLAND_DISPLAY").empty()) return 0;
  std::string program = "xdg-open";
  char* const words[] = {program.data(), url.data(), nullptr};
  // Its words must not mix with the data on standard output.
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  pid_t process = 0;
  const int failed = posix_spawnp(&process, program.c_str(), &files, nullptr, words, environ);
  posix_spawn_file_actions_destroy(&files);
  return failed == 0 ? process : 0;
}

}  // namespace

int show_replayed(const std::filesystem::path& database, const std::vector<std::string>& sessions,
                  const PolicyPatch& policy) {
  Settings settings;
  settings.policy = policy;
  settings.monitor.db = database;
  settings.monitor.port = 0;
  settings.monitor.retention_days = kept_days;
  settings.checks.enabled = false;
  boost::asio::io_context context(1);
  auto monitor = Monitor::start(context, settings);
  if (!monitor) return complain(monitor.error());
  (*monitor)->stop_on_signal();
  auto url = (*monitor)->url();
  if (sessions.size() == 1) url += "/sessions/" + url_encoded(sessions.front());
  print_line("open " + url + "\nCtrl-C ends it.");
  std::fflush(stdout);
  // The browser's helper may run as long as the browser. This thread collects its exit status and
  // uses nothing else, so the end of the program may cut it off.
  if (const auto helper = open_in_browser(url); helper > 0) {
    std::thread([helper] {
      int status = 0;
      waitpid(helper, &status, 0);
    }).detach();
  }
  run_to_end(context);
  (*monitor)->wait_for_answers();
  return exit_done;
}

}  // namespace watchdog::monitor
