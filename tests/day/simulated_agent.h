/// \file
/// An agent of a simulated day: what it plans, what it said, and the truth about it.
#pragma once

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/reports.h"
#include "support/spawned.h"

namespace watchdog::test {

using namespace std::chrono_literals;

/// Agents and the monitor act at multiples of this; the monitor also when something is due.
inline constexpr Millis step{5'000};

enum class Kind : std::uint8_t {
  steady,
  slow_reader,  ///< Its model reads for up to 25 minutes, and the loop waits for it.
  waiting,      ///< Waits for people, for up to two hours.
  looping,      ///< Does the same again and again from some time on; some get out of it.
  spinning,     ///< Its loop goes on and changes nothing.
  frozen,       ///< A call never returns; the helper thread says that the process lives.
  dying,        ///< Its process is killed.
  restarting,   ///< Its process is killed and started again within a minute.
  suspended,    ///< Its laptop sleeps for up to two hours.
  unreliable,   ///< Its network loses reports and answers.
  cancelled,    ///< Somebody asks it to stop.
  parent        ///< Waits for a child.
};
inline constexpr int kinds = 12;

/// A time during which something was really so.
struct Span {
  Instant from{};
  Instant until = never;
  [[nodiscard]] bool holds(Instant at, Millis longer = 0ms) const {
    return from <= at && (until == never || at <= until + longer);
  }
};

struct Agent {
  Kind kind = Kind::steady;
  std::string id, parent;
  std::mt19937_64 random;
  Millis interval{30'000};

  // In the time that passes while the machine is awake:
  Millis born{}, leaves{}, trouble_from{}, trouble_until{};
  Millis beats_at{}, works_at{}, sends_at{};
  bool began = false, over = false, gone = false;
  int iteration = 0;
  std::string open_call;
  Millis asleep_until{};
  int child = -1;

  std::vector<Report> beats;      ///< To be sent once; what is lost is lost.
  std::vector<Report> outbox;     ///< Sent until it is acknowledged.
  std::vector<std::string> said;  ///< The ids of all that it put there, in order.
  std::set<std::string> unknown;  ///< Its process was killed before it knew whether these arrived.
  int next_id = 0;
  std::vector<Span> troubles;  ///< In which it is stuck or loops.
  std::vector<Span> absences;  ///< In which its process does not exist.
  bool failed = false, asked_to_stop = false, lost_before = false;
  std::unique_ptr<Spawned> process;

  [[nodiscard]] Millis next() const {
    if (!began) return born;
    return std::max(asleep_until, std::min({beats_at, works_at, sends_at}));
  }
};

inline Millis between(Agent& agent, Millis from, Millis to) {
  const auto time = from + Millis{static_cast<std::int64_t>(agent.random() % (to - from).count())};
  return time / step * step;
}
inline bool chance(Agent& agent, unsigned percent) {
  return agent.random() % 100 < percent;
}
inline void say(Agent& agent, Report report) {
  report.event_id = agent.id + "." + std::to_string(agent.next_id++);
  agent.said.push_back(report.event_id);
  agent.outbox.push_back(std::move(report));
}

inline void start(Agent& agent) {
  Report report{.kind = ReportKind::start};
  report.detail = agent.process ? agent.process->facts() : this_process();
  say(agent, std::move(report));
}

inline std::string words(Agent& agent, int count) {
  std::string text;
  for (int at = 0; at < count; ++at)
    text += "word" + std::to_string(agent.random() % 100'000) + " ";
  return text;
}
inline Report loop_beat(Agent& agent) {
  Report report;
  report.detail = Heartbeats{.iteration_first = agent.iteration,
                             .iteration = agent.iteration,
                             .phase = "act",
                             .source = Source::loop};
  ++agent.iteration;
  return report;
}
inline Report called(const std::string& tool, std::string arguments, std::string call) {
  return {.kind = ReportKind::tool_call,
          .name = tool,
          .content = std::move(arguments),
          .call_id = std::move(call)};
}
inline Report returned(const std::string& tool, std::string result, std::string call) {
  return {.kind = ReportKind::tool_result,
          .name = tool,
          .content = std::move(result),
          .call_id = std::move(call)};
}
inline std::string new_call(const Agent& agent) {
  return "c" + std::to_string(agent.next_id);
}

/// One step of honest work: a call of some time, then what came of it.
inline Millis honest(Agent& agent) {
  if (agent.open_call.empty()) {
    agent.beats.push_back(loop_beat(agent));
    agent.open_call = new_call(agent);
    say(agent, called("shell", R"({"command":")" + words(agent, 6) + "\"}", agent.open_call));
    return between(agent, 5s, 90s);
  }
  say(agent, returned("shell", words(agent, 8), std::exchange(agent.open_call, {})));
  if (chance(agent, 70)) say(agent, change("step", "{\"done\":\"" + words(agent, 3) + "\"}"));
  return between(agent, 5s, 240s);
}

}  // namespace watchdog::test
