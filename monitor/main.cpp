#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <csignal>

#include "cli/commands.h"
#include "cli/log.h"
#include "cli/manual.h"
#include "cli/phrases.h"
#include "watchdog/wait_rule.h"

namespace watchdog::monitor {
namespace {

constexpr const char* footer =
    "Exit codes: 0 done, 1 failed, 2 usage, 3 refused, 4 unreachable, 5 not found, 130 "
    "interrupted.\n"
    "Data goes to standard output, logs to standard error.";

constexpr const char* config_footer =
    "A setting is taken from, the later the stronger: default, file, environment (the variable "
    "WATCHDOG_<SECTION>_<KEY>,\n"
    "and others that --sample names), command line. What is wrong is refused, all of it at once: 2 "
    "if only the command\n"
    "line is wrong, 3 if the file or a variable is.\n"
    "\n"
    "--json: {\"file\": path or null, \"settings\": [{\"key\", \"value\" (of a secret \"set\"; "
    "null: "
    "none), \"origin\",\n"
    "  \"where\", \"variables\", \"flag\"}]}\n"
    "\n";

constexpr const char* wait_footer =
    "What may be waited for: completed, failed, incomplete, cancelled, end (however), health=NAME, "
    "state-change (any, also a\n"
    "finished call), state-change=TYPE. It fails at once when the session ends otherwise or is "
    "dead, and when it stays stuck or\n"
    "looping for three further iterations. No time ends it. Of several sessions all are to come, "
    "and the first that fails decides.\n"
    "\n"
    "Exit codes: 0 it came (with end: completed), 1 it completed, but something else was waited "
    "for, 2 usage, 3 refused,\n"
    "4 unreachable, 5 not found, 10 failed, 11 incomplete, 12 cancelled, 13 stuck or looping, "
    "14 dead,\n"
    "15 user_cancelled_stuck, 130 interrupted.\n"
    "\n"
    "--json: an object a line for each session that is over: {\"session\", \"expected\", \"came\", "
    "\"end\" (null: it came; ended,\n"
    "  dead, stuck, user_cancelled_stuck, no_session, interrupted, unavailable, misuse), \"why\", "
    "\"exitCode\", \"progress\",\n"
    "  \"timeline\": [{\"at\", \"text\"}], \"omitted\"}\n"
    "Data goes to standard output, what went wrong and the progress to standard error.";

constexpr const char* score_footer =
    "An index is a JSON object a line: {\"id\": \"folder/file\" (without .jsonl), \"source\", "
    "\"label_loop\": true|false|null,\n"
    "\"outcome\": success|failure|unknown, \"task_key\", \"overlaps_whowhen\"}. Steps are {\"id\", "
    "\"seq\" of a tool call, \"label\",\n"
    "\"rel\"}; those of rel action_action are scored, and Repetition is what is to be found.\n"
    "\n"
    "--json: {\"detector\": version, \"sources\": [{\"source\" (null: all),\n"
    "  \"scores\": [{\"first_calls\" (null: all), \"runs\", \"loops\", \"no_loops\", "
    "\"successes\",\n"
    "    \"rules\": [{\"rule\", \"precision\", \"recall\", \"f1\", \"median_call\", "
    "\"false_alarms\", \"suspects\" (detector only)}]}],\n"
    "  \"judged_steps\", \"steps\": [{\"rule\", \"precision\", \"recall\", \"f1\"}]}], "
    "\"counted_once\": [id], \"not_in_index\", \"unread\",\n"
    "  with --list \"runs\": [{\"id\", \"label_loop\", \"outcome\", \"calls\", \"pooled\", "
    "\"suspect\", \"alarms\": {rule: notice}}]}\n"
    "Shares are {\"count\", \"of\", \"share\", \"low\", \"high\"}, a notice is null or {\"seq\", "
    "\"call\", \"pattern\"}.\n"
    "\n";

constexpr const char* wrap_footer =
    "Usage: watchdog-monitor run [OPTIONS] -- COMMAND [ARGUMENTS]\n"
    "\n"
    "Exit codes: that of the command; 128 + n if signal n ended it; 127: there is no such "
    "command,\n"
    "126: it cannot be run; 2 usage of this program. Without a monitor or a database the command\n"
    "runs all the same.\n"
    "\n"
    "The session ends completed with exit code 0, else failed (process_exited), or cancelled if\n"
    "somebody cancelled it: then the command gets SIGTERM, and SIGKILL if it is there a second "
    "later.\n"
    "Output and CPU time say that it works, not that it gets anywhere: that say lines that\n"
    "--state-change-on finds, --json-events, and progress shown on the terminal's icon (OSC 9;4).\n"
    "HUP, INT, QUIT, TERM, USR1 and USR2 are passed on, and so is the size of the terminal.\n"
    "\n"
    "Environment of the command, so that what it runs can report to the same session:\n"
    "  WATCHDOG_SESSION  the session's id; a session that is run within it has it as its parent\n"
    "  WATCHDOG_DB       the database file; or\n"
    "  WATCHDOG_SERVER   the monitor's URL; only one of the two is set\n"
    "\n"
    "--json: {\"session\", \"outcome\", \"reason\", \"error\", \"exitCode\", \"signal\", "
    "\"status\", \"outputLines\",\n"
    "  \"outputBytes\", \"cpuMs\", \"holders\": [what it left running that holds its output]}";

void add_endpoint(CLI::App& command, Endpoint::Options& endpoint) {
  auto* server = command.add_option(
      "--server", endpoint.server,
      "URL of a monitor (default: $WATCHDOG_SERVER, else http://127.0.0.1:3000)");
  command.add_option("--db", endpoint.database, "Read a database file instead of asking a monitor")
      ->excludes(server);
  command.add_option("--token-file", endpoint.token_file,
                     "File with the token to show (default: $WATCHDOG_TOKEN; to a monitor of this "
                     "machine that of monitor.token_file)");
  command.add_option("--ca-file", endpoint.ca_file,
                     "Certificates (PEM) that an https:// monitor may have besides those that the "
                     "system trusts");
}

/// The settings that have a flag, as options of the command.
void add_settings(CLI::App& command, const std::vector<SettingInfo>& settings, Sources& sources) {
  command.add_option_function<std::string>(
      "--config", [&](const std::string& path) { sources.file = path; },
      "File of settings; \"\": none (default: $WATCHDOG_CONFIG, else watchdog/watchdog.toml in "
      "$XDG_CONFIG_HOME or ~/.config)");
  for (const auto& setting : settings) {
    if (setting.flag.empty()) continue;
    auto& text = sources.flags;
    if (setting.allowed == "true or false" && !setting.flag.starts_with("--no-")) {
      command.add_flag_callback(
          setting.flag, [&text, key = setting.key] { text[key] = "true"; }, setting.help);
      continue;
    }
    if (setting.flag.starts_with("--no-")) {
      command.add_flag_callback(
          setting.flag, [&text, key = setting.key] { text[key] = "false"; },
          setting.key + " = false. " + setting.help);
      continue;
    }
    auto* option = command.add_option_function<std::string>(
        setting.flag, [&text, key = setting.key](const std::string& given) { text[key] = given; },
        setting.help);
    auto usual = setting.text;
    std::erase(usual, '"');
    if (!usual.empty()) option->default_str(usual);
  }
}

}  // namespace

int run(int argc, char** argv) {
  log_as(LogFormat::text);
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // a full disk is an error of a write, not a reason to die

  CLI::App app("Tells slow agents from stuck ones by what they report, never by a clock.",
               "watchdog-monitor");
  app.set_version_flag("--version", WATCHDOG_VERSION);
  app.require_subcommand(1);
  app.footer(footer);
  app.fallthrough(false);
  int code = exit_done;

  const auto all = all_settings();
  Sources serve_sources;
  auto* serve_command = app.add_subcommand("serve", "Watch a database and answer over HTTP");
  add_settings(*serve_command, all, serve_sources);
  serve_command->callback([&] {
    auto settings = configured(serve_sources);
    code = settings ? serve({.settings = std::move(*settings)}) : settings.error();
  });

  Sources proxy_sources;
  ProxyOptions proxy_options;
  proxy_options.endpoint.writes = true;
  auto* proxy_command = app.add_subcommand(
      "proxy",
      "Pass requests on to a model server, and tell a monitor what the agents do (serve --upstream "
      "does both)");
  auto proxy_settings = all;
  std::erase_if(proxy_settings, [](const auto& setting) {
    return !setting.key.starts_with("proxy.") && setting.flag != "--bind" &&
           !setting.flag.starts_with("--tls-") && setting.flag != "--log-format" &&
           setting.flag != "--behind-proxy";
  });
  for (auto& setting : proxy_settings)
    if (setting.key == "proxy.port") setting.flag = "--port";
  add_settings(*proxy_command, proxy_settings, proxy_sources);
  add_endpoint(*proxy_command, proxy_options.endpoint);
  proxy_command->callback([&] {
    auto settings = configured(proxy_sources);
    if (settings) proxy_options.settings = std::move(*settings);
    code = settings ? proxy(proxy_options) : settings.error();
  });

  Sources demo_sources;
  DemoOptions demo_options;
  auto* demo_command =
      app.add_subcommand("demo",
                         "Start a monitor with ten agents: a real one, one whose tools hang, one "
                         "that knows nothing of it, a "
                         "quick, a slow, a stuck, a looping, a frozen, a waiting and a dying one");
  demo_command->add_option("--db", demo_options.database,
                           "Database file (default: a temporary one)");
  demo_command->add_option(
      "--agent", demo_options.agent,
      "Program that plays the agents (default: watchdog-demo-agent beside this one)");
  auto demo_settings = all;
  std::erase_if(demo_settings, [](const auto& setting) { return setting.key == "monitor.db"; });
  add_settings(*demo_command, demo_settings, demo_sources);
  demo_command->callback([&] {
    auto settings = configured(demo_sources);
    if (settings) demo_options.settings = std::move(*settings);
    code = settings ? demo(demo_options, std::filesystem::read_symlink("/proc/self/exe"))
                    : settings.error();
  });

  ConfigOptions config_options;
  auto* config_command = app.add_subcommand(
      "config",
      "Every setting, its value, and where that came from: default, file, environment or "
      "command line");
  add_settings(*config_command, all, config_options.sources);
  auto* config_json = config_command->add_flag("--json", config_options.json, "Print one object");
  auto* config_check = config_command->add_flag("--check", config_options.check,
                                                "Only say whether all is right, by the exit code");
  config_command
      ->add_flag("--sample", config_options.sample, "Print a file with every setting, explained")
      ->excludes(config_json)
      ->excludes(config_check);
  config_check->excludes(config_json);
  config_command->callback([&] { code = config(config_options); });

  StatusOptions status_options;
  auto* status_command = app.add_subcommand("status", "How one session is, and why");
  status_command->add_option("session", status_options.session, "Session id")->required();
  status_command->add_flag("--json", status_options.json, "Print the progress document");
  add_endpoint(*status_command, status_options.endpoint);
  status_command->callback([&] { code = status(status_options); });

  SessionsOptions sessions_options;
  auto* sessions_command = app.add_subcommand("sessions", "List sessions, newest first");
  sessions_command->add_option("--health", sessions_options.health,
                               "Only of this health, e.g. stuck");
  sessions_command->add_option("--lifecycle", sessions_options.lifecycle,
                               "Only of this lifecycle, e.g. running");
  sessions_command->add_option("--agent", sessions_options.agent, "Only of this agent");
  sessions_command->add_option("--label", sessions_options.label,
                               "Only with this label, key:value");
  sessions_command->add_option("--parent", sessions_options.parent,
                               "Only children of this session");
  sessions_command->add_option("--search", sessions_options.text,
                               "Only with this text in id, agent or task");
  sessions_command->add_option("--limit", sessions_options.limit, "At most so many")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  sessions_command->add_flag("--json", sessions_options.json, "A progress document a line");
  add_endpoint(*sessions_command, sessions_options.endpoint);
  sessions_command->callback([&] { code = sessions(sessions_options); });

  WatchOptions watch_options;
  auto* watch_command = app.add_subcommand(
      "watch", "The sessions as a live list: keys to sort, filter, open and cancel (? tells them)");
  watch_command->add_option("--limit", watch_options.limit, "The newest so many")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000));
  watch_command->add_flag("--json", watch_options.json,
                          "A session's row a line, whenever it changed; needs no terminal");
  add_endpoint(*watch_command, watch_options.endpoint);
  watch_command->callback([&] { code = watch(watch_options); });

  EventsOptions events_options;
  auto* events_command = app.add_subcommand("events", "A session's events, oldest first");
  events_command->add_option("session", events_options.session, "Session id")->required();
  events_command->add_option("--kind", events_options.kind, "Only of this kind, e.g. state_change");
  events_command->add_option("--after", events_options.after, "Only after this seq")
      ->check(CLI::NonNegativeNumber);
  auto* events_limit =
      events_command->add_option("--limit", events_options.limit, "At most so many")
          ->capture_default_str()
          ->check(CLI::PositiveNumber);
  events_command->add_flag("--all", events_options.all, "All of them")->excludes(events_limit);
  events_command
      ->add_flag("--follow,-f", events_options.follow, "All of them, and then each that comes")
      ->excludes(events_limit);
  events_command->add_flag("--json", events_options.json, "An event a line");
  add_endpoint(*events_command, events_options.endpoint);
  events_command->callback([&] { code = events(events_options); });

  ExplainOptions explain_options;
  auto* explain_command =
      app.add_subcommand("explain", "How a session's health came about, with what proves it");
  explain_command->add_option("session", explain_options.session, "Session id")->required();
  auto* explain_limit =
      explain_command
          ->add_option("--limit", explain_options.limit, "The newest so many changes of health")
          ->capture_default_str()
          ->check(CLI::PositiveNumber);
  explain_command->add_flag("--all", explain_options.all, "All of them")->excludes(explain_limit);
  explain_command->add_flag("--json", explain_options.json, "Print one object");
  add_endpoint(*explain_command, explain_options.endpoint);
  explain_command->callback([&] { code = explain(explain_options); });

  TurnsOptions turns_options;
  auto* turns_command =
      app.add_subcommand("turns", "Turns that run now, those of the newest session first");
  turns_command->add_option("--limit", turns_options.limit, "At most so many")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000));
  turns_command->add_flag("--json", turns_options.json, "A turn a line");
  add_endpoint(*turns_command, turns_options.endpoint);
  turns_command->callback([&] { code = turns(turns_options); });

  AlertsOptions alerts_options;
  auto* alerts_command = app.add_subcommand(
      "alerts", "What people were told, the newest first, and how the channels are");
  alerts_command->add_option("--session", alerts_options.session, "Only of this session");
  alerts_command->add_option("--limit", alerts_options.limit, "At most so many")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000));
  auto* alerts_ack = alerts_command
                         ->add_option("--ack", alerts_options.acknowledge,
                                      "Say that this alert is known: nothing more until it is over")
                         ->check(CLI::PositiveNumber);
  auto* alerts_snooze = alerts_command
                            ->add_option("--snooze", alerts_options.snooze,
                                         "Nothing more of an alert's session for so many minutes")
                            ->type_name("ID MINUTES")
                            ->expected(2)
                            ->excludes(alerts_ack);
  auto* alerts_test =
      alerts_command
          ->add_option("--test", alerts_options.test,
                       "Send a message by this channel of the settings, and say what comes back")
          ->excludes(alerts_ack)
          ->excludes(alerts_snooze);
  alerts_command
      ->add_option_function<std::string>(
          "--config", [&](const std::string& path) { alerts_options.sources.file = path; },
          "File of settings, as of serve")
      ->needs(alerts_test);
  alerts_command->add_flag("--json", alerts_options.json, "Print one object");
  add_endpoint(*alerts_command, alerts_options.endpoint);
  alerts_command->callback([&] { code = alerts(alerts_options); });

  CancelOptions cancel_options;
  auto* cancel_command = app.add_subcommand(
      "cancel", "Ask a session's agent to stop; or only a turn, or one tool call of it");
  auto* cancelled_session =
      cancel_command->add_option("session", cancel_options.session, "Session id");
  auto* cancelled_turn =
      cancel_command
          ->add_option("--turn", cancel_options.turn, "Only this turn, instead of a session")
          ->excludes(cancelled_session);
  cancel_command->add_option("--call", cancel_options.call, "Only this tool call of the turn")
      ->needs(cancelled_turn);
  cancel_command->add_option("--reason", cancel_options.reason, "Why; the agent is told");
  cancel_command->add_flag("--json", cancel_options.json, "Print the answer as JSON");
  add_endpoint(*cancel_command, cancel_options.endpoint);
  cancel_command->callback([&] {
    if (cancel_options.session.empty() && cancel_options.turn.empty()) {
      throw CLI::RequiredError("session or --turn");
    }
    code = cancel(cancel_options);
  });

  WaitOptions wait_options;
  auto* wait_command = app.add_subcommand(
      "wait", "Wait until sessions end, or for anything else, and never for a time");
  wait_command->add_option("session", wait_options.sessions, "Session ids")->required();
  wait_command->add_option("--for", wait_options.until, "What to wait for")
      ->capture_default_str()
      ->check([](const std::string& text) {
        const auto until = awaited_from(text);
        return until ? std::string() : until.error().message;
      });
  wait_command
      ->add_option("--on-stuck", wait_options.on_stuck,
                   "What to do when it stays stuck: ask on the terminal (without one: fail), fail, "
                   "or keep waiting")
      ->capture_default_str()
      ->check(CLI::IsMember({"ask", "fail", "keep"}));
  wait_command->add_flag("--any", wait_options.any, "Over with the first session that comes");
  wait_command->add_flag("--must-exist", wait_options.must_exist,
                         "A session that is not there is an error (5), and not waited for");
  wait_command->add_flag("--restarts", wait_options.restarts,
                         "Somebody starts the agent again when it dies: that its process is gone "
                         "is no end until its health is dead");
  wait_command->add_flag("--json", wait_options.json, "An object a line");
  add_endpoint(*wait_command, wait_options.endpoint);
  wait_command->callback([&] { code = wait(wait_options); });

  CheckOptions check_options;
  auto* check_command = app.add_subcommand(
      "check", "Ask a model whether a session gets anywhere, beside its agent, and wait for it");
  check_command->add_option("session", check_options.session, "Session id")->required();
  check_command->add_flag("--no-wait", check_options.no_wait,
                          "Only begin; the answer is kept as an event of the session");
  check_command->add_flag("--json", check_options.json, "Print the check as an object");
  add_endpoint(*check_command, check_options.endpoint);
  check_command->callback([&] { code = check(check_options); });

  ReportOptions report_options;
  auto* report_command = app.add_subcommand(
      "report", "What the old time limits would have cost, of runs that were compared with them");
  report_command->add_option("--agent", report_options.agent, "Only of this agent");
  report_command->add_flag("--json", report_options.json, "Print one object");
  add_endpoint(*report_command, report_options.endpoint);
  report_command->callback([&] { code = report(report_options); });

  AuditOptions audit_options;
  auto* audit_command = app.add_subcommand("audit", "Who acted: cancels, aborts, logins, …");
  auto* audit_limit =
      audit_command->add_option("--limit", audit_options.limit, "The newest so many")
          ->capture_default_str()
          ->check(CLI::PositiveNumber);
  audit_command->add_flag("--all", audit_options.all, "All of them")->excludes(audit_limit);
  audit_command->add_flag("--json", audit_options.json, "An act a line");
  add_endpoint(*audit_command, audit_options.endpoint);
  audit_command->callback([&] { code = audit(audit_options); });

  ForgetOptions forget_options;
  auto* forget_command = app.add_subcommand(
      "forget", "Take ended sessions out of the database so that no byte of them is left");
  forget_command->add_option("session", forget_options.sessions, "Session ids");
  forget_command
      ->add_option("--ended-before", forget_options.ended_days, "And all that ended DAYS ago")
      ->check(CLI::NonNegativeNumber);
  forget_command->add_flag("--force", forget_options.force,
                           "Running sessions too; they come back with their next report");
  forget_command->add_flag("--yes", forget_options.yes, "Do not ask");
  forget_command->add_flag("--json", forget_options.json, "Print the answer as JSON");
  add_endpoint(*forget_command, forget_options.endpoint);
  forget_command->callback([&] {
    if (forget_options.sessions.empty() && !forget_options.ended_days) {
      throw CLI::RequiredError("session or --ended-before");
    }
    code = forget(forget_options);
  });

  BackupOptions backup_options;
  auto* backup_command = app.add_subcommand(
      "backup", "Copy the database as it is at this moment; agents and monitor go on");
  backup_command->add_option("file", backup_options.file, "The copy; it must not be there yet")
      ->required();
  backup_command->add_option("--db", backup_options.database,
                             "Database file (default: $WATCHDOG_DB, else the usual one)");
  backup_command->add_flag("--json", backup_options.json, "Print one object");
  backup_command->callback([&] { code = backup(backup_options); });

  DoctorOptions doctor_options;
  auto* doctor_command = app.add_subcommand(
      "doctor",
      "What a model's server is, what can be known of it, which clients will give up, what to "
      "change");
  doctor_command
      ->add_option("--upstream", doctor_options.upstream,
                   "URL of the model's server, with or without /v1")
      ->required();
  doctor_command->add_option("--key-file", doctor_options.key_file,
                             "File whose first line is the key to show to the server");
  doctor_command->add_option("--ca-file", doctor_options.ca_file,
                             "Certificates (PEM) that it may have besides those that the system "
                             "trusts");
  doctor_command->add_flag("--json", doctor_options.json, "Print one object");
  doctor_command->callback([&] { code = doctor(doctor_options); });

  WrapOptions wrap_options;
  auto* wrap_command = app.add_subcommand(
      "run", "Run any command as a session; it notices nothing, and no limit of time ends it");
  wrap_command->add_option("--name", wrap_options.name,
                           "Who it is, in lists (default: the command)");
  wrap_command->add_option("--task", wrap_options.task, "What it is to do, for people");
  wrap_command->add_option("--session", wrap_options.session,
                           "Session id (default: a fresh one); of one that has ended: once more");
  wrap_command
      ->add_option("--state-change-on", wrap_options.state_changes,
                   "A line in which this expression (RE2) is found says that it got somewhere; may "
                   "be given several times")
      ->type_name("REGEX")
      ->allow_extra_args(false);
  wrap_command->add_flag("--json-events", wrap_options.json_events,
                         "Lines that are events, as they are posted, are reported as such");
  wrap_command->add_flag("--json", wrap_options.json,
                         "In the end print one object about it to standard error");
  wrap_command->add_option("command", wrap_options.command, "After --: the command, its arguments")
      ->required();
  add_endpoint(*wrap_command, wrap_options.endpoint);
  wrap_command->get_option("--server")
      ->description(
          "Report to a monitor (default: "
          "$WATCHDOG_SERVER, else into the database)");
  wrap_command->get_option("--db")->description(
      "Report into this database file, monitor or not (default: $WATCHDOG_DB, else the usual one)");
  wrap_command->callback([&] { code = wrap(wrap_options); });

  ReplayOptions replay_options;
  auto* replay_command = app.add_subcommand(
      "replay", "Feed recorded runs through the same door and say what is concluded");
  replay_command->add_option("traces", replay_options.traces, "Trace files, a JSON object a line")
      ->required();
  replay_command->add_option("--db", replay_options.database,
                             "Keep them in this database (default: in memory)");
  replay_command
      ->add_option("--pace", replay_options.pace, "max, or recorded: wait as long as the run did")
      ->capture_default_str()
      ->check(CLI::IsMember({"max", "recorded"}));
  replay_command
      ->add_option("--first-calls", replay_options.first_calls, "Stop before tool call K + 1")
      ->check(CLI::PositiveNumber);
  replay_command->add_flag("--json", replay_options.json, "An object a line");
  replay_command->callback([&] { code = replay(replay_options); });

  ScoreOptions score_options;
  auto* score_command = app.add_subcommand(
      "score", "Compare what is concluded of labelled runs with their labels, beside other rules");
  score_command->add_option("traces", score_options.traces, "Trace files, a JSON object a line")
      ->required();
  score_command->add_option("--index", score_options.index, "Labels of the runs")->required();
  score_command->add_option("--steps", score_options.steps,
                            "Labels of single steps (default: steps.jsonl beside the index)");
  score_command->add_flag("--list,--verbose", score_options.list, "Every run as well");
  score_command->add_flag("--json", score_options.json, "Print one object");
  score_command->callback([&] { code = score(score_options); });

  std::string shell;
  auto* completion_command =
      app.add_subcommand("completion", "Print a shell's completion script, to be sourced by it");
  completion_command->add_option("shell", shell, "Which shell")
      ->required()
      ->check(CLI::IsMember({"bash"}));
  completion_command->callback([&] { print(bash_completion(app)); });
  app.add_subcommand("man", "Print the manual page, for man")->callback([&] {
    print(man_page(app));
  });

  for (auto* command : app.get_subcommands({})) command->footer(footer);
  config_command->footer(std::string(config_footer) + footer);
  score_command->footer(std::string(score_footer) + footer);
  wrap_command->footer(wrap_footer);
  wait_command->footer(wait_footer);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? exit_done : exit_usage;
  } catch (const std::exception& error) {
    spdlog::error("{}", error.what());
    return exit_failed;
  }
  return code;
}

}  // namespace watchdog::monitor

int main(int argc, char** argv) {
  return watchdog::monitor::run(argc, argv);
}
