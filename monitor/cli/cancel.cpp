// The request itself goes through the API. `--kill` then acts on this machine. It waits for the
// grace, sends SIGTERM to the process group, and SIGKILL if the process remains for 2 s. A pid may
// be used again, so each signal follows a check of the process's start time; without that time
// nothing is signalled. The pidfd is opened before the check, so what was checked is what is waited
// for. If this command shares the group, only the process gets the signal.
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "terminal/output.h"
#include "terminal/phrases.h"
#include "terminal/table.h"
#include "watchdog/session.h"
#include "wrapper/file_descriptor.h"

namespace watchdog::monitor {

using nlohmann::json;

namespace {

struct CancelOptions {
  Endpoint::Options endpoint;
  std::string session;  ///< It or a turn.
  std::string turn;
  std::string call;  ///< Only this one of the turn; empty: all of it.
  std::string reason;
  bool kill = false;          ///< End its process group, too, if it is on this machine.
  double grace_seconds = 10;  ///< For the agent to leave by itself before that.
  bool json = false;
};

std::string target_of(const CancelOptions& options) {
  if (options.turn.empty()) {
    return "/api/autonomous/sessions/" + url_encoded(options.session) + "/cancel";
  }
  const auto turn = "/api/turns/" + url_encoded(options.turn);
  return options.call.empty() ? turn + "/abort" : turn + "/abort-tool/" + url_encoded(options.call);
}

/// The process of a session, as its newest start names it; nothing: none does.
Result<std::optional<ProcessFacts>> process_of(Endpoint& endpoint, const std::string& session) {
  const auto body = endpoint.ask(
      Method::get, "/api/autonomous/sessions/" + url_encoded(session) +
                       "/events?kind=start&before=" + std::to_string(INT64_MAX) + "&limit=100");
  if (!body) return body.error();
  const auto page = json::parse(*body);
  std::optional<ProcessFacts> newest;
  std::int64_t newest_seq = 0;
  for (const auto& event : page["events"]) {
    const auto seq = event.value("seq", std::int64_t{0});
    if (event.value("pid", 0) <= 0 || seq < newest_seq) continue;
    newest_seq = seq;
    newest = ProcessFacts{.pid = event.value("pid", std::int64_t{0}),
                          .start_ticks = event.value("start_ticks", std::int64_t{0}),
                          .boot_id = event.value("boot_id", std::string()),
                          .host = event.value("host", std::string())};
  }
  return newest;
}

/// True once the process is gone. Waits for that, at most `time`.
bool leaves_within(const ProcessFacts& process, std::chrono::milliseconds time) {
  const FileDescriptor handle(
      static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(process.pid), 0)));
  if (is_running(process) != true) return true;  // seen after opening, so the handle is the process
  pollfd ended{handle.get(), POLLIN, 0};
  const auto end = std::chrono::steady_clock::now() + time;
  auto left = time;
  while (left.count() > 0 && poll(&ended, 1, static_cast<int>(left.count())) < 0 && errno == EINTR)
    left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
  return ended.revents != 0 || is_running(process) != true;
}

/// Signals the group of a process, or that process alone if this program is in the same group.
/// While the process lives, no other one can have its pid or group; it is checked right before, so
/// that no later process is hit. Returns false without permission.
bool signal_group(const ProcessFacts& process, int signal) {
  const auto pid = static_cast<pid_t>(process.pid);
  const auto group = getpgid(pid);
  if (is_running(process) != true) return true;
  const bool shared = group <= 1 || group == getpgrp();
  return kill(shared ? pid : -group, signal) == 0 || errno == ESRCH;
}

int cannot_kill(const std::string& why) {
  warn("nothing was killed: " + why);
  return exit_failed;
}

/// Gives the agent time to leave, then ends its process group.
int kill_agent(Endpoint& endpoint, const CancelOptions& options) {
  constexpr std::chrono::milliseconds last_words{2'000};
  const auto process = process_of(endpoint, options.session);
  if (!process) return complain(process.error());
  if (!*process)
    return cannot_kill(
        "the process of " + options.session +
        " is not known. It is known of agents on the monitor's machine, outside of containers");
  const auto& facts = **process;
  const auto name = "process " + std::to_string(facts.pid);
  const auto runs = is_running(facts);
  if (!runs)
    return cannot_kill(name + " is on another machine: " + facts.host + ". Run this command there");
  const auto grace =
      std::chrono::milliseconds{static_cast<std::int64_t>(options.grace_seconds * 1'000)};
  if (leaves_within(facts, grace)) {
    note(name + " has left by itself", options.json);
    return exit_done;
  }
  if (facts.start_ticks == 0)
    return cannot_kill("nothing tells " + name + " from a later one of the same number");
  if (!signal_group(facts, SIGTERM))
    return cannot_kill(name + " belongs to somebody else: " + std::strerror(errno));
  const bool left = leaves_within(facts, last_words);
  if (!left) (void)signal_group(facts, SIGKILL);
  if (!left && !leaves_within(facts, last_words)) return cannot_kill(name + " does not end");
  note("ended the process group of " + name + (left ? " (SIGTERM)" : " (SIGKILL)"), options.json);
  return exit_done;
}

}  // namespace

static int cancel(const CancelOptions& options) {
  auto endpoint_options = options.endpoint;
  endpoint_options.writes = true;
  auto endpoint = Endpoint::open(endpoint_options);
  if (!endpoint) return complain(endpoint.error());
  const auto body =
      endpoint->ask(Method::post, target_of(options), json{{"reason", options.reason}}.dump());
  if (!body) return complain(body.error());
  if (options.json) {
    print_json(*body);
  } else if (!options.turn.empty()) {
    print_line("abort requested; the agent will see it with its next report");
  } else {
    const auto answer = json::parse(*body);
    print_line(answer.value("message", "cancel requested"));
  }
  return options.kill ? kill_agent(*endpoint, options) : exit_done;
}

void add_cancel(CommandLine& line) {
  const auto sources = std::make_shared<Sources>();
  const auto options = std::make_shared<CancelOptions>();
  auto* command = line.app.add_subcommand(
      "cancel", "Ask an agent to stop its session, or only a turn or tool call");
  auto* cancelled_session = command->add_option("session", options->session, "Session id");
  auto* cancelled_turn = command->add_option("--turn", options->turn, "Abort only this turn")
                             ->excludes(cancelled_session);
  command->add_option("--call", options->call, "Abort only this tool call of the turn")
      ->needs(cancelled_turn);
  command->add_option("--reason", options->reason, "Reason, which the agent gets");
  auto* kill_option =
      command
          ->add_flag(
              "--kill", options->kill,
              "End the agent's process group, too, if its process is known and on this machine")
          ->excludes(cancelled_turn);
  command
      ->add_option("--grace", options->grace_seconds,
                   "Seconds for the agent to leave by itself before that")
      ->needs(kill_option)
      ->check(CLI::Range(0.0, 3'600.0))
      ->capture_default_str();
  command->add_flag("--json", options->json, "Print the answer as JSON");
  add_endpoint(*command, options->endpoint);
  add_config(*command, *sources);
  command->callback([&line, options, sources] {
    if (options->session.empty() && options->turn.empty()) {
      throw CLI::RequiredError("session or --turn");
    }
    line.code = with_settings(*sources, [&] { return cancel(*options); });
  });
}

}  // namespace watchdog::monitor
