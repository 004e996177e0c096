// Writes the reason of a session's health as a sentence for people. It has the cause, the measured
// value, and the limit. All sentences of the page, the terminal, alerts and the API are made here.
// Measured values are as of `now`. The sentence of a healthy state has no value that gets outdated.
#include <algorithm>
#include <string>
#include <vector>

#include "judge/alert_rule.h"
#include "judge/attention.h"
#include "text/figures.h"
#include "text/sentence.h"
#include "text/time_left.h"
#include "watchdog/health.h"

namespace watchdog {
namespace {

/// `0.4 s`, `84 s`, `12 min`
std::string lasted(Millis time) {
  const auto ms = std::max<std::int64_t>(time.count(), 0);
  if (ms >= 10'000) return span_of(Millis{ms});
  if (ms % 1'000 == 0) return std::to_string(ms / 1'000) + " s";
  return std::to_string(ms / 1'000) + "." + std::to_string(ms % 1'000 / 100) + " s";
}

std::string counted(double count, const char* noun) {
  return counted_as(static_cast<std::int64_t>(count), noun);
}

/// Where one failed, with how.
std::string name_in(const RecentCall& call, const Words& words) {
  const auto name = call.name.empty() ? std::string("a tool") : call.name.str();
  if (!call.failed) return name;
  return name + (words.failure.empty() ? " (fails)" : " (fails: " + words.failure + ")");
}

std::string newest_tool(const Repetition& repetition) {
  return repetition.tool.empty() ? std::string("a tool") : repetition.tool;
}

/// The newest calls, as they follow each other: `read_file → shell (fails: no rule)`.
std::string newest_calls(const Words& words, std::size_t count) {
  std::string text;
  const auto& calls = words.recent;
  const auto from = calls.size() - std::min(count, calls.size());
  for (auto at = from; at < calls.size(); ++at)
    text += (text.empty() ? "" : " → ") + name_in(calls[at], words);
  return text;
}

/// Each of the newest calls' tools once: `read_file, shell (fails: no rule)`.
std::string newest_tools(const Words& words) {
  constexpr std::size_t tools_max = 4;
  std::vector<std::string> names;
  for (auto at = words.recent.rbegin(); at != words.recent.rend(); ++at) {
    const auto name = name_in(*at, words);
    if (names.size() < tools_max && std::ranges::find(names, name) == names.end())
      names.insert(names.begin(), name);
  }
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// How many calls a lap of the cycle has that has come back most often.
std::size_t lap_of(const Cycles& rounds) {
  const auto* longest = rounds.longest();
  if (longest == nullptr) return 0;
  constexpr std::size_t period_min = 2;
  return period_min + static_cast<std::size_t>(longest - rounds.by_period.data());
}

/// How the newest call failed; empty: it did not, or nothing is kept of that.
std::string failure_in(const Words& words) {
  const bool failed = !words.recent.empty() && words.recent.back().failed;
  return failed && !words.failure.empty() ? ": " + words.failure : std::string();
}

/// The turns or requests that come again, and how often.
std::string turns_in(const TurnRepetition& turns) {
  const auto& longest = turns.longest();
  const auto times = counted(longest.count, "time");
  if (&longest == &turns.stops)
    return "a hook refused the end of the turn " + times + ", with no call in between";
  if (&longest == &turns.requests)
    return "sent the same request to the model again " + times + ", with no result in between";
  if (&longest == &turns.failures)
    return counted(longest.count, "turn") + " in a row ended with the same error";
  return "began as before after each of " + counted(longest.count, "compaction") +
         ", and changed no file in between";
}

/// How many of the newest calls repeat earlier ones. Calls between them may be new.
std::string repeated_of(const Repetition& repetition) {
  const auto all = std::min<std::size_t>(repetition.loop.count > 0 ? repetition.loop.count : 0,
                                         repetition.steps.size());
  const auto again =
      std::count_if(repetition.steps.end() - static_cast<std::ptrdiff_t>(all),
                    repetition.steps.end(), [](const Step& step) { return step.again; });
  if (all < 2 || again == 0) return {};
  return ": " + std::to_string(again) + " of the last " +
         counted(static_cast<double>(all), "call") +
         (again == 1 ? " repeats an earlier one" : " repeat earlier ones");
}

/// The repeated action, how often it was repeated, and its result.
std::string repetition_in(const Finding& found, const History& history) {
  const auto& repetition = *history.repetition;
  const auto& words = *history.notes->words;
  const auto tool = newest_tool(repetition);
  const auto times = counted(found.count, "time");
  switch (found.pattern) {
    case Pattern::R1:
      return "calls " + tool + " " + times +
             " in a row, with the same arguments and the same result";
    case Pattern::R2:
      return "calls " + tool + " " + times + " in a row with the same arguments; each fails" +
             failure_in(words);
    case Pattern::R3: {
      const auto calls = newest_calls(words, lap_of(repetition.rounds));
      return "repeats " + (calls.empty() ? std::string("the same cycle of calls") : calls) + ", " +
             counted(found.count, "round");
    }
    case Pattern::R4: {
      const auto tools = newest_tools(words);
      return "repeats recent calls" + (tools.empty() ? "" : " of " + tools) +
             repeated_of(repetition);
    }
    case Pattern::R5:
      return (repetition.tool.empty() ? tool : "tool " + tool) + " failed " + times +
             " in a row with the same error" + failure_in(words) + ", whatever the arguments";
    case Pattern::R6:
      return counted(found.count, "call") + " in a row could not be understood";
    case Pattern::R7:
      return "the same message " + times + ", with no action in between";
    case Pattern::R7b:
      return counted(found.count, "message") + " with no action in between";
    case Pattern::R8:
      return "the text of the model repeats itself";
    case Pattern::R9:
      return "goes back and forth between the same states, " + counted(found.count, "round");
    case Pattern::R10:
      return "compacted its context " + times + ", with no action in between";
    case Pattern::R11:
      return counted(found.count, "round") + " of calls brought nothing new" +
             (found.graded ? ", with a few new ones between" : "");
    case Pattern::R12:
      return counted(found.count, "message") +
             " said little that earlier ones did not say; this is a sign, no proof";
    case Pattern::R13:
      return "a call failed " + times + " in the same way, whatever was done in between" +
             failure_in(words) + "; this is a sign, no proof";
    case Pattern::R14:
      return "asks " + tool + " for the same in other words, " + times +
             "; this is a sign, no proof";
    case Pattern::R15:
      return turns_in(repetition.turns);
    default:
      return "makes no progress";
  }
}

/// An answer that pauses for less is written.
constexpr Millis reported_silence_min{10'000};

/// `hang: 21 s over its deadline of 3 s`; empty: no open call is over its own.
std::string over_deadline_in(const History& history, Instant now) {
  Millis most{};
  std::string text;
  for (const auto& call : *history.open_calls) {
    const auto deadline = call.notes->deadline;
    if (deadline.count() <= 0 || call.passed >= OpenCall::passed_max) continue;
    const auto over = now - std::max(call.worked_from(), history.last_rise) - deadline;
    if (over <= most) continue;
    most = over;
    text = (call.name.empty() ? std::string("a tool") : call.name.str()) + ": " + lasted(over) +
           " over its deadline of " + lasted(deadline);
  }
  return text;
}

/// The call that holds the session up: the newest one that the monitor sees something of, else the
/// newest one. Null: no call is open.
const OpenCall* holding_call(const History& history) {
  const OpenCall* holding = nullptr;
  for (const auto& call : *history.open_calls) {
    if (call.passed >= OpenCall::passed_max) continue;
    const bool had_seen = holding != nullptr && !holding->notes->seen.empty();
    if (!had_seen || !call.notes->seen.empty()) holding = &call;
  }
  return holding;
}

/// "tool Bash `make check` has run for 14 min"
std::string running_in(const OpenCall& call, Instant now) {
  auto text = "tool " + (call.name.empty() ? std::string("without a name") : call.name.str());
  if (!call.notes->command.empty()) text += " `" + call.notes->command + "`";
  return text + " has run for " + lasted(now - call.worked_from());
}

/// A relay of its requests says that it waits for an answer.
bool asks_model(const History& history) {
  return history.notes->relay_at != Instant{} && history.open_calls->empty() &&
         history.phase == "model";
}

std::string pace_in(const History& history, const Policy& policy, bool suspect, Instant now) {
  const auto pace = pace_now(history, policy);
  if (const auto* call = holding_call(history);
      suspect && call != nullptr && call->notes->seen == call_reports::no_process)
    return running_in(*call, now) + ": " + call->notes->seen;
  if (auto late = over_deadline_in(history, now); suspect && !late.empty()) return late;
  auto limits = (suspect ? "suspect after " : "slow after ") +
                lasted(suspect ? pace.bounds.suspect : pace.bounds.slow);
  if (pace.bounds.own) limits += "; usually " + lasted(*pace.bounds.own);
  // A relay of the session's requests reports how long no part of the answer has come.
  const auto silent = now - std::max(pace.since, history.last_rise);
  const bool calls = !history.open_calls->empty();
  if (asks_model(history) && silent >= reported_silence_min)
    return "the model has been silent for " + lasted(silent) + " (" + limits + ")";
  const auto what = pace.activity.empty() ? std::string("no state change for ")
                    : calls               ? "tool " + std::string(pace.activity) + " has run for "
                            : "phase \"" + std::string(pace.activity) + "\" has lasted ";
  return what + lasted(now - pace.since) + (suspect ? " with no other activity" : "") + " (" +
         limits + ")";
}

/// Nothing but reports shows that this agent runs.
std::string unheard_in(const History& history, const Policy& policy, Instant now) {
  const auto pace = pace_now(history, policy);
  return "last report " + lasted(now - history.tick) + " ago (unknown after " +
         lasted(pace.bounds.slow) +
         (pace.bounds.own ? "; usually " + lasted(*pace.bounds.own) : "") +
         "); it sends no heartbeats, and its process is not known";
}

std::string server_in(const Health& health, const History& history) {
  const auto* server = server_note(history);
  const auto words = server == nullptr ? std::string() : server_in_words(*server);
  if (!words.empty()) return "the model server " + words;
  return health.kind == HealthKind::stuck ? "the model server hung" : "the model server was busy";
}

std::string doubt_in(const Health& health, const History& history, const Policy& policy,
                     Instant now) {
  if (!is_repetition(health.pattern)) return pace_in(history, policy, true, now);
  if (health.pattern == Pattern::repeated_turns) return turns_in(history.repetition->turns);
  return repetition_in(history.repetition->finding(policy), history);
}

std::string wait_in(const Notes& notes) {
  if (notes.waiting_for.empty()) return "waits for something that it did not name";
  std::string sentence = "waits for ";
  if (notes.waiting_for == backend && !notes.wait_why.empty()) return sentence + notes.wait_why;
  sentence += notes.waiting_for;
  if (!notes.wait_provider.empty()) sentence += " of " + notes.wait_provider;
  if (notes.wait_until) sentence += " until " + minute_of(*notes.wait_until);
  return notes.wait_why.empty() ? sentence : sentence + ": " + notes.wait_why;
}

std::string rest_in(const History& history) {
  const auto& why = history.notes->idle_why;
  std::string text = "the answer is complete";
  constexpr auto relayed = idle_reports::relayed;
  if (why.starts_with(relayed)) text = why.substr(std::min(why.size(), relayed.size() + 2));
  if (why == idle_reports::interrupted) text = "a person interrupted the turn";
  if (why.starts_with(idle_reports::goes_on))
    text += "; " + why.substr(std::min(why.size(), idle_reports::goes_on.size() + 2));
  if (why.starts_with(idle_reports::failed))
    text = "the turn ended without an answer" + why.substr(idle_reports::failed.size());
  // The confirmed repetition of a turn stays visible until the next turn.
  const auto is_confirmed = history.repetition->alarm.pattern;
  if (is_confirmed != Pattern::none)
    text += "; last turn: " + std::string(name_of(trouble_of(is_confirmed)));
  return text;
}

/// A prompt moves the agent, and not the model.
std::string asked_in(const History& history, Instant now) {
  const auto text = "asked " + lasted(now - history.last_change) + " ago; ";
  const auto* server = server_note(history);
  if (server != nullptr && is_busy(server->evidence.state))
    return text + "the model server " + server_in_words(*server);
  return text + (history.last_rise > history.last_change ? "the model answers"
                                                         : "no sign of work from the model server");
}

std::string progress_in(const History& history, Instant now) {
  // One look that sees nothing new may be a check of something else.
  constexpr std::int32_t looks_min = 2;
  if (const auto& looks = history.repetition->looks; looks.count >= looks_min)
    return "waits with " + newest_tool(*history.repetition) + ": looked " +
           counted(looks.count, "time") + " again, and nothing has changed";
  // A relay of the session's requests heard nothing else since.
  const bool asks = history.notes->relay_at > history.last_change && history.phase == "model";
  if (asks && history.last_change_type == "input" && history.open_calls->empty())
    return asked_in(history, now);
  if (history.last_change_type.empty()) return "no progress reported yet";
  const auto& recent = history.notes->words->recent;
  std::string text = "last progress: ";
  if (history.last_change_type == "tool_call" && !recent.empty()) {
    text += recent.back().name.str() + (recent.back().failed ? " failed" : " finished");
  } else {
    text += history.last_change_type;
  }
  if (history.open_calls->empty()) return text;
  if (const auto late = over_deadline_in(history, now); !late.empty()) return text + "; " + late;
  const auto& call = history.open_calls->back();
  return text + "; running " + (call.name.empty() ? std::string("a tool") : call.name.str());
}

/// "tool Bash `make check` has run for 14 min: its process sleeps"
std::string quiet_in(const History& history, const Policy& policy, Instant now) {
  if (asks_model(history)) return pace_in(history, policy, false, now);
  const auto pace = pace_now(history, policy);
  const auto still = lasted(now - std::max(pace.since, history.last_rise));
  const auto* call = holding_call(history);
  if (call != nullptr && !call->notes->seen.empty())
    return running_in(*call, now) + ": " + call->notes->seen;
  const std::string unknown = history.pid > 0 ? "" : "; its process is not known";
  if (call == nullptr)
    return "nothing has moved for " + still + "; " + progress_in(history, now) + unknown;
  return running_in(*call, now) + " and moved nothing for " + still + unknown;
}

std::string iterations_in(const History& history, const Policy& policy) {
  return counted(history.loop_beats_since_change, "iteration") + " without a state change (limit " +
         std::to_string(policy.stuck_threshold) + ")";
}

/// Without the capital letter of a sentence.
std::string words_of(const Health& health, const History& history, const Policy& policy,
                     Instant now) {
  now = std::max(now, history.tick);
  switch (health.kind) {
    case HealthKind::unknown:
      if (health.pattern == Pattern::below_pace) return unheard_in(history, policy, now);
      return "no report yet";
    case HealthKind::starting:
      return "running; no progress reported yet";
    case HealthKind::progressing:
      return progress_in(history, now);
    case HealthKind::slow:
      if (health.pattern == Pattern::F5) return server_in(health, history);
      if (health.pattern == Pattern::quiet) return quiet_in(history, policy, now);
      return pace_in(history, policy, false, now);
    case HealthKind::suspect:
    case HealthKind::looping:
      return doubt_in(health, history, policy, now);
    case HealthKind::stuck:
      if (health.pattern == Pattern::F1) return iterations_in(history, policy);
      if (health.pattern == Pattern::F5) return server_in(health, history);
      return doubt_in(health, history, policy, now);
    case HealthKind::blocked:
      if (health.pattern == Pattern::F6) return "a model check says that it cannot go on by itself";
      return wait_in(*history.notes);
    case HealthKind::idle:
      return rest_in(history);
    case HealthKind::silent:
      return "no heartbeat for " +
             lasted(std::max(now - history.last_sign, silence_bound(history, policy))) +
             " (silent after " + lasted(silence_bound(history, policy)) + ")";
    case HealthKind::dead:
      return (history.pid > 0 ? "process " + std::to_string(history.pid)
                              : std::string("the process")) +
             " exited without ending its session";
  }
  return {};
}

}  // namespace

std::string reason_of(const Health& health, const History& history, const Policy& policy,
                      Instant now) {
  return sentence(words_of(health, history, policy, now));
}

namespace {

/// The tool before the colon of `Bash: make`; empty: the text does not begin with one word.
std::string_view tool_before_colon(std::string_view text) {
  constexpr std::size_t name_bytes_max = 64;
  constexpr auto of_names = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
  const auto colon = text.find(": ");
  if (colon == text.npos || colon > name_bytes_max) return {};
  const auto word = text.substr(0, colon);
  return word.find_first_not_of(of_names) == word.npos ? word : std::string_view();
}

/// The tool that a person is asked about; empty: not known. Some agents do not say which call they
/// mean, so the only open one is meant.
std::string asked_tool(const Notes& notes, const std::vector<OpenCall>& open_calls) {
  const auto asked = std::ranges::find(open_calls, notes.wait_call, &OpenCall::seq);
  if (asked != open_calls.end()) return asked->name.str();
  if (notes.waiting_for != wait_reports::approval) return {};
  if (const auto tool = tool_before_colon(notes.wait_why); !tool.empty()) return std::string(tool);
  return open_calls.size() == 1 ? open_calls.front().name.str() : std::string();
}

/// Without the name of the call, which the reason says.
std::string_view wait_text(const Notes& notes, const std::vector<OpenCall>& open_calls) {
  std::string_view text = notes.wait_why;
  const auto said = asked_tool(notes, open_calls) + ": ";
  if (text.starts_with(said)) text.remove_prefix(said.size());
  return text;
}

/// Returns the agent's own texts that the reason quotes.
std::string text_in_reason(const Health& health, const History& history) {
  const auto& notes = *history.notes;
  const auto& words = *notes.words;
  switch (health.kind) {
    case HealthKind::blocked:
      if (health.pattern == Pattern::F6 || notes.waiting_for == backend) return {};
      if (std::ranges::find(wait_reports::all, notes.waiting_for) != std::end(wait_reports::all))
        return std::string(wait_text(notes, *history.open_calls));
      return notes.waiting_for + (notes.wait_why.empty() ? "" : ": " + notes.wait_why);
    case HealthKind::idle:
      return notes.idle_why.starts_with(idle_reports::failed)
                 ? notes.idle_why.substr(
                       std::min(notes.idle_why.size(), idle_reports::failed.size() + 2))
                 : std::string();
    case HealthKind::suspect:
    case HealthKind::looping:
    case HealthKind::stuck: {
      const bool fails = std::ranges::any_of(words.recent, &RecentCall::failed);
      return is_repetition(health.pattern) && fails ? words.failure : std::string();
    }
    default:
      return {};
  }
}

/// Replaces the agent's own texts by the names of what they are about.
void leave_texts_out(Notes& notes, const std::vector<OpenCall>& open_calls) {
  notes.words.edit().failure.clear();
  if (notes.idle_why.starts_with(idle_reports::failed)) notes.idle_why = idle_reports::failed;
  if (notes.idle_why.starts_with(idle_reports::goes_on)) notes.idle_why.clear();
  if (notes.waiting_for == backend || notes.waiting_for.empty()) return;
  notes.wait_why = asked_tool(notes, open_calls);
  if (std::ranges::find(wait_reports::all, notes.waiting_for) == std::end(wait_reports::all))
    notes.waiting_for = "something that it named";
}

void leave_texts_out(OpenCall& call) {
  constexpr auto waits = call_reports::waits_for;
  if (call.notes->command.empty() && call.notes->seen.empty()) return;
  auto& notes = call.notes.edit();
  notes.command.clear();
  if (notes.seen.starts_with(waits))
    notes.seen.resize(std::min(notes.seen.find(": "), notes.seen.size()));
}

}  // namespace

PublicReason public_reason_of(const Health& health, const History& history, const Policy& policy,
                              Instant now) {
  auto shown = history;
  leave_texts_out(shown.notes.edit(), *shown.open_calls);
  for (auto& call : shown.open_calls.edit()) leave_texts_out(call);
  return {.sentence = reason_of(health, shown, policy, now),
          .text = text_in_reason(health, history)};
}

std::string end_in_words(const Outcome& outcome, std::int32_t wasted_calls) {
  const auto reason = [&] {
    auto text = reason_and_subject(outcome);
    std::ranges::replace(text, '_', ' ');
    return text;
  };
  const auto error = outcome.error.substr(0, outcome.error.find_first_of("\r\n"));
  // The word that stands for a failure without a class says nothing beside its error.
  const bool is_plain = outcome.reason == "error" || outcome.reason.empty();
  auto text = error.empty() ? reason()
              : is_plain    ? sentence(error, "Error: ")
                            : reason() + ": " + error;
  if (wasted_calls > 0)
    text += (text.empty() ? "" : "; ") + counted(wasted_calls, "call") + " wasted in a loop";
  return sentence(text.empty() ? std::string(name_of(outcome.kind)) : text);
}

std::string reason_of(const Case& judged, Instant now) {
  const auto& notes = *judged.history.notes;
  if (notes.outcome && is_end(judged.history.lifecycle))
    return end_in_words(*notes.outcome, notes.wasted_calls);
  return reason_of(judged.health, judged.history, *judged.policy, now);
}

std::string evidence_note(const Health& health, std::size_t at) {
  if (health.pattern == Pattern::F5) return "what the model server does";
  switch (health.kind) {
    case HealthKind::suspect:
    case HealthKind::looping:
      if (is_repetition(health.pattern)) return at == 0 ? "where it began" : "the newest round";
      return "the newest state change";
    case HealthKind::stuck:
      if (is_repetition(health.pattern)) return at == 0 ? "where it began" : "the newest round";
      if (health.pattern != Pattern::F1) return "the newest state change";
      return at == 0 ? "first iteration without a state change" : "the newest state change";
    case HealthKind::blocked:
      return health.pattern == Pattern::F6 ? "what the model answered" : "the wait it declared";
    case HealthKind::dead:
      return at == 0 ? "the process was found gone" : "the last sign of life";
    case HealthKind::silent:
      return "the last sign of life";
    default:
      return "the newest state change";
  }
}

}  // namespace watchdog
