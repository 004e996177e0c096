/// \file
/// The process below Ollama that does its inference: found in /proc as Ollama's own is.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "support/simulated_server.h"

namespace watchdog::test {

/// Where a child finds out that it is one.
inline constexpr const char* child_scenario = "MODEL_BACKEND_SCENARIO";

/// Started when it is first needed, and again when it has gone. Thread-safe.
class OllamaChild {
 public:
  OllamaChild() = default;
  /// Ends it.
  ~OllamaChild();
  OllamaChild(const OllamaChild&) = delete;
  OllamaChild& operator=(const OllamaChild&) = delete;

  /// Its port; 0: it cannot be started.
  std::uint16_t port(const std::string& scenario, int slots, std::int64_t context);
  [[nodiscard]] bool is_running();
  /// Sends it a change of its scenario, if it runs.
  void configure(const std::string& scenario);

 private:
  bool runs();
  std::mutex mutex_;
  int pid_ = -1;
  int alive_ = -1;  // our end of its standard input: it ends with us
  std::uint16_t port_ = 0;
};

/// A request at the child, and what its connection got, by a connection of our own.
class ChildRequest {
 public:
  ChildRequest(std::uint16_t port, const SimulatedRequest& request);
  ~ChildRequest();
  ChildRequest(const ChildRequest&) = delete;
  ChildRequest& operator=(const ChildRequest&) = delete;

  /// As LiveServer's: empty when the client has gone. The child's end is an error.
  [[nodiscard]] std::vector<Piece> wait_pieces(const std::function<bool()>& gone);

 private:
  int socket_ = -1;
  std::string received_;
  std::deque<std::string> texts_;  // what pieces point to
  bool over_ = false;
};

/// The line that a child sends for a piece.
[[nodiscard]] std::string line_of(const Piece& piece);
/// A request to a child, as JSON.
[[nodiscard]] std::string json_of(const SimulatedRequest& request);
[[nodiscard]] SimulatedRequest request_from(const std::string& body);

}  // namespace watchdog::test
