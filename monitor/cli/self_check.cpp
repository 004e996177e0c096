// `self-check` looks at an installation from outside: files, port, disk, clock, unit and agents.
// Each look is a function that adds rows; none changes anything or needs a running monitor. A
// warning is something that may be meant, such as a monitor that does not run. Only problems change
// the exit code. Wrong settings end the check, because all other places follow from them.
#include <sys/stat.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>

#include "api/assets.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/token_file.h"
#include "net/web_request.h"
#include "setup/config_file.h"
#include "setup/hook_setup.h"
#include "store/server.h"
#include "store/store_reader.h"
#include "terminal/output.h"
#include "terminal/table.h"
#include "text/json_writer.h"
#include "watchdog/session.h"
#include "watchdog/subprocess.h"

namespace watchdog::monitor {

/// The result of one look.
enum class CheckState : std::uint8_t { ok, warning, problem };

}  // namespace watchdog::monitor

namespace watchdog {
template <>
struct Names<monitor::CheckState> {
  static constexpr std::string_view all[] = {"ok", "warning", "problem"};
};
}  // namespace watchdog

namespace watchdog::monitor {
namespace {

namespace fs = std::filesystem;

struct SelfCheckOptions {
  Sources sources;
  bool json = false;
};

/// A row of the result. A plain value.
struct CheckRow {
  std::string name;
  CheckState state = CheckState::ok;
  std::string detail;
  std::string to_do{};
};
using CheckRows = std::vector<CheckRow>;

constexpr std::uintmax_t disk_problem_bytes = 100'000'000;
constexpr std::uintmax_t disk_warning_bytes = 1'000'000'000;

std::string megabytes(std::uintmax_t bytes) {
  return std::to_string(bytes / 1'000'000) + " MB";
}

/// The version of the schema, which SQLite keeps in the header of the file.
std::string file_version(const fs::path& path) {
  constexpr std::streamoff version_at = 60;
  std::array<unsigned char, 4> bytes{};
  std::ifstream file(path, std::ios::binary);
  file.seekg(version_at);
  file.read(reinterpret_cast<char*>(bytes.data()), bytes.size());  // NOLINT: streams read chars
  if (!file) return "unknown";
  std::uint32_t version = 0;
  for (const auto byte : bytes) version = version << 8U | byte;
  return std::to_string(version / 1'000) + "." + std::to_string(version % 1'000);
}

/// A file that only this user may read.
void look_at_file(CheckRows& rows, const std::string& name, const fs::path& path,
                  const std::string& detail) {
  struct stat about {};
  if (stat(path.c_str(), &about) != 0) {
    rows.push_back({name, CheckState::warning, path.string() + " does not exist yet",
                    "The first start of `watchdog-monitor serve` makes it."});
  } else if (about.st_uid != getuid()) {
    rows.push_back({name, CheckState::problem, path.string() + " belongs to another user",
                    "Run the check as the user of the monitor, or: chown " +
                        std::to_string(getuid()) + " " + path.string()});
  } else if ((about.st_mode & 077U) != 0) {
    rows.push_back({name, CheckState::problem, path.string() + " can be read by others",
                    "chmod 600 " + path.string()});
  } else {
    rows.push_back({name, CheckState::ok, path.string() + detail});
  }
}

void look_at_server(CheckRows& rows, const fs::path& url) {
  if (auto reader = StoreReader::open(url); !reader) {
    rows.push_back({"database", CheckState::problem, reader.error().message,
                    "Start PostgreSQL, or correct monitor.db."});
  } else {
    rows.push_back({"database", CheckState::ok, url.string()});
  }
}

void look_at_database(CheckRows& rows, const fs::path& path) {
  if (is_server_url(path)) return look_at_server(rows, path);
  std::error_code ignored;
  const auto folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const bool exists = fs::exists(path, ignored);
  look_at_file(
      rows, "database", path,
      exists ? ", version " + file_version(path) + ", " + megabytes(fs::file_size(path, ignored))
             : "");
  if (exists) {
    auto reader = StoreReader::open(path);
    if (!reader)
      rows.push_back({"database", CheckState::problem, reader.error().message,
                      "Restore a backup, or use the program that wrote it."});
  }
  if (fs::exists(folder, ignored) && access(folder.c_str(), W_OK | X_OK) != 0)
    rows.push_back({"folder", CheckState::problem, folder.string() + " cannot be written",
                    "Change its owner, or set monitor.db."});
  auto place = folder;
  while (!place.empty() && !fs::exists(place, ignored) && place != place.root_path())
    place = place.parent_path();
  const auto space = fs::space(place.empty() ? fs::path(".") : place, ignored);
  const auto state = ignored || space.available < disk_problem_bytes ? CheckState::problem
                     : space.available < disk_warning_bytes          ? CheckState::warning
                                                                     : CheckState::ok;
  rows.push_back({"disk", state, megabytes(space.available) + " free at " + place.string(),
                  state == CheckState::ok ? "" : "Make room, or lower monitor.retention_bytes."});
}

void look_at_tokens(CheckRows& rows, const Settings& settings) {
  const auto path = token_file(settings);
  look_at_file(rows, "tokens", path, "");
  if (rows.back().state != CheckState::ok) return;
  if (const auto tokens = read_token_file(path); !tokens)
    rows.back() = {"tokens", CheckState::problem, tokens.error().message,
                   "Correct the line, or remove the file: the monitor makes another one."};
}

void look_at_channels(CheckRows& rows, const AlertSettings& alerts) {
  if (alerts.channels.empty()) {
    rows.push_back(
        {"alerts", CheckState::warning, "no channel is set up", "watchdog-monitor alerts setup"});
    return;
  }
  if (const auto secrets = channel_secrets(alerts); !secrets) {
    for (const auto& mistake : secrets.error())
      rows.push_back({"alerts", CheckState::problem, mistake.message, "Mend or replace the file."});
    return;
  }
  std::string names;
  for (const auto& [name, channel] : alerts.channels) names += (names.empty() ? "" : ", ") + name;
  rows.push_back({"alerts", CheckState::ok, names});
}

/// Where this machine reaches the monitor.
std::string local_url(const MonitorSettings& own) {
  auto host = own.bind == "0.0.0.0" || own.bind == "::" ? "127.0.0.1" : own.bind;
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  return (own.tls_cert.empty() ? "http://" : "https://") + host + ":" + std::to_string(own.port);
}

void look_at_port(CheckRows& rows, const MonitorSettings& own) {
  const auto url = local_url(own);
  const auto answer = ask_once({.method = "GET",
                                .url = url + "/healthz",
                                .at_most = Millis{5'000},
                                .ca_file = own.tls_cert});
  if (!answer) {
    rows.push_back({"port", CheckState::warning, "no monitor answers: " + answer.error().message,
                    "Start it: watchdog-monitor service install, or watchdog-monitor serve"});
  } else if (answer->status == 200 && answer->body == R"({"status":"ok"})") {
    rows.push_back({"port", CheckState::ok, "a monitor answers at " + url});
  } else {
    rows.push_back({"port", CheckState::problem, "another program answers at " + url,
                    "Stop it, or set monitor.port."});
  }
}

void look_at_clock(CheckRows& rows) {
  constexpr std::int64_t year_2026_ms = 1'767'225'600'000;
  struct timex clock {};
  const int state = adjtimex(&clock);
  if (system_clock().wall().time_since_epoch().count() < year_2026_ms) {
    rows.push_back({"clock", CheckState::problem, "the clock is years behind", "Set it."});
  } else if (state == TIME_ERROR || (clock.status & STA_UNSYNC) != 0) {
    rows.push_back({"clock", CheckState::warning, "the clock is not synchronized",
                    "timedatectl set-ntp true"});
  } else {
    rows.push_back({"clock", CheckState::ok, state < 0 ? "set" : "synchronized"});
  }
}

/// The program that a unit starts: the first word of ExecStart without its quotes.
std::string program_in(const fs::path& unit) {
  std::ifstream file(unit);
  for (std::string line; std::getline(file, line);) {
    constexpr std::string_view key = "ExecStart=";
    if (!line.starts_with(key)) continue;
    const bool quoted = line.size() > key.size() && line[key.size()] == '"';
    const auto begin = key.size() + (quoted ? 1 : 0);
    return line.substr(begin, line.find(quoted ? '"' : ' ', begin) - begin);
  }
  return {};
}

void look_at_unit(CheckRows& rows) {
  const auto own = environment("XDG_CONFIG_HOME");
  const auto config = own.empty() ? fs::path(environment("HOME")) / ".config" : fs::path(own);
  std::error_code ignored;
  for (const auto& folder :
       {config / "systemd/user", fs::path("/etc/systemd/system"), fs::path("/lib/systemd/system"),
        fs::path("/usr/local/lib/systemd/system"), fs::path("/lib/systemd/user")}) {
    const auto unit = folder / "watchdog-monitor.service";
    if (!fs::exists(unit, ignored)) continue;
    const auto program = program_in(unit);
    if (access(program.c_str(), X_OK) == 0) {
      rows.push_back({"unit", CheckState::ok, unit.string() + " starts " + program});
    } else {
      rows.push_back({"unit", CheckState::problem,
                      unit.string() + " starts " + program + ", which cannot be run",
                      "watchdog-monitor service install"});
    }
    return;
  }
  rows.push_back({"unit", CheckState::warning, "no unit of systemd is installed",
                  "watchdog-monitor service install"});
}

void look_at_helper(CheckRows& rows) {
  const auto helper = process_helper();
  if (helper) {
    rows.push_back({"helper", CheckState::ok, helper->string()});
  } else {
    rows.push_back({"helper", CheckState::problem, helper.error().message,
                    "Install the program again. Channels of type command need the helper."});
  }
}

bool is_on_path(std::span<const std::string_view> programs) {
  std::string_view path;
  const auto all = environment("PATH");
  for (path = all; !path.empty();) {
    const auto folder = path.substr(0, path.find(':'));
    for (const auto program : programs)
      if (!folder.empty() && access((fs::path(folder) / program).c_str(), X_OK) == 0) return true;
    path.remove_prefix(std::min(folder.size() + 1, path.size()));
  }
  return false;
}

void look_at_agents(CheckRows& rows, const MonitorSettings& own) {
  HookTarget target{.server = local_url(own)};
  for (const auto& file : embedded_files())
    if (file.name == "watchdog.js") target.plugin = file.content;
  for (const auto& agent : agent_setups()) {
    if (!is_on_path(agent.programs)) continue;
    const auto variable = agent.home_variable.empty()
                              ? std::string()
                              : environment(std::string(agent.home_variable).c_str());
    const auto folder =
        variable.empty() ? fs::path(environment("HOME")) / agent.home : fs::path(variable);
    const auto file = read_config(folder / agent.user_file);
    const auto found =
        file ? hooks_in(agent, file->text, target) : Result<FoundHooks>(file.error());
    const std::string name = "agent " + std::string(agent.name);
    if (!found) {
      rows.push_back({name, CheckState::problem, found.error().message, "Mend the file."});
    } else if (found->state == HookState::present) {
      rows.push_back({name, CheckState::ok, "its hooks report here"});
    } else {
      rows.push_back({name, CheckState::warning, "hooks: " + std::string(name_of(found->state)),
                      "watchdog-monitor hooks install " + std::string(agent.name)});
    }
  }
}

CheckRows check_installation(const Sources& sources) {
  CheckRows rows;
  const auto loaded = Configuration::load(sources);
  if (!loaded) {
    for (const auto& mistake : loaded.error())
      rows.push_back(
          {"settings", CheckState::problem, mistake.message, "Correct " + mistake.where});
    return rows;
  }
  const auto& settings = loaded->settings();
  rows.push_back({"settings", CheckState::ok,
                  loaded->file().empty() ? "no file, only defaults" : loaded->file().string()});
  look_at_database(rows, database_of(settings));
  look_at_tokens(rows, settings);
  look_at_channels(rows, settings.alerts);
  look_at_port(rows, settings.monitor);
  look_at_clock(rows);
  look_at_unit(rows);
  look_at_helper(rows);
  look_at_agents(rows, settings.monitor);
  return rows;
}

std::string rows_as_json(const CheckRows& rows, bool fine) {
  JsonWriter out;
  out.open_object().field("ok", fine).key("checks").open_array();
  for (const auto& row : rows) {
    out.open_object().field("name", row.name).field("state", name_of(row.state));
    out.field("detail", row.detail).key("toDo");
    row.to_do.empty() ? out.value(nullptr) : out.value(row.to_do);
    out.close_object();
  }
  out.close_array().close_object();
  return out.finish();
}

int self_check(const SelfCheckOptions& options) {
  const auto rows = check_installation(options.sources);
  const bool fine = std::ranges::none_of(
      rows, [](const CheckRow& row) { return row.state == CheckState::problem; });
  if (options.json) {
    print_json(rows_as_json(rows, fine));
    return fine ? exit_done : exit_failed;
  }
  for (const auto& row : rows) {
    print_line(std::string(name_of(row.state)) + "  " + row.name + ": " + safe_line(row.detail));
    if (!row.to_do.empty()) print_line("    " + safe_line(row.to_do));
  }
  return fine ? exit_done : exit_failed;
}

constexpr const char* self_check_footer =
    "It looks at the settings, the database (permissions, version), the disk and the tokens. It "
    "looks at the channels of alerts, the port, the clock, the unit of systemd and the helper "
    "program. It looks at the hooks of agents whose programs are on the PATH. It changes "
    "nothing.\n"
    "\n"
    "--json: {\"ok\", \"checks\": [{\"name\", \"state\" (ok, warning, problem), \"detail\", "
    "\"toDo\"}]}\n"
    "\n"
    "Exit codes: 0 no problem, 1 a problem, 2 usage. A warning does not change the exit code.\n"
    "Data goes to standard output, errors to standard error.";

}  // namespace

void add_self_check(CommandLine& line) {
  const auto options = std::make_shared<SelfCheckOptions>();
  auto* command = line.app.add_subcommand(
      "self-check",
      "Look for mistakes of the installation: files, port, disk, clock, unit, agents");
  add_settings(*command, line.settings, options->sources);
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([&line, options] { line.code = self_check(*options); });
  command->footer(self_check_footer);
}

}  // namespace watchdog::monitor
