/// \file
/// Checks owner and mode of a file with a secret.
#pragma once

#include <sys/types.h>

#include "watchdog/result.h"

namespace watchdog {

/// Checks that a file of this mode and owner may hold a secret of this user: it belongs to that
/// user or root, and no other user may access it. Errors: `invalid`; the message is to follow the
/// path.
[[nodiscard]] Result<void> check_secret_file(mode_t mode, uid_t owner, uid_t user);

}  // namespace watchdog
