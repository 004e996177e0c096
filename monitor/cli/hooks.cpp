// `hooks` merges the hooks of an agent into the agent's own file. The pure part is in setup/: here
// are the scope, the files, the backup, the token and what a person reads.
// A token is a secret, and a command of a hook is shown by `ps`. So an install copies the token
// into a file of mode 0600, as an HTTP header, and the hooks name that file. It is a file for each
// server: one server's token is never sent to another. It never is a token that may act: agents
// run the hooks, so they can read it.
// `remove` also looks at the backup. If the backup with our hooks, and then without them, gives
// what the file without them gives, only we changed the file, and the backup's bytes come back.
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "api/assets.h"
#include "cli/agent_survey.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/token_file.h"
#include "cli/usage.h"
#include "facts/hook_hold.h"
#include "ingest/codex_trust.h"
#include "net/url.h"
#include "setup/config_file.h"
#include "setup/hook_setup.h"
#include "setup/mcp_setup.h"
#include "terminal/output.h"
#include "terminal/phrases.h"
#include "terminal/table.h"
#include "text/json_writer.h"
#include "watchdog/terminal_text.h"
#include "workspace/line_diff.h"

namespace watchdog::monitor {
namespace {

namespace fs = std::filesystem;

struct HooksOptions {
  std::string action;
  std::vector<std::string> agents;
  Endpoint::Options monitor;  ///< Which the hooks report to.
  std::string project;        ///< Its folder; empty: the user's own files.
  bool user = false;
  bool common = false;
  std::optional<int> hold{};  ///< Seconds for which the monitor may hold a question.
  bool mcp = false;           ///< The entry of the MCP server instead of hooks.
  bool dry_run = false;
  bool json = false;
};

constexpr const char* hooks_footer =
    "install adds hooks that report to the monitor. Everything else in the agent's file stays, "
    "with "
    "its comments and its form. The file as it was before is kept beside it, with the suffix "
    ".before-watchdog. A second install changes nothing.\n"
    "remove takes out the hooks that report to any monitor.\n"
    "status shows each agent's program, file and hooks: absent, present, outdated (install updates "
    "them) or elsewhere (they report to another server). It also shows when hooks of the agent "
    "reported last, or with --mcp its use of MCP.\n"
    "\n"
    "With --mcp the same is done with an entry `watchdog` among each agent's MCP servers.\n"
    "\n"
    "Without AGENT: install takes the agents whose program is on the PATH, remove and status take "
    "all.\n"
    "\n"
    "--json: {\"agents\": [{\"agent\", \"program\", \"file\", \"hooks\", \"server\", "
    "\"reporting\", "
    "\"missing\", \"untrusted\", \"switchedOff\", \"holdSeconds\", \"lastSessionMs\" (ago), "
    "\"change\" (null: of status), "
    "\"backup\", \"toDo\", \"error\"}]}\n"
    "\n";

constexpr const char* hooks_exit_codes =
    "Exit codes: 0 done, 1 a file cannot be read or written, 2 usage, 3 a file was refused and "
    "stays "
    "as it is, 5 no agent or folder found.\n"
    "Data goes to standard output, errors to standard error.";

/// The state of one agent, and the change that was made.
struct AgentReport {
  const AgentSetup* agent = nullptr;
  std::string program{};
  fs::path file{};
  FoundHooks hooks{};
  std::vector<std::string> untrusted{};
  std::string change{};  ///< Empty: nothing had to change, or nothing was to.
  fs::path backup{};
  std::string diff{};
  /// Milliseconds since the newest session with hooks began; null: none did, or that is unknown.
  nlohmann::json last_session{};
  nlohmann::json last_heard{};  ///< Likewise, since its hooks, or its use of MCP, said something.
  std::optional<Error> error{};
};

Result<fs::path> file_of(const AgentSetup& agent, const HooksOptions& options) {
  if (!options.project.empty()) {
    std::error_code ignored;
    if (fs::is_directory(options.project, ignored))
      return fs::path(options.project) / agent.project_file;
    return Error{ErrorCode::not_found, "--project: there is no folder " + options.project};
  }
  if (auto own = user_file_of(agent); !own.empty()) return own;
  return Error{ErrorCode::not_found, "HOME is not set. Set it, or name a folder with --project"};
}

/// Returns a file that hooks read for a server: `.header` carries the token, `.pem` the
/// certificates.
fs::path hook_file_of(const Url& server, const std::string& suffix) {
  auto name = "hooks-" + server.host + "-" + server.port + suffix;
  std::ranges::replace(name, ':', '.');
  const auto settings = usual_settings_file(process_environment());
  return settings.empty() ? fs::path() : fs::absolute(settings).parent_path() / name;
}

std::string header_with(const std::string& secret) {
  return "Authorization: Bearer " + secret + "\n";
}

/// Returns the command by which agents start the MCP server: by its name where that is found.
std::vector<std::string> command_for_mcp(const HooksOptions& options, const std::string& server) {
  constexpr std::string_view name = "watchdog-monitor";
  std::error_code ignored;
  const auto own = fs::read_symlink("/proc/self/exe", ignored);
  const bool is_found = fs::equivalent(found_program({&name, 1}), own, ignored);
  const auto token =
      options.monitor.token_file.empty() ? "" : fs::absolute(options.monitor.token_file).string();
  return mcp_command(is_found ? std::string(name) : own.string(), server, token);
}

Result<HookTarget> target_of(const HooksOptions& options) {
  const auto url = url_from(options.monitor.server);
  if (!url)
    return Error{ErrorCode::invalid, options.monitor.server_from + ": " + url.error().message};
  HookTarget target{
      .server = url->text(), .common_only = options.common, .hold_seconds = options.hold};
  for (const auto& file : embedded_files())
    if (file.name == "watchdog.js") target.plugin = file.content;
  if (options.mcp) {
    target.mcp_command = command_for_mcp(options, target.server);
    return target;
  }
  const auto header = hook_file_of(*url, ".header");
  const auto authorities = hook_file_of(*url, ".pem");
  if (header.empty() && !(options.monitor.token_file.empty() && options.monitor.ca_file.empty()))
    return Error{ErrorCode::invalid,
                 "there is no place for the token or the certificates: set HOME"};
  const auto is_used = [](const fs::path& given, const fs::path& kept) {
    std::error_code ignored;
    return !given.empty() || (!kept.empty() && fs::exists(kept, ignored));
  };
  if (is_used(options.monitor.token_file, header)) target.header_file = header.string();
  if (is_used(options.monitor.ca_file, authorities)) target.ca_file = authorities.string();
  if (auto right = check_target(target); !right) return right.error();
  return target;
}

/// Returns the token file that the header of the hooks comes from; empty: the header stays. Earlier
/// versions copied the token that acts, and such a header is written again.
fs::path source_of_header(const HooksOptions& options, const ConfigFile& header) {
  if (!options.monitor.token_file.empty()) return options.monitor.token_file;
  if (!header.exists) return {};
  const auto configuration = Configuration::load(options.monitor.sources);
  const auto file = token_file(configuration ? configuration->settings() : Settings{});
  const auto tokens = read_token_file(file);
  const bool acts =
      tokens && std::ranges::any_of(*tokens, [&](const Token& token) {
        return token.scopes.contains(Scope::act) && header.text == header_with(token.secret);
      });
  return acts && reporting_secret(file) ? file : fs::path();
}

/// Writes the header with the token, readable by its owner alone.
Result<void> keep_token(const HooksOptions& options, const HookTarget& target) {
  if (target.header_file.empty() || options.dry_run || options.mcp) return {};
  auto header = read_config(target.header_file);
  if (!header) return header.error();
  const auto source = source_of_header(options, *header);
  if (source.empty()) return {};
  const auto secret = reporting_secret(source);
  if (!secret) return secret.error();
  header->mode = 0600;
  return write_config(*header, header_with(*secret));
}

/// Copies the certificates to where the hooks find them.
Result<void> keep_authorities(const HooksOptions& options, const HookTarget& target) {
  if (options.monitor.ca_file.empty() || options.dry_run) return {};
  const auto given = read_config(options.monitor.ca_file);
  if (!given) return given.error();
  if (given->text.find("-----BEGIN CERTIFICATE-----") == std::string::npos)
    return Error{ErrorCode::invalid, "--ca-file: " + options.monitor.ca_file.string() +
                                         " has no certificate in PEM form"};
  const auto file = read_config(target.ca_file);
  if (!file) return file.error();
  return write_config(*file, given->text);
}

/// Returns how the hooks are; those that an install with --common made are present as well.
Result<FoundHooks> look(const AgentSetup& agent, const std::string& text, HookTarget target) {
  auto found = hooks_in(agent, text, target);
  target.common_only = true;
  if (const auto common = hooks_in(agent, text, target);
      found && common && common->state == HookState::present)
    found->state = HookState::present;
  return found;
}

Error about_file(const ConfigFile& file, Error error) {
  const auto line = error.line > 0 ? ":" + std::to_string(error.line) : "";
  error.message = file.path.string() + line + ": " + error.message +
                  ". The file stays as it is. Correct it, then run the command again";
  return error;
}

/// Returns the text that a file has after the action; nothing: the file is deleted.
Result<std::optional<std::string>> text_after(const HooksOptions& options, const AgentSetup& agent,
                                              const ConfigFile& file, const ConfigFile& backup,
                                              const HookTarget& target) {
  using Text = std::optional<std::string>;
  if (options.action == "install") {
    auto text = with_hooks(agent, file.text, target);
    return text ? Result<Text>(std::move(*text)) : about_file(file, text.error());
  }
  auto rest = without_hooks(agent, file.text);
  if (!rest) return about_file(file, rest.error());
  if (*rest == file.text) return Text(file.text);
  const auto undone = [&](const std::string& before) {
    const auto with = with_hooks(agent, before, target);
    return with ? without_hooks(agent, *with) : with;
  };
  if (backup.exists) {
    const auto same = undone(backup.text);
    return Text(same && *same == *rest ? backup.text : *rest);
  }
  const auto fresh = undone("");  // what is left of a file that an install made
  return fresh && *fresh == *rest ? Text() : Text(*rest);
}

Result<void> change_files(const HooksOptions& options, AgentReport& report, const ConfigFile& file,
                          const ConfigFile& backup, const std::optional<std::string>& text) {
  if (options.action == "install") {
    if (report.hooks.state == HookState::absent && file.exists) {
      auto copy = backup;
      copy.mode = file.mode | 0200U;
      report.backup = backup.path;
      if (auto kept = write_config(copy, file.text); !kept) return kept;
    }
    return write_config(file, *text);
  }
  if (!text) return delete_config(file);
  if (auto written = write_config(file, *text); !written) return written;
  if (!backup.exists) return {};
  if (backup.text == *text) return delete_config(backup);
  report.backup = backup.path;
  return {};
}

void act(const HooksOptions& options, const HookTarget& target, AgentReport& report) {
  const auto& agent = *report.agent;
  const auto fail = [&](const Error& error) { report.error = error; };
  const auto path = file_of(agent, options);
  if (!path) return fail(path.error());
  report.file = *path;
  auto file = read_config(*path);
  if (!file) return fail(file.error());
  if (!file->exists && !options.project.empty()) file->mode = 0644;  // others share the project
  if (!options.project.empty())
    if (const auto allowed = check_inside(*file, options.project); !allowed)
      return fail(allowed.error());
  auto found = look(agent, file->text, target);
  if (!found) return fail(about_file(*file, found.error()));
  report.hooks = std::move(*found);
  if (agent.name == "codex" && !options.mcp) {
    const auto trust = read_config(path->parent_path() / "config.toml");
    report.untrusted = codex_hooks(file->text, trust ? trust->text : "").untrusted;
  }
  if (options.action == "status") return;
  if (const auto allowed = check_writable(*file); !allowed) return fail(allowed.error());
  // Hooks and servers may share a file; each keeps it as it was before its own install.
  const auto kept_as = backup_of(*file).string() + (options.mcp ? "-mcp" : "");
  const auto backup = read_config(kept_as);
  if (!backup) return fail(backup.error());
  // A project that others made may have a link in its place, to any file of this user.
  if (backup->path != kept_as)
    return fail({ErrorCode::invalid, kept_as + " is a link to " + backup->path.string() +
                                         ". Remove the link, then run the command again"});
  const auto text = text_after(options, agent, *file, *backup, target);
  if (!text) return fail(text.error());
  const auto after = text->value_or("");
  if (after == file->text && (text->has_value() || !file->exists)) return;
  report.change = options.action == "remove"                ? "removed"
                  : report.hooks.state == HookState::absent ? "installed"
                                                            : "updated";
  if (options.dry_run) {
    report.diff = unified_diff(file->text, after, file->exists ? file->path.string() : "/dev/null",
                               text->has_value() ? file->path.string() : "/dev/null", SIZE_MAX);
    return;
  }
  if (auto changed = change_files(options, report, *file, *backup, *text); !changed)
    return fail(changed.error());
  if (const auto now = look(agent, after, target)) report.hooks = *now;
}

std::string counted(std::size_t number, const std::string& noun) {
  return std::to_string(number) + " " + noun + (number == 1 ? "" : "s");
}

/// Says whether questions of the agent are held for people elsewhere, if that was asked for.
void print_hold(const HooksOptions& options, const AgentReport& report) {
  const auto held = report.hooks.hold_seconds;
  if (held > 0)
    print_line("  Its permission requests are held for up to " + std::to_string(held) +
               " s: answer them with `watchdog-monitor answer`, on the page or by a message.");
  else if (options.hold.value_or(0) > 0)
    print_line("  Its permission requests can be answered in its own terminal only.");
}

void print_change(const HooksOptions& options, const AgentReport& report) {
  const std::string name(report.agent->name);
  const auto file = terminal_line(report.file.string());
  const bool installs = options.action == "install";
  if (options.dry_run && !report.change.empty()) return print(report.diff);
  if (options.mcp) {
    print_line(name + ": " +
               (!report.change.empty() ? report.change + " the MCP server in "
                : installs             ? "the MCP server is already in "
                                       : "no MCP server of ours in ") +
               file);
  } else if (report.change.empty()) {
    print_line(name + ": " + (installs ? "already installed in " : "no hooks in ") + file);
  } else if (installs && report.agent->form == HookForm::plugin) {
    print_line(name + ": " + report.change + " the plugin in " + file);
  } else if (installs) {
    print_line(name + ": " + report.change + " " + counted(report.hooks.reporting.size(), "hook") +
               " in " + file);
  } else {
    print_line(name + ": removed the hooks from " + file);
  }
  if (!report.backup.empty())
    print_line("  The file as it was before: " + terminal_line(report.backup.string()));
  const bool is_done =
      report.agent->name == "codex" && report.untrusted.empty() && report.change.empty();
  if (installs && !report.agent->to_do.empty() && !is_done)
    print_line("  " + std::string(report.agent->to_do));
  if (installs && !options.mcp) print_hold(options, report);
  if (installs && report.hooks.switched_off)
    print_line("  " + name + " runs no hooks: \"disableAllHooks\" is true in this file.");
}

/// Returns the time of the newest report that came this way, of an agent's newest sessions; null:
/// none came.
nlohmann::json last_heard_in(const nlohmann::json& list, std::string_view way) {
  std::int64_t newest = -1;
  for (const auto& session : list.value("sessions", nlohmann::json::array()))
    for (const auto& source : session.value("sources", nlohmann::json::array()))
      if (source.value("source", "") == way)
        newest = std::max(newest, source.value("lastAt", std::int64_t{-1}));
  return newest < 0 ? nlohmann::json() : nlohmann::json(newest);
}

/// Asks the monitor for the newest sessions of each agent. A monitor that does not run is not an
/// error.
void add_last_sessions(const HooksOptions& options, const HookTarget& target,
                       std::vector<AgentReport>& reports) {
  auto endpoint = Endpoint::open({.server = target.server,
                                  .token_file = options.monitor.token_file,
                                  .ca_file = target.ca_file});
  for (auto& report : reports) {
    const auto body =
        endpoint
            ? endpoint->ask(Method::get,
                            "/api/autonomous/sessions?label=via:hooks&sort=newest&limit=1&agent=" +
                                std::string(report.agent->name))
            : endpoint.error();
    if (!body) return note("last sessions are unknown: " + body.error().message, options.json);
    const auto list = nlohmann::json::parse(*body, nullptr, false);
    if (!list.is_object() || !list.contains("sessions")) continue;
    const auto now = list.value("now", std::int64_t{0});
    if (!list["sessions"].empty())
      report.last_session = now - list["sessions"][0].value("createdAt", std::int64_t{0});
    const auto documents =
        endpoint->ask(Method::get, "/api/autonomous/progress?sort=newest&limit=100&agent=" +
                                       std::string(report.agent->name));
    const auto shown =
        documents ? nlohmann::json::parse(*documents, nullptr, false) : nlohmann::json();
    if (!shown.is_object()) continue;
    const auto heard = last_heard_in(shown, options.mcp ? "mcp" : "hooks");
    if (!heard.is_null())
      report.last_heard = std::max<std::int64_t>(now - heard.get<std::int64_t>(), 0);
  }
}

void print_status(const std::vector<AgentReport>& reports, bool is_mcp_list) {
  Table table({"AGENT", "PROGRAM", is_mcp_list ? "MCP" : "HOOKS", "SERVER", "LAST HEARD", "FILE"},
              {1, 3});
  for (const auto& report : reports) {
    auto hooks = report.error ? "refused" : std::string(name_of(report.hooks.state));
    if (!report.untrusted.empty())
      hooks += ", " + std::to_string(report.untrusted.size()) + " not trusted";
    if (report.hooks.switched_off) hooks += ", switched off";
    table.add({std::string(report.agent->name),
               report.program.empty() ? "not found" : terminal_line(report.program), hooks,
               report.hooks.server.empty() ? "–" : terminal_line(report.hooks.server),
               ago(report.last_heard), terminal_line(report.file.string())});
  }
  print(table.text(terminal_width()));
  for (const auto& report : reports)
    if (!report.untrusted.empty()) print_line(std::string(report.agent->to_do));
}

std::string as_json(const std::vector<AgentReport>& reports) {
  JsonWriter out;
  out.open_object().key("agents").open_array();
  const auto text = [&](std::string_view key, const std::string& value) {
    out.key(key);
    if (value.empty()) {
      out.value(nullptr);
    } else {
      out.value(value);
    }
  };
  const auto list = [&](std::string_view key, const std::vector<std::string>& values) {
    out.key(key).open_array();
    for (const auto& value : values) out.value(value);
    out.close_array();
  };
  for (const auto& report : reports) {
    out.open_object().field("agent", report.agent->name);
    text("program", report.program);
    text("file", report.file.string());
    text("hooks", report.error ? "" : std::string(name_of(report.hooks.state)));
    text("server", report.hooks.server);
    list("reporting", report.hooks.reporting);
    list("missing", report.hooks.missing);
    list("untrusted", report.untrusted);
    out.field("switchedOff", report.hooks.switched_off);
    out.field("holdSeconds", report.hooks.hold_seconds);
    const auto age = [&](std::string_view key, const nlohmann::json& value) {
      out.key(key);
      if (value.is_null()) {
        out.value(nullptr);
      } else {
        out.value(value.get<std::int64_t>());
      }
    };
    age("lastSessionMs", report.last_session);
    age("lastHeardMs", report.last_heard);
    text("change", report.change);
    text("backup", report.backup.string());
    text("toDo", std::string(report.agent->to_do));
    text("error", report.error ? report.error->message : "");
    out.close_object();
  }
  out.close_array().close_object();
  return out.finish();
}

int code_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::unavailable:
      return exit_failed;
    case ErrorCode::not_found:
      return exit_not_found;
    default:
      return exit_refused;
  }
}

/// Returns the agents that the command is about.
std::vector<AgentReport> chosen(const HooksOptions& options) {
  std::vector<AgentReport> reports;
  for (const auto& agent : options.mcp ? mcp_setups() : agent_setups()) {
    const bool is_named = std::ranges::any_of(options.agents, [&](const std::string& name) {
      const auto* found = setup_of(name);
      return found != nullptr && found->name == agent.name;
    });
    auto program = found_program(agent.programs);
    const bool by_itself = options.action != "install" || !program.empty();
    if (is_named || (options.agents.empty() && by_itself))
      reports.push_back({.agent = &agent, .program = std::move(program)});
  }
  return reports;
}

std::vector<std::string> agent_words() {
  std::vector<std::string> words;
  for (const auto& agent : agent_setups()) words.emplace_back(agent.name);
  for (const auto& agent : agent_setups())
    if (!agent.words.empty()) words.emplace_back(agent.words);
  return words;
}

}  // namespace

static int hooks(const HooksOptions& options) {
  const auto target = target_of(options);
  if (!target) {
    (void)complain(target.error());
    return exit_usage;
  }
  auto reports = chosen(options);
  if (reports.empty())
    return complain({ErrorCode::not_found,
                     "no program of a known agent is on the PATH. Name the agents to set up, for "
                     "example: watchdog-monitor hooks install codex"});
  if (options.action == "install")
    for (const auto& kept : {keep_token(options, *target), keep_authorities(options, *target)})
      if (!kept) return complain(kept.error());
  int code = exit_done;
  for (auto& report : reports) {
    act(options, *target, report);
    if (report.error) code = std::max(code, code_of(*report.error));
    if (report.error) {
      warn(std::string(report.agent->name) + ": " + terminal_line(report.error->message));
    } else if (!options.json && options.action != "status") {
      print_change(options, report);
    }
  }
  constexpr std::string_view curl = "curl";
  if (options.action == "install" && !options.mcp && found_program({&curl, 1}).empty())
    warn("curl is not on the PATH, and most hooks run it. Install curl");
  if (options.action == "status" && !options.mcp) add_last_sessions(options, *target, reports);
  if (options.json) print_json(as_json(reports));
  if (!options.json && options.action == "status") print_status(reports, options.mcp);
  return code;
}

void add_hooks(CommandLine& line) {
  const auto options = std::make_shared<HooksOptions>();
  auto* command = line.app.add_subcommand(
      "hooks", "Let coding agents report by their own hooks: install, remove, show");
  command->add_option("action", options->action, "What to do")
      ->required()
      ->check(one_of("action", {"install", "remove", "status"}));
  command->add_option("agent", options->agents, "The agents")
      ->check(one_of("agent", agent_words()));
  command->add_option(
      "--server", options->monitor.server,
      "URL of the monitor that the hooks report to (default: $WATCHDOG_SERVER, else what "
      "monitor.bind and monitor.port say: http://127.0.0.1:3000)");
  add_config(*command, options->monitor.sources);
  command->parse_complete_callback([options] { look_for_place(options->monitor, Uses::monitor); });
  command->add_option(
      "--token-file", options->monitor.token_file,
      "File of the monitor's tokens, if it requires one for reports. A token that may report and "
      "may not act is copied into a file that only you can read");
  command->add_option("--ca-file", options->monitor.ca_file,
                      "Certificates (PEM) to trust for the monitor besides those of the system. "
                      "They are copied to where the hooks find them");
  auto* project = command
                      ->add_option("--project", options->project,
                                   "Folder of a project: use its own files, not yours")
                      ->type_name("FOLDER");
  command->add_flag("--user", options->user, "Use your own files, for all projects (the default)")
      ->excludes(project);
  command->add_flag("--common", options->common,
                    "Install only hooks for events that old versions of the agent know");
  auto* hold =
      command
          ->add_option(
              "--hold", options->hold,
              "Let people answer permission requests elsewhere: by `answer`, the page or a "
              "message. The monitor holds each for up to SECONDS, while the agent's terminal "
              "takes an answer as well. 0 switches it off (default: as it is, at first off)")
          ->type_name("SECONDS")
          ->check(integer(0, hold_seconds_max));
  command
      ->add_flag("--mcp", options->mcp,
                 "The MCP server instead of hooks: register it in the agents' lists of servers")
      ->excludes(hold);
  command->add_flag("--dry-run", options->dry_run, "Change nothing; print the change as a diff");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([&line, options] {
    if (options->hold && options->action != "install")
      throw CLI::RequiresError("--hold", "install");
    line.code = hooks(*options);
  });
  command->footer(std::string(hooks_footer) + hooks_exit_codes);
}

}  // namespace watchdog::monitor
