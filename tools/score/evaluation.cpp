// Folds a trace's lines in memory, as a store and an observer would, and lets the rules of peers
// look at the same lines. A rule's first alarm is kept with the calls that had begun by then.
// Results are paired with calls by id, by name, or with the newest call.
#include "score/evaluation.h"

#include <algorithm>
#include <functional>

#include "codec/json.h"
#include "facts/role.h"
#include "watchdog/repetition.h"

namespace watchdog::monitor {
namespace {

/// Ticks of a store are never zero.
constexpr Instant begin{Millis{1'000'000}};

/// The report as the event that a store would have made of it.
Event event_of(Report report, Seq seq, Instant now, bool late) {
  mark(report);
  if (auto* beats = std::get_if<Heartbeats>(&report.detail)) beats->first = beats->last = now;
  return {.seq = seq,
          .session = 1,
          .prev = seq - 1,
          .tick = now,
          .at = WallTime{now.time_since_epoch()},
          .late = late,
          .report = std::move(report)};
}

/// Returns whether the detector counts the call, whose result it has just taken, as a repetition.
bool repeats(const Case& judged) {
  return judged.history.repetition->echo;
}

/// The source's digest is of the whole content; the text may be cut.
std::string identity_of(const Report& report) {
  return report.hash.empty() ? "text " + report.content : "hash " + report.hash;
}

}  // namespace

Evaluation::Evaluation(const Policy& policy) : now_(begin) {
  judged_.session = 1;
  judged_.policy.set(policy);
}

void Evaluation::move_to(std::optional<std::int64_t> ts_ms) {
  if (!ts_ms) return;
  if (last_ms_ && *ts_ms > *last_ms_) now_ += Millis{*ts_ms - *last_ms_};
  last_ms_ = std::max(last_ms_.value_or(*ts_ms), *ts_ms);
}

void Evaluation::fold(TraceLine line) {
  if (!line.report.event_id.empty() && !seen_ids_.insert(line.report.event_id).second) return;
  move_to(line.report.ts_ms);
  const auto kind = line.report.kind;
  if (kind == ReportKind::start) ended_ = false;
  const bool late = ended_;
  if (kind == ReportKind::end) ended_ = true;

  ++findings_.events;
  if (kind == ReportKind::tool_call) ++findings_.calls;
  const Notice here{
      .seq = line.seq, .calls = findings_.calls, .at_end = kind == ReportKind::end && !late};
  const auto answered = compare(line);

  std::vector<Transition> changes;
  judged_.fold(event_of(std::move(line.report), findings_.events, now_, late), changes);
  note(changes, here);
  if (answered && repeats(judged_)) {
    findings_.steps[*answered].repeated.set(place_of(Rule::detector));
  }
  before_ = here;
}

/// Has the peers look at the line; the step that got its result.
std::optional<std::size_t> Evaluation::compare(const TraceLine& line) {
  const Report& report = line.report;
  if (report.kind == ReportKind::tool_call) {
    const auto step = findings_.steps.size();
    auto identity = report.name + '\n' + identity_of(report);
    findings_.steps.push_back(
        {.seq = line.seq, .call = std::hash<std::string>{}(identity), .repeated = {}});
    note(peers_.started(identity), step, line.seq);
    if (open_.size() == open_calls_max) open_.erase(open_.begin());
    open_.push_back({step, report.name, report.call_id, std::move(identity)});
    return {};
  }
  if (report.kind == ReportKind::message || report.kind == ReportKind::user_input) {
    const bool by_agent = report.kind == ReportKind::message &&
                          speaker_of(report.name) == Speaker::agent && !report.content.empty();
    note(peers_.said(by_agent), line.seq);
  }
  if (report.kind != ReportKind::tool_result && !is_failure(report.kind)) return {};
  auto call = close_call(report);
  if (!call) return {};
  note(peers_.finished({.tool = std::move(call->name),
                        .call = std::move(call->identity),
                        .result = identity_of(report),
                        .failed = is_failure(report.kind)}),
       call->step, line.seq);
  return call->step;
}

/// Returns the call of a result: by id, else by name, else the newest, because some sources name a
/// result after its sender, and leave some calls without one.
std::optional<Evaluation::OpenCall> Evaluation::close_call(const Report& result) {
  const auto unpaired = [&](const OpenCall& call) {
    return call.call_id.empty() || result.call_id.empty();
  };
  auto found = open_.end();
  if (!result.call_id.empty()) {
    found = std::find_if(open_.begin(), open_.end(),
                         [&](const OpenCall& call) { return call.call_id == result.call_id; });
  }
  if (found == open_.end()) {
    found = std::find_if(open_.begin(), open_.end(), [&](const OpenCall& call) {
      return call.name == result.name && unpaired(call);
    });
  }
  if (found == open_.end() && !open_.empty() && unpaired(open_.back())) found = open_.end() - 1;
  if (found == open_.end()) return {};
  auto call = std::move(*found);
  open_.erase(found);
  return call;
}

void Evaluation::note(RuleSet holding, std::size_t step, std::int64_t seq) {
  findings_.steps[step].repeated |= holding;
  note(holding, seq);
}

void Evaluation::note(RuleSet holding, std::int64_t seq) {
  for (const auto rule : rules) {
    auto& alarm = findings_.by_rule.at(place_of(rule)).alarm;
    if (holding[place_of(rule)] && !alarm) alarm = Notice{.seq = seq, .calls = findings_.calls};
  }
}

void Evaluation::note(const std::vector<Transition>& changes, const Notice& here) {
  auto& finding = findings_.by_rule.at(place_of(Rule::detector));
  for (const auto& change : changes) {
    const auto kind = change.health.kind;
    const bool alarming = kind == HealthKind::stuck || kind == HealthKind::looping;
    auto& first = alarming ? finding.alarm : finding.suspicion;
    if (first || (!alarming && kind != HealthKind::suspect)) continue;
    // A transition that expired before the event was known after the previous one.
    first = change.seq == findings_.events ? here : before_;
    first->at_end = here.at_end;
    first->pattern = change.health.pattern;
  }
}

}  // namespace watchdog::monitor
