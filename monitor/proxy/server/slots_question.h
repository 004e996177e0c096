/// \file
/// llama.cpp's `/slots`, which may be answered late or never: that is a sign of its own.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "proxy/server/server_questions.h"

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

  /// Asks the servers one after the other, unless a question is running, and waits at most
  /// `wait_max` for the answer. Slots of further servers get their own numbers.
  void ask(Servers servers, Millis wait_max, const std::stop_token& stop);
  /// Puts the answers since then into `sample`, or that there is none.
  void fill(ServerSample& sample);
  /// Cancels the question.
  void call_off();

 private:
  void run(const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::optional<Servers> question_;  ///< Until it is answered.
  Millis since_{};
  std::stop_source called_off_;
  std::optional<ServerSample> answer_;  ///< Its slots alone.
  std::jthread thread_;
};

}  // namespace watchdog::monitor
