#include "cli/monitor.h"

#include <spdlog/spdlog.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdlib>
#include <optional>

#include "api/check_desk.h"
#include "cli/token_file.h"
#include "http/server.h"
#include "watch/sweeper.h"
#include "watchdog/model_client.h"
#include "watchdog/regular_file.h"

namespace watchdog::monitor {

struct Monitor::State {
  explicit State(boost::asio::io_context& context) : signals(context) {}
  ~State() {
    server.reset();
    // What is still being asked ends as failed, which the sweeper writes down before it goes.
    if (sweeper) sweeper->listen(nullptr);
    desk.reset();
    sweeper.reset();
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Feed feed;
  std::unique_ptr<Sweeper> sweeper;
  std::optional<ModelClient> model;
  std::unique_ptr<CheckDesk> desk;
  std::unique_ptr<Api> api;
  std::unique_ptr<HttpServer> server;
  boost::asio::signal_set signals;
  std::string secret;  ///< The page's, where it is for this machine alone.
};

namespace {

Error refused(std::string message, std::string field) {
  return {ErrorCode::invalid, std::move(message), std::move(field)};
}

/// What HTTPS needs; nothing: it is not wanted. Errors: `invalid`.
Result<std::optional<TlsFiles>> tls_files(const MonitorSettings& own) {
  constexpr std::size_t pem_bytes_max = 1024 * 1024;
  if (own.tls_cert.empty() && own.tls_key.empty()) return std::optional<TlsFiles>{};
  for (const auto& [key, path, readers] : {std::tuple{"tls_cert", own.tls_cert, Readers::anybody},
                                           {"tls_key", own.tls_key, Readers::owner}}) {
    const auto text = read_regular_file(path, pem_bytes_max, readers);
    if (!text) {
      return refused(
          std::string("monitor.") + key + ": " + path.string() + " " + text.error().message, key);
    }
  }
  return std::optional(TlsFiles{.certificate = own.tls_cert, .key = own.tls_key});
}

/// Of the environment, and of the file, which is made where there is neither.
Result<std::vector<Token>> tokens_for(const Settings& settings) {
  const auto path = token_file(settings);
  std::vector<Token> tokens;
  if (auto secret = environment("WATCHDOG_TOKEN"); !secret.empty()) {
    if (auto fit = check_secret(secret); !fit) {
      return refused("WATCHDOG_TOKEN: " + fit.error().message, "WATCHDOG_TOKEN");
    }
    tokens.push_back({.name = "environment", .scopes = Scopes::all(), .secret = std::move(secret)});
  } else if (auto made = make_token_file(path); !made) {
    return made.error();
  }
  auto in_file = read_token_file(path);
  if (!in_file && in_file.error().code == ErrorCode::not_found && !tokens.empty()) return tokens;
  if (!in_file) return in_file.error();
  tokens.insert(tokens.end(), in_file->begin(), in_file->end());
  return tokens;
}

/// Who may do what. Errors: `invalid`, `unavailable`.
Result<Gate> gate_for(const Settings& settings, bool private_address) {
  const auto& own = settings.monitor;
  auto tokens = tokens_for(settings);
  if (!tokens) return tokens.error();
  Gate gate{.tokens = std::move(*tokens), .hosts = own.hosts};
  // What a proxy passes on comes from this machine as well, whoever sent it.
  if (private_address && !own.behind_proxy) gate.without_token = {Scope::read, Scope::report};
  gate.hosts.push_back(own.bind.find(':') == std::string::npos ? own.bind : "[" + own.bind + "]");
  // Where a token is needed for everything, a page that comes by a name of its own has none.
  gate.any_host = gate.without_token.empty() && own.hosts.empty();
  gate.secure = own.behind_proxy || !own.tls_cert.empty();
  return gate;
}

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

}  // namespace

Monitor::Monitor(std::unique_ptr<State> state) : state_(std::move(state)) {}
Monitor::~Monitor() = default;

Result<std::unique_ptr<Monitor>> Monitor::start(boost::asio::io_context& context,
                                                const ServeOptions& options) {
  const auto& own = options.settings.monitor;
  const auto loopback = is_loopback(own.bind);
  if (!loopback) return loopback.error();
  const auto tls = tls_files(own);
  if (!tls) return tls.error();
  if (!*loopback && !*tls && !own.behind_proxy) {
    return refused(
        own.bind +
            " can be reached from other machines, and tokens must not go there in the "
            "clear: give --tls-cert FILE and --tls-key FILE, or say --behind-proxy if only "
            "a proxy that speaks TLS reaches it, or bind 127.0.0.1",
        "bind");
  }
  if (auto added = add_redactions(options.settings.privacy); !added) return added.error();
  auto state = std::make_unique<State>(context);
  auto sweeper = Sweeper::start({.database = own.db.empty() ? default_database() : own.db,
                                 .retention = {.ended_for = Millis{static_cast<std::int64_t>(
                                                   own.retention_days * 86'400'000.0)},
                                               .bytes_max = own.retention_bytes},
                                 .log = [](const std::string& sentence) { spdlog::warn(sentence); },
                                 .feed = &state->feed});
  if (!sweeper) return sweeper.error();
  state->sweeper = std::move(*sweeper);
  auto gate = gate_for(options.settings, *loopback);
  if (!gate) return gate.error();
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
      [api = state->api.get()](const Request& request) { return api->refuse(request); },
      [api = state->api.get()](Request request, Reply reply) {
        api->handle(std::move(request), std::move(reply));
      },
      *tls);
  if (!server) return server.error();
  state->server = std::move(*server);
  return std::unique_ptr<Monitor>(new Monitor(std::move(state)));
}

std::string Monitor::url() const {
  return state_->server->url();
}
std::string Monitor::login_url() const {
  return state_->secret.empty() ? url() : url() + "/#token=" + state_->secret;
}

void Monitor::announce() const {
  // Programs read the first line. The journal is read by more people than the token is for.
  const bool journal = !environment("JOURNAL_STREAM").empty();
  std::printf("listening on %s\nopen %s\n", url().c_str(), (journal ? url() : login_url()).c_str());
  std::fflush(stdout);
}

const Sweeper& Monitor::sweeper() const noexcept {
  return *state_->sweeper;
}

void Monitor::stop() {
  state_->server->stop();
  state_->signals.cancel();
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
  spdlog::info("tokens are in {}", token_file(options.settings).string());
  context.run();
  spdlog::info("stopping");
  return exit_done;
}

}  // namespace watchdog::monitor
