// A session's history stays small, whatever is reported in whatever order. The judgements are the
// same when the events are folded again, and when the history goes on from a snapshot. A history
// that was read from a damaged snapshot can be judged as well.

#include <array>
#include <nlohmann/json.hpp>
#include <random>

#include "codec/facts.h"
#include "fuzz/fuzz.h"
#include "support/agent.h"
#include "watchdog/session.h"

using namespace watchdog;
using nlohmann::json;

namespace {

/// Takes an input apart: zeros where it is over.
class Bytes {
 public:
  explicit Bytes(std::string_view bytes) : bytes_(bytes) {}

  [[nodiscard]] bool empty() const { return at_ == bytes_.size(); }
  std::size_t below(std::size_t bound) {
    const std::size_t byte = empty() ? 0 : static_cast<std::uint8_t>(bytes_[at_++]);
    return byte % bound;
  }
  template <class T, std::size_t n>
  T one_of(const std::array<T, n>& list) {
    return list[below(n)];
  }
  std::string text() {
    static const std::array<std::string, 14> known{
        "",
        "shell",
        "read",
        "self",
        "user",
        R"({"a":1,"path":"x"})",
        R"({"a":2,"path":"y"})",
        R"({"a":)",
        "429 too many requests",
        "\xE6\x88\x91\xE5\xB0\x86 \xC2\xB5s \"\\\n",
        std::string(300, 'x'),
        test::long_text("one"),
        test::long_text("two"),
        "I will now. I will now. I will now. I will now. I will now. I will now. I will now. "};
    const auto choice = below(known.size() + 2);
    if (choice < known.size()) return known[choice];
    std::string some(below(20), ' ');
    for (auto& c : some) c = static_cast<char>(below(128));
    return some;
  }

 private:
  std::string_view bytes_;
  std::size_t at_ = 0;
};

constexpr std::array<std::int64_t, 12> odd_numbers{
    0,         1,         -1,        2,         255,          256, 1'000'000'000,
    INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 1'000'060'000};

PolicyPatch some_patch(Bytes& bytes) {
  PolicyPatch patch;
  patch.stuck_threshold = 2 + static_cast<std::int64_t>(bytes.below(5));
  patch.recovery_changes = 1 + static_cast<std::int64_t>(bytes.below(3));
  patch.heartbeat_interval = Millis{bytes.one_of(std::array{100, 10'000, 3'600'000})};
  patch.call_idle_max = Millis{bytes.one_of(std::array{1'000, 120'000, 604'800'000})};
  patch.usual_interval = Millis{bytes.one_of(std::array{10, 30'000, 604'800'000})};
  patch.tools["read"] = {.use = static_cast<ToolUse>(bytes.below(4)), .identity = {"path"}};
  patch.tools["shell"] = {.use = static_cast<ToolUse>(bytes.below(4))};
  if (bytes.below(2) == 0) {
    const auto pattern = static_cast<Pattern>(bytes.below(pattern_count));
    patch.patterns[pattern] = {.suspect = 1 + static_cast<double>(bytes.below(4)),
                               .stuck = 1 + static_cast<double>(bytes.below(8))};
  }
  return check(patch) ? patch : PolicyPatch{};
}

Detail some_beats(Bytes& bytes) {
  Heartbeats beats{.source = static_cast<Source>(bytes.below(4))};
  beats.count = 1 + static_cast<std::int64_t>(bytes.below(3));
  beats.max_gap = Millis{bytes.below(100) * 1'000};
  if (bytes.below(2) == 0) beats.iteration = beats.iteration_first = bytes.one_of(odd_numbers);
  if (bytes.below(3) == 0) beats.phase = bytes.text();
  if (bytes.below(3) == 0) beats.counters = {{"tokens", static_cast<double>(bytes.below(100))}};
  if (bytes.below(8) == 0)
    beats.counters = {{"odd", static_cast<double>(bytes.one_of(odd_numbers))}};
  return beats;
}

Report some_report(Bytes& bytes, Seq seq) {
  Report report{.kind = static_cast<ReportKind>(bytes.below(std::size(Names<ReportKind>::all)))};
  report.name = bytes.text();
  switch (report.kind) {
    case ReportKind::start:
    case ReportKind::exited:
      report.detail =
          ProcessFacts{.pid = bytes.below(3) == 0 ? bytes.one_of(odd_numbers)
                                                  : static_cast<std::int64_t>(bytes.below(3)),
                       .start_ticks = bytes.one_of(odd_numbers)};
      break;
    case ReportKind::heartbeat:
      report.detail = some_beats(bytes);
      break;
    case ReportKind::tool_call:
    case ReportKind::tool_result:
    case ReportKind::error:
    case ReportKind::tool_timeout:
    case ReportKind::state_change:
    case ReportKind::message:
      report.content = bytes.text();
      report.call_id = bytes.text();
      if (bytes.below(2) == 0) report.turn = bytes.text();
      if (bytes.below(4) == 0) report.hash = bytes.text();
      if (bytes.below(4) == 0) report.deadline = Millis{1 + bytes.below(3) * 100'000'000};
      if (bytes.below(4) == 0) report.expect_quiet = Millis{bytes.below(3) * 300'000'000};
      break;
    case ReportKind::tool_progress:
      report.content = bytes.text();
      report.call_id = bytes.text();
      report.detail = ToolProgress{.accepted = bytes.one_of(odd_numbers)};
      break;
    case ReportKind::evidence:
      report.content = bytes.text();
      report.call_id = bytes.text();
      report.detail = Evidence{
          .state = static_cast<ServerState>(bytes.below(std::size(Names<ServerState>::all))),
          .done = bytes.one_of(odd_numbers),
          .total = bytes.one_of(odd_numbers),
          .left = Millis{bytes.one_of(odd_numbers)}};
      break;
    case ReportKind::turn:
      report.name = bytes.one_of(
          std::array{turn_reports::turn_start, turn_reports::turn_abort, turn_reports::turn_end});
      report.call_id = bytes.text();
      report.detail =
          TurnFacts{.parent = bytes.text(), .depth = static_cast<int>(bytes.one_of(odd_numbers))};
      break;
    case ReportKind::policy:
      report.detail = some_patch(bytes);
      break;
    case ReportKind::cancel:
      report.detail =
          CancelRequest{.by = bytes.text(), .reason = bytes.text(), .turn = bytes.text()};
      break;
    case ReportKind::observer:
      report.detail = ObserverGap{};
      break;
    case ReportKind::budget: {
      BudgetFigures figures;
      figures.steps = bytes.one_of(odd_numbers);
      figures.tokens = bytes.one_of(odd_numbers);
      figures.elapsed = Millis{bytes.one_of(odd_numbers)};
      figures.limits.steps = bytes.one_of(odd_numbers);
      figures.limits.duration = Millis{bytes.one_of(odd_numbers)};
      report.detail = figures;
      break;
    }
    case ReportKind::gap:
      report.detail = LostReports{bytes.one_of(odd_numbers)};
      break;
    case ReportKind::end:
      if (bytes.below(8) != 0) report.kind = ReportKind::retry;  // else most inputs end at once
      report.detail = Outcome{.kind = static_cast<OutcomeKind>(bytes.below(4))};
      break;
    case ReportKind::opinion:
      report.detail =
          Opinion{.verdict = static_cast<Verdict>(bytes.below(5)),
                  .confidence = static_cast<double>(bytes.below(11)) / 10,
                  .seen = static_cast<Seq>(bytes.below(static_cast<std::size_t>(seq) + 1))};
      break;
    default:
      break;
  }
  if (report.kind == ReportKind::retry) report.detail = {};
  return report;
}

bool is_small(const Case& judged) {
  const auto& history = judged.history;
  const auto& repetition = *history.repetition;
  return history.open_calls->size() <= open_calls_max &&
         history.notes->turns->size() <= open_turns_max &&
         history.pace->samples.size() <= Pace::kinds_max + 1 &&
         repetition.steps.size() <= Repetition::steps_max &&
         repetition.known_steps.digests.size() <= Known::digests_max &&
         repetition.known_states.digests.size() <= Known::digests_max &&
         repetition.round.calls.size() <= 16 && repetition.tool.size() <= 64 &&
         history.last_change_type.size() <= 64;
}

/// The judgement holds for a while, and can be put into words.
void look_at(const Case& judged, Instant now) {
  FUZZ_REQUIRE(is_small(judged));
  if (is_end(judged.history.lifecycle)) return;
  FUZZ_REQUIRE(judged.health.valid_until > now);
  FUZZ_REQUIRE(!reason_of(judged.health, judged.history, *judged.policy).empty());
}

void expect_same(const std::vector<Transition>& some, const std::vector<Transition>& others) {
  FUZZ_REQUIRE(some.size() == others.size());
  for (std::size_t i = 0; i < some.size(); ++i) {
    FUZZ_REQUIRE(some[i].health.same_as(others[i].health) && some[i].tick == others[i].tick &&
                 some[i].reason == others[i].reason &&
                 some[i].policy_digest == others[i].policy_digest);
  }
}

/// Another value somewhere in a snapshot, or another length.
void damage(json& snapshot, Bytes& bytes) {
  json* list = nullptr;
  json* at = &snapshot;
  while (at->is_structured() && !at->empty()) {
    if (at->is_array()) list = at;
    at = &*std::next(at->begin(), static_cast<std::ptrdiff_t>(bytes.below(at->size())));
  }
  switch (list == nullptr ? 3 : bytes.below(16)) {
    case 0:
      list->erase(bytes.below(list->size()));
      break;
    case 1:
      list->insert(list->end(), bytes.one_of(std::array{1, 32, 300}), json(list->front()));
      break;
    case 2:
      *at = bytes.text();
      break;
    default:
      if (at->is_boolean()) {
        *at = !at->get<bool>();
      } else if (at->is_number_float()) {
        *at = bytes.one_of(std::array{0.0, -1.0, 1e-300, 1e300});
      } else {
        *at = bytes.one_of(odd_numbers);
      }
  }
}

/// Judges later events with a history that was read from a snapshot.
void go_on(Case judged, const std::vector<Event>& events, Instant now) {
  std::vector<Transition> changes;
  for (auto event : events) {
    event.tick += now - events.front().tick;
    if (event.tick < judged.history.tick) continue;  // the store's do not run backwards
    judged.fold(event, changes);
    look_at(judged, event.tick);
  }
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  // Calls and results by turns, heartbeats, states, and some of everything.
  std::vector<std::string> seeds(4);
  for (char i = 0; i < 20; ++i) {
    seeds[0] += {0, 1, 3, 1, 5, 0, 1, 1, 1, 1, 4, 1, 5, 0, 1, 1, 1};
    seeds[1] += {0, 2, 1, 0, 2, 1, 1, 1, 2, 1, 1};
    seeds[2] += {0, 1, 2, 1, static_cast<char>(5 + i % 2), 0, 1, 1, 1};
    seeds[3] += {0, static_cast<char>(i % 9), i, 1, 2, 3, 4, 5, 6, 7};
  }
  return seeds;
}

void try_input(std::string_view input) {
  constexpr std::size_t events_max = 100;
  constexpr std::array<std::int64_t, 9> pauses{
      0, 1, 100, 5'000, 60'000, 1'000'000, 86'400'000, 1'000'000'000, 30'000'000'000};
  Bytes bytes(input);
  test::Agent agent(bytes.below(2) == 0 ? Policy{} : patched(Policy{}, some_patch(bytes)));
  const Policy policy = *agent.judged.policy;
  const auto restart_at = bytes.below(events_max);
  std::optional<Case> restarted;
  std::vector<Transition> later;
  std::size_t known = 0;
  std::string snapshot;

  while (!bytes.empty() && agent.events.size() < events_max) {
    const auto pause = Millis{bytes.one_of(pauses)};
    auto report = some_report(bytes, agent.seq);
    if (auto* absence = std::get_if<ObserverGap>(&report.detail)) {
      absence->gap = pause;  // nobody looked
      agent.now += pause;
    } else {
      agent.pass(pause);
      look_at(agent.judged, agent.now);
    }
    agent.say(std::move(report));
    look_at(agent.judged, agent.now);
    if (restarted) {
      restarted->fold(agent.events.back(), later);
    } else if (agent.events.size() > restart_at || bytes.empty()) {
      snapshot = snapshot_of(agent.judged);
      restarted.emplace().session = agent.judged.session;
      const auto read = read_snapshot(*restarted, snapshot);
      if (!read) std::fprintf(stderr, "%s\n", read.error().message.c_str());
      FUZZ_REQUIRE(read.ok());
      FUZZ_REQUIRE(snapshot_of(*restarted) == snapshot);
      known = agent.changes.size();
    }
  }
  if (!restarted) return;
  agent.pass(Millis{1});
  restarted->expire(agent.now, later);
  expect_same({agent.changes.begin() + static_cast<std::ptrdiff_t>(known), agent.changes.end()},
              later);
  FUZZ_REQUIRE(snapshot_of(*restarted) == snapshot_of(agent.judged));

  test::Agent again(policy);
  for (const auto& event : agent.events) again.judged.fold(event, again.changes);
  again.judged.expire(agent.now, again.changes);
  expect_same(again.changes, agent.changes);

  std::mt19937 random(static_cast<unsigned>(std::hash<std::string>{}(snapshot)));
  std::string dice(64, ' ');
  for (auto& byte : dice) byte = static_cast<char>(random());
  Bytes damages(dice);
  auto damaged = json::parse(snapshot);
  for (auto times = 1 + damages.below(3); times > 0; --times) damage(damaged, damages);
  Case read;
  read.session = agent.judged.session;
  if (read_snapshot(read, damaged.dump())) go_on(std::move(read), agent.events, agent.now);
  snapshot[damages.below(256) * snapshot.size() / 256] = static_cast<char>(damages.below(256));
  if (read_snapshot(read, snapshot)) go_on(std::move(read), agent.events, agent.now);
}
