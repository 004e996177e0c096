/// \file
/// A setting of SQLite for the whole process.
#pragma once

namespace watchdog {

/// Makes SQLite stop counting the memory that it has: the count takes a lock at each allocation.
/// Call it at the start of a program of our own, before anything opens a database; a library's host
/// may want the count.
void count_no_memory() noexcept;

}  // namespace watchdog
