/// \file
/// A setting of SQLite for the whole process.
#pragma once

namespace watchdog {

/// Makes SQLite stop counting its memory, because counting takes a lock at each allocation. Call it
/// before anything opens a database; later it has no effect. Only programs call it: the host of the
/// library may use the count.
void stop_counting_memory() noexcept;

}  // namespace watchdog
