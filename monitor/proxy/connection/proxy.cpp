// One thread runs all connections. Probers have threads of their own and post what they find; a
// finding about an ended exchange is ignored. One tick a second serves all connections. A lack of
// memory ends one connection, not the proxy. `stop` accepts no more and lets exchanges end. The
// destructor closes what is left and joins the thread. Only then does it destroy the probers, which
// still post into the context.
#include "proxy/connection/proxy.h"

#include <openssl/ssl.h>

#include <boost/asio/post.hpp>
#include <utility>

#include "http/event_loop.h"
#include "proxy/connection/message_head.h"
#include "proxy/connection/proxy_state.h"
#include "text/wildcard.h"

namespace watchdog::monitor {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;

Error unusable(const std::string& what, const std::string& why, const char* field) {
  return {ErrorCode::invalid, what + ": " + why, field};
}

Result<void> trust_for(ServerLink& server) {
  if (!server.upstream.url.tls) return {};
  auto& trust = server.trust.emplace(asio::ssl::context::tls_client);
  LinkError error;
  SSL_CTX_set_min_proto_version(trust.native_handle(), TLS1_2_VERSION);
  trust.set_verify_mode(asio::ssl::verify_peer, error);
  trust.set_default_verify_paths(error);  // without the system's there may be the file's
  if (const auto& file = server.upstream.ca_file; !file.empty()) {
    trust.load_verify_file(file.string(), error);
    if (error)
      return unusable("no certificates can be read from " + file.string(), error.message(),
                      "ca_file");
  }
  return {};
}

Result<void> identity_from(asio::ssl::context& context, const TlsFiles& files) {
  LinkError error;
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  context.use_certificate_chain_file(files.certificate.string(), error);
  if (error) return unusable(files.certificate.string(), error.message(), "tls_cert");
  context.use_private_key_file(files.key.string(), asio::ssl::context::pem, error);
  if (error) return unusable(files.key.string(), error.message(), "tls_key");
  return {};
}

}  // namespace

std::shared_ptr<UpstreamConnection> ServerLink::claim_kept() {
  while (!kept.empty()) {
    auto connection = std::move(kept.back().connection);
    kept.pop_back();
    if (connection->is_quiet()) return connection;
  }
  return nullptr;
}

void ServerLink::keep(std::shared_ptr<UpstreamConnection> connection) {
  if (kept.size() < kept_max) kept.push_back({std::move(connection), ProxyClock::now()});
}

void ServerLink::close_kept(ProxyClock::time_point before) {
  std::erase_if(kept, [before](const Kept& one) { return one.since <= before; });
}

Result<void> Proxy::State::open() {
  LinkError error;
  const auto ip = asio::ip::make_address(options.address, error);
  if (error) return Error{ErrorCode::invalid, options.address + " is no IP address", "bind"};
  if (options.tls) {
    tls.emplace(asio::ssl::context::tls_server);
    if (auto ready = identity_from(*tls, *options.tls); !ready) return ready;
  }
  const tcp::endpoint endpoint(ip, options.port);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    return Error{ErrorCode::unavailable,
                 "cannot listen on " + options.address + " port " + std::to_string(options.port) +
                     " for agents: " + error.message(),
                 "proxy.port"};
  }
  const auto own = acceptor.local_endpoint();
  const auto host = own.address().to_string();
  url = (tls ? "https://" : "http://") + (own.address().is_v6() ? "[" + host + "]" : host) + ":" +
        std::to_string(own.port());
  for (auto& upstream : options.upstreams) {
    auto& server = servers.emplace_back();
    server.upstream = upstream;
    if (auto ready = trust_for(server); !ready) return ready;
    if (!options.settings.probe) continue;
    auto prober = Prober::start({.server = upstream.url,
                                 .api_key = upstream.api_key,
                                 .ca_file = upstream.ca_file,
                                 .look_every = options.settings.look_every,
                                 // Faster sampling expects a faster server.
                                 .limits = {.gap_prior = 30 * options.settings.look_every}},
                                [this, url = upstream.url](const ServerFinding& finding) {
                                  asio::post(context, [this, finding] { learn(finding); });
                                  if (options.finding) options.finding(url, finding);
                                });
    if (!prober) return prober.error();
    server.prober = std::move(*prober);
  }
  return {};
}

void Proxy::State::accept() {
  acceptor.async_accept([this](const LinkError& error, LinkSocket socket) {
    if (error == asio::error::operation_aborted || stopping) return;
    if (!error && connections.size() < options.limits.connections_max) admit(std::move(socket));
    if (error == asio::error::no_descriptors) {
      accept_paused = true;  // nothing can be accepted before something is closed
      return;
    }
    accept();
  });
}

void Proxy::State::admit(LinkSocket socket) {
  std::shared_ptr<OpenConnection> connection;
  try {
    connection = make_connection(shared_from_this(), std::move(socket));
    connections.insert(connection);
    ++connections_open;
    connection->begin();
  } catch (const std::bad_alloc&) {
    if (connection) connection->give_up();
  }
}

void Proxy::State::tick_all() {
  const auto now = ProxyClock::now();
  for (auto& server : servers) server.close_kept(now - ServerLink::kept_time);
  const auto open = connections;  // closing one erases it
  for (const auto& connection : open) {
    try {
      connection->tick(now);
    } catch (const std::bad_alloc&) {
      connection->give_up();
    }
  }
}

void Proxy::State::tick_later() {
  clockwork.expires_after(std::chrono::seconds(1));
  clockwork.async_wait([this](const LinkError& error) {
    if (error || (stopping && connections.empty())) return;
    try {
      tick_all();
    } catch (const std::bad_alloc&) {
      // The next second.
    }
    if (std::exchange(accept_paused, false) && !stopping) accept();
    tick_later();
  });
}

void Proxy::State::learn(const ServerFinding& finding) {
  const auto found = exchanges.find(finding.request);
  if (found == exchanges.end()) return;
  try {
    found->second->learn(finding);
  } catch (const std::bad_alloc&) {
    found->second->give_up();
  }
}

void Proxy::State::drop(const std::shared_ptr<OpenConnection>& connection) {
  if (connections.erase(connection) > 0) --connections_open;
  if (stopping && connections.empty()) clockwork.cancel();
}

ServerLink& Proxy::State::server_for(std::string_view model) {
  ServerLink* rest = nullptr;
  for (auto& server : servers) {
    const auto& models = server.upstream.models;
    if (models.empty()) rest = &server;
    for (const auto& pattern : models) {
      if (!model.empty() && matches_wildcard(pattern, model)) return server;
    }
  }
  return rest != nullptr ? *rest : servers.front();
}

void Proxy::State::observe(RequestId exchange, decltype(Observation::what) what) const {
  if (options.listener)
    options.listener({.exchange = exchange, .at = system_clock().wall(), .what = std::move(what)});
}

Proxy::Proxy(std::shared_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Proxy>> Proxy::start(Options options) {
  auto state = std::make_shared<State>(std::move(options));
  if (state->options.upstreams.empty())
    return Error{ErrorCode::invalid, "no model server is named", "proxy.upstream"};
  if (auto opened = state->open(); !opened) return opened.error();
  state->accept();
  state->tick_later();
  state->thread = std::thread([state = state.get()] { run_to_end(state->context); });
  return std::unique_ptr<Proxy>(new Proxy(std::move(state)));
}

Proxy::~Proxy() {
  stop();
  asio::post(state_->context, [state = state_.get()] {
    const auto open = state->connections;
    for (const auto& connection : open) connection->close();
  });
  wait_until_done();
  state_->servers.clear();  // their probers report this
}

std::string Proxy::url() const {
  return state_->url;
}

ProxyLoad Proxy::load() const {
  return {.connections = state_->connections_open, .exchanges = state_->exchanges_open};
}

void Proxy::stop() {
  asio::post(state_->context, [state = state_.get()] {
    if (std::exchange(state->stopping, true)) return;
    LinkError ignored;
    state->acceptor.close(ignored);
    const auto open = state->connections;
    for (const auto& connection : open) connection->stop();
    if (state->connections.empty()) state->clockwork.cancel();
  });
}

void Proxy::wait_until_done() {
  if (state_->thread.joinable()) state_->thread.join();
}

}  // namespace watchdog::monitor
