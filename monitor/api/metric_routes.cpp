#include <algorithm>

#include "api/exposition.h"
#include "api/metrics.h"
#include "api/routes.h"
#include "watchdog/health.h"

namespace watchdog::monitor {
namespace {

double seconds(Millis time) {
  return std::chrono::duration<double>(time).count();
}

template <class Enum>
Enum each(std::size_t at) {
  return static_cast<Enum>(at);
}

/// A family with a sample for each enumerator.
template <class Enum>
void tell(Exposition& out, std::string_view name, std::string_view label, std::string_view help,
          const CounterOf<Enum>& counters) {
  out.family(name, "counter", help);
  for (std::size_t at = 0; at < std::size(Names<Enum>::all); ++at) {
    const auto value = each<Enum>(at);
    out.sample(counters[value].count(), {{label, name_of(value)}});
  }
}

void tell_histogram(Exposition& out, std::string_view name, std::string_view help,
                    const Histogram& histogram) {
  out.family(name, "histogram", help);
  std::int64_t count = 0;
  for (std::size_t at = 0; at < Histogram::bounds.size(); ++at) {
    Exposition bound;  // as the format has numbers
    bound.sample(Histogram::bounds[at]);
    const auto text = bound.take();
    count += histogram.in_bucket(at);
    out.sample(count, {{"le", std::string_view(text).substr(1, text.size() - 2)}}, "_bucket");
  }
  count += histogram.in_bucket(Histogram::bounds.size());
  out.sample(count, {{"le", "+Inf"}}, "_bucket");
  out.sample(histogram.sum_seconds(), {}, "_sum").sample(count, {}, "_count");
}

void tell_sessions(Exposition& out, const Tally& sessions) {
  out.family("watchdog_sessions", "gauge", "Sessions that have not ended.");
  for (std::size_t lifecycle = 0; lifecycle < sessions.size(); ++lifecycle) {
    for (std::size_t health = 0; health < sessions[lifecycle].size(); ++health) {
      out.sample(sessions[lifecycle][health], {{"lifecycle", name_of(each<Lifecycle>(lifecycle))},
                                               {"health", name_of(each<HealthKind>(health))}});
    }
  }
}

void tell_work(Exposition& out, const Metrics& metrics) {
  tell(out, "watchdog_transitions_total", "health", "Changes of health, by the new one.",
       metrics.transitions);
  tell(out, "watchdog_events_total", "kind",
       "Events accepted, whoever wrote them; of heartbeats the rows that they became.",
       metrics.events);
  out.family("watchdog_heartbeats_total", "counter", "Heartbeats accepted.")
      .sample(metrics.heartbeats.count());
  out.family("watchdog_late_events_total", "counter", "Events that came after the end.")
      .sample(metrics.late.count());
  out.family("watchdog_duplicate_events_total", "counter", "Events that had come before.")
      .sample(metrics.duplicates.count());
  out.family("watchdog_checks_total", "counter", "Questions to a model, by what came of them.");
  for (const auto verdict : {Verdict::A, Verdict::B, Verdict::C, Verdict::D})
    out.sample(metrics.verdicts[verdict].count(), {{"result", name_of(verdict)}});
  for (const auto state : {CheckState::inconclusive, CheckState::failed, CheckState::superseded})
    out.sample(metrics.unanswered[state].count(), {{"result", name_of(state)}});
}

void tell_store(Exposition& out, const Metrics& metrics, const Vitals& vitals) {
  out.family("watchdog_store_up", "gauge", "1: what comes in can be kept.")
      .sample(std::int64_t{vitals.keeps ? 1 : 0});
  out.family("watchdog_store_look_age_seconds", "gauge",
             "Since the store was looked at the last time; about a second where all is well.")
      .sample(seconds(vitals.since_look));
  out.family("watchdog_oldest_due_seconds", "gauge",
             "How late the judgement is that is due the longest.")
      .sample(seconds(vitals.overdue));
  out.family("watchdog_store_size_bytes", "gauge", "The database file.").sample(vitals.file_bytes);
  out.family("watchdog_store_wal_bytes", "gauge", "Its write-ahead log.").sample(vitals.log_bytes);
  out.family("watchdog_queue_bytes", "gauge", "Reports that wait for the disk.")
      .sample(vitals.queue_bytes);
  tell_histogram(out, "watchdog_commit_seconds",
                 "From having reports in hand to having them on disk.", metrics.commit);
}

void tell_server(Exposition& out, const Metrics& metrics) {
  out.family("watchdog_http_requests_total", "counter", "Requests answered.");
  for (std::size_t group = 0; group < metrics.requests.size(); ++group) {
    for (std::size_t status = 0; status < std::size(Names<StatusClass>::all); ++status) {
      const auto code = each<StatusClass>(status);
      const auto count = metrics.requests[group][code].count();
      if (count == 0 && code != StatusClass::success && code != StatusClass::server) continue;
      out.sample(count, {{"group", name_of(each<RouteGroup>(group))}, {"code", name_of(code)}});
    }
  }
  out.family("watchdog_http_connections", "gauge", "Connections that are open.")
      .sample(metrics.connections_opened.count() - metrics.connections_closed.count());
  out.family("watchdog_http_connections_total", "counter", "Connections accepted.")
      .sample(metrics.connections_opened.count());
  out.family("watchdog_http_connections_refused_total", "counter", "Closed: there were too many.")
      .sample(metrics.connections_refused.count());
  out.family("watchdog_streams", "gauge", "Event streams that are open.")
      .sample(metrics.streams_opened.count() - metrics.streams_closed.count());
  out.family("watchdog_streams_total", "counter", "Event streams begun.")
      .sample(metrics.streams_opened.count());
}

void tell_alerts(Exposition& out, const Metrics& metrics,
                 const std::vector<ChannelStatus>& channels, Instant now) {
  out.family("watchdog_alert_channels", "gauge", "Channels by which people are told.");
  Millis waited{};
  for (std::size_t at = 0; at < std::size(Names<ChannelCondition>::all); ++at) {
    const auto condition = static_cast<ChannelCondition>(at);
    out.sample(std::ranges::count(channels, condition, &ChannelStatus::condition),
               {{"state", name_of(condition)}});
  }
  for (const auto& channel : channels) {
    if (channel.unsent_since) waited = std::max(waited, now - *channel.unsent_since);
  }
  out.family("watchdog_alerts_total", "counter", "Alerts that were sent, or given up.")
      .sample(metrics.alerts_sent.count(), {{"state", "sent"}})
      .sample(metrics.alerts_given_up.count(), {{"state", "dead"}});
  out.family("watchdog_alert_oldest_unsent_seconds", "gauge", "How long the oldest waits.")
      .sample(seconds(waited));
}

void tell_program(Exposition& out, const Metrics& metrics) {
  out.family("watchdog_start_time_seconds", "gauge", "When the monitor started, in Unix time.")
      .sample(seconds(metrics.started.time_since_epoch()));
  out.family("watchdog_build_info", "gauge", "1; what it is stands in the labels.")
      .sample(std::int64_t{1}, {{"version", WATCHDOG_VERSION}, {"detector", detector_version}});
}

}  // namespace

void get_metrics(const CallPtr& call) {
  const auto* metrics = call->backend.metrics();
  const auto vitals = call->backend.vitals();
  if (metrics == nullptr || !vitals) {
    return call->reply(error_response(404, "not_found", "only a running monitor counts"));
  }
  Exposition out;
  tell_sessions(out, vitals->sessions);
  tell_work(out, *metrics);
  tell_store(out, *metrics, *vitals);
  tell_server(out, *metrics);
  tell_alerts(out, *metrics, call->backend.channels(), call->backend.now());
  tell_program(out, *metrics);
  call->reply({.body = out.take(), .content_type = std::string(Exposition::content_type)});
}

}  // namespace watchdog::monitor
