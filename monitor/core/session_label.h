/// \file
/// Labels of a session, as settings name them.
#pragma once

#include <string>
#include <vector>

#include "observer/observer.h"

namespace watchdog::monitor {

/// Returns the session's labels, each as `KEY:VALUE`.
[[nodiscard]] std::vector<std::string> labels_of(const Description& description);

}  // namespace watchdog::monitor
