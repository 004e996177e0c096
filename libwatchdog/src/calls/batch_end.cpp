// Decides a call's outcome, and its consequences. `conclude` makes the call terminal and takes its
// result under one lock, so a later result finds it over. Then it closes the write fence and waits
// for a running effect, because only then is it known what was done. An abandoned call that may
// still write keeps its locks against other writers. `note_in_turn` decides whether the turn may
// call the tool again.

#include <algorithm>
#include <chrono>
#include <utility>

#include "calls/batch.h"
#include "calls/tool_arguments.h"

namespace watchdog {
namespace {

/// A short message of a failure is put into a sentence; a longer one is not.
constexpr std::size_t message_bytes_max = 600;

}  // namespace

EffectState CallBatch::effects_of(const Entry& entry, bool came_home, bool ok, bool settled,
                                  std::optional<EffectState> said) const {
  const auto& spec = entry.tool->spec();
  if (spec.effect == Effect::none || !entry.state->may_have_run) return EffectState::none;
  if (!settled) return EffectState::unknown;
  if (said) return *said;
  const auto account = entry.state->fence.account();
  if (!spec.gated) return EffectState::unknown;
  if (account.committed == 0) return account.failed > 0 ? EffectState::unknown : EffectState::none;
  if (account.fenced > 0 || account.failed > 0 || (came_home && !ok)) return EffectState::partial;
  return EffectState::complete;
}

void CallBatch::conclude(Entry& entry, Instant now) {
  auto& state = *entry.state;
  std::optional<HandlerResult> home;
  bool abandoned = false;
  std::optional<EffectState> said;
  const bool was_fenced = state.fence.account().fenced > 0;
  {
    const std::lock_guard guard(state.mutex);
    state.phase = CallPhase::terminal;
    home = std::move(state.home);
    abandoned = state.began_at && !state.returned;
    said = state.effects;
    state.free_budget();
    if (state.movement) {
      const auto& deadline = state.movement->deadline();
      entry.report.active = deadline.active(now);
      entry.report.paused = deadline.in_pauses(now);
      entry.report.progress_accepted = deadline.accepted();
      entry.report.progress_rejected = deadline.rejected();
      entry.report.output_bytes = state.partial.bytes();
      entry.report.queued = *state.began_at - entry.queued_at;
    }
  }
  // From here on only the fence changes the state: a late result finds the call over.
  const auto revoking = std::chrono::steady_clock::now();
  const bool settled = state.fence.revoke(commit_left_);
  commit_left_ -=
      std::min(commit_left_,
               std::chrono::duration_cast<Millis>(std::chrono::steady_clock::now() - revoking));
  const bool ok = home && home->reply.ok && !home->denied;
  const auto effects = effects_of(entry, home.has_value(), ok, settled, said);
  if (effects != EffectState::none) entry.report.checkpoint = state.checkpoint;

  // A result in the grace counts, unless something it did was fenced: then it only seems to be one.
  if (entry.expired && ok && !was_fenced) entry.expired.reset();
  auto outcome = outcome_of(entry, home, now, effects, abandoned);
  if (abandoned) {
    const auto& spec = entry.tool->spec();
    const bool can_come_late =
        writes(spec.effect) && !spec.gated && state.may_have_run && !state.asked_at;
    if (can_come_late) {
      core_->locks.taint(entry.ticket);
    } else {
      core_->locks.release(entry.ticket);
    }
    state.scope.cancel({.origin = CancelOrigin::deadline, .text = "nobody waits for it any more"});
  }
  finish(entry, std::move(outcome));
  if (abandoned) core_->abandon(state, now, entry.expired.has_value());
}

ToolOutcome CallBatch::outcome_of(Entry& entry, std::optional<HandlerResult>& home, Instant now,
                                  EffectState effects, bool still_running) {
  const auto& state = *entry.state;
  const auto& spec = entry.tool->spec();
  const auto part = [&] {
    // Output that the tool stored itself is more complete than its parts.
    if (home && home->output && (home->output->artifact || state.partial.bytes() == 0)) {
      return std::move(*home->output);
    }
    ToolReply so_far{.text = state.partial.text()};
    if (so_far.text.size() < state.partial.bytes()) so_far.whole_bytes = state.partial.bytes();
    return core_->shown(so_far, spec);
  };
  const auto cancelled = [&](const CancelReason& why) {
    return ToolCancelled{.why = why,
                         .started = state.may_have_run,
                         .effects = effects,
                         .still_running = still_running,
                         .elapsed = entry.report.active,
                         .partial = part()};
  };
  if (entry.expired) {
    const auto& deadline = state.movement->deadline();
    const auto& limits = deadline.limits();
    const auto limit = *entry.expired == TimeoutKind::idle ? limits.idle : limits.hard;
    return ToolTimeout{.kind = *entry.expired,
                       .limit = limit.value_or(Millis{0}),
                       .elapsed = entry.report.active,
                       .since_progress = deadline.since_progress(now),
                       .effects = effects,
                       .still_running = still_running,
                       .retry = retry_advice(spec, effects),
                       .partial = part()};
  }
  const auto why = state.scope.reason();
  if (!home) {
    if (why) return cancelled(*why);
    if (state.asked_at) {
      return ToolDenied{DenyReason::confirmation_expired,
                        "nobody confirmed it within " +
                            std::to_string(core_->options.confirm_max->count() / 1'000) + " s"};
    }
    return ToolFailure{.kind = FailureKind::internal, .message = "its worker gave it up"};
  }
  // It was cancelled, and returned in time with the state of its effects. A result of a call that
  // was stopped because of its deadline counts, and so does one from before.
  if (why && why->origin != CancelOrigin::deadline && home->called_off) return cancelled(*why);
  if (home->denied) return std::move(*home->denied);
  const auto& reply = home->reply;
  const auto account = state.fence.account();
  if (!reply.ok && account.stale > 0 && account.committed == 0) {
    return ToolDenied{DenyReason::stale_precondition,
                      "what it was to change has changed meanwhile; nothing was written"};
  }
  auto output = home->output ? std::move(*home->output) : Output{};
  if (!reply.ok) {
    ToolFailure failure{.kind = reply.failure, .message = {}, .exit_code = reply.exit_code};
    // A process's output is not a message, and a long message is shown like a result.
    const bool is_message = reply.failure != FailureKind::exit_nonzero &&
                            reply.failure != FailureKind::killed_by_signal && !output.artifact &&
                            output.text.size() <= message_bytes_max;
    if (!is_message) {
      failure.partial = std::move(output);
    } else {
      failure.message = std::move(output.text);
      if (state.partial.bytes() > 0) failure.partial = part();
    }
    return failure;
  }
  if (output.artifact) {
    auto artifact = *output.artifact;
    return ToolArtifactReference{std::move(artifact), std::move(output)};
  }
  return ToolExecutionResult{std::move(output)};
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
    entry.state->fence.revoke(Millis{0});
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
  core_->publish(event);
  core_->report_error(entry.report);
  const bool failed = is_error(entry.report.outcome) &&
                      !std::holds_alternative<ToolCancelled>(entry.report.outcome);
  if (!failed || !core_->options.cancel_siblings_on_failure) return;
  if (called_off_) return;
  called_off_ = {.origin = CancelOrigin::parent,
                 .scope = CancelScopeKind::wave,
                 .text = "another call of the same answer went wrong"};
  for (const auto at : flying_) {
    if (entries_[at].stage != Stage::done) entries_[at].state->scope.cancel(*called_off_);
  }
}

void CallBatch::forget(const Entry& entry) {
  const auto found = turn_->running.find(entry.key);
  // Another batch may have a call of the same id.
  if (found != turn_->running.end() && found->second == entry.state) turn_->running.erase(found);
}

void CallBatch::note_in_turn(const Entry& entry) {
  const auto& name = entry.asked->tool;
  const auto* timeout = std::get_if<ToolTimeout>(&entry.report.outcome);
  const auto* failure = std::get_if<ToolFailure>(&entry.report.outcome);
  // An error that the tool itself returns does not show that it is broken.
  const bool is_infrastructure =
      timeout != nullptr || (failure != nullptr && (failure->kind == FailureKind::spawn_failed ||
                                                    failure->kind == FailureKind::internal));
  bool goes_off = false;
  {
    const std::lock_guard guard(turn_->mutex);
    forget(entry);
    ++turn_->calls_done;
    if (timeout != nullptr) ++turn_->calls_timed_out;
    if (!entry.tool || !entry.state) return;
    const auto& spec = entry.tool->spec();
    if (timeout != nullptr && timeout->kind != TimeoutKind::queue) {
      if (spec.retry_on_timeout == false) {
        turn_->off.emplace(name, "it timed out in this turn, and is not repeated then");
      } else if (timeout->retry == RetryAdvice::do_not ||
                 (timeout->retry != RetryAdvice::safe &&
                  timeout->effects == EffectState::unknown)) {
        turn_->unclear.insert(key_of_call(name, entry.call.arguments));
      }
    }
    if (!is_infrastructure) {
      turn_->in_a_row.erase(name);
    } else {
      auto& [in_a_row, only_timeouts] = turn_->in_a_row[name];
      ++in_a_row;
      only_timeouts &= timeout != nullptr;
      const std::lock_guard also(core_->mutex);
      // One that was off before gets a single try.
      const int allowed = core_->shaky.contains(name) ? 1 : core_->options.timeouts_in_a_row_max;
      if (in_a_row >= allowed) {
        goes_off = true;
        core_->shaky.insert(name);
        turn_->off.emplace(name, "temporarily disabled after " + std::to_string(in_a_row) +
                                     (only_timeouts ? " timeout" : " failure") +
                                     (in_a_row == 1 ? "" : "s") + " in this turn");
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
      forget(entry);
    } catch (...) {  // the report stays empty, and is an error all the same
      entry.report.outcome = ToolFailure{.kind = FailureKind::internal};
    }
    entry.stage = Stage::done;
  }
}

}  // namespace watchdog
