#include "calls/tool_arguments.h"
#include "watchdog/executor.h"

namespace watchdog {

std::vector<Wave> plan_waves(std::span<const ToolCall> calls, const ToolRegistry& tools) {
  std::vector<Wave> waves;
  for (std::size_t at = 0; at < calls.size(); ++at) {
    const auto tool = tools.find(calls[at].tool);
    const bool exclusive = tool && concurrency_of(tool->spec()) == Concurrency::exclusive;
    const bool waits = waits_for_previous(calls[at].arguments, tools.arguments_of(calls[at].tool));
    if (waves.empty() || exclusive || waits || waves.back().exclusive) {
      waves.push_back({.exclusive = exclusive, .calls = {}});
    }
    waves.back().calls.push_back(at);
  }
  return waves;
}

Concurrency concurrency_of(const ToolSpec& spec) noexcept {
  return spec.concurrency.value_or(writes(spec.effect) ? Concurrency::exclusive
                                                       : Concurrency::parallel);
}

RetryAdvice retry_advice(const ToolSpec& spec, EffectState effects) noexcept {
  if (spec.retry_on_timeout)
    return *spec.retry_on_timeout ? RetryAdvice::safe : RetryAdvice::do_not;
  if (spec.effect == Effect::none || effects == EffectState::none) return RetryAdvice::safe;
  if (spec.idempotency != Idempotency::no) return RetryAdvice::safe;
  if (spec.effect == Effect::irreversible) return RetryAdvice::do_not;
  if (effects == EffectState::complete) return RetryAdvice::verify_first;
  if (spec.effect == Effect::local_write && spec.gated) return RetryAdvice::safe;
  return RetryAdvice::verify_first;
}

}  // namespace watchdog
