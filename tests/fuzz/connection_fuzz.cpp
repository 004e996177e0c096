// A client may send its bytes in any pieces: the same requests reach the API, and the same
// responses come back. The connection ends when the client closes it, and leaves nothing behind.

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "fuzz/fuzz.h"
#include "http/conversation.h"

using namespace watchdog::monitor;

std::vector<std::string> fuzz_seeds() {
  return {"GET /api/x?y HTTP/1.1\r\nHost: h\r\n\r\n",
          "POST /e HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\n\r\n{ab}",
          "POST /e HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n0\r\n\r\n",
          "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nok",
          "PATCH /refused HTTP/1.1\r\nContent-Length: 1\r\n\r\nx",
          "POST / HTTP/1.1\r\nContent-Length: 5000\r\n\r\n",
          "HEAD / HTTP/1.0\r\nConnection: keep-alive\r\nX-Forwarded-For: a\r\n\r\n",
          "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
          "Transfer-Encoding: gzip, chunked\r\n",
          "0\r\nTrailer: x\r\n\r\n"};
}

namespace {

constexpr std::size_t body_bytes_max = 1'024;

ServerLimits limits_of(std::size_t header_bytes_max) {
  return {.header_bytes_max = header_bytes_max,
          .body_bytes_max = body_bytes_max,
          .bodies_bytes_max = 2 * body_bytes_max};
}

class Server {
 public:
  explicit Server(std::size_t header_bytes_max)
      : state_(std::make_shared<HttpServer::State>(context_, admit, answer(),
                                                   limits_of(header_bytes_max), nullptr)) {}

  void connect() {
    std::array<int, 2> ends{};
    FUZZ_REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()) == 0);
    client_ = ends[0];
    asked_.clear();
    responses_.clear();
    web::Socket socket(context_);
    socket.assign(web::tcp::v4(), ends[1]);
    auto connection =
        std::make_shared<web::Conversation<web::Socket>>(state_, std::move(socket), web::Peer{});
    state_->connections.insert(connection);
    connection->begin();
  }

  bool send(std::string_view piece) {
    const auto sent = ::send(client_, piece.data(), piece.size(), MSG_NOSIGNAL);
    run();
    return sent == static_cast<ssize_t>(piece.size());
  }

  /// The requests that came, and all responses. What is no HTTP is refused or left at that: which
  /// of the two is a matter of the pieces.
  std::string hang_up() {
    ::shutdown(client_, SHUT_WR);
    run();
    FUZZ_REQUIRE(state_->connections.empty());
    FUZZ_REQUIRE(state_->bodies_bytes == 0);
    ::close(client_);
    for (const auto* refusal : {"HTTP/1.1 400 ", "HTTP/1.1 431 "})
      responses_.erase(std::min(responses_.find(refusal), responses_.size()));
    return asked_ + responses_;
  }

 private:
  static std::optional<Response> admit(const Request& request) {
    if (request.target.find("refused") == std::string::npos) return std::nullopt;
    return error_response(401, "unauthorized", "no");
  }

  HttpServer::Handler answer() {
    return [this](const Request& request, const Reply& reply) {
      FUZZ_REQUIRE(request.body.size() <= body_bytes_max);
      asked_ += std::to_string(static_cast<int>(request.method));
      for (const auto* text : {&request.target, &request.host, &request.authorization,
                               &request.forwarded_for, &request.body})
        asked_.append(" ").append(*text);
      asked_ += '\n';
      reply({.body = "{}"});
    };
  }

  void run() {
    context_.restart();
    std::array<char, 4'096> piece{};
    while (context_.poll() > 0) {
      for (ssize_t bytes = 0; (bytes = ::recv(client_, piece.data(), piece.size(), 0)) > 0;)
        responses_.append(piece.data(), static_cast<std::size_t>(bytes));
    }
  }

  boost::asio::io_context context_{1};
  std::shared_ptr<HttpServer::State> state_;
  int client_ = -1;
  std::string asked_;
  std::string responses_;
};

}  // namespace

void try_input(std::string_view input) {
  static Server server(2 * 4'096);  // above all inputs
  same_in_pieces(
      input, [] { server.connect(); }, [](std::string_view piece) { return server.send(piece); },
      [] { return server.hang_up(); });
  // Which head is just above the limit is a matter of the pieces: the rest holds all the same.
  static Server narrow(128);
  same_in_pieces(
      input, [] { narrow.connect(); }, [](std::string_view piece) { return narrow.send(piece); },
      [] { return narrow.hang_up().substr(0, 0); });
}
