/// \file
/// One client of the proxy. What it asks comes in passage.cpp, what the server makes of it in
/// passage_up.cpp.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proxy/answer_filter.h"
#include "proxy/http_message.h"
#include "proxy/model_api.h"
#include "proxy/proxy_state.h"

namespace watchdog::monitor {

/// A request, and what became of it.
struct OpenExchange {
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
  std::optional<boost::beast::http::response_parser<PieceBody>> answer;
  int interim = 0;
  AnswerFilter filter;
  Framing framing;
  bool head_sent = false;
  bool head_is_ours = false;
  bool answer_came = false;  ///< The head of the server's own answer.
  bool body_came = false;
  RequestSight told{};  ///< What the prober knows.
  ServerState state = ServerState::unknown;
  std::optional<ProxyClock::time_point> lost_at{};  ///< Since then its server is said to be.
  std::string lost_why{};
  ProxyClock::time_point since;
  ProxyClock::time_point last_byte;
  bool over = false;
};

/// A client's connection, and that to the server for the request under way.
class ClientPassage final : public Passage, public std::enable_shared_from_this<ClientPassage> {
 public:
  ClientPassage(std::shared_ptr<Proxy::State> proxy, LinkSocket socket)
      : proxy_(std::move(proxy)), client_(std::make_shared<Link>(std::move(socket))) {}
  void begin() override;
  void tick(ProxyClock::time_point now) override;
  void stop() override;
  void close() override;
  void learn(const ServerFinding& finding) override;

 private:
  using Self = std::shared_ptr<ClientPassage>;
  void expect(int seconds);

  // What the client sends.
  void next_request();
  void want_bytes();
  void got_bytes();

  /// False: it is refused.
  bool take_head();

  std::optional<Response> admit(std::string token);
  [[nodiscard]] bool looks_into() const;

  /// Collects the body as far as it is looked into, then sends it on.
  void take_body();

  // What the server gets.

  /// `whole`: the body is all there, and may be looked into.
  void pass_on(bool whole);

  /// The body that asks llama.cpp how far the prompt is read; empty: it stays as it is.
  std::string asking_for_progress(std::string_view asked);
  void connect();
  void connect_to(const std::vector<boost::asio::ip::tcp::endpoint>& addresses);
  void cannot_connect(const std::string& why);
  void send_request();

  /// The rest of a body that is not looked into.
  void upload();

  // What the server says.
  void begin_answer();
  void read_answer();
  void got_answer();
  void answer_began();

  /// As the client understands a body of unknown length.
  void frame_freely();

  /// True if a head of ours says that all is well, and the server says something else.
  [[nodiscard]] bool contradicts() const;
  void take_piece(std::string piece);
  void tell_prober();
  void send_body(std::string_view bytes);
  void answer_over();

  /// What the server said instead of a stream, as its API's clients read errors.
  [[nodiscard]] std::string error_text() const;
  void server_left(const LinkError& error);

  // What the client gets.
  void to_client(std::string bytes);

  /// Sends what is to be sent; `then` when it is gone.
  void flush(std::function<void(Self)> then);
  void feed_client(ProxyClock::time_point now_time);

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
