/// \file
/// Time limits of clients that end slow answers, with the settings that change them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "watchdog/names.h"
#include "watchdog/time.h"

namespace watchdog::monitor {

/// What a limit counts, and with that what resets it.
enum class LimitOf : std::uint8_t {
  headers,  ///< until the head of the answer
  bytes,    ///< from one byte to the next
  events,   ///< from one parsed event to the next: comments are none
  total     ///< all of it
};

/// A client's limit as its sources or documentation have it. A plain value; the texts live as long
/// as the program.
struct ClientLimit {
  std::string_view client;  ///< Whose it is.
  std::string_view name;    ///< What the client calls it, or its documentation.
  LimitOf of = LimitOf::total;
  Millis usual{};  ///< Its default.
  std::string_view setting;
  /// Parts of `User-Agent` that its requests carry, in any case; the rest is empty.
  std::array<std::string_view, 4> agents{};
};

/// Those that are known, the more particular ones first.
[[nodiscard]] std::span<const ClientLimit> client_limits() noexcept;

/// What the proxy's keep-alives do to it, or what is left to do.
[[nodiscard]] std::string_view defused_by(LimitOf of) noexcept;

/// The limit that probably ended an exchange whose client went away: its own to 2 %, or a round
/// figure of somebody unknown. `lasted`: since the request; `quiet`: since the last byte to the
/// client, or since the request; `answer_began`: the client had the head of an answer.
[[nodiscard]] std::optional<ClientLimit> probable_limit(std::string_view user_agent, Millis lasted,
                                                        Millis quiet, bool answer_began);

}  // namespace watchdog::monitor

namespace watchdog {
template <>
struct Names<monitor::LimitOf> {
  static constexpr std::string_view all[] = {"headers", "bytes", "events", "total"};
};
}  // namespace watchdog
