// One loop reads the rows when a second is over, draws, and waits for a key until the next read.
// `SessionListModel` decides what a key means. If the read fails, the last rows stay and the error
// is a line at the bottom: the monitor may only be restarting. `--json` needs no screen: it prints
// a row that differs from its last one, apart from the time of reading.
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/usage.h"
#include "terminal/output.h"
#include "terminal/phrases.h"
#include "terminal/screen.h"
#include "terminal/session_list_model.h"
#include "terminal/table.h"

namespace watchdog::monitor {
namespace {

struct WatchOptions {
  Endpoint::Options endpoint;
  int limit = 1'000;
  bool json = false;
};

using nlohmann::json;
using SteadyClock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds look_again_every{1'000};

Result<std::string> ask_rows(Endpoint& endpoint, const WatchOptions& options) {
  return endpoint.ask(Method::get,
                      "/api/autonomous/sessions?limit=" + std::to_string(options.limit));
}

/// Returns the lines of one open session.
std::vector<std::string> details_of(Endpoint& endpoint, const std::string& session,
                                    std::size_t events_max) {
  const auto path = "/api/autonomous/sessions/" + url_encoded(session);
  const auto body = endpoint.ask(Method::get, "/api/autonomous/progress/" + url_encoded(session));
  if (!body) return {"", body.error().message};
  const auto document = json::parse(*body);
  std::vector<std::string> lines{
      "", session + "  " + coloured(condition_of(document)) + "  " + reason_in(document)};
  if (const auto because = explanation_in(document); !because.empty())
    lines.push_back("  " + because);
  for (const char* name : {"agent", "task", "currentPhase", "iteration"}) {
    if (const auto text = shown(document, name); text != "–")
      lines.push_back("  " + std::string(name) + ": " + text);
  }
  if (const auto server = server_in(document); !server.empty())
    lines.push_back("  model server: " + server);
  for (const auto& proof : document["evidence"])
    lines.push_back("  event " + shown(proof, "seq") + ": " + shown(proof, "note"));
  lines.emplace_back();
  const auto newest =
      endpoint.ask(Method::get, path + "/events?before=" + std::to_string(INT64_MAX) +
                                    "&limit=" + std::to_string(events_max));
  if (!newest) return lines;
  const auto page = json::parse(*newest);
  for (const auto& event : page["events"]) lines.push_back(event_line(event));
  return lines;
}

std::string cancelled(Endpoint& endpoint, const std::string& session) {
  const auto body =
      endpoint.act(Method::post, "/api/autonomous/sessions/" + url_encoded(session) + "/cancel",
                   R"({"reason":"cancelled from the terminal"})");
  if (!body) return body.error().message;
  return json::parse(*body).value("message", session + " is asked to stop");
}

/// Prints each changed row, until its reader is gone or it is interrupted.
int watch_as_lines(Endpoint& endpoint, const WatchOptions& options) {
  std::map<std::string, std::string> known;
  while (true) {
    const auto body = ask_rows(endpoint, options);
    if (!body) return complain(body.error());
    const auto list = json::parse(*body);
    for (auto row : list["sessions"]) {
      const auto now = row["now"];
      row.erase("now");
      auto& last = known[row["sessionId"]];
      auto text = row.dump();
      if (last == text) continue;
      last = std::move(text);
      row["now"] = now;
      print_json(row.dump());
    }
    if (std::fflush(stdout) != 0) return exit_done;
    poll(nullptr, 0, static_cast<int>(look_again_every.count()));
  }
}

}  // namespace

static int watch(const WatchOptions& options) {
  auto endpoint_options = options.endpoint;
  endpoint_options.writes = !options.json && !endpoint_options.database.empty();
  auto endpoint = Endpoint::open(endpoint_options);
  if (!endpoint) return complain(endpoint.error());
  auto body = ask_rows(*endpoint, options);
  if (!body) return complain(body.error());
  if (options.json) return watch_as_lines(*endpoint, options);
  auto screen = Screen::claim();
  if (!screen) {
    warn("watch needs a terminal; use sessions, or watch --json");
    return exit_usage;
  }

  SessionListModel model;
  bool open = false;
  auto next = SteadyClock::now();
  while (true) {
    if (SteadyClock::now() >= next) {
      next = SteadyClock::now() + look_again_every;
      body = ask_rows(*endpoint, options);
      // It may only be starting again: what was seen last stays.
      body ? model.update(session_rows_from(*body)) : model.note(body.error().message);
      if (open) model.show_details(details_of(*endpoint, model.selected(), screen->height()));
    }
    screen->draw(model.lines(screen->width(), screen->height()));
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        next - SteadyClock::now() + std::chrono::milliseconds(1));
    const auto key = screen->key(std::max(left, std::chrono::milliseconds(0)));
    if (!key) continue;
    switch (model.press(*key)) {
      case SessionListModel::Act::none:
        break;
      case SessionListModel::Act::quit:
        return *key == "interrupt" ? exit_interrupted : exit_done;
      case SessionListModel::Act::open:
      case SessionListModel::Act::look:
        next = SteadyClock::now();
        break;
      case SessionListModel::Act::cancel:
        model.note(cancelled(*endpoint, model.selected()));
        break;
    }
    open = model.is_open();
  }
}

void add_watch(CommandLine& line) {
  const auto options = std::make_shared<WatchOptions>();
  auto* command = line.app.add_subcommand(
      "watch", "Show sessions as a live list, with keys to sort, filter, open and cancel");
  command->add_option("--limit", options->limit, "Number of newest sessions to show")
      ->capture_default_str()
      ->check(integer(1, 10'000));
  command->add_flag("--json", options->json,
                    "Print a session as JSON whenever it changes, one per line; needs no terminal");
  add_endpoint(*command, options->endpoint);
  command->callback([&line, options] { line.code = watch(*options); });
}

}  // namespace watchdog::monitor
