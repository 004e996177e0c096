/// \file
/// Acts of people, and of programs with a token, through a monitor.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

enum class AuditAction : std::uint8_t {
  cancel,
  abort,
  abort_tool,
  acknowledge,
  snooze,
  forget,
  login,
  logins_refused,  ///< Too many wrong tokens, once a burst.
  test_channel,
  answer
};

template <>
struct Names<AuditAction> {
  static constexpr std::string_view all[] = {
      "cancel", "abort", "abort_tool",     "acknowledge",  "snooze",
      "forget", "login", "logins_refused", "test_channel", "answer"};
};

/// One act. A plain value.
struct AuditEntry {
  std::int64_t id = 0;  ///< Rises with each; given by the store.
  WallTime at{};
  std::string actor{};  ///< Name of the token; `local`: none was needed.
  std::string peer{};   ///< Address it came from; empty: no socket.
  AuditAction action = AuditAction::cancel;
  std::string target{};   ///< Id of the session, turn (`TURN/CALL`) or alert; empty: none.
  std::string outcome{};  ///< `ok`, or the error's code.
};

}  // namespace watchdog
