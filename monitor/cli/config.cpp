// `configured` serves the other commands and prints all mistakes at once. The exit code is 2 only
// if every mistake is on the command line, because a wrong file or variable must refuse to start.
// `--check` also reads the secrets of channels, which loading does not. `--write` creates the file
// with O_EXCL, so it never replaces one, and removes a file that it could not complete.
#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <system_error>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/log.h"
#include "config/own_names.h"
#include "files/durable_file.h"
#include "terminal/output.h"
#include "terminal/phrases.h"
#include "terminal/table.h"
#include "watchdog/terminal_text.h"

namespace watchdog::monitor {
namespace {

struct ConfigOptions {
  Sources sources;
  bool check = false;   ///< Only say whether it is right.
  bool sample = false;  ///< A file with every setting instead.
  bool write = false;   ///< The sample goes to the place where settings are looked for.
  bool json = false;
};

constexpr const char* config_footer =
    "Later sources override earlier ones: default, file, environment (WATCHDOG_<SECTION>_<KEY>, "
    "and the variables that --sample names), command line. All mistakes are reported at once; the "
    "exit code is 2 if only the command line is wrong, 3 if the file or a variable is.\n"
    "\n"
    "--json: {\"file\": path or null, \"settings\": [{\"key\", \"value\" (null: none; of a secret "
    "\"set\"), \"origin\", \"where\", \"variables\", \"flag\"}], \"named\": [{\"key\", "
    "\"help\", \"allowed\"}] (keys below a name that you choose, as "
    "alerts.channels.NAME.url), \"notices\": [{\"key\", \"where\", \"message\"}] (keys that "
    "have no effect any more)}\n"
    "\n";

using nlohmann::json;

int print_mistakes(const Mistakes& mistakes) {
  bool usage = true;
  std::istringstream lines(to_text(mistakes));
  for (std::string line; std::getline(lines, line);) warn(line);
  for (const auto& mistake : mistakes) usage = usage && mistake.origin == Origin::command_line;
  return usage ? exit_usage : exit_refused;
}

/// A log of JSON objects stays one.
void print_notices(const Configuration& configuration) {
  const bool as_json = configuration.settings().monitor.log_format == LogFormat::json;
  if (as_json && !configuration.notices().empty()) log_as(LogFormat::json);
  std::istringstream lines(to_text(configuration.notices()));
  for (std::string line; std::getline(lines, line);) {
    if (as_json) {
      spdlog::warn("{}", line);
    } else {
      warn(line);
    }
  }
}

json object_of(const Configuration& configuration) {
  std::map<std::string, SettingInfo> known;
  for (auto& setting : all_settings()) known.emplace(setting.key, setting);
  auto settings = json::array();
  for (const auto& value : configuration.values()) {
    auto parsed = json::parse(value.text, nullptr, false);
    if (parsed.is_discarded()) parsed = value.text.empty() ? json() : json(value.text);
    const auto& info = known[value.key];  // none of a name that is the user's own
    settings.push_back({{"key", value.key},
                        {"value", std::move(parsed)},
                        {"origin", name_of(value.origin)},
                        {"where", value.where.empty() ? json() : json(value.where)},
                        {"variables", info.variables},
                        {"flag", info.flag.empty() ? json() : json(info.flag)}});
  }
  const auto file = configuration.file().string();
  auto notices = json::array();
  for (const auto& notice : configuration.notices())
    notices.push_back({{"key", notice.key}, {"where", notice.where}, {"message", notice.message}});
  auto named = json::array();
  for (const auto& setting : settings_of_own_names())
    named.push_back({{"key", setting.key}, {"help", setting.help}, {"allowed", setting.allowed}});
  return {{"file", file.empty() ? json() : json(file)},
          {"settings", std::move(settings)},
          {"named", std::move(named)},
          {"notices", std::move(notices)}};
}

/// Makes the file that settings are read from, and its directory.
int write_sample(const Sources& sources) {
  const auto path = sources.file ? *sources.file : usual_settings_file(sources.environment);
  if (path.empty()) {
    warn("there is no place for the settings: name a file with --config, or set HOME");
    return exit_usage;
  }
  const auto refuse = [&](const std::string& why) {
    warn("cannot write " + path.string() + ": " + why);
    return exit_refused;
  };
  constexpr mode_t folder_mode = 0777;
  constexpr mode_t file_mode = 0644;
  int cause = make_folders(path.parent_path(), folder_mode);
  if (cause == 0) cause = put_file(path, sample_configuration(), file_mode, Existing::keep);
  if (cause == EEXIST)
    return refuse("it exists and stays as it is. Move it away, or name another file with --config");
  if (cause != 0) return refuse(std::generic_category().message(cause));
  print_line("wrote " + path.string() + "; `watchdog-monitor config --check` checks it");
  return exit_done;
}

}  // namespace

Result<Settings, int> read_settings(const Sources& sources) {
  auto loaded = Configuration::load(sources);
  return loaded ? Result<Settings, int>(loaded->settings()) : print_mistakes(loaded.error());
}

Result<Settings, int> configured(const Sources& sources) {
  auto loaded = Configuration::load(sources);
  if (!loaded) return print_mistakes(loaded.error());
  print_notices(*loaded);
  if (auto added = add_redactions(loaded->settings().privacy); !added)
    return complain(added.error());
  return loaded->settings();
}

static int config(const ConfigOptions& options) {
  if (options.write) return write_sample(options.sources);
  if (options.sample) {
    print(sample_configuration());
    return exit_done;
  }
  const auto loaded = Configuration::load(options.sources);
  if (!loaded) return print_mistakes(loaded.error());
  print_notices(*loaded);
  if (options.check) {
    const auto secrets = channel_secrets(loaded->settings().alerts);
    if (!secrets) return print_mistakes(secrets.error());
  }
  if (options.json) {
    print_json(object_of(*loaded).dump(-1, ' ', false, json::error_handler_t::replace));
    return exit_done;
  }
  const auto file = loaded->file().string();
  if (options.check) {
    print_line((file.empty() ? "no config file" : terminal_line(file)) + ": settings are valid");
    return exit_done;
  }
  Table table({"SETTING", "VALUE", "FROM"});
  for (const auto& value : loaded->values())
    table.add({terminal_line(value.key), value.text.empty() ? "–" : terminal_line(value.text),
               std::string(name_of(value.origin)) +
                   (value.where.empty() ? "" : " " + terminal_line(value.where))});
  print(table.text(terminal_width()));
  return exit_done;
}

void add_config(CommandLine& line) {
  const auto options = std::make_shared<ConfigOptions>();
  auto* command = line.app.add_subcommand(
      "config", "Show effective settings and their source; check or print a config file");
  add_settings(*command, line.settings, options->sources);
  auto* config_json = command->add_flag("--json", options->json, "Print one JSON object");
  auto* config_check = command->add_flag("--check", options->check,
                                         "Only check the settings; exit code 0 if they are valid");
  auto* config_sample = command
                            ->add_flag("--sample", options->sample,
                                       "Print a settings file with every setting explained")
                            ->excludes(config_json)
                            ->excludes(config_check);
  command
      ->add_flag("--write", options->write,
                 "Write the sample to the settings file (see --config), which must not exist yet")
      ->needs(config_sample);
  config_check->excludes(config_json);
  command->callback([&line, options] { line.code = config(*options); });
  command->footer(std::string(config_footer) + exit_codes);
}

}  // namespace watchdog::monitor
