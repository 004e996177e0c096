/// \file
/// Where somebody may ask what a model thinks of a session, and hears the answer.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "api/backend.h"
#include "watchdog/case.h"
#include "watchdog/checks.h"

namespace watchdog::monitor {

/// Questions and answers are events of the session asked about. Thread-safe.
class CheckDesk {
 public:
  struct Options {
    StatusChecker::Options checker;
    bool on_suspicion = true;  ///< Ask unasked, where the session's policy allows it.
    /// Gets what an operator should know.
    std::function<void(const std::string&)> log;
  };
  using Done = std::function<void(Result<Check>)>;

  /// `backend` must outlive this. An empty model: there is nobody to ask, which whoever asks is
  /// told.
  CheckDesk(Backend& backend, Model model, Options options);
  /// Calls off what is under way; that is written down as failed.
  ~CheckDesk();
  CheckDesk(const CheckDesk&) = delete;
  CheckDesk& operator=(const CheckDesk&) = delete;

  /// Starts a check; `done` gets it as soon as the question is durable, from any thread. `id`
  /// empty: a fresh one. Errors: `not_found`, `conflict` (the session has ended or is being
  /// checked, the id is taken), `exhausted`, `unavailable` (nobody to ask), `invalid` (the id).
  void ask(std::string session, std::string id, Done done);
  /// A check, however long ago. Errors: `not_found`.
  void find(std::string id, Done done);

  /// A session's health changed: asks about it, if that is a reason to.
  void notice(const Transition& change);
  /// Does so for sessions that were in trouble before anybody looked: 100 of each health.
  void look_around();

 private:
  struct State;
  const bool can_ask_;
  std::shared_ptr<State> state_;
};

}  // namespace watchdog::monitor
