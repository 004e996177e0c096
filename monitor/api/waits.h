/// \file
/// All waits of clients: each gets its answer when it is over, when it may see more, or in time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "api/call.h"
#include "api/message.h"
#include "api/wait_look.h"
#include "core/backend.h"
#include "core/feed.h"

namespace watchdog::monitor {

/// When a wait is answered that is not over.
enum class WaitTells : std::uint8_t {
  over,     ///< at its time limit
  changes,  ///< also when anything happened to the session
  now       ///< at once, with the timeline
};

}  // namespace watchdog::monitor

namespace watchdog {

template <>
struct Names<monitor::WaitTells> {
  static constexpr std::string_view all[] = {"over", "changes", "now"};
};

}  // namespace watchdog

namespace watchdog::monitor {

/// A client's wait. A plain value.
struct WaitRequest {
  WaitQuestion question;
  WaitTells shows = WaitTells::over;
  std::chrono::milliseconds at_most{};
  std::function<bool()> allowed{};  ///< Whether its permission still holds. From any thread.
};

/// Waits and streams together. The rest of the server's connections stays free for agents.
inline constexpr std::size_t waits_max = 1'000;

/// Returns the body that will be the answer; null: there are too many. The waits of a feed share
/// one listener. The thread that reads lists looks at a wait when its session has records; that
/// takes at most a twentieth of its time. Thread-safe. REQUIRES: both outlive the body.
[[nodiscard]] std::shared_ptr<BodySource> open_wait(Backend& backend, Feed& feed,
                                                    WaitRequest request);

/// Answers a request when its wait is over, or not yet.
void wait_for_session(const CallPtr& call);

}  // namespace watchdog::monitor
