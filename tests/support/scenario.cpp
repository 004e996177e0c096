#include "support/scenario.h"

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <random>

namespace watchdog::test {
namespace {

Report report_of(char letter, std::int64_t& iteration, Instant tick) {
  Report report;
  const auto beats = [&](Source source) {
    report.kind = ReportKind::heartbeat;
    Heartbeats row{.first = tick, .last = tick, .source = source};
    if (source == Source::loop) row.iteration = row.iteration_first = ++iteration;
    report.detail = row;
  };
  const auto evidence = [&](ServerState state) {
    report.kind = ReportKind::evidence;
    report.call_id = "request";
    report.content = "as it was seen";
    report.detail = Evidence{.state = state};
  };
  switch (letter) {
    case 'R':
      evidence(ServerState::reading);
      report.detail = Evidence{.state = ServerState::reading,
                               .done = ++iteration,
                               .total = 61'440,
                               .left = Millis{118'000}};
      break;
    case 'q':
      evidence(ServerState::queued);
      break;
    case 'Q':
      evidence(ServerState::quiet);
      break;
    case 'H':
      evidence(ServerState::hung);
      break;
    case 'O':
      evidence(ServerState::over);
      break;
    case 'y':
      beats(Source::relay);
      break;
    case 'h':
      beats(Source::loop);
      break;
    case 's':
      beats(Source::sidecar);
      break;
    case 'b':
      beats(Source::unsaid);
      break;
    case 'S':
      report.kind = ReportKind::state_change;
      report.name = "step";
      break;
    case 'c':
      report.kind = ReportKind::tool_call;
      report.name = "shell";
      break;
    case 'r':
      report.kind = ReportKind::tool_result;
      report.name = "shell";
      break;
    case 'e':
      report.kind = ReportKind::error;
      report.name = "shell";
      break;
    case 'm':
      report.kind = ReportKind::message;
      report.name = "assistant";
      break;
    case 'w':
      report.kind = ReportKind::wait;
      report.name = "approval";
      break;
    case 'i':
      report.kind = ReportKind::idle;
      break;
    case 'u':
      report.kind = ReportKind::user_input;
      break;
    case '!':
      report.kind = ReportKind::start;
      break;
    case 'x':
      report.kind = ReportKind::exited;
      break;
    case 'B':
      report.kind = ReportKind::budget;
      report.name = "update";
      report.detail = BudgetFigures{.limits = {.steps = 30, .cost = 0.7, .duration = Millis{1'234}},
                                    .steps = ++iteration,
                                    .cost = 0.1,
                                    .elapsed = tick - scenario_start};
      break;
    case 't':
    case 'T':
      report.kind = ReportKind::turn;
      report.name = letter == 't' ? turn_reports::turn_start : turn_reports::turn_end;
      report.call_id = "turn";
      report.detail = TurnFacts{.parent = "above", .depth = 1};
      break;
    case 'a':
      report.kind = ReportKind::cancel;
      report.detail = CancelRequest{.by = "user", .turn = "turn"};
      break;
    case 'k':
      report.kind = ReportKind::tool_call;
      report.name = "shell";
      report.turn = "turn";
      break;
    case 'p':
      report.kind = ReportKind::tool_progress;
      report.name = "shell";
      report.content = "further";
      report.detail = ToolProgress{.elapsed = tick - scenario_start, .accepted = ++iteration};
      break;
    case 'l':
      report.kind = ReportKind::tool_timeout;
      report.name = "shell";
      report.timeout = ToolTimeoutFacts{.limit = Millis{1'000}, .elapsed = Millis{1'500}};
      break;
    case 'E':
      report.kind = ReportKind::end;
      report.detail = Outcome{};
      break;
    default:
      std::cerr << "no event is called " << letter << '\n';
      std::abort();
  }
  return report;
}

}  // namespace

std::vector<Event> events_of(std::string_view letters) {
  std::vector<Event> events;
  Instant tick = scenario_start;
  std::int64_t iteration = 0;
  bool ended = false;
  for (const char letter : letters) {
    if (letter == ' ') continue;
    if (letter == '+') {
      tick += Millis{10'000};
      continue;
    }
    tick += Millis{1'000};
    Event event{.seq = static_cast<Seq>(events.size()) + 1, .session = 1, .tick = tick};
    event.at = WallTime{tick.time_since_epoch()};
    event.report = report_of(letter, iteration, tick);
    event.late = ended && letter != '!';
    ended = letter == 'E' || (ended && letter != '!');
    events.push_back(std::move(event));
  }
  return events;
}

Replayed replay(const std::vector<Event>& events, const Policy& policy) {
  Replayed replayed;
  replayed.judged.session = 1;
  replayed.judged.policy.set(policy);
  replayed.now = scenario_start;
  for (const auto& event : events) {
    replayed.judged.fold(event, replayed.changes);
    replayed.now = event.tick;
  }
  return replayed;
}

Replayed replay(std::string_view letters, const Policy& policy) {
  return replay(events_of(letters), policy);
}

std::string path_of(const Replayed& replayed) {
  std::string path;
  for (const auto& change : replayed.changes) {
    if (!path.empty()) path += ' ';
    path += name_of(change.health.kind);
  }
  return path;
}

unsigned random_seed() {
  static const unsigned seed = [] {
    const char* chosen = std::getenv("WATCHDOG_SEED");
    const unsigned value = chosen != nullptr
                               ? static_cast<unsigned>(std::strtoul(chosen, nullptr, 10))
                               : std::random_device{}();
    std::cout << "random tests: WATCHDOG_SEED=" << value << std::endl;
    return value;
  }();
  return seed;
}

namespace {

#if defined(__has_feature)
constexpr bool is_sanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool is_sanitized = true;
#else
constexpr bool is_sanitized = false;
#endif

}  // namespace

int repetitions(int whole, int share) {
  if (std::getenv("WATCHDOG_FULL") != nullptr) return whole;
  if (is_sanitized) share *= 5;
  return std::max(1, whole / share);
}

}  // namespace watchdog::test
