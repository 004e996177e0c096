#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/usage.h"
#include "terminal/output.h"

namespace watchdog::monitor {

namespace {

struct ReadyOptions {
  Endpoint::Options endpoint;
  int wait_seconds = 0;
  bool json = false;
};

/// Asks once. Returns nothing if reports can be stored, else why not.
std::optional<Error> unready(const Endpoint::Options& options) {
  auto endpoint = Endpoint::open(options);
  if (!endpoint) return endpoint.error();
  const auto body = endpoint->ask(Method::get, "/readyz");
  return body ? std::nullopt : std::optional(body.error());
}

/// An answer of another program, or a refused token, does not become better by waiting.
bool may_change(const Error& error) {
  return error.code == ErrorCode::unavailable;
}

int ready(const ReadyOptions& options) {
  using namespace std::chrono_literals;
  const auto& endpoint = options.endpoint;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(options.wait_seconds);
  auto error = unready(endpoint);
  while (error && may_change(*error) && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(200ms);
    error = unready(endpoint);
  }
  if (options.json) {
    nlohmann::json answer{{"ready", !error}, {"server", endpoint.server}};
    if (error) answer["reason"] = error->message;
    print_json(answer.dump());
  } else if (!error) {
    print("ready\n");
  }
  return error ? complain(*error) : exit_done;
}

}  // namespace

void add_ready(CommandLine& line) {
  const auto options = std::make_shared<ReadyOptions>();
  auto* command = line.app.add_subcommand(
      "ready", "Check that a monitor runs and can store reports; for scripts and containers");
  command
      ->add_option("--wait", options->wait_seconds,
                   "Ask again for this long while there is no good answer")
      ->type_name("SECONDS")
      ->capture_default_str()
      ->check(integer(0, 86'400));
  command->add_flag("--json", options->json, "Print a JSON object: ready, server, reason");
  add_server(*command, options->endpoint);
  command->callback([&line, options] { line.code = ready(*options); });
}

}  // namespace watchdog::monitor
