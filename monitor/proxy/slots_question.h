/// \file
/// llama.cpp's `/slots`, which may be answered late or never: that is a sign of its own.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "proxy/server_questions.h"

namespace watchdog::monitor {

/// Asks on a thread of its own, without a deadline, and never again before there is an answer. Use
/// from one thread at a time.
class SlotsQuestion {
 public:
  using Servers = std::vector<std::shared_ptr<ServerQuestions>>;

  SlotsQuestion();
  /// Calls off what it asks.
  ~SlotsQuestion();
  SlotsQuestion(const SlotsQuestion&) = delete;
  SlotsQuestion& operator=(const SlotsQuestion&) = delete;

  /// Asks one server after the other, unless a question is under way, and waits so long at most
  /// for the answer. Slots of further servers get numbers of their own.
  void ask(Servers servers, Millis wait_max, const std::stop_token& stop);
  /// Puts into `sight` what has been answered since, or that it is not.
  void take(ServerSight& sight);
  /// Nobody wants to know any more.
  void call_off();

 private:
  void run(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<Servers> question_;  ///< Until it is answered.
  Millis since_{};
  std::stop_source called_off_;
  std::optional<ServerSight> answer_;  ///< Its slots alone.
  std::jthread thread_;
};

}  // namespace watchdog::monitor
