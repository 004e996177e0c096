#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/phrases.h"
#include "cli/sse_reader.h"

namespace watchdog::monitor {
namespace {

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
    print_line(options_.json ? event.dump() : event_line(event));
  }

  /// What there is, at most so many. Errors: what the endpoint says.
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

  [[nodiscard]] std::string path() const {
    return "/api/autonomous/sessions/" + url_encoded(options_.session);
  }

 private:
  const EventsOptions& options_;
  Seq after_;
};

/// Until it is interrupted, or nobody reads.
int follow_file(Endpoint& endpoint, Printing& printing) {
  while (std::fflush(stdout) == 0) {
    poll(nullptr, 0, look_again_ms);
    if (auto printed = printing.print_pages(endpoint, INT64_MAX); !printed)
      return complain(printed.error());
  }
  return exit_done;
}

int follow_server(MonitorClient& client, Printing& printing) {
  bool told = false;
  while (true) {
    SseReader reader;
    bool read = true;
    const auto target =
        printing.path() + "/stream?include=events&after=" + std::to_string(printing.after()) + ".0";
    const auto response = client.listen(target, "",
                                        [&](std::string_view bytes) {
                                          told = false;
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
    if (!response && !std::exchange(told, true))
      std::fputs("watchdog-monitor: the monitor does not answer; it is waited for\n", stderr);
    poll(nullptr, 0, look_again_ms);
  }
}

}  // namespace

int events(const EventsOptions& options) {
  auto endpoint = Endpoint::open(options.endpoint);
  if (!endpoint) return complain(endpoint.error());
  Printing printing(options);
  const bool all = options.all || options.follow;
  if (auto printed = printing.print_pages(*endpoint, all ? INT64_MAX : options.limit); !printed)
    return complain(printed.error());
  if (!options.follow) return exit_done;
  if (Endpoint::address_of(options.endpoint).server.empty())
    return follow_file(*endpoint, printing);
  auto client = Endpoint::connect(options.endpoint);
  return client ? follow_server(*client, printing) : complain(client.error());
}

}  // namespace watchdog::monitor
