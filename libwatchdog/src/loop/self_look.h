/// \file
/// A run's look at its own health.
#pragma once

#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "watchdog/run.h"

namespace watchdog {

/// Asks a model where the own health is doubtful, without waiting for it, and finds what follows:
/// advice, the owner's `recover`, or the end. Use from the run's thread.
class SelfLook {
 public:
  /// REQUIRES: both outlive it.
  SelfLook(const Run::Parts& parts, const RunOptions& options) : parts_(parts), options_(options) {}

  /// Returns the run's end; nothing: it goes on. `stop` ends waiting for a check.
  [[nodiscard]] std::optional<Outcome> look(int iteration, const std::stop_token& stop);
  /// Advice for the model's next request, once in a streak of doubt; empty: none.
  [[nodiscard]] std::string drain_advice() { return std::exchange(advice_, {}); }

 private:
  [[nodiscard]] std::optional<Check> finished_check(Millis wait, const std::stop_token& stop);
  void start_check(const std::stop_token& stop);
  [[nodiscard]] Result<Check> started_check(const std::string& session,
                                            const std::stop_token& stop) const;
  [[nodiscard]] std::optional<Outcome> recover(const Case& judged, const std::string& reason,
                                               std::optional<Check> check) const;

  const Run::Parts& parts_;
  const RunOptions& options_;
  std::string checking_;  ///< The check that is under way; empty: none.
  std::string advice_;
  // In this streak of doubt:
  bool is_advised_ = false;
  bool is_recovered_ = false;
  bool is_refusal_said_ = false;
};

}  // namespace watchdog
