/// \file
/// The state that a turn's owner, its calls and the registry share.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "calls/call_state.h"
#include "watchdog/executor.h"

namespace watchdog {

struct Turn::State {
  State(TurnOptions chosen, CancelScope own, const Clock& with)
      : options(std::move(chosen)), scope(std::move(own)), clock(with) {}

  const TurnOptions options;
  CancelScope scope;
  const Clock& clock;
  std::string id;
  std::string parent;
  int depth = 0;
  std::uint64_t number = 0;  ///< In the order in which they began.
  WallTime started{};
  Instant began{};

  mutable std::mutex mutex;
  std::map<std::string, std::shared_ptr<CallState>, std::less<>> running;  // by the call's id
  std::int64_t calls_total = 0;
  std::int64_t calls_done = 0;
  std::int64_t calls_timed_out = 0;
  struct InARow {
    int count = 0;
    bool only_timeouts = true;
  };
  std::map<std::string, InARow, std::less<>> in_a_row;  // what went wrong, of a tool
  std::map<std::string, std::string, std::less<>> off;  // tools, and why
  std::set<std::string, std::less<>> unclear;           // keys of calls with unknown effects
  std::int64_t calls_admitted = 0;                      // of `calls_max`
  int connections = 0;                                  // of its owner
  bool abort_reported = false;

  [[nodiscard]] TurnInfo info() const;
  std::function<void(Turn::State&)> on_end;
};

}  // namespace watchdog
