// The session's documents drive a wait; the stream gives one whenever the session changed. Events
// are asked for only where they matter: for a state change, and to count the iterations of a
// session in trouble. `ruling` decides, as for the command `wait`. A client of this wait is a
// model, so nobody is asked whether to go on.
#include "mcp/waiting.h"

#include <utility>

#include "judge/attention.h"
#include "mcp/api_event.h"
#include "mcp/brief.h"
#include "mcp/exchange.h"
#include "mcp/tool_calls.h"
#include "terminal/situation.h"
#include "text/nearest.h"

namespace watchdog::monitor::mcp {
namespace {

template <class Enum>
Result<WaitGoal> condition(WaitGoal goal, const std::string& word) {
  if (!named<Enum>(word))
    return Error{ErrorCode::invalid, unknown_word(goal.member, word, all_names<Enum>()), "until"};
  goal.until.goal = Goal::condition;
  goal.until.what = goal.text;
  goal.value = word;
  return goal;
}

std::string events_target(const std::string& session, std::int64_t after) {
  return "/api/autonomous/sessions/" + session +
         "/events?limit=1000&after=" + std::to_string(after);
}

}  // namespace

Result<WaitGoal> goal_from(const std::string& session, const std::string& text) {
  WaitGoal goal{.session = session, .text = text.empty() ? "end" : text};
  const auto equals = goal.text.find('=');
  goal.member = goal.text.substr(0, equals);
  const auto word = equals == goal.text.npos ? "" : goal.text.substr(equals + 1);
  if (goal.member == "state") return condition<SessionState>(std::move(goal), word);
  if (goal.member == "attention") return condition<Attention>(std::move(goal), word);
  goal.member.clear();
  auto until = awaited_from(goal.text);
  if (!until) return until.error();
  goal.until = std::move(*until);
  goal.until.on_stuck = OnStuck::fail;
  return goal;
}

/// A callback that runs the step in the loop, if this still lives then.
template <class Step>
auto Waiting::later(Step step) {
  return [&loop = loop_, weak = weak_from_this(), step](auto... values) {
    loop.post([weak, step, values...]() mutable {
      if (const auto self = weak.lock()) step(*self, std::move(values)...);
    });
  };
}

void Waiting::begin() {
  seq_ = goal_.after;
  following_ = source_->follow(
      goal_.session,
      {.on_record = later([](Waiting& self, const std::string&, const std::string& data) {
         self.on_record(json::parse(data, nullptr, false));
       }),
       .lost = later([](Waiting& self) { self.is_lost_ = true; }),
       .ended = later([](Waiting& self, const Answer& answer) {
         if (const auto over = std::exchange(self.listener_.over, nullptr))
           over(answer_error(answer, self.goal_.session));
       })});
}

void Waiting::on_record(const json& record) {
  const auto& sessions = member(record, "sessions");
  if (sessions.is_array() && !sessions.empty()) return on_document(sessions.front());
  if (record.contains("lifecycle")) on_document(record);
}

void Waiting::on_document(json document) {
  if (!document.is_object() || !document.contains("lifecycle")) return;
  is_lost_ = false;
  const bool is_new = document_.is_null() ||
                      number_in(document, "lastSeq") != number_in(document_, "lastSeq") ||
                      member(document, "state") != member(document_, "state") ||
                      member(document, "reason") != member(document_, "reason");
  document_ = std::move(document);
  now_.lifecycle = named<Lifecycle>(text_in(document_, "lifecycle")).value_or(now_.lifecycle);
  now_.health = named<HealthKind>(text_in(document_, "health")).value_or(now_.health);
  if (goal_.until.goal == Goal::condition)
    now_.holds = text_in(document_, goal_.member.c_str()) == goal_.value;
  if (seq_ < 0) seq_ = number_in(document_, "lastSeq");
  // The trouble begins before the events that follow.
  see(memory_, now_);
  if (is_new && listener_.changed) listener_.changed();
  ask_events();
}

void Waiting::ask_events() {
  if (is_asking_) return;
  const auto newest = number_in(document_, "lastSeq");
  const bool matters = goal_.until.goal == Goal::state_change || is_stuck(now_.health);
  if (!matters) seq_ = std::max(seq_, newest);
  if (newest <= seq_) return conclude();
  is_asking_ = true;
  source_->ask({.target = events_target(goal_.session, seq_)},
               later([](Waiting& self, const Answer& answer) { self.on_events(answer); }));
}

void Waiting::on_events(const Answer& answer) {
  is_asking_ = false;
  const auto page = json::parse(answer.body, nullptr, false);
  // Without an answer the next document asks again.
  if (answer.status != 200 || !page.is_object()) return;
  for (const auto& on_record : member(page, "events")) {
    const auto event = api_event(on_record);
    if (event.seq <= seq_) continue;
    seq_ = event.seq;
    if (event.late) continue;
    if (goal_.until.goal == Goal::state_change)
      now_.holds |= is_change(event.report, goal_.until.what);
    iterations_.fold(event);
    now_.beats = iterations_.beats;
    now_.rounds = iterations_.rounds;
    see(memory_, now_);
  }
  const auto& next = member(page, "next");
  seq_ = next.is_number_integer() ? std::max(seq_, next.get<std::int64_t>())
                                  : std::max(seq_, number_in(document_, "lastSeq"));
  ask_events();
}

void Waiting::conclude() {
  see(memory_, now_);
  const auto health = std::string(name_of(now_.health));
  switch (ruling(goal_.until, memory_)) {
    case Ruling::go_on:
      return;
    case Ruling::met:
      return over(true, nullptr, "");
    case Ruling::ended:
      return over(false, "ended",
                  "it ended as " + std::string(name_of(now_.lifecycle)) + " instead");
    case Ruling::dead:
      return over(false, "dead", "its process is gone, and it never said that it ended");
    case Ruling::ask:
    case Ruling::stuck:
      return over(false, "stuck",
                  "it has been " + health + " for " + std::to_string(further_iterations(memory_)) +
                      " further iterations");
    case Ruling::suspect:
    case Ruling::quiet:
      return;  // a client cannot ask for these
  }
}

void Waiting::over(bool came, const char* end, const std::string& why) {
  // The client may destroy this within the call.
  const auto self = shared_from_this();
  following_.reset();
  if (const auto over = std::exchange(listener_.over, nullptr))
    over(tool_result(result(came, end, why)));
}

json Waiting::result(bool came, const char* end, const std::string& why) const {
  json made = {{"session", goal_.session},
               {"until", goal_.text},
               {"came", came},
               {"end", end == nullptr ? json() : json(end)},
               {"why", why.empty() ? words() : why},
               {"after", std::max<std::int64_t>(seq_, 0)},
               {"continue", nullptr},
               {"agent", document_.is_null() ? json() : brief(document_, loop_.wall())}};
  bound(made, result_bytes_max);
  return made;
}

json Waiting::not_yet() const {
  auto made = result(false, nullptr, "");
  made["continue"] =
      "Not yet. To go on waiting, call wait again with the same session and until, "
      "and with after=" +
      std::to_string(std::max<std::int64_t>(seq_, 0));
  return tool_result(std::move(made));
}

std::string Waiting::words() const {
  if (document_.is_null()) return "Nothing is known of it yet";
  return (is_lost_ ? "The monitor does not answer. Before: " : "") + situation_line(document_);
}

bool Waiting::is_good() const {
  if (is_lost_ || document_.is_null()) return false;
  const auto attention = named<Attention>(text_in(document_, "attention"));
  return attention == Attention::working || attention == Attention::resting;
}

}  // namespace watchdog::monitor::mcp
