/// \file
/// A tool server that speaks streamable HTTP.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "watchdog/result.h"

namespace watchdog::monitor {

/// News of a server. A plain value.
struct RemoteNews {
  enum class Kind : std::uint8_t {
    message,  ///< The text is a message, on one line.
    failed,   ///< The request of this key gets no answer; the text says why.
    expired   ///< The server has forgotten the session of this text.
  };
  Kind kind = Kind::message;
  std::string text;
  std::string key{};         ///< Of the request, also of one that found the session expired.
  bool may_have_run = true;  ///< Of `failed`; false: the server did not get it, or refused it.
};

/// Each request has a connection of its own, and is sent once. Notifications and answers are sent
/// before anything that follows them. Use from one thread at a time.
class RemoteServer {
 public:
  /// Requests under way; more fail.
  static constexpr std::size_t requests_max = 256;

  /// A plain value.
  struct Options {
    std::string url;
    std::vector<std::pair<std::string, std::string>> headers{};  ///< Of each request.
    std::filesystem::path ca_file{};  ///< Trusted besides the system's authorities. PEM.
  };
  /// Connects with the first message. Errors: `invalid` (the URL, the file), `exhausted`.
  [[nodiscard]] static Result<std::unique_ptr<RemoteServer>> to(Options options);
  /// Ends all requests; ends the session, for which it waits two seconds at most.
  ~RemoteServer();
  RemoteServer(const RemoteServer&) = delete;
  RemoteServer& operator=(const RemoteServer&) = delete;

  /// Never blocks. `notifications/cancelled` closes the connection of its request.
  void send(std::string message);
  /// Readable while there is news.
  [[nodiscard]] int news_fd() const;
  [[nodiscard]] std::vector<RemoteNews> drain();
  /// Forgets the session, if it still is this one. True: it was.
  [[nodiscard]] bool forget(const std::string& session);

 private:
  struct State;
  explicit RemoteServer(std::shared_ptr<State> state);
  std::shared_ptr<State> state_;
};

}  // namespace watchdog::monitor
