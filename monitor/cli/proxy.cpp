// `BatchSender` sends batches in their order, and stops at the first that the receiver cannot take
// now: the rest comes again. Batches that are refused for another reason are logged and dropped,
// because they would be refused again. Each report except a heartbeat gets its event id before the
// first try, so a repeated one is stored once. Texts are redacted here, because the monitor may
// have other patterns. The answers also say which sessions are cancelled.
#include <spdlog/spdlog.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/listen_config.h"
#include "cli/log.h"
#include "cli/pass_through.h"
#include "codec/json.h"
#include "facts/ids.h"
#include "files/durable_file.h"
#include "http/event_loop.h"
#include "privacy/redaction.h"
#include "store/server.h"
#include "terminal/output.h"

namespace watchdog::monitor {
namespace {

struct ProxyOptions {
  Settings settings;
  Endpoint::Options endpoint;  ///< The receiver of the reports.
};

/// Reports observed traffic to a monitor, or a database.
class BatchSender {
 public:
  BatchSender(Endpoint endpoint, CancelledSessions& cancelled)
      : endpoint_(std::move(endpoint)), cancelled_(cancelled) {}

  /// Takes out what is kept, and what never will be.
  void keep(std::vector<Batch>& batches) {
    std::size_t kept = 0;
    for (auto& batch : batches) {
      const auto sent = send(batch);
      if (!sent && sent.error().code == ErrorCode::unavailable) {
        complain_once(sent.error());
        break;
      }
      if (!sent)
        spdlog::warn("proxy cannot store session {}: {}", batch.session, sent.error().message);
      ++kept;
    }
    if (kept == batches.size() && silent_) {
      spdlog::info("proxy stores observations again");
      silent_ = false;
    }
    batches.erase(batches.begin(), batches.begin() + static_cast<std::ptrdiff_t>(kept));
  }

 private:
  Result<void> send(Batch& batch) {
    constexpr std::size_t known_max = 65'536;
    if (!known_.contains(batch.session)) {
      redact(batch.spec);
      auto spec = to_json(batch.spec);
      spec.insert(1, "\"sessionId\":\"" + batch.session + "\"" + (spec == "{}" ? "" : ","));
      const auto made = endpoint_.ask(Method::post, "/api/autonomous/sessions", spec);
      // Conflict: it exists with other properties.
      if (!made && made.error().code != ErrorCode::conflict) return made.error();
      if (known_.size() >= known_max) known_.clear();
      known_.insert(batch.session);
    }
    std::string lines;
    for (auto& report : batch.reports) {
      // A repeated report is stored once.
      if (report.event_id.empty() && report.kind != ReportKind::heartbeat)
        report.event_id = new_uuid7(system_clock().wall());
      Event event;
      event.report = report;
      redact(event.report);  // the monitor may have other patterns
      lines += to_json(event) + "\n";
    }
    if (lines.empty()) return {};
    const auto answer = endpoint_.ask(
        Method::post,
        "/api/autonomous/sessions/" + url_encoded(batch.session) + "/events?source=proxy", lines);
    if (!answer) return answer.error();
    learn(batch.session, *answer);
    return {};
  }

  /// The answer shows whether the session was cancelled.
  void learn(const std::string& session, const std::string& answer) {
    const auto parsed = nlohmann::json::parse(answer, nullptr, false);
    if (!parsed.is_object()) return;
    Directive directive;
    const auto cancel = nlohmann::json::json_pointer("/directive/cancel");
    const bool has_directive = parsed.value("directive", nlohmann::json()).is_object();
    if (has_directive && parsed.contains(cancel) && parsed[cancel].is_object())
      directive.cancel = CancelRequest{.by = parsed[cancel].value("by", ""),
                                       .reason = parsed[cancel].value("reason", "")};
    cancelled_.learn(session, directive);
  }

  void complain_once(const Error& error) {
    if (!silent_)
      spdlog::warn("proxy cannot store observations: {}; requests are still forwarded",
                   error.message);
    silent_ = true;
  }

  Endpoint endpoint_;
  CancelledSessions& cancelled_;
  std::unordered_set<std::string> known_;
  bool silent_ = false;
};

}  // namespace

/// One for each port: what passes through another proxy is counted there.
static std::filesystem::path spending_file_of(const ProxyOptions& options) {
  if (!options.endpoint.database.empty()) return Spending::file_of(options.endpoint.database);
  const auto folder = folder_beside(default_database());
  if (!options.settings.proxy.budgets.empty()) (void)make_folders(folder, 0700);  // a save says why
  return folder / ("proxy-" + std::to_string(options.settings.proxy.port) + "-spending");
}

static int proxy(const ProxyOptions& options) {
  log_as(options.settings.monitor.log_format);
  if (options.settings.proxy.upstream.empty()) {
    warn("--upstream URL is needed: where is the model server?");
    return exit_usage;
  }
  // As agents that share a file do, it makes one that is missing.
  if (const auto database = options.endpoint.database; !database.empty()) {
    if (auto made = Store::open({.database = database}); !made) return complain(made.error());
  }
  auto endpoint = Endpoint::open(options.endpoint);
  if (!endpoint) return complain(endpoint.error());
  auto access_policy = access_policy_for(options.settings);
  if (!access_policy) return complain(access_policy.error());
  CancelledSessions cancelled;
  BatchSender sender(std::move(*endpoint), cancelled);
  auto through =
      PassThrough::start(options.settings, *access_policy, cancelled,
                         {.keep = [&](std::vector<Batch>& batches) { sender.keep(batches); }},
                         spending_file_of(options));
  if (!through) {
    spdlog::error(through.error().message);
    return through.error().code == ErrorCode::invalid ? exit_refused : exit_failed;
  }
  const auto tokens =
      watch_tokens(options.settings, *access_policy,
                   [&](std::vector<Token> renewed) { (*through)->renew(std::move(renewed)); });
  boost::asio::io_context context(1);
  boost::asio::signal_set signals(context, SIGINT, SIGTERM);
  signals.async_wait([&](const boost::system::error_code&, int) {
    std::signal(SIGINT, [](int) { std::_Exit(exit_interrupted); });
    std::signal(SIGTERM, [](int) { std::_Exit(exit_interrupted); });
    (*through)->stop();
  });
  print_line("listening on " + (*through)->proxy().url() + "\n" +
             base_url_advice((*through)->proxy()));
  std::fflush(stdout);
  run_to_end(context);
  (*through)->wait_until_done();
  return exit_done;
}

void add_proxy(CommandLine& line) {
  const auto options = std::make_shared<ProxyOptions>();
  options->endpoint.writes = true;
  auto* command = line.app.add_subcommand("proxy",
                                          "Forward requests to a model server and report them to "
                                          "a monitor (serve --upstream does both)");
  auto proxy_settings = line.settings;
  std::erase_if(proxy_settings, [](const auto& setting) {
    return !setting.key.starts_with("proxy.") && setting.flag != "--bind" &&
           !setting.flag.starts_with("--tls-") && setting.flag != "--log-format" &&
           setting.flag != "--behind-proxy";
  });
  for (auto& setting : proxy_settings)
    if (setting.key == "proxy.port") setting.flag = "--port";
  add_settings(*command, proxy_settings, options->endpoint.sources);
  add_endpoint(*command, options->endpoint);
  command->callback([&line, options] {
    auto settings = configured(options->endpoint.sources);
    if (settings) options->settings = std::move(*settings);
    line.code = settings ? proxy(*options) : settings.error();
  });
}

}  // namespace watchdog::monitor
