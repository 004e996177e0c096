/// \file
/// What it costs to have a tool called by an executor, beside calling it on another thread.
#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <ctime>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "bench.h"
#include "watchdog/executor.h"

namespace watchdog::bench {
namespace {

constexpr int calls = 2'000;
constexpr std::size_t batch_size = 100;
constexpr int batches = 20;
constexpr auto thinking = 50e-6;  ///< CPU seconds of a call that does something.

/// Keeps its core busy for `seconds` of CPU time.
void work(double seconds) {
  const auto until = seconds_of(CLOCK_THREAD_CPUTIME_ID) + seconds;
  while (seconds_of(CLOCK_THREAD_CPUTIME_ID) < until) {
  }
}

/// Threads that wait for work, and nothing else: what somebody writes who needs no more than that.
class BarePool {
 public:
  explicit BarePool(std::size_t threads) {
    for (std::size_t at = 0; at < threads; ++at) threads_.emplace_back([this] { serve(); });
  }
  ~BarePool() {
    {
      const std::lock_guard guard(mutex_);
      stopping_ = true;
    }
    came_.notify_all();
    for (auto& thread : threads_) thread.join();
  }
  BarePool(const BarePool&) = delete;
  BarePool& operator=(const BarePool&) = delete;

  void run(std::size_t count, const std::function<void()>& task) {
    std::unique_lock guard(mutex_);
    for (std::size_t at = 0; at < count; ++at) {
      queue_.push_back(task);
      came_.notify_one();
    }
    open_ = count;
    done_.wait(guard, [&] { return open_ == 0; });
  }

 private:
  void serve() {
    std::unique_lock guard(mutex_);
    while (true) {
      came_.wait(guard, [&] { return stopping_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const auto task = std::move(queue_.front());
      queue_.pop_front();
      guard.unlock();
      task();
      guard.lock();
      if (--open_ == 0) done_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable came_;
  std::condition_variable done_;
  std::deque<std::function<void()>> queue_;
  std::size_t open_ = 0;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

/// An executor with a tool that does nothing and one that works, and a turn.
struct Scene {
  explicit Scene(std::size_t parallel_max)
      : executor({.tools = tools()}, {.parallel_max = parallel_max}), turn(must(turns.begin({}))) {}

  static std::shared_ptr<const ToolRegistry> tools() {
    auto registry = std::make_shared<ToolRegistry>();
    must(registry->add(make_tool({.name = "nothing"}, [](ToolContext&) { return ToolReply{}; })));
    must(registry->add(make_tool({.name = "work"}, [](ToolContext&) {
      work(thinking);
      return ToolReply{};
    })));
    return registry;
  }

  void call() {
    if (is_error(executor.execute(turn, {"1", "nothing", "{}"}).outcome)) give_up("a call failed");
  }
  void batch(const char* tool) {
    std::vector<ToolCall> asked;
    for (std::size_t at = 0; at < batch_size; ++at)
      asked.push_back({std::to_string(at), tool, "{}"});
    for (const auto& report : executor.execute_batch(turn, asked))
      if (is_error(report.outcome)) give_up("a call failed");
  }

  ToolExecutor executor;
  TurnRegistry turns;
  Turn turn;
};

/// Keeps this thread, and the threads that it makes from now on, on one core. The time to wake
/// another core depends on the machine: it is up to ten times the work that is measured.
class OneCore {
 public:
  OneCore() {
    sched_getaffinity(0, sizeof before_, &before_);
    cpu_set_t one;
    CPU_ZERO(&one);
    for (std::size_t core = 0; CPU_COUNT(&one) == 0 && core < CPU_SETSIZE; ++core)
      if (CPU_ISSET(core, &before_)) CPU_SET(core, &one);
    sched_setaffinity(0, sizeof one, &one);
  }
  ~OneCore() { sched_setaffinity(0, sizeof before_, &before_); }
  OneCore(const OneCore&) = delete;
  OneCore& operator=(const OneCore&) = delete;

 private:
  cpu_set_t before_{};
};

/// CPU microseconds of a call that does nothing, beside a hand-off to a waiting thread and back.
void single_calls(Table& table) {
  const OneCore pinned;
  Scene scene(1);
  BarePool pool(1);
  const auto called = [&] {
    return 1e6 / calls * cpu_of([&] {
             for (int at = 0; at < calls; ++at) scene.call();
           });
  };
  const auto handed = [&] {
    return 1e6 / calls * cpu_of([&] {
             for (int at = 0; at < calls; ++at) pool.run(1, [] {});
           });
  };
  table.add("tool_call", "us", by_turns(15, called, handed), at_most(3));
}

/// Milliseconds that somebody waits for a batch, beside as many threads that do the same.
void many_calls(Table& table) {
  const auto cores = std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 8);
  Scene scene(ExecutorOptions{}.parallel_max);
  Scene one_by_one(1);
  BarePool pool(cores);
  const auto batch = [](Scene& with) {
    return 1e3 / batches * wall_of([&] {
             for (int at = 0; at < batches; ++at) with.batch("work");
           });
  };
  const auto together = [&] { return batch(scene); };
  const auto bare = [&] {
    return 1e3 / batches * wall_of([&] {
             for (int at = 0; at < batches; ++at) pool.run(batch_size, [] { work(thinking); });
           });
  };
  table.add("tool_batch", "ms", by_turns(15, together, bare), at_most(2));
  // No promise: it depends on how many cores are free.
  table.add("tool_batch_to_one_by_one", "ms",
            by_turns(15, together, [&] { return batch(one_by_one); }));
}

/// CPU microseconds of a call in a batch of calls that do nothing.
void nothing(Table& table) {
  const OneCore pinned;
  Scene scene(8);
  std::vector<double> found;
  for (int round = 0; round < 15; ++round) {
    found.push_back(1e6 / (batches * batch_size) * cpu_of([&] {
                      for (int at = 0; at < batches; ++at) scene.batch("nothing");
                    }));
  }
  table.add("tool_batch_of_nothing", "us", median(found));
}

}  // namespace
}  // namespace watchdog::bench

int main(int argc, char** argv) {
  watchdog::bench::Table table(argc, argv);
  watchdog::bench::single_calls(table);
  watchdog::bench::many_calls(table);
  watchdog::bench::nothing(table);
  return table.exit_code();
}
