/// \file
/// What a session is called by, and what sentences about it name: its first prompt, the newest
/// answer, the newest calls.
#pragma once

#include <string_view>

#include "watchdog/history.h"

namespace watchdog {

/// Folds in a finished call.
void note_call(History& history, const Report& report, std::string_view name);
/// Folds in what a person or the agent said, if the report holds that.
void fold_words(History& history, const Report& report);

}  // namespace watchdog
