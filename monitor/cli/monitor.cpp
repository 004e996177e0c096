// `start` builds from the store upwards: store thread, proxy, checks, API, server, pings, alerts.
// `~State` goes the other way. First nothing new comes in: server and proxy end, and the proxy's
// observations are stored. Then alerts and checks end, and the store thread records their results
// before it stops as the last. So each part may use the ones below it for as long as it lives. The
// first signal lets requests under way end; a second one ends the process at once.
#include "cli/monitor.h"

#include <spdlog/spdlog.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdlib>
#include <future>
#include <map>
#include <mutex>
#include <optional>

#include "alerts/alert_dispatcher.h"
#include "api/api.h"
#include "api/check_service.h"
#include "api/hang_diagnosis.h"
#include "api/look_keeper.h"
#include "api/recovery.h"
#include "api/recovery_steps.h"
#include "api/unasked_check.h"
#include "api/version.h"
#include "cli/endpoint.h"
#include "cli/following.h"
#include "cli/listen_config.h"
#include "cli/log.h"
#include "cli/pass_through.h"
#include "cli/token_file.h"
#include "core/estimator.h"
#include "core/store_thread.h"
#include "export/otlp_exporter.h"
#include "follow/transcript_root.h"
#include "http/client.h"
#include "http/event_loop.h"
#include "http/server.h"
#include "mcp/http.h"
#include "proxy/sessions/trace_sessions.h"
#include "service/liveness.h"
#include "service/ready_command.h"
#include "service/service_socket.h"
#include "store/server.h"
#include "terminal/output.h"
#include "watchdog/model_client.h"

namespace watchdog::monitor {

struct Monitor::State {
  explicit State(boost::asio::io_context& context) : signals(context) {}
  ~State() {
    // Its thread may wait for the store thread, and that one for the mutex.
    std::unique_ptr<Following> last;
    {
      const std::lock_guard guard(forgetting);
      last = std::move(following);
      cannot_follow = true;
    }
    last.reset();
    ready_command.reset();
    recovery_steps.reset();
    look_keeper.reset();
    tokens.reset();
    liveness.reset();
    telemetry.reset();
    server.reset();
    {
      const std::lock_guard guard(forgetting);
      if (mcp) mcp->stop();
      is_stopping = true;
    }
    through.reset();  // its observations are still to be stored
    hang_diagnosis.reset();
    if (store_thread) store_thread->listen_for_messages(nullptr);
    stop_alerts();
    // Running checks end as failed, which the store thread records before it stops.
    if (store_thread) store_thread->listen(nullptr);
    check_service.reset();
    store_thread.reset();
    exporter.reset();  // it sends what was stored last
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  // `start` calls these in this order.
  [[nodiscard]] Result<void> open_store(const Settings& settings);
  [[nodiscard]] Result<void> start_proxy(const Settings& settings,
                                         const AccessPolicy& access_policy);
  /// Starts what looks at servers that hang; empty: no command is set.
  [[nodiscard]] HangListener diagnosis_of_hangs(const Settings& settings);
  [[nodiscard]] Result<void> start_checks(const Settings& settings);
  /// REQUIRES: the API and the store are there.
  void start_recovery(const Settings& settings, const std::filesystem::path& database);
  void start_alerts(const Settings& settings, std::map<std::string, ChannelSecrets> secrets);
  /// Messages that are under way may arrive, for some seconds.
  void stop_alerts();
  void wake_dispatchers();

  /// Takes erased sessions out of the files beside the database.
  void forget(const std::vector<std::string>& sessions, const std::filesystem::path& database);

  /// Reads a transcript that a hook named.
  void name_transcript(const std::string& path, const std::filesystem::path& database);

  std::mutex forgetting;       ///< Guards the next two, `following`, and the end of `mcp`.
  bool is_stopping = false;    ///< `mcp` is at its end.
  bool cannot_follow = false;  ///< Reading the transcripts that hooks name has failed to start.
  Feed feed;
  Metrics metrics;
  CancelledSessions cancelled;
  /// Of all ports together.
  const std::shared_ptr<GuessLimits> guesses = std::make_shared<GuessLimits>();
  /// Of OpenTelemetry, for the proxy as well.
  const std::shared_ptr<OtlpMemory> traces = std::make_shared<OtlpMemory>();
  std::shared_ptr<KeptLooks> looks;  ///< Of sessions in trouble; set with the store.
  const std::shared_ptr<ChannelStatusRegistry> registry = std::make_shared<ChannelStatusRegistry>();
  std::unique_ptr<OtlpExporter> exporter;  ///< Null: no collector is set.
  std::unique_ptr<StoreThread> store_thread;
  std::shared_ptr<const AlertLinks> links;  ///< Of messages; null: none.
  std::mutex dispatching;                   ///< Guards the next one.
  std::vector<std::unique_ptr<AlertDispatcher>> dispatchers;
  std::optional<ModelClient> model;
  std::unique_ptr<CheckService> check_service;
  std::unique_ptr<Api> api;
  std::unique_ptr<mcp::HttpHandler> mcp;
  std::unique_ptr<HttpServer> server;
  std::unique_ptr<HttpServer> telemetry;          ///< Null: OpenTelemetry comes to `server` alone.
  std::unique_ptr<HangDiagnosis> hang_diagnosis;  ///< Null: no command is set. `through` uses it.
  std::unique_ptr<PassThrough> through;           ///< Null: no model server was named.
  std::unique_ptr<Liveness> liveness;
  std::unique_ptr<ReadyCommand> ready_command;  ///< Null: no command is set.
  std::unique_ptr<LookKeeper> look_keeper;
  std::unique_ptr<RecoverySteps> recovery_steps;  ///< Null: there are no rules.
  std::unique_ptr<Following> following;           ///< Null: no transcripts are followed.
  boost::asio::signal_set signals;
  std::unique_ptr<TokenWatch> tokens;
  std::string secret_place;  ///< The place of the token for people.
  std::string public_url;    ///< Where people reach the page; empty: where it listens.

  [[nodiscard]] std::string page_url() const {
    return public_url.empty() ? server->url() : public_url;
  }
};

namespace {

/// Returns true if checks disturb no agent, or the owner allowed it.
bool has_own_server(const CheckSettings& checks) {
  return checks.share_server || !checks.base_url.empty();
}

/// Returns the model for checks; empty: no server is set, or checks are disabled. `client` becomes
/// its client.
Result<Model> model_for_checks(const Settings& settings, std::optional<ModelClient>& client) {
  const auto& checks = settings.checks;
  const auto options = check_client(settings);
  if (!checks.enabled || options.base_url.empty()) return Model{};
  auto made = ModelClient::to(options);
  if (!made) return made.error();
  client.emplace(std::move(*made));
  return has_own_server(checks) ? client->model() : client->model_beside();
}

/// Appends batches, waits until they are kept, and takes those out that are, or never will be.
void keep_all(StoreThread& store_thread, std::vector<Batch>& batches) {
  std::vector<std::future<Result<Receipt>>> receipts;
  receipts.reserve(batches.size());
  for (const auto& batch : batches) {
    auto promise = std::make_shared<std::promise<Result<Receipt>>>();
    receipts.push_back(promise->get_future());
    store_thread.append(batch, [promise](Result<Receipt> receipt) { promise->set_value(receipt); });
  }
  std::vector<Batch> left;
  for (std::size_t at = 0; at < batches.size(); ++at) {
    const auto receipt = receipts[at].get();
    if (receipt.ok()) continue;
    if (receipt.error().code == ErrorCode::unavailable) {
      left.push_back(std::move(batches[at]));
    } else {
      spdlog::warn("proxy cannot store session {}: {}", batches[at].session,
                   receipt.error().message);
    }
  }
  batches = std::move(left);
}

/// The ways of a request through the API, which count it.
HttpServer::Admission admission_of(Api& api, Metrics& metrics) {
  return [&api, &metrics](const Request& request) {
    auto refusal = api.refuse(request);
    if (refusal) metrics.count_request(group_of(request.target), refusal->status);
    return refusal;
  };
}

HttpServer::Handler handler_of(Api& api, Metrics& metrics) {
  return [&api, &metrics](Request request, const Reply& reply) {
    const auto group = group_of(request.target);
    api.handle(std::move(request), [&metrics, group, reply](Response response) {
      metrics.count_request(group, response.status);
      reply(std::move(response));
    });
  };
}

/// Listens where exporters send by default, for telemetry alone.
Result<std::unique_ptr<HttpServer>> listen_for_telemetry(boost::asio::io_context& context,
                                                         const MonitorSettings& own, Api& api,
                                                         Metrics& metrics,
                                                         const std::optional<TlsFiles>& tls) {
  auto admission = [way = admission_of(api, metrics),
                    &metrics](const Request& request) -> std::optional<Response> {
    if (group_of(request.target) == RouteGroup::telemetry) return way(request);
    metrics.count_request(group_of(request.target), 404);
    return error_response(404, "not_found",
                          "this port takes OpenTelemetry alone: /v1/logs, /v1/traces and "
                          "/v1/metrics");
  };
  auto server = HttpServer::listen(context, own.bind, static_cast<std::uint16_t>(*own.otlp_port),
                                   std::move(admission), handler_of(api, metrics), tls,
                                   ServerLimits{}, &metrics);
  if (server || server.error().code != ErrorCode::unavailable) return server;
  return Error{ErrorCode::unavailable,
               server.error().message +
                   "; a collector may use the port. Stop it, give --otlp another PORT, or leave "
                   "--otlp out: the monitor's own port takes OpenTelemetry, too",
               "otlp_port"};
}

/// True if the URL is that of a server on this machine.
bool is_own(const std::string& url, const HttpServer* server) {
  const auto own = server == nullptr ? std::string() : server->url();
  const auto port = own.substr(own.rfind(':') + 1);
  const auto end = url.find('/', url.find("://") + 3);
  return !own.empty() && is_loopback_url(url) && url.substr(0, end).ends_with(":" + port);
}

/// Starts the export, if a collector is set. Errors: `invalid`.
Result<std::unique_ptr<OtlpExporter>> exporter_for(const Settings& settings, Metrics& metrics,
                                                   const HttpServer* server,
                                                   const HttpServer* telemetry,
                                                   const StoreThread& store_thread) {
  const auto& own = settings.export_otlp;
  if (own.endpoint.empty()) return std::unique_ptr<OtlpExporter>();
  if (is_own(own.endpoint, server) || is_own(own.endpoint, telemetry)) {
    return Error{ErrorCode::invalid,
                 "export.otlp.endpoint is this monitor itself; name another collector", "endpoint"};
  }
  auto headers = export_headers(own);
  if (!headers) return headers.error();
  return std::make_unique<OtlpExporter>(
      OtlpExporter::Options{.endpoint = own.endpoint,
                            .headers = std::move(*headers),
                            .database = database_of(settings),
                            .version = own_version(),
                            .metrics = &metrics,
                            .judges = store_thread.judges(),
                            .judged = store_thread.judged(),
                            .log = [](const std::string& sentence) { spdlog::warn(sentence); }});
}

AlertRules rules_of(const AlertSettings& alerts) {
  auto rules = alerts.rules;
  for (const auto& [name, channel] : alerts.channels) rules.channels.push_back(name);
  return rules;
}

/// The links of messages: only where people can reach the monitor by a URL that its owner named.
Result<std::shared_ptr<const AlertLinks>> links_of(const Settings& settings) {
  auto url = settings.monitor.public_url;
  while (url.ends_with('/')) url.pop_back();
  if (url.empty()) return std::shared_ptr<const AlertLinks>();
  auto key = link_key(database_of(settings));
  if (!key) return key.error();
  return std::shared_ptr<const AlertLinks>(
      std::make_shared<AlertLinks>(std::move(*key), std::move(url)));
}

}  // namespace

AlertSender alert_sender(const Settings& settings, const std::string& channel,
                         ChannelSecrets secrets, const std::string& url,
                         std::shared_ptr<const AlertLinks> links, OpenQuestion asks) {
  auto shown_url = settings.monitor.public_url.empty() ? url : settings.monitor.public_url;
  while (shown_url.ends_with('/')) shown_url.pop_back();
  const auto& own = settings.alerts.channels.at(channel);
  AlertWording wording{.content = own.content == AlertContent::preview,
                       .url = std::move(shown_url)};
  if (links != nullptr) {
    wording.buttons = [links = std::move(links), asks = std::move(asks),
                       open = wording.url](const Alert& alert) {
      auto buttons =
          links->buttons(alert, system_clock().wall(), asks ? asks(alert.session) : std::nullopt);
      buttons.insert(buttons.begin(), {"Open", link_to(alert, {.url = open})});
      return buttons;
    };
  }
  return AlertSender({.channel = own,
                      .secrets = std::move(secrets),
                      .wording = std::move(wording),
                      .log = [](const std::string& text) { spdlog::warn("alert: {}", text); }});
}

Monitor::Monitor(std::unique_ptr<State> state) : state_(std::move(state)) {}
Monitor::~Monitor() = default;

Result<void> Monitor::State::open_store(const Settings& settings) {
  const auto& own = settings.monitor;
  if (is_server_url(own.db) && own.retention_bytes != MonitorSettings{}.retention_bytes) {
    return Error{ErrorCode::invalid,
                 "monitor.retention_bytes limits an SQLite file. PostgreSQL gives the bytes of "
                 "deleted rows back only with a whole day, so a limit of bytes would delete "
                 "sessions and free nothing. Remove it, set monitor.retention_days, and watch the "
                 "disk of PostgreSQL",
                 "retention_bytes"};
  }
  auto started = StoreThread::start(
      {.database = database_of(settings),
       .policy = settings.policy,
       .retention = {.ended_for =
                         Millis{static_cast<std::int64_t>(own.retention_days * 86'400'000.0)},
                     .bytes_max = own.retention_bytes},
       .alerts = rules_of(settings.alerts),
       .registry = registry,
       .log = [](const std::string& sentence) { spdlog::warn(sentence); },
       .feed = &feed,
       .artifacts = settings.tools.artifacts,
       .forgotten = [this, database = own.db.empty() ? default_database() : own.db](
                        const std::vector<std::string>& sessions) { forget(sessions, database); },
       .cancelled = &cancelled,
       .metrics = &metrics});
  if (!started) return started.error();
  store_thread = std::move(*started);
  looks = std::make_shared<KeptLooks>(KeptLooks::folder_of(database_of(settings)));
  store_thread->set_estimator(std::make_shared<Estimator>(database_of(settings)));
  return {};
}

void Monitor::State::forget(const std::vector<std::string>& sessions,
                            const std::filesystem::path& database) {
  const std::lock_guard guard(forgetting);
  if (following) following->forget(sessions);
  if (mcp && !is_stopping) mcp->forget(sessions);
  if (auto gone = forget_positions(database, sessions); !gone) spdlog::warn(gone.error().message);
}

void Monitor::State::name_transcript(const std::string& path,
                                     const std::filesystem::path& database) {
  if (!is_in_transcripts(path)) return;
  const std::lock_guard guard(forgetting);
  if (following == nullptr && !cannot_follow) {
    auto started = Following::start(*store_thread, {}, database);
    cannot_follow = !started;
    if (started) following = std::move(*started);
    if (!started)
      spdlog::warn("the transcripts that hooks name are not read: {}", started.error().message);
  }
  if (following != nullptr) following->name(path);
}

Result<void> Monitor::State::start_proxy(const Settings& settings,
                                         const AccessPolicy& access_policy) {
  if (settings.proxy.upstream.empty()) return {};
  auto started = PassThrough::start(
      settings, access_policy, cancelled,
      {.keep = [store_thread = store_thread.get()](
                   std::vector<Batch>& batches) { keep_all(*store_thread, batches); },
       .session_of_trace =
           [traces = std::make_shared<TraceSessions>(traces)](const std::string& trace,
                                                              const std::string& guess) {
             return traces->session_of(trace, guess);
           }},
      Spending::file_of(database_of(settings)), guesses, diagnosis_of_hangs(settings));
  if (!started) return started.error();
  through = std::move(*started);
  return {};
}

HangListener Monitor::State::diagnosis_of_hangs(const Settings& settings) {
  if (settings.recovery.diagnose.empty()) return {};
  const auto database = database_of(settings);
  const auto pause = std::make_shared<Recovery>(RecoveryRules{}, Recovery::pause_file_of(database));
  hang_diagnosis = std::make_unique<HangDiagnosis>(
      *store_thread,
      HangDiagnosis::Options{.command = settings.recovery.diagnose,
                             .looks = looks,
                             .is_paused = [pause] { return pause->is_paused(); },
                             .log = [](const std::string& sentence) { spdlog::warn(sentence); }});
  return [diagnosis = hang_diagnosis.get()](const Url& server, const std::string& request,
                                            ServerState state) {
    diagnosis->found(server, request, state);
  };
}

void Monitor::State::start_recovery(const Settings& settings,
                                    const std::filesystem::path& database) {
  const auto log = [](const std::string& sentence) { spdlog::warn(sentence); };
  const bool asks_git = settings.recovery.bundle_git;
  const auto recovery =
      std::make_shared<Recovery>(settings.recovery.rules, Recovery::pause_file_of(database));
  api->act_by(recovery);
  api->show_looks(looks);
  look_keeper = std::make_unique<LookKeeper>(
      *store_thread, LookKeeper::Options{.looks = looks, .asks_git = asks_git, .log = log});
  if (recovery->rules().empty()) return;
  recovery_steps = std::make_unique<RecoverySteps>(
      *store_thread, RecoverySteps::Options{
                         .recovery = recovery, .looks = looks, .asks_git = asks_git, .log = log});
}

Result<void> Monitor::State::start_checks(const Settings& settings) {
  const auto& checks = settings.checks;
  auto ask = model_for_checks(settings, model);
  if (!ask) return ask.error();
  check_service = std::make_unique<CheckService>(
      *store_thread, std::move(*ask),
      CheckService::Options{.checker = checks.options,
                            .on_suspicion =
                                [settings = settings](const SessionSpec& session) {
                                  return may_ask_unasked(settings, session);
                                },
                            .log = [](const std::string& sentence) { spdlog::warn(sentence); }});
  store_thread->listen([check_service = check_service.get()](const Transition& change) {
    check_service->notice(change);
  });
  check_service->look_around();
  return {};
}

void Monitor::State::wake_dispatchers() {
  const std::lock_guard guard(dispatching);
  for (const auto& dispatcher : dispatchers) dispatcher->wake();
}

void Monitor::State::stop_alerts() {
  std::vector<std::unique_ptr<AlertDispatcher>> last;
  {
    const std::lock_guard guard(dispatching);
    last.swap(dispatchers);
  }
  for (const auto& dispatcher : last) dispatcher->stop();
}

void Monitor::State::start_alerts(const Settings& settings,
                                  std::map<std::string, ChannelSecrets> secrets) {
  std::vector<std::unique_ptr<AlertDispatcher>> made;
  const OpenQuestion asks = [store = store_thread.get()](const std::string& session) {
    return store->questions().of(session);
  };
  for (const auto& [name, channel] : settings.alerts.channels) {
    made.push_back(std::make_unique<AlertDispatcher>(
        *store_thread, *registry,
        alert_sender(settings, name, secrets.at(name), server->url(), links, asks),
        AlertDispatcher::Options{
            .name = name,
            .type = channel.type,
            .retry_first = settings.alerts.retry_first,
            .retry_longest = settings.alerts.retry_longest,
            .timeout = channel.timeout,
            .metrics = &metrics,
            .log = [](const std::string& sentence) { spdlog::warn(sentence); }}));
  }
  registry->retain(rules_of(settings.alerts).channels);
  {
    const std::lock_guard guard(dispatching);
    dispatchers = std::move(made);
  }
  store_thread->listen_for_messages([this] { wake_dispatchers(); });
  wake_dispatchers();  // for what came before anybody listened
}

Result<void> Monitor::renew_alerts(const Settings& settings) {
  auto secrets = channel_secrets(settings.alerts);
  if (!secrets) return Error{ErrorCode::invalid, to_text(secrets.error())};
  state_->stop_alerts();  // two dispatchers of a channel would send its messages twice
  state_->store_thread->set_alert_rules(rules_of(settings.alerts));
  state_->start_alerts(settings, std::move(*secrets));
  return {};
}

Result<std::unique_ptr<Monitor>> Monitor::start(boost::asio::io_context& context,
                                                const Settings& settings) {
  const auto& own = settings.monitor;
  const auto tls = tls_files(own);
  if (!tls) return tls.error();
  log_as(own.log_format);
  auto secrets = channel_secrets(settings.alerts);
  if (!secrets) return Error{ErrorCode::invalid, to_text(secrets.error())};
  auto state = std::make_unique<State>(context);
  if (auto opened = state->open_store(settings); !opened) return opened.error();
  auto access_policy = access_policy_for(settings);
  if (!access_policy) return access_policy.error();
  if (auto started = state->start_proxy(settings, *access_policy); !started) return started.error();
  state->public_url = settings.monitor.public_url;
  while (state->public_url.ends_with('/')) state->public_url.pop_back();
  state->secret_place =
      environment("WATCHDOG_TOKEN").empty() ? token_file(settings).string() : "$WATCHDOG_TOKEN";
  if (auto started = state->start_checks(settings); !started) return started.error();
  auto links = links_of(settings);
  if (!links) return links.error();
  state->links = std::move(*links);
  state->api = std::make_unique<Api>(*state->store_thread, *state->check_service, *access_policy,
                                     &state->feed, own.requests_per_second_max,
                                     state->through ? state->through->proxy().url() : "",
                                     state->links, state->traces, state->guesses);
  if (!settings.recovery.bundle_git) state->api->leave_out_git();
  state->mcp = std::make_unique<mcp::HttpHandler>(*state->api, own_version());
  const auto database = database_of(settings);
  if (auto kept = state->mcp->keep_tasks_in(database.string() + "-mcp-tasks"); !kept)
    spdlog::warn("tasks of MCP clients end with this monitor: {}", kept.error().message);
  state->api->open_mcp(state->mcp.get());
  state->start_recovery(settings, database);
  state->tokens = watch_tokens(
      settings, *access_policy,
      [api = state->api.get(), through = state->through.get()](std::vector<Token> tokens) {
        if (through != nullptr) through->renew(tokens);
        api->renew(std::move(tokens));
      });
  auto& api = *state->api;
  const auto passed = service_socket();
  if (!passed) return passed.error();
  auto server = HttpServer::listen(context, own.bind, own.port, admission_of(api, state->metrics),
                                   handler_of(api, state->metrics), *tls, ServerLimits{},
                                   &state->metrics, *passed);
  if (!server) return server.error();
  state->server = std::move(*server);
  if (own.otlp_port) {
    auto telemetry = listen_for_telemetry(context, own, api, state->metrics, *tls);
    if (!telemetry) return telemetry.error();
    state->telemetry = std::move(*telemetry);
  }
  auto exporter = exporter_for(settings, state->metrics, state->server.get(),
                               state->telemetry.get(), *state->store_thread);
  if (!exporter) return exporter.error();
  state->exporter = std::move(*exporter);
  state->liveness = std::make_unique<Liveness>(
      context, *state->store_thread,
      Liveness::Options{.url = own.ping_url,
                        .every = own.ping_interval,
                        .log = [](const std::string& sentence) { spdlog::warn(sentence); }});
  state->start_alerts(settings, std::move(*secrets));
  if (!settings.recovery.on_ready.empty())
    state->ready_command = std::make_unique<ReadyCommand>(
        *state->store_thread,
        ReadyCommand::Options{.command = settings.recovery.on_ready,
                              .labels = settings.recovery.on_ready_labels,
                              .log = [](const std::string& sentence) { spdlog::warn(sentence); }});
  return std::unique_ptr<Monitor>(new Monitor(std::move(state)));
}

Result<void> Monitor::follow(std::span<const std::string> agents,
                             const std::filesystem::path& database,
                             std::function<void()> caught_up) {
  const auto chosen = transcript_agents(agents);
  if (!chosen) return chosen.error();
  auto following = Following::start(*state_->store_thread, *chosen, database, std::move(caught_up));
  if (!following) return following.error();
  const std::lock_guard guard(state_->forgetting);
  state_->following = std::move(*following);
  return {};
}

void Monitor::follow_named(const std::filesystem::path& database) {
  state_->api->note_transcripts([state = state_.get(), database](const std::string& path) {
    state->name_transcript(path, database);
  });
}

std::string Monitor::url() const {
  return state_->server->url();
}
std::string Monitor::page_url() const {
  return state_->page_url();
}
std::string Monitor::login_url() const {
  const auto access_policy = state_->api->policy();
  const auto secret =
      access_policy->without_token.empty() ? std::string() : acting_secret(access_policy->tokens);
  return state_->page_url() + (secret.empty() ? "" : "/#token=" + secret);
}

std::string Monitor::proxy_url() const {
  return state_->through ? state_->through->proxy().url() : "";
}

void Monitor::announce() const {
  // Programs read the first line. Output to a file or pipe may be stored and read by people who
  // must not have the token.
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  print_line("listening on " + url() + "\nopen " + (terminal ? login_url() : state_->page_url()));
  if (!terminal && login_url() != state_->page_url()) {
    print_line("log in with the token in " + state_->secret_place);
  }
  if (state_->telemetry) print_line("listening on " + state_->telemetry->url() + " for OTLP");
  if (state_->through) print_line(base_url_advice(state_->through->proxy()));
  std::fflush(stdout);
}

const StoreThread& Monitor::store_thread() const noexcept {
  return *state_->store_thread;
}

void Monitor::stop() {
  if (state_->through) state_->through->stop();
  state_->liveness->stop();
  if (state_->telemetry) state_->telemetry->stop();
  state_->server->stop();
  state_->signals.cancel();
}

void Monitor::wait_for_answers() {
  if (state_->through) state_->through->wait_until_done();
}

void Monitor::stop_on_signal(std::function<void()> before) {
  state_->signals.add(SIGINT);
  state_->signals.add(SIGTERM);
  state_->signals.async_wait(
      [this, before = std::move(before)](const boost::system::error_code& error, int) {
        if (error) return;
        // A second signal ends the process at once.
        std::signal(SIGINT, [](int) { std::_Exit(exit_interrupted); });
        std::signal(SIGTERM, [](int) { std::_Exit(exit_interrupted); });
        if (before) before();
        stop();
      });
}

}  // namespace watchdog::monitor
