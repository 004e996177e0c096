// The executor owns the workers, the locks of resources and the list of abandoned calls. A batch
// shares that core, and so do detached threads, so it may outlive the executor. Events go to the
// observer one at a time.
#include "watchdog/executor.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <utility>

#include "calls/batch.h"
#include "calls/executor_core.h"
#include "calls/tool_arguments.h"
#include "files/sha256.h"

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

/// Returns the work's result, or its exception as a failure.
template <class Work>
ToolReply guarded(Work&& work) noexcept {
  try {
    try {
      return work();
    } catch (const CallStopped&) {
      return failed(FailureKind::tool_error, "stopped as it was asked to");
    } catch (const std::exception& thrown) {
      return failed(FailureKind::exception, thrown.what());
    } catch (...) {
      return failed(FailureKind::exception, "it threw something that is not a std::exception");
    }
  } catch (...) {
    return {.ok = false, .text = {}, .failure = FailureKind::exception};  // no memory for words
  }
}

/// Values with which nothing would ever be started, or looked at without a pause.
ExecutorOptions sane(ExecutorOptions options) {
  options.parallel_max = std::max<std::size_t>(options.parallel_max, 1);
  options.workers_max = std::max<std::size_t>(options.workers_max, 1);
  options.progress_every = std::max(options.progress_every, Millis{1});
  options.look_longest = std::max(options.look_longest, Millis{1});
  return options;
}

}  // namespace

ToolExecutor::Core::Core(Parts given, ExecutorOptions chosen)
    : parts(std::move(given)),
      options(sane(std::move(chosen))),
      workers(std::make_shared<Workers>(options.workers_max, options.worker_stack_bytes)),
      workspace(options.workspace.empty() ? own_workspace() : canonical_key(options.workspace)) {
  if (!parts.epochs) parts.epochs = std::make_shared<EpochSource>();
  if (!parts.tools) parts.tools = std::make_shared<ToolRegistry>();
}

void ToolExecutor::Core::publish(const ToolEvent& event) noexcept {
  if (!parts.observer) return;
  const std::lock_guard guard(observing);
  try {
    if (!closed) parts.observer(event);
  } catch (...) {  // an observer's error must not affect the calls
  }
}

void ToolExecutor::Core::report_error(const CallReport& report) noexcept {
  if (!parts.on_tool_error || !is_error(report.outcome)) return;
  const std::lock_guard guard(observing);
  try {
    if (!closed) parts.on_tool_error(report);
  } catch (...) {  // as above
  }
}

std::optional<ToolDenied> ToolExecutor::Core::confirm(CallState& state,
                                                      const Tool::Preview& preview) {
  if (!parts.confirm) {
    return ToolDenied{DenyReason::write_denied,
                      "it needs a confirmation, and there is nobody to give one"};
  }
  const ToolDenied late{DenyReason::confirmation_expired, "the answer came too late"};
  if (!state.ask()) return late;
  auto answer = Confirmation::deny;
  try {
    answer = parts.confirm(*state.seen_by_tool.load(), preview, state.scope.token());
  } catch (...) {  // no answer is no
  }
  if (!state.answered()) return late;
  if (answer == Confirmation::approve) return std::nullopt;
  return ToolDenied{DenyReason::write_denied, "write not approved"};
}

HandlerResult ToolExecutor::Core::invoke(const std::shared_ptr<CallState>& state, Tool& tool) {
  const auto& spec = tool.spec();
  ToolContext context(state);
  HandlerResult home;
  const auto denied = [&](std::optional<ToolDenied> why) {
    home.denied = std::move(why);
    return home.denied.has_value();
  };
  const auto answer = [&] {
    try {
      return tool.invoke(context);
    } catch (const CallStopped&) {
      if (context.should_stop()) throw;
      return failed(FailureKind::exception, "it threw CallStopped, although nobody stopped it");
    }
  };
  const auto call = [&] { home.reply = guarded(answer); };

  std::string checkpoint;
  const bool is_saved = parts.checkpoints && spec.effect == Effect::local_write;
  if (spec.needs_confirmation || is_saved) {
    const auto preview = tool.preview(state->call);
    if (!preview) {
      home.denied = ToolDenied{DenyReason::invalid_arguments, preview.error().message};
      return home;
    }
    for (const auto& path : preview->paths) {
      const auto digest = digest_of(path);
      if (!digest) {
        home.denied = ToolDenied{DenyReason::invalid_arguments, digest.error().message};
        return home;
      }
      state->fence.expect({path, *digest});
    }
    if (spec.needs_confirmation && denied(confirm(*state, *preview))) return home;
    if (is_saved && !preview->paths.empty()) {
      auto saved = parts.checkpoints->snapshot(preview->paths, state->call.id);
      if (!saved && options.fail_without_checkpoint) {
        home.reply =
            failed(FailureKind::internal, "not done, as what it would overwrite cannot be saved: " +
                                              saved.error().message);
        return home;
      }
      if (saved) checkpoint = std::move(*saved);
      const std::lock_guard guard(state->mutex);
      state->checkpoint = checkpoint;
    }
  }
  if (!state->enter()) {
    home.denied = ToolDenied{DenyReason::turn_cancelled, "it was over before it was made"};
    return home;
  }

  if (spec.confirms_by_reply) state->fence.hold();
  call();
  if (spec.confirms_by_reply) {
    if (asks_for_confirmation(home.reply)) {
      if (denied(confirm(*state, {.diff = home.reply.text, .paths = {}}))) return home;
      state->fence.let();
      state->confirmed = state->call;
      state->confirmed.arguments = with_confirmation(state->call.arguments);
      state->seen_by_tool = &state->confirmed;
      call();
    } else if (home.reply.ok && state->fence.account().fenced > 0) {
      home.reply = failed(FailureKind::tool_error,
                          "it wanted to change something without asking; nothing was changed");
    }
  }
  // Later it would take for the tool's what others did meanwhile.
  if (!checkpoint.empty() && !state->is_over()) (void)parts.checkpoints->seal(checkpoint);
  return home;
}

void ToolExecutor::Core::carry_out(const std::shared_ptr<CallState>& state, Tool& tool,
                                   const ResourceLocks::TicketPtr& ticket) noexcept {
  if (!state->begin()) {
    {
      const std::lock_guard guard(state->mutex);
      state->returned = true;
    }
    locks.release(ticket);
    return state->waiter->ring();
  }
  HandlerResult home;
  const auto failure = [&](auto&& work) {
    const auto trouble = guarded([&] {
      work();
      return ToolReply{};
    });
    if (!trouble.ok) home.reply = trouble;
  };
  failure([&] { home = invoke(state, tool); });
  locks.release(ticket);
  // Already here, so that the caller's thread does not wait for the disk.
  if (!state->is_over()) failure([&] { home.output = shown(home.reply, tool.spec()); });
  if (!state->come_home(home)) came_late(*state, home);
}

Output ToolExecutor::Core::shown(const ToolReply& reply, const ToolSpec& spec) const {
  auto limits = options.output;
  limits.inline_chars = spec.inline_chars_max.value_or(limits.inline_chars);
  if (reply.artifact)
    return presented(reply.text, limits, *reply.artifact, spec.shape, reply.whole_bytes);
  return presented(reply.text, limits, parts.artifacts.get(), spec.shape, reply.whole_bytes);
}

void ToolExecutor::Core::came_late(const CallState& state, const HandlerResult& home) noexcept {
  {
    // No more events; and the process may be ending, with OpenSSL already gone.
    const std::lock_guard guard(observing);
    if (closed) return;
  }
  const auto event = [&](ToolEvent::Kind kind) {
    ToolEvent published;
    published.kind = kind;
    published.turn = state.turn;
    published.call = state.call.id;
    published.tool = state.call.tool;
    return published;
  };
  try {
    if (!home.reply.text.empty() || home.reply.ok) {
      auto late = event(ToolEvent::Kind::late);
      late.bytes = home.reply.text.size();
      late.detail = sha256_of(home.reply.text);
      publish(late);
    }
    bool was_abandoned = false;
    {
      const std::lock_guard guard(mutex);
      was_abandoned = abandoned.erase(&state) > 0;
      if (was_abandoned) ++reclaimed_total;
    }
    if (was_abandoned) publish(event(ToolEvent::Kind::reclaimed));
  } catch (...) {  // no memory for the news
  }
}

void ToolExecutor::Core::abandon(const CallState& state, Instant since, bool in_time) {
  {
    const std::lock_guard guard(mutex);
    // It may have come back between its outcome and now.
    const std::lock_guard seen(state.mutex);
    if (state.returned) return;
    abandoned.emplace(&state, Abandoned{since, in_time});
    ++abandoned_total;
  }
  ToolEvent event;
  event.kind = ToolEvent::Kind::abandoned;
  event.turn = state.turn;
  event.call = state.call.id;
  event.tool = state.call.tool;
  publish(event);
}

std::map<std::string_view, std::size_t> ToolExecutor::Core::hanging() const {
  std::map<std::string_view, std::size_t> calls;
  for (const auto& [state, how] : abandoned) {
    if (how.counts) ++calls[state->call.tool];
  }
  return calls;
}

bool ToolExecutor::Core::is_quarantined(std::string_view tool) const {
  const std::lock_guard guard(mutex);
  const auto calls = hanging();
  const auto found = calls.find(tool);
  return found != calls.end() && found->second >= options.quarantine_after;
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
  for (const auto& [call, how] : core_->abandoned) {
    stats.oldest_abandoned = std::max(stats.oldest_abandoned, now - how.since);
  }
  for (const auto& [tool, calls] : core_->hanging()) {
    if (calls >= core_->options.quarantine_after) stats.quarantined.emplace_back(tool);
  }
  return stats;
}

void ToolExecutor::reset_quarantine(std::string_view tool) {
  const std::lock_guard guard(core_->mutex);
  for (auto& [call, how] : core_->abandoned) {
    if (call->call.tool == tool) how.counts = false;
  }
}

void ToolExecutor::tick() {
  const std::lock_guard guard(core_->mutex);
  for (const auto& batch : core_->batches) batch->ring();
}

}  // namespace watchdog
