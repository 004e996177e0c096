/// \file
/// An answer that comes late.
#pragma once

#include "api/message.h"

namespace watchdog::monitor {

/// A body whose end nobody has yet. Until then its client may hang up.
class LongPoll : public BodySource {
 public:
  /// The server stops: the answer is wanted soon. Called any number of times.
  virtual void hurry() = 0;
};

}  // namespace watchdog::monitor
