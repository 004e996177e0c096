/// \file
/// A hook whose answer waits for a person.
#pragma once

#include <optional>

#include "api/call.h"
#include "ingest/hook_question.h"

namespace watchdog::monitor {

/// Replies to the hook when a person answers its question here. It replies with nothing to obey if
/// the session does not wait for a person any more, if the time is over, or if the server stops. A
/// session that is cancelled meanwhile is answered as any of its hooks. Until then the body gets
/// line breaks each second, so a client sees that the monitor lives. `report`: the wait, which
/// names the call. The session gets the events that follow from the answer. REQUIRES: `asked` names
/// its session.
void hold_hook(const CallPtr& call, HookQuestion asked, const Report& report, Millis at_most);

}  // namespace watchdog::monitor
