/// \file
/// A change of health as JSON.
#pragma once

#include <string>

#include "store/store_reader.h"
#include "store/transition_reader.h"

namespace watchdog::monitor {

[[nodiscard]] std::string transition_json(const TransitionRow& row);

}  // namespace watchdog::monitor
