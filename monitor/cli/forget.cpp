// The monitor is asked twice. The first time it only says which sessions it would delete, so that a
// person sees their names before they agree. The second time exactly these are deleted. Files
// beside a database that no monitor has open are cleaned here.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/following.h"
#include "cli/session_choice.h"
#include "cli/session_names.h"
#include "cli/usage.h"
#include "mcp/task_file.h"
#include "terminal/output.h"
#include "terminal/phrases.h"
#include "terminal/table.h"
#include "watchdog/terminal_text.h"

namespace watchdog::monitor {

using nlohmann::json;

namespace {

struct ForgetOptions {
  Endpoint::Options endpoint;
  std::vector<std::string> sessions;
  bool last = false;                 ///< The session that began last.
  std::optional<double> ended_days;  ///< And all that ended this many days ago.
  bool force = false;                ///< Also what runs.
  bool yes = false;                  ///< Does not ask.
  bool json = false;
};

constexpr double day_ms = 86'400'000;

/// Returns the ids of the chosen sessions. A token that may act and not read names ids.
Result<std::vector<std::string>> chosen_sessions(Endpoint& endpoint, const ForgetOptions& options) {
  std::vector<SessionChoice> choices;
  for (const auto& named : options.sessions) choices.push_back({.named = named});
  if (options.last) choices.push_back({.last = true});
  std::vector<std::string> ids;
  for (const auto& choice : choices) {
    auto found = acted_on(endpoint, choice);
    if (!found) return found.error();
    ids.push_back(std::move(*found));
  }
  return ids;
}

/// Asks on the terminal; false without one.
bool is_agreed(const json& sessions, const SessionNames& names) {
  if (isatty(STDIN_FILENO) != 1) return false;
  for (const auto& session : sessions) {
    const auto id = session.get<std::string>();
    print_error(terminal_line(id) + "  " + names.title_of(id) + "\n");
  }
  print_error("This cannot be undone. Forget " + std::to_string(sessions.size()) +
              (sessions.size() == 1 ? " session" : " sessions") + "? [y/N] ");
  std::string answer;
  return std::getline(std::cin, answer) && (answer == "y" || answer == "yes");
}

/// Takes erased sessions out of the files beside a database that no monitor has open.
Result<void> forget_beside(const std::filesystem::path& database, const json& sessions) {
  const auto ids = sessions.get<std::vector<std::string>>();
  const auto file = database.string() + "-mcp-tasks";
  if (auto lines = mcp::read_task_file(file); lines && !ids.empty()) {
    const auto dropped = std::erase_if(*lines, [&](const json& line) {
      return std::ranges::find(ids, line.value("session", "")) != ids.end();
    });
    auto written = dropped > 0 ? mcp::write_task_file(file, *lines) : Result<void>{};
    if (!written) return written;
  }
  return forget_positions(database, ids);
}

}  // namespace

static int forget(const ForgetOptions& options) {
  auto endpoint_options = options.endpoint;
  endpoint_options.writes = true;
  auto endpoint = Endpoint::open(endpoint_options);
  if (!endpoint) return complain(endpoint.error());
  const auto chosen = chosen_sessions(*endpoint, options);
  if (!chosen) return complain(chosen.error());
  json request{{"sessions", *chosen}, {"force", options.force}, {"dryRun", !options.yes}};
  if (options.ended_days) {
    const auto age = Millis{static_cast<std::int64_t>(*options.ended_days * day_ms)};
    request["endedBefore"] = (system_clock().wall() - age).time_since_epoch().count();
  }
  const auto ask = [&] {
    return endpoint->act(Method::post, "/api/autonomous/forget", request.dump());
  };
  auto body = ask();
  if (!body) return complain(body.error());
  auto said = json::parse(*body);
  if (!options.yes && !said["sessions"].empty()) {
    // Without its names a session is known by its id.
    const auto names = SessionNames::read(*endpoint);
    if (!is_agreed(said["sessions"], names ? *names : SessionNames())) {
      for (const auto& session : said["sessions"])
        print_line(terminal_line(session.get<std::string>()));
      return complain({ErrorCode::conflict, "nothing was forgotten; use --yes to forget them"});
    }
    // Exactly those that were agreed to.
    request = {{"sessions", said["sessions"]}, {"force", options.force}};
    body = ask();
    if (!body) return complain(body.error());
    said = json::parse(*body);
  }
  if (const auto database = endpoint_options.database; !database.empty()) {
    // A monitor does this by itself.
    if (auto gone = forget_beside(database, said["sessions"]); !gone) return complain(gone.error());
  }
  if (options.json) {
    print_json(*body);
    return exit_done;
  }
  for (const auto& session : said["sessions"])
    print_line("forgotten: " + terminal_line(session.get<std::string>()));
  if (said["sessions"].empty()) print_line("no session to forget");
  if (said.contains("remains")) note(said["remains"].get<std::string>(), false);
  return exit_done;
}

void add_forget(CommandLine& line) {
  const auto options = std::make_shared<ForgetOptions>();
  auto* command = line.app.add_subcommand(
      "forget", "Delete ended sessions from the database so that no byte remains in its file");
  command->add_option("session", options->sessions,
                      "Sessions: their ids, beginnings of ids, or folders they work in");
  command->add_flag("--last", options->last, "The session that began last");
  command
      ->add_option("--ended-before", options->ended_days,
                   "Also all sessions that ended at least DAYS days ago")
      ->check(amount());
  command->add_flag("--force", options->force,
                    "Delete running sessions too; their next report creates them again");
  command->add_flag("--yes", options->yes, "Do not ask for confirmation");
  command->add_flag("--json", options->json, "Print the answer as JSON");
  add_endpoint(*command, options->endpoint);
  command->callback([&line, options] {
    if (options->sessions.empty() && !options->last && !options->ended_days) {
      throw CLI::RequiredError("session, --last or --ended-before");
    }
    line.code = forget(*options);
  });
}

}  // namespace watchdog::monitor
