// A call that runs for a minute is looked at every twenty seconds, and the longer nothing moves,
// the more rarely. Its processes are those that its agent started since, and what is below them:
// helpers, such as tool servers, began before. Which of several open calls a process belongs to is
// not known, so the newest call stands for all of them. A call that waits for subagents is looked
// at as soon as one of them is not well, or well again.
#include "observer/call_looks.h"

#include <algorithm>
#include <utility>

#include "facts/agent_tools.h"
#include "facts/call_process.h"
#include "judge/unwell_child.h"

namespace watchdog {
namespace {

constexpr Millis call_look_every{20'000};
constexpr Millis call_look_rarely{300'000};
/// Shorter calls need no look. A shell may take some seconds to start its command.
constexpr Millis call_age_min{60'000};
/// Work is reported this often: more would fill the database.
constexpr Millis told_every{60'000};
/// An unchanged state is reported again this often: it says how long it lasts.
constexpr Millis told_again{600'000};
/// Processes that use nothing for this long sleep.
constexpr Millis sleeps_for{60'000};
/// A call may be known a little later than its processes begin.
constexpr Millis started_before{1'000};

/// The newest call whose result may come; null: no call is open.
const OpenCall* awaited_call(const History& history) {
  const auto& calls = *history.open_calls;
  const auto found = std::find_if(calls.rbegin(), calls.rend(), [](const OpenCall& call) {
    return call.passed < OpenCall::passed_max;
  });
  return found == calls.rend() ? nullptr : &*found;
}

/// True if nothing but commands may have started processes.
bool are_commands(const History& history) {
  return std::ranges::all_of(*history.open_calls, [](const OpenCall& call) {
    return purpose_of_tool(call.name) == ToolPurpose::command;
  });
}

/// True if two states say the same, but for the time that it lasts.
bool is_same(std::string_view said, std::string_view before) {
  const auto about = [](std::string_view text) { return text.substr(0, text.find(": ")); };
  return about(said) == about(before);
}

/// The newest moment at which something of the session moved.
Instant moved_at(const History& history) {
  return std::max({history.last_sign, history.last_change, history.last_rise});
}

/// An end needs nobody but the parent, which gets the result.
Attention attention_of_child(const LiveSession& child) {
  if (is_end(child.judged.history.lifecycle)) return Attention::resting;
  return standing_of(child.judged, WallTime{}, Family::child).attention;
}

}  // namespace

Instant CallLooks::next(const LiveSession& session) const {
  const auto& history = session.judged.history;
  const auto* call = history.lifecycle == Lifecycle::running ? awaited_call(history) : nullptr;
  if (call == nullptr) return never;
  if (!processes_.runs_here(history) && sessions_.children_of(session.id).empty()) return never;
  const auto moved = std::max(call->worked_from(), history.last_rise);
  const auto seen = seen_.find(session.judged.session);
  if (seen == seen_.end()) return moved + call_age_min;
  if (seen->second.hurries && waits_for_subagent(call->name)) return moved;
  // A call that was still for hours hardly moves within seconds.
  const auto at = seen->second.at;
  const auto every = std::clamp((at - moved) / 10, call_look_every, call_look_rarely);
  return std::max(moved + call_age_min, at + every);
}

std::optional<Report> CallLooks::look(const LiveSession& session, Instant now) {
  if (now < next(session)) return std::nullopt;
  const auto& history = session.judged.history;
  const auto& call = *awaited_call(history);
  auto& seen = seen_[session.judged.session];
  if (seen.call != call.seq) seen = {.call = call.seq};
  auto said = words(session, call, seen, now);
  seen.at = now;
  seen.hurries = false;
  if (!said) return std::nullopt;
  const bool works = said->empty();
  const bool was_held = call.notes->seen.starts_with(call_reports::waits_for);
  const auto before = works && was_held                  ? Millis{}
                      : works                            ? told_every
                      : is_same(*said, call.notes->seen) ? told_again
                                                         : Millis{};
  if (now - seen.told_at < before) return std::nullopt;
  seen.told_at = now;
  Report report{.kind = ReportKind::tool_progress,
                .name = call.name.str(),
                .content = std::move(*said),
                .call_id = call.call_id.str()};
  report.detail = ToolProgress{.elapsed = now - call.since};
  return report;
}

std::optional<std::string> CallLooks::words(const LiveSession& session, const OpenCall& call,
                                            Seen& seen, Instant now) {
  const bool is_command = purpose_of_tool(call.name) == ToolPurpose::command;
  if (auto said = is_command ? std::nullopt : words_of_children(session, call, seen, now))
    return said;
  return words_of_processes(session.judged.history, call, seen, now);
}

bool CallLooks::note_child(const LiveSession& parent, const LiveSession& child) {
  const auto& history = parent.judged.history;
  const auto* call = history.lifecycle == Lifecycle::running ? awaited_call(history) : nullptr;
  if (call == nullptr || !waits_for_subagent(call->name)) return false;
  const auto attention = attention_of_child(child);
  auto& seen = seen_[parent.judged.session];
  const bool spoke = seen.child == child.judged.session;
  const bool is_news = spoke ? attention != seen.attention : attention < seen.attention;
  seen.hurries |= is_news;
  return is_news;
}

/// The worst child speaks. For a call that may have to do with none of them it does so only while
/// no other one works.
std::optional<std::string> CallLooks::words_of_children(const LiveSession& session,
                                                        const OpenCall& call, Seen& seen,
                                                        Instant now) const {
  const auto since = seen.at == Instant{} ? call.worked_from() : seen.at;
  const bool is_for_them = waits_for_subagent(call.name);
  const LiveSession* worst = nullptr;
  auto of_worst = Attention::working;
  bool works = false;
  for (const auto key : sessions_.children_of(session.id)) {
    const auto& child = sessions_.all().at(key);
    if (is_end(child.judged.history.lifecycle)) continue;
    const auto attention = attention_of_child(child);
    // One that is not well may move for ever.
    const bool may_work = attention == Attention::resting || !is_for_them;
    works |=
        attention == Attention::working || (may_work && moved_at(child.judged.history) > since);
    if (attention >= of_worst) continue;
    worst = &child;
    of_worst = attention;
  }
  seen.child = worst == nullptr ? SessionKey{} : worst->judged.session;
  seen.attention = of_worst;
  if (works && (worst == nullptr || !is_for_them)) return std::string();
  if (worst == nullptr) return std::nullopt;
  return std::string(call_reports::waits_for) + unwell_child::head(worst->id, of_worst, works) +
         reason_of(worst->judged, now);
}

std::optional<std::string> CallLooks::words_of_processes(const History& history,
                                                         const OpenCall& call, Seen& seen,
                                                         Instant now) {
  if (!processes_.inspects(history)) return std::nullopt;
  const auto time = std::chrono::duration_cast<Millis>(now.time_since_epoch());
  const bool is_known = seen.work.has_value();
  const auto pid = static_cast<pid_t>(history.pid);
  if (!is_known) seen.work.emplace(pid, time, tick_before(now - call.since + started_before));
  const bool works = is_known && seen.work->look(time);
  if (works || seen.worked_at == Instant{}) seen.worked_at = now;
  if (works) return std::string();
  if (seen.work->is_empty())
    return are_commands(history) ? std::optional(std::string(call_reports::no_process))
                                 : std::nullopt;
  if (now - seen.worked_at < sleeps_for) return std::nullopt;
  return std::string(call_reports::sleeps);
}

}  // namespace watchdog
