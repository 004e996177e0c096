/// \file
/// Stores on PostgreSQL.
#pragma once

#include <string>

namespace watchdog::monitor {

/// From now on this process opens stores by URLs such as `postgresql://host/database`. A program
/// that was built without libpq says so when it is given one.
void use_postgresql() noexcept;

}  // namespace watchdog::monitor
