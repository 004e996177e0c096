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

/// A client's limit as its sources or documentation have it, or as measured. A plain value; the
/// texts live as long as the program.
struct ClientLimit {
  std::string_view client;  ///< Name of the client.
  std::string_view name;    ///< Its name in the client or its documentation.
  LimitOf of = LimitOf::total;
  Millis usual{};  ///< Its default.
  std::string_view setting;
  /// Parts of `User-Agent` that its requests carry, in any case; the rest is empty.
  std::array<std::string_view, 4> agents{};
  /// The effect of the proxy's keep-alives, if it is another than on most limits of that kind.
  std::string_view effect{};
  /// The program and version with which the limit, and its way through the proxy, were measured;
  /// empty: they were not.
  std::string_view measured{};
};

/// Those that are known, the more particular ones first.
[[nodiscard]] std::span<const ClientLimit> client_limits() noexcept;

/// Returns true for a client whose limit counts events and no comments, and that passes over an
/// event without a meaning for it, also in front of all others.
[[nodiscard]] bool counts_events(std::string_view user_agent) noexcept;

/// Returns the effect of the proxy's keep-alives on it, or what is left to do.
[[nodiscard]] std::string_view defused_by(const ClientLimit& limit) noexcept;

/// For how long a client had waited when it disconnected. A plain value.
struct Waited {
  Millis lasted{};                     ///< Since its request.
  Millis quiet{};                      ///< Since the last byte to it, or since the request.
  std::optional<Millis> since_head{};  ///< Since the head of the answer; empty: there was no head.
};

/// Returns the limit that probably ended an exchange whose client disconnected: its own to 2 %, or
/// a round figure of an unknown client.
[[nodiscard]] std::optional<ClientLimit> probable_limit(std::string_view user_agent,
                                                        const Waited& waited);

}  // namespace watchdog::monitor

namespace watchdog {
template <>
struct Names<monitor::LimitOf> {
  static constexpr std::string_view all[] = {"headers", "bytes", "events", "total"};
};
}  // namespace watchdog
