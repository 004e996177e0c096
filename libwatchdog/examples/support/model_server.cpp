// A blocking server on loopback. One thread accepts connections; each connection has a thread of
// its own, which reads a request and calls the handler. The handler writes the answer step by step,
// and may wait, break off, or send what is no HTTP. `leave` and the destructor shut all sockets
// down.
#include "support/model_server.h"

#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>

namespace watchdog::test {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using ErrorOf = boost::system::error_code;

std::string_view reason_of(int status) {
  return status == 200 ? "OK" : status < 500 ? "Refused" : "Failed";
}

/// The value of a header, or empty.
std::string header_of(const std::string& head, std::string_view name) {
  for (std::size_t at = 0; at < head.size();) {
    const auto end = std::min(head.find("\r\n", at), head.size());
    const auto colon = head.find(':', at);
    if (colon < end &&
        std::equal(name.begin(), name.end(), head.begin() + at, head.begin() + colon,
                   [](char a, char b) { return std::tolower(a) == std::tolower(b); }))
      return head.substr(colon + 2, end - colon - 2);
    at = end + 2;
  }
  return {};
}

}  // namespace

struct ModelServer::State {
  class Connection;

  Handler handler;
  std::optional<asio::ssl::context> tls;
  asio::io_context context;
  tcp::acceptor acceptor{context};
  std::uint16_t port = 0;
  std::thread accepting;

  mutable std::mutex mutex;
  std::condition_variable back;  ///< It is to accept connections again, or to stop.
  bool stopping = false;
  bool away = false;
  std::vector<ServedRequest> requests;
  std::set<int> open;  ///< Sockets, by their number.
  std::vector<std::thread> threads;

  void listen() {
    const tcp::endpoint place{asio::ip::address_v4::loopback(), port};
    acceptor.open(place.protocol());
    acceptor.set_option(tcp::acceptor::reuse_address(true));
    acceptor.bind(place);
    acceptor.listen();
    port = acceptor.local_endpoint().port();
  }
  void accept();
  void break_off() {
    for (const int socket : open) ::shutdown(socket, SHUT_RDWR);
    ::shutdown(acceptor.native_handle(), SHUT_RDWR);
  }
  void note(const ServedRequest& request) {
    const std::lock_guard guard(mutex);
    requests.push_back(request);
  }
  /// False: the server stops.
  bool opened(int socket) {
    const std::lock_guard guard(mutex);
    if (stopping || away) return false;
    open.insert(socket);
    return true;
  }
  void closing(int socket) {
    const std::lock_guard guard(mutex);
    open.erase(socket);
  }
};

/// One client: reads a request, lets the handler answer, and again.
class ModelServer::State::Connection : public ModelServer::Exchange {
 public:
  Connection(State& server, tcp::socket socket, int number)
      : server_(server), socket_(std::move(socket)), number_(number) {}

  void serve() {
    if (!server_.opened(socket_.native_handle())) return;
    ErrorOf error;
    socket_.set_option(tcp::no_delay(true), error);
    if (server_.tls) {
      tls_.emplace(socket_, *server_.tls);
      tls_->handshake(asio::ssl::stream_base::server, error);
    }
    while (!error && read()) {
      server_.note(request_);
      server_.handler(*this);
      if (!socket_.is_open()) return;
    }
    close();
  }

  [[nodiscard]] const ServedRequest& request() const override { return request_; }

  bool write(std::string_view bytes) override {
    ErrorOf error;
    const auto all = asio::buffer(bytes);
    tls_ ? asio::write(*tls_, all, error) : asio::write(socket_, all, error);
    return !error;
  }

  void wait_gone() override {
    while (read_some()) {
    }
  }

  bool is_gone() override {
    char byte = 0;
    const auto count = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR);
  }

  void reset() override {
    ErrorOf ignored;
    socket_.set_option(asio::socket_base::linger(true, 0), ignored);
    close();
  }

  void close() override {
    if (!socket_.is_open()) return;
    server_.closing(socket_.native_handle());
    ErrorOf ignored;
    socket_.close(ignored);
  }

 private:
  bool read_some() {
    std::array<char, 16'384> bytes{};
    ErrorOf error;
    const auto some = asio::buffer(bytes);
    const auto count = tls_ ? tls_->read_some(some, error) : socket_.read_some(some, error);
    received_.append(bytes.data(), count);
    return !error;
  }

  bool read() {
    std::size_t head_end = 0;
    while ((head_end = received_.find("\r\n\r\n")) == std::string::npos) {
      if (!read_some()) return false;
      if (!tls_ && received_.starts_with('\x16')) {  // somebody expects TLS here
        respond(400, "<html>400 The plain HTTP request was expected</html>", "text/html");
        return false;
      }
    }
    const auto line_end = received_.find("\r\n");
    const std::string line = received_.substr(0, line_end);
    const auto first = line.find(' ');
    const auto second = line.find(' ', first + 1);
    request_ = {.method = line.substr(0, first),
                .target = line.substr(first + 1, second - first - 1),
                .head = received_.substr(line_end + 2, head_end - line_end),
                .connection = number_};
    received_.erase(0, head_end + 4);
    if (header_of(request_.head, "transfer-encoding") == "chunked") return read_chunks();
    const std::string length = header_of(request_.head, "content-length");
    const std::size_t bytes = length.empty() ? 0 : std::strtoull(length.c_str(), nullptr, 10);
    while (received_.size() < bytes) {
      if (!read_some()) return false;
    }
    request_.body = received_.substr(0, bytes);
    received_.erase(0, bytes);
    return true;
  }

  /// The body without what frames it.
  bool read_chunks() {
    for (;;) {
      std::size_t end = 0;
      while ((end = received_.find("\r\n")) == std::string::npos)
        if (!read_some()) return false;
      const std::size_t size = std::strtoull(received_.c_str(), nullptr, 16);
      while (received_.size() < end + size + 4)
        if (!read_some()) return false;
      request_.body.append(received_, end + 2, size);
      received_.erase(0, end + size + 4);
      if (size == 0) return true;
    }
  }

  State& server_;
  tcp::socket socket_;
  std::optional<asio::ssl::stream<tcp::socket&>> tls_;
  std::string received_;
  ServedRequest request_;
  int number_;
};

void ModelServer::State::accept() {
  for (int number = 1;; ++number) {
    ErrorOf error;
    tcp::socket socket(context);
    acceptor.accept(socket, error);
    std::unique_lock guard(mutex);
    if (stopping) return;
    if (error || away) {
      acceptor.close();
      back.wait(guard, [this] { return stopping || !away; });
      if (stopping) return;
      listen();
      continue;
    }
    threads.emplace_back([this, number, accepted = std::move(socket)]() mutable {
      Connection(*this, std::move(accepted), number).serve();
    });
  }
}

ModelServer::ModelServer(Handler handler, const Certificate* certificate, std::uint16_t port)
    : state_(std::make_unique<State>()) {
  state_->port = port;
  state_->listen();
  state_->handler = std::move(handler);
  if (certificate != nullptr) {
    auto& tls = state_->tls.emplace(asio::ssl::context::tls_server);
    tls.use_certificate(asio::buffer(certificate->certificate), asio::ssl::context::pem);
    tls.use_private_key(asio::buffer(certificate->key), asio::ssl::context::pem);
  }
  state_->accepting = std::thread([this] { state_->accept(); });
}

ModelServer::~ModelServer() {
  {
    const std::lock_guard guard(state_->mutex);
    state_->stopping = true;
    state_->break_off();
  }
  state_->back.notify_all();
  state_->accepting.join();
  for (auto& thread : state_->threads) thread.join();
}

std::string ModelServer::base_url(std::string_view host) const {
  return std::string(state_->tls ? "https://" : "http://") + std::string(host) + ":" +
         std::to_string(state_->port) + "/v1";
}

void ModelServer::leave() {
  const std::lock_guard guard(state_->mutex);
  if (std::exchange(state_->away, true)) return;
  state_->break_off();
}

void ModelServer::come_back() {
  {
    const std::lock_guard guard(state_->mutex);
    state_->away = false;
  }
  state_->back.notify_all();
}

std::vector<ServedRequest> ModelServer::requests() const {
  const std::lock_guard guard(state_->mutex);
  return state_->requests;
}

std::vector<std::string> ModelServer::chats() const {
  std::vector<std::string> bodies;
  for (auto& request : requests()) {
    if (request.target.ends_with("/chat/completions")) bodies.push_back(std::move(request.body));
  }
  return bodies;
}

bool ModelServer::Exchange::respond(int status, std::string_view body,
                                    std::string_view content_type, std::string_view more_headers) {
  std::string wire = "HTTP/1.1 " + std::to_string(status) + " ";
  wire.append(reason_of(status)).append("\r\nContent-Type: ").append(content_type);
  wire.append("\r\nContent-Length: ").append(std::to_string(body.size())).append("\r\n");
  return write(wire.append(more_headers).append("\r\n").append(body));
}

bool ModelServer::Exchange::begin_stream(std::string_view more_headers,
                                         std::string_view content_type) {
  std::string wire = "HTTP/1.1 200 OK\r\nContent-Type: ";
  wire.append(content_type).append("\r\nTransfer-Encoding: chunked\r\n");
  return write(wire.append(more_headers).append("\r\n"));
}

bool ModelServer::Exchange::chunk(std::string_view bytes) {
  std::array<char, 24> size{};
  std::snprintf(size.data(), size.size(), "%zx\r\n", bytes.size());
  return write(std::string(size.data()).append(bytes).append("\r\n"));
}

bool ModelServer::Exchange::event(std::string_view data) {
  return chunk("data: " + std::string(data) + "\n\n");
}

bool ModelServer::Exchange::end_stream() {
  return event("[DONE]") && write("0\r\n\r\n");
}

}  // namespace watchdog::test
