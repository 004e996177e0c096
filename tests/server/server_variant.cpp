#include "server/server_variant.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

namespace watchdog::test {

double Variant::between(double low, double high) {
  return std::exp(std::uniform_real_distribution<>(std::log(low), std::log(high))(random));
}

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

Variant variant(unsigned seed, double wait_days) {
  Variant v(seed);
  v.wait_days = wait_days;
  v.model = {.build = static_cast<ServerBuild>(v.random() % 4),
             .slots = 1 + static_cast<int>(v.random() % 4),
             .batch = v.whole(32, 4'096),
             .read_rate = v.between(0.5, 500),
             .write_rate = v.between(0.5, 500),
             .jitter = v.between(0.01, 0.3),
             .busy_cpu = v.between(0.05, 8),
             .idle_cpu = v.between(0.0005, 0.005)};
  v.request = {.prompt = v.whole(100, 200'000),
               .answer = v.whole(5, 2'000 * wait_days),
               .stream = v.maybe(0.8),
               .return_progress = true};
  // Nobody waits for longer than a working day.
  v.request.prompt =
      std::min(v.request.prompt, static_cast<std::int64_t>(v.model.read_rate * 20'000 * wait_days));
  v.request.answer = std::min(v.request.answer,
                              static_cast<std::int64_t>(v.model.write_rate * 10'000 * wait_days));
  if (v.maybe(0.3)) v.request.cached = v.request.prompt * 9 / 10;
  v.from = {.is_local = v.maybe(0.6), .has_slots = v.maybe(0.9), .has_metrics = v.maybe(0.5)};
  v.others = v.maybe(0.5) ? static_cast<int>(v.random() % 4) : 0;
  v.others_are_ours = v.maybe(0.5);
  return v;
}

Millis bound_of(const Variant& v) {
  const double batch =
      static_cast<double>(v.model.batch) / v.model.read_rate + 1 / v.model.write_rate;
  const double gap = 4 * std::max(60.0, 1.3 * batch + 30);
  const double looks = 300 + 1'000;    // one of them may be late
  if (v.others > 0) return 12 * hour;  // how long it waited for them may count as its pace
  return Millis{static_cast<std::int64_t>((1.5 * gap + looks) * 1'000)} * (v.from.is_local ? 1 : 4);
}

namespace {

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
  v.given_up_after = 2 * bound_of(v);
}

void lose_it(Variant& v, FaultKind kind) {
  break_it(v, kind, v.maybe(0.5) ? FaultPhase::reading : FaultPhase::writing);
  v.fault->lasts = Millis{v.whole(1, 60'000)};
  v.from.notices_loss = false;
  v.others = 0;
  v.model.loading = Millis{v.maybe(0.5) ? 0 : v.whole(1'000, 600'000)};
  if (v.model.build == ServerBuild::ollama) v.model.build = ServerBuild::llama_cpp;
  v.given_up_after = hour;
}

}  // namespace

void long_prompt(Variant& v) {
  v.request.prompt =
      static_cast<std::int64_t>(v.model.read_rate * v.between(600, 30'000 * v.wait_days));
  v.request.cached = v.maybe(0.3) ? v.request.prompt / 3 : 0;
  v.others = 0;
}

void slow_answer(Variant& v) {
  v.model.write_rate = v.between(0.01, 2);
  v.request.answer = std::max<std::int64_t>(
      5, static_cast<std::int64_t>(v.model.write_rate * v.between(600, 30'000 * v.wait_days)));
  v.others = 0;
}

void slow_batches(Variant& v) {
  v.model.read_rate = static_cast<double>(v.model.batch) / v.between(60, 300);
  v.request.prompt = v.model.batch * v.whole(2, 60 * v.wait_days);
  v.request.cached = 0;
}

void hour_long_batches(Variant& v) {
  v.model.read_rate = static_cast<double>(v.model.batch) / v.between(1'000, 5'000);
  v.request.prompt = v.model.batch * v.whole(2, 10);
  v.request.cached = 0;
  v.others = 0;
}

void queue(Variant& v) {
  v.model.slots = 1;
  v.others = 4;
}

void loading(Variant& v) {
  v.model.loading = Millis{v.whole(10'000, 7'200'000)};
  if (v.maybe(0.7)) v.model.build = ServerBuild::ollama;
  if (v.model.build != ServerBuild::ollama) v.model.sleep_after = Millis{600'000};
  v.request.prompt = std::min<std::int64_t>(v.request.prompt, 5'000);
  v.others = 0;
}

void old_build(Variant& v) {
  v.model.build = ServerBuild::llama_cpp_2025;
  v.model.batch = v.whole(512, 4'096);
}

void anything(Variant& /*v*/) {}

void machine_paused(Variant& v) {
  const auto works = static_cast<double>(v.request.prompt) / v.model.read_rate;
  v.fault = {.kind = FaultKind::pause,
             .at = Instant{Millis{1'000'000 + v.whole(1'000, works * 1'000 + 2'000)}},
             .lasts = Millis{v.whole(60'000, 8 * hour.count())}};
  v.others = 0;
}

void hang_while_writing(Variant& v) {
  break_it(v, FaultKind::hang, FaultPhase::writing);
}

void hang_while_reading(Variant& v) {
  break_it(v, FaultKind::hang, FaultPhase::reading);
}

void stopped(Variant& v) {
  // Quick: it moves every 5 s at least, and has done so for a while.
  v.model.read_rate = static_cast<double>(v.model.batch) / v.between(0.1, 3.5);
  v.model.write_rate = v.between(0.4, 100);
  v.model.slots = 4;
  v.request = {.prompt = v.model.batch * v.whole(40, 100),
               .answer = static_cast<std::int64_t>(v.model.write_rate * v.between(200, 1'000)),
               .return_progress = true};
  const bool reads = v.model.build == ServerBuild::llama_cpp && v.maybe(0.5);
  v.fault = {.kind = FaultKind::stop,
             .phase = reads ? FaultPhase::reading : FaultPhase::writing,
             .after = (reads ? v.request.prompt : v.request.answer) * v.whole(30, 95) / 100,
             .shows = v.maybe(0.5)};
  v.from = {.is_local = true, .has_slots = v.maybe(0.9), .has_metrics = v.maybe(0.5)};
  v.others = 0;
  v.looks_late = false;
  v.given_up_after = hour;
}

void swallowed(Variant& v) {
  v.fault = {.kind = FaultKind::swallow, .cpu = v.maybe(0.5) ? 0.23 : 0.001};
  v.model.build = v.maybe(0.5) ? ServerBuild::llama_cpp : ServerBuild::ollama;
  v.model.loading = Millis{0};
  v.others = v.model.build == ServerBuild::ollama ? 1 : 0;
}

void livelock(Variant& v) {
  break_it(v, FaultKind::hang, v.maybe(0.5) ? FaultPhase::reading : FaultPhase::writing);
  v.fault->cpu = 1;
  v.fault->slots_answer = false;
  v.from.is_local = true;
  v.others = 0;
  v.given_up_after = Millis{static_cast<std::int64_t>(v.wait_days * 21'600'000)};
}

void stalled_slot(Variant& v) {
  break_it(v, FaultKind::stall_slot, FaultPhase::writing);
  v.model.slots = 2 + static_cast<int>(v.random() % 3);
  v.others = 3;
}

void restart(Variant& v) {
  lose_it(v, FaultKind::restart);
}

void gone(Variant& v) {
  lose_it(v, FaultKind::gone);
}

std::string path_of(const Seen& seen) {
  std::string all;
  for (std::size_t at = 0; at < seen.path.size(); ++at) {
    if (at > 12) return all + "…";
    all += (at > 0 ? " → " : "") + seen.path[at];
  }
  return all + "\n  last: " + seen.last.why;
}

Seen watch(Variant& v, Watcher* watcher) {
  Instant now{Millis{1'000'000}};
  SimulatedServer server(v.model, now, v.seed);
  if (v.model.build != ServerBuild::ollama) {  // that loads with the first request
    now += v.model.loading + Millis{1};
    server.advance(now);
  }
  ServerSampler::FindingSink sink;
  if (watcher != nullptr)
    sink = [&](std::uint64_t request, const Piece& piece) { watcher->got(request, piece); };
  ServerSampler sampler(server, v.from, std::move(sink));
  const auto opened = [&](std::uint64_t request, const SimulatedRequest& wanted, bool is_ours) {
    sampler.opened(request, wanted.stream);
    if (watcher != nullptr) watcher->opened(request, wanted, is_ours);
  };
  Seen seen;
  std::vector<std::uint64_t> others;
  const auto other = [&] {
    SimulatedRequest request{
        .prompt = v.whole(100, 20'000), .answer = v.whole(5, 500), .return_progress = true};
    request.prompt = std::min(request.prompt, static_cast<std::int64_t>(v.model.read_rate * 3'000));
    request.answer =
        std::min(request.answer, static_cast<std::int64_t>(v.model.write_rate * 3'000));
    others.push_back(server.submit(request));
    if (v.others_are_ours) opened(others.back(), request, /*is_ours=*/false);
  };
  const int before =
      v.others > 0 ? static_cast<int>(v.random() % static_cast<unsigned>(v.others + 1)) : 0;
  if (watcher != nullptr) watcher->passed(now);
  for (int at = 0; at < before; ++at) other();
  now += v.others > 0 ? Millis{static_cast<std::int64_t>(v.between(1, 60'000))} : Millis{0};
  server.advance(now);
  if (watcher != nullptr) watcher->passed(now);
  const bool swallows = v.fault && v.fault->kind == FaultKind::swallow;
  if (swallows) server.fail(*v.fault);
  const std::uint64_t ours = server.submit(v.request);
  if (v.fault && !swallows) {
    if (v.fault->phase != FaultPhase::any || v.fault->kind == FaultKind::stall_slot)
      v.fault->request = ours;
    server.fail(*v.fault);
  }
  opened(ours, v.request, /*is_ours=*/true);
  const Instant began = now;
  std::optional<Instant> failed;
  int failed_looks = 0;
  ProbeRhythm rhythm;
  int late = before;
  while (now - began < v.ends_after) {
    double step = static_cast<double>(rhythm.wait().count()) *
                  std::uniform_real_distribution<>(0.8, 1.2)(v.random);
    if (v.looks_late && v.maybe(0.002)) step = v.between(60'000, 1'000'000);  // who looks was late
    const auto next = now + Millis{static_cast<std::int64_t>(step)};
    // A machine that stands still looks at nothing.
    const bool pauses = v.fault && v.fault->kind == FaultKind::pause;
    if (pauses && v.fault->at > now && v.fault->at <= next)
      step += static_cast<double>(v.fault->lasts.count());
    const auto to = now + Millis{static_cast<std::int64_t>(step)};
    for (now += Watcher::step; watcher != nullptr && now < to; now += Watcher::step) {
      if (pauses && now >= v.fault->at && now < v.fault->at + v.fault->lasts) continue;
      server.advance(now);
      watcher->passed(now);
      sampler.hear();
    }
    now = to;
    server.advance(now);
    if (watcher != nullptr) watcher->passed(now);
    if (late < v.others && v.maybe(0.01)) {
      ++late;
      other();
    }
    if (!v.others_are_ours)
      for (const auto request : others) (void)server.received(request);
    if (!failed && server.has_failed()) failed = now;
    const auto findings = sampler.look(rhythm.may_ask(now));
    const auto took = server.now() - now;
    now = server.now();
    rhythm.looked({.ended = now,
                   .took = took,
                   .in_vain = took,
                   .changed = sampler.has_changed(),
                   .asked = sampler.has_asked(),
                   .unanswered = sampler.is_unanswered()});
    if (!sampler.is_open(ours)) {
      seen.is_done = true;
      break;
    }
    ++seen.looks;
    ++(failed ? failed_looks : seen.looks_before);
    for (const auto& finding : findings) {
      const ServerState state = finding.evidence.state;
      if (watcher != nullptr) watcher->found(finding);
      if (state == ServerState::hung) {
        ++seen.hung;
        if (seen.first_hung.empty())
          seen.first_hung = (finding.request == ours ? "ours, " : "another, ") +
                            std::to_string((now - began).count() / 1'000) + " s: " + finding.why;
        seen.was_hung_before = seen.was_hung_before || !failed;
      }
      if (finding.request != ours) continue;
      seen.busy += is_busy(state) ? 1 : 0;
      if (failed && is_busy(state)) seen.busy_until = now - *failed;
      seen.quiet += state == ServerState::quiet || state == ServerState::unknown ? 1 : 0;
      if (seen.path.empty() || seen.path.back() != name_of(state))
        seen.path.emplace_back(name_of(state));
      if (state == ServerState::hung && failed && !seen.hung_after) {
        seen.hung_after = now - *failed;
        seen.hung_looks = failed_looks;
      }
      seen.last = finding;
    }
    const ServerState reported = seen.last.evidence.state;
    const bool is_shown = seen.hung_after || reported == ServerState::restarted ||
                          (reported == ServerState::gone && failed_looks > 100);
    if (failed && v.fault->kind != FaultKind::pause &&
        (is_shown || now - *failed > v.given_up_after))
      break;
  }
  return seen;
}

}  // namespace watchdog::test
