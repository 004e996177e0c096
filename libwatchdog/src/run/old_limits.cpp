#include "watchdog/old_limits.h"

#include <algorithm>
#include <array>
#include <utility>

namespace watchdog {

Millis LimitWatch::limit_of(std::string_view what) const {
  const std::array<std::pair<std::string_view, Millis>, 5> named{
      {{"planning", limits_.planning},
       {"implementation", limits_.implementation},
       {"deployment", limits_.deployment},
       {"execution", limits_.tool},
       {"tool", limits_.tool}}};
  const auto* found =
      std::find_if(named.begin(), named.end(), [&](const auto& one) { return one.first == what; });
  return found == named.end() ? Millis{0} : found->second;
}

void LimitWatch::begin(std::string_view what, Millis now) {
  const std::lock_guard guard(mutex_);
  look(now);
  phase_.reset();
  if (const auto limit = limit_of(what); limit > Millis{0}) {
    phase_ = Running{
        .name = what == "execution" ? "tool" : std::string(what), .since = now, .limit = limit};
  }
}

void LimitWatch::end(Millis now) {
  const std::lock_guard guard(mutex_);
  look(now);
  phase_.reset();
}

void LimitWatch::attempts(std::int64_t count, Millis now) {
  const std::lock_guard guard(mutex_);
  look(now);
  if (limits_.health_attempts == 0 || count < limits_.health_attempts || attempts_said_) return;
  attempts_said_ = true;
  passed_.push_back(
      {.name = "health_attempts", .limit = limits_.health_attempts, .reached = count});
}

void LimitWatch::look(Millis now) {
  if (phase_ && !phase_->said && now - phase_->since >= phase_->limit) {
    phase_->said = true;
    passed_.push_back({.name = phase_->name,
                       .limit = phase_->limit.count(),
                       .reached = (now - phase_->since).count()});
  }
  if (!task_said_ && limits_.task > Millis{0} && now - began_ >= limits_.task) {
    task_said_ = true;
    passed_.push_back(
        {.name = "task", .limit = limits_.task.count(), .reached = (now - began_).count()});
  }
}

std::vector<LimitPassed> LimitWatch::take(Millis now) {
  const std::lock_guard guard(mutex_);
  look(now);
  return std::exchange(passed_, {});
}

std::optional<Millis> LimitWatch::next() const {
  const std::lock_guard guard(mutex_);
  std::optional<Millis> soonest;
  if (phase_ && !phase_->said) soonest = phase_->since + phase_->limit;
  if (!task_said_ && limits_.task > Millis{0}) {
    const auto at = began_ + limits_.task;
    soonest = soonest ? std::min(*soonest, at) : at;
  }
  return soonest;
}

}  // namespace watchdog
