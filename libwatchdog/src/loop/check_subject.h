/// \file
/// The subject of a check, from a file.
#pragma once

#include "store/store_reader.h"
#include "watchdog/run.h"

namespace watchdog {

/// Returns the subject for a session in a file.
[[nodiscard]] Result<CheckSubject> check_subject(StoreReader& reader, const SessionRow& row);

}  // namespace watchdog
