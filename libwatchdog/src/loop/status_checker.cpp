// `start` queues a job, and a worker asks the model without holding the lock. `settle` calls the
// owner first, also without the lock, and then notifies waiting callers: so they find the check
// stored. A check counts when it is queued and is forgiven if no question was sent. Memory is
// bounded: the oldest checks are forgotten, but no pending one.
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "facts/ids.h"
#include "watchdog/reasons.h"
#include "watchdog/run.h"

namespace watchdog {
namespace {

constexpr std::size_t kept_max = 1'000;
constexpr int backoff_max = 10;  ///< Doublings: 60 s become 17 h.

}  // namespace

struct StatusChecker::State {
  struct Job {
    std::string id;
    CheckSubject subject;
  };
  /// The checks of one session.
  struct Asked {
    int count = 0;
    std::string pending;  ///< The check that is under way; empty: none.
    Millis latest{};      ///< When it was asked last.
  };

  Parts parts;
  Options options;

  mutable std::mutex mutex;
  mutable std::condition_variable_any moved;
  std::deque<Job> waiting;
  std::map<std::string, Check, std::less<>> checks;
  std::deque<std::string> order;  ///< Of `checks`, oldest first.
  std::map<std::string, Asked, std::less<>> sessions;
  std::vector<std::jthread> workers;

  void run(const std::stop_token& stop) {
    while (true) {
      Job job;
      {
        std::unique_lock guard(mutex);
        if (!moved.wait(guard, stop, [&] { return !waiting.empty(); })) return;
        job = std::move(waiting.front());
        waiting.pop_front();
      }
      settle(job, ask(job, stop));
    }
  }

  /// No question was sent: it does not count.
  void forgive(const Job& job) {
    const std::lock_guard guard(mutex);
    --sessions[job.subject.session].count;
  }

  [[nodiscard]] Check ask(const Job& job, const std::stop_token& stop) {
    auto request = check_request(job.subject, options.output_tokens_max);
    request.model = options.model;
    Check check;
    try {
      const auto answer = parts.model(request, {}, stop);
      if (!answer) {
        check.state = CheckState::failed;
        check.reason = answer.error().message;
        if (answer.error().reason == reasons::not_asked) forgive(job);
      } else {
        auto read = read_check(*answer);
        const bool read_it = read.status != Verdict::none;
        check.state = read_it ? CheckState::done : CheckState::inconclusive;
        check.status = read.status;
        check.reason = std::move(read.reason);
        check.confidence = read.confidence;
      }
    } catch (const std::exception& error) {
      check = {.state = CheckState::failed, .reason = error.what()};
    } catch (...) {
      check = {.state = CheckState::failed,
               .reason = "what the model threw is not a std::exception"};
    }
    return check;
  }

  void settle(const Job& job, Check check) {
    check.id = job.id;
    check.session = job.subject.session;
    check.seen = job.subject.judged.history.seq;
    check.at = options.clock->wall();
    // An exception of the owner's callback must not end the process.
    try {
      if (check.state == CheckState::done && parts.outdated && parts.outdated(check)) {
        check.state = CheckState::superseded;
      }
      // Stored before waiting callers continue.
      if (parts.done) parts.done(check);
    } catch (...) {
      check.state = CheckState::failed;
      check.reason = "the answer could not be kept";
    }
    const std::lock_guard guard(mutex);
    checks[check.id] = std::move(check);
    sessions[job.subject.session].pending.clear();
    moved.notify_all();
  }

  /// REQUIRES: mutex held.
  void remember(const Check& check) {
    checks[check.id] = check;
    order.push_back(check.id);
    while (order.size() > kept_max) {
      const auto oldest = checks.find(order.front());
      if (oldest != checks.end() && oldest->second.state == CheckState::pending) break;
      if (oldest != checks.end()) checks.erase(oldest);
      order.pop_front();
    }
    if (sessions.size() <= kept_max) return;
    const auto idle = std::min_element(sessions.begin(), sessions.end(), [](auto& a, auto& b) {
      return std::pair(!a.second.pending.empty(), a.second.latest) <
             std::pair(!b.second.pending.empty(), b.second.latest);
    });
    sessions.erase(idle);
  }
};

StatusChecker::StatusChecker(Parts parts, Options options) : state_(std::make_unique<State>()) {
  state_->parts = std::move(parts);
  state_->options = std::move(options);
  for (int count = 0; count < std::max(state_->options.workers, 1); ++count) {
    state_->workers.emplace_back(
        [state = state_.get()](const std::stop_token& stop) { state->run(stop); });
  }
}

StatusChecker::~StatusChecker() {
  for (auto& worker : state_->workers) worker.request_stop();
  state_->workers.clear();
  for (auto& job : std::exchange(state_->waiting, {})) {
    state_->settle(job,
                   {.state = CheckState::failed, .reason = "nobody was there to ask any more"});
  }
}

Result<Check> StatusChecker::start(CheckSubject subject, std::string id) {
  State& state = *state_;
  if (id.empty()) id = new_ulid(state.options.clock->wall());
  const std::lock_guard guard(state.mutex);
  if (const auto found = state.checks.find(id); found != state.checks.end()) {
    if (found->second.session == subject.session) return found->second;
    return Error{ErrorCode::conflict, "check " + id + " is another session's", "checkId"};
  }
  auto& asked = state.sessions[subject.session];
  if (!asked.pending.empty()) {
    return Error{ErrorCode::conflict,
                 "session " + subject.session + " is being checked already: " + asked.pending,
                 "sessionId"};
  }
  if (asked.count >= state.options.per_session_max) {
    return Error{ErrorCode::exhausted,
                 "session " + subject.session + " was checked " + std::to_string(asked.count) +
                     " times: that is all it may",
                 "sessionId"};
  }
  if (static_cast<int>(state.waiting.size()) >= state.options.waiting_max) {
    return Error{ErrorCode::exhausted,
                 std::to_string(state.waiting.size()) + " checks wait already; try later"};
  }
  Check check{.id = id,
              .session = subject.session,
              .seen = subject.judged.history.seq,
              .at = state.options.clock->wall()};
  ++asked.count;
  asked.pending = id;
  asked.latest = state.options.clock->since_boot();
  state.remember(check);
  state.waiting.push_back({.id = std::move(id), .subject = std::move(subject)});
  state.moved.notify_one();
  return check;
}

bool StatusChecker::may_start(std::string_view session) const {
  const std::lock_guard guard(state_->mutex);
  const auto found = state_->sessions.find(session);
  if (found == state_->sessions.end() || found->second.count == 0) return true;
  const auto& asked = found->second;
  if (!asked.pending.empty() || asked.count >= state_->options.per_session_max) return false;
  const auto apart = state_->options.apart * (1LL << std::min(asked.count - 1, backoff_max));
  return state_->options.clock->since_boot() - asked.latest >= apart;
}

std::optional<Check> StatusChecker::pending(std::string_view session) const {
  const std::lock_guard guard(state_->mutex);
  const auto asked = state_->sessions.find(session);
  if (asked == state_->sessions.end() || asked->second.pending.empty()) return std::nullopt;
  const auto found = state_->checks.find(asked->second.pending);
  return found == state_->checks.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Check> StatusChecker::find(std::string_view id) const {
  const std::lock_guard guard(state_->mutex);
  const auto found = state_->checks.find(id);
  return found == state_->checks.end() ? std::nullopt : std::optional(found->second);
}

std::optional<Check> StatusChecker::wait(std::string_view id, Millis at_most,
                                         const std::stop_token& stop) const {
  std::unique_lock guard(state_->mutex);
  const auto ended = [&] {
    const auto found = state_->checks.find(id);
    return found == state_->checks.end() || found->second.state != CheckState::pending;
  };
  if (!state_->moved.wait_for(guard, stop, at_most, ended)) return std::nullopt;
  const auto found = state_->checks.find(id);
  return found == state_->checks.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace watchdog
