/// \file
/// The former name of write_fence.h; goes with 0.3.
#pragma once

#include "watchdog/write_fence.h"  // IWYU pragma: export
