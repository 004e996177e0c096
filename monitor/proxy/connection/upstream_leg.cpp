// The server's side of a proxied connection: sends the request, passes on the answer with keep-
// alives, and turns errors into the form of the client's API. If the client closes, the upstream
// connection closes at once.
#include <boost/asio/ip/tcp.hpp>
#include <utility>

#include "http/framing.h"
#include "ingest/hook_answer.h"
#include "llm/limit_end.h"
#include "llm/retry_after.h"
#include "proxy/connection/json_members.h"
#include "proxy/connection/plain_target.h"
#include "proxy/connection/proxy_connection.h"

namespace watchdog::monitor {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;

constexpr std::size_t read_bytes = 16'384;
constexpr int interim_answers_max = 16;
/// Of what the owner wants no answer for. Clients try other errors again, or ask their user to log
/// in.
constexpr int bad_request = 400;
constexpr std::string_view upgrade_lines = "Connection: Upgrade\r\nUpgrade: websocket\r\n";
/// How often bytes of a WebSocket are reported.
constexpr std::chrono::seconds tunnel_observed_every{1};

}  // namespace

void ProxyConnection::pass_on(bool whole) {
  auto& now = *exchange_;
  now.began = true;
  now.id = ++proxy_->last_exchange;
  now.since = now.last_byte = now.server_spoke = ProxyClock::now();
  proxy_->exchanges[now.id] = this;
  ++proxy_->exchanges_open;
  std::string changed;  // the body as the server gets it, where that is another one
  now.streams = streams_lines(now.api) || streams_by_target(now.api, now.target);
  auto body = take_body(whole);
  now.model = body.model;
  now.knows_streams = body.streams.has_value() || (body.content && !body.is_cut);
  now.streams = body.streams.value_or(now.streams);
  const auto named =
      string_in(body.model).value_or(std::string(model_in_target(now.api, now.target)));
  now.server = &proxy_->server_for(named);
  if (!body.unread.empty() && named.empty() && proxy_->routes_by_model())
    body.unread += "; nor is its model, so it went to " + now.server->upstream.url.text();
  if (const auto* api = unread_api_of(now.method, now.target)) body.unread = words_of(*api);
  auto parameters = body.parameters;
  if (now.knows_streams) parameters.stream = now.streams;
  if (body.takes_members && now.streams) changed = asking_for_progress(body.progress);
  auto process = generates(now.api) || now.is_tunnel ? client_process() : std::nullopt;
  ExchangeBegan started{.method = now.method,
                        .target = plain_target(now.target),
                        .session = now.session,
                        .peer = peer_,
                        .peer_port = peer_port_,
                        .own_port = own_port_,
                        .connection = number_,
                        .server = now.server->upstream.url.text(),
                        .headers = without_secrets(now.headers),
                        .key_digest = key_digest(now.headers),
                        .body = std::move(body.content),
                        .body_is_cut = body.is_cut,
                        .unread = std::move(body.unread),
                        .is_tunnel = now.is_tunnel,
                        .process = std::move(process),
                        .process_session = process_session_};
  std::optional<CancelRequest> cancel;
  std::optional<SpendingRefusal> refusal;
  if (generates(now.api) || now.is_tunnel) {
    if (proxy_->options.cancelled) cancel = proxy_->options.cancelled(started);
    if (proxy_->options.over_budget) refusal = proxy_->options.over_budget(started);
  }
  if (now.is_tunnel) now.tunnel = std::make_unique<const ExchangeBegan>(started);
  proxy_->observe(now.id, std::move(started));
  if (cancel) return deny(std::move(*cancel));
  if (refusal) {
    now.until = refusal->until;
    return fail(bad_request, "budget_exhausted", refusal->text, ExchangeEnded::How::over_budget);
  }
  if (now.server->prober && generates(now.api)) now.server->prober->opened(now.id, parameters);
  const bool has_body = request_->get().has_content_length() || request_->get().chunked();
  Framing framing;
  if (whole || (has_body && request_->is_done())) {
    framing = {Framing::Kind::length, !changed.empty() ? changed.size()
                                      : now.whole      ? now.whole->size()
                                                       : now.body.size()};
  } else if (request_->get().chunked()) {
    framing = {Framing::Kind::chunks};
    now.chunks_up = true;
  } else if (has_body) {
    framing = {Framing::Kind::length, request_->content_length().value_or(0)};
  }
  if (framing.kind == Framing::Kind::length && framing.length == 0 && !has_body) framing = {};
  now.up_wire = request_head(now.method, now.target, now.headers, now.server->upstream.url, framing,
                             looks_into());
  if (now.is_tunnel) now.up_wire.insert(now.up_wire.size() - 2, upgrade_lines);
  if (!changed.empty()) {
    now.whole = std::make_shared<const std::string>(std::move(changed));
  }
  now.uploaded = request_->is_done();
  connect();
  want_bytes();
}

RequestBody ProxyConnection::take_body(bool whole) {
  auto& now = *exchange_;
  if (!looks_into()) return {};
  now.whole = std::make_shared<const std::string>(std::move(now.body));
  now.body.clear();
  return read_request_body(now.whole, header_in(now.headers, "content-encoding"), whole,
                           proxy_->options.limits.inspected_bytes_max);
}

void ProxyConnection::deny(CancelRequest cancel) {
  const auto message = "this session was " + cancel_sentence(cancel) +
                       ". Its further requests are denied; begin a new session to go on";
  exchange_->cancel = std::move(cancel);
  fail(bad_request, "cancelled", message, ExchangeEnded::How::denied);
}

void ProxyConnection::cut_if_cancelled() {
  auto& now = *exchange_;
  if (!proxy_->options.cancelled) return;
  auto cancel = proxy_->options.cancelled(*now.tunnel);
  if (!cancel) return;
  now.cancel = std::move(*cancel);
  // The proxy does not read the frames, so it cannot put one of its own between them. A client that
  // connects again gets the reason.
  end(ExchangeEnded::How::denied, "this session was " + cancel_sentence(now.cancel));
  client_->reset();
  close();
}

std::optional<ProcessFacts> ProxyConnection::client_process() {
  if (client_process_ || !proxy_->options.client_of) return client_process_;
  client_process_ =
      proxy_->options.client_of({.peer = peer_, .peer_port = peer_port_, .own_port = own_port_});
  if (client_process_ && proxy_->options.session_of_process)
    process_session_ = proxy_->options.session_of_process(*client_process_);
  return client_process_;
}

std::string ProxyConnection::asking_for_progress(std::string_view asked) {
  auto& now = *exchange_;
  const bool can = now.api == ModelApi::openai_chat || now.api == ModelApi::openai_completions ||
                   now.api == ModelApi::llama_completion;
  if (!can) return {};
  if (!asked.empty()) {
    if (asked == "true") now.progress = AnswerFilter::Progress::passed;
    return {};
  }
  if (!now.server->prober || !now.server->prober->shows_progress()) return {};
  now.progress = proxy_->options.settings.keep_alive == KeepAliveMode::off
                     ? AnswerFilter::Progress::dropped
                     : AnswerFilter::Progress::hidden;
  return with_member(*now.whole, "\"return_progress\":true");
}

bool ProxyConnection::shares_connection() const {
  const auto& now = *exchange_;
  const auto method = request_->get().method();
  return (method == http::verb::get || method == http::verb::head) && !now.is_tunnel &&
         !generates(now.api) && now.uploaded && now.body.empty() && !now.whole;
}

void ProxyConnection::connect() {
  auto& now = *exchange_;
  if (shares_connection()) now.up = now.server->claim_kept();
  if (!now.up) return connect_anew();
  now.is_reused = true;
  send_request();
}

void ProxyConnection::connect_anew() {
  auto& now = *exchange_;
  now.is_reused = now.connected = false;
  now.up = std::make_shared<UpstreamConnection>(LinkSocket(proxy_->context));
  const auto& url = now.server->upstream.url;
  LinkError error;
  const auto port = static_cast<std::uint16_t>(std::stoi(url.port));
  if (const auto literal = asio::ip::make_address(url.host, error); !error)
    return connect_to({tcp::endpoint(literal, port)});
  auto resolver = std::make_shared<tcp::resolver>(proxy_->context);
  resolver->async_resolve(
      url.host, url.port,
      [self = shared_from_this(), id = now.id, resolver](const LinkError& failed,
                                                         const auto& found) {
        if (!self->is_under_way(id)) return;
        if (failed)
          return self->fail(502, "server_unreachable",
                            "the name of the model server cannot be looked up: " + failed.message(),
                            ExchangeEnded::How::refused);
        std::vector<tcp::endpoint> addresses;
        for (const auto& entry : found) addresses.push_back(entry.endpoint());
        self->connect_to(addresses);
      });
}

void ProxyConnection::connect_to(const std::vector<tcp::endpoint>& addresses) {
  exchange_->up->connect(
      addresses, guarded([](Self self, const LinkError& error, std::size_t) {
        auto& now = *self->exchange_;
        if (error) return self->cannot_connect(error.message());
        now.up->tune();
        if (!now.server->trust) return self->send_request();
        now.up->begin_tls_as_client(
            *now.server->trust, now.server->upstream.url.host,
            self->guarded([](Self again, const LinkError& failed, std::size_t) {
              if (!failed) return again->send_request();
              const auto distrust = again->exchange_->up->distrust();
              again->cannot_connect(distrust.empty() ? "TLS failed: " + failed.message()
                                                     : "its certificate is refused: " + distrust);
            }));
      }));
}

void ProxyConnection::cannot_connect(const std::string& why) {
  fail(502, "server_unreachable",
       "the model server at " + exchange_->server->upstream.url.text() +
           " cannot be reached: " + why,
       ExchangeEnded::How::refused);
}

void ProxyConnection::send_request() {
  auto& now = *exchange_;
  now.connected = now.uploading = true;
  proxy_->observe(now.id, ExchangeReached{});
  now.up_buffer.resize(read_bytes);
  begin_answer();
  if (now.whole && now.chunks_up) now.body = *std::exchange(now.whole, nullptr);
  if (!now.whole && !now.body.empty()) {
    now.up_wire += now.chunks_up ? chunk_of(now.body) : now.body;
    now.body.clear();
  }
  if (now.chunks_up && now.uploaded) now.up_wire += last_chunk;
  const auto body = now.whole ? now.whole : std::make_shared<const std::string>();
  now.up->write({asio::buffer(now.up_wire), asio::buffer(*body)},
                guarded([body](Self self, const LinkError& error, std::size_t) {
                  self->exchange_->uploading = false;
                  if (!self->exchange_->is_reused) self->exchange_->up_wire.clear();
                  self->exchange_->whole.reset();
                  self->release_body();
                  // A server may answer and close before it has read everything.
                  if (!error) self->upload();
                  if (self->exchange_->is_open) self->carry_up();
                }));
  read_answer();
}

void ProxyConnection::upload() {
  auto& now = *exchange_;
  if (now.uploaded || now.uploading || !now.connected) return;
  auto piece = std::exchange(request_->get().body(), {});
  now.uploaded = request_->is_done();
  if (piece.empty() && !now.uploaded) return want_bytes();
  if (now.chunks_up) {
    now.up_wire = piece.empty() ? "" : chunk_of(piece);
    if (now.uploaded) now.up_wire += last_chunk;
  } else {
    now.up_wire = std::move(piece);
  }
  if (now.up_wire.empty()) return;
  now.uploading = true;
  now.up->write({asio::buffer(now.up_wire), asio::const_buffer()},
                guarded([](Self self, const LinkError& error, std::size_t) {
                  self->exchange_->uploading = false;
                  if (error) return;
                  self->upload();
                  self->want_bytes();
                }));
}

void ProxyConnection::begin_answer() {
  auto& now = *exchange_;
  now.answer.emplace();
  now.answer->header_limit(static_cast<std::uint32_t>(proxy_->options.limits.header_bytes_max));
  now.answer->body_limit(boost::none);
  if (now.is_head) now.answer->skip(true);
}

void ProxyConnection::read_answer() {
  auto& now = *exchange_;
  now.up->read(asio::buffer(now.up_buffer),
               guarded([](Self self, const LinkError& error, std::size_t bytes) {
                 auto& under_way = *self->exchange_;
                 if (error) return self->server_left(error);
                 under_way.up_bytes.append(under_way.up_buffer.data(), bytes);
                 self->got_answer();
               }));
}

void ProxyConnection::got_answer() {
  auto& now = *exchange_;
  while (true) {
    LinkError error;
    const bool had_head = now.answer->is_header_done();
    if (!feed(*now.answer, now.up_bytes, error))
      return fail(502, "server_malformed",
                  "what the model server sends is no HTTP: " + error.message(),
                  ExchangeEnded::How::malformed);
    if (!now.answer->is_header_done()) {
      if (now.up_bytes.size() <= 2 * proxy_->options.limits.header_bytes_max) return read_answer();
      return fail(502, "server_malformed", "the head of its answer does not end",
                  ExchangeEnded::How::malformed);
    }
    if (had_head) break;
    const auto status = now.answer->get().result_int();
    if (status >= 200) {
      if (!is_framing_known(now.answer->get()))
        return fail(502, "server_malformed", "its answer has an unknown transfer coding",
                    ExchangeEnded::How::malformed);
      answer_began();
      if (now.answer->is_done() || now.up_bytes.empty()) break;
      continue;
    }
    if (status == 101 && now.is_tunnel) return open_tunnel();
    if (status == 101 || ++now.interim > interim_answers_max)
      return fail(502, "server_malformed", "the model server wants to speak something else",
                  ExchangeEnded::How::malformed);
    begin_answer();
  }
  if (!now.answer->is_done() && now.up_bytes.size() > framing_bytes_max)
    return fail(502, "server_malformed",
                "a chunk's extension or the trailers of its answer are above " +
                    std::to_string(framing_bytes_max) + " bytes",
                ExchangeEnded::How::malformed);
  accept_piece(std::exchange(now.answer->get().body(), {}));
}

void ProxyConnection::answer_began() {
  auto& now = *exchange_;
  const auto& head = now.answer->get();
  const auto status = static_cast<int>(head.result_int());
  const auto type = std::string(view(head[http::field::content_type]));
  now.answer_came = true;
  constexpr int first_error = 400;
  const auto header = [&head](std::string_view name) {
    return view(head[boost::beast::string_view(name.data(), name.size())]);
  };
  const auto time = system_clock().wall();
  const bool is_error = status >= first_error;
  const auto coding = view(head[http::field::content_encoding]);
  // An answer shows that its request asked for a stream.
  if (!now.knows_streams && generates(now.api) && form_of_type(type) == AnswerForm::events)
    now.streams = true;
  now.answer_body = AnswerBody({.api = now.api,
                                .streams = now.streams,
                                .has_head = now.head_is_ours,
                                .progress = now.progress},
                               {.status = status, .type = type, .coding = coding});
  proxy_->observe(
      now.id,
      AnswerBegan{.status = status,
                  .content_type = type,
                  .content_encoding = std::string(now.answer_body.is_read() ? "" : coding),
                  .retry_after = retry_after(header, time),
                  .limit_end = is_error ? limit_end_in_headers(header, time) : std::nullopt});
  if (now.head_sent) return;  // one of ours: what the server says comes below it
  now.head_sent = true;
  now.head_at = ProxyClock::now();
  const bool bodiless = now.is_head || status == 204 || status == 304;
  if (bodiless) {
    now.framing = {Framing::Kind::none};
  } else if (const auto length = now.answer->content_length();
             length && !now.answer_body.changes()) {
    now.framing = {Framing::Kind::length, *length};
  } else {
    frame_freely();
  }
  const bool last = !now.keeps || now.framing.kind == Framing::Kind::close;
  auto headers = headers_of(head);
  if (now.answer_body.unpacks()) drop_header(headers, "content-encoding");
  for (auto& [name, value] : headers)
    if (is_header(name, "location"))
      value = location_here(value, now.server->upstream.url, now.prefix);
  // Else any page could read what the model says. Without an origin as well: a browser's cache
  // gives an image's answer to a page.
  if (!now.is_allowed_page) drop_page_permissions(headers);
  out_ += answer_head(status, view(head.reason()), headers, now.framing, last);
}

void ProxyConnection::frame_freely() {
  auto& now = *exchange_;
  now.framing = {now.version >= 11 ? Framing::Kind::chunks : Framing::Kind::close};
  if (now.version < 11) now.keeps = false;
}

void ProxyConnection::accept_piece(std::string piece) {
  auto& now = *exchange_;
  if (!now.answer_body.obstacle().empty()) return fail_unread();
  if (!piece.empty()) {
    now.lost_at.reset();
    now.server_spoke = ProxyClock::now();
    const auto bytes = static_cast<std::int64_t>(piece.size());
    auto [given, read, is_broken] = now.answer_body.pass(std::move(piece));
    if (!read && now.answer_body.is_read()) {
      proxy_->observe(now.id, AnswerSkipped{bytes});
    } else {
      proxy_->observe(now.id, AnswerPiece{std::move(read).value_or(given)});
    }
    if (is_broken) return fail_unread();
    now.body_came = now.body_came || !given.empty();
    send_body(given);
    update_prober();
  }
  if (now.answer->is_done()) return answer_over();
  if (out_.empty()) return read_answer();
  flush([](Self self) { self->read_answer(); });
}

void ProxyConnection::fail_unread() {
  const auto coding = exchange_->answer_body.obstacle();
  fail(502, "server_malformed",
       coding.empty() ? std::string("the model server's compressed answer cannot be unpacked")
                      : "the model server compressed its answer (" + std::string(coding) +
                            ") though it was asked not to. Turn compression off there",
       ExchangeEnded::How::malformed);
}

void ProxyConnection::update_prober() {
  auto& now = *exchange_;
  if (!now.server->prober || !generates(now.api)) return;
  now.sample.pieces = now.answer_body.filter().pieces();
  now.sample.prompt_read = now.answer_body.filter().prompt_read();
  now.sample.prompt_tokens = now.answer_body.filter().prompt_tokens();
  now.server->prober->moved(now.id, now.sample);
}

void ProxyConnection::send_body(std::string_view bytes) {
  if (bytes.empty() || exchange_->framing.kind == Framing::Kind::none) return;
  if (exchange_->framing.kind == Framing::Kind::chunks) {
    out_ += chunk_of(bytes);
  } else {
    out_ += bytes;
  }
}

void ProxyConnection::answer_over() {
  auto& now = *exchange_;
  const auto rest = now.answer_body.rest();
  if (!rest) return fail_unread();
  send_body(*rest);
  if (now.framing.kind == Framing::Kind::chunks) out_ += last_chunk;
  if (shares_connection() && !now.uploading && now.up_bytes.empty() && now.answer->keep_alive())
    now.server->keep(std::exchange(now.up, nullptr));
  end(ExchangeEnded::How::answered, "");
  leave_or_go_on();
}

void ProxyConnection::open_tunnel() {
  auto& now = *exchange_;
  const auto& head = now.answer->get();
  now.answer_came = now.head_sent = now.is_open = true;
  now.head_at = ProxyClock::now();
  auto wire = answer_head(101, view(head.reason()), headers_of(head), {}, false);
  wire.insert(wire.size() - 2, upgrade_lines);
  observe_tunnel(now.up_bytes.size());
  out_ += wire + std::exchange(now.up_bytes, {});
  flush([](Self self) { self->carry_down(); });
  carry_up();
}

void ProxyConnection::carry_down() {
  auto& now = *exchange_;
  if (now.over) return;
  now.up->read(asio::buffer(now.up_buffer),
               guarded([](Self self, const LinkError& error, std::size_t bytes) {
                 if (error) {
                   self->end(ExchangeEnded::How::answered, "");
                   return self->flush([](Self last) { last->close(); });
                 }
                 self->observe_tunnel(bytes);
                 self->out_.append(self->exchange_->up_buffer.data(), bytes);
                 self->flush([](Self next) { next->carry_down(); });
               }));
}

void ProxyConnection::carry_up() {
  auto& now = *exchange_;
  if (now.over) return;
  if (now.uploading || client_bytes_.empty()) return want_bytes();
  now.uploading = true;
  now.up_wire = std::exchange(client_bytes_, {});
  observe_tunnel(now.up_wire.size());
  now.up->write({asio::buffer(now.up_wire), asio::const_buffer()},
                guarded([](Self self, const LinkError& error, std::size_t) {
                  self->exchange_->uploading = false;
                  self->exchange_->up_wire.clear();
                  if (!error) self->carry_up();
                }));
  want_bytes();
}

void ProxyConnection::observe_tunnel(std::size_t bytes) {
  auto& now = *exchange_;
  const auto time = ProxyClock::now();
  now.last_byte = time;
  now.unread += static_cast<std::int64_t>(bytes);
  if (now.unread == 0 || time - now.observed_at < tunnel_observed_every) return;
  now.observed_at = time;
  proxy_->observe(now.id, AnswerSkipped{std::exchange(now.unread, 0)});
}

void ProxyConnection::server_left(const LinkError& error) {
  auto& now = *exchange_;
  if (now.is_reused && !now.answer->got_some() && now.up_bytes.empty() && now.interim == 0) {
    // The server closed the kept connection before it answered this request.
    now.up->close();
    return connect_anew();
  }
  LinkError ended;
  if (error == asio::error::eof && now.answer->is_header_done()) now.answer->put_eof(ended);
  if (error == asio::error::eof && !ended && now.answer->is_done()) {
    accept_piece(std::exchange(now.answer->get().body(), {}));
    return;
  }
  fail(502, "server_lost",
       now.answer_came ? "the model server broke off within its answer"
                       : "the model server closed the connection without an answer",
       ExchangeEnded::How::lost);
}

}  // namespace watchdog::monitor
