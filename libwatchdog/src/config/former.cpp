// No user could judge these settings: a right value needs a measurement, and the present one was
// measured. Each is now a constant, whose reason is beside the member that holds it. Files and
// variables that still name one keep working, so an update never refuses to start, and a notice
// says what holds instead. Keys with a field are pauses and counts that tests must shorten.
#include "config/former.h"

#include <algorithm>
#include <array>

namespace watchdog {
namespace {

template <auto... Members>
Field former_field(Settings& settings, const KeyPath& /*path*/) {
  return &(settings.*....*Members);
}

Field former_threshold(Settings& settings, const KeyPath& path) {
  return PolicyField{&settings.policy, {path.begin() + 1, path.end()}};
}

Field channel_timeout(Settings& settings, const KeyPath& path) {
  return &settings.alerts.channels[path.at(2)].timeout;
}

constexpr std::string_view by_session = "a session's own policy can still change it";

constexpr std::array all_former{
    FormerKey{"model.stream", "answers are always read in pieces"},
    FormerKey{"run.low_confidence", "a reflection below 0.3 counts as low"},
    FormerKey{"run.low_confidence_times", "three low reflections in a row end a run"},
    FormerKey{"run.status_every", "a run looks at its own status every 5 iterations"},
    FormerKey{"run.check_wait_ms", "a run waits up to 5 s for an opinion"},
    FormerKey{"run.retries", "a request is repeated up to 5 times after failures that may pass",
              former_field<&Settings::run, &RunOptions::tries>},
    FormerKey{"run.retry_first_ms", "the first pause is 1 s, and each next one is twice as long",
              former_field<&Settings::run, &RunOptions::retry_first>},
    FormerKey{"run.retry_longest_ms", "a pause lasts at most 60 s"},
    FormerKey{"checks.share_server", "set checks.base_url to the agent's server to ask that"},
    FormerKey{"checks.output_tokens_max", "an answer has at most 100 tokens"},
    FormerKey{"checks.workers", "two questions are asked at the same time"},
    FormerKey{"checks.per_session_max", "a session is checked at most 20 times",
              former_field<&Settings::checks, &CheckSettings::options,
                           &StatusChecker::Options::per_session_max>},
    FormerKey{"checks.apart_ms", "checks that nobody asked for are 60 s apart, then longer"},
    FormerKey{"policy.silenceIntervals", by_session, former_threshold},
    FormerKey{"policy.enableConcurrentChecks", "set checks.enabled or checks.on_suspicion"},
    FormerKey{"policy.usualInterval", by_session, former_threshold},
    FormerKey{"policy.slowDeviations", by_session},
    FormerKey{"policy.suspectDeviations", by_session},
    FormerKey{"policy.slowMin", by_session, former_threshold},
    FormerKey{"policy.suspectMin", by_session},
    FormerKey{"policy.repeatedOf20", by_session},
    FormerKey{"policy.recoveryChanges", by_session},
    FormerKey{"alerts.content",
              "each channel has its own content: set "
              "alerts.channels.NAME.content = \"preview\""},
    FormerKey{"policy.patterns.*.suspect", by_session},
    FormerKey{"policy.patterns.*.stuck", by_session},
    FormerKey{"budget.visibility", "the model sees its budget when a stage begins, and from 70 %"},
    FormerKey{"migration.health_attempts", "the old limit is 15 attempts"},
    FormerKey{"tools.hint_max_seconds", "a model may ask for up to an hour"},
    FormerKey{"tools.cap_seconds", "set the profile, or the time without progress"},
    FormerKey{"tools.parallel_max", "8 calls of an answer run at the same time"},
    FormerKey{"tools.workers_max", "16 threads run calls"},
    FormerKey{"tools.confirm_seconds", "a person has 10 minutes to answer"},
    FormerKey{"tools.artifact_bytes", "kept outputs have up to 2 GiB"},
    FormerKey{"tools.artifact_days", "outputs are kept for 7 days"},
    FormerKey{"alerts.flap_changes", "more than 6 changes in 10 minutes are alerted once",
              former_field<&Settings::alerts, &AlertSettings::rules, &AlertRules::flap_changes>},
    FormerKey{"alerts.flap_seconds", "changes of 10 minutes are counted"},
    FormerKey{"alerts.messages_max", "3 messages a minute; more alerts go together in one",
              former_field<&Settings::alerts, &AlertSettings::rules, &AlertRules::messages_max>},
    FormerKey{"alerts.group_seconds", "alerts of one minute go together in one message",
              former_field<&Settings::alerts, &AlertSettings::rules, &AlertRules::group_window>},
    FormerKey{"alerts.retry_first_ms", "the first pause is 1 s, and each next one is twice as long",
              former_field<&Settings::alerts, &AlertSettings::retry_first>},
    FormerKey{"alerts.retry_longest_ms", "a pause lasts at most 5 minutes",
              former_field<&Settings::alerts, &AlertSettings::retry_longest>},
    FormerKey{"alerts.channels.*.timeout_seconds", "an attempt may take 30 s", channel_timeout},
    FormerKey{"monitor.requests_per_second_max", "200 requests a second from each other machine",
              former_field<&Settings::monitor, &MonitorSettings::requests_per_second_max>},
    FormerKey{"monitor.ping_interval_seconds", "ping_url is requested every 60 s",
              former_field<&Settings::monitor, &MonitorSettings::ping_interval>},
    FormerKey{"proxy.keep_alive_whitespace", "set proxy.keep_alive = \"whitespace\""},
    FormerKey{"proxy.keep_alive_after_seconds", "the first keep-alive comes after 10 s",
              former_field<&Settings::proxy, &ProxySettings::keep_alive_after>},
    FormerKey{"proxy.keep_alive_every_seconds", "keep-alives are 10 s apart",
              former_field<&Settings::proxy, &ProxySettings::keep_alive_every>},
    FormerKey{"proxy.look_every_ms",
              "the proxy looks every 2 s, and less often while nothing moves",
              former_field<&Settings::proxy, &ProxySettings::look_every>},
    FormerKey{"proxy.upstreams.*.ca_file", "put its certificates into the file of model.ca_file"},
};

/// Returns true if a variable is the one of a key, which may hold a `*`.
bool is_variable_of(std::string_view key, std::string_view name) {
  const auto pattern = variable_of(key);
  const auto star = pattern.find('*');
  if (star == std::string::npos) return pattern == name;
  const auto before = std::string_view(pattern).substr(0, star);
  const auto after = std::string_view(pattern).substr(star + 1);
  return name.size() > before.size() + after.size() && name.starts_with(before) &&
         name.ends_with(after);
}

}  // namespace

std::span<const FormerKey> former_keys() noexcept {
  return all_former;
}

const FormerKey* find_former(const KeyPath& path) {
  const auto found = std::ranges::find_if(
      all_former, [&](const FormerKey& former) { return is_key_of(path, former.key); });
  return found == all_former.end() ? nullptr : &*found;
}

const FormerKey* find_former_variable(std::string_view name) {
  const auto found = std::ranges::find_if(
      all_former, [&](const FormerKey& former) { return is_variable_of(former.key, name); });
  return found == all_former.end() ? nullptr : &*found;
}

}  // namespace watchdog
