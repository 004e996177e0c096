/// \file
/// Time limits of clients that end slow answers, with the settings that change them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog::monitor {

/// The time that a limit bounds. It decides what resets the limit.
enum class LimitOf : std::uint8_t {
  headers,  ///< until the head of the answer
  bytes,    ///< from one byte to the next
  events,   ///< from one parsed event to the next: comments are none
  total     ///< all of it
};

/// A client's limit as its sources or documentation have it. A plain value; the texts live as long
/// as the program.
struct ClientLimit {
  std::string_view client;  ///< Name of the client.
  std::string_view name;    ///< Its name in the client or its documentation.
  LimitOf of = LimitOf::total;
  Millis usual{};  ///< Its default.
  std::string_view setting;
  /// Parts of `User-Agent` that its requests carry, in any case; the rest is empty.
  std::array<std::string_view, 4> agents{};
};

/// Those that are known, the more particular ones first.
[[nodiscard]] std::span<const ClientLimit> client_limits() noexcept;

/// Returns true for a client whose limit counts events and no comments, and that passes over an
/// event without a meaning for it, also in front of all others.
[[nodiscard]] bool counts_events(std::string_view user_agent) noexcept;

/// Returns the effect of the proxy's keep-alives on it, or what is left to do.
[[nodiscard]] std::string_view defused_by(LimitOf of) noexcept;

/// Returns the limit that probably ended an exchange whose client disconnected: its own to 2 %, or
/// a round figure of an unknown client. `lasted`: since the request; `quiet`: since the last byte
/// to the client, or since the request; `answer_began`: the client had the head of an answer.
[[nodiscard]] std::optional<ClientLimit> probable_limit(std::string_view user_agent, Millis lasted,
                                                        Millis quiet, bool answer_began);

}  // namespace watchdog::monitor

namespace watchdog {
template <>
struct Names<monitor::LimitOf> {
  static constexpr std::string_view all[] = {"headers", "bytes", "events", "total"};
};
}  // namespace watchdog
