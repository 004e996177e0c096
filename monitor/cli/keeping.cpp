#include <unistd.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/phrases.h"
#include "cli/table.h"

namespace watchdog::monitor {

using nlohmann::json;

namespace {

constexpr double day_ms = 86'400'000;

/// Asks on the terminal; false where nobody is there.
bool is_agreed(const json& sessions) {
  if (isatty(STDIN_FILENO) != 1) return false;
  std::cerr << "This cannot be undone. Forget " << sessions.size()
            << (sessions.size() == 1 ? " session" : " sessions") << "? [y/N] ";
  std::string answer;
  return std::getline(std::cin, answer) && (answer == "y" || answer == "yes");
}

}  // namespace

int forget(const ForgetOptions& options) {
  auto endpoint_options = options.endpoint;
  endpoint_options.writes = true;
  auto endpoint = Endpoint::open(endpoint_options);
  if (!endpoint) return complain(endpoint.error());
  json request{{"sessions", options.sessions}, {"force", options.force}, {"dryRun", !options.yes}};
  if (options.ended_days) {
    const auto age = Millis{static_cast<std::int64_t>(*options.ended_days * day_ms)};
    request["endedBefore"] = (system_clock().wall() - age).time_since_epoch().count();
  }
  const auto ask = [&] {
    return endpoint->ask(Method::post, "/api/autonomous/forget", request.dump());
  };
  auto body = ask();
  if (!body) return complain(body.error());
  auto said = json::parse(*body);
  if (!options.yes && !said["sessions"].empty()) {
    if (!is_agreed(said["sessions"])) {
      for (const auto& session : said["sessions"])
        print_line(printable(session.get<std::string>()));
      return complain({ErrorCode::conflict, "nothing was forgotten; say --yes to go on"});
    }
    // Exactly those that were agreed to.
    request = {{"sessions", said["sessions"]}, {"force", options.force}};
    body = ask();
    if (!body) return complain(body.error());
    said = json::parse(*body);
  }
  if (options.json) {
    print_line(*body);
    return exit_done;
  }
  for (const auto& session : said["sessions"])
    print_line("forgotten: " + printable(session.get<std::string>()));
  if (said["sessions"].empty()) print_line("there is none to forget");
  return exit_done;
}

int backup(const BackupOptions& options) {
  const auto database = options.database.empty() ? default_database() : options.database;
  auto reader = StoreReader::open(database);
  if (!reader) return complain(reader.error());
  const auto copy = reader->copy_to(options.file);
  if (!copy) return complain(copy.error());
  if (options.json) {
    print_line(json{{"file", options.file.string()},
                    {"bytes", copy->bytes},
                    {"sessions", copy->sessions},
                    {"events", copy->events}}
                   .dump());
  } else {
    print_line(options.file.string() + ": " + std::to_string(copy->sessions) + " sessions, " +
               std::to_string(copy->events) + " events, " + std::to_string(copy->bytes) +
               " bytes, read back and whole");
  }
  return exit_done;
}

}  // namespace watchdog::monitor
