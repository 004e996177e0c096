// What is concluded of servers that work, slowly or not, and of servers that do not, from looks at
// them: each scenario in random variants.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <sstream>

#include "proxy/server_looker.h"
#include "support/scenario.h"

namespace watchdog::test {
namespace {

using S = ServerState;

constexpr Millis hour{3'600'000};
constexpr Millis day = 24 * hour;

/// One random case: the server, the request that is watched, and what else goes on.
struct Variant {
  unsigned seed = 0;
  std::mt19937_64 random{seed};
  SimulatedModel model;
  SimulatedRequest request;
  Standpoint from;
  int others = 0;                ///< Requests of other people, before and while ours is open,
  bool others_are_ours = false;  ///< seen as ours is.
  std::optional<SimulatedFault> fault;
  Millis ends_after = day;           ///< Virtual time that is watched at most,
  Millis given_up_after = 6 * hour;  ///< and that since the fault.

  explicit Variant(unsigned chosen) : seed(chosen) {}

  double between(double low, double high) {
    return std::exp(std::uniform_real_distribution<>(std::log(low), std::log(high))(random));
  }
  std::int64_t whole(double low, double high) {
    return static_cast<std::int64_t>(between(low, high));
  }
  bool maybe(double share) { return std::bernoulli_distribution(share)(random); }
};

std::string text_of(const Variant& v) {
  std::ostringstream out;
  out << "seed " << v.seed << ": " << name_of(v.model.build)
      << (v.from.is_local ? ", local" : ", remote") << (v.from.has_slots ? ", slots" : "")
      << (v.from.has_metrics ? ", metrics" : "") << ", " << v.model.slots << " slots, batch "
      << v.model.batch << ", " << v.model.read_rate << " and " << v.model.write_rate
      << " tokens/s, jitter " << v.model.jitter << ", cpu " << v.model.busy_cpu << ", loads "
      << v.model.loading.count() / 1'000 << " s; prompt " << v.request.prompt << " ("
      << v.request.cached << " cached), answer " << v.request.answer
      << (v.request.stream ? ", stream" : "") << (v.request.return_progress ? ", progress" : "")
      << "; others " << v.others << (v.others_are_ours ? " (ours)" : "");
  if (v.fault)
    out << "; " << name_of(v.fault->kind) << " in " << name_of(v.fault->phase) << " after "
        << v.fault->after << (v.fault->slots_answer ? ", slots answer" : "") << ", cpu "
        << v.fault->cpu;
  return out.str();
}

Variant variant(unsigned seed) {
  Variant v(seed);
  v.model = {.build = static_cast<ServerBuild>(v.random() % 4),
             .slots = 1 + static_cast<int>(v.random() % 4),
             .batch = v.whole(32, 4'096),
             .read_rate = v.between(0.5, 500),
             .write_rate = v.between(0.5, 500),
             .jitter = v.between(0.01, 0.3),
             .busy_cpu = v.between(0.05, 8),
             .idle_cpu = v.between(0.0005, 0.005)};
  v.request = {.prompt = v.whole(100, 200'000),
               .answer = v.whole(5, 2'000),
               .stream = v.maybe(0.8),
               .return_progress = true};
  // Nobody waits for longer than a working day.
  v.request.prompt =
      std::min(v.request.prompt, static_cast<std::int64_t>(v.model.read_rate * 20'000));
  v.request.answer =
      std::min(v.request.answer, static_cast<std::int64_t>(v.model.write_rate * 10'000));
  if (v.maybe(0.3)) v.request.cached = v.request.prompt * 9 / 10;
  v.from = {.is_local = v.maybe(0.6), .has_slots = v.maybe(0.9), .has_metrics = v.maybe(0.5)};
  v.others = v.maybe(0.5) ? static_cast<int>(v.random() % 4) : 0;
  v.others_are_ours = v.maybe(0.5);
  return v;
}

/// What came of one.
struct Watched {
  int looks = 0;
  int busy = 0, quiet = 0, hung = 0;  ///< Looks that said so of ours; the last: of anybody's.
  std::string first_hung;
  std::vector<std::string> path;  ///< States of ours, as they changed.
  ServerFinding last;
  std::optional<Millis> hung_after;  ///< Since the fault, ours.
  int hung_looks = 0;                ///< Likewise, in looks.
  bool was_hung_before = false;      ///< Before anything was wrong.
  int looks_before = 0;              ///< Likewise.
  bool is_done = false;
};

std::string path_of(const Watched& watched) {
  std::string all;
  for (std::size_t at = 0; at < watched.path.size(); ++at) {
    if (at > 12) return all + "…";
    all += (at > 0 ? " → " : "") + watched.path[at];
  }
  return all + "\n  last: " + watched.last.why;
}

/// Lets the variant happen and looks at it every 2 … 15 s, rarer while nothing changes.
Watched watch(Variant& v) {
  Instant now{Millis{1'000'000}};
  SimulatedServer server(v.model, now, v.seed);
  if (v.model.build != ServerBuild::ollama) {  // that loads with the first request
    now += v.model.loading + Millis{1};
    server.advance(now);
  }
  ServerLooker looker(server, v.from);
  Watched watched;
  std::vector<std::uint64_t> others;
  const auto other = [&] {
    SimulatedRequest request{
        .prompt = v.whole(100, 20'000), .answer = v.whole(5, 500), .return_progress = true};
    request.prompt = std::min(request.prompt, static_cast<std::int64_t>(v.model.read_rate * 3'000));
    request.answer =
        std::min(request.answer, static_cast<std::int64_t>(v.model.write_rate * 3'000));
    others.push_back(server.submit(request));
    if (v.others_are_ours) looker.opened(others.back());
  };
  const int before =
      v.others > 0 ? static_cast<int>(v.random() % static_cast<unsigned>(v.others + 1)) : 0;
  for (int at = 0; at < before; ++at) other();
  now += v.others > 0 ? Millis{static_cast<std::int64_t>(v.between(1, 60'000))} : Millis{0};
  server.advance(now);
  const bool swallows = v.fault && v.fault->kind == FaultKind::swallow;
  if (swallows) server.fail(*v.fault);
  const std::uint64_t ours = server.submit(v.request);
  if (v.fault && !swallows) {
    if (v.fault->phase != FaultPhase::any || v.fault->kind == FaultKind::stall_slot)
      v.fault->request = ours;
    server.fail(*v.fault);
  }
  looker.opened(ours);
  const Instant began = now;
  std::optional<Instant> failed;
  int failed_looks = 0;
  double interval = 2'000;
  int late = before;
  while (now - began < v.ends_after) {
    interval = looker.has_changed() ? 2'000 : std::min(interval * 1.5, 15'000.0);
    double step = interval * std::uniform_real_distribution<>(0.8, 1.2)(v.random);
    if (v.maybe(0.002)) step = v.between(60'000, 1'000'000);  // who looks was late
    const auto next = now + Millis{static_cast<std::int64_t>(step)};
    // A machine that stands still looks at nothing.
    if (v.fault && v.fault->kind == FaultKind::pause && v.fault->at > now && v.fault->at <= next)
      step += static_cast<double>(v.fault->lasts.count());
    now += Millis{static_cast<std::int64_t>(step)};
    server.advance(now);
    if (late < v.others && v.maybe(0.01)) {
      ++late;
      other();
    }
    if (!v.others_are_ours)
      for (const auto request : others) (void)server.received(request);
    if (!failed && server.has_failed()) failed = now;
    const auto findings = looker.look();
    if (!looker.is_open(ours)) {
      watched.is_done = true;
      break;
    }
    ++watched.looks;
    ++(failed ? failed_looks : watched.looks_before);
    for (const auto& finding : findings) {
      const S state = finding.evidence.state;
      if (state == S::hung) {
        ++watched.hung;
        if (watched.first_hung.empty())
          watched.first_hung = (finding.request == ours ? "ours, " : "another, ") +
                               std::to_string((now - began).count() / 1'000) + " s: " + finding.why;
        watched.was_hung_before = watched.was_hung_before || !failed;
      }
      if (finding.request != ours) continue;
      watched.busy += is_busy(state) ? 1 : 0;
      watched.quiet += state == S::quiet || state == S::unknown ? 1 : 0;
      if (watched.path.empty() || watched.path.back() != name_of(state))
        watched.path.emplace_back(name_of(state));
      if (state == S::hung && failed && !watched.hung_after) {
        watched.hung_after = now - *failed;
        watched.hung_looks = failed_looks;
      }
      watched.last = finding;
    }
    const S told = watched.last.evidence.state;
    const bool is_told =
        watched.hung_after || told == S::restarted || (told == S::gone && failed_looks > 100);
    if (failed && v.fault->kind != FaultKind::pause &&
        (is_told || now - *failed > v.given_up_after))
      break;
  }
  return watched;
}

/// Runs variants of a scenario and tells which of them went wrong, with the reason.
struct Scenario {
  const char* name;
  std::function<void(Variant&)> make;
  std::function<std::string(const Variant&, const Watched&)> wrong;  ///< Empty: it is right.
};

void run(const Scenario& scenario) {
  const int variants = repetitions(1'000);
  int wrong = 0;
  std::int64_t looks = 0, busy = 0, quiet = 0;
  for (int at = 0; at < variants; ++at) {
    Variant v = variant(random_seed() + static_cast<unsigned>(at));
    scenario.make(v);
    const Watched watched = watch(v);
    looks += watched.looks;
    busy += watched.busy;
    quiet += watched.quiet;
    const std::string why = scenario.wrong(v, watched);
    if (why.empty()) continue;
    if (++wrong <= 5)
      ADD_FAILURE() << scenario.name << ": " << why << "\n  " << text_of(v) << "\n  "
                    << path_of(watched);
  }
  EXPECT_EQ(wrong, 0) << scenario.name << ": of " << variants;
  std::cout << scenario.name << ": " << variants << " variants, " << looks << " looks, busy in "
            << busy << ", quiet or unknown in " << quiet << std::endl;
}

/// Slow, and nothing worse: where its process is seen it is busy all the way. The first look has
/// nothing to compare with, and the next none to be late against.
std::string slow(const Variant& v, const Watched& watched) {
  if (watched.hung > 0) return "hung: " + watched.first_hung;
  if (v.from.is_local && watched.busy + 2 < watched.looks)
    return std::to_string(watched.looks - watched.busy) + " of " + std::to_string(watched.looks) +
           " looks found it not busy";
  return {};
}

TEST(Slow, a_long_prompt_is_being_read) {
  run({"long prompt",
       [](Variant& v) {
         v.request.prompt = static_cast<std::int64_t>(v.model.read_rate * v.between(600, 30'000));
         v.request.cached = v.maybe(0.3) ? v.request.prompt / 3 : 0;
         v.others = 0;
       },
       slow});
}

TEST(Slow, an_answer_is_written_token_by_token) {
  run({"slow answer",
       [](Variant& v) {
         v.model.write_rate = v.between(0.01, 2);
         v.request.answer = std::max<std::int64_t>(
             5, static_cast<std::int64_t>(v.model.write_rate * v.between(600, 30'000)));
         v.others = 0;
       },
       slow});
}

TEST(Slow, batches_take_minutes) {
  run({"slow batches",
       [](Variant& v) {
         v.model.read_rate = static_cast<double>(v.model.batch) / v.between(60, 300);
         v.request.prompt = v.model.batch * v.whole(2, 60);
         v.request.cached = 0;
       },
       slow});
}

TEST(Slow, one_batch_takes_an_hour) {
  run({"hour-long batches",
       [](Variant& v) {
         v.model.read_rate = static_cast<double>(v.model.batch) / v.between(1'000, 5'000);
         v.request.prompt = v.model.batch * v.whole(2, 10);
         v.request.cached = 0;
         v.others = 0;
       },
       slow});
}

TEST(Slow, it_waits_for_its_turn) {
  run({"queue",
       [](Variant& v) {
         v.model.slots = 1;
         v.others = 4;
       },
       slow});
}

TEST(Slow, the_model_is_loaded_first) {
  run({"loading",
       [](Variant& v) {
         v.model.loading = Millis{v.whole(10'000, 7'200'000)};
         if (v.maybe(0.7)) v.model.build = ServerBuild::ollama;
         if (v.model.build != ServerBuild::ollama) v.model.sleep_after = Millis{600'000};
         v.request.prompt = std::min<std::int64_t>(v.request.prompt, 5'000);
         v.others = 0;
       },
       slow});
}

TEST(Slow, an_old_build_says_nothing_while_it_reads) {
  run({"old build",
       [](Variant& v) {
         v.model.build = ServerBuild::llama_cpp_2025;
         v.model.batch = v.whole(512, 4'096);
       },
       slow});
}

TEST(Slow, anything_at_all) {
  run({"anything slow", [](Variant&) {}, slow});
}

TEST(Slow, the_machine_sleeps_in_between) {
  run({"machine paused",
       [](Variant& v) {
         const auto works = static_cast<double>(v.request.prompt) / v.model.read_rate;
         v.fault = {.kind = FaultKind::pause,
                    .at = Instant{Millis{1'000'000 + v.whole(1'000, works * 1'000 + 2'000)}},
                    .lasts = Millis{v.whole(60'000, 8 * hour.count())}};
         v.others = 0;
       },
       slow});
}

/// The longest that it may take to find a hang: some looks, and patience for what may have been a
/// batch before.
Millis bound(const Variant& v) {
  const double batch =
      static_cast<double>(v.model.batch) / v.model.read_rate + 1 / v.model.write_rate;
  const double gap = 4 * std::max(60.0, 1.3 * batch + 30);
  const double looks = 300 + 1'000;    // one of them may be late
  if (v.others > 0) return 12 * hour;  // how long it waited for them may count as its pace
  return Millis{static_cast<std::int64_t>((1.5 * gap + looks) * 1'000)} * (v.from.is_local ? 1 : 4);
}

/// A fault of the given kind in the middle of what our request does.
void break_it(Variant& v, FaultKind kind, FaultPhase phase) {
  v.fault = {
      .kind = kind, .phase = phase, .slots_answer = v.maybe(0.5), .cpu = v.between(0.0001, 0.01)};
  if (phase == FaultPhase::reading) {
    v.fault->after =
        v.request.cached +
        static_cast<std::int64_t>(static_cast<double>(v.request.prompt - v.request.cached) *
                                  v.between(0.01, 0.9));
  } else {
    v.fault->after = v.whole(1, static_cast<double>(v.request.answer));
  }
  v.given_up_after = 2 * bound(v);
}

/// Where its process is seen, or that its slot alone is at work and writes, a hang is found, and
/// proved.
std::string found(const Variant& v, const Watched& watched) {
  if (watched.was_hung_before) return "hung before anything was wrong: " + watched.first_hung;
  if (watched.is_done) return {};  // the fault came too late
  const bool shows_slot = v.from.has_slots && v.fault->slots_answer && v.others == 0 &&
                          v.model.build == ServerBuild::llama_cpp;
  if (!v.from.is_local && !(shows_slot && v.fault->phase == FaultPhase::writing)) return {};
  if (!watched.hung_after) return "not found";
  const std::string& why = watched.last.why;
  const char* proof = v.from.is_local ? "its process has done nothing" : "stands still";
  if (why.find(proof) == std::string::npos) return "found for another reason";
  if (*watched.hung_after > bound(v))
    return "found after " + std::to_string(watched.hung_after->count() / 1'000) + " s, " +
           std::to_string(watched.hung_looks) + " looks";
  return {};
}

TEST(Hung, in_the_middle_of_an_answer) {
  run({"hang while writing", [](Variant& v) { break_it(v, FaultKind::hang, FaultPhase::writing); },
       found});
}

TEST(Hung, in_the_middle_of_a_prompt) {
  run({"hang while reading", [](Variant& v) { break_it(v, FaultKind::hang, FaultPhase::reading); },
       found});
}

TEST(Hung, a_request_that_was_swallowed) {
  run({"swallowed",
       [](Variant& v) {
         v.fault = {.kind = FaultKind::swallow, .cpu = v.maybe(0.5) ? 0.23 : 0.001};
         v.model.build = v.maybe(0.5) ? ServerBuild::llama_cpp : ServerBuild::ollama;
         v.model.loading = Millis{0};
         v.others = v.model.build == ServerBuild::ollama ? 1 : 0;
       },
       [](const Variant& v, const Watched& watched) -> std::string {
         if (watched.was_hung_before) return "hung before anything was wrong";
         if (!v.from.is_local || !v.from.has_slots) return {};
         if (!watched.hung_after) return "not found";
         if (watched.last.why.find("swallowed") == std::string::npos) return "not named";
         return {};
       }});
}

TEST(Hung, never_where_the_process_computes_and_nothing_else_tells) {
  run({"livelock",
       [](Variant& v) {
         break_it(v, FaultKind::hang, v.maybe(0.5) ? FaultPhase::reading : FaultPhase::writing);
         v.fault->cpu = 1;
         v.fault->slots_answer = false;
         v.from.is_local = true;
         v.others = 0;
         v.given_up_after = 6 * hour;
       },
       [](const Variant&, const Watched& watched) -> std::string {
         if (watched.hung > 0) return "hung: " + watched.first_hung;
         if (!watched.is_done && watched.last.evidence.state != S::working) return "not working";
         return {};
       }});
}

TEST(Hung, no_other_request_when_one_slot_stalls) {
  run({"stalled slot",
       [](Variant& v) {
         break_it(v, FaultKind::stall_slot, FaultPhase::writing);
         v.model.slots = 2 + static_cast<int>(v.random() % 3);
         v.others = 3;
       },
       [](const Variant&, const Watched& watched) -> std::string {
         if (watched.was_hung_before)
           return "hung before anything was wrong: " + watched.first_hung;
         if (watched.first_hung.starts_with("another")) return watched.first_hung;
         return {};
       }});
}

TEST(Restarted, though_the_connection_does_not_tell) {
  for (const bool comes_back : {true, false})
    run({comes_back ? "restart" : "gone",
         [&](Variant& v) {
           break_it(v, comes_back ? FaultKind::restart : FaultKind::gone,
                    v.maybe(0.5) ? FaultPhase::reading : FaultPhase::writing);
           v.fault->lasts = Millis{v.whole(1, 60'000)};
           v.from.notices_loss = false;
           v.others = 0;
           v.model.loading = Millis{v.maybe(0.5) ? 0 : v.whole(1'000, 600'000)};
           if (v.model.build == ServerBuild::ollama) v.model.build = ServerBuild::llama_cpp;
           v.given_up_after = hour;
         },
         [&](const Variant& v, const Watched& watched) -> std::string {
           // From afar a request that is lost looks like one that was swallowed.
           const bool tells = v.from.is_local && watched.looks_before > 0;
           if (watched.hung > 0 && tells) return "hung: " + watched.first_hung;
           // Who never saw the one before cannot tell.
           if (watched.is_done || watched.looks_before == 0) return {};
           const S last = watched.last.evidence.state;
           if (!comes_back) return last == S::gone ? "" : "not gone";
           return last == S::restarted || !v.from.is_local ? "" : "not restarted";
         }});
}

}  // namespace
}  // namespace watchdog::test
