/// \file
/// A model's server on loopback that answers exactly as the test says, byte for byte and step by
/// step. It needs no test framework.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "support/certificate.h"

namespace watchdog::test {

/// A request as it came. A plain value.
struct ServedRequest {
  std::string method;
  std::string target;
  std::string head;  ///< All header lines.
  std::string body;
  int connection = 0;  ///< Which one it came on, from 1.
};

class ModelServer {
 public:
  /// One request being answered. Every step that writes is false once the client is gone.
  class Exchange {
   public:
    virtual ~Exchange() = default;
    [[nodiscard]] virtual const ServedRequest& request() const = 0;
    /// Bytes as they are.
    virtual bool write(std::string_view bytes) = 0;
    /// Returns when the client has closed, or the server stops.
    virtual void wait_gone() = 0;
    /// True if it has. The bytes that it sent before can still be read.
    [[nodiscard]] virtual bool is_gone() = 0;
    /// The client sees that the connection is broken off.
    virtual void reset() = 0;
    /// The client sees an orderly end.
    virtual void close() = 0;

    [[nodiscard]] bool is_chat() const { return request().target.ends_with("/chat/completions"); }
    /// A whole answer; the connection stays open.
    bool respond(int status, std::string_view body,
                 std::string_view content_type = "application/json; charset=utf-8",
                 std::string_view more_headers = {});
    /// The head of a stream, chunked.
    bool begin_stream(std::string_view more_headers = {},
                      std::string_view content_type = "text/event-stream");
    /// One chunk of a chunked body.
    bool chunk(std::string_view bytes);
    /// `data: …` and an empty line, as a chunk.
    bool event(std::string_view data);
    /// `data: [DONE]` and the end of the body.
    bool end_stream();
  };
  /// Called for each request on a thread of its connection.
  using Handler = std::function<void(Exchange&)>;

  /// `port` 0: any.
  explicit ModelServer(Handler handler, std::uint16_t port = 0)
      : ModelServer(std::move(handler), nullptr, port) {}
  ModelServer(Handler handler, const Certificate& certificate)
      : ModelServer(std::move(handler), &certificate, 0) {}
  /// Breaks off what is under way and waits for its handlers.
  ~ModelServer();
  ModelServer(const ModelServer&) = delete;
  ModelServer& operator=(const ModelServer&) = delete;

  /// `http://127.0.0.1:PORT/v1`, or https.
  [[nodiscard]] std::string base_url(std::string_view host = "127.0.0.1") const;
  [[nodiscard]] std::vector<ServedRequest> requests() const;
  /// The bodies of the questions asked so far.
  [[nodiscard]] std::vector<std::string> chats() const;

  /// Breaks off every connection, and refuses new ones.
  void leave();
  /// Accepts connections again, on the same port.
  void come_back();

 private:
  struct State;
  ModelServer(Handler handler, const Certificate* certificate, std::uint16_t port);
  std::unique_ptr<State> state_;
};

}  // namespace watchdog::test
