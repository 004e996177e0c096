#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <utility>

#include "cli/commands.h"
#include "cli/session_reporting.h"
#include "run/wrapper.h"
#include "watchdog/ids.h"
#include "watchdog/json_writer.h"

namespace watchdog::monitor {
namespace {

/// Files 0, 1 and 2 are what they seem to be from now on, also where the caller closed them.
void open_standard_files() {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number)
    if (fcntl(number, F_GETFD) < 0) open("/dev/null", O_RDWR);
}

int misused(const std::string& message) {
  std::fprintf(stderr, "watchdog-monitor: %s\n", message.c_str());
  return exit_usage;
}

void print(const std::string& session, const Outcome& outcome, const WrapEnd& end) {
  JsonWriter out;
  out.open_object().field("session", session).field("outcome", name_of(outcome.kind));
  out.field("reason", outcome.reason).key("error");
  outcome.error.empty() ? out.value(nullptr) : out.value(outcome.error);
  out.field("exitCode", end.code).field("signal", end.signal).field("status", end.status());
  out.field("outputLines", end.lines).field("outputBytes", end.bytes).field("cpuMs", end.cpu_ms);
  out.key("holders").open_array();
  for (const auto& holder : end.holders) out.value(holder);
  out.close_array().close_object();
  std::fprintf(stderr, "%s\n", out.text().c_str());
}

/// What the command left running, for people.
Report left_running(const WrapEnd& end) {
  Report report;
  report.kind = ReportKind::message;
  report.name = "watchdog";
  report.content = "still holds the command's output:";
  for (const auto& holder : end.holders) report.content += " " + holder;
  return report;
}

}  // namespace

int wrap(const WrapOptions& options) {
  open_standard_files();
  ReportedSession session{
      .id = options.session.empty() ? new_ulid(system_clock().wall()) : options.session,
      .spec = {.agent = options.name, .task = options.task}};
  if (!is_session_id(session.id))
    return misused("--session must be 1 to 128 of A-Z a-z 0-9 . _ : @ -");
  if (session.spec.agent.empty())
    session.spec.agent = std::filesystem::path(options.command[0]).filename();
  if (const auto parent = environment("WATCHDOG_SESSION");
      is_session_id(parent) && parent != session.id)
    session.spec.parent = parent;
  if (const auto valid = check(session.spec); !valid) return misused(valid.error().message);

  WrapSpec spec{.words = options.command, .set = {"WATCHDOG_SESSION=" + session.id}};
  auto recognition = Recognition::of(options.state_changes, options.json_events);
  if (!recognition) return misused("--state-change-on: " + recognition.error().message);
  spec.recognition = std::move(*recognition);

  // As other commands choose, but that a file needs nobody to be there.
  auto server = options.endpoint.server;
  auto database = options.endpoint.database;
  if (server.empty() && database.empty()) server = environment("WATCHDOG_SERVER");
  std::optional<Endpoint> endpoint;
  if (server.empty()) {
    if (database.empty()) database = default_database();
    // Where the command goes to is no matter of this one.
    database = std::filesystem::absolute(database);
    spec.set.push_back("WATCHDOG_DB=" + database);
    spec.unset.emplace_back("WATCHDOG_SERVER");
  } else {
    auto opened = Endpoint::open({.server = server, .token_file = options.endpoint.token_file});
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
  if (end.code && !end.error.empty())
    std::fprintf(stderr, "watchdog-monitor: %s\n", end.error.c_str());
  if (!end.holders.empty()) reporting->say(left_running(end));
  const auto outcome = end.outcome(reporting->cancelled());
  if (auto kept = reporting->end(outcome); !kept)
    std::fprintf(stderr, "watchdog-monitor: the end of session %s is not kept: %s\n",
                 session.id.c_str(), kept.error().message.c_str());
  if (options.json) print(session.id, outcome, end);
  return end.status();
}

}  // namespace watchdog::monitor
