/// \file
/// A simulated server in real time, as its connections use it from their threads.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "support/simulated_server.h"

namespace watchdog::test {

/// Thread-safe.
class LiveServer {
 public:
  struct Options {
    SimulatedModel model;
    double time_scale = 1;  ///< Virtual seconds a real one.
    double burn = 0.1;      ///< Real cores for each that it would use, so that others can see it.
    std::function<void(bool is_open)> port_changed;  ///< Called from a thread of its own.
  };
  /// True when the client that waits has gone. It is called several times a second.
  using Gone = std::function<bool()>;

  explicit LiveServer(Options options);
  /// Stops it.
  ~LiveServer();
  LiveServer(const LiveServer&) = delete;
  LiveServer& operator=(const LiveServer&) = delete;

  /// Time passes by itself from now on, until `stop`: after that nobody waits any longer.
  void start();
  void stop();

  [[nodiscard]] std::uint64_t submit(const SimulatedRequest& request);
  /// Waits for the next pieces that the request's connection gets, and returns them. Empty: the
  /// client has gone, and the request is cancelled.
  [[nodiscard]] std::vector<Piece> wait_pieces(std::uint64_t request, const Gone& gone);
  /// Nothing: the client that asked has gone.
  [[nodiscard]] std::optional<ServerView> ask(Question question, const Gone& gone);
  /// Waits until the server does not load any more. False: the client that waited has gone.
  bool wait_loaded(const Gone& gone);

  void change(const std::function<void(SimulatedServer&)>& by);
  [[nodiscard]] SimulatedModel model();
  [[nodiscard]] Instant now();

 private:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] Instant virtual_now() const;
  [[nodiscard]] Clock::time_point real_of(Instant at) const;
  void catch_up();
  void pass_time();
  void burn();
  template <class Ready>
  bool wait(std::unique_lock<std::mutex>& guard, const Gone& gone, const Ready& ready);

  Options options_;
  Clock::time_point start_ = Clock::now();
  std::mutex mutex_;
  std::condition_variable changed_;  ///< Time has passed: somebody may have got something.
  std::condition_variable asked_;    ///< Something may happen earlier than was thought.
  SimulatedServer server_;
  bool stopping_ = false;
  std::thread clock_;
  std::thread burner_;
};

}  // namespace watchdog::test
