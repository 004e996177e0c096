// Folds one event into the summary of its session. `apply` switches over the event's kind. Each
// case updates counters, the lifecycle, open calls and turns, pace and repetition, and nothing
// else: `judge` draws the conclusions. Ticks come from the store, so the fold has no clock.
#include "watchdog/history.h"

#include <algorithm>

#include "facts/agent_tools.h"
#include "facts/digest.h"
#include "facts/shell_command.h"
#include "judge/denied_call.h"
#include "judge/loose_ends.h"
#include "judge/open_asks.h"
#include "judge/process_proof.h"
#include "judge/session_words.h"
#include "judge/source_note.h"
#include "judge/worked.h"
#include "privacy/content.h"

namespace watchdog {
namespace {

constexpr std::size_t kept_name_bytes = 64;
constexpr std::size_t turn_id_chars = 256;
constexpr int turn_depth_max = 1'000;
constexpr std::size_t why_chars_max = 200;
/// An agent that looks again sooner does not wait.
constexpr Millis hurry_max{2'000};

/// No deadline and no announcement is longer than a week.
Millis bounded(Millis time) {
  return std::clamp(time, Millis{0}, Millis{604'800'000});  // a week
}

std::int32_t added(std::int32_t count, std::int64_t more) {
  return static_cast<std::int32_t>(std::min<std::int64_t>(count + more, INT32_MAX));
}

/// Anything but heartbeats that shows the agent at work again ends a declared wait; age never does.
void resume(History& history, Instant now) {
  if (is_end(history.lifecycle)) return;
  end_pause(history, now);
  history.lifecycle = Lifecycle::running;
  if (history.notes->wait_seq != 0) {
    history.notes.edit().wait_seq = 0;
    history.notes.edit().wait_call = 0;
    history.notes.edit().wait_iteration.reset();
    history.notes.edit().wait_until.reset();
    history.notes.edit().wait_provider.clear();
    history.notes.edit().asks = {};
  }
  if (!history.notes->idle_why.empty()) history.notes.edit().idle_why.clear();
}

/// Ends a wait or a rest, unless another call waits or the report is of a turn that is over.
void resume_by_call(History& history, const Event& event) {
  const bool is_over = history.lifecycle == Lifecycle::idle && is_older_than_hooks(history, event);
  if (!is_over && !waits_for_call(history)) resume(history, event.tick);
}

void count_change(History& history, const Event& event, std::string_view type) {
  ++history.state_changes;
  history.loop_beats_since_change = 0;
  history.streak_seq = 0;
  history.change_seq = event.seq;
  history.last_change = event.tick;
  history.last_change_type = first_characters(type, kept_name_bytes);
}

/// Earlier suspicions and judgements no longer count.
void clear_doubts(History& history) {
  if (history.notes->opinions.seq != 0) history.notes.edit().opinions = {};
  if (history.notes->suspicion.further != 0) history.notes.edit().suspicion.further = 0;
}

/// After the repetition took something: whether it was new, or one more round of the old.
void note_novelty(History& history) {
  if (history.repetition->novel) {
    clear_doubts(history);
  } else if (history.repetition->stepped && history.notes->suspicion.seq != 0) {
    ++history.notes.edit().suspicion.further;
  }
}

/// The open call that a report is about; the end where none is.
std::vector<OpenCall>::iterator find_call(std::vector<OpenCall>& calls, const Report& report) {
  auto found = calls.end();
  const auto call_id = first_characters(report.call_id, kept_name_bytes);
  const auto name = first_characters(report.name, kept_name_bytes);
  if (!call_id.empty()) {
    found = std::find_if(calls.begin(), calls.end(),
                         [&](const OpenCall& call) { return call.call_id == call_id; });
  }
  if (found == calls.end()) {
    found = std::find_if(calls.begin(), calls.end(), [&](const OpenCall& call) {
      return call.name == name && (call.call_id.empty() || call_id.empty());
    });
  }
  if (found == calls.end() && calls.size() == 1 &&
      (calls.front().call_id.empty() || call_id.empty())) {
    found = calls.begin();
  }
  return found;
}

/// Takes the call that a result belongs to out of the open ones.
std::optional<OpenCall> close_call(History& history, const Report& result) {
  if (history.open_calls->empty()) return std::nullopt;
  auto& calls = history.open_calls.edit();
  const auto found = find_call(calls, result);
  if (found == calls.end()) return std::nullopt;
  OpenCall closed = std::move(*found);
  calls.erase(found);
  for (auto& older : calls) {
    if (older.seq < closed.seq && older.passed < OpenCall::passed_max) ++older.passed;
  }
  return closed;
}

void forget_turns(History& history) {
  if (history.notes->turns.has()) history.notes.edit().turns = {};
}

/// No request is open any more.
void forget_server(History& history) {
  if (history.notes->server.has()) history.notes.edit().server = {};
  if (history.notes->relay_at != Instant{}) history.notes.edit().relay_at = {};
}

/// Forgets calls that will get no result any more.
template <class Which>
void drop_calls(History& history, Seq seq, const Policy& policy, Which&& which) {
  if (history.open_calls->empty()) return;
  std::erase_if(history.open_calls.edit(), [&](const OpenCall& call) {
    if (!which(call)) return false;
    history.repetition.edit().drop_call(call.mark, seq, policy);
    return true;
  });
}

std::vector<OpenTurn>::iterator find_turn(std::vector<OpenTurn>& turns, std::string_view id) {
  return std::find_if(turns.begin(), turns.end(),
                      [&](const OpenTurn& turn) { return turn.id == id; });
}

/// Does something to an open turn; nothing where there is none of that id.
template <class Work>
void with_turn(History& history, std::string_view id, Work&& work) {
  if (history.notes->turns->empty()) return;
  auto& turns = history.notes.edit().turns.edit();
  const auto found = find_turn(turns, first_characters(id, turn_id_chars));
  if (found != turns.end()) work(turns, found);
}

void open_call(History& history, const Event& event, const Policy& policy) {
  const Report& report = event.report;
  resume_by_call(history, event);
  with_turn(history, report.turn, [](auto&, auto turn) { ++turn->calls; });
  if (history.open_calls->size() == open_calls_max) {
    const Seq oldest = history.open_calls->front().seq;
    drop_calls(history, event.seq, policy,
               [&](const OpenCall& call) { return call.seq == oldest; });
  }
  history.open_calls.edit().push_back(
      {.name = first_characters(report.name, kept_name_bytes),
       .call_id = first_characters(report.call_id, kept_name_bytes),
       .seq = event.seq,
       .since = event.tick,
       .iteration = history.iteration,
       .mark = history.repetition.edit().begin_call(report, event.seq, policy)});
  auto command = purpose_of_tool(report.name) == ToolPurpose::command ? command_in(report.content)
                                                                      : std::string();
  if (report.turn.empty() && !report.deadline && command.empty()) return;
  auto& notes = history.open_calls.edit().back().notes.edit();
  notes.command = std::move(command);
  notes.turn = first_characters(report.turn, turn_id_chars);
  notes.deadline = bounded(report.deadline.value_or(Millis{0}));
}

/// Something moves, as if a counter rose.
void note_movement(History& history, Instant at) {
  history.loop_beats_since_rise = 0;
  history.last_rise = at;
}

/// A running call got further: it is quiet no longer, and its deadline counts from now.
void fold_progress(History& history, const Event& event) {
  const auto* progress = std::get_if<ToolProgress>(&event.report.detail);
  if (progress == nullptr || history.open_calls->empty()) return;
  auto& calls = history.open_calls.edit();
  const auto call = find_call(calls, event.report);
  if (call == calls.end()) return;
  auto& notes = call->notes.edit();
  if (event.origin == ReportOrigin::monitor) {
    notes.seen = first_characters(event.report.content, why_chars_max);
    if (notes.seen.empty()) note_movement(history, event.tick);
    return;
  }
  notes.said = first_characters(event.report.content, kept_name_bytes);
  const auto accepted = std::min(progress->accepted, budget_max);
  if (accepted <= notes.accepted) return;
  notes.accepted = accepted;
  note_movement(history, event.tick);
}

void fold_turn(History& history, const Event& event, const Policy& policy) {
  const Report& report = event.report;
  if (report.name == turn_reports::turn_start) {
    resume(history, event.tick);
    const auto id = first_characters(report.call_id, turn_id_chars);
    if (id.empty() || find_turn(history, id) != nullptr) return;
    auto& turns = history.notes.edit().turns.edit();
    if (turns.size() == open_turns_max) turns.erase(turns.begin());
    OpenTurn turn{.id = std::string(id), .since = event.tick, .at = event.at};
    if (const auto* facts = std::get_if<TurnFacts>(&report.detail)) {
      turn.parent = first_characters(facts->parent, turn_id_chars);
      turn.depth = std::clamp(facts->depth, 0, turn_depth_max);
    }
    turns.push_back(std::move(turn));
  } else if (report.name == turn_reports::turn_abort) {
    with_turn(history, report.call_id, [](auto&, auto turn) { turn->aborting = true; });
  } else if (report.name == turn_reports::turn_end) {
    with_turn(history, report.call_id, [&](auto& turns, auto turn) {
      // Results of its calls will not be reported.
      drop_calls(history, event.seq, policy,
                 [&](const OpenCall& call) { return call.notes->turn == turn->id; });
      turns.erase(turn);
    });
    if (history.notes->turns->empty() && history.notes->turns.has()) forget_turns(history);
  }
}

void finish_call(History& history, const Event& event, const Policy& policy) {
  const auto call = close_call(history, event.report);
  if (is_refused(event)) {
    if (call) history.repetition.edit().drop_call(call->mark, event.seq, policy);
    return;
  }
  // A late result of an interrupted call is not work.
  if (!call && history.lifecycle == Lifecycle::idle &&
      history.notes->idle_why == idle_reports::interrupted)
    return;
  const std::string_view name = call ? std::string_view(call->name) : event.report.name;
  note_call(history, event.report, name);
  auto& repetition = history.repetition.edit();
  // An owner who says that a tool polls knows its pace.
  repetition.is_hurried = event.tick - repetition.finished_at < hurry_max &&
                          policy.tools.find(std::string(name)) == policy.tools.end();
  repetition.finished_at = event.tick;
  const bool timed_out = event.report.kind == ReportKind::tool_timeout;
  const bool known_timeout =
      timed_out && !repetition.add_timeout(call ? call->mark : unknown_call(event.report.name));
  if (call) {
    if (const auto took = worked_in(history, *call, event.tick))
      history.pace.edit().add(Pace::kind_of_tool(call->name), *took);
  }
  if (is_denied(history, event.report)) {
    repetition.stepped = repetition.novel = false;
  } else if (call) {
    repetition.finish_call(call->mark, event.report, event.seq, policy);
  } else {
    repetition.fold_result(event.report, event.seq, policy);
  }
  if (repetition.stepped) repetition.tool = first_characters(name, kept_name_bytes);
  note_novelty(history);
  resume_by_call(history, event);
  if (known_timeout) return;  // the same timeout again is not progress
  count_change(history, event, "tool_call");
  history.pace_from = event.tick;
}

void change_state(History& history, const Event& event, const Policy& policy) {
  if (const auto took = worked_since_pace(history, event.tick))
    history.pace.edit().add(Pace::kind_of_phase(history.phase), *took);
  if (const auto* marks = std::get_if<Marks>(&event.report.detail)) {
    history.repetition.edit().fold_state(*marks, event.seq, policy);
    note_novelty(history);
  } else {
    if (history.repetition.has()) history.repetition.edit().fold_bare_state(event.seq, policy);
    clear_doubts(history);
  }
  count_change(history, event, event.report.name);
  resume(history, event.tick);
  history.pace_from = event.tick;
}

/// Ends a wait for the model server, for room on it, or for permission to use it.
void resume_from_backend(History& history, Instant now) {
  const auto& what = history.notes->waiting_for;
  const bool asks = what == backend || what == wait_reports::login || what == wait_reports::quota ||
                    what == wait_reports::overload;
  if (history.lifecycle == Lifecycle::waiting && asks) resume(history, now);
}

void fold_evidence(History& history, const Event& event) {
  const auto* said = std::get_if<Evidence>(&event.report.detail);
  if (said == nullptr) return;
  const auto evidence = bounded(*said);
  const auto request = first_characters(event.report.call_id, kept_name_bytes);
  const auto& known = *history.notes->server;
  const auto named = [&](const ServerNote& note) { return note.request == request; };
  const auto found = std::find_if(known.begin(), known.end(), named);
  const auto before = found == known.end() ? Evidence{} : found->evidence;
  const bool moved =
      is_busy(evidence.state) && (evidence.state != before.state || evidence.done > before.done);
  // It was busy until now: its quiet time begins here.
  if (moved || is_busy(before.state)) note_movement(history, event.tick);
  // `unknown`: of the server nothing is known but that it takes requests again.
  if (moved || evidence.state == ServerState::unknown) resume_from_backend(history, event.tick);
  if (history.notes->relay_at != Instant{}) history.notes.edit().relay_at = event.tick;

  if (evidence.state == ServerState::over) {
    if (found == known.end()) return;
    std::erase_if(history.notes.edit().server.edit(), named);
    if (history.notes->server->empty()) history.notes.edit().server = {};
    return;
  }
  const auto since =
      found != known.end() && evidence.state == before.state ? found->since : event.tick;
  auto& requests = history.notes.edit().server.edit();
  auto note = std::find_if(requests.begin(), requests.end(), named);
  if (note == requests.end()) {
    if (requests.size() == server_notes_max) {
      requests.erase(std::min_element(requests.begin(), requests.end(),
                                      [](auto& a, auto& b) { return a.seq < b.seq; }));
    }
    note = requests.insert(requests.end(), {.request = std::string(request)});
  }
  note->evidence = evidence;
  note->why = first_characters(event.report.content, why_chars_max);
  note->seq = event.seq;
  note->since = since;
}

/// True if a wait ends only by what others do, whatever its agent says of being at rest.
bool outlasts_a_reminder(const History& history) {
  return history.lifecycle == Lifecycle::waiting &&
         history.notes->waiting_for != wait_reports::retry;
}

/// The turn is done. Said again, the first reason stays.
void claim_idle(History& history, const Event& event, const Policy& policy) {
  const Report& report = event.report;
  if (report.name == idle_reports::reminder && outlasts_a_reminder(history)) return;
  // It rests in truth: the newest stop was not refused.
  if (report.name == idle_reports::reminder && history.repetition.has())
    history.repetition.edit().turns.stops = {};
  const bool was_idle = history.lifecycle == Lifecycle::idle;
  const bool is_relayed = report.name == idle_reports::relayed;
  // The proxy's own reason for a rest; an agent's texts are left out of alerts.
  const bool gives_reason = is_relayed && event.origin == ReportOrigin::proxy &&
                            !report.content.empty() && !is_early_end(report.content);
  // It does not see a call that only the agent's hooks report.
  if (gives_reason && history.lifecycle == Lifecycle::running && !history.open_calls->empty())
    return;
  if (!was_idle) resume(history, event.tick);
  history.lifecycle = Lifecycle::idle;
  if (gives_reason && !was_idle)
    history.notes.edit().idle_why =
        report.name + ": " + std::string(first_characters(report.content, why_chars_max));
  if (is_relayed) return;
  drop_calls(history, event.seq, policy, [](const OpenCall&) { return true; });
  const bool failed = report.name == idle_reports::failed;
  if (failed) history.repetition.edit().fold_failed_turn(report.content, event.seq);
  const bool goes_on = report.name == idle_reports::goes_on;
  if (!failed && !goes_on && report.name != idle_reports::interrupted) return;
  auto why = report.name;
  if ((failed || goes_on) && !report.content.empty()) why += ": " + report.content;
  history.notes.edit().idle_why = first_characters(why, why_chars_max);
}

void fold_cancel(History& history, const Event& event, const CancelRequest& request) {
  if (request.turn.empty()) {
    auto& notes = history.notes.edit();
    notes.cancel = request;
    notes.cancel->at = event.at;
  } else if (request.call.empty()) {
    with_turn(history, request.turn, [](auto&, auto turn) { turn->aborting = true; });
  }
}

void fold_opinion(History& history, const Event& event, const Opinion& opinion) {
  if (opinion.state != CheckState::done) return;
  if (opinion.seen != 0 && is_outdated(history, opinion.seen)) return;
  auto& opinions = history.notes.edit().opinions;
  opinions.seq = event.seq;
  if (event.report.name == "self") {
    opinions.self = opinion.verdict == Verdict::looping || opinion.verdict == Verdict::failed;
    return;
  }
  opinions.newest = opinion.verdict;
  const bool sure = opinion.confidence.value_or(0) >= 0.9;
  // Said surely, it counts as said twice.
  const auto weight = sure ? 2 : 1;
  if (opinion.verdict == Verdict::progressing && sure) opinions.looping = opinions.blocked = 0;
  if (opinion.verdict == Verdict::looping) opinions.looping = added(opinions.looping, weight);
  if (opinion.verdict == Verdict::blocked) opinions.blocked = added(opinions.blocked, weight);
}

void fold_beats(History& history, const Event& event, const Heartbeats& beats,
                const Policy& policy) {
  const auto loops = loop_beats_in(history, beats);
  const bool relayed = beats.source == Source::relay;
  const auto periodic = relayed ? 0 : beats.count - loops;
  if (relayed) {
    auto& heard = history.notes.edit().relay_at;
    heard = std::max(heard, beats.last);
  }

  learn_gaps(history, beats, periodic);
  history.heartbeats += beats.count;
  history.last_beat = std::max(history.last_beat, beats.last);
  history.loop_beats_since_rise = added(history.loop_beats_since_rise, loops);
  if (rises(*history.counters, beats.counters)) {
    history.loop_beats_since_rise = added(0, std::min(loops, beats.quiet));
    history.last_rise = beats.last;
    resume_from_backend(history, event.tick);
  }
  if (!beats.counters.empty()) history.counters.edit() = beats.counters;

  if (loops > 0) {
    if (history.loop_beats_since_change == 0) history.streak_seq = event.seq;
    history.loop_beats_since_change = added(history.loop_beats_since_change, loops);
    if (history.notes->suspicion.seq != 0) history.notes.edit().suspicion.further += loops;
    if (beats.iteration) {
      const auto overtaken = [&](const std::optional<std::int64_t>& iteration) {
        return iteration && *beats.iteration > *iteration;
      };
      drop_calls(history, event.seq, policy,
                 [&](const OpenCall& call) { return overtaken(call.iteration); });
      if (history.lifecycle == Lifecycle::waiting && overtaken(history.notes->wait_iteration))
        resume(history, event.tick);
    }
  }

  if (relayed) {  // it knows less of where the agent is than the agent itself
    if (!beats.phase.empty() && !history.gives_position) history.phase = beats.phase;
    return;
  }
  history.gives_position |= beats.iteration.has_value() || !beats.phase.empty();
  if (beats.iteration) history.iteration = beats.iteration;
  if (!beats.phase.empty()) history.phase = beats.phase;
}

void note_absence(std::vector<Absence>& absences, const Absence& newest) {
  absences.push_back(newest);
  if (absences.size() <= absences_max) return;
  absences[1].gap = absences[1].back - (absences[0].back - absences[0].gap);
  absences.erase(absences.begin());
}

void fold_process(History& history, const ProcessFacts& process) {
  history.pid = static_cast<std::int32_t>(process.pid);
  history.start_ticks = process.start_ticks;
  history.machine = machine_of(process);
}

/// Another process of the session goes on, and must be found first.
void lose_process(History& history, Instant when) {
  history.pid = 0;
  auto& notes = history.notes.edit();
  notes.process_found = false;
  notes.process_lost = when;
}

void fold_start(History& history, const Event& event, const Policy& policy) {
  const auto* process = process_started(history, event);
  const bool found =
      process != nullptr && event.report.name == found_process && is_proven(*process, event.origin);
  if (found && !is_end(history.lifecycle) && history.notes->exited_seq == 0) {
    // It has been running all the time; only now it is known.
    fold_process(history, *process);
    history.notes.edit().process_found = true;
    return;
  }
  if (is_end(history.lifecycle)) {
    History next;
    next.attempt = history.attempt + 1;
    next.absences = history.absences;
    next.sources = std::move(history.sources);
    next.notes.edit().process_lost = event.tick;
    if (history.notes->words.has()) next.notes.edit().words = history.notes->words;
    history = std::move(next);
  }
  // Calls of the session's previous process ended with it.
  drop_calls(history, event.seq, policy, [](const OpenCall&) { return true; });
  forget_turns(history);
  forget_server(history);
  resume(history, event.tick);
  history.pace_from = event.tick;
  forget_gap(history);
  if (history.notes->process_found) lose_process(history, event.tick);
  if (process != nullptr) {
    fold_process(history, *process);
    if (found) history.notes.edit().process_found = true;
  }
  history.last_sign = event.tick;
  history.sign_seq = event.seq;
}

/// The end of a turn whose process is gone, and what follows from children, is what others write.
bool said_by_agent(const History& history, const Event& event) {
  const Report& report = event.report;
  switch (report.kind) {
    case ReportKind::message:
    case ReportKind::tool_progress:
      return event.origin != ReportOrigin::monitor;
    case ReportKind::turn:
      return history.notes->exited_seq == 0 || report.name != turn_reports::turn_end;
    case ReportKind::wait:
      return report.name != wait_reports::children;
    case ReportKind::idle:
      return report.name != idle_reports::children;
    case ReportKind::start:
    case ReportKind::policy:
    case ReportKind::cancel:
    case ReportKind::exited:
    case ReportKind::observer:
    case ReportKind::opinion:
    case ReportKind::limit:
    case ReportKind::evidence:
      return false;
    default:
      return true;
  }
}

void fold_wait(History& history, const Event& event) {
  const Report& report = event.report;
  const auto call = call_waited_for(history, report);
  auto& notes = history.notes.edit();
  if (history.lifecycle != Lifecycle::waiting) notes.asks = {};
  begin_pause(history, event.tick);
  history.lifecycle = Lifecycle::waiting;
  notes.idle_why.clear();
  notes.wait_iteration = history.iteration;
  begin_wait(notes, event, call);
}

void fold_resume(History& history, const Event& event) {
  const auto& why = event.report.name;
  if (why == resume_reports::stop_refused) history.repetition.edit().fold_refused_stop(event.seq);
  if (why == resume_reports::stop_refused || why == resume_reports::woken)
    return resume(history, event.tick);
  if (history.lifecycle != Lifecycle::waiting) return;
  const auto& of = event.report.call_id;
  if (!of.empty() && !answer_ask(history.notes.edit(), of)) return;
  if (event.report.name.empty() || history.notes->waiting_for == event.report.name)
    resume(history, event.tick);
}

void fold_user_input(History& history, const Event& event) {
  history.loop_beats_since_change = 0;
  history.streak_seq = 0;
  resume(history, event.tick);
  history.pace_from = event.tick;
  if (history.repetition.has()) history.repetition.edit().fold_user_input(event.seq);
  clear_doubts(history);
}

void fold_exit(History& history, const Event& event) {
  const auto* gone = std::get_if<ProcessFacts>(&event.report.detail);
  // Another process may have taken the session up meanwhile.
  if (gone != nullptr && (gone->pid != history.pid || gone->start_ticks != history.start_ticks))
    return;
  history.notes.edit().exited_seq = event.seq;
}

void fold_budget(History& history, const Event& event) {
  // With a call's id it is about a child, whose own history has it.
  const auto* figures = std::get_if<BudgetFigures>(&event.report.detail);
  if (figures == nullptr || !event.report.call_id.empty()) return;
  history.notes.edit().budget.edit() = {.figures = bounded(*figures), .at = event.at};
}

void fold_end(History& history, const Event& event, const Outcome& outcome) {
  history.lifecycle = lifecycle_of(outcome.kind);
  history.open_calls = {};
  forget_turns(history);
  forget_server(history);
  auto& notes = history.notes.edit();
  notes.outcome = outcome;
  notes.outcome_at = event.at;
  const auto& repetition = *history.repetition;
  if (repetition.alarm.pattern != Pattern::none) notes.wasted_calls = repetition.loop.count;
}

void fold_by_kind(History& history, const Event& event, const Policy& policy) {
  const Report& report = event.report;
  switch (report.kind) {
    case ReportKind::start:
      return fold_start(history, event, policy);
    case ReportKind::heartbeat:
      if (const auto* beats = std::get_if<Heartbeats>(&report.detail))
        fold_beats(history, event, *beats, policy);
      return;
    case ReportKind::state_change:
      return change_state(history, event, policy);
    case ReportKind::tool_call:
      return open_call(history, event, policy);
    case ReportKind::tool_result:
    case ReportKind::error:
    case ReportKind::tool_timeout:
      return finish_call(history, event, policy);
    case ReportKind::tool_progress:
      return fold_progress(history, event);
    case ReportKind::turn:
      return fold_turn(history, event, policy);
    case ReportKind::wait:
      return fold_wait(history, event);
    case ReportKind::idle:
      return claim_idle(history, event, policy);
    case ReportKind::user_input:
      return fold_user_input(history, event);
    case ReportKind::cancel:
      if (const auto* request = std::get_if<CancelRequest>(&report.detail))
        fold_cancel(history, event, *request);
      return;
    case ReportKind::exited:
      return fold_exit(history, event);
    case ReportKind::observer:
      if (const auto* absence = std::get_if<ObserverGap>(&report.detail))
        note_absence(history.absences.edit(), {.back = event.tick, .gap = absence->gap});
      return;
    case ReportKind::end:
      if (const auto* outcome = std::get_if<Outcome>(&report.detail))
        fold_end(history, event, *outcome);
      return;
    case ReportKind::message:
      return history.repetition.edit().fold_message(report.name, std::get_if<Marks>(&report.detail),
                                                    event.seq, policy);
    case ReportKind::text_repetition:
      return history.repetition.edit().fold_text_repetition(event.seq);
    case ReportKind::compaction:
      return history.repetition.edit().fold_compaction(event.seq);
    case ReportKind::retry:
      if (history.repetition.has()) history.repetition.edit().fold_retry(report.name, event.seq);
      return;
    case ReportKind::opinion:
      if (const auto* opinion = std::get_if<Opinion>(&report.detail))
        fold_opinion(history, event, *opinion);
      return;
    case ReportKind::budget:
      return fold_budget(history, event);
    case ReportKind::evidence:
      return fold_evidence(history, event);
    case ReportKind::resume:
      return fold_resume(history, event);
    case ReportKind::policy:
    case ReportKind::gap:
    case ReportKind::limit:
      return;
  }
}

}  // namespace

std::int64_t loop_beats_in(const History& before, const Heartbeats& beats) noexcept {
  if (beats.source == Source::loop) return beats.count;
  if (beats.source == Source::sidecar || beats.source == Source::relay) return 0;
  // Without a position it says only that the process is alive.
  if (!beats.iteration && beats.phase.empty()) return 0;
  const bool first_is_new = (!beats.phase.empty() && beats.phase != before.phase) ||
                            (beats.iteration_first && beats.iteration_first != before.iteration);
  return (first_is_new ? 1 : 0) + beats.fresh;
}

void apply(History& history, const Event& event, const Policy& policy) {
  if (history.pace_from == Instant{}) history.pace_from = event.tick;
  if (!event.late) {
    fold_words(history, event.report);
    fold_loose_ends(history, event);
    fold_by_kind(history, event, policy);
    if (event.session != observer_key) note_source(history, event);
    const bool is_sign = said_by_agent(history, event);
    if (is_sign) {
      history.said_something = true;
      // A row may be older than what was stored before it.
      const auto before = history.last_sign;
      history.last_sign = event.tick;
      history.sign_seq = event.seq;
      if (const auto* beats = std::get_if<Heartbeats>(&event.report.detail))
        history.last_sign = std::max(before, beats->last);
      if (event.report.expect_quiet) {
        history.notes.edit().quiet_until = event.tick + bounded(*event.report.expect_quiet);
      }
    }
    if ((is_sign || event.report.kind == ReportKind::start) && history.notes->exited_seq != 0) {
      history.notes.edit().exited_seq = 0;
      if (is_sign && history.notes->process_found) lose_process(history, event.tick);
    }
  }
  if (event.session != observer_key) history.seq = event.seq;
  history.tick = event.tick;
  history.at = event.at;
}

}  // namespace watchdog
