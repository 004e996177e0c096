#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "store/lock.h"
#include "store/place.h"
#include "store/server.h"
#include "store/sharing.h"
#include "terminal/output.h"

namespace watchdog::monitor {
namespace {

struct CopyOptions {
  std::filesystem::path from;
  std::filesystem::path to;
  bool json = false;
};

/// A monitor that goes on would judge and send on both sides.
Result<void> refuse_while_watched(const std::filesystem::path& database) {
  const Error watched{ErrorCode::conflict,
                      "a monitor runs on " + database.string() + "; stop it first"};
  if (is_server_url(database)) {
    auto store = Store::open({.database = database, .create = false});
    if (!store) return store.error();
    if (const auto looked = Sharing(*store).renew("copy", true); !looked) return looked.error();
    return Sharing(*store).shares().monitors.empty() ? Result<void>{} : Result<void>(watched);
  }
  const auto name = real_file(database).string() + "-judge";
  std::error_code none;
  if (!std::filesystem::exists(name, none)) return {};
  auto lock = FileLock::open(name);
  if (!lock) return lock.error();
  return lock->try_lock() ? Result<void>{} : Result<void>(watched);
}

}  // namespace

using nlohmann::json;

static int copy(const CopyOptions& options) {
  for (const auto& database : {options.from, options.to})
    if (const auto allowed = check_database_url(database); !allowed)
      return complain(allowed.error());
  auto source = StoreReader::open(options.from);
  if (!source) return complain(source.error());
  if (auto free = refuse_while_watched(options.from); !free) return complain(free.error());
  auto target = Store::open({.database = options.to});
  if (!target) return complain(target.error());
  const auto copied = target->fill_from(*source);
  if (!copied) return complain(copied.error());
  char digest[17];
  std::snprintf(digest, sizeof digest, "%016llx", static_cast<unsigned long long>(copied->digest));
  if (options.json) {
    print_json(json{{"from", options.from.string()},
                    {"to", options.to.string()},
                    {"sessions", copied->sessions},
                    {"events", copied->events},
                    {"digest", digest},
                    {"changedTexts", copied->changed_texts}}
                   .dump());
    return exit_done;
  }
  print_line(options.from.string() + " → " + options.to.string() + ": " +
             std::to_string(copied->sessions) + " sessions, " + std::to_string(copied->events) +
             " events, verified by digest " + digest);
  if (copied->changed_texts > 0) {
    print_line(std::to_string(copied->changed_texts) +
               " texts had bytes that PostgreSQL cannot hold (NUL, or no UTF-8). It holds U+FFFD "
               "instead");
  }
  return exit_done;
}

void add_copy(CommandLine& line) {
  const auto options = std::make_shared<CopyOptions>();
  auto* command = line.app.add_subcommand(
      "copy", "Copy all sessions between a file and PostgreSQL, and compare both");
  command
      ->add_option("--from", options->from,
                   "Database file, or postgresql://... (no monitor may run on it)")
      ->required();
  command->add_option("--to", options->to, "The same, and empty")->required();
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([&line, options] { line.code = copy(*options); });
}

}  // namespace watchdog::monitor
