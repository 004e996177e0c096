// The server asks each open body once a second whether its client may have more. A held hook uses
// that as its clock: it looks whether the session still waits. So no way by which a wait ends has
// to know of held hooks.
#include "api/held_hook.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <mutex>
#include <utility>

#include "api/long_poll.h"
#include "facts/agent_tools.h"
#include "facts/ids.h"
#include "ingest/hook_answer.h"
#include "process/process_sample.h"

namespace watchdog::monitor {
namespace {

/// What a person's answer says of the session: it goes on; a denied call is over.
std::vector<Report> reports_of(const Report& wait, const HookQuestion& asked,
                               const PersonAnswer& answer) {
  std::vector<Report> reports(1);
  auto& over = reports.front();
  over.kind = ReportKind::resume;
  over.name = wait.name;
  over.call_id = wait.event_id.empty() ? wait.call_id : wait.event_id;
  over.content = words_of(answer, asked.question.kind) + " by " + answer.by + ": " +
                 (asked.question.tool.empty() ? "" : asked.question.tool + ": ") +
                 asked.question.text;
  if (answer.allows || wait.call_id.empty()) return reports;
  auto& denied = reports.emplace_back();
  denied.kind = ReportKind::error;
  denied.name = asked.question.tool;
  denied.call_id = wait.call_id;
  denied.content = std::string(denied_call) + " " + denial_of(answer);
  return reports;
}

/// The turn ended in the terminal.
std::vector<Report> rest_of_the_turn() {
  std::vector<Report> reports(1);
  reports.front().kind = ReportKind::idle;
  reports.front().name = idle_reports::interrupted;
  return reports;
}

/// Enough that curl, which counts whole bytes a second, sees more than none.
constexpr const char* sign_of_life = "\n\n\n\n";
/// A hook gives up after five seconds without a sign of life.
constexpr std::chrono::seconds awake{3};

class HeldHook final : public LongPoll, public std::enable_shared_from_this<HeldHook> {
 public:
  /// `is_near`: the hook runs on this machine.
  HeldHook(Backend& backend, Feed* feed, HookQuestion asked, Report wait, bool is_near)
      : backend_(backend),
        feed_(feed),
        asked_(std::move(asked)),
        wait_(std::move(wait)),
        is_near_(is_near) {}
  HeldHook(const HeldHook&) = delete;
  HeldHook& operator=(const HeldHook&) = delete;
  ~HeldHook() override {
    if (!is_held_) return;
    try {
      if (was_refused()) append(rest_of_the_turn());
      backend_.questions().release(asked_.question.id);
      tell();
    } catch (const std::exception&) {
      // Without memory the session's next event has to say it.
    }
  }

  /// False: too many are held.
  bool hold() {
    is_held_ = true;
    const auto id = backend_.questions().hold(
        asked_.question, [weak = weak_from_this()](std::optional<PersonAnswer> answer) {
          if (const auto self = weak.lock()) self->answered(std::move(answer));
        });
    is_held_ = !id.empty();
    if (is_held_) tell();
    return is_held_;
  }

  void begin(std::function<void()> wake) override {
    const std::lock_guard guard(mutex_);
    wake_ = std::move(wake);
  }

  [[nodiscard]] std::vector<Piece> drain() override {
    const std::lock_guard guard(mutex_);
    if (answer_) return {std::exchange(answer_, nullptr)};
    if (!std::exchange(breathes_, false)) return {};
    static const auto sign = std::make_shared<const std::string>(sign_of_life);
    return {sign};
  }

  [[nodiscard]] BodyState state() const override {
    const std::lock_guard guard(mutex_);
    return is_over_ && !answer_ ? BodyState::complete : BodyState::open;
  }

  [[nodiscard]] bool allowed() override {
    const auto watched = backend_.watched(asked_.question.session);
    if (watched && watched->judged.history.notes->cancel)
      finish(hook_answer(asked_.agent, asked_.event, watched->judged.history.notes->cancel).body);
    const bool is_open = watched && asks_still(watched->judged.history);
    if (!is_open || system_clock().wall() >= asked_.question.until) finish("{}");
    std::function<void()> wake;
    {
      const std::lock_guard guard(mutex_);
      breathes_ = !is_over_;
      const auto now = std::chrono::steady_clock::now();
      slept_ = slept_ || now - breathed_ > awake;
      breathed_ = now;
      wake = wake_;
    }
    if (wake) wake();
    return true;
  }

  void hurry() override { finish("{}"); }

 private:
  void answered(std::optional<PersonAnswer> answer) {
    if (!answer) return finish("{}");
    append(reports_of(wait_, asked_, *answer));
    finish(hook_reply(asked_, *answer));
  }

  void append(std::vector<Report> reports) const {
    backend_.append({.session = asked_.question.session,
                     .creation = Creation::refuse,
                     .reports = std::move(reports),
                     .by = ReportOrigin::monitor},
                    [](const Result<Receipt>&) {});
  }

  /// The session waits, and the call of this question has no result yet: the next question of the
  /// same session is another one.
  [[nodiscard]] bool asks_still(const History& history) const {
    if (history.lifecycle != Lifecycle::waiting) return false;
    const auto& calls = *history.open_calls;
    return wait_.call_id.empty() ||
           std::any_of(calls.begin(), calls.end(), [this](const OpenCall& call) {
             return call.call_id.str() == wait_.call_id;
           });
  }

  /// Claude Code 2.1.197 ends a hook before its time only if its person said no, or pressed Esc, in
  /// the terminal. That ends the turn, and no other hook reports it. After a yes the hook stays. A
  /// hook also gives up on a monitor that was stopped itself, or on the way to another machine.
  [[nodiscard]] bool was_refused() const {
    const std::lock_guard guard(mutex_);
    return asked_.agent == HookAgent::claude_code && is_near_ && !is_over_ && !slept_ &&
           std::chrono::steady_clock::now() - breathed_ < awake;
  }

  void finish(std::string body) {
    std::function<void()> wake;
    {
      const std::lock_guard guard(mutex_);
      if (std::exchange(is_over_, true)) return;
      answer_ = std::make_shared<const std::string>(std::move(body));
      wake = wake_;
    }
    backend_.questions().release(asked_.question.id);  // nobody answers it any more
    if (wake) wake();
  }

  /// The session has a question to show, or has it no more.
  void tell() const {
    if (feed_ != nullptr) feed_->touched(asked_.question.session);
  }

  Backend& backend_;
  Feed* const feed_;
  const HookQuestion asked_;
  const Report wait_;
  const bool is_near_;
  bool is_held_ = false;  ///< Set before anybody else knows of this.

  mutable std::mutex mutex_;  ///< Guards the rest.
  std::function<void()> wake_;
  Piece answer_;
  bool breathes_ = false;
  std::chrono::steady_clock::time_point breathed_ = std::chrono::steady_clock::now();
  bool slept_ = false;  ///< Nobody looked for a while.
  bool is_over_ = false;
};

}  // namespace

void hold_hook(const CallPtr& call, HookQuestion asked, const Report& report, Millis at_most) {
  // Another monitor that judges the session does not say here when it goes on.
  if (!call->backend.watched(asked.question.session)) return call->reply({.body = "{}"});
  asked.question.id = new_ulid(system_clock().wall());
  asked.question.asked = system_clock().wall();
  asked.question.until = asked.question.asked + at_most;
  auto body = std::make_shared<HeldHook>(call->backend, call->feed, std::move(asked), report,
                                         is_loopback(call->request.peer));
  if (!body->hold()) return call->reply({.body = "{}"});
  // A proxy that keeps the signs of life back would have the hook give up.
  call->reply(
      {.extra_headers = "X-Accel-Buffering: no\r\n", .source = std::move(body), .ends = true});
}

}  // namespace watchdog::monitor
