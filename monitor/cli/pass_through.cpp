// Starts the proxy from the settings, for `serve` and for `proxy`. The proxy reports each request
// and answer to the observation writer. It admits clients by the monitor's own rules, and asks here
// for their processes and sessions.
#include "cli/pass_through.h"

#include <spdlog/spdlog.h>

#include <set>
#include <variant>

#include "api/access.h"
#include "cli/key_file.h"
#include "cli/listen_config.h"
#include "llm/model_request.h"
#include "process/process_sample.h"
#include "proxy/connection/model_api.h"
#include "proxy/sessions/attribution.h"

namespace watchdog::monitor {
namespace {

Result<Upstream> upstream_from(const std::string& name, const ProxyUpstream& own,
                               const std::filesystem::path& ca_file) {
  auto url = url_from(own.url);
  if (!url) return url.error();
  // As agents have it, and the paths that they ask for have it again.
  if (url->path.ends_with("/v1")) url->path.resize(url->path.size() - 3);
  auto key = key_from(own.api_key_file, "api_key_file");
  if (!key) return key.error();
  return Upstream{.name = name,
                  .url = std::move(*url),
                  .models = own.models,
                  .ca_file = ca_file,
                  .api_key = std::move(*key)};
}

Result<std::vector<Upstream>> upstreams_in(const ProxySettings& settings,
                                           const std::filesystem::path& ca_file) {
  std::vector<Upstream> upstreams;
  for (const auto& [name, own] : settings.upstreams) {
    auto upstream = upstream_from(name, own, ca_file);
    if (!upstream) return upstream.error();
    upstreams.push_back(std::move(*upstream));
  }
  auto rest = upstream_from(
      "upstream", {.url = settings.upstream, .api_key_file = settings.api_key_file}, ca_file);
  if (!rest) return rest.error();
  upstreams.push_back(std::move(*rest));
  return upstreams;
}

/// Reads the sender of a request. For the proxy's thread.
class RequestReader {
 public:
  RequestReader(const ObservationWriter& writer, TraceOwner session_of_trace)
      : writer_(writer), session_of_trace_(std::move(session_of_trace)) {}

  [[nodiscard]] Spender spender(const ExchangeBegan& began) const {
    const auto request = model_request_of(began);
    const auto from = attribution_of(
        began, request ? &*request : nullptr,
        [this](std::string_view answer) { return writer_.owner_of(answer); }, session_of_trace_);
    return spender_of(began, from, request ? request->model : std::string());
  }

 private:
  const ObservationWriter& writer_;
  TraceOwner session_of_trace_;
};

/// The budgets with the counts of earlier processes; null: the owner set none. Without readable
/// counts they begin again.
std::shared_ptr<Spending> spending_of(const ProxySettings& settings,
                                      const std::filesystem::path& file) {
  if (settings.budgets.empty()) return nullptr;
  auto spending = std::make_shared<Spending>(
      Spending::Options{.budgets = settings.budgets, .prices = settings.prices, .file = file});
  if (const auto loaded = spending->load(); !loaded)
    spdlog::warn("budgets begin again, because their counts cannot be read: {}",
                 loaded.error().message);
  return spending;
}

/// Warns once of each API that passes unread: without a session's name nothing else shows it.
/// For the proxy's thread alone.
class UnreadWarnings {
 public:
  void note(const Observation& observation) {
    const auto* began = std::get_if<ExchangeBegan>(&observation.what);
    const auto* api = began ? unread_api_of(began->method, began->target) : nullptr;
    if (api && warned_.insert(api).second) spdlog::warn("{}", words_of(*api));
  }

 private:
  std::set<const UnreadApi*> warned_;
};

}  // namespace

PassThrough::~PassThrough() {
  proxy_.reset();  // its last observations go to the observation writer
}

Result<std::unique_ptr<PassThrough>> PassThrough::start(
    const Settings& settings, AccessPolicy access_policy, const CancelledSessions& cancelled,
    ObservationWriter::Options observation_writer, const std::filesystem::path& spending_file,
    std::shared_ptr<GuessLimits> guesses, HangListener hangs) {
  auto upstreams = upstreams_in(settings.proxy, settings.model.ca_file);
  if (!upstreams) return upstreams.error();
  auto tls = tls_files(settings.monitor);
  if (!tls) return tls.error();
  std::unique_ptr<PassThrough> made(new PassThrough());
  made->access_ = std::make_unique<Access>(
      std::move(access_policy), settings.monitor.requests_per_second_max, std::move(guesses));
  const auto session_of_trace = observation_writer.session_of_trace;
  const auto spending = spending_of(settings.proxy, spending_file);
  observation_writer.spending = spending;
  observation_writer.warn = [](const std::string& text) { spdlog::warn("{}", text); };
  made->observation_writer_ = std::make_unique<ObservationWriter>(std::move(observation_writer));
  const auto reader =
      std::make_shared<const RequestReader>(*made->observation_writer_, session_of_trace);
  auto proxy = Proxy::start(
      {.address = settings.monitor.bind,
       .port = settings.proxy.port,
       .tls = *tls,
       .settings = settings.proxy,
       .upstreams = std::move(*upstreams),
       .admission = [access =
                         made->access_.get()](const Request& request) -> std::optional<Response> {
         if (auto refusal = access->refuse(request)) return refusal;
         return access->refuse(request, access->caller(request), Scope::report);
       },
       // Without cancelled sessions, which is nearly always, a request is not read for that.
       .cancelled = [reader,
                     &cancelled](const ExchangeBegan& began) -> std::optional<CancelRequest> {
         if (!cancelled.any()) return std::nullopt;
         return cancelled.find(reader->spender(began).session);
       },
       .over_budget = [reader,
                       spending](const ExchangeBegan& began) -> std::optional<SpendingRefusal> {
         if (!spending || !spending->may_refuse()) return std::nullopt;
         return spending->refusal(reader->spender(began), system_clock().wall());
       },
       .client_of = [owners = std::make_shared<SocketOwners>()](
                        const ClientConnection& client) -> std::optional<ProcessFacts> {
         const auto owner = owners->find(client);
         if (!owner) return std::nullopt;
         return facts_of(*owner);
       },
       .session_of_process =
           [](const ProcessFacts& process) {
             return variable_of(static_cast<pid_t>(process.pid), "WATCHDOG_SESSION");
           },
       .finding =
           [hangs = std::move(hangs)](const Url& server, const ServerFinding& found) {
             if (hangs) hangs(server, name_of_request(found.request), found.evidence.state);
           },
       .listener =
           [observation_writer = made->observation_writer_.get(),
            warnings = UnreadWarnings()](Observation observation) mutable {
             warnings.note(observation);
             observation_writer->add(std::move(observation));
           }});
  if (!proxy) return proxy.error();
  if (const auto assumed = settings.proxy.assume_working; assumed > Millis{0})
    spdlog::warn(
        "proxy.assume_working_seconds: clients of a server that shows nothing are kept waiting for "
        "{} s after its last byte, also if it hangs",
        std::chrono::ceil<std::chrono::seconds>(assumed).count());
  made->proxy_ = std::move(*proxy);
  return made;
}

void PassThrough::renew(std::vector<Token> tokens) {
  access_->renew(std::move(tokens));
}

void PassThrough::stop() {
  proxy_->stop();
}

void PassThrough::wait_until_done() {
  if (const auto open = proxy_->load().exchanges; open > 0) {
    spdlog::warn("waiting for {} to end; a second signal stops at once",
                 open == 1 ? "an open request" : std::to_string(open) + " open requests");
  }
  proxy_->wait_until_done();
}

std::string base_url_advice(const Proxy& proxy) {
  return "agents reach their model at " + proxy.url() +
         "/v1 (Ollama and Anthropic: " + proxy.url() + ")";
}

}  // namespace watchdog::monitor
