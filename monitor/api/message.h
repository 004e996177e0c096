/// \file
/// A request and its response, without any socket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "watchdog/result.h"

namespace watchdog::monitor {

enum class Method : std::uint8_t { get, head, post, patch, del, other };

/// A plain value. Texts are as they came over the wire.
struct Request {
  Method method = Method::get;
  std::string target;  ///< Path and query, percent-encoded.
  std::string host;
  std::string origin;
  std::string authorization;
  std::string cookie;
  std::string fetch_site;     ///< Sec-Fetch-Site
  std::string forwarded_for;  ///< X-Forwarded-For, its last line.
  std::string accept;
  std::string accept_encoding;
  std::string content_type;
  std::string content_encoding;
  std::string if_none_match;
  std::string last_event_id;
  std::string session;          ///< X-Watchdog-Session: whose telemetry a body is.
  std::string mcp_session;      ///< Mcp-Session-Id
  std::string mcp_version;      ///< MCP-Protocol-Version
  std::string mcp_method;       ///< Mcp-Method
  std::string mcp_name;         ///< Mcp-Name
  std::string peer;             ///< Address that it came from, without its port; empty: no socket.
  std::uint16_t peer_port = 0;  ///< Its port; 0: no socket.
  std::uint16_t own_port = 0;   ///< Where it came in.
  std::size_t body_bytes = 0;   ///< As announced; of a body of unknown length SIZE_MAX.
  std::string body;
};

enum class BodyState : std::uint8_t {
  open,      ///< More may come.
  complete,  ///< The pieces that were drained are the whole body.
  broken     ///< The rest cannot be had.
};

/// The rest of a response after its head, for as long as the client stays. Use from one thread at a
/// time.
class BodySource {
 public:
  using Piece = std::shared_ptr<const std::string>;
  BodySource() = default;
  BodySource(const BodySource&) = delete;
  BodySource& operator=(const BodySource&) = delete;
  virtual ~BodySource() = default;

  /// Once, before anything else: `wake` may be called from any thread whenever there is more, until
  /// this is gone.
  virtual void begin(std::function<void()> wake) = 0;
  /// Returns the present pieces in order; empty: none at the moment. Called again when the client
  /// has taken them.
  [[nodiscard]] virtual std::vector<Piece> drain() = 0;
  /// After what was drained last.
  [[nodiscard]] virtual BodyState state() const { return BodyState::open; }
  /// Asked about once a second; false: the client may not have more.
  [[nodiscard]] virtual bool allowed() { return true; }
};

/// A plain value.
struct Response {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::string extra_headers;  ///< Complete lines, each with its CRLF.
  std::string cache_control = "no-store";
  std::shared_ptr<BodySource> source;  ///< Instead of `body`; null: none.
  bool ends = false;  ///< The source's body has an end; else it goes on until either side closes.
};

/// Called exactly once, from any thread.
using Reply = std::function<void(Response)>;

/// `{"error": {"code", "message", "field"?, "line"?, "tokenFile"?}}` with the status that fits.
[[nodiscard]] Response error_response(const Error& error);
/// `token_file` is where the tokens are, for programs of the same machine; empty: not said.
[[nodiscard]] Response error_response(int status, std::string_view code, std::string_view message,
                                      std::string_view token_file = {});

}  // namespace watchdog::monitor
