/// \file
/// One client of the proxy. proxy_connection.cpp reads its requests, upstream_leg.cpp the server's
/// answers.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <vector>

#include "proxy/connection/answer_body.h"
#include "proxy/connection/http_message.h"
#include "proxy/connection/model_api.h"
#include "proxy/connection/proxy_state.h"
#include "proxy/connection/request_body.h"

namespace watchdog::monitor {

/// A request, and what became of it.
struct OpenExchange {
  RequestId id = 0;
  ModelApi api = ModelApi::other;
  std::string method;
  std::string target;  ///< The server's own.
  std::string prefix;  ///< Of the client's path, in front of that.
  std::string session;
  std::string model;  ///< JSON text.
  Headers headers;
  bool streams = false;
  bool knows_streams = true;  ///< False: its body was not read so far.
  bool is_head = false;
  int version = 11;
  bool keeps = true;             ///< The client's connection can take another request.
  std::string origin{};          ///< Of the page that asks; empty: a program asks.
  bool is_allowed_page = false;  ///< proxy.allowed_origins names it.
  bool is_tunnel = false;        ///< A WebSocket is asked for, and
  bool is_open = false;          ///< the server agreed: bytes pass in both directions.
  std::unique_ptr<const ExchangeBegan> tunnel{};  ///< Of a WebSocket: its request.
  std::int64_t unread = 0;                        ///< Bytes of it that were not reported.
  ProxyClock::time_point observed_at;
  std::size_t inspected = 0;
  std::size_t model_wanted_at = 0;  ///< The size of a large body at which it is looked for again.
  AnswerFilter::Progress progress = AnswerFilter::Progress::none;

  std::string body;  ///< Until it is looked into.
  std::shared_ptr<const std::string> whole;
  bool chunks_up = false;  ///< The rest of the body goes up in chunks.
  bool began = false;      ///< It was reported.
  bool connected = false;
  bool is_reused = false;  ///< The connection to the server was an earlier request's.
  bool uploaded = false;   ///< All of it is with the server.
  bool uploading = false;

  ServerLink* server = nullptr;
  std::shared_ptr<UpstreamConnection> up;
  std::string up_wire;  ///< On its way to the server.
  std::string up_bytes;
  std::vector<char> up_buffer;
  std::optional<boost::beast::http::response_parser<PieceBody>> answer;
  int interim = 0;
  AnswerBody answer_body;
  Framing framing;
  bool head_sent = false;
  ProxyClock::time_point head_at{};  ///< When it was sent.
  bool head_is_ours = false;
  bool answer_came = false;  ///< The head of the server's own answer.
  bool body_came = false;
  RequestSample sample{};  ///< The prober's state of it.
  ServerState state = ServerState::unknown;
  CancelRequest cancel{};                           ///< Why it is denied.
  std::optional<WallTime> until{};                  ///< Over a budget: when it is not any more.
  std::optional<ProxyClock::time_point> lost_at{};  ///< Since then its server is said to be.
  std::string lost_why{};
  ProxyClock::time_point since;
  ProxyClock::time_point last_byte;  ///< In either direction, and ours to the client.
  ProxyClock::time_point server_spoke;
  bool over = false;
};

/// A client's connection, and that to the server for the request under way.
class ProxyConnection final : public OpenConnection,
                              public std::enable_shared_from_this<ProxyConnection> {
 public:
  ProxyConnection(std::shared_ptr<Proxy::State> proxy, LinkSocket socket)
      : proxy_(std::move(proxy)),
        client_(std::make_shared<UpstreamConnection>(std::move(socket))) {}
  void begin() override;
  void tick(ProxyClock::time_point now) override;
  void stop() override;
  void close() override;
  void learn(const ServerFinding& finding) override;

 private:
  using Self = std::shared_ptr<ProxyConnection>;
  void expect(int seconds);

  // -- from the client
  void next_request();
  void want_bytes();
  void got_bytes();

  /// False: it is refused.
  bool accept_head();

  std::optional<Response> admit(std::string token);
  [[nodiscard]] bool looks_into() const;

  /// Collects the body as far as it is looked into, then sends it on.
  void accept_body();

  /// True while a large body must be held because its model, which is not known yet, chooses the
  /// server.
  [[nodiscard]] bool waits_for_model();

  // -- to the server

  /// `whole`: the body is all there, and not too large to be looked into.
  void pass_on(bool whole);

  /// Takes what came of a body that is looked into.
  RequestBody take_body(bool whole);

  /// Answers that the session is cancelled, without a request to the server.
  void deny(CancelRequest cancel);

  /// Cuts an open WebSocket of a cancelled session.
  void cut_if_cancelled();

  /// Returns the client's process. It is looked for while the client waits for its answer: after
  /// that it may end, and can no longer be found.
  std::optional<ProcessFacts> client_process();

  /// The body that asks llama.cpp how far the prompt is read; empty: it stays as it is.
  std::string asking_for_progress(std::string_view asked);

  /// True if the request changes and generates nothing. It may use a kept connection, and its own
  /// connection may be kept.
  [[nodiscard]] bool shares_connection() const;
  void connect();
  void connect_anew();
  void connect_to(const std::vector<boost::asio::ip::tcp::endpoint>& addresses);
  void cannot_connect(const std::string& why);
  void send_request();

  /// The rest of a body that is not looked into.
  void upload();

  // -- from the server
  void begin_answer();
  void read_answer();
  void got_answer();
  void answer_began();

  /// As the client understands a body of unknown length.
  void frame_freely();

  void accept_piece(std::string piece);
  void update_prober();
  /// Adds to what is to be sent.
  void send_body(std::string_view bytes);
  void answer_over();
  /// The answer's bytes cannot be understood, and the client has a head of ours.
  void fail_unread();
  void server_left(const LinkError& error);

  // A WebSocket.
  void open_tunnel();
  void carry_down();
  void carry_up();
  void observe_tunnel(std::size_t bytes);

  // -- to the client
  /// Sends `out_`; `then` when it is gone.
  void flush(std::function<void(Self)> then);
  void feed_client(ProxyClock::time_point now_time);

  /// Lets a page that proxy.allowed_origins names read an answer whose head is ours.
  void permit_page(Headers& headers) const;

  /// An error of ours, in whatever form the client can still read.
  void fail(int status, std::string_view type, const std::string& message, ExchangeEnded::How how);
  void answer_last(int status, std::string_view body, std::string_view more = {});
  void refuse(const LinkError& error);

  /// Sends what there is, and waits for a moment until the client has read it: closing at once
  /// would take the answer with it.
  void say_goodbye();
  void drain();
  void leave_or_go_on();
  void client_left();

  [[nodiscard]] static std::string why_it_left(const OpenExchange& now);

  /// The exchange is over, whatever the client still has to be sent.
  void end(ExchangeEnded::How how, std::string message);
  void release_body();

  [[nodiscard]] bool is_under_way(RequestId id) const;

  /// Runs `then` only if its exchange is still open.
  template <class Then>
  UpstreamConnection::Done guarded(Then then) {
    // The link must outlive what it does.
    return on_done([id = exchange_->id, link = exchange_->up, then = std::move(then)](
                       Self self, const LinkError& error, std::size_t bytes) {
      if (self->is_under_way(id) && self->exchange_->up == link)
        then(std::move(self), error, bytes);
    });
  }

  /// Runs a step of this connection. If no memory is left, the connection closes, and nothing else
  /// is affected.
  template <class Step>
  UpstreamConnection::Done on_done(Step step) {
    return [self = shared_from_this(), step = std::move(step)](const LinkError& error,
                                                               std::size_t bytes) {
      try {
        step(self, error, bytes);
      } catch (const std::bad_alloc&) {
        self->give_up();
      }
    };
  }
  void give_up() noexcept override;

  std::shared_ptr<Proxy::State> proxy_;
  std::shared_ptr<UpstreamConnection> client_;
  std::string peer_;
  std::uint16_t peer_port_ = 0;
  std::optional<ProcessFacts>
      client_process_{};  ///< Once it was found: a connection stays with it.
  std::string process_session_{};
  std::uint16_t own_port_ = 0;
  std::uint64_t number_ = 0;  ///< Of the connection.
  std::array<char, 4'096> client_buffer_{};
  std::string client_bytes_;  ///< Received, and not processed yet.
  std::optional<boost::beast::http::request_parser<PieceBody>> request_;
  std::optional<OpenExchange> exchange_;
  std::string out_;   ///< To be sent, and
  std::string wire_;  ///< under way.
  std::function<void(Self)> then_;
  ProxyClock::time_point expires_;
  bool reading_ = false;
  bool writing_ = false;
  bool closed_ = false;
};

}  // namespace watchdog::monitor
