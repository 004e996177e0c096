/// \file
/// Requests checks of sessions by a model, and keeps the answers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/backend.h"
#include "watchdog/health.h"
#include "watchdog/run.h"

namespace watchdog::monitor {

/// Questions and answers are events of the session asked about. Thread-safe.
class CheckService {
 public:
  struct Options {
    StatusChecker::Options checker;
    /// True if it may ask about this session unasked; its policy must allow it as well. Empty:
    /// never.
    std::function<bool(const SessionSpec&)> on_suspicion{};
    /// Gets what an operator should know.
    std::function<void(const std::string&)> log;
  };
  using Done = std::function<void(Result<Check>)>;

  /// `backend` must outlive this. An empty model: callers get an error.
  CheckService(Backend& backend, Model model, Options options);
  /// Cancels running checks; they are stored as failed.
  ~CheckService();
  CheckService(const CheckService&) = delete;
  CheckService& operator=(const CheckService&) = delete;

  /// Starts a check, unless one of the session is running; `done` gets that one, or the new one as
  /// soon as the question is durable, from any thread. `id` empty: a new one. Errors: `not_found`,
  /// `conflict` (the session has ended, the id is another session's), `exhausted`, `unavailable`
  /// (no model), `invalid` (the id).
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
