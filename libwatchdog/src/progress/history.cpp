#include "watchdog/history.h"

#include <algorithm>

#include "base/digest.h"
#include "watchdog/content.h"

namespace watchdog {

void GapWindow::add(Millis gap, std::int64_t count) {
  const auto ms = static_cast<std::int32_t>(std::min<std::int64_t>(gap.count(), INT32_MAX));
  const auto put = [&] { buckets[at] = std::max(buckets[at], ms); };
  put();
  const std::int64_t total = filled + count;
  for (auto turns = std::min<std::int64_t>(total / per_bucket, bucket_count); turns > 0; --turns) {
    at = static_cast<std::uint8_t>((at + 1U) % bucket_count);
    buckets[at] = 0;
  }
  filled = static_cast<std::uint8_t>(total % per_bucket);
  if (count > 1) put();  // where in the row the gap was is not known: assume its end
}

Millis GapWindow::longest() const noexcept {
  return Millis{*std::max_element(buckets.begin(), buckets.end())};
}

namespace {

/// Anything but heartbeats that shows the agent at work again ends a declared wait; age never does.
void resume(History& history) {
  if (is_end(history.lifecycle)) return;
  history.lifecycle = Lifecycle::running;
  if (history.notes->wait_seq != 0) history.notes.edit().wait_seq = 0;
}

void count_change(History& history, const Event& event, std::string_view type) {
  ++history.state_changes;
  history.loop_beats_since_change = 0;
  history.streak_seq = 0;
  history.change_seq = event.seq;
  history.last_change = event.tick;
  history.last_change_type = first_characters(type, 64);
  resume(history);
}

void close_call(History& history, const Report& result) {
  if (history.open_calls->empty()) return;
  auto& calls = history.open_calls.edit();
  auto found = calls.end();
  if (!result.call_id.empty()) {
    found = std::find_if(calls.begin(), calls.end(),
                         [&](const OpenCall& call) { return call.call_id == result.call_id; });
  }
  if (found == calls.end()) {
    found = std::find_if(calls.begin(), calls.end(), [&](const OpenCall& call) {
      return call.name == result.name && (call.call_id.empty() || result.call_id.empty());
    });
  }
  if (found == calls.end() && calls.size() == 1 &&
      (calls.front().call_id.empty() || result.call_id.empty())) {
    found = calls.begin();
  }
  if (found != calls.end()) calls.erase(found);
}

void take_beats(History& history, const Event& event, const Beats& beats) {
  const auto loops = loop_beats_in(history, beats);
  const auto periodic = beats.count - loops;

  if (periodic > 0) {
    if (history.periodic_beats > 0) history.gaps.add(beats.first - history.last_periodic, 1);
    if (beats.count > 1) history.gaps.add(beats.max_gap, beats.count - 1);
    history.periodic_beats =
        static_cast<std::uint8_t>(std::min<std::int64_t>(history.periodic_beats + periodic, 2));
    history.last_periodic = beats.last;
  }

  history.heartbeats += beats.count;
  history.last_beat = std::max(history.last_beat, beats.last);
  history.loop_beats_since_rise += loops;
  if (rises(*history.counters, beats.counters)) {
    history.loop_beats_since_rise = std::min(loops, beats.quiet);
    history.last_rise = beats.last;
  }
  if (!beats.counters.empty()) history.counters.edit() = beats.counters;

  if (loops > 0) {
    if (history.loop_beats_since_change == 0) history.streak_seq = event.seq;
    history.loop_beats_since_change += loops;
    if (beats.iteration) {
      const auto overtaken = [&](const std::optional<std::int64_t>& iteration) {
        return iteration && *beats.iteration > *iteration;
      };
      if (!history.open_calls->empty()) {
        std::erase_if(history.open_calls.edit(),
                      [&](const OpenCall& call) { return overtaken(call.iteration); });
      }
      if (overtaken(history.notes->wait_iteration)) resume(history);
    }
  }

  history.gives_position |= beats.iteration.has_value() || !beats.phase.empty();
  if (beats.iteration) history.iteration = beats.iteration;
  if (!beats.phase.empty()) history.phase = beats.phase;
}

void take_up(History& history, const Event& event, const ProcessFacts* process) {
  if (is_end(history.lifecycle)) {
    History next;
    next.attempt = history.attempt + 1;
    next.observer_back = history.observer_back;
    next.observer_gap = history.observer_gap;
    history = std::move(next);
  }
  // What another process of this session had open died with it.
  history.open_calls = {};
  resume(history);
  if (process != nullptr && process->pid > 0) {
    history.pid = process->pid;
    history.start_ticks = process->start_ticks;
    history.machine = machine_of(*process);
  }
  history.last_sign = event.tick;
  history.sign_seq = event.seq;
}

bool said_by_agent(ReportKind kind) {
  switch (kind) {
    case ReportKind::start:
    case ReportKind::policy:
    case ReportKind::cancel:
    case ReportKind::exited:
    case ReportKind::observer:
      return false;
    default:
      return true;
  }
}

void take_by_kind(History& history, const Event& event) {
  const Report& report = event.report;
  switch (report.kind) {
    case ReportKind::start:
      take_up(history, event, std::get_if<ProcessFacts>(&report.detail));
      break;
    case ReportKind::heartbeat:
      if (const auto* beats = std::get_if<Beats>(&report.detail)) {
        take_beats(history, event, *beats);
      }
      break;
    case ReportKind::state_change:
      count_change(history, event, report.name);
      break;
    case ReportKind::tool_call:
      resume(history);
      if (history.open_calls->size() == open_calls_max) {
        history.open_calls.edit().erase(history.open_calls->begin());
      }
      history.open_calls.edit().push_back({.name = report.name,
                                           .call_id = report.call_id,
                                           .seq = event.seq,
                                           .since = event.tick,
                                           .iteration = history.iteration,
                                           .deadline = report.deadline.value_or(Millis{0})});
      break;
    case ReportKind::tool_result:
    case ReportKind::error:
      close_call(history, report);
      count_change(history, event, "tool_call");
      break;
    case ReportKind::wait: {
      history.lifecycle = Lifecycle::waiting;
      auto& notes = history.notes.edit();
      notes.waiting_for = first_characters(report.name, 64);
      notes.wait_seq = event.seq;
      notes.wait_since = event.tick;
      notes.wait_iteration = history.iteration;
      break;
    }
    case ReportKind::idle:
      resume(history);
      history.lifecycle = Lifecycle::idle;
      break;
    case ReportKind::user_input:
      history.loop_beats_since_change = 0;
      history.streak_seq = 0;
      resume(history);
      break;
    case ReportKind::cancel:
      if (const auto* request = std::get_if<CancelRequest>(&report.detail)) {
        auto& notes = history.notes.edit();
        notes.cancel = *request;
        notes.cancel->at = event.at;
      }
      break;
    case ReportKind::exited:
      // Another process may have taken the session up meanwhile.
      if (const auto* gone = std::get_if<ProcessFacts>(&report.detail);
          gone == nullptr ||
          (gone->pid == history.pid && gone->start_ticks == history.start_ticks)) {
        history.exited_seq = event.seq;
      }
      break;
    case ReportKind::observer:
      if (const auto* absence = std::get_if<ObserverGap>(&report.detail)) {
        history.observer_back = event.tick;
        history.observer_gap = absence->gap;
      }
      break;
    case ReportKind::end:
      if (const auto* outcome = std::get_if<Outcome>(&report.detail)) {
        history.lifecycle = lifecycle_of(outcome->kind);
        history.open_calls = {};
        auto& notes = history.notes.edit();
        notes.outcome = *outcome;
        notes.outcome_at = event.at;
      }
      break;
    case ReportKind::message:
    case ReportKind::compaction:
    case ReportKind::policy:
    case ReportKind::gap:
      break;
  }
}

}  // namespace

std::int64_t loop_beats_in(const History& before, const Beats& beats) noexcept {
  if (beats.source == Source::loop) return beats.count;
  if (beats.source == Source::sidecar) return 0;
  if (!before.gives_position && !beats.iteration && beats.phase.empty()) return beats.count;
  const bool first_is_new = (!beats.phase.empty() && beats.phase != before.phase) ||
                            (beats.iteration_first && beats.iteration_first != before.iteration);
  return (first_is_new ? 1 : 0) + beats.fresh;
}

std::uint64_t machine_of(const ProcessFacts& process) {
  return digest_of(process.boot_id + '\n' + process.host);
}

void apply(History& history, const Event& event) {
  if (!event.late) {
    take_by_kind(history, event);
    if (said_by_agent(event.report.kind)) {
      history.said_something = true;
      // A row may be older than what was stored before it.
      const auto before = history.last_sign;
      history.last_sign = event.tick;
      history.sign_seq = event.seq;
      if (const auto* beats = std::get_if<Beats>(&event.report.detail)) {
        history.last_sign = std::max(before, beats->last);
      }
      history.exited_seq = 0;
    } else if (event.report.kind == ReportKind::start) {
      history.exited_seq = 0;
    }
  }
  if (event.session != observer_key) history.seq = event.seq;
  history.tick = event.tick;
  history.at = event.at;
}

}  // namespace watchdog
