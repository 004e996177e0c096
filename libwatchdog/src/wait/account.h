/// \file
/// The words of a wait that is over: why, how the session was last, and what happened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "watchdog/wait.h"

namespace watchdog {

/// Returns the cause of a ruling; empty if the wait goes on or the goal is met. `pid`: the
/// session's process; 0: unknown.
[[nodiscard]] std::string why_over(Ruling verdict, const Awaited& awaited, const WaitMemory& memory,
                                   std::int64_t pid = 0);
/// Follows that cause if a person chose not to continue.
inline constexpr const char* refused_to_go_on = "; the person who was asked chose not to continue";

/// Returns the state of a session in one line, for the failure of a wait.
[[nodiscard]] std::string lifecycle_text(const Case& judged);

/// Makes the timeline of a session from its events. Use from one thread at a time.
class TimelineMaker {
 public:
  /// `changes` of the session's health, oldest first.
  explicit TimelineMaker(std::vector<Transition> changes) : changes_(std::move(changes)) {}

  /// Adds the next event.
  void add(const Event& event);
  /// Returns the timeline. REQUIRES: nothing is called afterwards.
  [[nodiscard]] Timeline finish();

 private:
  void add_changes_before(Seq seq);

  const std::vector<Transition> changes_;
  std::size_t next_ = 0;
  Timeline made_;
};

}  // namespace watchdog
