/// \file
/// The session that a command is about, as people name it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cli/endpoint.h"
#include "watchdog/result.h"

namespace watchdog::monitor {

/// A plain value.
struct SessionChoice {
  std::string named{};  ///< An id, the beginning of one, or a folder.
  bool last = false;    ///< The session that began last.
};

/// Adds `session` and `--last` to the command. The command calls need_session().
CLI::Option* add_session(CLI::App& command, SessionChoice& choice);
/// Throws a mistake of usage if no session is chosen. `or_else` names another option that is
/// enough.
void need_session(const SessionChoice& choice, const char* or_else = nullptr);

/// Returns the id of the session. A name that is not a session's id is the beginning of a UUID, of
/// four characters or more. Else it is the path or the name of a session's folder. Sessions that
/// run come first. Errors: `not_found`; `invalid`: several sessions have that name, and the message
/// lists them; and those of Endpoint::ask.
[[nodiscard]] Result<std::string> session_of(Endpoint& endpoint, const SessionChoice& choice);
/// Likewise before an act on it: an act on a name that no session has would be in the audit log. A
/// token that may act and not read names an id.
[[nodiscard]] Result<std::string> acted_on(Endpoint& endpoint, const SessionChoice& choice);

}  // namespace watchdog::monitor
