/// \file
/// The counters of a running monitor.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string_view>

#include "observer/observer.h"
#include "watchdog/reasons.h"

namespace watchdog {
namespace monitor {

/// Only rises. Thread-safe.
class Counter {
 public:
  void add(std::int64_t more = 1) noexcept { count_.fetch_add(more, std::memory_order_relaxed); }
  [[nodiscard]] std::int64_t count() const noexcept {
    return count_.load(std::memory_order_relaxed);
  }

 private:
  std::atomic<std::int64_t> count_{0};
};

/// One for each enumerator. Thread-safe.
template <class Enum>
class CounterOf {
 public:
  Counter& operator[](Enum value) noexcept { return counters_[static_cast<std::size_t>(value)]; }
  const Counter& operator[](Enum value) const noexcept {
    return counters_[static_cast<std::size_t>(value)];
  }

 private:
  std::array<Counter, std::size(Names<Enum>::all)> counters_;
};

/// Durations. Thread-safe.
class Histogram {
 public:
  /// Of the buckets, in seconds; there is one more for what took longer.
  static constexpr std::array bounds{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                     0.1,   0.25,   0.5,   1.0,  2.5,   5.0};

  void observe(std::chrono::nanoseconds took) noexcept;
  [[nodiscard]] std::int64_t in_bucket(std::size_t at) const noexcept {
    return buckets_[at].count();
  }
  [[nodiscard]] double sum_seconds() const noexcept;

 private:
  std::array<Counter, bounds.size() + 1> buckets_;
  Counter nanoseconds_;
};

/// Groups of routes, by their paths.
enum class RouteGroup : std::uint8_t {
  progress,
  sessions,
  events,
  turns,
  checks,
  streams,
  alerts,
  access,
  health,
  metrics,
  page,
  telemetry
};

[[nodiscard]] RouteGroup group_of(std::string_view target) noexcept;

/// `1xx` … `5xx`
enum class StatusClass : std::uint8_t { informational, success, redirection, client, server };

}  // namespace monitor

template <>
struct Names<monitor::RouteGroup> {
  static constexpr std::string_view all[] = {"progress", "sessions", "events", "turns",
                                             "checks",   "streams",  "alerts", "access",
                                             "health",   "metrics",  "page",   "telemetry"};
};
template <>
struct Names<monitor::StatusClass> {
  static constexpr std::string_view all[] = {"1xx", "2xx", "3xx", "4xx", "5xx"};
};

namespace monitor {

/// The subjects of waits; all others are `other`.
enum class WaitSubject : std::uint8_t {
  approval,
  input,
  login,
  billing,
  quota,
  overload,
  backend,
  retry,
  children,
  other
};

}  // namespace monitor

template <>
struct Names<monitor::WaitSubject> {
  static constexpr std::string_view all[] = {"approval", "input",   "login", "billing",  "quota",
                                             "overload", "backend", "retry", "children", "other"};
};

namespace monitor {

/// Counters since the start of the monitor. The code that does something counts it; thread-safe.
struct Metrics {
  const WallTime started = system_clock().wall();
  CounterOf<ReportKind> events;  ///< Accepted, from any writer; heartbeats by rows.
  Counter heartbeats;
  CounterOf<WaitSubject> waits;
  Counter late;
  Counter duplicates;  ///< Of those that came over HTTP.
  /// By reason, the last for all that are not in reasons::all.
  std::array<CounterOf<OutcomeKind>, std::size(reasons::all) + 1> ended;
  CounterOf<HealthKind> transitions;
  CounterOf<Verdict> verdicts;       ///< Of checks that were answered.
  CounterOf<CheckState> unanswered;  ///< Checks that ended without an opinion.
  Histogram commit;
  std::array<CounterOf<StatusClass>, std::size(Names<RouteGroup>::all)> requests;
  Counter connections_opened, connections_closed, connections_refused;
  Counter streams_opened, streams_closed;

  Counter alerts_sent, alerts_given_up;
  Counter export_sent, export_dropped;

  void count_request(RouteGroup group, int status) noexcept;
  void count_event(const Event& event) noexcept;
};

/// The present state. A plain value.
struct Vitals {
  /// Of a database on a server; a file has one monitor, which judges all.
  struct Shares {
    int shards = 256;    ///< Whose sessions this monitor judges.
    std::string held{};  ///< Which ones, for people.
    int monitors = 1;    ///< On the same database, this one included.
    Millis since_renewal{};
    std::int64_t step_downs = 0;  ///< How often its leases ended before it renewed them.
  };
  std::optional<Shares> shares{};
  Tally sessions{};              ///< Those that have not ended.
  bool keeps = true;             ///< Reports can be stored.
  bool retention_waits = false;  ///< Nothing is dropped by its age: the clocks differ.
  std::int64_t file_bytes = 0;
  std::int64_t log_bytes = 0;    ///< Of the -wal file.
  std::int64_t queue_bytes = 0;  ///< Of reports that wait for the disk.
  Millis overdue{};              ///< Delay of the judgement that is due the longest.
  Millis since_look{};           ///< Since the store thread came round the last time.
};

}  // namespace monitor
}  // namespace watchdog
