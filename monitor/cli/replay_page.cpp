#include "cli/replay_page.h"

#include <boost/asio/io_context.hpp>

#include "api/target.h"
#include "cli/browser.h"
#include "cli/endpoint.h"
#include "cli/monitor.h"
#include "http/event_loop.h"
#include "terminal/output.h"

namespace watchdog::monitor {
namespace {

/// Ended sessions are kept: a recording may be years old.
constexpr double kept_days = 36'500;

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
  open_in_browser(url);
  run_to_end(context);
  (*monitor)->wait_for_answers();
  return exit_done;
}

}  // namespace watchdog::monitor
