#include "tools/batch.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "tools/tool_arguments.h"

namespace watchdog {
namespace {

constexpr Millis stall_min{1'000};
constexpr Millis wait_longest{3'600'000};

Instant plus(Instant at, Millis time) {
  return time > never - at ? never : at + time;
}

}  // namespace

CallBatch::CallBatch(std::shared_ptr<ToolExecutor::Core> core, std::shared_ptr<Turn::State> turn,
                     std::span<const ToolCall> calls)
    : core_(std::move(core)), turn_(std::move(turn)), wakeup_(std::make_shared<Wakeup>()) {
  entries_.resize(calls.size());
  for (std::size_t at = 0; at < calls.size(); ++at) {
    entries_[at].asked = &calls[at];
    entries_[at].key = calls[at].id.empty() ? "call " + std::to_string(at) : calls[at].id;
  }
  const std::lock_guard guard(core_->mutex);
  core_->batches.insert(wakeup_);
}

CallBatch::~CallBatch() {
  const std::lock_guard guard(core_->mutex);
  core_->batches.erase(wakeup_);
}

std::vector<CallReport> CallBatch::run() {
  try {
    turn_->scope.wake(wakeup_);
    std::vector<ToolCall> calls;
    calls.reserve(entries_.size());
    for (const auto& entry : entries_) calls.push_back(*entry.asked);
    std::size_t number = 0;
    for (const auto& wave : plan_waves(calls, *core_->parts.tools)) {
      for (const auto at : wave.calls) entries_[at].wave = number;
      run_wave(wave);
      ++number;
    }
  } catch (...) {
    fail_all();
  }
  std::vector<CallReport> reports;
  reports.reserve(entries_.size());
  for (auto& entry : entries_) reports.push_back(std::move(entry.report));
  return reports;
}

void CallBatch::run_wave(const Wave& wave) {
  std::size_t next = 0;
  flying_.clear();
  while (true) {
    const auto now = core_->now();
    commit_left_ = core_->options.commit_grace;
    while (next < wave.calls.size() && flying_.size() < core_->options.parallel_max) {
      auto& entry = entries_[wave.calls[next]];
      admit(entry, now);
      if (entry.stage != Stage::done) flying_.push_back(wave.calls[next]);
      ++next;
    }
    for (const auto at : flying_) step(entries_[at], now);
    const auto before = flying_.size();
    flying_.erase(std::remove_if(flying_.begin(), flying_.end(),
                                 [&](std::size_t at) { return entries_[at].stage == Stage::done; }),
                  flying_.end());
    if (flying_.empty() && next == wave.calls.size()) return;
    if (flying_.size() == before || next == wave.calls.size()) wait(core_->now());
  }
}

void CallBatch::step(Entry& entry, Instant now) {
  if (entry.stage == Stage::waiting) await_resources(entry, now);
  if (entry.stage == Stage::ready) start(entry, now);
  if (entry.stage == Stage::started) watch(entry, core_->now());
}

std::optional<ToolDenied> CallBatch::refusal(const Entry& entry) const {
  const auto& name = entry.call.tool;
  const auto is_twin = [&](const Entry& other) {
    return &other < &entry && other.key == entry.key;
  };
  if (std::any_of(entries_.begin(), entries_.end(), is_twin)) {
    return ToolDenied{DenyReason::duplicate_call,
                      "a call of this id is in the same answer already"};
  }
  if (!entry.tool) {
    return ToolDenied{DenyReason::unknown_tool, "there is no tool of this name"};
  }
  const auto& spec = entry.tool->spec();
  if (!is_object(entry.call.arguments)) {
    return ToolDenied{DenyReason::invalid_arguments, "its arguments are no JSON object"};
  }
  if (turn_->options.final && !spec.allowed_in_final_turn) {
    return ToolDenied{DenyReason::final_turn, "this is the last step: answer now, without tools"};
  }
  if (core_->parts.policy) {
    std::string why;
    try {
      why = core_->parts.policy(entry.call);
    } catch (...) {
      why = "whether it is allowed cannot be told";
    }
    if (!why.empty()) return ToolDenied{DenyReason::policy, std::move(why)};
  }
  {
    const std::lock_guard guard(turn_->mutex);
    if (const auto off = turn_->off.find(name); off != turn_->off.end()) {
      return ToolDenied{DenyReason::disabled, off->second};
    }
  }
  if (core_->is_quarantined(name)) {
    return ToolDenied{DenyReason::quarantined,
                      "earlier calls of it still hang and were given up; it is not called again "
                      "until they are back"};
  }
  if (spec.effect != Effect::none && spec.stoppable == Stoppable::not_stoppable && !spec.gated &&
      !core_->options.allow_unfenced) {
    return ToolDenied{DenyReason::policy,
                      "it changes things, cannot be stopped, and does not use the write gate: it "
                      "has to run as a process of its own"};
  }
  return std::nullopt;
}

void CallBatch::admit(Entry& entry, Instant now) {
  entry.queued_at = now;
  entry.call = *entry.asked;
  if (entry.call.arguments.empty()) entry.call.arguments = "{}";
  entry.report.call = *entry.asked;
  entry.report.turn = turn_->id;
  entry.report.wave = entry.wave;
  {
    const std::lock_guard guard(turn_->mutex);
    ++turn_->calls_total;
  }
  if (const auto why = turn_->scope.reason()) {
    return finish(entry, ToolCancelled{.why = *why});
  }
  entry.tool = core_->parts.tools->find(entry.call.tool);
  if (auto denied = refusal(entry)) return finish(entry, std::move(*denied));

  const auto& declared = core_->parts.tools->arguments_of(entry.call.tool);
  entry.hint = take_hint(entry.call.arguments, declared);
  (void)take_wait_for_previous(entry.call.arguments, declared);
  const auto epoch = core_->parts.epochs->next();
  if (!epoch) {
    return finish(entry,
                  ToolFailure{.kind = FailureKind::internal, .message = epoch.error().message});
  }
  entry.report.epoch = *epoch;
  entry.state = std::make_shared<CallState>(entry.call, turn_->id, *core_->options.clock,
                                            turn_->scope.child(CancelScopeKind::call), wakeup_,
                                            WriteGate(*epoch, "wd-" + turn_->id + "-" + entry.key));
  entry.state->budget = turn_->options.budget;
  entry.state->scope.wake(wakeup_);
  {
    const std::lock_guard guard(turn_->mutex);
    turn_->running.emplace(entry.key, entry.state);
  }

  const auto& spec = entry.tool->spec();
  const auto concurrency = concurrency_of(spec);
  std::vector<ResourceKey> keys;
  if (concurrency == Concurrency::by_resource && spec.resources) {
    try {
      keys = spec.resources(entry.call.arguments);
    } catch (const std::exception& thrown) {
      return finish(entry, ToolDenied{DenyReason::invalid_arguments, thrown.what()});
    }
  }
  keys.push_back({core_->workspace, concurrency == Concurrency::exclusive});
  entry.ticket = core_->locks.request(std::move(keys), wakeup_);
  entry.stage = Stage::waiting;
}

bool CallBatch::queued_too_long(Entry& entry, Instant now) {
  if (!entry.queued_told) {
    entry.queued_told = true;
    tell(entry, ToolEvent::Kind::queued);
  }
  if (now < plus(entry.queued_at, core_->options.queue_max)) return false;
  finish(entry, ToolTimeout{.kind = TimeoutKind::queue,
                            .limit = core_->options.queue_max,
                            .elapsed = Millis{0},
                            .since_progress = Millis{0},
                            .effects = EffectState::none,
                            .still_running = false,
                            .retry = RetryAdvice::safe});
  return true;
}

void CallBatch::await_resources(Entry& entry, Instant now) {
  if (const auto why = entry.state->scope.reason()) {
    return finish(entry, ToolCancelled{.why = *why});
  }
  switch (core_->locks.standing(entry.ticket)) {
    case ResourceLocks::Standing::granted:
      entry.stage = Stage::ready;
      break;
    case ResourceLocks::Standing::tainted:
      finish(entry, ToolDenied{DenyReason::quarantined,
                               "an earlier call that still hangs may yet change the same thing"});
      break;
    case ResourceLocks::Standing::waiting:
      (void)queued_too_long(entry, now);
      break;
  }
}

std::optional<ResolvedDeadline> CallBatch::limits_of(const Entry& entry, Instant now,
                                                     ToolDenied& denied) const {
  DeadlineBounds bounds;
  bounds.cap = core_->options.cap;
  if (turn_->options.deadline) {
    bounds.scope = *turn_->options.deadline - (now - turn_->began);
    if (bounds.scope->count() <= 0) {
      denied = {DenyReason::deadline, "the turn's time is used up"};
      return std::nullopt;
    }
  }
  if (const auto& budget = turn_->options.budget) {
    const auto left = budget->per_tool_remaining(Millis{0});
    if (!left) {
      const auto axis = budget->exhausted();
      const bool is_time = !axis || *axis == BudgetAxis::time;
      denied = {is_time ? DenyReason::deadline : DenyReason::budget,
                is_time ? std::string("budget deadline reached")
                        : "the budget's " + std::string(name_of(*axis)) + " are used up"};
      return std::nullopt;
    }
    if (left->count() > 0) bounds.budget = *left;
  }
  return resolve(core_->options.deadlines, entry.call.tool, entry.tool->spec().deadline, entry.hint,
                 bounds);
}

void CallBatch::start(Entry& entry, Instant now) {
  if (const auto why = entry.state->scope.reason()) {
    return finish(entry, ToolCancelled{.why = *why});
  }
  ToolDenied denied;
  auto limits = limits_of(entry, now, denied);
  if (!limits) return finish(entry, std::move(denied));
  entry.report.deadline = limits->provenance;
  entry.report.note = limits->note;
  const auto quiet_max = limits->idle ? limits->idle : limits->hard;
  {
    const std::lock_guard guard(entry.state->mutex);
    entry.state->limits = std::move(*limits);
  }
  ToolEvent event;
  event.kind = ToolEvent::Kind::start;
  event.turn = turn_->id;
  event.call = entry.asked->id;
  event.tool = entry.call.tool;
  event.arguments = entry.call.arguments;
  event.deadline = quiet_max;
  const auto began =
      core_->workers->start([core = core_, state = entry.state, tool = entry.tool,
                             ticket = entry.ticket] { core->carry_out(state, *tool, ticket); });
  if (began == Workers::Start::started) {
    core_->tell(event);
    entry.stage = Stage::started;
    entry.next_progress = plus(now, core_->options.progress_every);
    return;
  }
  if (began == Workers::Start::refused || core_->is_saturated()) {
    return finish(entry, ToolDenied{DenyReason::saturated,
                                    began == Workers::Start::refused
                                        ? "the system gives no thread to run it on"
                                        : "all " + std::to_string(core_->options.workers_max) +
                                              " workers are taken by calls that do not come back"});
  }
  if (!queued_too_long(entry, now)) core_->workers->ring_when_free(wakeup_);
}

void CallBatch::watch(Entry& entry, Instant now) {
  auto& state = *entry.state;
  const auto why = state.scope.reason();
  bool over = false;
  bool begins_to_stop = false;
  bool is_slow = false;
  {
    const std::lock_guard guard(state.mutex);
    if (state.home || (state.phase == CallPhase::queued && (why || state.returned))) {
      over = true;
    } else if (state.phase == CallPhase::running) {
      if (why) {
        begins_to_stop = true;
      } else if (state.asked_at && core_->options.confirm_max &&
                 now >= plus(*state.asked_at, *core_->options.confirm_max)) {
        over = true;
      } else if ((entry.expired = state.deadline->expired(now))) {
        begins_to_stop = true;
      } else if (const auto& soft = state.limits->soft;
                 soft && !entry.slow_told && state.deadline->active(now) >= *soft) {
        is_slow = true;
      }
      if (begins_to_stop) state.phase = CallPhase::stopping;
    } else if (state.phase == CallPhase::stopping) {
      over = now >= entry.grace_until;
    }
  }
  if (over) return conclude(entry, now);
  if (begins_to_stop) {
    entry.grace_until = plus(now, core_->options.cancel_grace);
    if (entry.expired) {
      state.scope.cancel({.origin = CancelOrigin::deadline, .text = "its deadline is over"});
    } else {
      state.gate.revoke(Millis{0});  // from now on nothing more happens; only cleaning up
      tell(entry, ToolEvent::Kind::cancel_requested);
    }
    return;
  }
  if (is_slow) {
    entry.slow_told = true;
    tell(entry, ToolEvent::Kind::slow);
  }
  if (now >= entry.next_progress) tell_progress(entry, now);
}

void CallBatch::tell_progress(Entry& entry, Instant now) {
  entry.next_progress = plus(now, core_->options.progress_every);
  ToolEvent event;
  {
    const std::lock_guard guard(entry.state->mutex);
    if (!entry.state->deadline) return;
    const auto& deadline = *entry.state->deadline;
    event.elapsed = deadline.active(now);
    event.value = deadline.value();
    event.bytes = deadline.bytes();
    event.accepted = deadline.accepted();
    event.total = entry.state->total;
    event.detail = entry.state->message;
  }
  event.kind = ToolEvent::Kind::progress;
  event.turn = turn_->id;
  event.call = entry.asked->id;
  event.tool = entry.call.tool;
  core_->tell(event);
}

EffectState CallBatch::effects_of(const Entry& entry, bool came_home, bool ok, bool settled,
                                  std::optional<EffectState> said) const {
  const auto& spec = entry.tool->spec();
  if (spec.effect == Effect::none) return EffectState::none;
  if (!settled) return EffectState::unknown;
  if (said) return *said;
  const auto account = entry.state->gate.account();
  if (!spec.gated) return EffectState::unknown;
  if (account.committed == 0) return account.failed > 0 ? EffectState::unknown : EffectState::none;
  if (account.fenced > 0 || account.failed > 0 || (came_home && !ok)) return EffectState::partial;
  return EffectState::complete;
}

void CallBatch::conclude(Entry& entry, Instant now) {
  auto& state = *entry.state;
  std::optional<Homecoming> home;
  bool began = false;
  bool abandoned = false;
  std::string partial;
  std::optional<EffectState> said;
  const bool was_fenced = state.gate.account().fenced > 0;
  {
    const std::lock_guard guard(state.mutex);
    state.phase = CallPhase::terminal;
    home = std::move(state.home);
    began = state.began_at.has_value();
    entry.report.began = began;
    abandoned = began && !state.returned;
    state.abandoned = abandoned;
    partial = state.partial.text();
    said = state.effects;
    state.free_budget();
    if (state.deadline) {
      entry.report.active = state.deadline->active(now);
      entry.report.paused = state.deadline->in_pauses(now);
      entry.report.progress_accepted = state.deadline->accepted();
      entry.report.progress_rejected = state.deadline->rejected();
      entry.report.queued = *state.began_at - entry.queued_at;
    }
  }
  const auto revoking = std::chrono::steady_clock::now();
  const bool settled = state.gate.revoke(commit_left_);
  commit_left_ -=
      std::min(commit_left_,
               std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now() - revoking));
  const bool ok = home && home->reply.ok && !home->denied;
  const auto effects = effects_of(entry, home.has_value(), ok, settled, said);
  if (home && !home->checkpoint.empty()) entry.report.checkpoint = home->checkpoint;

  // A result in the grace counts, unless something it did was fenced: then it only seems to be one.
  if (entry.expired && ok && !was_fenced) entry.expired.reset();
  auto outcome = outcome_of(entry, home, now, effects, abandoned, partial);
  if (abandoned) {
    const auto& spec = entry.tool->spec();
    if (spec.effect == Effect::none || spec.gated) {
      core_->locks.release(entry.ticket);  // nothing of it can come late
    } else {
      core_->locks.taint(entry.ticket);
    }
    state.scope.cancel({.origin = CancelOrigin::deadline, .text = "nobody waits for it any more"});
  }
  finish(entry, std::move(outcome));
  if (abandoned) core_->abandon(state, now);
}

ToolOutcome CallBatch::outcome_of(Entry& entry, std::optional<Homecoming>& home, Instant now,
                                  EffectState effects, bool still_running,
                                  const std::string& partial) {
  const auto& state = *entry.state;
  const auto& spec = entry.tool->spec();
  const auto part = [&] {
    if (!partial.empty()) return shown(partial, entry);
    return home && home->output ? std::move(*home->output) : Output{};
  };
  if (entry.expired) {
    ToolTimeout timeout{.kind = *entry.expired, .effects = effects, .still_running = still_running};
    {
      const std::lock_guard guard(state.mutex);
      const auto& limits = state.deadline->limits();
      timeout.limit =
          (timeout.kind == TimeoutKind::idle ? limits.idle : limits.hard).value_or(Millis{0});
      timeout.since_progress = state.deadline->since_progress(now);
    }
    timeout.elapsed = entry.report.active;
    timeout.retry = retry_advice(spec, effects);
    timeout.partial = part();
    return timeout;
  }
  if (!home) {
    if (const auto why = state.scope.reason()) {
      const bool began = state.began_at.has_value();
      return ToolCancelled{.why = *why,
                           .started = began,
                           .effects = began ? effects : EffectState::none,
                           .still_running = still_running,
                           .elapsed = entry.report.active,
                           .partial = part()};
    }
    if (state.asked_at) {
      return ToolDenied{DenyReason::confirmation_expired,
                        "nobody confirmed it within " +
                            std::to_string(core_->options.confirm_max->count() / 1'000) + " s"};
    }
    return ToolFailure{.kind = FailureKind::internal, .message = "its worker gave it up"};
  }
  // Called off, and it came back in time to say how far it was. A result of a call that was told to
  // stop because of its deadline is one.
  if (const auto why = state.scope.reason(); why && why->origin != CancelOrigin::deadline) {
    return ToolCancelled{.why = *why,
                         .started = true,
                         .effects = effects,
                         .still_running = false,
                         .elapsed = entry.report.active,
                         .partial = part()};
  }
  if (home->denied) return std::move(*home->denied);
  auto& reply = home->reply;
  if (!reply.ok && state.gate.account().stale > 0) {
    return ToolDenied{DenyReason::stale_precondition,
                      "what it was to change has changed meanwhile; nothing was written"};
  }
  auto output = home->output ? std::move(*home->output) : Output{};
  if (reply.artifact) {
    output = shown(reply.text, entry);
    output.artifact = std::move(reply.artifact);
  }
  if (!reply.ok) {
    // Of what a process wrote the words are elsewhere.
    const bool speaks = reply.failure == FailureKind::exit_nonzero ||
                        reply.failure == FailureKind::killed_by_signal;
    ToolFailure failure{.kind = reply.failure, .message = {}, .exit_code = reply.exit_code};
    if (speaks) {
      failure.partial = std::move(output);
    } else {
      failure.message = std::move(output.text);
      if (!partial.empty()) failure.partial = shown(partial, entry);
    }
    return failure;
  }
  if (output.artifact) {
    auto artifact = *output.artifact;
    return ToolArtifactReference{std::move(artifact), std::move(output)};
  }
  return ToolExecutionResult{std::move(output)};
}

Output CallBatch::shown(std::string_view text, const Entry& entry) const {
  const auto& spec = entry.tool->spec();
  auto limits = core_->options.output;
  limits.inline_chars = spec.inline_chars_max.value_or(limits.inline_chars);
  return presented(text, limits, core_->parts.artifacts.get(), spec.shape);
}

void CallBatch::finish(Entry& entry, ToolOutcome outcome) {
  entry.stage = Stage::done;
  entry.report.outcome = std::move(outcome);
  if (entry.state) {
    bool never_began = false;
    {
      const std::lock_guard guard(entry.state->mutex);
      entry.state->phase = CallPhase::terminal;
      never_began = !entry.state->began_at;
    }
    entry.state->gate.revoke(Millis{0});
    if (never_began) {
      core_->locks.release(entry.ticket);
      entry.report.queued = core_->now() - entry.queued_at;
    }
  }
  note_in_turn(entry);
  ToolEvent event;
  event.kind = ToolEvent::Kind::result;
  event.turn = turn_->id;
  event.call = entry.asked->id;
  event.tool = entry.asked->tool;
  event.elapsed = entry.report.active;
  event.report = &entry.report;
  core_->tell(event);
  core_->tell_error(entry.report);
  const bool failed = is_error(entry.report.outcome) &&
                      !std::holds_alternative<ToolCancelled>(entry.report.outcome);
  if (!failed || !core_->options.cancel_siblings_on_failure) return;
  for (auto& other : entries_) {
    if (other.stage == Stage::done || !other.state) continue;
    other.state->scope.cancel(
        {.origin = CancelOrigin::parent, .text = "another call of the same answer went wrong"});
  }
}

void CallBatch::note_in_turn(const Entry& entry) {
  const auto& name = entry.asked->tool;
  const auto* timeout = std::get_if<ToolTimeout>(&entry.report.outcome);
  const auto* failure = std::get_if<ToolFailure>(&entry.report.outcome);
  // What the tool itself says is wrong is no sign that it does not work.
  const bool is_infrastructure =
      timeout != nullptr || (failure != nullptr && (failure->kind == FailureKind::spawn_failed ||
                                                    failure->kind == FailureKind::internal));
  bool goes_off = false;
  {
    const std::lock_guard guard(turn_->mutex);
    if (entry.state) turn_->running.erase(entry.key);
    ++turn_->calls_done;
    if (timeout != nullptr) ++turn_->calls_timed_out;
    if (!entry.tool || !entry.state) return;
    const auto& spec = entry.tool->spec();
    if (timeout != nullptr && timeout->kind != TimeoutKind::queue) {
      const bool again = spec.retry_on_timeout.value_or(timeout->retry == RetryAdvice::safe);
      if (!again) {
        turn_->off.emplace(name,
                           "it timed out in this turn, and a second call could do twice what "
                           "the first may have done");
      }
    }
    if (!is_infrastructure) {
      turn_->timeouts_in_a_row.erase(name);
    } else {
      auto& in_a_row = turn_->timeouts_in_a_row[name];
      ++in_a_row;
      const std::lock_guard also(core_->mutex);
      // One that was off before gets a single try.
      const int allowed = core_->shaky.contains(name) ? 1 : core_->options.timeouts_in_a_row_max;
      if (in_a_row >= allowed) {
        goes_off = true;
        core_->shaky.insert(name);
        turn_->off.emplace(name, "temporarily disabled after " + std::to_string(in_a_row) +
                                     (in_a_row == 1 ? " timeout" : " timeouts") + " in this turn");
      }
    }
  }
  if (goes_off || is_infrastructure || is_error(entry.report.outcome)) return;
  const std::lock_guard guard(core_->mutex);
  core_->shaky.erase(name);
}

void CallBatch::fail_all() noexcept {
  for (auto& entry : entries_) {
    if (entry.stage == Stage::done) continue;
    try {
      const bool waits = entry.stage == Stage::started;
      if (waits) {
        entry.state->scope.cancel({.origin = CancelOrigin::shutdown});
        conclude(entry, core_->now());
      }
      entry.report.call = *entry.asked;
      entry.report.turn = turn_->id;
      entry.report.outcome =
          ToolFailure{.kind = FailureKind::internal, .message = "the executor ran out of memory"};
      if (!waits && entry.ticket) core_->locks.release(entry.ticket);
      if (entry.state && !waits) {
        const std::lock_guard guard(entry.state->mutex);
        entry.state->phase = CallPhase::terminal;
      }
      const std::lock_guard guard(turn_->mutex);
      turn_->running.erase(entry.key);
    } catch (...) {  // the report stays empty, and is an error all the same
      entry.report.outcome = ToolFailure{.kind = FailureKind::internal};
    }
    entry.stage = Stage::done;
  }
}

Instant CallBatch::next_expiry(Instant now) const {
  auto next = never;
  for (const auto at : flying_) {
    const auto& entry = entries_[at];
    if (entry.stage != Stage::started) continue;
    next = std::min(next, entry.grace_until);
    const std::lock_guard guard(entry.state->mutex);
    const auto& state = *entry.state;
    if (state.phase == CallPhase::queued) {
      // It may begin at any moment, and does not say so.
      const auto& limits = *state.limits;
      next = std::min({next, plus(now, limits.idle.value_or(Millis::max())),
                       plus(now, limits.hard.value_or(Millis::max()))});
    } else if (state.phase == CallPhase::running) {
      next = std::min(next, state.deadline->next_expiry());
      if (state.asked_at && core_->options.confirm_max) {
        next = std::min(next, plus(*state.asked_at, *core_->options.confirm_max));
      }
    }
  }
  return next;
}

Instant CallBatch::next_look(Instant now) const {
  auto next = std::min(next_expiry(now), plus(now, core_->options.look_longest));
  for (const auto at : flying_) {
    const auto& entry = entries_[at];
    if (entry.stage != Stage::started) {
      next = std::min(next, plus(entry.queued_at, core_->options.queue_max));
      continue;
    }
    next = std::min(next, entry.next_progress);
    const std::lock_guard guard(entry.state->mutex);
    const auto& deadline = entry.state->deadline;
    if (!deadline || deadline->paused() || entry.slow_told) continue;
    if (const auto& soft = deadline->limits().soft) {
      next = std::min(next, plus(now, std::max(*soft - deadline->active(now), Millis{0})));
    }
  }
  return next;
}

void CallBatch::wait(Instant now) {
  const auto next = next_look(now);
  if (next <= now) return;
  const bool rung = wakeup_->wait(std::min(next - now, wait_longest));
  const auto woke = core_->now();
  // Who was rung did not oversleep; but what is overdue now should have woken this thread before.
  const auto planned = rung ? next_expiry(woke) : next;
  if (planned > woke || woke - planned <= stall_min) return;
  const auto stall = woke - planned;
  for (const auto at : flying_) {
    auto& entry = entries_[at];
    if (entry.stage != Stage::started) continue;
    if (entry.grace_until != never) entry.grace_until += stall;
    const std::lock_guard guard(entry.state->mutex);
    if (entry.state->deadline) entry.state->deadline->compensate(stall);
    if (entry.state->asked_at) *entry.state->asked_at += stall;
  }
  ToolEvent event;
  event.kind = ToolEvent::Kind::host_stall;
  event.turn = turn_->id;
  event.elapsed = stall;
  core_->tell(event);
}

void CallBatch::tell(const Entry& entry, ToolEvent::Kind kind, Millis elapsed) const {
  ToolEvent event;
  event.kind = kind;
  event.turn = turn_->id;
  event.call = entry.asked->id;
  event.tool = entry.call.tool;
  event.elapsed = elapsed;
  core_->tell(event);
}

}  // namespace watchdog
