/// \file
/// Versions of what this library stores sessions with.
#pragma once

#include <string>

namespace watchdog {

/// Returns the version of the schema to which this library brings a database, for example "1.4". A
/// program reads files of the same major version. Thread-safe.
[[nodiscard]] std::string schema_version();

/// Returns the version of the SQLite library that this process runs with. Thread-safe.
[[nodiscard]] std::string sqlite_version();

}  // namespace watchdog
