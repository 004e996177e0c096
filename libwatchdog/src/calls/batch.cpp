// One batch of calls on its caller's thread. `run` takes the waves in order; `run_wave` steps
// each call, then waits for a notification or the next due instant. A call goes from admission
// (policy, quarantine, epoch, resources) to a worker, and is then watched. Only this thread
// decides outcomes, under one lock and with one `now`, so a result and a deadline cannot both
// win. batch_end.cpp has the outcomes.
#include "calls/batch.h"

#include <algorithm>
#include <set>
#include <utility>

#include "calls/tool_arguments.h"

namespace watchdog {
namespace {

constexpr Millis stall_min{1'000};
constexpr Millis wait_longest{3'600'000};

Instant plus(Instant at, Millis time) {
  return time > never - at ? never : at + time;
}

/// `tool calls`
std::string in_words(BudgetAxis axis) {
  std::string words(name_of(axis));
  std::ranges::replace(words, '_', ' ');
  return words;
}

/// Takes one of the calls that the turn may run. Returns why there is none.
std::optional<ToolDenied> take_allowance(Turn::State& turn) {
  const auto& allowed = turn.options.calls_max;
  const std::lock_guard guard(turn.mutex);
  if (!allowed || turn.calls_admitted++ < *allowed) return std::nullopt;
  return ToolDenied{DenyReason::budget,
                    *allowed == 0 ? "the budget's tool calls are used up"
                                  : "the budget had tool calls left for the first " +
                                        std::to_string(*allowed) + " of this answer only"};
}

}  // namespace

CallBatch::CallBatch(std::shared_ptr<ToolExecutor::Core> core, std::shared_ptr<Turn::State> turn,
                     std::span<const ToolCall> calls)
    : core_(std::move(core)),
      turn_(std::move(turn)),
      wakeup_(std::make_shared<Wakeup>()),
      calls_(calls) {
  entries_.resize(calls.size());
  std::set<std::string_view> keys;
  for (std::size_t at = 0; at < calls.size(); ++at) {
    auto& entry = entries_[at];
    entry.asked = &calls[at];
    entry.key = calls[at].id.empty() ? "call " + std::to_string(at) : calls[at].id;
    entry.is_twin = !keys.insert(entry.key).second;
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
    std::size_t number = 0;
    for (const auto& wave : plan_waves(calls_, *core_->parts.tools)) {
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
    if (flying_.size() == before || next == wave.calls.size()) wait(now);
  }
}

void CallBatch::step(Entry& entry, Instant now) {
  if (entry.stage == Stage::waiting) await_resources(entry, now);
  if (entry.stage == Stage::ready) start(entry, now);
  if (entry.stage == Stage::started) watch(entry, core_->now());
}

std::optional<ToolDenied> CallBatch::refusal(const Entry& entry) const {
  const auto& name = entry.call.tool;
  if (entry.is_twin) {
    return ToolDenied{DenyReason::duplicate_call,
                      "a call of this id is in the same answer already"};
  }
  if (!entry.tool) {
    return ToolDenied{DenyReason::unknown_tool, "there is no tool of this name"};
  }
  const auto& spec = entry.tool->spec();
  if (!is_object(entry.call.arguments)) {
    return ToolDenied{DenyReason::invalid_arguments, "its arguments are not a JSON object"};
  }
  if (turn_->options.final && !spec.allowed_in_final_turn) {
    return ToolDenied{DenyReason::final_turn, "this is the last step: answer now, without tools"};
  }
  if (core_->parts.policy) {
    std::string why;
    try {
      why = core_->parts.policy(entry.call);
    } catch (...) {
      why = "the program could not decide whether it is allowed";
    }
    if (!why.empty()) return ToolDenied{DenyReason::policy, std::move(why)};
  }
  {
    const std::lock_guard guard(turn_->mutex);
    if (const auto off = turn_->off.find(name); off != turn_->off.end()) {
      return ToolDenied{DenyReason::disabled, off->second};
    }
    if (!turn_->unclear.empty() &&
        turn_->unclear.contains(key_of_call(name, entry.call.arguments))) {
      return ToolDenied{DenyReason::disabled,
                        "the same call timed out in this turn, and a second one could do again "
                        "what the first may have done"};
    }
  }
  if (core_->is_quarantined(name)) {
    return ToolDenied{DenyReason::quarantined,
                      "earlier calls of it still hang and were given up; it is not called again "
                      "until they are back"};
  }
  if (is_unfenced(spec) && !core_->options.allow_unfenced) {
    return ToolDenied{DenyReason::policy,
                      "it changes things, cannot be stopped, and does not use the write fence: it "
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
  const auto why = turn_->scope.reason();
  if (why || called_off_) {
    return finish(entry, ToolCancelled{.why = why ? *why : *called_off_});
  }
  entry.tool = core_->parts.tools->find(entry.call.tool);
  if (entry.tool) {
    const auto& declared = core_->parts.tools->arguments_of(entry.call.tool);
    entry.hint = extract_hint(entry.call.arguments, declared, entry.tool->spec().takes_timeout);
    extract_wait_for_previous(entry.call.arguments, declared);
  }
  if (auto denied = refusal(entry)) return finish(entry, std::move(*denied));
  if (auto denied = take_allowance(*turn_)) return finish(entry, std::move(*denied));
  const auto epoch = core_->parts.epochs->next();
  if (!epoch) {
    return finish(entry,
                  ToolFailure{.kind = FailureKind::internal, .message = epoch.error().message});
  }
  entry.report.epoch = *epoch;
  // Calls without an id may be different ones, so their keys are as well.
  const auto name = entry.asked->id.empty() ? "epoch-" + std::to_string(*epoch) : entry.key;
  entry.state = std::make_shared<CallState>(entry.call, turn_->id, *core_->options.clock,
                                            turn_->scope.child(CancelScopeKind::call), wakeup_,
                                            WriteFence(*epoch, "wd-" + turn_->id + "-" + name));
  entry.state->budget = turn_->options.budget;
  entry.state->scope.shuts(entry.state->fence);
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
    } catch (...) {
      return finish(entry, ToolDenied{DenyReason::invalid_arguments, "it cannot say what it uses"});
    }
  }
  keys.push_back({core_->workspace, concurrency == Concurrency::exclusive});
  entry.ticket = core_->locks.request(std::move(keys), wakeup_, entry.state->scope.lineage());
  entry.stage = Stage::waiting;
}

bool CallBatch::queued_too_long(Entry& entry, Instant now) {
  if (!entry.queued_reported) {
    entry.queued_reported = true;
    publish(entry, ToolEvent::Kind::queued);
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
    auto axis = budget->exhausted();
    // Those of `calls_max` are charged already.
    const auto used = budget->figures();
    if (!axis && !turn_->options.calls_max && used.limits.tool_calls &&
        used.tool_calls >= *used.limits.tool_calls)
      axis = BudgetAxis::tool_calls;
    if (axis) {
      const bool is_time = *axis == BudgetAxis::time;
      denied = {is_time ? DenyReason::deadline : DenyReason::budget,
                "the budget's " + in_words(*axis) + (is_time ? " is" : " are") + " used up"};
      return std::nullopt;
    }
    if (const auto left = budget->time_for_call(Millis{0}); left.count() > 0) bounds.budget = left;
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
    entry.report.began = true;
    core_->publish(event);
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
      } else if ((entry.expired = state.movement->deadline().expired(now))) {
        begins_to_stop = true;
      } else if (const auto& soft = state.limits->soft;
                 soft && !entry.slow_reported && state.movement->deadline().active(now) >= *soft) {
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
      publish(entry, ToolEvent::Kind::cancel_requested);
    }
    return;
  }
  if (is_slow) {
    entry.slow_reported = true;
    publish(entry, ToolEvent::Kind::slow);
  }
  if (now >= entry.next_progress) report_progress(entry, now);
}

void CallBatch::report_progress(Entry& entry, Instant now) {
  entry.next_progress = plus(now, core_->options.progress_every);
  ToolEvent event;
  {
    const std::lock_guard guard(entry.state->mutex);
    if (!entry.state->movement) return;
    const auto& movement = *entry.state->movement;
    const auto& deadline = movement.deadline();
    event.elapsed = deadline.active(now);
    event.value = movement.value();
    event.bytes = deadline.bytes();
    event.accepted = deadline.signs();
    event.total = movement.total();
    event.detail = entry.state->message;
  }
  event.kind = ToolEvent::Kind::progress;
  event.turn = turn_->id;
  event.call = entry.asked->id;
  event.tool = entry.call.tool;
  core_->publish(event);
}

Instant CallBatch::next_look(Instant now) const {
  auto next = plus(now, core_->options.look_longest);
  for (const auto at : flying_) {
    const auto& entry = entries_[at];
    if (entry.stage != Stage::started) {
      next = std::min(next, plus(entry.queued_at, core_->options.queue_max));
      continue;
    }
    next = std::min({next, entry.grace_until, entry.next_progress});
    const std::lock_guard guard(entry.state->mutex);
    const auto& state = *entry.state;
    if (state.phase == CallPhase::queued) {
      // It may begin at any moment, and does not say so.
      const auto& limits = *state.limits;
      next = std::min({next, plus(now, limits.idle.value_or(Millis::max())),
                       plus(now, limits.hard.value_or(Millis::max()))});
    } else if (state.phase == CallPhase::running) {
      const auto& deadline = state.movement->deadline();
      next = std::min(next, deadline.next_expiry());
      if (state.asked_at && core_->options.confirm_max) {
        next = std::min(next, plus(*state.asked_at, *core_->options.confirm_max));
      }
      if (deadline.paused() || entry.slow_reported) continue;
      if (const auto& soft = deadline.limits().soft) {
        next = std::min(next, plus(now, std::max(*soft - deadline.active(now), Millis{0})));
      }
    }
  }
  return next;
}

void CallBatch::wait(Instant since) {
  if (const auto left = next_look(since) - core_->now(); left.count() > 0) {
    wakeup_->wait(std::min(left, wait_longest));
  }
  // This thread should have looked earlier, by what is known now.
  const auto stall = core_->now() - next_look(since);
  if (stall <= stall_min) return;
  for (const auto at : flying_) {
    auto& entry = entries_[at];
    entry.queued_at += stall;
    if (entry.stage != Stage::started) continue;
    if (entry.grace_until != never) entry.grace_until += stall;
    const std::lock_guard guard(entry.state->mutex);
    if (entry.state->movement) entry.state->movement->compensate(stall);
    if (entry.state->asked_at) *entry.state->asked_at += stall;
  }
  ToolEvent event;
  event.kind = ToolEvent::Kind::host_stall;
  event.turn = turn_->id;
  event.elapsed = stall;
  core_->publish(event);
}

void CallBatch::publish(const Entry& entry, ToolEvent::Kind kind, Millis elapsed) const {
  ToolEvent event;
  event.kind = kind;
  event.turn = turn_->id;
  event.call = entry.asked->id;
  event.tool = entry.call.tool;
  event.elapsed = elapsed;
  core_->publish(event);
}

}  // namespace watchdog
