#include "support/ollama_child.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <utility>

namespace watchdog::test {
namespace {

using nlohmann::json;

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

/// A port that nobody has now.
std::uint16_t free_port() {
  const int probe = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  ::bind(probe, reinterpret_cast<sockaddr*>(&address), size);
  ::getsockname(probe, reinterpret_cast<sockaddr*>(&address), &size);
  ::close(probe);
  return ntohs(address.sin_port);
}

/// A request on a connection of its own; -1: nobody is there.
int sent(std::uint16_t port, std::string_view target, const std::string& body) {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(port);
  if (::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    ::close(socket);
    return -1;
  }
  const std::string wire =
      "POST " + std::string(target) +
      " HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: " + std::to_string(body.size()) +
      "\r\n\r\n" + body;
  if (::send(socket, wire.data(), wire.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(wire.size()))
    return socket;
  ::close(socket);
  return -1;
}

/// Nothing: the line is not a piece.
std::optional<Piece> piece_from(const std::string& line, std::deque<std::string>& texts) {
  std::istringstream fields(line);
  Piece piece;
  int kind = 0;
  std::int64_t at = 0;
  std::string message;
  std::string type;
  if (!(fields >> kind >> at >> piece.read >> piece.cached >> piece.total >> piece.written >>
        piece.status >> type))
    return std::nullopt;
  std::getline(fields >> std::ws, message);
  piece.kind = static_cast<PieceKind>(kind);
  piece.at = Instant{Millis{at}};
  piece.type = texts.emplace_back(type);
  piece.message = texts.emplace_back(message);
  return piece;
}

}  // namespace

std::string line_of(const Piece& piece) {
  std::ostringstream line;
  line << static_cast<int>(piece.kind) << ' ' << piece.at.time_since_epoch().count() << ' '
       << piece.read << ' ' << piece.cached << ' ' << piece.total << ' ' << piece.written << ' '
       << piece.status << ' ' << (piece.type.empty() ? "-" : piece.type) << ' ' << piece.message
       << '\n';
  return line.str();
}

std::string json_of(const SimulatedRequest& request) {
  return json{{"prompt", request.prompt},
              {"cached", request.cached},
              {"answer", request.answer},
              {"stream", request.stream}}
      .dump();
}

SimulatedRequest request_from(const std::string& body) {
  const json value = json::parse(body);
  return {.prompt = value["prompt"],
          .cached = value["cached"],
          .answer = value["answer"],
          .stream = value["stream"]};
}

OllamaChild::~OllamaChild() {
  if (alive_ >= 0) ::close(alive_);
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

bool OllamaChild::runs() {
  if (pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == pid_) {
    pid_ = -1;
    ::close(std::exchange(alive_, -1));
  }
  return pid_ > 0;
}

bool OllamaChild::is_running() {
  const std::lock_guard guard(mutex_);
  return runs();
}

std::uint16_t OllamaChild::port(const std::string& scenario, int slots, std::int64_t context) {
  const std::lock_guard guard(mutex_);
  if (runs()) return port_;
  port_ = free_port();
  // As Ollama's llm/llama_server.go does it.
  std::vector<std::string> words = {"/usr/local/lib/ollama/llama-server",
                                    "--model",
                                    "/usr/share/ollama/.ollama/models/blobs/sha256-0a8c26691023",
                                    "--port",
                                    std::to_string(port_),
                                    "--host",
                                    "127.0.0.1",
                                    "--no-webui",
                                    "--offline",
                                    "-c",
                                    std::to_string(context),
                                    "-np",
                                    std::to_string(slots)};
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) variables.emplace_back(*entry);
  variables.push_back(std::string(child_scenario) + "=" + scenario);
  const auto pointers = [](std::vector<std::string>& texts) {
    std::vector<char*> all;
    for (auto& text : texts) all.push_back(text.data());
    all.push_back(nullptr);
    return all;
  };
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0) return 0;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, in[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&files, out[1], STDOUT_FILENO);
  const auto argv = pointers(words);
  const auto environment = pointers(variables);
  if (::posix_spawn(&pid_, "/proc/self/exe", &files, nullptr, argv.data(), environment.data()) != 0)
    pid_ = -1;
  posix_spawn_file_actions_destroy(&files);
  ::close(in[0]);
  ::close(out[1]);
  alive_ = in[1];
  // Its first line says that its port is open.
  char byte = 0;
  while (pid_ > 0 && byte != '\n' && ::read(out[0], &byte, 1) == 1) {
  }
  ::close(out[0]);
  return byte == '\n' ? port_ : 0;
}

void OllamaChild::configure(const std::string& scenario) {
  const std::lock_guard guard(mutex_);
  if (!runs()) return;
  const int socket = sent(port_, "/_scenario", scenario);
  if (socket < 0) return;
  char byte = 0;
  (void)::recv(socket, &byte, 1, 0);  // it is done when it answers
  ::close(socket);
}

ChildRequest::ChildRequest(std::uint16_t port, const SimulatedRequest& request)
    : socket_(port == 0 ? -1 : sent(port, "/_feed", json_of(request))) {}

ChildRequest::~ChildRequest() {
  if (socket_ >= 0) ::close(socket_);
}

std::vector<Piece> ChildRequest::wait_pieces(const std::function<bool()>& gone) {
  std::vector<Piece> pieces;
  while (pieces.empty() && !gone()) {
    pollfd there{.fd = socket_, .events = POLLIN, .revents = 0};
    if (socket_ >= 0 && ::poll(&there, 1, 50) == 0) continue;
    std::array<char, 4'096> bytes{};
    const auto count = socket_ < 0 ? 0 : ::recv(socket_, bytes.data(), bytes.size(), 0);
    if (count <= 0) {
      if (std::exchange(over_, true)) return {};
      pieces.push_back({.kind = PieceKind::error,
                        .status = 500,
                        .message = "llama runner process has terminated: exit status 1",
                        .type = "api_error"});
      return pieces;
    }
    received_.append(bytes.data(), static_cast<std::size_t>(count));
    for (auto end = received_.find('\n'); end != std::string::npos; end = received_.find('\n')) {
      const auto piece = piece_from(received_.substr(0, end), texts_);
      if (piece && piece->kind < PieceKind::lost) pieces.push_back(*piece);
      received_.erase(0, end + 1);
    }
  }
  return pieces;
}

}  // namespace watchdog::test
