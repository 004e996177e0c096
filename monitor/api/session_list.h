/// \file
/// Which sessions a list is asked for, and in which order.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/call.h"
#include "judge/attention.h"

namespace watchdog::monitor {

/// In which order sessions are listed: as they were made, the newest first; or as people should
/// look at them, see is_before().
enum class SessionOrder : std::uint8_t { newest, attention };

/// The sessions that a caller asks for, and their order. A plain value.
struct SessionQuery {
  SessionFilter filter{};
  std::vector<Attention> attention{};  ///< Empty: any.
  std::vector<SessionState> states{};  ///< Likewise.
  SessionOrder order = SessionOrder::newest;

  /// True if it takes more than the file to answer it.
  [[nodiscard]] bool needs_standing() const noexcept {
    return !attention.empty() || !states.empty() || order != SessionOrder::newest;
  }
};

/// Errors: `malformed`, `invalid`.
[[nodiscard]] Result<SessionQuery> query_of(const Target& target, int limit_max);

/// Replies with the sessions that `query` asks for, at most `at_once` in each part. `begin` opens
/// the array, and `text` writes the element of each session. After the array comes `next`, and
/// `total` where it is known.
void reply_with_sessions(const CallPtr& call, SessionQuery query, int at_once,
                         std::function<void(JsonWriter&)> begin,
                         std::function<Result<std::string>(StoreReader&, const SessionRow&)> text);

}  // namespace watchdog::monitor

namespace watchdog {
template <>
struct Names<monitor::SessionOrder> {
  static constexpr std::string_view all[] = {"newest", "attention"};
};
}  // namespace watchdog
