#include "cli/serve.h"

#include <spdlog/spdlog.h>
#include <sys/prctl.h>

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/browser.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/first_screen.h"
#include "cli/monitor.h"
#include "cli/settings_watch.h"
#include "cli/token_file.h"
#include "http/event_loop.h"
#include "ingest/transcript.h"
#include "terminal/output.h"
#include "text/nearest.h"

namespace watchdog::monitor {

namespace {

/// The options of `serve` that are no settings.
struct ServeOptions {
  bool follows = false;
  bool is_for_person = false;           ///< The program was started without arguments.
  std::vector<std::string> followed{};  ///< Agents; none: all known ones.
  std::shared_ptr<const Sources> sources{};
};

int refusal_of(const Error& error) {
  spdlog::error(error.message);
  return error.code == ErrorCode::conflict || error.code == ErrorCode::invalid ? exit_refused
                                                                               : exit_failed;
}

/// Shows the monitor that runs already to a person who only wants to see one. An explicit `serve`
/// is refused instead: a unit or script that means another address or follows other agents would
/// take the success for its own monitor.
int show_other_monitor(const Settings& settings, const Sources& sources, Error error) {
  const bool is_port_used = error.code == ErrorCode::unavailable && error.field == "port";
  if (!is_port_used && error.code != ErrorCode::conflict) return refusal_of(error);
  if (show_running_monitor(settings, sources)) return exit_done;
  if (is_port_used)
    error.message += ". Choose another one: watchdog-monitor serve --follow --port PORT";
  return refusal_of(error);
}

}  // namespace

static int serve(const Settings& settings, const ServeOptions& options) {
  prctl(PR_SET_DUMPABLE, 0);  // a core, or a debugger of this user, would hold tokens and prompts
  boost::asio::io_context context(1);
  const auto database = database_of(settings);
  FirstScreen screen(database.string(), *options.sources);  // the monitor's thread uses it
  auto monitor = Monitor::start(context, settings);
  if (!monitor) {
    return options.is_for_person ? show_other_monitor(settings, *options.sources, monitor.error())
                                 : refusal_of(monitor.error());
  }
  const bool follows_nothing = options.followed == std::vector<std::string>{"none"};
  if (!follows_nothing) (*monitor)->follow_named(database);
  if (options.follows && !follows_nothing) {
    if (auto followed =
            (*monitor)->follow(options.followed, database, [&] { screen.note_caught_up(); });
        !followed)
      return refusal_of(followed.error());
  }
  (*monitor)->stop_on_signal();
  (*monitor)->announce();
  if (options.is_for_person) {
    open_for_person((*monitor)->page_url());
    screen.begin();
  }
  spdlog::info("watching {}", database.string());
  if (std::error_code ignored; std::filesystem::exists(token_file(settings), ignored)) {
    spdlog::info("tokens are in {}", token_file(settings).string());
  }
  {
    const SettingsWatch watch(
        {.sources = *options.sources,
         .changed = [&](const Settings& now) { return (*monitor)->renew_alerts(now); },
         .log = [](const std::string& sentence) { spdlog::info(sentence); }});
    run_to_end(context);
  }
  (*monitor)->wait_for_answers();
  spdlog::info("stopping");
  return exit_done;
}

int serve_here() {
  const auto sources = std::make_shared<const Sources>();
  const auto settings = configured(*sources);
  return settings ? serve(*settings, {.follows = true, .is_for_person = true, .sources = sources})
                  : settings.error();
}

void add_serve(CommandLine& line) {
  const auto sources = std::make_shared<Sources>();
  auto* command = line.app.add_subcommand(
      "serve", "Run the monitor: watch a database, serve the API and the page");
  add_settings(*command, line.settings, *sources);
  const auto options = std::make_shared<ServeOptions>();
  const auto agents = all_names<TranscriptAgent>();
  std::string named;
  for (const auto& agent : agents) named += (named.empty() ? "" : ", ") + agent;
  command
      ->add_option("--follow", options->followed,
                   "Report what these agents write into their transcripts: " + named +
                       "; all of them if no agent is named. Without it, a transcript is read "
                       "if a hook names it. none: no transcript is read")
      ->type_name("AGENT")
      ->expected(0, static_cast<int>(agents.size()));
  command->callback([&line, sources, options, command] {
    options->sources = sources;
    options->follows = command->count("--follow") > 0;
    std::erase_if(options->followed, [](const std::string& name) { return name.empty(); });
    const auto settings = configured(*sources);
    line.code = settings ? serve(*settings, *options) : settings.error();
  });
}

}  // namespace watchdog::monitor
