/// \file
/// The thread of the MCP server: steps run one after another, now or later.
#pragma once

#include <functional>
#include <memory>

#include "watchdog/time.h"

namespace watchdog::monitor::mcp {

/// Everything of an MCP server runs in the steps of one loop, so nothing of it needs a lock.
class Loop {
 public:
  Loop() = default;
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;
  virtual ~Loop() = default;

  /// Runs the step soon. Steps keep their order. From any thread.
  virtual void post(std::function<void()> step) = 0;
  /// Runs the step after this time. From any thread.
  virtual void after(Millis time, std::function<void()> step) = 0;
  [[nodiscard]] virtual WallTime wall() const = 0;
};

/// A loop on a thread of its own. Steps that are left when it ends do not run.
class LoopThread final : public Loop {
 public:
  LoopThread();
  ~LoopThread() override;
  void post(std::function<void()> step) override;
  void after(Millis time, std::function<void()> step) override;
  [[nodiscard]] WallTime wall() const override { return system_clock().wall(); }
  /// Ends the thread, and destroys the steps that are left. Later ones are ignored.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace watchdog::monitor::mcp
