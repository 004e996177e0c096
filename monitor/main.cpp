#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <memory>
#include <sstream>
#include <vector>

#include "api/version.h"
#include "cli/certificates.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/help.h"
#include "cli/log.h"
#include "cli/serve.h"
#include "cli/usage.h"
#include "postgres/postgres.h"
#include "terminal/output.h"

namespace watchdog::monitor {
namespace {

/// Runs the command that the words name, or the monitor; returns its exit code.
int parse(CommandLine& line, int argc, char** argv) {
  const auto words = words_of(line.app, argc, argv);
  std::vector<const char*> texts;
  for (const auto& word : words) texts.push_back(word.c_str());
  try {
    if (argc < 2) return serve_here();
    line.app.parse(static_cast<int>(texts.size()), texts.data());
  } catch (const CLI::Success& asked) {  // --help or --version
    std::ostringstream text;
    (void)line.app.exit(asked, text, text);
    print(text.str());
    return exit_done;
  } catch (const CLI::RuntimeError& error) {  // the command said why
    return error.get_exit_code();
  } catch (const CLI::ParseError& error) {
    warn(mistake_in(line.app, error));
    return exit_usage;
  } catch (const std::exception& error) {
    spdlog::error("{}", error.what());
    return exit_failed;
  }
  return line.code;
}

int run(int argc, char** argv) {
  log_as(LogFormat::text);
  find_certificates();
  use_postgresql();
  std::vector<int> ignored;
  // A reader that left and a full disk are errors of a write, not reasons to die.
  for (const int number : {SIGPIPE, SIGXFSZ})
    if (std::signal(number, SIG_IGN) == SIG_IGN) ignored.push_back(number);

  CLI::App app(
      "Distinguishes slow agents from stuck ones by what they report, not by a clock.\n"
      "Without arguments it starts the monitor, reads the transcripts of all coding agents "
      "(serve --follow), and opens the page. If a monitor runs already, it shows that one.",
      "watchdog-monitor");
  app.formatter(std::make_shared<HelpFormatter>());
  bool wants_json = false;
  auto* json =
      app.add_flag("--json", wants_json,
                   "Print a JSON object: also commit, compiler, libraries, schema, detector");
  json->needs(app.set_version_flag("--version", [json] {
    return json->count() > 0 ? versions_as_json() : std::string(WATCHDOG_VERSION);
  }));
  app.require_subcommand(1);
  app.footer(exit_codes);
  app.fallthrough(false);

  const auto settings = all_settings();
  CommandLine line{.app = app, .settings = settings, .ignored = std::move(ignored)};
  for (const auto& [group, add] : all_commands) {
    add(line);
    app.get_subcommands({}).back()->group(group);
  }
  for (auto* command : app.get_subcommands({})) {
    if (command->get_footer().empty()) command->footer(exit_codes);
    name_values(*command);
  }
  if (const auto mistake = argc < 2 ? std::nullopt : command_mistake(app, argv[1])) {
    warn(*mistake);
    return exit_usage;
  }
  return parse(line, argc, argv);
}

}  // namespace
}  // namespace watchdog::monitor

int main(int argc, char** argv) {
  return watchdog::monitor::run(argc, argv);
}
