// An act is claimed before it is done: a message of the monitor with an id made of the rule, the
// verdict and the act's number. The store takes an id once in each session, from any monitor, so no
// act is repeated after a crash. The end of a denied call, or the request to stop, is in the same
// batch. Then comes the entry of the audit log, then the answer. A message of the role of hooks
// says nothing about the agent, so the judge does not see the act.
#include "api/recovery.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "api/routes.h"
#include "core/recovery_act.h"
#include "core/session_label.h"
#include "facts/agent_tools.h"
#include "files/open_file.h"
#include "store/place.h"
#include "store/server.h"

namespace watchdog::monitor {
namespace {

/// Above this some are forgotten: the store then says what was done.
constexpr std::size_t remembered_max = 10'000;
/// Acts of all rules for one verdict that a restart may have to find out.
constexpr int tries_max = 200;

/// One event of a hook on its way through the rules.
struct Attempt {
  CallPtr call;
  HookAgent agent;
  HookEvent event;
  std::string command;
  bool is_known;
  std::function<void(RecoveryOutcome)> done;
  int tries = 0;
};
using AttemptPtr = std::shared_ptr<Attempt>;

/// The call of the event, if it is a call that has not run yet.
const OpenCall* call_of(const HookEvent& event, const History& history) {
  const auto said = std::ranges::find(event.reports, ReportKind::tool_call, &Report::kind);
  if (said == event.reports.end()) return nullptr;
  const auto& calls = *history.open_calls;
  const auto found = std::find_if(calls.rbegin(), calls.rend(), [&](const OpenCall& open) {
    return said->call_id.empty() ? open.name == said->name : open.call_id == said->call_id;
  });
  if (found != calls.rend()) return &*found;
  // The proxy saw the call first, and knows its tool by another name.
  return said->call_id.empty() && calls.size() == 1 ? &calls.front() : nullptr;
}

RecoveryFacts facts_of(const Attempt& attempt, const Watched& watched, const OpenCall* open) {
  const auto& judged = watched.judged;
  const auto& history = judged.history;
  const auto& recovery = attempt.call->recovery;
  const auto acts = recovery.acts(attempt.event.session, judged.health.evidence[0]);
  const auto reach = [&](RecoveryStep step) {
    const HookAct act(step, "x");
    return RecoveryFacts::Reach{
        .now = hook_answer(attempt.agent, attempt.event.name, act).body != HookAnswer{}.body,
        .ever = takes(attempt.agent, step)};
  };
  RecoveryFacts facts{.is_paused = recovery.is_paused(),
                      .health = judged.health,
                      .lifecycle = history.lifecycle,
                      .is_cancelled = history.notes->cancel.has_value(),
                      .is_server_unwell = is_server_unwell(history),
                      .agent = watched.description->agent,
                      .labels = labels_of(*watched.description),
                      .acted_at = acts.at,
                      .acts = acts.by_rule,
                      .draw = draw_of(attempt.event.session, acts.verdict),
                      .off = recovery.off(),
                      .nudge = reach(RecoveryStep::nudge),
                      .refuse = reach(RecoveryStep::refuse)};
  const auto& repetition = *history.repetition;
  facts.is_identical_call = open != nullptr && is_identical_call(repetition, open->mark);
  facts.repeated_at = newest_repeat(repetition);
  return facts;
}

/// The claim, and what belongs to the act. `open`: the call that a refusal is about.
std::vector<Report> reports_for(const PlannedAct& act, const OpenCall* open) {
  std::vector<Report> reports{claim_of(act)};
  if (!act.does_something()) return reports;
  if (act.decision.step == RecoveryStep::refuse) {
    auto& denied = reports.emplace_back();
    denied.kind = ReportKind::error;
    // Not every hook names the call, but another source may have.
    denied.name = open->name.str();
    denied.call_id = open->call_id.str();
    denied.content = std::string(denied_call) + " " + act.fact;
    denied.event_id = std::string(denied_call) + act.id();
  }
  if (act.decision.step == RecoveryStep::cancel) {
    auto& request = reports.emplace_back();
    request.kind = ReportKind::cancel;
    // A part of sentences that go on.
    const auto reason =
        act.fact.ends_with('.') ? act.fact.substr(0, act.fact.size() - 1) : act.fact;
    request.detail = CancelRequest{.by = "rule " + act.decision.rule, .reason = reason};
    request.event_id = act.id() + ":cancel";
  }
  return reports;
}

RecoveryOutcome outcome_of(const PlannedAct& act, const Receipt& receipt) {
  if (!act.does_something()) return {};
  if (act.decision.step != RecoveryStep::cancel)
    return {.act = HookAct(act.decision.step, said_to_agent(act.fact))};
  if (!receipt.directive.cancel) return {};
  return {.act = HookAct(*receipt.directive.cancel), .cancel = receipt.directive.cancel};
}

void write_down(const AttemptPtr& attempt, const PlannedAct& act, RecoveryOutcome outcome) {
  const auto entry = entry_of(act, attempt->event.session, {});
  // The act is in the session already, so it happens although the log could not be written.
  attempt->call->backend.write(
      [entry](Store& store) { return store.keep(entry); },
      [attempt, outcome = std::move(outcome)](const Result<void>&) { attempt->done(outcome); });
}

void ask_rules(const AttemptPtr& attempt) {
  auto& call = *attempt->call;
  const auto& session = attempt->event.session;
  const auto watched = call.backend.watched(session);
  if (!watched || ++attempt->tries > tries_max) return attempt->done({});
  // Of nearly every event. The facts of the others cost more.
  if (!is_trouble(watched->judged.health.kind)) return attempt->done({});
  const auto* open = call_of(attempt->event, watched->judged.history);
  const auto facts = facts_of(*attempt, *watched, open);
  // The hook came twice, and the first got the act.
  if (attempt->is_known && open != nullptr && facts.acted_at > open->seq) return attempt->done({});
  auto decision = decide(call.recovery.rules(), facts);
  if (!decision) return attempt->done({});
  if (open != nullptr) attempt->command = open->notes->command;
  const auto before = facts.acts.find(decision.rule);
  const auto done = before == facts.acts.end() ? 0 : before->second;
  auto act = planned(std::move(decision), facts.health, done);
  act.fact = act.decision.step == RecoveryStep::refuse
                 ? refusal_of(*watched->judged.history.repetition, *open)
                 : fact_of(watched->judged, attempt->command);
  Batch batch{.session = session,
              .creation = Creation::refuse,
              .reports = reports_for(act, open),
              .by = ReportOrigin::monitor};
  call.backend.append(std::move(batch), [attempt, act](const Result<Receipt>& receipt) {
    if (!receipt || receipt->late > 0) return attempt->done({});
    attempt->call->recovery.note(attempt->event.session, act.verdict, act.decision.rule, act.number,
                                 receipt->last);
    // It was done before a crash, or another event of the session was quicker.
    if (receipt->accepted == 0) return ask_rules(attempt);
    attempt->call->recovery.count(act.decision.rule);
    write_down(attempt, act, outcome_of(act, *receipt));
  });
}

}  // namespace

Recovery::Recovery(RecoveryRules rules, std::filesystem::path pause_file)
    : rules_(std::move(rules)), pause_file_(std::move(pause_file)) {}

std::filesystem::path Recovery::pause_file_of(const std::filesystem::path& database) {
  if (is_server_url(database)) return folder_beside(database) / "server-recovery-paused";
  return database.string() + "-recovery-paused";
}

bool Recovery::is_paused() const noexcept {
  std::error_code unreadable;
  return std::filesystem::exists(pause_file_, unreadable) || unreadable;
}

Result<void> Recovery::pause(bool pauses) {
  const auto directory = directory_of(pause_file_);
  const auto name = pause_file_.filename().string();
  int failed = directory ? 0 : errno;
  if (directory && pauses) {
    const auto file = open_at(directory, name, O_WRONLY | O_CREAT | O_NOFOLLOW, 0600);
    failed = file ? file.sync() : errno;
  } else if (directory && unlinkat(directory.fd(), name.c_str(), 0) != 0 && errno != ENOENT) {
    failed = errno;
  }
  if (failed == 0) failed = directory.sync();
  return failed == 0 ? Result<void>{} : file_error(pause_file_.string(), failed);
}

Recovery::Acts Recovery::acts(const std::string& session, Seq verdict) const {
  const std::lock_guard guard(mutex_);
  const auto found = sessions_.find(session);
  if (found == sessions_.end() || found->second.verdict != verdict) return {.verdict = verdict};
  return found->second;
}

void Recovery::note(const std::string& session, Seq verdict, const std::string& rule, int number,
                    Seq at) {
  const std::lock_guard guard(mutex_);
  if (sessions_.size() >= remembered_max && !sessions_.contains(session))
    sessions_.erase(sessions_.begin());
  auto& acts = sessions_[session];
  if (acts.verdict != verdict) acts = {.verdict = verdict};
  acts.at = std::max(acts.at, at);
  auto& known = acts.by_rule[rule];
  known = std::max(known, number);
}

std::map<std::string, std::int64_t> Recovery::done() const {
  const std::lock_guard guard(mutex_);
  return done_;
}

void Recovery::count(const std::string& rule) {
  const std::lock_guard guard(mutex_);
  ++done_[rule];
}

void Recovery::publish(Trials trials) {
  const std::lock_guard guard(mutex_);
  trials_ = std::move(trials);
}

Recovery::Trials Recovery::trials() const {
  const std::lock_guard guard(mutex_);
  return trials_;
}

std::set<std::string> Recovery::off() const {
  const std::lock_guard guard(mutex_);
  return trials_.off;
}

namespace {

void write(JsonWriter& out, std::string_view name, const TrialArm& arm) {
  const auto [low, high] = arm.interval();
  out.key(name).open_object().field("recovered", arm.recovered).field("of", arm.all);
  out.field("low", low).field("high", high).close_object();
}

void write_trials(JsonWriter& out, const Recovery::Trials& trials, const std::string& rule) {
  const auto open = trials.open.find(rule);
  out.field("off", trials.off.contains(rule));
  out.field("openTrials", open == trials.open.end() ? std::int64_t{0} : open->second);
  out.key("trials").open_array();
  for (const auto& [of, counts] : trials.counts) {
    if (of.first != rule) continue;
    out.open_object().field("agent", of.second);
    write(out, "acted", counts.acted);
    write(out, "heldOut", counts.held_out);
    out.close_object();
  }
  out.close_array();
}

}  // namespace

void get_recovery(const CallPtr& call) {
  const auto& recovery = call->recovery;
  const auto done = recovery.done();
  const auto trials = recovery.trials();
  JsonWriter out;
  out.open_object().field("paused", recovery.is_paused()).key("rules").open_array();
  for (const auto& [name, rule] : recovery.rules()) {
    out.open_object().field("name", name).key("on").open_array();
    for (const auto state : rule.on) out.value(name_of(state));
    out.close_array().field("step", name_of(rule.step)).key("agent");
    rule.agent.empty() ? out.value(nullptr) : out.value(rule.agent);
    out.key("label");
    rule.label.empty() ? out.value(nullptr) : out.value(rule.label);
    const auto acts = done.find(name);
    out.field("atMost", rule.at_most).field("dryRun", rule.dry_run);
    out.field("holdOut", rule.hold_out);
    out.field("acts", acts == done.end() ? std::int64_t{0} : acts->second);
    write_trials(out, trials, name);
    out.close_object();
  }
  out.close_array().close_object();
  call->reply(json_response(out));
}

namespace {

/// The disk is waited for where the store is.
void set_pause(const CallPtr& call, bool pauses) {
  call->backend.write([call, pauses](Store&) { return call->recovery.pause(pauses); },
                      [call](const Result<void>& done) {
                        if (!done) return call->reply(error_response(done.error()));
                        get_recovery(call);
                      });
}

}  // namespace

void pause_recovery(const CallPtr& call) {
  set_pause(call, true);
}

void resume_recovery(const CallPtr& call) {
  set_pause(call, false);
}

void recover(const CallPtr& call, HookAgent agent, RecoveryEvent what,
             std::function<void(RecoveryOutcome)> done) {
  if (call->recovery.rules().empty()) return done({});
  ask_rules(std::make_shared<Attempt>(Attempt{.call = call,
                                              .agent = agent,
                                              .event = std::move(what.event),
                                              .command = std::move(what.command),
                                              .is_known = what.is_known,
                                              .done = std::move(done)}));
}

}  // namespace watchdog::monitor
