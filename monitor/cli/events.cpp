// `Printing` keeps the number of the last event and skips all up to it, so a repeated page or a
// resumed stream prints nothing twice. `--follow` prints the stored events first. Then it reads a
// file every 250 ms, or opens the monitor's stream behind the last event, again and again. It ends
// with an error of the file, with a refusal of the monitor, or when nobody reads the output. A
// monitor that is away is reported once for each absence.
#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/session_choice.h"
#include "cli/usage.h"
#include "core/sse_reader.h"
#include "terminal/output.h"
#include "terminal/phrases.h"
#include "text/nearest.h"

namespace watchdog::monitor {
namespace {

struct EventsOptions {
  Endpoint::Options endpoint;
  SessionChoice choice;
  std::string session;  ///< The id of the chosen one.
  std::string kind;
  Seq after = 0;
  int limit = 100;
  bool all = false;
  bool follow = false;  ///< All of them, and then those that come.
  bool json = false;
};

using nlohmann::json;

/// Between two looks into a file, and two tries to reach a monitor that is gone.
constexpr int look_again_ms = 250;

/// Prints events in their order, and remembers how far it is.
class Printing {
 public:
  explicit Printing(const EventsOptions& options) : options_(options), after_(options.after) {}

  [[nodiscard]] Seq after() const noexcept { return after_; }

  void print(json event) {
    const auto seq = event.value("seq", Seq{0});
    if (seq <= after_) return;
    after_ = seq;
    if (!options_.kind.empty() && event.value("kind", "") != options_.kind) return;
    event.erase("sessionId");  // of whom is known
    options_.json ? print_json(event.dump()) : print_line(event_line(event));
  }

  /// Prints the present events, at most `count_max`. Errors: the endpoint's.
  Result<void> print_pages(Endpoint& endpoint, std::int64_t count_max) {
    while (count_max > 0) {
      std::string target = path() + "/events?after=" + std::to_string(after_) +
                           "&limit=" + std::to_string(std::min<std::int64_t>(count_max, 1'000));
      if (!options_.kind.empty()) target += "&kind=" + url_encoded(options_.kind);
      const auto body = endpoint.ask(Method::get, target);
      if (!body) return body.error();
      const auto page = json::parse(*body);
      for (const auto& event : page["events"]) print(event);
      count_max -= static_cast<std::int64_t>(page["events"].size());
      if (page["next"].is_null()) break;
    }
    return {};
  }

  /// Returns whether there are events after the printed ones.
  [[nodiscard]] bool has_more(Endpoint& endpoint) const {
    std::string target = path() + "/events?limit=1&after=" + std::to_string(after_);
    if (!options_.kind.empty()) target += "&kind=" + url_encoded(options_.kind);
    const auto body = endpoint.ask(Method::get, target);
    return body && !json::parse(*body)["events"].empty();
  }

  [[nodiscard]] std::string path() const {
    return "/api/autonomous/sessions/" + url_encoded(options_.session);
  }

 private:
  const EventsOptions& options_;
  Seq after_;
};

/// Follows until it is interrupted, or its reader is gone.
int follow_file(Endpoint& endpoint, Printing& printing) {
  while (std::fflush(stdout) == 0) {
    poll(nullptr, 0, look_again_ms);
    if (auto printed = printing.print_pages(endpoint, INT64_MAX); !printed)
      return complain(printed.error());
  }
  return exit_done;
}

int follow_server(MonitorClient& client, Printing& printing) {
  bool reported = false;
  while (true) {
    SseReader reader;
    bool read = true;
    const auto target =
        printing.path() + "/stream?include=events&after=" + std::to_string(printing.after()) + ".0";
    const auto response = client.listen(target, "",
                                        [&](std::string_view bytes) {
                                          reported = false;
                                          (void)reader.feed(bytes, [&](const SseRecord& record) {
                                            if (record.event == "event")
                                              printing.print(json::parse(record.data));
                                            return true;
                                          });
                                          return read = std::fflush(stdout) == 0;
                                        },
                                        {});
    if (!read) return exit_done;
    if (response && response->status != 503) return complain(error_from(*response));
    if (!response && !std::exchange(reported, true))
      warn("the monitor does not answer; retrying until it does");
    poll(nullptr, 0, look_again_ms);
  }
}

}  // namespace

static int events(EventsOptions options) {
  auto endpoint = Endpoint::open(options.endpoint);
  if (!endpoint) return complain(endpoint.error());
  auto session = session_of(*endpoint, options.choice);
  if (!session) return complain(session.error());
  options.session = std::move(*session);
  Printing printing(options);
  const bool all = options.all || options.follow;
  if (auto printed = printing.print_pages(*endpoint, all ? INT64_MAX : options.limit); !printed)
    return complain(printed.error());
  if (!options.follow) {
    if (!all && printing.has_more(*endpoint)) {
      note("later events are not shown; use --all, or --after " + std::to_string(printing.after()),
           options.json);
    }
    return exit_done;
  }
  if (options.endpoint.server.empty()) return follow_file(*endpoint, printing);
  auto client = Endpoint::connect(options.endpoint);
  return client ? follow_server(*client, printing) : complain(client.error());
}

void add_events(CommandLine& line) {
  const auto options = std::make_shared<EventsOptions>();
  auto* command = line.app.add_subcommand("events", "List a session's events, oldest first");
  add_session(*command, options->choice);
  command->add_option("--kind", options->kind, "Only events of this kind, e.g. state_change")
      ->type_name("KIND")
      ->check(one_of("kind", all_names<ReportKind>(), Listed::no));
  command->add_option("--after", options->after, "Only events after this number (seq)")
      ->check(integer(0));
  auto* events_limit = command->add_option("--limit", options->limit, "Largest number to show")
                           ->capture_default_str()
                           ->check(integer(1, INT32_MAX));
  command->add_flag("--all", options->all, "Show all")->excludes(events_limit);
  command->add_flag("--follow,-f", options->follow, "All events, then new ones as they come")
      ->excludes(events_limit);
  command->add_flag("--json", options->json, "Print one event (JSON) per line");
  add_endpoint(*command, options->endpoint);
  command->callback([&line, options] {
    need_session(options->choice);
    line.code = events(*options);
  });
}

}  // namespace watchdog::monitor
