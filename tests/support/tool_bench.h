/// \file
/// An executor with tools made of lambdas, and everything that it says.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "support/manual_clock.h"
#include "watchdog/executor.h"

namespace watchdog::test {

/// Real time: for what cannot be waited for otherwise. Generous, as machines are busy.
[[nodiscard]] inline bool eventually(const std::function<bool()>& condition) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds{60};
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

/// Blocks handlers until it is opened. A handle: copies share one state.
class Latch {
 public:
  void open() const {
    const std::lock_guard guard(state_->mutex);
    state_->open = true;
    state_->changed.notify_all();
  }
  /// Whatever happens.
  void wait() const { (void)wait({}); }
  /// True if it was opened, false if a stop was requested.
  [[nodiscard]] bool wait(const std::stop_token& stop) const {
    std::unique_lock guard(state_->mutex);
    ++state_->waiting;
    state_->changed.notify_all();
    return state_->changed.wait(guard, stop, [&] { return state_->open; });
  }
  /// Waits until `count` handlers in all have begun to wait for it.
  void await(int count = 1) const {
    std::unique_lock guard(state_->mutex);
    state_->changed.wait(guard, [&] { return state_->waiting >= count; });
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable_any changed;
    bool open = false;
    int waiting = 0;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
};

[[nodiscard]] inline ToolReply said(std::string text) {
  return {.text = std::move(text)};
}

/// The outcome, if it is of that type; else the test fails with what it is.
template <class T>
[[nodiscard]] const T& as(const CallReport& report) {
  if (!std::holds_alternative<T>(report.outcome)) {
    throw std::runtime_error("another outcome: " + to_json(report));
  }
  return std::get<T>(report.outcome);
}

[[nodiscard]] inline std::string text_of(const CallReport& report) {
  return as<ToolExecutionResult>(report).output.text;
}

class ToolBench {
 public:
  explicit ToolBench(ExecutorOptions chosen = {}) : options(std::move(chosen)) {}
  ~ToolBench() { executor_.reset(); }
  ToolBench(const ToolBench&) = delete;
  ToolBench& operator=(const ToolBench&) = delete;

  /// Time moves with `advance` alone. The executor sends no report merely because time passes.
  void stop_the_clock() {
    options.clock = &clock;
    options.look_longest = Millis{1LL << 50U};
    options.progress_every = Millis{1LL << 50U};
  }

  void add(ToolSpec spec, std::function<ToolReply(ToolContext&)> invoke) {
    add(make_tool(std::move(spec), std::move(invoke)));
  }
  void add(std::shared_ptr<Tool> tool) {
    // Those that executors refuse are for tests of that.
    if (auto added = tools->add(std::move(tool), true); !added) {
      throw std::runtime_error(added.error().message);
    }
  }

  ToolExecutor& executor() {
    if (!executor_) {
      parts.tools = tools;
      parts.observer = [this](const ToolEvent& event) { note(event); };
      executor_ = std::make_unique<ToolExecutor>(parts, options);
    }
    return *executor_;
  }
  void end() { executor_.reset(); }
  TurnRegistry& turns() {
    if (!turns_) {
      turns_ = std::make_unique<TurnRegistry>(
          TurnRegistry::Options{.clock = options.clock, .observer = [this](const TurnEvent& event) {
                                  const std::lock_guard guard(mutex_);
                                  turn_events_.push_back(event);
                                }});
    }
    return *turns_;
  }
  Turn turn(TurnOptions chosen = {}) { return std::move(*turns().begin(std::move(chosen))); }

  CallReport call(const std::string& tool, const std::string& arguments = "{}") {
    auto in = turn();
    return executor().execute(in, {"1", tool, arguments});
  }
  std::vector<CallReport> calls(Turn& in, const std::vector<std::string>& names) {
    std::vector<ToolCall> asked;
    for (const auto& name : names) asked.push_back({std::to_string(asked.size()), name, "{}"});
    return executor().execute_batch(in, asked);
  }

  /// On a thread of its own, because the caller has to move the clock.
  std::future<CallReport> begin(Turn& in, const std::string& tool,
                                const std::string& arguments = "{}", const std::string& id = "1") {
    executor();
    return std::async(std::launch::async, [this, &in, tool, arguments, id] {
      return executor_->execute(in, {id, tool, arguments});
    });
  }

  void advance(Millis time) {
    clock.advance(time);
    executor().tick();
    turns().tick();
  }
  /// In steps, as a clock that runs.
  CallReport advance_until(std::future<CallReport>& report, Millis step = Millis{500}) {
    while (report.wait_for(std::chrono::milliseconds{2}) != std::future_status::ready) {
      advance(step);
    }
    return report.get();
  }

  struct Seen {
    ToolEvent::Kind kind;
    std::string call;
    std::string tool;
    std::string detail;
    std::uint64_t bytes = 0;
    Millis elapsed{};
  };
  [[nodiscard]] std::vector<Seen> events() const {
    const std::lock_guard guard(mutex_);
    return events_;
  }
  [[nodiscard]] int count(ToolEvent::Kind kind) const {
    const std::lock_guard guard(mutex_);
    return static_cast<int>(std::count_if(events_.begin(), events_.end(),
                                          [&](const Seen& seen) { return seen.kind == kind; }));
  }
  /// Ids of the calls, in the order of their results.
  [[nodiscard]] std::vector<std::string> results() const {
    const std::lock_guard guard(mutex_);
    std::vector<std::string> ids;
    for (const auto& seen : events_) {
      if (seen.kind == ToolEvent::Kind::result) ids.push_back(seen.call);
    }
    return ids;
  }
  [[nodiscard]] std::vector<TurnEvent> turn_events() const {
    const std::lock_guard guard(mutex_);
    return turn_events_;
  }

  ManualClock clock;
  ExecutorOptions options;
  ToolExecutor::Parts parts;
  std::shared_ptr<ToolRegistry> tools = std::make_shared<ToolRegistry>();

 private:
  void note(const ToolEvent& event) {
    const std::lock_guard guard(mutex_);
    events_.push_back(
        {event.kind, event.call, event.tool, event.detail, event.bytes, event.elapsed});
  }

  mutable std::mutex mutex_;
  std::vector<Seen> events_;
  std::vector<TurnEvent> turn_events_;
  std::unique_ptr<TurnRegistry> turns_;
  std::unique_ptr<ToolExecutor> executor_;
};

}  // namespace watchdog::test
