#include <algorithm>
#include <array>
#include <utility>

#include "watchdog/run.h"

namespace watchdog {
namespace {

constexpr std::string_view tool = "tool";
constexpr std::string_view execution = "execution";
constexpr std::size_t watched_max = 64;

}  // namespace

Millis LimitWatch::limit_of(std::string_view phase) const {
  const std::array<std::pair<std::string_view, Millis>, 4> named{
      {{"planning", limits_.planning},
       {"implementation", limits_.implementation},
       {"deployment", limits_.deployment},
       {execution, limits_.tool}}};
  const auto* found =
      std::find_if(named.begin(), named.end(), [&](const auto& one) { return one.first == phase; });
  return found == named.end() ? Millis{0} : found->second;
}

void LimitWatch::end(std::string_view call) {
  std::erase_if(running_, [&](const Running& one) { return one.call == call; });
}

void LimitWatch::begin(std::string_view phase, Millis now) {
  const std::lock_guard guard(mutex_);
  look(now);
  end({});
  if (const auto limit = limit_of(phase); limit > Millis{0}) {
    running_.push_back({.name = phase == execution ? std::string(tool) : std::string(phase),
                        .since = now,
                        .limit = limit});
  }
}

void LimitWatch::begin_call(std::string_view call, Millis now) {
  const std::lock_guard guard(mutex_);
  look(now);
  // From here on each call speaks for itself.
  std::erase_if(running_, [](const Running& one) { return one.call.empty() && one.name == tool; });
  if (limits_.tool == Millis{0} || call.empty() || running_.size() >= watched_max) return;
  running_.push_back(
      {.name = std::string(tool), .since = now, .limit = limits_.tool, .call = std::string(call)});
}

void LimitWatch::end_call(std::string_view call, Millis now) {
  const std::lock_guard guard(mutex_);
  look(now);
  if (!call.empty()) end(call);
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
  for (auto& one : running_) {
    if (one.said || now - one.since < one.limit) continue;
    one.said = true;
    passed_.push_back(
        {.name = one.name, .limit = one.limit.count(), .reached = (now - one.since).count()});
  }
  if (!task_said_ && limits_.task > Millis{0} && now - began_ >= limits_.task) {
    task_said_ = true;
    passed_.push_back(
        {.name = "task", .limit = limits_.task.count(), .reached = (now - began_).count()});
  }
}

std::vector<LimitPassed> LimitWatch::drain(Millis now) {
  const std::lock_guard guard(mutex_);
  look(now);
  return std::exchange(passed_, {});
}

std::optional<Millis> LimitWatch::next() const {
  const std::lock_guard guard(mutex_);
  std::optional<Millis> soonest;
  for (const auto& one : running_) {
    const auto at = one.since + one.limit;
    if (!one.said) soonest = soonest ? std::min(*soonest, at) : at;
  }
  if (!task_said_ && limits_.task > Millis{0}) {
    const auto at = began_ + limits_.task;
    soonest = soonest ? std::min(*soonest, at) : at;
  }
  return soonest;
}

}  // namespace watchdog
