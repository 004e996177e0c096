/// \file
/// A wait for a session: it follows the session until the goal is met, or can no longer be met.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "mcp/loop.h"
#include "mcp/rpc.h"
#include "mcp/source.h"
#include "watchdog/wait.h"

namespace watchdog::monitor::mcp {

/// The goal of a wait. A plain value.
struct WaitGoal {
  std::string session{};
  std::string text = "end";  ///< As the client named it.
  Awaited until{.goal = Goal::end, .on_stuck = OnStuck::fail};
  std::string member{};     ///< Of `Goal::condition`: a member of the document,
  std::string value{};      ///< and the value that it must have.
  std::int64_t after = -1;  ///< State changes after this event count; -1: from now on.
};

/// `end`, `completed`, `health=NAME`, `state-change[=TYPE]` and so on, as `wait --for` takes them;
/// also `state=NAME` and `attention=NAME`. Errors: `invalid`.
[[nodiscard]] Result<WaitGoal> goal_from(const std::string& session, const std::string& text);

/// Of a loop's steps alone. Destroying it ends the wait.
class Waiting : public std::enable_shared_from_this<Waiting> {
 public:
  struct Listener {
    /// The session changed. Its progress document, and a sentence about it.
    std::function<void()> changed{};
    /// The wait is over: a tool's result.
    std::function<void(json result)> over{};
  };

  Waiting(Loop& loop, std::shared_ptr<Source> source, WaitGoal goal, Listener listener)
      : loop_(loop),
        source_(std::move(source)),
        goal_(std::move(goal)),
        listener_(std::move(listener)) {}

  void begin();
  /// The result of a wait that is not over.
  [[nodiscard]] json not_yet() const;

  /// Event that is known, for progress that rises. Grows.
  [[nodiscard]] std::int64_t seq() const noexcept { return seq_; }
  /// The session's state in a sentence.
  [[nodiscard]] std::string words() const;
  /// True while the session is known to be all right: it works, or it waits as it should.
  [[nodiscard]] bool is_good() const;

 private:
  template <class Step>
  auto later(Step step);
  void on_record(const json& record);
  void on_document(json document);
  void ask_events();
  void on_events(const Answer& answer);
  void conclude();
  void over(bool came, const char* end, const std::string& why);
  [[nodiscard]] json result(bool came, const char* end, const std::string& why) const;

  Loop& loop_;
  const std::shared_ptr<Source> source_;
  const WaitGoal goal_;
  Listener listener_;
  std::unique_ptr<Following> following_;
  json document_;           ///< The newest one; null: none came yet.
  bool is_lost_ = false;    ///< The monitor does not answer.
  bool is_asking_ = false;  ///< For events.
  std::int64_t seq_ = -1;   ///< Events up to this one are known.
  SessionSample now_{};
  WaitMemory memory_{};
  IterationCount iterations_{};
};

}  // namespace watchdog::monitor::mcp
