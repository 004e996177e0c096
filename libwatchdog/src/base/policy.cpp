#include "watchdog/policy.h"

#include <string>

#include "base/digest.h"

namespace watchdog {
namespace {

template <class T>
Result<void> in_range(const std::optional<T>& value, std::int64_t min, std::int64_t max,
                      std::string field) {
  if (!value) return {};
  std::int64_t number = 0;
  if constexpr (std::is_same_v<T, Millis>) {
    number = value->count();
  } else {
    number = *value;
  }
  if (number >= min && number <= max) return {};
  return Error{ErrorCode::invalid,
               field + " is " + std::to_string(number) + "; it must be from " +
                   std::to_string(min) + " to " + std::to_string(max),
               field};
}

template <class T>
void set(T& field, const std::optional<T>& value) {
  if (value) field = *value;
}

}  // namespace

Policy patched(Policy policy, const PolicyPatch& patch) {
  set(policy.heartbeat_interval, patch.heartbeat_interval);
  set(policy.stuck_threshold, patch.stuck_threshold);
  set(policy.silence_intervals, patch.silence_intervals);
  set(policy.call_idle_max, patch.call_idle_max);
  set(policy.concurrent_checks, patch.concurrent_checks);
  return policy;
}

Result<void> check(const PolicyPatch& patch) {
  constexpr std::int64_t hour = 3'600'000;
  for (auto result : {in_range(patch.heartbeat_interval, 100, hour, "heartbeatInterval"),
                      in_range(patch.stuck_threshold, 2, 10'000, "stuckThreshold"),
                      in_range(patch.silence_intervals, 1, 1'000, "silenceIntervals"),
                      in_range(patch.call_idle_max, 1'000, 168 * hour, "callIdleMax")}) {
    if (!result) return result;
  }
  return {};
}

std::uint64_t digest_of(const Policy& policy) {
  std::string text;
  for (const std::int64_t value :
       {static_cast<std::int64_t>(policy.heartbeat_interval.count()), policy.stuck_threshold,
        policy.silence_intervals, static_cast<std::int64_t>(policy.call_idle_max.count()),
        static_cast<std::int64_t>(policy.concurrent_checks)}) {
    text += std::to_string(value) + ' ';
  }
  return digest_of(std::string_view(text));
}

}  // namespace watchdog
