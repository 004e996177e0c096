// A hook's event takes four steps: read it, look for the agent's process, store the reports,
// answer. The process is looked for while the client waits, because an open connection is what
// leads to it. Only a process that began before the session, or before the loss of its last
// process, counts: a later one was started for this hook. The receipt says whether the session is
// cancelled, and the answer then stops the agent; else a rule of the owner may have an answer.
// Subagents seldom report their end, so it follows from their parent's.
#include <algorithm>
#include <utility>

#include "api/held_hook.h"
#include "api/recovery.h"
#include "api/routes.h"
#include "codec/json.h"
#include "facts/hook_hold.h"
#include "facts/ids.h"
#include "ingest/hook_answer.h"
#include "ingest/hook_question.h"
#include "process/process_sample.h"
#include "process/process_user.h"
#include "text/nearest.h"
#include "watchdog/reasons.h"

namespace watchdog::monitor {
namespace {

Response response_of(HookAnswer answer) {
  return {.body = std::move(answer.body)};
}

/// Answers an event of a cancelled session, and stores what follows from the answer.
void answer_cancelled(const CallPtr& call, const HookEvent& event, HookAnswer answer,
                      const CancelRequest& cancel, bool is_over) {
  auto reports = is_over ? std::vector<Report>{} : reports_after(answer, event, cancel);
  if (reports.empty()) return call->reply(response_of(std::move(answer)));
  // The agent must stop, whether or not that can be stored.
  call->backend.append({.session = event.session,
                        .creation = Creation::refuse,
                        .reports = std::move(reports),
                        .by = ReportOrigin::hooks},
                       [call, answer = std::move(answer)](const Result<Receipt>&) {
                         call->reply(response_of(answer));
                       });
}

/// Ends the subagents of a session that was interrupted or ended. They seldom report that.
void end_subagents(const CallPtr& call, const std::string& session) {
  constexpr std::string_view parent = "parent";
  constexpr std::size_t subagents_max = 100;
  const auto children = call->backend.children(session, subagents_max);
  if (!children) return;
  for (const auto& child : *children) {
    if (!child.id.starts_with(session + ":")) continue;
    const bool rests = child.judged.history.lifecycle == Lifecycle::idle;
    Report end;
    end.kind = ReportKind::end;
    end.detail = rests ? Outcome{.kind = OutcomeKind::completed,
                                 .reason = std::string(reasons::task_complete),
                                 .error = {},
                                 .stated = false}
                       : Outcome{.kind = OutcomeKind::cancelled,
                                 .reason = std::string(reasons::cancelled),
                                 .error = {},
                                 .subject = std::string(parent)};
    call->backend.append({.session = child.id,
                          .creation = Creation::refuse,
                          .reports = {std::move(end)},
                          .by = ReportOrigin::hooks},
                         [call](const Result<Receipt>&) {});
  }
}

/// True for a session that began a moment ago by a hook, and of which nothing more is known.
/// A program that reports may begin an older one again, so the health alone does not show it.
bool is_unused(const Watched& watched) {
  const auto& history = watched.judged.history;
  const bool is_fresh = system_clock().wall() - watched.created <= FreshStarts::fresh_for;
  return is_fresh && history.attempt == 1 && !history.said_something &&
         watched.judged.health.kind == HealthKind::unknown &&
         std::all_of(history.sources.begin(), history.sources.end(), [](const SourceNote& note) {
           return note.origin == ReportOrigin::hooks || note.origin == ReportOrigin::monitor;
         });
}

/// Erases sessions that an agent began and never used.
void erase_unused(const CallPtr& call, std::vector<std::string> sessions) {
  std::erase_if(sessions, [&](const std::string& session) {
    const auto watched = call->backend.watched(session);
    return !watched || !is_unused(*watched);
  });
  if (!sessions.empty())
    call->backend.erase({.sessions = std::move(sessions), .running_too = true},
                        [](const Result<std::vector<std::string>>&) {});
}

/// Names the call for which the agent asks permission, where the event only describes it.
void name_asked_call(HookEvent& event, const std::optional<Watched>& watched, bool is_exact) {
  if (!event.asks_for || !watched) return;
  auto& asked = *event.asks_for;
  mark(asked);
  const auto& policy = *watched->judged.policy;
  const auto wanted = Repetition().begin_call(asked, 0, policy);
  const OpenCall* found = nullptr;
  for (const auto& open : *watched->judged.history.open_calls) {
    if (open.call_id.empty() || open.mark.tool != wanted.tool) continue;
    const bool same = open.mark.call == wanted.call;
    if (found == nullptr || same || found->mark.call != wanted.call) found = &open;
  }
  if (found == nullptr) return;
  // An answer for a person must concern the very call.
  if (is_exact && found->mark.call != wanted.call) return;
  event.reports.front().call_id = found->call_id.str();
}

/// Claude Code notifies 6 to 7 s after its dialog opens, also if that was answered meanwhile.
constexpr Millis notice_late{20'000};

/// A notice repeats in fewer words what the agent asks, and the first words stay. While an allowed
/// call runs, a notice of Claude Code begins no wait: each of its questions has a hook of its own
/// besides. Other agents have nothing but the notice.
void keep_question(HookEvent& event, const std::optional<Watched>& watched, HookAgent agent,
                   Instant now) {
  if (event.name != "Notification" || !watched) return;
  const auto& history = watched->judged.history;
  const auto& notes = *history.notes;
  for (auto& report : event.reports) {
    if (report.kind != ReportKind::wait || notes.waiting_for != report.name) continue;
    if (history.lifecycle == Lifecycle::waiting) {
      if (!notes.wait_why.empty()) report.content = notes.wait_why;
    } else if (agent == HookAgent::claude_code && history.lifecycle == Lifecycle::running &&
               !history.open_calls->empty() && now - notes.wait_since < notice_late) {
      report.kind = ReportKind::message;
      report.name = "notification";
    }
  }
}

/// Restarts a session whose agent goes on after its end was reported: a subagent that makes another
/// call, or an agent of its own that gets another prompt. Copilot CLI reports an end after each
/// turn, and a command in the background that ends wakes it again.
void begin_again(const CallPtr& call, const HookEvent& event, bool is_subagent) {
  const auto& said = event.reports;
  // A turn that Codex' `notify` reports late has a prompt too, but it is over.
  const bool goes_on =
      is_subagent ? std::ranges::find(said, ReportKind::tool_call, &Report::kind) != said.end()
                  : said.size() == 1 && (said.front().kind == ReportKind::user_input ||
                                         said.front().name == resume_reports::woken);
  if (!goes_on) return;
  std::vector<Report> reports(1);
  reports[0].kind = ReportKind::start;
  reports[0].detail = ProcessFacts{};
  // The prompt came too late for the former attempt, and begins the next one.
  if (!is_subagent) reports.push_back(said.front());
  reports.back().event_id.clear();
  call->backend.append({.session = event.session,
                        .creation = Creation::refuse,
                        .reports = std::move(reports),
                        .by = ReportOrigin::hooks},
                       [call](const Result<Receipt>&) {});
}

/// The reports of one hook, on their way into the store.
struct HookReport {
  HookAgent agent;
  HookEvent event;
  std::vector<Report> reports;  ///< Those of the event, and which process it is.
  bool is_own = true;           ///< The session is the agent's own, and nobody else ends it.
  Millis held_for{};            ///< How long a person's answer is waited for; 0: it is not.
  std::optional<HookQuestion> asked{};  ///< The question, if it is held.
  std::string command{};                ///< Of the call that the event ends; empty: unknown.
};

/// The wait of a question's event.
const Report* wait_of(const HookEvent& event) {
  const auto found = std::ranges::find(event.reports, ReportKind::wait, &Report::kind);
  return found == event.reports.end() ? nullptr : &*found;
}

/// The command of the open call that the event is about; empty: it is unknown.
std::string command_of(const HookEvent& event, const std::optional<Watched>& watched) {
  if (!watched || event.reports.empty()) return {};
  const auto& ended = event.reports.front();
  const OpenCall* found = nullptr;
  for (const auto& open : *watched->judged.history.open_calls) {
    const bool is_it =
        ended.call_id.empty() ? open.name == ended.name : open.call_id == ended.call_id;
    if (!is_it) continue;
    // Gemini CLI names no call, so of two equal tools nobody knows which one ended.
    if (found != nullptr) return {};
    found = &open;
  }
  return found == nullptr ? std::string() : std::string(found->notes->command);
}

/// Answers an event of a session that nobody cancelled, as the rules say.
void answer_by_rules(const CallPtr& call, HookAgent agent, RecoveryEvent what) {
  recover(call, agent, what, [call, agent, event = what.event](const RecoveryOutcome& outcome) {
    auto answer = hook_answer(agent, event.name, outcome.act);
    if (!outcome.cancel) return call->reply(response_of(std::move(answer)));
    answer_cancelled(call, event, std::move(answer), *outcome.cancel, false);
  });
}

void store(const CallPtr& call, HookReport hook) {
  const bool is_subagent = !hook.event.spec.parent.empty();
  Batch batch{.session = hook.event.session,
              .creation = Creation::attach,
              .spec = std::move(hook.event.spec),
              .reports = std::move(hook.reports),
              .by = ReportOrigin::hooks};
  call->backend.append(
      std::move(batch),
      [call, is_subagent, is_own = hook.is_own, agent = hook.agent, event = std::move(hook.event),
       asked = std::move(hook.asked), held_for = hook.held_for,
       command = std::move(hook.command)](const Result<Receipt>& receipt) {
        if (!receipt) return call->reply(error_response(receipt.error()));
        if (event.ends_subagents && call->backend.is_shared()) {
          call->backend.read(
              [call, session = event.session](StoreReader&) { end_subagents(call, session); },
              [](const Error&) {});
        } else if (event.ends_subagents) {
          end_subagents(call, event.session);
        }
        const auto& cancel = receipt->directive.cancel;
        if (receipt->late > 0 && (is_subagent || is_own) && !cancel)
          begin_again(call, event, is_subagent);
        if (const auto* wait = wait_of(event); wait != nullptr && asked && !cancel)
          return hold_hook(call, *asked, *wait, held_for);
        if (cancel) {
          auto answer = hook_answer(agent, event.name, *cancel);
          return answer_cancelled(call, event, std::move(answer), *cancel, receipt->late > 0);
        }
        if (receipt->late > 0) return call->reply(response_of({}));
        // The agent's transcript may have shown the event first, and nobody reads an answer there.
        const bool is_known = receipt->accepted == 0;
        answer_by_rules(call, agent, {.event = event, .command = command, .is_known = is_known});
      });
}

/// True if the session's process is not known, or is another one than its agent says.
bool wants_process(const Call& call, const std::optional<Watched>& watched, pid_t claimed) {
  if (!watched || !is_loopback(call.request.peer)) return false;
  const auto& history = watched->judged.history;
  if (is_end(history.lifecycle)) return false;
  const bool known = history.pid > 0 && history.notes->exited_seq == 0;
  return !known || (claimed > 0 && history.pid != claimed);
}

/// Returns the agent of a hook: its sender, or, for a command that the agent runs, the process that
/// the command names as its parent. An agent runs before its session begins, or goes on in another
/// process. A process that started after `began` (since boot) was started for a single hook: its
/// end is not the agent's.
std::optional<ServerProcess> agent_behind(const Request& request, pid_t claimed, Millis began) {
  constexpr Millis margin{30};  // three ticks of the clock that processes are stamped by
  static SocketOwners owners;   // of the machine, as its processes are
  auto process = owners.find(
      {.peer = request.peer, .peer_port = request.peer_port, .own_port = request.own_port});
  if (!process) return std::nullopt;
  if (claimed > 0) {
    if (!comes_from(process->pid, claimed) || !acts_as(process->pid, claimed)) return std::nullopt;
    process = process_now(claimed);
  }
  if (!process || started_at(*process) + margin >= began) return std::nullopt;
  return process;
}

/// Returns the session that the hook names; empty: it names none. Nobody reads the answer to a
/// hook, so a name with a blank must not cost the report. Clients make the same id of such a name.
std::string named_session(const Call& call) {
  auto named = call.target.text("session");
  return as_session_id(named.empty() ? call.request.session : std::move(named));
}

}  // namespace

void post_hook(const CallPtr& call) {
  const auto claimed = call->target.number("pid", 0, 0, INT32_MAX);
  if (!claimed) return call->reply(error_response(claimed.error()));
  const auto agent = named<HookAgent>(call->id);
  if (!agent) {
    return call->reply(error_response(
        {ErrorCode::not_found, unknown_word("agent", call->id, all_names<HookAgent>()), "agent"}));
  }
  const auto named = named_session(*call);
  const auto hold = call->target.number("hold", 0, 0, hold_seconds_max);
  if (!hold) return call->reply(error_response(hold.error()));
  auto event = hook_event(*agent, call->request.body, named, system_clock().wall(),
                          call->target.text("event"));
  std::optional<HookQuestion> asked;
  if (event && *hold > 0) {
    asked = hook_question(*agent, event->name, call->request.body);
    if (asked) asked->question.session = event->session;
  }
  call->request.body = {};
  if (!event) return call->reply(error_response(event.error()));
  if (event->reports.empty()) return call->reply(response_of({}));
  const bool is_here = is_loopback(call->request.peer) || call->request.peer.empty();
  if (!is_here)
    event->spec.labels["process"] = "unknown: its hooks come from " + call->request.peer;
  // A program that names the session reports it by itself.
  if (is_here && named.empty() && !event->transcript.empty() && call->note_transcript)
    call->note_transcript(event->transcript);
  if (named.empty()) erase_unused(call, call->fresh_starts.note(*event, system_clock().wall()));
  const auto watched = call->backend.watched(event->session);
  name_asked_call(*event, watched, asked.has_value());
  keep_question(*event, watched, *agent, call->backend.now());
  auto command = command_of(*event, watched);
  HookReport hook{.agent = *agent,
                  .event = std::move(*event),
                  .reports = {},
                  .is_own = named.empty(),
                  .held_for = Millis{*hold * 1'000},
                  .asked = std::move(asked),
                  .command = std::move(command)};
  hook.reports = hook.event.reports;
  const auto pid = static_cast<pid_t>(*claimed);
  const auto& reports = hook.reports;
  const bool begins = std::ranges::any_of(
      reports, [](const Report& report) { return report.kind == ReportKind::start; });
  // A new session's process is not known to be the agent before the next event.
  if (begins || !wants_process(*call, watched, pid)) return store(call, std::move(hook));
  const auto shared = std::make_shared<HookReport>(std::move(hook));
  const auto lost = watched->judged.history.notes->process_lost;
  const auto age =
      lost == Instant{} ? system_clock().wall() - watched->created : call->backend.now() - lost;
  const auto began = system_clock().since_boot() - age;
  // Reads /proc, while the client waits for its answer and so still runs.
  call->backend.read(
      [call, shared, pid, began](StoreReader&) {
        if (const auto process = agent_behind(call->request, pid, began)) {
          Report found;
          found.kind = ReportKind::start;
          found.name = found_process;
          found.detail = facts_of(*process);
          shared->reports.insert(shared->reports.begin(), std::move(found));
        }
        store(call, std::move(*shared));
      },
      [call, shared](const Error&) { store(call, std::move(*shared)); });
}

}  // namespace watchdog::monitor
