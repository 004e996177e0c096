#include <spdlog/spdlog.h>

#include <boost/asio/io_context.hpp>
#include <filesystem>
#include <memory>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/monitor.h"
#include "cli/token_file.h"
#include "http/event_loop.h"
#include "terminal/output.h"

namespace watchdog::monitor {

static int serve(const Settings& settings) {
  boost::asio::io_context context(1);
  auto monitor = Monitor::start(context, settings);
  if (!monitor) {
    spdlog::error(monitor.error().message);
    const auto code = monitor.error().code;
    return code == ErrorCode::conflict || code == ErrorCode::invalid ? exit_refused : exit_failed;
  }
  (*monitor)->stop_on_signal();
  (*monitor)->announce();
  const auto& database = settings.monitor.db;
  spdlog::info("watching {}", (database.empty() ? default_database() : database).string());
  if (std::error_code ignored; std::filesystem::exists(token_file(settings), ignored)) {
    spdlog::info("tokens are in {}", token_file(settings).string());
  }
  run_to_end(context);
  (*monitor)->wait_for_answers();
  spdlog::info("stopping");
  return exit_done;
}

void add_serve(CommandLine& line) {
  const auto sources = std::make_shared<Sources>();
  auto* command = line.app.add_subcommand(
      "serve", "Run the monitor: watch a database, serve the API and the page");
  add_settings(*command, line.settings, *sources);
  command->callback([&line, sources] {
    const auto settings = configured(*sources);
    line.code = settings ? serve(*settings) : settings.error();
  });
}

}  // namespace watchdog::monitor
