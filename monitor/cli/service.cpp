// `service` writes the units of one user and has systemd read them. The units are those of the
// package, with the path of this program. A unit that somebody else wrote stays as it is. Where no
// systemd of the user answers, the files are written all the same: they work after the next login.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/unit_files.h"
#include "cli/usage.h"
#include "setup/config_file.h"
#include "terminal/output.h"
#include "text/json_writer.h"
#include "watchdog/subprocess.h"

namespace watchdog::monitor {
namespace {

namespace fs = std::filesystem;

struct ServiceOptions {
  std::string action;
  Sources sources;
  bool user = false;
  bool print = false;
  bool json = false;
};

/// The folder of this user's units; empty: there is no home directory.
fs::path unit_folder() {
  const auto own = environment("XDG_CONFIG_HOME");
  const auto home = environment("HOME");
  if (own.empty() && home.empty()) return {};
  return (own.empty() ? fs::path(home) / ".config" : fs::path(own)) / "systemd" / "user";
}

std::string own_program() {
  std::error_code ignored;
  const auto path = fs::read_symlink("/proc/self/exe", ignored);
  return path.empty() ? "/usr/bin/watchdog-monitor" : path.string();
}

/// The answer of systemd. A plain value.
struct SystemctlEnd {
  bool done = false;
  std::string said{};  ///< The first line.
};

SystemctlEnd systemctl(std::vector<std::string> words) {
  words.insert(words.begin(), {"timeout", "60", "systemctl", "--user"});
  std::map<std::string, std::string> variables;
  for (const auto* name : {"XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "XDG_CONFIG_HOME"})
    if (auto value = environment(name); !value.empty()) variables[name] = std::move(value);
  variables.try_emplace("XDG_RUNTIME_DIR", "/run/user/" + std::to_string(getuid()));
  const auto end = run_process({.argv = std::move(words), .env = std::move(variables)});
  if (!end) return {.said = end.error().message};
  auto said = end->head.substr(0, end->head.find('\n'));
  if (end->status() == 127) said = "there is no systemctl";
  return {.done = end->status() == 0, .said = std::move(said)};
}

/// A unit and its file. A plain value.
struct PlacedUnit {
  UnitFile unit;
  ConfigFile file;
  [[nodiscard]] std::string_view state() const {
    if (!file.exists) return "absent";
    if (!is_own_unit(file.text)) return "foreign";
    return file.text == unit.text ? "present" : "outdated";
  }
};

Result<std::vector<PlacedUnit>> placed_units(const Settings& settings,
                                             const ServiceOptions& options) {
  const auto folder = unit_folder();
  if (folder.empty()) return Error{ErrorCode::not_found, "HOME is not set, so there is no folder"};
  std::vector<std::string> arguments;
  if (options.sources.file && !options.sources.file->empty()) {
    std::error_code ignored;
    arguments = {"--config", fs::absolute(*options.sources.file, ignored).string()};
  }
  std::vector<PlacedUnit> placed;
  for (auto& unit : user_units(settings.monitor, own_program(), arguments)) {
    auto file = read_config(folder / unit.name);
    if (!file) return file.error();
    if (!file->exists) file->mode = 0644;
    placed.push_back({std::move(unit), std::move(*file)});
  }
  return placed;
}

std::vector<std::string> with_names(std::vector<std::string> words,
                                    const std::vector<PlacedUnit>& placed) {
  // The socket first: it must not find the service at its port.
  for (auto unit = placed.rbegin(); unit != placed.rend(); ++unit) words.push_back(unit->unit.name);
  return words;
}

int install_units(const std::vector<PlacedUnit>& placed) {
  for (const auto& one : placed) {
    if (one.state() != "foreign") continue;
    return complain({ErrorCode::conflict, one.file.path.string() +
                                              " was not written by this command, so it stays. "
                                              "Move it away, and install again"});
  }
  for (const auto& one : placed) {
    if (one.state() == "present") {
      print_line(one.file.path.string() + ": as it was");
      continue;
    }
    if (auto written = write_config(one.file, one.unit.text); !written)
      return complain(written.error());
    print_line(one.file.path.string() + ": written");
  }
  auto end = systemctl({"daemon-reload"});
  if (end.done) end = systemctl(with_names({"enable", "--now"}, placed));
  if (end.done) {
    print_line("systemd runs it now and after each login");
    return exit_done;
  }
  print_line("systemd does not run it yet: " + end.said +
             "\nAfter the next login: systemctl --user enable --now watchdog-monitor.socket "
             "watchdog-monitor.service");
  return exit_done;
}

int remove_units(const std::vector<PlacedUnit>& placed) {
  (void)systemctl(with_names({"disable", "--now"}, placed));
  int code = exit_done;
  for (const auto& one : placed) {
    if (one.state() == "absent") continue;
    if (one.state() == "foreign") {
      warn(one.file.path.string() + " was not written by this command, so it stays");
      code = exit_refused;
      continue;
    }
    if (auto deleted = delete_config(one.file); !deleted) return complain(deleted.error());
    print_line(one.file.path.string() + ": deleted");
  }
  (void)systemctl({"daemon-reload"});
  return code;
}

int show_units(const std::vector<PlacedUnit>& placed, bool as_json) {
  JsonWriter out;
  out.open_object().key("units").open_array();
  for (const auto& one : placed) {
    const auto enabled = systemctl({"is-enabled", one.unit.name}).said;
    const auto active = systemctl({"is-active", one.unit.name}).said;
    out.open_object().field("name", one.unit.name).field("file", one.file.path.string());
    out.field("state", one.state()).field("enabled", enabled).field("active", active);
    out.close_object();
    if (!as_json)
      print_line(one.unit.name + ": " + std::string(one.state()) + ", " + enabled + ", " + active);
  }
  out.close_array().close_object();
  if (as_json) print_json(out.finish());
  const bool all =
      std::ranges::all_of(placed, [](const PlacedUnit& one) { return one.state() == "present"; });
  return all ? exit_done : exit_not_found;
}

int service(const ServiceOptions& options) {
  const auto settings = configured(options.sources);
  if (!settings) return settings.error();
  const auto placed = placed_units(*settings, options);
  if (!placed) return complain(placed.error());
  if (options.action == "install" && options.print) {
    for (const auto& one : *placed)
      print("# " + one.file.path.string() + "\n" + one.unit.text + "\n");
    return exit_done;
  }
  if (options.action == "install") return install_units(*placed);
  if (options.action == "remove") return remove_units(*placed);
  return show_units(*placed, options.json);
}

constexpr const char* service_footer =
    "install writes watchdog-monitor.service and watchdog-monitor.socket into "
    "~/.config/systemd/user, for this program and your settings, and enables both where systemd "
    "answers. The socket holds the port while the monitor restarts, so reports wait and none is "
    "lost.\n"
    "remove stops the monitor and deletes these files. The database stays.\n"
    "status shows each file (absent, present, outdated, foreign) and what systemd says of it.\n"
    "\n"
    "For the whole machine install the Debian package, which has its own units.\n"
    "\n"
    "--json: {\"units\": [{\"name\", \"file\", \"state\", \"enabled\", \"active\"}]}\n"
    "\n"
    "Exit codes: 0 done, 1 a file cannot be written, 2 usage, 3 a file of somebody else stays, 5 "
    "status: a unit is not installed.\n"
    "Data goes to standard output, errors to standard error.";

}  // namespace

void add_service(CommandLine& line) {
  const auto options = std::make_shared<ServiceOptions>();
  auto* command =
      line.app.add_subcommand("service", "Run the monitor as a service of yours by systemd");
  command->add_option("action", options->action, "What to do")
      ->required()
      ->check(one_of("action", {"install", "remove", "status"}));
  command->add_flag("--user", options->user, "For your user alone (the default)");
  command->add_flag("--print", options->print, "install: print the units, write nothing");
  command->add_flag("--json", options->json, "status: print one JSON object");
  add_config(*command, options->sources);
  command->callback([&line, options] { line.code = service(*options); });
  command->footer(service_footer);
}

}  // namespace watchdog::monitor
