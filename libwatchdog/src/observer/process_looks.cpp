// Looks at processes when their sessions are silent, or were found by hooks or the proxy. A process
// that is gone ends its session or shows that it died. One that began below an agent that waits for
// permission shows that a person gave it.
#include "observer/process_looks.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "facts/agent_tools.h"
#include "facts/call_process.h"
#include "watchdog/reasons.h"

namespace watchdog {
namespace {

/// Interval of looks for a silent session's process.
constexpr Millis look_every{10'000};
/// The same for a process that hooks or the proxy found, which does not report its end.
constexpr Millis found_look_every{2'000};
/// Processes inspected for situations in one look of the observer; later sessions get a situation
/// without a process. Other sessions wait meanwhile, and a stalled machine affects all its sessions
/// at once.
constexpr int inspected_max = 64;

/// Returns from when a quiet session's process is looked for: one interval after its silence
/// began, so a supervisor that restarts crashed agents can act before an alert.
Instant looked_for_from(const Case& judged) {
  const auto silence = silence_begins(judged.history, *judged.policy);
  return silence == never ? never : silence + judged.policy->heartbeat_interval;
}

/// True if the session waits because its model's server refused a request.
bool was_refused(const History& history) {
  constexpr std::string_view refusals[] = {backend,
                                           wait_reports::login,
                                           wait_reports::billing,
                                           wait_reports::quota,
                                           wait_reports::overload,
                                           wait_reports::retry};
  return history.lifecycle == Lifecycle::waiting &&
         std::ranges::find(refusals, history.notes->waiting_for) != std::end(refusals);
}

/// Returns the outcome of a session whose process is gone; nothing: it died.
std::optional<Outcome> outcome_of_exit(const History& history) {
  const auto& cancel = history.notes->cancel;
  if (cancel)
    return Outcome{.kind = OutcomeKind::cancelled,
                   .reason = std::string(reasons::cancelled),
                   .error = cancel->reason,
                   .subject = cancel->by};
  // An agent that does not report its end leaves when its turn is over: with an answer or a
  // question, by an interruption, or because its model's server refused it.
  const bool asks = history.lifecycle == Lifecycle::waiting && history.notes->wait_call == 0 &&
                    history.notes->waiting_for == wait_reports::input;
  const bool rests = history.lifecycle == Lifecycle::idle || asks || was_refused(history);
  if (history.notes->process_found && rests)
    return Outcome{.kind = OutcomeKind::completed,
                   .reason = std::string(reasons::task_complete),
                   .error = {},
                   .stated = false,
                   .subject = {},
                   .by_answer = true};
  return std::nullopt;
}

/// Most hooks and status lines of the agent are over before that.
constexpr Millis allowed_after{2'000};
/// Clocks of processes and of the store differ by some ticks.
constexpr Millis margin{300};

/// The command for which the session waits until a person allows it. Empty: it waits for none, or
/// has another open call, which may start processes.
std::string_view awaited_command(const History& history) {
  const auto& notes = *history.notes;
  if (history.lifecycle != Lifecycle::waiting || notes.waiting_for != wait_reports::approval)
    return {};
  const auto& calls = *history.open_calls;
  // Questions of some agents name no call. Then the only open one is meant.
  const bool is_only = notes.wait_call == 0 && calls.size() == 1;
  const auto asked =
      is_only ? calls.begin() : std::ranges::find(calls, notes.wait_call, &OpenCall::seq);
  if (asked == calls.end() || purpose_of_tool(asked->name) != ToolPurpose::command) return {};
  const auto is_other = [&](const OpenCall& call) { return call.seq != asked->seq; };
  return std::ranges::none_of(calls, is_other) ? std::string_view(asked->notes->command)
                                               : std::string_view();
}

/// A process of the command that the agent itself started after the question, and that still runs;
/// null: no process does. The agent also starts hooks of its user, such as a sound. Processes of
/// its helpers say nothing: a browser starts some at any time.
const ProcessSample* began_after(const ProcessTree& tree, std::string_view command,
                                 Millis asked_for) {
  std::vector<std::int64_t> below;
  for (const auto& child : tree.children) {  // parents first
    const auto age = age_of(child);
    const bool is_begun = child.parent == tree.root.pid && age >= allowed_after;
    const bool is_below = std::ranges::find(below, child.parent) != below.end();
    if (child.state == 'Z' || age + margin >= asked_for || !(is_begun || is_below)) continue;
    if (is_named_in(command, child.command)) return &child;
    below.push_back(child.pid);
  }
  return nullptr;
}

}  // namespace

ProcessLooks::ProcessLooks(const std::vector<Boot>& boots) {
  const auto self = this_process();
  boot_ = self.boot_id;
  host_ = self.host;
  machine_ = machine_of(self);
  learn(boots);
}

void ProcessLooks::learn(const std::vector<Boot>& boots) {
  for (const auto& boot : boots) {
    const auto& host = boot.host.empty() ? host_ : boot.host;
    if (boot.id != boot_)
      former_hosts_.emplace(machine_of({.boot_id = boot.id, .host = host}), host);
  }
}

bool ProcessLooks::is_of_former_boot(const History& history) const {
  return history.pid > 0 && former_hosts_.contains(history.machine);
}

bool ProcessLooks::runs_here(const History& history) const {
  return history.pid > 0 && history.machine == machine_;
}

ProcessFacts ProcessLooks::facts_of(const History& history) const {
  return {.pid = history.pid, .start_ticks = history.start_ticks, .boot_id = boot_, .host = host_};
}

Instant ProcessLooks::looked_at(SessionKey session) const {
  const auto found = looked_.find(session);
  return found == looked_.end() ? Instant{} : found->second;
}

Instant ProcessLooks::next(const LiveSession& session) const {
  const Case& judged = session.judged;
  const History& history = judged.history;
  if (history.notes->exited_seq != 0) return never;
  if (is_of_former_boot(history) && looked_for_from(judged) == never)
    return looked_at(judged.session) + look_every;  // even one that waits has no process any more
  if (!runs_here(history) && !is_of_former_boot(history)) return never;
  if (history.notes->process_found) return looked_at(judged.session) + found_look_every;
  const auto from = looked_for_from(judged);
  return from == never ? never : std::max(from, looked_at(judged.session) + look_every);
}

std::optional<Report> ProcessLooks::look(const LiveSession& session, Instant now) {
  const History& history = session.judged.history;
  if (is_end(history.lifecycle) || now < next(session)) return std::nullopt;
  looked_[session.judged.session] = now;
  auto process = facts_of(history);
  if (is_of_former_boot(history)) {
    process.boot_id.clear();
    process.host = former_hosts_.at(history.machine);
  } else if (is_running(process) != false) {
    return permission_seen(history, now);
  }
  Report report;
  if (auto outcome = outcome_of_exit(history)) {
    report.kind = ReportKind::end;
    report.detail = std::move(*outcome);
  } else {
    report.kind = ReportKind::exited;
    report.detail = std::move(process);
  }
  return report;
}

/// No agent reports that a person allowed a command, but the command shows it.
std::optional<Report> ProcessLooks::permission_seen(const History& history, Instant now) {
  const auto command = awaited_command(history);
  if (command.empty()) return std::nullopt;
  const auto tree = tree_of(history);
  const auto* began = tree ? began_after(*tree, command, now - history.notes->wait_since) : nullptr;
  if (began == nullptr) return std::nullopt;
  return Report{.kind = ReportKind::resume,
                .name = std::string(wait_reports::approval),
                .content = "process " + std::to_string(began->pid) + " began after the question"};
}

void ProcessLooks::begin_look() {
  left_ = inspected_max;
}

bool ProcessLooks::may_inspect(const History& history) {
  if (!runs_here(history) || left_ <= 0) return false;
  --left_;
  return true;
}

std::optional<ProcessTree> ProcessLooks::tree_of(const History& history) {
  if (!may_inspect(history)) return std::nullopt;
  return process_tree(facts_of(history));
}

bool ProcessLooks::inspects(const History& history) {
  return may_inspect(history) && is_running(facts_of(history)) == true;
}

}  // namespace watchdog
