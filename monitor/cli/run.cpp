// The order matters. Files 0 to 2 are opened first, so no later descriptor becomes standard output
// by chance. All usage errors come before the wrapper is prepared, which needs a process with one
// thread; the threads of the reporting start after it. A monitor or a database that is away only
// causes a warning: the command runs, and its exit code is this program's. The database's path is
// made absolute, because the command may work elsewhere.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <memory>
#include <utility>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/session_reporting.h"
#include "cli/usage.h"
#include "facts/ids.h"
#include "store/server.h"
#include "terminal/output.h"
#include "text/json_writer.h"
#include "watchdog/terminal_text.h"
#include "wrapper/wrapper.h"

namespace watchdog::monitor {
namespace {

struct WrapOptions {
  Endpoint::Options endpoint;
  std::string session;  ///< Empty: a fresh id.
  std::string name;     ///< Of the agent; empty: the command's.
  std::string task;
  std::vector<std::string> labels;         ///< KEY:VALUE
  std::vector<std::string> state_changes;  ///< Expressions for lines that show progress.
  bool json_events = false;                ///< Lines may be events.
  bool json = false;                       ///< How it ended, to standard error.
  std::vector<std::string> command;        ///< Not empty.
};

constexpr const char* wrap_footer =
    "Usage: watchdog-monitor run [OPTIONS] -- COMMAND [ARGUMENTS]\n"
    "\n"
    "Exit codes:\n"
    "  n  the command ended with this code, or n is 1: its output cannot be written\n"
    "  128+n  signal n ended the command\n"
    "  127  the command does not exist\n"
    "  126  the command cannot be run\n"
    "  2  usage\n"
    "  3  settings are wrong\n"
    "\n"
    "The command also runs without a monitor or a database.\n"
    "\n"
    "The session ends completed with exit code 0, else failed (process_exited), or cancelled if "
    "someone cancelled it: then the command gets SIGTERM, and SIGKILL one second later. Output and "
    "CPU time show that the command works. Progress is shown by lines that match "
    "--state-change-on, by --json-events, by the output of claude -p --output-format stream-json, "
    "and by progress on the terminal's icon (OSC 9;4). HUP, "
    "INT, QUIT, TERM, USR1 and USR2 are passed on, and so is the size of the terminal.\n"
    "\n"
    "The command's environment lets the programs that it runs report to the same session:\n"
    "  WATCHDOG_SESSION  the session's id; a session that is run within it becomes its child\n"
    "  WATCHDOG_DB  the database file, or\n"
    "  WATCHDOG_SERVER  the monitor's URL; only one of the two is set\n"
    "\n"
    "--json: {\"session\", \"outcome\", \"reason\", \"error\", \"exitCode\", \"signal\", "
    "\"status\", \"outputLines\", \"outputBytes\", \"cpuMs\", \"holders\": [processes left running "
    "that hold its output]}";

/// Files 0, 1 and 2 are what they seem to be from now on. Returns those that the caller closed.
std::array<bool, 3> open_standard_files() {
  std::array<bool, 3> closed{};
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) {
    if (fcntl(number, F_GETFD) >= 0) continue;
    closed[static_cast<std::size_t>(number)] = true;
    open("/dev/null", O_RDWR);
  }
  return closed;
}

int misused(const std::string& message) {
  warn(message);
  return exit_usage;
}

void print(const std::string& session, const Outcome& outcome, const WrapEnd& end) {
  JsonWriter out;
  out.open_object().field("session", session).field("outcome", name_of(outcome.kind));
  out.field("reason", outcome.reason).key("subject");
  outcome.subject.empty() ? out.value(nullptr) : out.value(outcome.subject);
  out.key("error");
  outcome.error.empty() ? out.value(nullptr) : out.value(outcome.error);
  out.field("exitCode", end.code).field("signal", end.signal).field("status", end.status());
  out.field("outputLines", end.lines).field("outputBytes", end.bytes).field("cpuMs", end.cpu_ms);
  out.key("holders").open_array();
  for (const auto& holder : end.holders) out.value(holder);
  out.close_array().close_object();
  print_error(terminal_json(out.finish()) + "\n");
}

/// Returns a report of the processes that the command left running.
Report left_running(const WrapEnd& end) {
  Report report;
  report.kind = ReportKind::message;
  report.name = "watchdog";
  report.content = "still holds the command's output:";
  for (const auto& holder : end.holders) report.content += " " + holder;
  return report;
}

}  // namespace

static int wrap(const WrapOptions& options, const std::vector<int>& ignored) {
  const auto closed = open_standard_files();
  ReportedSession session{
      .id = options.session.empty() ? new_ulid(system_clock().wall()) : options.session,
      .spec = {.agent = options.name, .task = options.task}};
  for (const auto& label : options.labels) {
    const auto colon = label.find(':');
    session.spec.labels[label.substr(0, colon)] = label.substr(colon + 1);
  }
  session.spec.labels["via"] = "run";
  if (!is_session_id(session.id))
    return misused("--session must be 1 to 128 of A-Z a-z 0-9 . _ : @ -");
  if (session.spec.agent.empty())
    session.spec.agent = std::filesystem::path(options.command[0]).filename();
  if (const auto parent = as_session_id(environment("WATCHDOG_SESSION"));
      !parent.empty() && parent != session.id)
    session.spec.parent = parent;
  if (const auto valid = check(session.spec); !valid) return misused(valid.error().message);

  WrapSpec spec{.words = options.command,
                .set = {"WATCHDOG_SESSION=" + session.id},
                .closed = closed,
                .ignored = ignored};
  spec.unset.emplace_back("WATCHDOG_TOKEN");  // it may do more than to report
  auto recognition = Recognition::of(options.state_changes, options.json_events);
  if (!recognition) return misused("--state-change-on: " + recognition.error().message);
  spec.recognition = std::move(*recognition);

  const auto& server = options.endpoint.server;
  auto database = options.endpoint.database;
  std::optional<Endpoint> endpoint;
  if (server.empty()) {
    if (is_server_url(database)) {
      return misused(
          "--db names a database on a server, to which only monitors write. Start one with "
          "watchdog-monitor serve --db URL, and name it with --server");
    }
    // The command's own directory does not matter here.
    database = std::filesystem::absolute(database);
    spec.set.push_back("WATCHDOG_DB=" + database);
    spec.unset.emplace_back("WATCHDOG_SERVER");
  } else {
    auto opened = Endpoint::open(options.endpoint);
    if (!opened) return misused(opened.error().message);
    endpoint.emplace(std::move(*opened));
    spec.set.push_back("WATCHDOG_SERVER=" + server);
    spec.unset.emplace_back("WATCHDOG_DB");
  }

  auto wrapper = Wrapper::prepare(std::move(spec));
  if (!wrapper) return complain(wrapper.error());
  const auto reporting = endpoint ? report_to_server(session, std::move(*endpoint))
                                  : report_to_file(session, database);
  const auto end = (*wrapper)->run(*reporting);
  if (!end.error.empty()) warn(end.error);
  if (!end.holders.empty()) reporting->say(left_running(end));
  const auto outcome = end.outcome(reporting->cancelled());
  if (auto kept = reporting->end(outcome); !kept)
    warn("the end of session " + session.id + " is not kept: " + kept.error().message);
  if (options.json) print(session.id, outcome, end);
  return end.status();
}

void add_run(CommandLine& line) {
  const auto options = std::make_shared<WrapOptions>();
  auto* command =
      line.app.add_subcommand("run", "Run a command as a session; no time limit ends it");
  command->add_option("--name", options->name, "Name of the agent in lists (default: the command)");
  command->add_option("--task", options->task, "Task of the session, for people");
  command->add_option("--session", options->session,
                      "Session id (default: a new one); an ended session starts another attempt");
  command
      ->add_option("--label", options->labels,
                   "A label of the session, for people and filters; may be given several times")
      ->type_name("KEY:VALUE")
      ->check(label())
      ->allow_extra_args(false);
  command
      ->add_option("--state-change-on", options->state_changes,
                   "A line that matches this expression (RE2) counts as a state change; may be "
                   "given several times")
      ->type_name("REGEX")
      ->allow_extra_args(false);
  command->add_flag("--json-events", options->json_events,
                    "Report lines that are events in JSON as events");
  command->add_flag("--json", options->json,
                    "At the end print one JSON object about the run to standard error");
  command->add_option("command", options->command, "The command and its arguments, after --")
      ->required();
  add_endpoint(*command, options->endpoint, Uses::file);
  command->callback([&line, options] {
    line.code =
        with_settings(options->endpoint.sources, [&] { return wrap(*options, line.ignored); });
  });
  command->footer(wrap_footer);
}

}  // namespace watchdog::monitor
