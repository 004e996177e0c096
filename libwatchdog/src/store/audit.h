/// \file
/// Acts of people, of programs with a token, and of their rules, through a monitor.
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
  answer,
  nudge,     ///< A rule sent the agent a sentence.
  refuse,    ///< A rule denied a call.
  end_call,  ///< A rule ended the processes of a call.
  command,   ///< A rule ran its owner's program.
  pause_recovery,
  resume_recovery,
  trial,    ///< The result of a rule's first act for a verdict, or of doing nothing.
  rule_off  ///< A rule whose acts do harm switched itself off.
};

template <>
struct Names<AuditAction> {
  static constexpr std::string_view all[] = {
      "cancel",   "abort",          "abort_tool",     "acknowledge",     "snooze", "forget",
      "login",    "logins_refused", "test_channel",   "answer",          "nudge",  "refuse",
      "end_call", "command",        "pause_recovery", "resume_recovery", "trial",  "rule_off"};
};

/// One act. A plain value.
struct AuditEntry {
  std::int64_t id = 0;  ///< Rises with each; given by the store.
  WallTime at{};
  std::string actor{};  ///< Name of the token; `local`: none was needed. `rule:NAME`: a rule.
  std::string peer{};   ///< Address it came from; empty: no socket.
  AuditAction action = AuditAction::cancel;
  std::string target{};  ///< Id of the session, turn (`TURN/CALL`) or alert; empty: none.
  /// `ok`, or the error's code. Of a rule: `ok: VERDICT`, `would STEP: VERDICT` or
  /// `held out: VERDICT`.
  std::string outcome{};
};

}  // namespace watchdog
