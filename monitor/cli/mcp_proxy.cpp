// The client's messages pass whether or not a monitor can be reached: reports have a thread of
// their own. A session that the agent names is the agent's: nothing here begins or ends it. Without
// such a name the call belongs to the session of its trace, else to one that the proxy has of its
// own.
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "cli/call_reports.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/remote_proxy.h"
#include "cli/stdio_proxy.h"
#include "facts/ids.h"
#include "terminal/output.h"

namespace watchdog::monitor {
namespace {

struct McpProxyOptions {
  Endpoint::Options endpoint;
  std::string session;
  std::string name;
  double deadline_seconds = 120;
  double kill_after_seconds = 0;
  std::vector<std::string> headers;  ///< `NAME: VALUE`, of requests to a URL.
  std::vector<std::string> words;    ///< A command with its arguments, or a URL.

  [[nodiscard]] bool has_url() const {
    return words.size() == 1 &&
           (words[0].starts_with("http://") || words[0].starts_with("https://"));
  }
};

constexpr const char* mcp_proxy_footer =
    "Usage: watchdog-monitor mcp-proxy [OPTIONS] -- COMMAND [ARGUMENTS]\n"
    "       watchdog-monitor mcp-proxy [OPTIONS] URL\n"
    "\n"
    "An MCP client starts this program instead of a tool server. This program starts the server, "
    "or "
    "asks the one at the URL (streamable HTTP). All messages pass unchanged; what the server "
    "prints "
    "beside them is shown on standard error. Each call of a tool "
    "is reported to the agent's session: "
    "--session, $WATCHDOG_SESSION, the session that opencode and Codex name with the call, "
    "$CLAUDE_CODE_SESSION_ID, else a session of its own. Telemetry of the call's trace "
    "(_meta.traceparent) is surer than the last.\n"
    "\n"
    "A call may take as long as it moves: its progress rises or has new words, the server sends "
    "messages, or its task changes. While the server's processes use CPU or disks, the deadline is "
    "put off up to "
    "ten times. A call that does not move is cancelled, and the client gets a result that says so. "
    "Nothing is ever sent twice.\n"
    "\n"
    "Exit codes: the server's, or 128 + a signal; 126 it cannot be run, 127 it does not exist, 2 "
    "usage, 3 settings are wrong.";

/// Whose session a call belongs to.
class CallSessions {
 public:
  explicit CallSessions(const McpProxyOptions& options) : name_(options.name) {
    fixed_ =
        options.session.empty() ? as_session_id(environment("WATCHDOG_SESSION")) : options.session;
    usual_ = as_session_id(environment("CLAUDE_CODE_SESSION_ID"));
    if (!has_own()) return;
    own_ = "mcp-" + new_ulid(system_clock().wall());
  }

  [[nodiscard]] bool has_own() const { return fixed_.empty() && usual_.empty(); }

  void add(CallReports& reports, const mcp::CallOwner& named, const std::string& client,
           Report report, std::size_t open) {
    const auto& owner = !fixed_.empty()          ? fixed_
                        : !named.session.empty() ? named.session
                        : !usual_.empty()        ? usual_
                                                 : own_;
    SessionSpec spec{.agent = client.empty() ? "mcp-client" : client,
                     .labels = {{"via", "mcp-proxy"}, {"tool_server", name_}}};
    if (const auto valid = check(spec); !valid) spec.agent = "mcp-client";
    if (owner != own_) return reports.add(owner, spec, std::move(report));
    using Part = CallReports::Part;
    const bool is_end = report.kind == ReportKind::tool_result ||
                        report.kind == ReportKind::tool_timeout || is_failure(report.kind);
    const auto call = report.call_id;
    if (report.kind == ReportKind::tool_call && !has_begun_) {
      has_begun_ = named.trace.empty();
      Report start;
      start.kind = ReportKind::start;
      start.detail = this_process();
      reports.add_own(own_, spec, std::move(start), {Part::begin, call, named.trace});
    }
    spec_ = spec;
    reports.add_own(own_, spec, std::move(report),
                    {is_end ? Part::call_end : Part::call, call, named.trace});
    if (!is_end || open > 0) return;
    Report idle;
    idle.kind = ReportKind::idle;
    reports.add_own(own_, spec, std::move(idle), {.part = Part::rest});
  }

  /// The client is gone, and with it a session that only the proxy reports.
  void end(CallReports& reports) {
    if (!has_own()) return;
    Report report;
    report.kind = ReportKind::end;
    report.detail = Outcome{.stated = false};
    reports.add_own(own_, spec_, std::move(report), {.part = CallReports::Part::end});
  }

 private:
  std::string name_;
  std::string fixed_;
  std::string usual_;
  std::string own_;
  SessionSpec spec_;
  bool has_begun_ = false;  ///< For sure.
};

std::optional<Millis> millis_of(double seconds) {
  if (seconds <= 0) return std::nullopt;
  return Millis{static_cast<std::int64_t>(seconds * 1'000)};
}

using Headers = std::vector<std::pair<std::string, std::string>>;

/// `NAME: VALUE`; a value `$VARIABLE` is that of the environment. Errors: `invalid`.
Result<Headers> headers_of(const std::vector<std::string>& lines) {
  Headers headers;
  for (const auto& line : lines) {
    const auto colon = line.find(':');
    const auto name = line.substr(0, colon);
    const auto begin = colon == std::string::npos ? colon : line.find_first_not_of(' ', colon + 1);
    if (name.empty() || begin == std::string::npos)
      return Error{ErrorCode::invalid, "--header must be \"NAME: VALUE\""};
    auto value = line.substr(begin);
    if (const auto variable = value.rfind('$'); variable != std::string::npos)
      value = value.substr(0, variable) + environment(value.substr(variable + 1).c_str());
    const auto is_control = [](unsigned char letter) { return letter < ' '; };
    if (std::ranges::any_of(name + value, is_control))
      return Error{ErrorCode::invalid, "--header must not have control characters"};
    headers.emplace_back(name, value);
  }
  return headers;
}

int misused_header(const Error& error) {
  warn(error.message);
  return exit_usage;
}

/// The name of the server in the session: its program, or its URL.
std::string program_name(const std::string& word) {
  if (word.starts_with("http")) return word;
  return word.substr(word.find_last_of('/') + 1);
}

}  // namespace

static int mcp_proxy(McpProxyOptions options) {
  if (!options.session.empty() && !is_session_id(options.session)) {
    warn("--session must be 1 to 128 of A-Z a-z 0-9 . _ : @ -");
    return exit_usage;
  }
  if (options.name.empty()) options.name = program_name(options.words.front());
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, number);
  // Before any thread: threads inherit it.
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  CallSessions sessions(options);
  StdioProxyOptions proxy{.words = options.words,
                          .kill_after = millis_of(options.kill_after_seconds)};
  proxy.book.idle = millis_of(options.deadline_seconds);
  proxy.book.token_prefix = "watchdog-" + new_ulid(system_clock().wall()).substr(16);
  proxy.book.names_calls = sessions.has_own();
  std::unique_ptr<RemoteServer> remote;
  if (options.has_url()) {
    auto headers = headers_of(options.headers);
    if (!headers) return misused_header(headers.error());
    auto made = RemoteServer::to({.url = options.words[0],
                                  .headers = std::move(*headers),
                                  .ca_file = options.endpoint.ca_file});
    if (!made) return complain(made.error());
    remote = std::move(*made);
  }
  int code = 0;
  {
    CallReports reports(options.endpoint, "mcp",
                        [](const std::string& words) { print_error("watchdog: " + words + "\n"); });
    const CallSink sink = [&](const mcp::CallOwner& owner, const std::string& client, Report report,
                              std::size_t open) {
      sessions.add(reports, owner, client, std::move(report), open);
    };
    code = remote ? run_remote_proxy(*remote, proxy.book, sink) : run_stdio_proxy(proxy, sink);
    sessions.end(reports);
  }
  remote.reset();
  // A thread that waits for a monitor must not outlive what it uses.
  std::_Exit(code);
}

void add_mcp_proxy(CommandLine& line) {
  const auto options = std::make_shared<McpProxyOptions>();
  auto* command = line.app.add_subcommand(
      "mcp-proxy", "Run a tool server of MCP, and give up calls of it that do not move");
  command
      ->add_option("--deadline", options->deadline_seconds,
                   "Longest time without movement of a call; 0: none (default: 120)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 86'400.0).description(""));
  command
      ->add_option("--kill-after", options->kill_after_seconds,
                   "End the server this long after a call was given up, if it is still at work and "
                   "no other call is open; 0: never (default: 0)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.0, 86'400.0).description(""));
  command->add_option("--session", options->session, "Session of all calls");
  command->add_option("--name", options->name,
                      "Name of the tool server in sessions (default: its program)");
  command
      ->add_option("--header", options->headers,
                   "Header of each request to a URL; $VARIABLE at its end is taken from the "
                   "environment; may be given several times")
      ->type_name("\"NAME: VALUE\"")
      ->allow_extra_args(false);
  command
      ->add_option("command", options->words,
                   "The tool server and its arguments, after --; or its URL")
      ->required();
  add_endpoint(*command, options->endpoint);
  command->callback([&line, options] {
    line.code = with_settings(options->endpoint.sources, [&] { return mcp_proxy(*options); });
  });
  command->footer(mcp_proxy_footer);
}

}  // namespace watchdog::monitor
