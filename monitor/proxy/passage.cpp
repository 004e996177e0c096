#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/rfc7230.hpp>
#include <utility>

#include "proxy/answer_filter.h"
#include "proxy/client_limits.h"
#include "proxy/json_members.h"
#include "proxy/keep_alive.h"
#include "proxy/message_head.h"
#include "proxy/model_api.h"
#include "proxy/proxy_state.h"

namespace watchdog::monitor {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using tcp = asio::ip::tcp;

constexpr std::size_t read_bytes = 16'384;
/// What a client may send ahead of its turn; it is not read on before that.
constexpr std::size_t ahead_bytes_max = 65'536;
constexpr int interim_answers_max = 16;

std::string_view view(boost::beast::string_view piece) {
  return {piece.data(), piece.size()};
}

/// A body as Beast's parser wants it: what came since the last look, whatever its framing says.
struct PieceBody {
  using value_type = std::string;

  class reader {  // NOLINT(readability-identifier-naming): Beast's name for it
   public:
    template <bool is_request, class Fields>
    reader(http::header<is_request, Fields>& /*header*/, std::string& piece) : piece_(piece) {}
    void init(const boost::optional<std::uint64_t>& /*length*/, LinkError& error) { error = {}; }
    template <class Buffers>
    std::size_t put(const Buffers& buffers, LinkError& error) {
      error = {};
      std::size_t bytes = 0;
      for (const asio::const_buffer piece : boost::beast::buffers_range_ref(buffers)) {
        piece_.append(static_cast<const char*>(piece.data()), piece.size());
        bytes += piece.size();
      }
      return bytes;
    }
    void finish(LinkError& error) { error = {}; }

   private:
    std::string& piece_;
  };
};

template <class Message>
Headers headers_of(const Message& message) {
  Headers headers;
  for (const auto& field : message)
    headers.emplace_back(std::string(view(field.name_string())), std::string(view(field.value())));
  return headers;
}

/// Feeds a parser with what came. False: it cannot be understood.
template <class Parser>
bool feed(Parser& parser, std::string& bytes, LinkError& error) {
  while (!bytes.empty() && !parser.is_done()) {
    const auto taken = parser.put(asio::buffer(std::as_const(bytes)), error);
    bytes.erase(0, taken);
    if (error == http::error::need_more) {
      error = {};
      return true;
    }
    if (error) return false;
    if (taken == 0) return true;
  }
  return true;
}

std::string chunk_of(std::string_view bytes) {
  std::array<char, 17> size{};
  const auto digits = std::snprintf(size.data(), size.size(), "%zx", bytes.size());
  std::string chunk;
  chunk.reserve(bytes.size() + 24);
  return chunk.append(size.data(), static_cast<std::size_t>(digits))
      .append("\r\n")
      .append(bytes)
      .append("\r\n");
}
constexpr std::string_view last_chunk = "0\r\n\r\n";

std::string spoken_seconds(Millis time) {
  const auto tenths = time.count() / 100;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " s";
}

/// A request, and what became of it.
struct Exchange {
  RequestId id = 0;
  ModelApi api = ModelApi::other;
  std::string method;
  std::string target;  ///< The server's own.
  std::string session;
  std::string model;  ///< JSON text.
  Headers headers;
  bool streams = false;
  bool is_head = false;
  int version = 11;
  bool keeps = true;  ///< The client's connection can take another request.
  std::size_t inspected = 0;
  AnswerFilter::Progress progress = AnswerFilter::Progress::none;

  std::string body;  ///< Until it is looked into.
  std::shared_ptr<const std::string> whole;
  bool chunks_up = false;  ///< The rest of the body goes up in chunks.
  bool began = false;      ///< It was told.
  bool connected = false;
  bool uploaded = false;  ///< All of it is with the server.
  bool uploading = false;

  ServerLink* server = nullptr;
  std::shared_ptr<Link> up;
  std::string up_wire;  ///< On its way to the server.
  std::string up_bytes;
  std::vector<char> up_buffer;
  std::optional<http::response_parser<PieceBody>> answer;
  int interim = 0;
  AnswerFilter filter;
  Framing framing;
  bool head_sent = false;
  bool head_is_ours = false;
  bool answer_came = false;  ///< The head of the server's own answer.
  bool body_came = false;
  RequestSight told{};  ///< What the prober knows.
  ServerState state = ServerState::unknown;
  ProxyClock::time_point since;
  ProxyClock::time_point last_byte;
  bool over = false;
};

class ClientPassage final : public Passage, public std::enable_shared_from_this<ClientPassage> {
 public:
  ClientPassage(std::shared_ptr<Proxy::State> proxy, LinkSocket socket)
      : proxy_(std::move(proxy)), client_(std::make_shared<Link>(std::move(socket))) {}

  void begin() override {
    client_->tune();
    peer_ = client_->peer();
    expect(proxy_->options.limits.idle_seconds_max);
    if (!proxy_->tls) return next_request();
    client_->begin_tls_as_server(*proxy_->tls,
                                 [self = shared_from_this()](const LinkError& error, std::size_t) {
                                   error ? self->close() : self->next_request();
                                 });
  }

  void tick(ProxyClock::time_point now) override {
    // A client owes us a request; the rest of one is awaited only while it is read.
    const bool owes = !exchange_ || !exchange_->began || (reading_ && !request_->is_done());
    if (owes && now >= expires_) return client_left();
    if (exchange_ && exchange_->began && !exchange_->over) feed_client(now);
  }

  void stop() override {
    if (!exchange_) close();
  }

  void close() override {
    const auto self = shared_from_this();
    if (closed_) return;
    closed_ = true;
    if (exchange_ && !exchange_->over) end(ExchangeEnded::How::stopped, "the proxy stops");
    client_->close();
    proxy_->drop(self);
  }

  void learn(const ServerFinding& finding) override {
    if (!exchange_ || exchange_->over || exchange_->id != finding.request) return;
    exchange_->state = finding.evidence.state;
    proxy_->tell(exchange_->id, ExchangeEvidence{finding.evidence, finding.why});
    const bool lost = finding.evidence.state == ServerState::gone ||
                      finding.evidence.state == ServerState::restarted;
    const bool given_up = finding.evidence.state == ServerState::hung &&
                          proxy_->options.settings.on_hung == HungAnswer::fail;
    if (lost) fail(502, "server_lost", finding.why, ExchangeEnded::How::lost);
    if (given_up) fail(504, "server_hangs", finding.why, ExchangeEnded::How::failed);
  }

 private:
  using Self = std::shared_ptr<ClientPassage>;

  void expect(int seconds) { expires_ = ProxyClock::now() + std::chrono::seconds(seconds); }

  // What the client sends.

  void next_request() {
    if (proxy_->stopping) return close();
    exchange_.reset();
    request_.emplace();
    request_->header_limit(static_cast<std::uint32_t>(proxy_->options.limits.header_bytes_max));
    request_->body_limit(boost::none);
    expect(proxy_->options.limits.idle_seconds_max);
    got_bytes();
  }

  void want_bytes() {
    if (reading_ || closed_ || client_bytes_.size() >= ahead_bytes_max) return;
    reading_ = true;
    client_->read(asio::buffer(client_buffer_),
                  [self = shared_from_this()](const LinkError& error, std::size_t bytes) {
                    self->reading_ = false;
                    if (self->closed_) return;
                    if (error) return self->client_left();
                    self->client_bytes_.append(self->client_buffer_.data(), bytes);
                    self->got_bytes();
                  });
  }

  void got_bytes() {
    // While an answer is under way this only notices that the client hangs up.
    if (exchange_ && exchange_->began && (request_->is_done() || exchange_->over))
      return want_bytes();
    LinkError error;
    const bool had_head = request_->is_header_done();
    if (!client_bytes_.empty()) expect(proxy_->options.limits.upload_seconds_max);
    if (!feed(*request_, client_bytes_, error)) return refuse(error);
    if (!request_->is_header_done()) return want_bytes();
    if (!had_head) {
      if (!take_head()) return;
      if (!feed(*request_, client_bytes_, error)) return refuse(error);
    }
    take_body();
  }

  /// False: it is refused.
  bool take_head() {
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
    now.session = std::move(prefix.session);
    now.api = api_of(now.method, now.target);
    if (!now.target.starts_with('/') || head.count(http::field::host) > 1 ||
        (head.count(http::field::transfer_encoding) > 0 && !head.chunked())) {
      answer_last(400, error_body(now.api, 400, "malformed", "the request cannot be understood"));
      return false;
    }
    if (head.method() == http::verb::connect || head.count(http::field::upgrade) > 0) {
      answer_last(501, error_body(now.api, 501, "not_supported",
                                  "only requests and answers of HTTP/1.1 pass through here"));
      return false;
    }
    if (auto refusal = admit(head, std::move(prefix.token))) {
      answer_last(refusal->status, refusal->body, refusal->extra_headers);
      return false;
    }
    if (http::token_list(head[http::field::expect]).exists("100-continue"))
      to_client("HTTP/1.1 100 Continue\r\n\r\n");
    return true;
  }

  template <class Head>
  std::optional<Response> admit(const Head& head, std::string token) {
    if (!proxy_->options.admission) return std::nullopt;
    const auto own = header_in(exchange_->headers, "x-watchdog-token");
    if (!own.empty()) token = own;
    Request asked;
    asked.method = head.method() == http::verb::get    ? Method::get
                   : head.method() == http::verb::head ? Method::head
                                                       : Method::post;
    asked.target = exchange_->target;
    asked.host = std::string(view(head[http::field::host]));
    asked.origin = std::string(view(head[http::field::origin]));
    if (!token.empty()) asked.authorization = "Bearer " + token;
    asked.fetch_site = std::string(header_in(exchange_->headers, "sec-fetch-site"));
    asked.peer = peer_;
    return proxy_->options.admission(asked);
  }

  [[nodiscard]] bool looks_into() const {
    return generates(exchange_->api) || exchange_->api == ModelApi::openai_embeddings;
  }

  /// Collects the body as far as it is looked into, then sends it on.
  void take_body() {
    auto& now = *exchange_;
    if (now.began) return upload();
    auto piece = std::exchange(request_->get().body(), {});
    const auto& limits = proxy_->options.limits;
    const bool fits = now.body.size() + piece.size() <= limits.inspected_bytes_max &&
                      proxy_->inspected_bytes + piece.size() <= limits.inspected_in_all_max;
    if (now.body.empty()) {
      now.body = std::move(piece);
    } else {
      now.body += piece;
    }
    if (!looks_into() || !fits) return pass_on(request_->is_done() && fits && looks_into());
    proxy_->inspected_bytes += now.body.size() - now.inspected;
    now.inspected = now.body.size();
    request_->is_done() ? pass_on(true) : want_bytes();
  }

  // What the server gets.

  /// `whole`: the body is all there, and may be looked into.
  void pass_on(bool whole) {
    auto& now = *exchange_;
    now.began = true;
    now.id = ++proxy_->last_exchange;
    now.since = now.last_byte = ProxyClock::now();
    proxy_->exchanges[now.id] = this;
    ++proxy_->exchanges_open;
    std::string model;
    std::string changed;  // the body as the server gets it, where that is another one
    now.streams = streams_lines(now.api);
    if (whole) {
      now.whole = std::make_shared<const std::string>(std::move(now.body));
      now.body.clear();
      static constexpr std::array<std::string_view, 3> names{"model", "stream", "return_progress"};
      std::array<std::string_view, 3> found;
      const bool is_object = find_members(*now.whole, names, found);
      now.model = found[0];
      model = string_in(found[0]).value_or("");
      now.streams = flag_in(found[1]).value_or(now.streams);
      now.server = &proxy_->server_for(model);
      if (is_object && now.streams) changed = asking_for_progress(found[2]);
    } else {
      now.server = &proxy_->server_for({});
    }
    proxy_->tell(now.id, ExchangeBegan{.method = now.method,
                                       .target = now.target,
                                       .session = now.session,
                                       .peer = peer_,
                                       .headers = without_secrets(now.headers),
                                       .key_digest = key_digest(now.headers),
                                       .body = now.whole});
    if (now.server->prober && generates(now.api)) now.server->prober->opened(now.id);
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
    now.up_wire = request_head(now.method, now.target, now.headers, now.server->upstream.url,
                               framing, looks_into());
    if (!changed.empty()) {
      now.whole = std::make_shared<const std::string>(std::move(changed));
    }
    now.uploaded = request_->is_done();
    connect();
    want_bytes();
  }

  /// The body that asks llama.cpp how far the prompt is read; empty: it stays as it is.
  std::string asking_for_progress(std::string_view asked) {
    auto& now = *exchange_;
    const bool can = now.api == ModelApi::openai_chat || now.api == ModelApi::openai_completions ||
                     now.api == ModelApi::llama_completion;
    if (!can) return {};
    if (!asked.empty()) {
      if (asked == "true") now.progress = AnswerFilter::Progress::passed;
      return {};
    }
    if (!now.server->prober || !now.server->prober->tells_progress()) return {};
    now.progress = AnswerFilter::Progress::hidden;
    return with_member(*now.whole, "\"return_progress\":true");
  }

  void connect() {
    auto& now = *exchange_;
    now.up = std::make_shared<Link>(LinkSocket(proxy_->context));
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
            return self->fail(
                502, "server_unreachable",
                "the name of the model server cannot be looked up: " + failed.message(),
                ExchangeEnded::How::refused);
          std::vector<tcp::endpoint> addresses;
          for (const auto& entry : found) addresses.push_back(entry.endpoint());
          self->connect_to(addresses);
        });
  }

  void connect_to(const std::vector<tcp::endpoint>& addresses) {
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

  void cannot_connect(const std::string& why) {
    fail(502, "server_unreachable",
         "the model server at " + exchange_->server->upstream.url.text() +
             " cannot be reached: " + why,
         ExchangeEnded::How::refused);
  }

  void send_request() {
    auto& now = *exchange_;
    now.connected = now.uploading = true;
    now.up_buffer.resize(read_bytes);
    begin_answer();
    if (!now.whole && !now.body.empty()) {
      now.up_wire += now.chunks_up ? chunk_of(now.body) : now.body;
      now.body.clear();
    }
    if (now.chunks_up && now.uploaded) now.up_wire += last_chunk;
    const auto body = now.whole ? now.whole : std::make_shared<const std::string>();
    now.up->write({asio::buffer(now.up_wire), asio::buffer(*body)},
                  guarded([body](Self self, const LinkError& error, std::size_t) {
                    self->exchange_->uploading = false;
                    self->exchange_->up_wire.clear();
                    self->exchange_->whole.reset();
                    self->release_body();
                    // A server may answer and close before it has read everything.
                    if (!error) self->upload();
                  }));
    read_answer();
  }

  /// The rest of a body that is not looked into.
  void upload() {
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

  // What the server says.

  void begin_answer() {
    auto& now = *exchange_;
    now.answer.emplace();
    now.answer->header_limit(static_cast<std::uint32_t>(proxy_->options.limits.header_bytes_max));
    now.answer->body_limit(boost::none);
    if (now.is_head) now.answer->skip(true);
  }

  void read_answer() {
    auto& now = *exchange_;
    now.up->read(asio::buffer(now.up_buffer),
                 guarded([](Self self, const LinkError& error, std::size_t bytes) {
                   auto& under_way = *self->exchange_;
                   if (error) return self->server_left(error);
                   under_way.up_bytes.append(under_way.up_buffer.data(), bytes);
                   self->got_answer();
                 }));
  }

  void got_answer() {
    auto& now = *exchange_;
    while (true) {
      LinkError error;
      const bool had_head = now.answer->is_header_done();
      if (!feed(*now.answer, now.up_bytes, error))
        return fail(502, "server_malformed",
                    "what the model server sends is no HTTP: " + error.message(),
                    ExchangeEnded::How::malformed);
      if (!now.answer->is_header_done()) {
        if (now.up_bytes.size() <= 2 * proxy_->options.limits.header_bytes_max)
          return read_answer();
        return fail(502, "server_malformed", "the head of its answer does not end",
                    ExchangeEnded::How::malformed);
      }
      if (had_head) break;
      const auto status = now.answer->get().result_int();
      if (status >= 200) {
        answer_began();
        if (now.answer->is_done() || now.up_bytes.empty()) break;
        continue;
      }
      if (status == 101 || ++now.interim > interim_answers_max)
        return fail(502, "server_malformed", "the model server wants to speak something else",
                    ExchangeEnded::How::malformed);
      begin_answer();
    }
    if (now.answer->is_header_done() && now.up_bytes.size() > ahead_bytes_max)
      return fail(502, "server_malformed", "a chunk of its answer cannot be understood",
                  ExchangeEnded::How::malformed);
    take_piece(std::exchange(now.answer->get().body(), {}));
  }

  void answer_began() {
    auto& now = *exchange_;
    const auto& head = now.answer->get();
    const auto status = static_cast<int>(head.result_int());
    const auto type = std::string(view(head[http::field::content_type]));
    now.answer_came = true;
    proxy_->tell(now.id, AnswerBegan{.status = status,
                                     .content_type = type,
                                     .content_encoding =
                                         std::string(view(head[http::field::content_encoding]))});
    const bool events = type.starts_with("text/event-stream");
    const bool lines = type.find("ndjson") != std::string::npos;
    now.filter = AnswerFilter(events  ? AnswerFilter::Form::events
                              : lines ? AnswerFilter::Form::lines
                                      : AnswerFilter::Form::opaque,
                              now.progress);
    if (now.head_sent) return;  // one of ours: what the server says comes below it
    now.head_sent = true;
    const bool bodiless = now.is_head || status == 204 || status == 304;
    if (bodiless) {
      now.framing = {Framing::Kind::none};
    } else if (const auto length = now.answer->content_length();
               length && !(events && now.progress == AnswerFilter::Progress::hidden)) {
      now.framing = {Framing::Kind::length, *length};
    } else {
      frame_freely();
    }
    const bool last = !now.keeps || now.framing.kind == Framing::Kind::close;
    to_client(answer_head(status, view(head.reason()), headers_of(head), now.framing, last));
  }

  /// As the client understands a body of unknown length.
  void frame_freely() {
    auto& now = *exchange_;
    now.framing = {now.version >= 11 ? Framing::Kind::chunks : Framing::Kind::close};
    if (now.version < 11) now.keeps = false;
  }

  /// True if a head of ours says that all is well, and the server says something else.
  [[nodiscard]] bool contradicts() const {
    const auto& now = *exchange_;
    if (!now.head_is_ours || !now.answer_came) return false;
    const auto type = view(now.answer->get()[http::field::content_type]);
    const bool streams =
        type.starts_with("text/event-stream") || type.find("ndjson") != std::string_view::npos;
    return now.answer->get().result_int() != 200 || (now.streams && !streams);
  }

  void take_piece(std::string piece) {
    auto& now = *exchange_;
    if (!piece.empty()) {
      proxy_->tell(now.id, AnswerPiece{piece});
      if (contradicts()) {
        if (now.body.size() < ahead_bytes_max) now.body += piece;
      } else {
        now.body_came = true;
        send_body(now.filter.pass(std::move(piece)));
      }
      tell_prober();
    }
    if (now.answer->is_done()) return answer_over();
    if (out_.empty()) return read_answer();
    flush([](Self self) { self->read_answer(); });
  }

  void tell_prober() {
    auto& now = *exchange_;
    if (!now.server->prober || !generates(now.api)) return;
    now.told.pieces = now.filter.pieces();
    now.told.prompt_read = now.filter.prompt_read();
    now.told.prompt_tokens = now.filter.prompt_tokens();
    now.server->prober->moved(now.id, now.told);
  }

  void send_body(std::string_view bytes) {
    if (bytes.empty() || exchange_->framing.kind == Framing::Kind::none) return;
    exchange_->framing.kind == Framing::Kind::chunks ? to_client(chunk_of(bytes))
                                                     : to_client(std::string(bytes));
  }

  void answer_over() {
    auto& now = *exchange_;
    if (contradicts()) {
      send_body(now.streams ? error_in_stream(now.api, error_text()) : now.body);
    } else {
      send_body(now.filter.rest());
    }
    if (now.framing.kind == Framing::Kind::chunks) to_client(std::string(last_chunk));
    end(ExchangeEnded::How::answered, "");
    leave_or_go_on();
  }

  /// What the server said instead of a stream, as its API's clients read errors.
  [[nodiscard]] std::string error_text() const {
    const auto& now = *exchange_;
    if (!member_of(now.body, "error").empty()) return now.body;
    return error_body(now.api, static_cast<int>(now.answer->get().result_int()), "server_error",
                      now.body.empty() ? "the model server refused the request" : now.body);
  }

  void server_left(const LinkError& error) {
    auto& now = *exchange_;
    LinkError ended;
    if (error == asio::error::eof && now.answer->is_header_done()) now.answer->put_eof(ended);
    if (error == asio::error::eof && !ended && now.answer->is_done()) {
      take_piece(std::exchange(now.answer->get().body(), {}));
      return;
    }
    fail(502, "server_lost",
         now.answer_came ? "the model server broke off within its answer"
                         : "the model server closed the connection without an answer",
         ExchangeEnded::How::lost);
  }

  // What the client gets.

  void to_client(std::string bytes) {
    out_ += bytes;
    if (!writing_) flush({});
  }

  /// Sends what is to be sent; `then` when it is gone.
  void flush(std::function<void(Self)> then) {
    if (then) then_ = std::move(then);
    if (writing_ || closed_) return;
    if (out_.empty()) {
      if (auto next = std::exchange(then_, {})) next(shared_from_this());
      return;
    }
    writing_ = true;
    wire_ = std::exchange(out_, {});
    client_->write({asio::buffer(wire_), asio::const_buffer()},
                   [self = shared_from_this()](const LinkError& error, std::size_t) {
                     self->writing_ = false;
                     if (self->closed_) return;
                     if (error) return self->client_left();
                     if (self->exchange_) self->exchange_->last_byte = ProxyClock::now();
                     self->flush({});
                   });
  }

  void feed_client(ProxyClock::time_point now_time) {
    auto& now = *exchange_;
    // Bytes that could not be sent yet are more than a word that some will come.
    if (writing_ || !out_.empty()) return;
    const auto quiet = std::chrono::duration_cast<Millis>(now_time - now.last_byte);
    const bool in_pieces = now.framing.kind == Framing::Kind::chunks;
    const auto sent = keep_alive(proxy_->options.settings,
                                 {.api = now.api,
                                  .streams = now.streams,
                                  .chunks = now.version >= 11 && (!now.head_sent || in_pieces),
                                  .head_sent = now.head_sent,
                                  .between = now.streams ? now.filter.between() && !contradicts()
                                                         : now.head_is_ours && !now.body_came,
                                  .quiet = quiet,
                                  .server = now.state,
                                  .model = now.model});
    if (!sent.any()) return;
    if (sent.head) {
      now.head_sent = now.head_is_ours = true;
      frame_freely();
      to_client(answer_head(200, "OK",
                            {{"Content-Type", std::string(answer_type(now.api, now.streams))},
                             {"Cache-Control", "no-cache"}},
                            now.framing, !now.keeps));
    }
    send_body(sent.bytes);
  }

  /// An error of ours, in whatever form the client can still read.
  void fail(int status, std::string_view type, const std::string& message, ExchangeEnded::How how) {
    auto& now = *exchange_;
    const auto body = error_body(now.api, status, type, message);
    const bool readable = now.streams && now.framing.kind == Framing::Kind::chunks &&
                          now.filter.between() && generates(now.api);
    end(how, message);
    if (!now.head_sent) {
      answer_last(status, body);
    } else if (readable || (now.head_is_ours && !now.body_came)) {
      send_body(now.streams ? error_in_stream(now.api, body) : body);
      if (now.framing.kind == Framing::Kind::chunks) to_client(std::string(last_chunk));
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

  void answer_last(int status, std::string_view body, std::string_view more = {}) {
    std::string wire = "HTTP/1.1 " + std::to_string(status) + " ";
    wire.append(view(http::obsolete_reason(http::int_to_status(static_cast<unsigned>(status)))));
    wire.append("\r\nContent-Type: application/json\r\n").append(more);
    wire.append("Content-Length: ").append(std::to_string(body.size()));
    wire.append("\r\nConnection: close\r\n\r\n");
    if (!exchange_ || !exchange_->is_head) wire.append(body);
    out_ += wire;
    say_goodbye();
  }

  void refuse(const LinkError& error) {
    if (exchange_ && exchange_->began) {
      fail(400, "malformed", "the rest of the request cannot be understood",
           ExchangeEnded::How::client_gone);
      return;
    }
    const bool too_long = error == http::error::header_limit;
    answer_last(too_long ? 431 : 400,
                error_body(ModelApi::other, too_long ? 431 : 400, "malformed",
                           too_long ? "the head of the request is too large"
                                    : "the request cannot be understood: " + error.message()));
  }

  /// Sends what there is, and waits for a moment until the client has read it: closing at once
  /// would take the answer with it.
  void say_goodbye() {
    if (exchange_) exchange_->began = false;  // from here on the clock counts
    expect(5);
    flush([](Self self) {
      self->client_->end_writing();
      self->drain();
    });
  }
  void drain() {
    client_bytes_.clear();
    if (reading_ || closed_) return;
    reading_ = true;
    client_->read(asio::buffer(client_buffer_),
                  [self = shared_from_this()](const LinkError& error, std::size_t) {
                    self->reading_ = false;
                    error ? self->close() : self->drain();
                  });
  }

  void leave_or_go_on() {
    const auto& now = *exchange_;
    const bool more = now.keeps && request_->is_done() && now.framing.kind != Framing::Kind::close;
    if (!more) return say_goodbye();
    flush([](Self self) { self->next_request(); });
  }

  void client_left() {
    if (exchange_ && exchange_->began && !exchange_->over) {
      const auto& now = *exchange_;
      end(ExchangeEnded::How::client_gone, why_it_left(now));
    }
    close();
  }

  [[nodiscard]] static std::string why_it_left(const Exchange& now) {
    const auto time = ProxyClock::now();
    const auto lasted = std::chrono::duration_cast<Millis>(time - now.since);
    const auto quiet = std::chrono::duration_cast<Millis>(time - now.last_byte);
    const auto limit = probable_limit(header_in(now.headers, "user-agent"), lasted, quiet,
                                      now.head_sent);
    std::string why = "the client hung up after " + spoken_seconds(lasted);
    if (quiet != lasted) why += ", " + spoken_seconds(quiet) + " after the last byte";
    if (!limit) return why;
    return why + ": probably " + std::string(limit->name) + " of " + std::string(limit->client) +
           " (change it with " + std::string(limit->setting) + ")";
  }

  /// The exchange is over, whatever the client still has to be sent.
  void end(ExchangeEnded::How how, std::string message) {
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
    proxy_->tell(now.id,
                 ExchangeEnded{.how = how,
                               .message = std::move(message),
                               .lasted = std::chrono::duration_cast<Millis>(time - now.since),
                               .quiet = std::chrono::duration_cast<Millis>(time - now.last_byte),
                               .answer_began = now.head_sent});
  }

  void release_body() { proxy_->inspected_bytes -= std::exchange(exchange_->inspected, 0); }

  [[nodiscard]] bool is_under_way(RequestId id) const {
    return !closed_ && exchange_ && exchange_->id == id && !exchange_->over;
  }

  /// What goes on only if the exchange that it was begun for is still under way.
  template <class Then>
  Link::Done guarded(Then then) {
    // The link must outlive what it does.
    return [self = shared_from_this(), id = exchange_->id, link = exchange_->up,
            then = std::move(then)](const LinkError& error, std::size_t bytes) {
      if (self->is_under_way(id)) then(self, error, bytes);
    };
  }

  std::shared_ptr<Proxy::State> proxy_;
  std::shared_ptr<Link> client_;
  std::string peer_;
  std::array<char, 4'096> client_buffer_{};
  std::string client_bytes_;  ///< Came, and nobody took them yet.
  std::optional<http::request_parser<PieceBody>> request_;
  std::optional<Exchange> exchange_;
  std::string out_;   ///< To be sent, and
  std::string wire_;  ///< under way.
  std::function<void(Self)> then_;
  ProxyClock::time_point expires_;
  bool reading_ = false;
  bool writing_ = false;
  bool closed_ = false;
};

}  // namespace

std::shared_ptr<Passage> make_passage(std::shared_ptr<Proxy::State> proxy, LinkSocket socket) {
  return std::make_shared<ClientPassage>(std::move(proxy), std::move(socket));
}

}  // namespace watchdog::monitor
