#include "cli/monitor.h"

#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdlib>
#include <future>
#include <optional>

#include "api/check_desk.h"
#include "cli/entrance.h"
#include "cli/log.h"
#include "cli/pass_through.h"
#include "cli/token_file.h"
#include "http/server.h"
#include "watch/courier.h"
#include "watch/liveness.h"
#include "watch/sweeper.h"
#include "watchdog/model_client.h"

namespace watchdog::monitor {

struct Monitor::State {
  explicit State(boost::asio::io_context& context) : signals(context) {}
  ~State() {
    liveness.reset();
    server.reset();
    through.reset();  // what it saw is still to be written down
    for (const auto& courier : couriers) courier->stop();
    if (sweeper) sweeper->listen_for_messages(nullptr);
    couriers.clear();
    // What is still being asked ends as failed, which the sweeper writes down before it goes.
    if (sweeper) sweeper->listen(nullptr);
    desk.reset();
    sweeper.reset();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Feed feed;
  Metrics metrics;
  const std::shared_ptr<AlertBoard> board = std::make_shared<AlertBoard>();
  std::unique_ptr<Sweeper> sweeper;
  std::vector<std::unique_ptr<Courier>> couriers;
  std::optional<ModelClient> model;
  std::unique_ptr<CheckDesk> desk;
  std::unique_ptr<Api> api;
  std::unique_ptr<HttpServer> server;
  std::unique_ptr<PassThrough> through;  ///< Null: no model server was named.
  std::unique_ptr<Liveness> liveness;
  boost::asio::signal_set signals;
  std::string secret;  ///< The page's, where it is for this machine alone.
};

namespace {

/// True if asking disturbs no agent, or somebody said that it may.
bool has_own_server(const CheckSettings& checks) {
  return checks.share_server || !checks.base_url.empty();
}

/// Whom to ask about sessions; empty: nobody, because no server was named or somebody said so.
/// `client` becomes who it asks.
Result<Model> model_for_checks(const Settings& settings, std::optional<ModelClient>& client) {
  const auto& checks = settings.checks;
  const auto options = check_client(settings);
  if (!checks.enabled || options.base_url.empty()) return Model{};
  auto made = ModelClient::to(options);
  if (!made) return made.error();
  client.emplace(std::move(*made));
  return has_own_server(checks) ? client->model() : client->model_beside();
}

/// Unasked, what agents said does not go to a service that nobody named for it. Those speak https;
/// the servers of one's own network hardly ever do.
bool asks_unasked(const Settings& settings) {
  const auto& checks = settings.checks;
  return checks.on_suspicion &&
         (has_own_server(checks) || settings.model.base_url.starts_with("http://"));
}

/// Appends batches, waits until they are kept, and takes those out that are, or never will be.
void keep_all(Sweeper& sweeper, std::vector<Batch>& batches) {
  std::vector<std::future<Result<Receipt>>> receipts;
  receipts.reserve(batches.size());
  for (const auto& batch : batches) {
    auto promise = std::make_shared<std::promise<Result<Receipt>>>();
    receipts.push_back(promise->get_future());
    sweeper.append(batch, [promise](Result<Receipt> receipt) { promise->set_value(receipt); });
  }
  std::vector<Batch> left;
  for (std::size_t at = 0; at < batches.size(); ++at) {
    const auto receipt = receipts[at].get();
    if (receipt.ok()) continue;
    if (receipt.error().code == ErrorCode::unavailable) {
      left.push_back(std::move(batches[at]));
    } else {
      spdlog::warn("session {} of the pass-through: {}", batches[at].session,
                   receipt.error().message);
    }
  }
  batches = std::move(left);
}

AlertRules rules_of(const AlertSettings& alerts) {
  auto rules = alerts.rules;
  for (const auto& [name, channel] : alerts.channels) rules.channels.push_back(name);
  return rules;
}

}  // namespace

AlertSender alert_sender(const Settings& settings, const std::string& channel,
                         ChannelSecrets secrets, const std::string& url) {
  auto shown_url = settings.monitor.public_url.empty() ? url : settings.monitor.public_url;
  while (shown_url.ends_with('/')) shown_url.pop_back();
  return AlertSender({.channel = settings.alerts.channels.at(channel),
                      .secrets = std::move(secrets),
                      .wording = {.content = settings.alerts.content, .url = std::move(shown_url)},
                      .log = [](const std::string& text) { spdlog::warn("alert: {}", text); }});
}

Monitor::Monitor(std::unique_ptr<State> state) : state_(std::move(state)) {}
Monitor::~Monitor() = default;

Result<std::unique_ptr<Monitor>> Monitor::start(boost::asio::io_context& context,
                                                const ServeOptions& options) {
  const auto& own = options.settings.monitor;
  const auto tls = tls_files(own);
  if (!tls) return tls.error();
  log_as(own.log_format);
  if (auto added = add_redactions(options.settings.privacy); !added) return added.error();
  const auto& alerts = options.settings.alerts;
  auto secrets = channel_secrets(alerts);
  if (!secrets) return Error{ErrorCode::invalid, to_text(secrets.error())};
  auto state = std::make_unique<State>(context);
  auto sweeper = Sweeper::start({.database = own.db.empty() ? default_database() : own.db,
                                 .retention = {.ended_for = Millis{static_cast<std::int64_t>(
                                                   own.retention_days * 86'400'000.0)},
                                               .bytes_max = own.retention_bytes},
                                 .alerts = rules_of(alerts),
                                 .board = state->board,
                                 .log = [](const std::string& sentence) { spdlog::warn(sentence); },
                                 .feed = &state->feed,
                                 .artifacts = options.settings.tools.artifacts,
                                 .metrics = &state->metrics});
  if (!sweeper) return sweeper.error();
  state->sweeper = std::move(*sweeper);
  auto gate = gate_for(options.settings);
  if (!gate) return gate.error();
  if (!options.settings.proxy.upstream.empty()) {
    auto through =
        PassThrough::start(options.settings, *gate,
                           {.keep = [sweeper = state->sweeper.get()](std::vector<Batch>& batches) {
                             keep_all(*sweeper, batches);
                           }});
    if (!through) return through.error();
    state->through = std::move(*through);
  }
  if (!gate->without_token.empty()) state->secret = acting_secret(gate->tokens);
  const auto& checks = options.settings.checks;
  auto ask = model_for_checks(options.settings, state->model);
  if (!ask) return ask.error();
  state->desk = std::make_unique<CheckDesk>(
      *state->sweeper, std::move(*ask),
      CheckDesk::Options{.checker = checks.options,
                         .on_suspicion = asks_unasked(options.settings),
                         .log = [](const std::string& sentence) { spdlog::warn(sentence); }});
  state->sweeper->listen(
      [desk = state->desk.get()](const Transition& change) { desk->notice(change); });
  state->desk->look_around();
  state->api = std::make_unique<Api>(*state->sweeper, *state->desk, std::move(*gate), &state->feed,
                                     own.requests_per_second_max);
  auto server = HttpServer::listen(
      context, own.bind, own.port,
      [api = state->api.get(), metrics = &state->metrics](const Request& request) {
        auto refusal = api->refuse(request);
        if (refusal) metrics->count_request(group_of(request.target), refusal->status);
        return refusal;
      },
      [api = state->api.get(), metrics = &state->metrics](Request request, const Reply& reply) {
        const auto group = group_of(request.target);
        api->handle(std::move(request), [metrics, group, reply](Response response) {
          metrics->count_request(group, response.status);
          reply(std::move(response));
        });
      },
      *tls, ServerLimits{}, &state->metrics);
  if (!server) return server.error();
  state->server = std::move(*server);
  state->liveness = std::make_unique<Liveness>(
      context, *state->sweeper,
      Liveness::Options{.url = own.ping_url,
                        .every = own.ping_interval,
                        .log = [](const std::string& sentence) { spdlog::warn(sentence); }});
  for (const auto& [name, channel] : alerts.channels) {
    state->couriers.push_back(std::make_unique<Courier>(
        *state->sweeper, *state->board,
        alert_sender(options.settings, name, secrets->at(name), state->server->url()),
        Courier::Options{.name = name,
                         .type = channel.type,
                         .retry_first = alerts.retry_first,
                         .retry_longest = alerts.retry_longest,
                         .metrics = &state->metrics,
                         .log = [](const std::string& sentence) { spdlog::warn(sentence); }}));
  }
  const auto wake_all = [couriers = &state->couriers] {
    for (const auto& courier : *couriers) courier->wake();
  };
  state->sweeper->listen_for_messages(wake_all);
  wake_all();  // for what came before anybody listened
  return std::unique_ptr<Monitor>(new Monitor(std::move(state)));
}

std::string Monitor::url() const {
  return state_->server->url();
}
std::string Monitor::login_url() const {
  return state_->secret.empty() ? url() : url() + "/#token=" + state_->secret;
}

std::string Monitor::proxy_url() const {
  return state_->through ? state_->through->proxy().url() : "";
}

void Monitor::announce() const {
  // Programs read the first line. The journal is read by more people than the token is for.
  struct stat facts {};
  const bool journal = fstat(STDOUT_FILENO, &facts) == 0 &&
                       environment("JOURNAL_STREAM") ==
                           std::to_string(facts.st_dev) + ":" + std::to_string(facts.st_ino);
  std::printf("listening on %s\nopen %s\n", url().c_str(), (journal ? url() : login_url()).c_str());
  if (state_->through) std::printf("%s\n", base_url_advice(state_->through->proxy()).c_str());
  std::fflush(stdout);
}

const Sweeper& Monitor::sweeper() const noexcept {
  return *state_->sweeper;
}

void Monitor::stop() {
  if (state_->through) state_->through->stop();
  state_->liveness->stop();
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
        // Whoever asks a second time does not want to wait.
        std::signal(SIGINT, [](int) { std::_Exit(exit_interrupted); });
        std::signal(SIGTERM, [](int) { std::_Exit(exit_interrupted); });
        if (before) before();
        stop();
      });
}

int serve(const ServeOptions& options) {
  boost::asio::io_context context(1);
  auto monitor = Monitor::start(context, options);
  if (!monitor) {
    spdlog::error(monitor.error().message);
    const auto code = monitor.error().code;
    return code == ErrorCode::conflict || code == ErrorCode::invalid ? exit_refused : exit_failed;
  }
  (*monitor)->stop_on_signal();
  (*monitor)->announce();
  const auto& database = options.settings.monitor.db;
  spdlog::info("watching {}", (database.empty() ? default_database() : database).string());
  if (std::error_code ignored; std::filesystem::exists(token_file(options.settings), ignored)) {
    spdlog::info("tokens are in {}", token_file(options.settings).string());
  }
  context.run();
  (*monitor)->wait_for_answers();
  spdlog::info("stopping");
  return exit_done;
}

}  // namespace watchdog::monitor
