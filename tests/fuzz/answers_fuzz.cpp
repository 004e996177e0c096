// Whatever a server answers in whatever pieces, the client gets the same answer or a fault,
// and never waits for more than what comes.

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <semaphore>
#include <thread>

#include "fuzz/fuzz.h"
#include "net/http_client.h"
#include "net/url.h"

using namespace watchdog;

std::vector<std::string> fuzz_seeds() {
  return {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX: y\r\n\r\nok",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA;x=y\r\n0123456789\r\n0\r\nT: "
          "t\r\n\r\n",
          "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n",
          "HTTP/1.0 502 Bad\r\n\r\n<html>until it closes",
          "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\nContent-Length: 1\r\n\r\n",
          "ffffffffffffffff\r\n",
          "HTTP/1.1 999 \xff\r\n folded\r\n\r\n"};
}

namespace {

/// Answers one connection after the other with the pieces that it is given.
class Server {
 public:
  Server() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
    auto* any = reinterpret_cast<sockaddr*>(&address);
    socklen_t size = sizeof address;
    FUZZ_REQUIRE(::bind(socket_, any, size) == 0 && ::listen(socket_, 8) == 0);
    FUZZ_REQUIRE(::getsockname(socket_, any, &size) == 0);
    url_ = *url_from("http://127.0.0.1:" + std::to_string(::ntohs(address.sin_port)));
    std::thread([this] { serve(); }).detach();  // it waits in accept until the program ends
  }

  /// The result of a client that gets these pieces as the answer.
  std::string asked(const std::vector<std::string_view>& pieces) {
    pieces_ = &pieces;
    asked_.release();
    auto outcome = ask();
    answered_.acquire();
    return outcome;
  }

 private:
  [[nodiscard]] std::string ask() const {
    auto client = HttpClient::to(url_, {});
    FUZZ_REQUIRE(client.ok());
    std::string body;
    const auto answer = client->ask({.target = "/"}, [&](const HttpHead&, std::string_view piece) {
      body += piece;
      return true;
    });
    if (!answer) {
      // Whether it was no HTTP or broke off first is a matter of the pieces.
      const auto trouble = answer.error().trouble;
      FUZZ_REQUIRE(trouble == HttpTrouble::malformed || trouble == HttpTrouble::lost);
      FUZZ_REQUIRE(!answer.error().message.empty());
      return "fault";
    }
    std::string all = std::to_string(answer->status) + "\n";
    for (const auto& [name, value] : answer->headers) {
      FUZZ_REQUIRE(value.find_first_of("\r\n") == std::string::npos);
      all.append(name).append(": ").append(value).append("\n");
    }
    return all + body;
  }

  void serve() {
    while (true) {
      asked_.acquire();
      const int client = ::accept(socket_, nullptr, nullptr);
      FUZZ_REQUIRE(client >= 0);
      const int yes = 1;
      ::setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
      std::array<char, 1'024> request{};
      FUZZ_REQUIRE(::recv(client, request.data(), request.size(), 0) > 0);
      for (const auto piece : *pieces_)
        ::send(client, piece.data(), piece.size(), MSG_NOSIGNAL);  // it may have hung up
      ::shutdown(client, SHUT_WR);
      while (::recv(client, request.data(), request.size(), 0) > 0) {
      }
      ::close(client);
      answered_.release();
    }
  }

  int socket_;
  Url url_;
  const std::vector<std::string_view>* pieces_ = nullptr;
  std::binary_semaphore asked_{0};
  std::binary_semaphore answered_{0};
};

}  // namespace

void try_input(std::string_view input) {
  static auto& server = *new Server;  // its thread never ends
  std::vector<std::string_view> pieces;
  same_in_pieces(
      input, [&] { pieces.clear(); },
      [&](std::string_view piece) {
        pieces.push_back(piece);
        return true;
      },
      [&] { return server.asked(pieces); });
}
