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

enum class Method : std::uint8_t { get, head, post, patch, other };

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
  std::string accept_encoding;
  std::string if_none_match;
  std::string last_event_id;
  std::string peer;            ///< Address that it came from, without its port; empty: no socket.
  std::size_t body_bytes = 0;  ///< As announced; of a body of unknown length SIZE_MAX.
  std::string body;
};

/// What a response goes on with after its head, for as long as the client stays. Use from one
/// thread at a time.
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
  /// What there is now, in order; empty: nothing at the moment.
  [[nodiscard]] virtual std::vector<Piece> take() = 0;
};

/// A plain value.
struct Response {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  std::string extra_headers;  ///< Complete lines, each with its CRLF.
  std::string cache_control = "no-store";
  std::shared_ptr<BodySource> source;  ///< Instead of `body`, until either side closes; null: none.
};

/// Called exactly once, from any thread.
using Reply = std::function<void(Response)>;

/// `{"error": {"code", "message", "field"?, "line"?}}` with the status that fits.
[[nodiscard]] Response error_response(const Error& error);
[[nodiscard]] Response error_response(int status, std::string_view code, std::string_view message);

}  // namespace watchdog::monitor
