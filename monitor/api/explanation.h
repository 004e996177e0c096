/// \file
/// Why a session waits: another one, which it started itself, does not get on.
#pragma once

#include <optional>
#include <string_view>

#include "codec/progress.h"
#include "core/backend.h"

namespace watchdog::monitor {

/// The session among its children, and theirs where those wait too, whose health is the most
/// severe. A child that is explained by a child of its own passes that one on. Nothing where the
/// session does not wait, or no child explains it. Looks at most 5 levels deep, at 100 sessions in
/// each.
[[nodiscard]] Result<std::optional<Explanation>> explanation(Backend& backend,
                                                             std::string_view session,
                                                             const Case& judged);

}  // namespace watchdog::monitor
