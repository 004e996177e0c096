/// \file
/// What a message between a client and its tool server is, as far as the proxy needs it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "mcp/rpc.h"

namespace watchdog::monitor::mcp {

/// A longer message is not passed on.
inline constexpr std::size_t proxied_bytes_max = 32 * 1024 * 1024;

/// A message of either side. A plain value.
struct Envelope {
  Message::Kind kind = Message::Kind::request;
  json id{};  ///< Of a request or a response.
  std::string method{};
  json params{};
  json result{};  ///< Null: none, or it is an error.
  json error{};   ///< Likewise.

  /// The id as a key. A number and a text are different ids.
  [[nodiscard]] std::string key() const { return id.dump(); }
  [[nodiscard]] const json& meta() const { return member(params, "_meta"); }
};

/// Returns the text without a byte order mark, which strict parsers refuse. Pure.
[[nodiscard]] std::string without_mark(std::string text);

/// Nothing: the text is not one JSON-RPC message, so it passes unread. Pure.
[[nodiscard]] std::optional<Envelope> envelope_of(std::string_view text);

/// Whose a call is, by its `_meta`. A plain value.
struct CallOwner {
  std::string session{};  ///< As the agent itself names it; empty: it names none.
  std::string trace{};    ///< Of its `traceparent`; empty: none, or the session is named.
};
/// The session is in the members of opencode and Codex. Pure.
[[nodiscard]] CallOwner owner_in(const json& meta);
/// The agent's own id of the call, as its hooks and telemetry have it. Empty: unknown. Pure.
[[nodiscard]] std::string call_id_in(const json& meta);

}  // namespace watchdog::monitor::mcp
