// All values come from memory, so a scrape is answered while the disk is not. Labels have only
// values of enums and fixed lists: no agent can multiply the series. Usual combinations are written
// at zero as well, because a series that appears with its first event does not show that event as a
// rise. Rare ones appear when they happen. Blocked sessions are split in two: those that wait for a
// person have another state.
#include <algorithm>

#include "api/exposition.h"
#include "api/routes.h"
#include "core/metrics.h"
#include "judge/attention.h"
#include "watchdog/health.h"
#include "watchdog/reasons.h"

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
void expose(Exposition& out, std::string_view name, std::string_view label, std::string_view help,
            const CounterOf<Enum>& counters) {
  out.family(name, "counter", help);
  for (std::size_t at = 0; at < std::size(Names<Enum>::all); ++at) {
    const auto value = each<Enum>(at);
    out.sample(counters[value].count(), {{label, name_of(value)}});
  }
}

void expose_histogram(Exposition& out, std::string_view name, std::string_view help,
                      const Histogram& histogram) {
  out.family(name, "histogram", help);
  std::int64_t count = 0;
  for (std::size_t at = 0; at < Histogram::bounds.size(); ++at) {
    Exposition bound;  // as the format has numbers
    bound.sample(Histogram::bounds[at]);
    const auto text = bound.finish();
    count += histogram.in_bucket(at);
    out.sample(count, {{"le", std::string_view(text).substr(1, text.size() - 2)}}, "_bucket");
  }
  count += histogram.in_bucket(Histogram::bounds.size());
  out.sample(count, {{"le", "+Inf"}}, "_bucket");
  out.sample(histogram.sum_seconds(), {}, "_sum").sample(count, {}, "_count");
}

void expose_sessions(Exposition& out, const Tally& tally) {
  out.family("watchdog_sessions", "gauge", "Sessions that have not ended.");
  for (std::size_t at = 0; at < tally.healths.size(); ++at) {
    const auto lifecycle = each<Lifecycle>(at);
    for (std::size_t to = 0; to < tally.healths[at].size(); ++to) {
      const auto health = each<HealthKind>(to);
      const auto sample = [&](std::int64_t count, std::string_view waits_for, bool settled) {
        const auto state = standing_of({.lifecycle = lifecycle,
                                        .health = health,
                                        .waits_for = waits_for,
                                        .settled = settled})
                               .state;
        out.sample(count, {{"lifecycle", name_of(lifecycle)},
                           {"health", name_of(health)},
                           {"state", name_of(state)}});
      };
      // Of those that wait it depends on what for, and of those at rest on what goes on.
      const bool waits = lifecycle == Lifecycle::waiting && health == HealthKind::blocked;
      const bool rests = lifecycle == Lifecycle::idle && health == HealthKind::idle;
      const auto ready = tally.states[static_cast<std::size_t>(SessionState::your_turn)];
      const auto others = waits ? tally.blocked_on_people : rests ? ready : 0;
      sample(tally.healths[at][to] - others, "", true);
      if (waits) sample(others, wait_reports::input, true);
      if (rests) sample(others, "", false);
    }
  }
}

void expose_ends(Exposition& out, const Metrics& metrics) {
  out.family("watchdog_sessions_ended_total", "counter",
             "Sessions that ended while this monitor ran. Reasons that are not the library's own "
             "count as other.");
  for (std::size_t at = 0; at < std::size(Names<OutcomeKind>::all); ++at) {
    const auto outcome = each<OutcomeKind>(at);
    for (std::size_t reason = 0; reason <= std::size(reasons::all); ++reason) {
      const auto count = metrics.ended[reason][outcome].count();
      // Prometheus sees the first event only if the counter existed before it. Only sessions that
      // end badly have many reasons.
      const bool is_bad = outcome == OutcomeKind::failed || outcome == OutcomeKind::incomplete;
      if (count == 0 && !is_bad && reason != std::size(reasons::all)) continue;
      const auto word = reason == std::size(reasons::all) ? "other" : reasons::all[reason];
      out.sample(count, {{"outcome", name_of(outcome)}, {"reason", word}});
    }
  }
}

void expose_work(Exposition& out, const Metrics& metrics) {
  expose(out, "watchdog_transitions_total", "health", "Changes of health, by the new health.",
         metrics.transitions);
  expose(out, "watchdog_events_total", "kind",
         "Events accepted from all writers; heartbeats count by the rows that hold them.",
         metrics.events);
  expose(out, "watchdog_waits_total", "for", "Waits that agents declared, by their subject.",
         metrics.waits);
  out.family("watchdog_heartbeats_total", "counter", "Heartbeats accepted.")
      .sample(metrics.heartbeats.count());
  out.family("watchdog_late_events_total", "counter",
             "Events that came after the end of their session.")
      .sample(metrics.late.count());
  out.family("watchdog_duplicate_events_total", "counter", "Events that were stored already.")
      .sample(metrics.duplicates.count());
  out.family("watchdog_checks_total", "counter", "Questions to a model, by result.");
  for (const auto verdict :
       {Verdict::progressing, Verdict::looping, Verdict::blocked, Verdict::failed})
    out.sample(metrics.verdicts[verdict].count(), {{"result", name_of(verdict)}});
  for (const auto state : {CheckState::inconclusive, CheckState::failed, CheckState::superseded})
    out.sample(metrics.unanswered[state].count(), {{"result", name_of(state)}});
}

void expose_store(Exposition& out, const Metrics& metrics, const Vitals& vitals) {
  out.family("watchdog_store_up", "gauge", "1 if reports can be stored.")
      .sample(std::int64_t{vitals.keeps ? 1 : 0});
  out.family("watchdog_store_look_age_seconds", "gauge",
             "Seconds since the last pass of the storage thread; about 1 in normal operation.")
      .sample(seconds(vitals.since_look));
  out.family("watchdog_oldest_due_seconds", "gauge",
             "Seconds by which the oldest due evaluation is late.")
      .sample(seconds(vitals.overdue));
  out.family("watchdog_retention_waiting", "gauge",
             "1 if retention by age waits, because the clock and the database differ.")
      .sample(std::int64_t{vitals.retention_waits ? 1 : 0});
  out.family("watchdog_store_size_bytes", "gauge", "Size of the database file.")
      .sample(vitals.file_bytes);
  out.family("watchdog_store_wal_bytes", "gauge", "Size of the write-ahead log.")
      .sample(vitals.log_bytes);
  const auto shares = vitals.shares.value_or(Vitals::Shares{});
  out.family("watchdog_shards", "gauge", "Parts of all sessions, of 256, that this monitor judges.")
      .sample(std::int64_t{shares.shards});
  out.family("watchdog_monitors", "gauge", "Monitors on the same database, this one included.")
      .sample(std::int64_t{shares.monitors});
  out.family("watchdog_lease_age_seconds", "gauge",
             "Seconds since this monitor renewed its leases; at most about 5 in normal operation.")
      .sample(seconds(shares.since_renewal));
  out.family("watchdog_lease_late", "gauge",
             "1 if the leases were not renewed in time, or have ended: others may judge.")
      .sample(std::int64_t{lease_state(shares.since_renewal) == LeaseState::held ? 0 : 1});
  out.family("watchdog_step_downs_total", "counter",
             "How often this monitor's leases ended before it renewed them.")
      .sample(shares.step_downs);
  out.family("watchdog_queue_bytes", "gauge", "Bytes of reports that wait for the disk.")
      .sample(vitals.queue_bytes);
  expose_histogram(out, "watchdog_commit_seconds",
                   "Seconds from receiving reports to having them on disk.", metrics.commit);
}

void expose_server(Exposition& out, const Metrics& metrics) {
  out.family("watchdog_http_requests_total", "counter", "Requests answered.");
  for (std::size_t group = 0; group < metrics.requests.size(); ++group) {
    for (std::size_t status = 0; status < std::size(Names<StatusClass>::all); ++status) {
      const auto code = each<StatusClass>(status);
      const auto count = metrics.requests[group][code].count();
      if (count == 0 && code != StatusClass::success && code != StatusClass::server) continue;
      out.sample(count, {{"group", name_of(each<RouteGroup>(group))}, {"code", name_of(code)}});
    }
  }
  out.family("watchdog_http_connections", "gauge", "Open connections.")
      .sample(metrics.connections_opened.count() - metrics.connections_closed.count());
  out.family("watchdog_http_connections_total", "counter", "Connections accepted.")
      .sample(metrics.connections_opened.count());
  out.family("watchdog_http_connections_refused_total", "counter",
             "Connections closed because there were too many.")
      .sample(metrics.connections_refused.count());
  out.family("watchdog_streams", "gauge", "Open event streams.")
      .sample(metrics.streams_opened.count() - metrics.streams_closed.count());
  out.family("watchdog_streams_total", "counter", "Event streams begun.")
      .sample(metrics.streams_opened.count());
}

void expose_alerts(Exposition& out, const Metrics& metrics,
                   const std::vector<ChannelStatus>& channels, Instant now) {
  out.family("watchdog_alert_channels", "gauge", "Alert channels, by state.");
  Millis waited{};
  for (std::size_t at = 0; at < std::size(Names<ChannelCondition>::all); ++at) {
    const auto condition = static_cast<ChannelCondition>(at);
    out.sample(std::ranges::count(channels, condition, &ChannelStatus::condition),
               {{"state", name_of(condition)}});
  }
  for (const auto& channel : channels) {
    if (channel.unsent_since) waited = std::max(waited, now - *channel.unsent_since);
  }
  out.family("watchdog_alerts_total", "counter", "Alerts sent, or abandoned.")
      .sample(metrics.alerts_sent.count(), {{"state", "sent"}})
      .sample(metrics.alerts_given_up.count(), {{"state", "dead"}});
  out.family("watchdog_alert_oldest_unsent_seconds", "gauge",
             "Seconds that the oldest unsent alert has been waiting.")
      .sample(seconds(waited));
}

void expose_export(Exposition& out, const Metrics& metrics) {
  out.family("watchdog_export_items_total", "counter",
             "Spans and log records for a collector of OpenTelemetry: sent, or dropped because it "
             "refused them or the queue was full.")
      .sample(metrics.export_sent.count(), {{"state", "sent"}})
      .sample(metrics.export_dropped.count(), {{"state", "dropped"}});
}

void expose_program(Exposition& out, const Metrics& metrics) {
  out.family("watchdog_start_time_seconds", "gauge", "When the monitor started, in Unix time.")
      .sample(seconds(metrics.started.time_since_epoch()));
  out.family("watchdog_build_info", "gauge", "Always 1; the labels name the version.")
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
  expose_sessions(out, vitals->sessions);
  expose_ends(out, *metrics);
  expose_work(out, *metrics);
  expose_store(out, *metrics, *vitals);
  expose_server(out, *metrics);
  expose_alerts(out, *metrics, call->backend.channels(), call->backend.now());
  expose_export(out, *metrics);
  expose_program(out, *metrics);
  call->reply({.body = out.finish(), .content_type = std::string(Exposition::content_type)});
}

}  // namespace watchdog::monitor
