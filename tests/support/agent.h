/// \file
/// An agent that reports call by call, and judged on the way.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "codec/json.h"
#include "privacy/content.h"
#include "watchdog/health.h"
#include "watchdog/repetition.h"

namespace watchdog::test {

/// Reports are treated as by `Store::append`: marked, sealed, folded.
class Agent {
 public:
  explicit Agent(const Policy& policy = {}) {
    judged.session = 1;
    judged.policy.set(policy);
  }

  Agent& say(Report report, ReportOrigin by = ReportOrigin::unknown) {
    mark(report);
    seal(report, content);
    Event event{.seq = ++seq, .session = 1, .tick = now, .at = WallTime{now.time_since_epoch()}};
    if (auto* beats = std::get_if<Heartbeats>(&report.detail)) beats->first = beats->last = now;
    event.late = is_end(judged.history.lifecycle) && report.kind != ReportKind::start;
    event.report = std::move(report);
    event.origin = by;
    events.push_back(event);
    judged.fold(event, changes);
    return note();
  }

  Agent& from_monitor(Report report) { return say(std::move(report), ReportOrigin::monitor); }
  Agent& begin(const std::string& tool, const std::string& args, const std::string& id = {}) {
    ++calls;
    return say({.kind = ReportKind::tool_call, .name = tool, .content = args, .call_id = id});
  }
  Agent& done(const std::string& tool, const std::string& result, const std::string& id = {}) {
    return say({.kind = ReportKind::tool_result, .name = tool, .content = result, .call_id = id});
  }
  Agent& failed(const std::string& tool, const std::string& error, const std::string& id = {}) {
    return say({.kind = ReportKind::error, .name = tool, .content = error, .call_id = id});
  }
  /// A call and its result, a second later.
  Agent& call(const std::string& tool, const std::string& args, const std::string& result) {
    begin(tool, args).pass(Millis{1'000});
    return done(tool, result);
  }
  Agent& fail(const std::string& tool, const std::string& args, const std::string& error) {
    begin(tool, args).pass(Millis{1'000});
    return failed(tool, error);
  }
  Agent& state(const std::string& data, const std::string& type = "step") {
    return say({.kind = ReportKind::state_change, .name = type, .content = data});
  }
  Agent& message(const std::string& text, const std::string& role = "assistant") {
    return say({.kind = ReportKind::message, .name = role, .content = text});
  }
  Agent& kind(ReportKind kind, const std::string& name = {}) {
    return say({.kind = kind, .name = name});
  }
  Agent& opinion(Verdict verdict, std::optional<double> confidence, Seq known = 0,
                 const std::string& who = "model") {
    Report report{.kind = ReportKind::opinion, .name = who};
    report.detail = Opinion{.verdict = verdict, .confidence = confidence, .seen = known};
    return say(std::move(report));
  }
  Agent& beat(Source source, Counters counters = {}) {
    Report report;
    Heartbeats beats{.source = source};
    if (source == Source::loop) beats.iteration = beats.iteration_first = ++iteration;
    beats.counters = std::move(counters);
    report.detail = std::move(beats);
    return say(std::move(report));
  }
  Agent& loop() { return beat(Source::loop); }
  Agent& helper() { return beat(Source::sidecar); }
  Agent& pass(Millis time) {
    now += time;
    judged.expire(now, changes);
    return note();
  }

  [[nodiscard]] HealthKind health() const { return judged.health.kind; }
  [[nodiscard]] Pattern pattern() const { return judged.health.pattern; }
  [[nodiscard]] bool ever(HealthKind kind) const { return seen.contains(kind); }
  [[nodiscard]] bool ever_confirmed() const {
    return ever(HealthKind::stuck) || ever(HealthKind::looping);
  }
  [[nodiscard]] std::string story() const {
    std::string text;
    for (const auto& change : changes) {
      text += std::string(name_of(change.health.kind)) + "(" +
              std::string(name_of(change.health.pattern)) + ": " + change.reason + ") ";
    }
    return text;
  }

  Case judged;
  ContentLevel content = ContentLevel::preview;
  std::vector<Event> events;
  std::vector<Transition> changes;
  std::set<HealthKind> seen;
  Instant now{Millis{1'000'000'000}};
  Seq seq = 0;
  int calls = 0;
  std::int64_t iteration = 0;
  int confirmed_at = 0;  ///< Calls begun when it was first called stuck or looping.

 private:
  Agent& note() {
    seen.insert(judged.health.kind);
    for (const auto& change : changes) seen.insert(change.health.kind);
    if (confirmed_at == 0 && ever_confirmed()) confirmed_at = calls;
    return *this;
  }
};

/// Text of at least 200 characters, which says something: `topic` and nothing else varies.
inline std::string long_text(const std::string& topic) {
  return "Report about " + topic +
         ": the command was carried out as it was asked for, it read what it had to read, wrote "
         "what "
         "it had to write, and in the end everything that it was told to look at had been looked "
         "at "
         "once; the summary follows below and says for each part how it went: " +
         topic;
}

}  // namespace watchdog::test
