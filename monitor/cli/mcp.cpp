// One message a line, on standard input and output. The main thread reads; the loop's thread
// answers and writes. When the input ends, waits end at once, and the rest has a moment to be
// answered: `printf … | watchdog-monitor mcp` prints its answers.
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>

#include "api/version.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/endpoint_source.h"
#include "facts/ids.h"
#include "mcp/peer.h"

namespace watchdog::monitor {
namespace {

struct McpOptions {
  Endpoint::Options endpoint;
};

constexpr std::chrono::seconds last_answers{5};

constexpr const char* mcp_footer =
    "A client of the Model Context Protocol starts this program and speaks with it: one JSON-RPC "
    "message a line. Revisions: 2026-07-28, 2025-11-25, 2025-06-18 and 2025-03-26.\n"
    "Tools: agents, agent, explain, bundle, wait, report, check, cancel, abort_call. `report` is "
    "about "
    "$WATCHDOG_SESSION unless it names a session.\n"
    "A running monitor answers the same at /mcp, over HTTP.\n"
    "\n";

/// Writes a line. A client that takes no more is gone, and with it the reason to run.
void write_line(std::string line) {
  line += '\n';
  for (std::string_view rest = line; !rest.empty();) {
    const auto written = ::write(STDOUT_FILENO, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) std::_Exit(exit_failed);
    rest.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// Passes on each line of standard input. A longer one than is allowed is passed on cut, so that
/// it is answered with an error, and the rest of it is skipped.
void read_lines(const std::function<void(std::string)>& accept) {
  std::string line;
  bool skips = false;
  std::string piece(64 * 1024, '\0');
  while (true) {
    const auto got = ::read(STDIN_FILENO, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return;
    std::string_view rest(piece.data(), static_cast<std::size_t>(got));
    while (!rest.empty()) {
      const auto end = rest.find('\n');
      if (!skips) line += rest.substr(0, end);
      if (end != rest.npos || line.size() > mcp::message_bytes_max) {
        if (line.find_first_not_of(" \t\r") != line.npos) accept(std::exchange(line, {}));
        line.clear();
        skips = end == rest.npos;
      }
      rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    }
  }
}

/// The server of one client. Its members go in the order that ends their threads first.
struct StdioServer {
  explicit StdioServer(const Endpoint::Options& endpoint)
      : context{loop, own_version(), as_session_id(environment("WATCHDOG_SESSION"))},
        source(std::make_shared<EndpointSource>(endpoint)),
        peer(std::make_shared<mcp::Peer>(
            context, source, [](const mcp::json& message) { write_line(mcp::line_of(message)); })) {
  }

  void accept(const std::string& line) {
    const auto send = [](const mcp::json& message, bool) { write_line(mcp::line_of(message)); };
    if (line.size() > mcp::message_bytes_max) {
      send(mcp::response_of({.code = mcp::rpc_invalid_request,
                             .message = "a message may have at most " +
                                        std::to_string(mcp::message_bytes_max) + " bytes"}),
           true);
      return;
    }
    const auto message = mcp::message_from(line);
    if (!message) return send(mcp::response_of(message.error()), true);
    (void)peer->accept(*message, source, send);
  }

  void notify_when_idle(const std::shared_ptr<std::promise<void>>& idle) {
    if (peer->is_idle()) return idle->set_value();
    loop.after(Millis{10}, [this, idle] { notify_when_idle(idle); });
  }

  mcp::LoopThread loop;
  mcp::ServerContext context;
  std::shared_ptr<EndpointSource> source;
  std::shared_ptr<mcp::Peer> peer;
};

}  // namespace

static int mcp_server(const McpOptions& options) {
  StdioServer server(options.endpoint);
  read_lines([&server](std::string line) {
    server.loop.post([&server, line = std::move(line)] { server.accept(line); });
  });
  const auto idle = std::make_shared<std::promise<void>>();
  server.loop.post([&server, idle] {
    server.peer->end_waits();
    server.notify_when_idle(idle);
  });
  // A monitor that does not answer keeps nobody here.
  (void)idle->get_future().wait_for(last_answers);
  std::_Exit(exit_done);
}

void add_mcp(CommandLine& line) {
  const auto options = std::make_shared<McpOptions>();
  auto* command =
      line.app.add_subcommand("mcp", "Serve agents by the Model Context Protocol, on stdin/stdout");
  add_endpoint(*command, options->endpoint);
  command->footer(std::string(mcp_footer) + exit_codes);
  command->callback([&line, options] {
    line.code = with_settings(options->endpoint.sources, [&] { return mcp_server(*options); });
  });
}

}  // namespace watchdog::monitor
