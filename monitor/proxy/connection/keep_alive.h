/// \file
/// The bytes that keep waiting clients from timing out.
#pragma once

#include <cstdint>
#include <string>

#include "proxy/connection/model_api.h"
#include "watchdog/report.h"
#include "watchdog/result.h"
#include "watchdog/settings.h"
#include "watchdog/time.h"

namespace watchdog::monitor {

/// A client whose answer has not come, or not all of it. A plain value.
struct WaitingClient {
  ModelApi api = ModelApi::other;
  bool streams = false;  ///< It asked for a stream.
  bool chunks = true;    ///< It understands a body without a length (HTTP/1.1).
  bool head_sent = false;
  /// Its data so far ends with a complete event or line. Of an answer in one piece: none of it
  /// came, and its head was ours.
  bool between = true;
  Millis quiet{};   ///< Since it got the last byte, or since it asked.
  Millis silent{};  ///< Since the server's last byte, or since it was asked.
  ServerState server = ServerState::unknown;
  std::string_view model{};    ///< As it asked for it; JSON text.
  bool counts_events = false;  ///< See `counts_events`.
};

/// A plain value.
struct KeepAlive {
  bool head = false;  ///< First the head of a successful answer: 200, of the API's own type.
  std::string bytes;  ///< Then these; empty: nothing.
  [[nodiscard]] bool any() const noexcept { return head || !bytes.empty(); }
};

/// Returns the keep-alive to send now. None unless the server is known to work, or shows nothing
/// and its owner vouches for it: otherwise a client would wait for ever on a hung server. It does
/// not change the answer for the client: comments, the API's own pings, white space before JSON, or
/// pieces without content. Pure.
[[nodiscard]] KeepAlive keep_alive(const ProxySettings& settings, const WaitingClient& client);

/// The type of the API's streams, or of answers in one piece.
[[nodiscard]] std::string_view answer_type(ModelApi api, bool streams) noexcept;

}  // namespace watchdog::monitor
