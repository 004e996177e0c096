/// \file
/// The way of messages to a tool server, which may end and begin again.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <set>
#include <string>

namespace watchdog::monitor::mcp {

/// Passes messages on, and holds them while the server is away. Use from one thread at a time.
class ServerLine {
 public:
  static constexpr std::size_t held_bytes_max = 32 * 1024 * 1024;

  /// `prefix`: of the ids of the proxy, which differ from those of clients.
  ServerLine(std::function<void(std::string)> send, std::string prefix)
      : send_(std::move(send)), prefix_(std::move(prefix)) {}

  void send(std::string message);
  /// The server is gone, or begins again.
  [[nodiscard]] bool is_closed() const { return is_closed_; }
  /// True if too much is held for a message of this size.
  [[nodiscard]] bool is_full(std::size_t bytes) const {
    return held_bytes_ + bytes > held_bytes_max;
  }
  /// The client's `initialize`.
  void remember(const std::string& initialize) { initialize_ = initialize; }
  /// The server is gone, and all that was on the way is answered.
  void close();
  /// A new process runs. It gets the client's `initialize`; what was held waits for its answer.
  void open();
  /// True if this answers a request of the proxy: nobody else wants it.
  [[nodiscard]] bool is_own_answer(const std::string& key);
  /// An id for a request or a token of the proxy.
  [[nodiscard]] std::string next_id();
  [[nodiscard]] bool is_own_id(const std::string& key) const;
  /// The server answers this id to the proxy.
  void expect(const std::string& id);

 private:
  void release();

  std::function<void(std::string)> send_;
  const std::string prefix_;
  std::string initialize_{};      ///< Empty: the client sent none.
  std::string initialize_key_{};  ///< While the server begins again.
  bool is_closed_ = false;        ///< The server is gone, or begins again.
  std::deque<std::string> held_{};
  std::size_t held_bytes_ = 0;
  std::set<std::string> own_{};  ///< Keys of open requests of the proxy.
  std::int64_t numbers_ = 0;
};

}  // namespace watchdog::monitor::mcp
