#include <spdlog/spdlog.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdio>
#include <unordered_set>

#include "cli/commands.h"
#include "cli/entrance.h"
#include "cli/log.h"
#include "cli/pass_through.h"
#include "watchdog/ids.h"
#include "watchdog/json.h"

namespace watchdog::monitor {
namespace {

/// Tells a monitor, or a database, what passes through.
class Teller {
 public:
  explicit Teller(Endpoint endpoint) : endpoint_(std::move(endpoint)) {}

  /// Takes out what is kept, and what never will be.
  void keep(std::vector<Batch>& batches) {
    std::size_t kept = 0;
    for (auto& batch : batches) {
      const auto told = tell(batch);
      if (!told && told.error().code == ErrorCode::unavailable) {
        complain_once(told.error());
        break;
      }
      if (!told) spdlog::warn("session {}: {}", batch.session, told.error().message);
      ++kept;
    }
    if (kept == batches.size() && silent_) {
      spdlog::info("what passes through is kept again");
      silent_ = false;
    }
    batches.erase(batches.begin(), batches.begin() + static_cast<std::ptrdiff_t>(kept));
  }

 private:
  Result<void> tell(Batch& batch) {
    constexpr std::size_t known_max = 65'536;
    if (!known_.contains(batch.session)) {
      auto spec = to_json(batch.spec);
      spec.insert(1, "\"sessionId\":\"" + batch.session + "\"" + (spec == "{}" ? "" : ","));
      const auto made = endpoint_.ask(Method::post, "/api/autonomous/sessions", spec);
      // Conflict: it is there, as somebody else described it.
      if (!made && made.error().code != ErrorCode::conflict) return made.error();
      if (known_.size() >= known_max) known_.clear();
      known_.insert(batch.session);
    }
    std::string lines;
    for (auto& report : batch.reports) {
      // Told twice, it happened once.
      if (report.event_id.empty() && report.kind != ReportKind::heartbeat)
        report.event_id = new_uuid7(system_clock().wall());
      Event event;
      event.report = report;
      lines += to_json(event) + "\n";
    }
    if (lines.empty()) return {};
    const auto answer = endpoint_.ask(
        Method::post, "/api/autonomous/sessions/" + url_encoded(batch.session) + "/events", lines);
    return answer.ok() ? Result<void>{} : Result<void>(answer.error());
  }

  void complain_once(const Error& error) {
    if (!silent_)
      spdlog::warn("what passes through cannot be kept now: {}. Requests go on", error.message);
    silent_ = true;
  }

  Endpoint endpoint_;
  std::unordered_set<std::string> known_;
  bool silent_ = false;
};

}  // namespace

int proxy(const ProxyOptions& options) {
  log_as(options.settings.monitor.log_format);
  if (options.settings.proxy.upstream.empty()) {
    std::fprintf(stderr,
                 "watchdog-monitor: --upstream URL is needed: where is the model server?\n");
    return exit_usage;
  }
  if (auto added = add_redactions(options.settings.privacy); !added) return complain(added.error());
  // As agents that share a file do, it makes one that is missing.
  if (const auto database = Endpoint::address_of(options.endpoint).database; !database.empty()) {
    if (auto made = Store::open({.database = database}); !made) return complain(made.error());
  }
  auto endpoint = Endpoint::open(options.endpoint);
  if (!endpoint) return complain(endpoint.error());
  auto gate = gate_for(options.settings);
  if (!gate) return complain(gate.error());
  Teller teller(std::move(*endpoint));
  auto through =
      PassThrough::start(options.settings, std::move(*gate),
                         {.keep = [&](std::vector<Batch>& batches) { teller.keep(batches); }});
  if (!through) {
    spdlog::error(through.error().message);
    return through.error().code == ErrorCode::invalid ? exit_refused : exit_failed;
  }
  boost::asio::io_context context(1);
  boost::asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&](const boost::system::error_code&, int) {
    std::signal(SIGINT, [](int) { std::_Exit(exit_interrupted); });
    std::signal(SIGTERM, [](int) { std::_Exit(exit_interrupted); });
    (*through)->stop();
  });
  std::printf("listening on %s\n%s\n", (*through)->proxy().url().c_str(),
              base_url_advice((*through)->proxy()).c_str());
  std::fflush(stdout);
  context.run();
  (*through)->wait_until_done();
  return exit_done;
}

}  // namespace watchdog::monitor
