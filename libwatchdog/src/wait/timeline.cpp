// The words of a wait that is over: the cause, the last state, and the timeline. Texts of agents
// are cut and put in one line, because people read them in terminals and in logs of CI. A timeline
// keeps the first and the last entries; heartbeats are only counted.
#include <algorithm>
#include <cstdio>
#include <limits>
#include <utility>

#include "text/utf8.h"
#include "wait/account.h"
#include "wait/one_line.h"
#include "watchdog/terminal_text.h"
#include "watchdog/wait.h"

namespace watchdog {
namespace {

constexpr std::size_t entry_bytes_max = 120;

struct DetailText {
  std::string operator()(const Outcome& outcome) const {
    std::string text(name_of(outcome.kind));
    if (!outcome.reason.empty()) text += " (" + reason_and_subject(outcome) + ")";
    return outcome.error.empty() ? text : text + ": " + outcome.error;
  }
  std::string operator()(const ProcessFacts& process) const {
    return process.pid == 0 ? "" : "process " + std::to_string(process.pid);
  }
  std::string operator()(const CancelRequest& request) const {
    return "asked for by " + request.by + (request.reason.empty() ? "" : ": " + request.reason);
  }
  std::string operator()(const Opinion& opinion) const {
    return std::string(name_of(opinion.verdict));
  }
  std::string operator()(const LostReports& lost) const {
    return std::to_string(lost.count) + " reports were lost";
  }
  std::string operator()(const auto&) const { return {}; }
};

/// `+3.210 s`, with as many minutes as there are.
std::string after(WallTime at, WallTime start) {
  const auto ms = std::max<std::int64_t>((at - start).count(), 0);
  char text[48];
  if (ms < 60'000) {
    std::snprintf(text, sizeof text, "%6lld.%03lld s", static_cast<long long>(ms / 1'000),
                  static_cast<long long>(ms % 1'000));
  } else {
    std::snprintf(text, sizeof text, "%5lldm%02lld.%01lld s", static_cast<long long>(ms / 60'000),
                  static_cast<long long>(ms / 1'000 % 60),
                  static_cast<long long>(ms % 1'000 / 100));
  }
  return text;
}

}  // namespace

std::string one_line(std::string_view text, std::size_t bytes_max) {
  auto line = terminal_line(text);
  if (line.size() <= bytes_max) return line;
  line.resize(bytes_max);
  drop_half_character(line);
  return line + "…";
}

void Timeline::add(TimelineEntry entry) {
  if (first.size() < first_max) {
    first.push_back(std::move(entry));
    return;
  }
  last.push_back(std::move(entry));
  if (last.size() <= last_max) return;
  last.erase(last.begin());
  ++omitted;
}

TimelineEntry timeline_entry(const Event& event) {
  const auto& report = event.report;
  std::string text(name_of(report.kind));
  if (!report.name.empty()) text += " " + report.name;
  const auto detail = std::visit(DetailText{}, report.detail);
  if (!detail.empty()) text += " " + detail;
  const bool says_why = is_failure(report.kind) || report.kind == ReportKind::message;
  if (says_why && !report.content.empty()) text += ": " + report.content;
  if (event.late) text += ", after the end";
  return {.at = event.at, .text = one_line(text, entry_bytes_max)};
}

TimelineEntry timeline_entry(const Transition& transition) {
  return {.at = transition.at,
          .text = "health " + std::string(name_of(transition.from)) + " → " +
                  std::string(name_of(transition.health.kind)) + ": " +
                  one_line(transition.reason, entry_bytes_max)};
}

std::string lifecycle_text(const Case& judged) {
  const auto& history = judged.history;
  std::string text(name_of(history.lifecycle));
  if (const auto& outcome = history.notes->outcome; is_end(history.lifecycle) && outcome) {
    text += " (" + reason_and_subject(*outcome) + ")";
    if (!outcome->error.empty()) text += ": " + outcome->error;
    text += "; its health was ";
  } else {
    text += ", ";
  }
  text += name_of(judged.health.kind);
  const auto reason = reason_of(judged.health, history, *judged.policy);
  if (!reason.empty()) text += " (" + reason + ")";
  if (history.iteration) text += "; iteration " + std::to_string(*history.iteration);
  if (!history.phase.empty()) text += " in " + history.phase;
  return text + "; " + std::to_string(history.state_changes) + " state changes, " +
         std::to_string(history.heartbeats) + " heartbeats";
}

std::string why_over(Ruling verdict, const Awaited& awaited, const WaitMemory& memory,
                     std::int64_t pid) {
  switch (verdict) {
    case Ruling::go_on:
    case Ruling::met:
      return {};
    case Ruling::ended:
      return "it ended as " + std::string(name_of(memory.latest.lifecycle)) + " instead";
    case Ruling::dead:
      return "its process" + (pid > 0 ? " " + std::to_string(pid) : std::string()) +
             " is gone, and it never said that it ended";
    case Ruling::ask:
    case Ruling::stuck:
      return "it has been " + std::string(name_of(memory.latest.health)) + " for " +
             std::to_string(further_iterations(memory)) + " further iterations (limit " +
             std::to_string(awaited.further_max) + ")";
    case Ruling::suspect:
      return "it is suspect";
    case Ruling::quiet:
      return "nothing has moved in it for long, and nothing shows that it works";
  }
  return {};
}

void TimelineMaker::add_changes_before(Seq seq) {
  for (; next_ < changes_.size() && changes_[next_].seq < seq; ++next_)
    made_.add(timeline_entry(changes_[next_]));
}

void TimelineMaker::add(const Event& event) {
  add_changes_before(event.seq);
  if (const auto* beats = std::get_if<Heartbeats>(&event.report.detail)) {
    made_.heartbeats += beats->count;
  } else {
    made_.add(timeline_entry(event));
  }
}

Timeline TimelineMaker::finish() {
  add_changes_before(std::numeric_limits<Seq>::max());
  return std::move(made_);
}

std::string WaitFailure::text() const {
  std::string text = "session " + session + ": " + why + "\n  expected  " + expected;
  if (!last.empty()) text += "\n  last      " + last;
  text.append("\n  ended as  ").append(name_of(end));
  const auto count = timeline.first.size() + timeline.last.size();
  if (count == 0) return text;
  text += "\n  timeline  " + std::to_string(count + static_cast<std::size_t>(timeline.omitted)) +
          " entries, " + std::to_string(timeline.heartbeats) + " heartbeats besides";
  const auto start = timeline.first.front().at;
  const auto append = [&](const std::vector<TimelineEntry>& entries) {
    for (const auto& entry : entries) text += "\n" + after(entry.at, start) + "  " + entry.text;
  };
  append(timeline.first);
  if (timeline.omitted > 0)
    text += "\n          …  " + std::to_string(timeline.omitted) + " omitted";
  append(timeline.last);
  return text;
}

}  // namespace watchdog
