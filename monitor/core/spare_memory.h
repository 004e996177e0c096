/// \file
/// How much memory the process keeps that it does not use. Only with glibc.
#pragma once

#include <malloc.h>

namespace watchdog::monitor {

/// Keeps some megabytes: a batch of reports needs as much, and getting it from the kernel each time
/// costs a sixth of the batch.
inline void keep_spare_memory() {
#ifdef __GLIBC__
  constexpr int kept = 4 * 1024 * 1024;
  mallopt(M_MMAP_THRESHOLD, kept);
  mallopt(M_TRIM_THRESHOLD, kept);
#endif
}

/// Gives it back to the kernel; takes some milliseconds.
inline void return_spare_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace watchdog::monitor
