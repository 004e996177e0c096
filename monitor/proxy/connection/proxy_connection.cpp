// The client's side of a proxied connection: reads a request, finds its session and server,
// answers cancelled sessions, and starts the upstream leg (upstream_leg.cpp). All callbacks run
// on the proxy's thread; a callback of an exchange that has ended does nothing.
#include "proxy/connection/proxy_connection.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <utility>

#include "http/framing.h"
#include "proxy/connection/client_limits.h"
#include "proxy/connection/keep_alive.h"
#include "proxy/connection/plain_target.h"

namespace watchdog::monitor {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;

/// The limit of data that a client sends ahead of its turn; it is not read before that.
constexpr std::size_t ahead_bytes_max = 65'536;
/// As many times as far apart as looks at the server are.
constexpr int looks_to_be_sure = 5;
/// For its last words.
constexpr int goodbye_seconds_max = 5;

std::string spoken_seconds(Millis time) {
  const auto tenths = time.count() / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

}  // namespace

void ProxyConnection::begin() {
  client_->tune();
  client_->watch_peer();
  peer_ = client_->peer();
  peer_port_ = client_->peer_port();
  own_port_ = client_->own_port();
  number_ = ++proxy_->last_connection;
  expect(proxy_->options.limits.idle_seconds_max);
  if (!proxy_->tls) return next_request();
  client_->begin_tls_as_server(*proxy_->tls,
                               on_done([](Self self, const LinkError& error, std::size_t) {
                                 error ? self->close() : self->next_request();
                               }));
}

void ProxyConnection::tick(ProxyClock::time_point now) {
  // A client owes us a request; the rest of one is awaited only while it is read.
  const bool owes = !exchange_ || !exchange_->began || (reading_ && !request_->is_done());
  if (owes && now >= expires_) return client_left();
  if (!exchange_ || !exchange_->began || exchange_->over) return;
  if (exchange_->connected)
    exchange_->up->watch_peer();  // an answer that takes a second may take long
  // One look may be wrong, where several servers share an address; the looks since agree.
  const auto& lost = exchange_->lost_at;
  if (lost && now - *lost >= looks_to_be_sure * proxy_->options.settings.look_every) {
    return fail(502, "server_lost", exchange_->lost_why, ExchangeEnded::How::lost);
  }
  if (exchange_->is_open) return cut_if_cancelled();
  feed_client(now);
}

void ProxyConnection::stop() {
  // A WebSocket has no end of its own to wait for.
  if (!exchange_ || exchange_->is_open) close();
}

void ProxyConnection::close() {
  const auto self = shared_from_this();
  if (closed_) return;
  closed_ = true;
  if (exchange_ && !exchange_->over) end(ExchangeEnded::How::stopped, "the proxy stops");
  client_->close();
  proxy_->drop(self);
}

void ProxyConnection::learn(const ServerFinding& finding) {
  if (!exchange_ || exchange_->over || exchange_->id != finding.request) return;
  exchange_->state = finding.evidence.state;
  proxy_->observe(exchange_->id, ExchangeEvidence{finding.evidence, finding.why});
  const bool lost = finding.evidence.state == ServerState::gone ||
                    finding.evidence.state == ServerState::restarted;
  const bool given_up = finding.evidence.state == ServerState::hung &&
                        proxy_->options.settings.on_hung == HungAnswer::fail;
  if (lost && !exchange_->lost_at) {
    exchange_->lost_at = ProxyClock::now();
    exchange_->lost_why = finding.why;
  } else if (!lost) {
    exchange_->lost_at.reset();
  }
  if (given_up)
    fail(504, "server_hangs", "the model server hangs: " + finding.why, ExchangeEnded::How::failed);
}

void ProxyConnection::give_up() noexcept {
  try {
    close();
  } catch (const std::bad_alloc&) {
    client_->close();
    proxy_->drop(shared_from_this());
  }
}

void ProxyConnection::expect(int seconds) {
  expires_ = ProxyClock::now() + std::chrono::seconds(seconds);
}

void ProxyConnection::next_request() {
  if (proxy_->stopping) return close();
  exchange_.reset();
  request_.emplace();
  request_->header_limit(static_cast<std::uint32_t>(proxy_->options.limits.header_bytes_max));
  request_->body_limit(boost::none);
  expect(proxy_->options.limits.idle_seconds_max);
  if (client_bytes_.empty()) return want_bytes();
  // Posted, because each of many pipelined requests would otherwise add a level to the stack.
  asio::post(proxy_->context, [go_on = on_done([](Self self, const LinkError&, std::size_t) {
                                 if (!self->closed_) self->got_bytes();
                               })] { go_on({}, 0); });
}

void ProxyConnection::want_bytes() {
  if (reading_ || closed_ || client_bytes_.size() >= ahead_bytes_max) return;
  reading_ = true;
  client_->read(asio::buffer(client_buffer_),
                on_done([](Self self, const LinkError& error, std::size_t bytes) {
                  self->reading_ = false;
                  if (self->closed_) return;
                  if (error) return self->client_left();
                  self->client_bytes_.append(self->client_buffer_.data(), bytes);
                  self->got_bytes();
                }));
}

void ProxyConnection::got_bytes() {
  if (exchange_ && exchange_->is_open) return carry_up();
  // While an answer is under way this only notices that the client hangs up.
  if (exchange_ && exchange_->began && (request_->is_done() || exchange_->over))
    return want_bytes();
  LinkError error;
  const bool had_head = request_->is_header_done();
  if (!client_bytes_.empty()) expect(proxy_->options.limits.upload_seconds_max);
  if (!feed(*request_, client_bytes_, error)) return refuse(error);
  if (!request_->is_header_done()) return want_bytes();
  if (!had_head) {
    if (!accept_head()) return;
    if (!feed(*request_, client_bytes_, error)) return refuse(error);
  }
  if (!request_->is_done() && client_bytes_.size() > framing_bytes_max)
    return refuse(http::error::buffer_overflow);
  accept_body();
}

bool ProxyConnection::accept_head() {
  const auto& head = request_->get();
  exchange_.emplace();
  auto& now = *exchange_;
  now.method = std::string(view(head.method_string()));
  now.is_head = head.method() == http::verb::head;
  now.version = static_cast<int>(head.version());
  now.keeps = head.keep_alive();
  now.headers = headers_of(head);
  auto prefix = prefix_in(view(head.target()));
  now.target = std::move(prefix.target);
  now.prefix = std::move(prefix.text);
  now.session = std::move(prefix.session);
  now.api = api_of(now.method, plain_target(now.target));
  if (!now.target.starts_with('/') || head.count(http::field::host) > 1 ||
      !is_framing_known(head)) {
    answer_last(400, error_body(now.api, 400, "malformed", "the request cannot be understood"));
    return false;
  }
  const bool upgrades = head.count(http::field::upgrade) > 0;
  now.is_tunnel = head.method() == http::verb::get && upgrades &&
                  http::token_list(head[http::field::upgrade]).exists("websocket");
  // A server may pass over the offer of another protocol (RFC 9110, section 7.8). JDK clients and
  // curl offer h2c with ordinary requests.
  if (head.method() == http::verb::connect) {
    answer_last(501, error_body(now.api, 501, "not_supported",
                                "only HTTP/1.1 and WebSockets pass through here"));
    return false;
  }
  if (auto refusal = admit(std::move(prefix.token))) {
    answer_last(refusal->status, refusal->body, refusal->extra_headers);
    return false;
  }
  if (http::token_list(head[http::field::expect]).exists("100-continue"))
    out_ += "HTTP/1.1 100 Continue\r\n\r\n";
  flush({});
  return true;
}

std::optional<Response> ProxyConnection::admit(std::string token) {
  if (!proxy_->options.admission) return std::nullopt;
  const auto& head = request_->get();
  const auto own = header_in(exchange_->headers, "x-watchdog-token");
  if (!own.empty()) token = own;
  Request asked;
  // Through a WebSocket a page of another site could ask and read as it likes: like a request that
  // changes something, it must not come from there.
  asked.method = exchange_->is_tunnel                ? Method::post
                 : head.method() == http::verb::get  ? Method::get
                 : head.method() == http::verb::head ? Method::head
                                                     : Method::post;
  asked.target = exchange_->target;
  asked.host = std::string(view(head[http::field::host]));
  asked.origin = std::string(view(head[http::field::origin]));
  exchange_->origin = asked.origin;
  const auto& allowed = proxy_->options.settings.allowed_origins;
  exchange_->is_allowed_page =
      !asked.origin.empty() && std::ranges::find(allowed, asked.origin) != allowed.end();
  if (exchange_->is_allowed_page) asked.origin.clear();
  if (!token.empty()) asked.authorization = "Bearer " + token;
  if (!exchange_->is_allowed_page)
    asked.fetch_site = std::string(header_in(exchange_->headers, "sec-fetch-site"));
  asked.peer = peer_;
  for (auto [at, end] = head.equal_range("X-Forwarded-For"); at != end; ++at)
    asked.forwarded_for = std::string(view(at->value()));
  auto refusal = proxy_->options.admission(asked);
  if (refusal && refusal->status == 403 && !asked.origin.empty())
    return error_response(403, "refused",
                          "a page of another site may not use this model server. "
                          "proxy.allowed_origins names the origins whose pages may");
  return refusal;
}

bool ProxyConnection::looks_into() const {
  return generates(exchange_->api) || exchange_->api == ModelApi::openai_embeddings;
}

void ProxyConnection::accept_body() {
  auto& now = *exchange_;
  if (now.began) return upload();
  auto piece = std::exchange(request_->get().body(), {});
  if (now.body.empty()) {
    now.body = std::move(piece);
  } else {
    now.body += piece;
  }
  if (!looks_into()) return pass_on(false);
  const auto& limits = proxy_->options.limits;
  const auto more = now.body.size() - now.inspected;
  const bool has_room = proxy_->inspected_bytes + more <= limits.inspected_in_all_max;
  if (has_room) {
    proxy_->inspected_bytes += more;
    now.inspected = now.body.size();
  }
  const bool is_large = !has_room || now.body.size() > limits.inspected_bytes_max;
  if (request_->is_done()) return pass_on(!is_large);
  if (!is_large || (has_room && waits_for_model())) return want_bytes();
  pass_on(false);
}

bool ProxyConnection::waits_for_model() {
  auto& now = *exchange_;
  const bool is_known = !model_in_target(now.api, now.target).empty() ||
                        !header_in(now.headers, "content-encoding").empty();
  if (is_known || !proxy_->routes_by_model()) return false;
  if (now.body.size() > proxy_->options.limits.routed_bytes_max) return false;
  if (now.body.size() < now.model_wanted_at) return true;
  // At twice the size again: all looks together take no longer than two at the end.
  now.model_wanted_at = 2 * now.body.size();
  return !names_model(now.body);
}

void ProxyConnection::flush(std::function<void(Self)> then) {
  if (then) then_ = std::move(then);
  if (writing_ || closed_) return;
  if (out_.empty()) {
    if (auto next = std::exchange(then_, {})) next(shared_from_this());
    return;
  }
  writing_ = true;
  wire_ = std::exchange(out_, {});
  client_->write({asio::buffer(wire_), asio::const_buffer()},
                 on_done([](Self self, const LinkError& error, std::size_t) {
                   self->writing_ = false;
                   if (self->closed_) return;
                   if (error) return self->client_left();
                   if (self->exchange_) self->exchange_->last_byte = ProxyClock::now();
                   self->flush({});
                 }));
}

void ProxyConnection::feed_client(ProxyClock::time_point now_time) {
  auto& now = *exchange_;
  // Bytes that could not be sent yet are more than a word that some will come.
  if (writing_ || !out_.empty()) return;
  const auto quiet = std::chrono::duration_cast<Millis>(now_time - now.last_byte);
  const bool in_pieces = now.framing.kind == Framing::Kind::chunks;
  const auto sent =
      keep_alive(proxy_->options.settings,
                 {.api = now.api,
                  .streams = now.streams,
                  .chunks = now.version >= 11 && (!now.head_sent || in_pieces),
                  .head_sent = now.head_sent,
                  .between = now.streams ? now.answer_body.takes_insertions()
                                         : now.head_is_ours && !now.body_came,
                  .quiet = quiet,
                  .silent = std::chrono::duration_cast<Millis>(now_time - now.server_spoke),
                  .server = now.state,
                  .model = now.model,
                  .counts_events = counts_events(header_in(now.headers, "user-agent"))});
  if (!sent.any()) return;
  if (sent.head) {
    now.head_sent = now.head_is_ours = true;
    now.head_at = ProxyClock::now();
    frame_freely();
    Headers headers{{"Content-Type", std::string(answer_type(now.api, now.streams))},
                    {"Cache-Control", "no-cache"}};
    permit_page(headers);
    out_ += answer_head(200, "OK", headers, now.framing, !now.keeps);
  }
  send_body(sent.bytes);
  flush({});
}

void ProxyConnection::permit_page(Headers& headers) const {
  if (!exchange_ || !exchange_->is_allowed_page) return;
  headers.emplace_back("Access-Control-Allow-Origin", exchange_->origin);
  headers.emplace_back("Vary", "Origin");
}

void ProxyConnection::fail(int status, std::string_view type, const std::string& message,
                           ExchangeEnded::How how) {
  auto& now = *exchange_;
  const auto body = error_body(now.api, status, type, message);
  const bool readable = now.streams && now.framing.kind == Framing::Kind::chunks &&
                        now.answer_body.takes_insertions() && generates(now.api);
  end(how, message);
  if (!now.head_sent) {
    answer_last(status, body);
  } else if (readable || (now.head_is_ours && !now.body_came)) {
    send_body(now.streams ? error_in_stream(now.api, body) : body);
    if (now.framing.kind == Framing::Kind::chunks) out_ += last_chunk;
    now.keeps = now.keeps && request_->is_done();
    leave_or_go_on();
  } else {
    // It must not take for whole what is not.
    flush([](Self self) {
      self->client_->reset();
      self->close();
    });
  }
}

void ProxyConnection::answer_last(int status, std::string_view body, std::string_view more) {
  std::string wire = "HTTP/1.1 " + std::to_string(status) + " ";
  wire.append(view(http::obsolete_reason(http::int_to_status(static_cast<unsigned>(status)))));
  wire.append("\r\nContent-Type: application/json\r\n").append(more);
  Headers permissions;
  permit_page(permissions);
  for (const auto& [name, value] : permissions)
    wire.append(name).append(": ").append(value).append("\r\n");
  wire.append("Content-Length: ").append(std::to_string(body.size()));
  wire.append("\r\nConnection: close\r\n\r\n");
  if (!exchange_ || !exchange_->is_head) wire.append(body);
  out_ += wire;
  say_goodbye();
}

void ProxyConnection::refuse(const LinkError& error) {
  if (exchange_ && exchange_->began) {
    fail(400, "malformed", "the rest of the request cannot be understood",
         ExchangeEnded::How::client_gone);
    return;
  }
  const bool head = error == http::error::header_limit;
  const bool framing = error == http::error::buffer_overflow;
  const int status = head || framing ? 431 : 400;
  answer_last(status,
              error_body(ModelApi::other, status, "malformed",
                         head      ? "the head of the request is too large"
                         : framing ? "a chunk's extension and the trailers may have at most " +
                                         std::to_string(framing_bytes_max) + " bytes"
                                   : "the request cannot be understood: " + error.message()));
}

void ProxyConnection::say_goodbye() {
  if (exchange_) exchange_->began = false;  // from here on the clock counts
  expect(goodbye_seconds_max);
  flush([](Self self) {
    self->client_->end_writing();
    self->drain();
  });
}

void ProxyConnection::drain() {
  client_bytes_.clear();
  if (reading_ || closed_) return;
  reading_ = true;
  client_->read(asio::buffer(client_buffer_),
                on_done([](Self self, const LinkError& error, std::size_t) {
                  self->reading_ = false;
                  error ? self->close() : self->drain();
                }));
}

void ProxyConnection::leave_or_go_on() {
  const auto& now = *exchange_;
  const bool more = now.keeps && request_->is_done() && now.framing.kind != Framing::Kind::close;
  if (!more) return say_goodbye();
  flush([](Self self) { self->next_request(); });
}

void ProxyConnection::client_left() {
  if (exchange_ && exchange_->began && !exchange_->over) {
    const auto& now = *exchange_;
    end(ExchangeEnded::How::client_gone, why_it_left(now));
  }
  close();
}

std::string ProxyConnection::why_it_left(const OpenExchange& now) {
  const auto time = ProxyClock::now();
  const auto lasted = std::chrono::duration_cast<Millis>(time - now.since);
  const auto quiet = std::chrono::duration_cast<Millis>(time - now.last_byte);
  const auto since_head =
      now.head_sent ? std::optional(std::chrono::duration_cast<Millis>(time - now.head_at))
                    : std::nullopt;
  const auto limit = probable_limit(header_in(now.headers, "user-agent"),
                                    {.lasted = lasted, .quiet = quiet, .since_head = since_head});
  std::string why = "the client hung up after " + spoken_seconds(lasted);
  if (!now.body_came) {
    why += ", before any answer";
  } else if (quiet != lasted) {
    why += ", " + spoken_seconds(quiet) + " after the last byte";
  }
  if (!limit) return why;
  why += ": probably " + std::string(limit->name) + " of " + std::string(limit->client);
  if (limit->setting.starts_with("none")) return why;
  return why + " (change it with " + std::string(limit->setting) + ")";
}

void ProxyConnection::end(ExchangeEnded::How how, std::string message) {
  auto& now = *exchange_;
  if (now.over) return;
  now.over = true;
  if (now.up) now.up->close();
  release_body();
  if (!now.began) return;
  const auto time = ProxyClock::now();
  proxy_->exchanges.erase(now.id);
  --proxy_->exchanges_open;
  if (now.server && now.server->prober && generates(now.api)) now.server->prober->closed(now.id);
  proxy_->observe(now.id,
                  ExchangeEnded{.how = how,
                                .message = std::move(message),
                                .lasted = std::chrono::duration_cast<Millis>(time - now.since),
                                .quiet = std::chrono::duration_cast<Millis>(time - now.last_byte),
                                .answer_began = now.head_sent,
                                .cancel = std::move(now.cancel),
                                .until = now.until});
}

void ProxyConnection::release_body() {
  proxy_->inspected_bytes -= std::exchange(exchange_->inspected, 0);
}

bool ProxyConnection::is_under_way(RequestId id) const {
  return !closed_ && exchange_ && exchange_->id == id && !exchange_->over;
}

std::shared_ptr<OpenConnection> make_connection(std::shared_ptr<Proxy::State> proxy,
                                                LinkSocket socket) {
  return std::make_shared<ProxyConnection>(std::move(proxy), std::move(socket));
}

}  // namespace watchdog::monitor
