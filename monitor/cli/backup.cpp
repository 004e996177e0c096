#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "store/server.h"
#include "terminal/output.h"

namespace watchdog::monitor {
namespace {

struct BackupOptions {
  std::filesystem::path file;
  Sources sources;
  bool json = false;
};

}  // namespace

using nlohmann::json;

static int backup(const BackupOptions& options) {
  const auto settings = configured(options.sources);
  if (!settings) return settings.error();
  const auto database = database_of(*settings);
  if (is_server_url(database)) {
    return complain(
        {ErrorCode::invalid,
         "a database of PostgreSQL is backed up by its own tools, while monitors go on: "
         "pg_dump --schema=watchdog --format=custom --file=" +
             shell_word(options.file.string()) + " " + shell_word(database.string()) +
             ". pg_restore brings it back. An SQLite file with all sessions is made, while no "
             "monitor runs, by: watchdog-monitor copy --from " +
             shell_word(database.string()) + " --to FILE"});
  }
  auto reader = StoreReader::open(database);
  if (!reader) return complain(reader.error());
  const auto copy = reader->copy_to(options.file);
  if (!copy) {
    const int code = complain(copy.error());
    return code == exit_unreachable ? exit_failed : code;  // the disk is not a server
  }
  if (options.json) {
    print_json(json{{"database", database.string()},
                    {"file", options.file.string()},
                    {"bytes", copy->bytes},
                    {"sessions", copy->sessions},
                    {"events", copy->events}}
                   .dump());
  } else {
    print_line(database.string() + " → " + options.file.string() + ": " +
               std::to_string(copy->sessions) + " sessions, " + std::to_string(copy->events) +
               " events, " + std::to_string(copy->bytes) + " bytes, verified");
  }
  return exit_done;
}

void add_backup(CommandLine& line) {
  const auto options = std::make_shared<BackupOptions>();
  auto* command = line.app.add_subcommand("backup", "Copy the database while it is in use");
  command->add_option("file", options->file, "The copy, which must not exist yet")->required();
  add_database(*command, options->sources);
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([&line, options] { line.code = backup(*options); });
}

}  // namespace watchdog::monitor
