/// \file
/// Questions to a person that are open at the same time. Pure.
#pragma once

#include <string_view>

#include "watchdog/history.h"

namespace watchdog {

/// Makes `notes` show this wait. `open_call`: see `Notes::wait_call`. A wait that has an event id
/// or names a call is remembered as well, because another one may begin before it is over. The
/// oldest of more than `open_asks_max` is forgotten.
void begin_wait(Notes& notes, const Event& wait, Seq open_call);

/// True if it waits for a person because of one call, and that call is still open. The reports of
/// other calls do not end such a wait.
[[nodiscard]] bool waits_for_call(const History& history);

/// Returns the open call that a wait is for, where it names one. Said again without a name (as a
/// notification beside the request), it stays the same one. 0: none.
[[nodiscard]] Seq call_waited_for(const History& history, const Report& wait);

/// Takes the answer to the question that `id` names: the event id of its wait, or its call. Returns
/// whether the session waits no longer. If it waits for another question, `notes` shows that one.
[[nodiscard]] bool answer_ask(Notes& notes, std::string_view id);

}  // namespace watchdog
