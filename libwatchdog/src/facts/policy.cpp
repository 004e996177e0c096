// A patch is checked value by value. A whole policy is checked for values that contradict each
// other, which shows only after patching: a patch may set one of two. The first value out of range
// is the error. `set_thresholds`, `check` and `digest_of` list the thresholds by hand, so a new one
// needs a line in each. The digest is of raw values in a fixed order.
#include "watchdog/policy.h"

#include <cmath>
#include <cstring>
#include <string>

#include "facts/digest.h"

namespace watchdog {
namespace {

constexpr std::int64_t hour = 3'600'000;
constexpr std::int64_t week = 168 * hour;

std::string plain(double number) {
  if (number == std::trunc(number) && std::abs(number) < 1e15) {
    return std::to_string(static_cast<std::int64_t>(number));
  }
  auto text = std::to_string(number);
  while (text.back() == '0') text.pop_back();
  return text;
}

Error refusal(std::string field, const std::string& why) {
  return {ErrorCode::invalid, field + " " + why, field};
}

/// Collects the first thing that is out of range.
class Ranges {
 public:
  template <class T>
  void check(const std::optional<T>& value, double min, double max, const std::string& field) {
    if (!value || error) return;
    double number = 0;
    if constexpr (std::is_same_v<T, Millis>) {
      number = static_cast<double>(value->count());
    } else {
      number = static_cast<double>(*value);
    }
    if (number >= min && number <= max) return;  // false for NaN
    error = refusal(
        field, "is " + plain(number) + "; it must be from " + plain(min) + " to " + plain(max));
  }

  std::optional<Error> error;
};

template <class Field, class T>
void set(Field& field, const std::optional<T>& value) {
  if (value) field = *value;
}

Bounds& bounds_of(Policy& policy, Pattern pattern) {
  return policy.patterns[static_cast<std::size_t>(pattern)];
}
BoundsPatch& bounds_of(PolicyPatch& patch, Pattern pattern) {
  return patch.patterns[pattern];
}

/// `policy` is a Policy or a PolicyPatch. The rules of tools are left to the caller.
template <class Target>
void set_thresholds(Target& policy, const PolicyPatch& patch) {
  set(policy.heartbeat_interval, patch.heartbeat_interval);
  set(policy.stuck_threshold, patch.stuck_threshold);
  set(policy.silence_intervals, patch.silence_intervals);
  set(policy.call_idle_max, patch.call_idle_max);
  set(policy.concurrent_checks, patch.concurrent_checks);
  set(policy.usual_interval, patch.usual_interval);
  set(policy.slow_deviations, patch.slow_deviations);
  set(policy.suspect_deviations, patch.suspect_deviations);
  set(policy.slow_min, patch.slow_min);
  set(policy.suspect_min, patch.suspect_min);
  for (const auto& [pattern, bounds] : patch.patterns) {
    auto& own = bounds_of(policy, pattern);
    set(own.suspect, bounds.suspect);
    set(own.stuck, bounds.stuck);
  }
  set(policy.repeated_of_20, patch.repeated_of_20);
  set(policy.recovery_changes, patch.recovery_changes);
}

}  // namespace

Policy patched(Policy policy, const PolicyPatch& patch) {
  set_thresholds(policy, patch);
  for (const auto& [name, rule] : patch.tools) {
    if (rule == ToolRule{}) {
      policy.tools.erase(name);
    } else {
      policy.tools[name] = rule;
    }
  }
  return policy;
}

PolicyPatch patched(PolicyPatch first, const PolicyPatch& then) {
  set_thresholds(first, then);
  for (const auto& [name, rule] : then.tools) first.tools[name] = rule;
  return first;
}

Policy policy_of(const PolicyPatch& for_all, const PolicyPatch& own) {
  auto both = patched(patched(Policy{}, for_all), own);
  return check(both) ? both : patched(Policy{}, own);
}

Result<void> check(const PolicyPatch& patch) {
  Ranges ranges;
  ranges.check(patch.heartbeat_interval, 100, hour, "heartbeatInterval");
  ranges.check(patch.stuck_threshold, 2, 10'000, "stuckThreshold");
  ranges.check(patch.silence_intervals, 1, 1'000, "silenceIntervals");
  ranges.check(patch.call_idle_max, 1'000, week, "callIdleMax");
  ranges.check(patch.usual_interval, 10, week, "usualInterval");
  ranges.check(patch.slow_deviations, 0.1, 10, "slowDeviations");
  ranges.check(patch.suspect_deviations, 0.1, 10, "suspectDeviations");
  ranges.check(patch.slow_min, 0, week, "slowMin");
  ranges.check(patch.suspect_min, 0, week, "suspectMin");
  ranges.check(patch.repeated_of_20, 0.5, 19, "repeatedOf20");  // of 20, one has none before it
  ranges.check(patch.recovery_changes, 1, 100, "recoveryChanges");
  for (const auto& [pattern, bounds] : patch.patterns) {
    const auto field = "patterns." + std::string(name_of(pattern));
    if (!is_repetition(pattern)) return refusal(field, "is not a pattern of repetition, R1 to R15");
    ranges.check(bounds.suspect, 0.5, 1e6, field + ".suspect");
    ranges.check(bounds.stuck, 0, 1e6, field + ".stuck");
  }
  if (ranges.error) return *ranges.error;
  if (patch.tools.size() > tools_max) {
    return refusal("tools", "names " + std::to_string(patch.tools.size()) + " tools; at most " +
                                std::to_string(tools_max) + " are allowed");
  }
  for (const auto& [name, rule] : patch.tools) {
    if (name.empty() || name.size() > 256) {
      return refusal("tools", "must name tools with 1 to 256 bytes");
    }
    if (rule.identity.size() > 16) {
      return refusal("tools." + name + ".identity", "may name at most 16 members");
    }
  }
  return {};
}

Result<void> check(const Policy& policy) {
  const auto above = [](double low, double high, const std::string& field,
                        const std::string& other) {
    return refusal(field, "is " + plain(low) + ", above " + other + " (" + plain(high) +
                              "): the limit for stuck must not be below the limit for suspect");
  };
  for (std::size_t at = 0; at < pattern_count; ++at) {
    const auto& bounds = policy.patterns[at];
    const auto field = "patterns." + std::string(Names<Pattern>::all[at]);
    if (bounds.stuck > 0 && bounds.suspect > bounds.stuck) {
      return above(bounds.suspect, bounds.stuck, field + ".suspect", field + ".stuck");
    }
    const auto pattern = static_cast<Pattern>(at);
    // A single one is not a repetition. R8 counts hits, which are repetitions themselves.
    if (is_repetition(pattern) && pattern != Pattern::repeated_calls &&
        pattern != Pattern::repeated_text && bounds.suspect < 2) {
      return refusal(field + ".suspect", "is " + plain(bounds.suspect) +
                                             "; it must be at least 2: one is not a repetition");
    }
  }
  if (policy.slow_deviations > policy.suspect_deviations) {
    return above(policy.slow_deviations, policy.suspect_deviations, "slowDeviations",
                 "suspectDeviations");
  }
  if (policy.slow_min > policy.suspect_min) {
    return above(static_cast<double>(policy.slow_min.count()),
                 static_cast<double>(policy.suspect_min.count()), "slowMin", "suspectMin");
  }
  if (policy.tools.size() > tools_max) {
    return refusal("tools", "would name more than " + std::to_string(tools_max) + " tools");
  }
  return {};
}

std::uint64_t digest_of(const Policy& policy) {
  std::string text;
  const auto add = [&](auto value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    text.append(raw, sizeof raw);
  };
  for (const auto time : {policy.heartbeat_interval, policy.call_idle_max, policy.usual_interval,
                          policy.slow_min, policy.suspect_min}) {
    add(static_cast<std::int64_t>(time.count()));
  }
  for (const auto count :
       {policy.stuck_threshold, policy.silence_intervals, policy.recovery_changes,
        static_cast<std::int64_t>(policy.concurrent_checks)}) {
    add(count);
  }
  for (const auto number :
       {policy.slow_deviations, policy.suspect_deviations, policy.repeated_of_20}) {
    add(number);
  }
  for (const auto& bounds : policy.patterns) {
    add(bounds.suspect);
    add(bounds.stuck);
  }
  for (const auto& [name, rule] : policy.tools) {
    text += name + '\n' + std::string(name_of(rule.use)) + '\n';
    for (const auto& field : rule.identity) text += field + '\n';
  }
  return digest_of(std::string_view(text));
}

}  // namespace watchdog
