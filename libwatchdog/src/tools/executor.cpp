#include "watchdog/executor.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>

#include "tools/batch.h"
#include "tools/executor_core.h"
#include "tools/file_digest.h"
#include "tools/tool_arguments.h"

namespace watchdog {
namespace {

std::string own_workspace() {
  static std::atomic<std::uint64_t> count{0};
  return "executor " + std::to_string(++count);
}

ToolReply failed(FailureKind kind, std::string why) {
  return {.ok = false, .text = std::move(why), .failure = kind};
}

/// Seed of a custom: some tools ask by their result, and are called again with an argument.
bool asks_for_confirmation(const ToolReply& reply) {
  return reply.text.find("Write confirmation required") != std::string::npos;
}

}  // namespace

ToolExecutor::Core::Core(Parts given, ExecutorOptions chosen)
    : parts(std::move(given)),
      options(std::move(chosen)),
      workers(std::make_shared<Workers>(options.workers_max, options.worker_stack_bytes)),
      workspace(options.workspace.empty() ? own_workspace() : canonical_key(options.workspace)) {
  if (!parts.epochs) parts.epochs = std::make_shared<EpochSource>();
  if (!parts.tools) parts.tools = std::make_shared<ToolRegistry>();
}

void ToolExecutor::Core::tell(const ToolEvent& event) noexcept {
  if (!parts.observer) return;
  const std::lock_guard guard(observing);
  try {
    if (!closed) parts.observer(event);
  } catch (...) {  // who only watches must not harm who works
  }
}

void ToolExecutor::Core::tell_error(const CallReport& report) noexcept {
  if (!parts.on_tool_error || !is_error(report.outcome)) return;
  const std::lock_guard guard(observing);
  try {
    if (!closed) parts.on_tool_error(report);
  } catch (...) {  // as above
  }
}

ToolReply ToolExecutor::Core::call(Tool& tool, ToolContext& context) const noexcept {
  try {
    try {
      return tool.invoke(context);
    } catch (const CallStopped&) {
      return failed(FailureKind::tool_error, "stopped as it was asked to");
    } catch (const std::exception& thrown) {
      return failed(FailureKind::exception, thrown.what());
    } catch (...) {
      return failed(FailureKind::exception, "it threw something that is no std::exception");
    }
  } catch (...) {
    return {.ok = false, .text = {}, .failure = FailureKind::exception};  // no memory for words
  }
}

Homecoming ToolExecutor::Core::invoke(const std::shared_ptr<CallState>& state, Tool& tool) {
  const auto& spec = tool.spec();
  ToolContext context(state);
  Homecoming home;
  const auto deny = [&](DenyReason reason, std::string why) {
    home.denied = ToolDenied{reason, std::move(why)};
    return home;
  };
  const auto confirmed = [&](const Tool::Preview& preview) -> std::optional<ToolDenied> {
    if (!parts.confirm) {
      return ToolDenied{DenyReason::write_denied,
                        "it needs a confirmation, and there is nobody to give one"};
    }
    state->ask();
    auto answer = Confirmation::deny;
    try {
      answer = parts.confirm(*state->seen_by_tool.load(), preview, state->scope.token());
    } catch (...) {  // no answer is no
    }
    if (!state->answered()) {
      return ToolDenied{DenyReason::confirmation_expired, "the answer came too late"};
    }
    if (answer != Confirmation::approve) {
      return ToolDenied{DenyReason::write_denied, "write not approved"};
    }
    return std::nullopt;
  };

  const bool is_saved = parts.checkpoints && spec.effect == Effect::local_write;
  if (spec.needs_confirmation || is_saved) {
    auto preview = tool.preview(state->call);
    if (!preview) return deny(DenyReason::invalid_arguments, preview.error().message);
    for (const auto& path : preview->paths) {
      const auto digest = file_digest(path);
      if (!digest) return deny(DenyReason::invalid_arguments, digest.error().message);
      state->gate.expect({path, *digest});
    }
    if (spec.needs_confirmation) {
      if (auto denied = confirmed(*preview)) return deny(denied->reason, denied->message);
    }
    if (is_saved && !preview->paths.empty()) {
      auto checkpoint = parts.checkpoints->snapshot(preview->paths, state->call.id);
      if (checkpoint) {
        home.checkpoint = *checkpoint;
      } else if (options.fail_without_checkpoint) {
        home.reply =
            failed(FailureKind::internal, "not done, as what it would overwrite cannot be saved: " +
                                              checkpoint.error().message);
        return home;
      }
    }
  }

  if (spec.confirms_by_reply) state->gate.hold();
  home.reply = call(tool, context);
  if (spec.confirms_by_reply) {
    if (asks_for_confirmation(home.reply)) {
      if (auto denied = confirmed({.diff = home.reply.text, .paths = {}})) {
        return deny(denied->reason, denied->message);
      }
      state->gate.let();
      state->confirmed = state->call;
      state->confirmed.arguments = with_confirmation(state->call.arguments);
      state->seen_by_tool = &state->confirmed;
      home.reply = call(tool, context);
    } else {
      state->gate.let();
    }
  }
  if (!home.checkpoint.empty()) (void)parts.checkpoints->seal(home.checkpoint);
  return home;
}

void ToolExecutor::Core::carry_out(const std::shared_ptr<CallState>& state, Tool& tool,
                                   const ResourceLocks::TicketPtr& ticket) noexcept {
  bool was_late = true;
  Homecoming home;
  if (state->begin()) {
    try {
      home = invoke(state, tool);
      bool wanted = false;
      {
        const std::lock_guard guard(state->mutex);
        wanted = state->phase != CallPhase::terminal;
      }
      // Already here, so that the caller's thread does not wait for the disk.
      if (wanted && !home.reply.artifact) {
        auto limits = options.output;
        limits.inline_chars = tool.spec().inline_chars_max.value_or(limits.inline_chars);
        home.output = presented(home.reply.text, limits, parts.artifacts.get(), tool.spec().shape);
      }
    } catch (const std::exception& thrown) {
      home.reply = {.ok = false, .text = {}, .failure = FailureKind::internal};
      home.output = Output{.text = thrown.what()};
    } catch (...) {
      home.reply = {.ok = false, .text = {}, .failure = FailureKind::internal};
    }
    was_late = !state->come_home(home);
  } else {
    const std::lock_guard guard(state->mutex);
    state->returned = true;
    was_late = false;
  }
  locks.release(ticket);
  came_back(*state, home, was_late);
  state->waiter->ring();
}

void ToolExecutor::Core::came_back(const CallState& state, const Homecoming& home,
                                   bool was_late) noexcept {
  if (!was_late) return;
  const auto event = [&](ToolEvent::Kind kind) {
    ToolEvent told;
    told.kind = kind;
    told.turn = state.turn;
    told.call = state.call.id;
    told.tool = state.call.tool;
    return told;
  };
  try {
    if (!home.reply.text.empty() || home.reply.ok) {
      auto late = event(ToolEvent::Kind::late);
      late.bytes = home.reply.text.size();
      late.detail = sha256_of(home.reply.text);
      tell(late);
    }
    bool was_abandoned = false;
    {
      const std::lock_guard guard(mutex);
      was_abandoned = abandoned.erase(&state) > 0;
      if (was_abandoned) {
        ++reclaimed_total;
        const auto of_tool = abandoned_by_tool.find(state.call.tool);
        if (of_tool != abandoned_by_tool.end() && --of_tool->second == 0) {
          abandoned_by_tool.erase(of_tool);
        }
      }
    }
    if (was_abandoned) tell(event(ToolEvent::Kind::reclaimed));
  } catch (...) {  // no memory for the news
  }
}

void ToolExecutor::Core::abandon(const CallState& state, Instant since) {
  {
    const std::lock_guard guard(mutex);
    // It may have come back between its outcome and now.
    const std::lock_guard seen(state.mutex);
    if (state.returned) return;
    abandoned.emplace(&state, since);
    ++abandoned_by_tool[state.call.tool];
    ++abandoned_total;
  }
  ToolEvent event;
  event.kind = ToolEvent::Kind::abandoned;
  event.turn = state.turn;
  event.call = state.call.id;
  event.tool = state.call.tool;
  tell(event);
}

bool ToolExecutor::Core::is_quarantined(std::string_view tool) const {
  const std::lock_guard guard(mutex);
  const auto found = abandoned_by_tool.find(tool);
  return found != abandoned_by_tool.end() && found->second >= options.quarantine_after;
}

bool ToolExecutor::Core::is_saturated() const {
  const auto threads = workers->count().threads;
  const std::lock_guard guard(mutex);
  return abandoned.size() >= threads;
}

ToolExecutor::ToolExecutor(Parts parts, ExecutorOptions options)
    : core_(std::make_shared<Core>(std::move(parts), std::move(options))) {}

ToolExecutor::~ToolExecutor() {
  core_->workers->stop(core_->options.shutdown_grace);
  const std::lock_guard guard(core_->observing);
  core_->closed = true;
}

CallReport ToolExecutor::execute(Turn& turn, const ToolCall& call) noexcept {
  return std::move(execute_batch(turn, {&call, 1}).front());
}

std::vector<CallReport> ToolExecutor::execute_batch(Turn& turn,
                                                    std::span<const ToolCall> calls) noexcept {
  return CallBatch(core_, turn.state_, calls).run();
}

LeakStats ToolExecutor::leaks() const {
  LeakStats stats;
  const auto count = core_->workers->count();
  stats.workers = count.threads;
  const auto now = core_->now();
  const std::lock_guard guard(core_->mutex);
  stats.abandoned = core_->abandoned.size();
  stats.busy = count.threads - std::min(count.threads, count.idle + stats.abandoned);
  stats.slots_free = core_->options.workers_max -
                     std::min(core_->options.workers_max, stats.busy + stats.abandoned);
  stats.abandoned_total = core_->abandoned_total;
  stats.reclaimed_total = core_->reclaimed_total;
  for (const auto& [call, since] : core_->abandoned) {
    stats.oldest_abandoned = std::max(stats.oldest_abandoned, now - since);
  }
  for (const auto& [tool, calls] : core_->abandoned_by_tool) {
    if (calls >= core_->options.quarantine_after) stats.quarantined.push_back(tool);
  }
  return stats;
}

void ToolExecutor::reset_quarantine(std::string_view tool) {
  const std::lock_guard guard(core_->mutex);
  if (const auto found = core_->abandoned_by_tool.find(tool);
      found != core_->abandoned_by_tool.end()) {
    core_->abandoned_by_tool.erase(found);
  }
}

void ToolExecutor::tick() {
  const std::lock_guard guard(core_->mutex);
  for (const auto& batch : core_->batches) batch->ring();
}

}  // namespace watchdog
