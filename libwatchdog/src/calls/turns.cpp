// A turn is in the registry from `begin` until its owner destroys it. No scope is cancelled and no
// observer called while the registry's lock is held. `observing` keeps events in order: an abort is
// reported once and before the end, even if it came from a scope above. That lock is recursive
// because an observer may cause the next event. One thread aborts turns whose owners stay away too
// long.
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "calls/turn_state.h"
#include "facts/ids.h"
#include "watchdog/executor.h"

namespace watchdog {
namespace {

std::string_view reason_of(CancelOrigin origin) {
  switch (origin) {
    case CancelOrigin::user:
    case CancelOrigin::api:
    case CancelOrigin::client_disconnect:
    case CancelOrigin::parent:
      return "user";
    case CancelOrigin::deadline:
    case CancelOrigin::budget:
      return "timeout";
    case CancelOrigin::watchdog:
    case CancelOrigin::shutdown:
      break;
  }
  return "error";
}

}  // namespace

TurnInfo Turn::State::info() const {
  const auto now = CallState::clock_now(clock);
  TurnInfo info;
  info.id = id;
  info.parent = parent;
  info.agent = options.agent;
  info.session = options.session;
  info.depth = depth;
  info.started = started;
  info.elapsed = now - began;
  info.aborting = scope.cancelled();
  const std::lock_guard guard(mutex);
  for (const auto& [call, state] : running) info.running.push_back(state->seen(now));
  info.calls_total = calls_total;
  info.calls_done = calls_done;
  info.calls_timed_out = calls_timed_out;
  return info;
}

Turn::Turn(std::shared_ptr<State> state) : state_(std::move(state)) {}
Turn::Turn(Turn&&) noexcept = default;

Turn& Turn::operator=(Turn&& other) noexcept {
  std::swap(state_, other.state_);
  return *this;
}

Turn::~Turn() {
  if (state_ && state_->on_end) state_->on_end(*state_);
}

const std::string& Turn::id() const noexcept {
  return state_->id;
}

CancelScope& Turn::scope() noexcept {
  return state_->scope;
}

ExecutionBudget* Turn::budget() noexcept {
  return state_->options.budget.get();
}

const TurnOptions& Turn::options() const noexcept {
  return state_->options;
}

bool Turn::accepting_writes() const noexcept {
  return !state_->scope.cancelled();
}

TurnInfo Turn::info() const {
  return state_->info();
}

struct TurnRegistry::State {
  explicit State(Options chosen) : options(std::move(chosen)) {}

  const Options options;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, std::shared_ptr<Turn::State>, std::less<>> turns;
  std::map<std::string, Instant, std::less<>> orphaned;  ///< Turns whose owner is gone, since when.
  std::thread owner_wait;  ///< Waits for owners to come back; started with the first that is gone.
  bool stopping = false;
  std::uint64_t begun = 0;
  std::recursive_mutex observing;  ///< Events come one at a time, and none after the end.
  bool closed = false;

  [[nodiscard]] Instant now() const { return Instant{options.clock->since_boot()}; }

  /// Its observer may make it publish more.
  void publish(const TurnEvent& event) noexcept {
    if (!options.observer) return;
    const std::lock_guard guard(observing);
    try {
      if (!closed) options.observer(event);
    } catch (...) {  // an observer's error must not affect the turn
    }
  }

  [[nodiscard]] std::shared_ptr<Turn::State> find(std::string_view turn) const {
    const std::lock_guard guard(mutex);
    const auto found = turns.find(turn);
    return found == turns.end() ? nullptr : found->second;
  }

  /// Reports an abort once for each turn, also one from above.
  void report_abort(Turn::State& turn) {
    const auto why = turn.scope.reason();
    if (!why) return;
    const std::lock_guard guard(observing);  // until it is reported: the end follows it
    if (std::exchange(turn.abort_reported, true)) return;
    publish({TurnEvent::Kind::abort, turn.id, turn.parent, turn.depth,
             std::string(reason_of(first_origin(*why)))});
  }

  AbortResult abort(Turn::State& turn, CancelReason reason) {
    const bool won = turn.scope.cancel(std::move(reason));
    if (won) report_abort(turn);
    return won ? AbortResult::aborted : AbortResult::already_aborting;
  }

  void end(Turn::State& turn) {
    report_abort(turn);
    {
      const std::lock_guard guard(mutex);
      turns.erase(turn.id);
      orphaned.erase(turn.id);
    }
    std::int64_t calls = 0;
    {
      const std::lock_guard guard(turn.mutex);
      calls = turn.calls_total;
    }
    publish({TurnEvent::Kind::end, turn.id, turn.parent, turn.depth,
             turn.scope.cancelled() ? "aborted" : "completed", calls});
  }

  void wait_for_owners() {
    std::unique_lock guard(mutex);
    while (!stopping) {
      auto next = never;
      std::vector<std::shared_ptr<Turn::State>> given_up;
      for (auto at = orphaned.begin(); at != orphaned.end();) {
        const auto until = at->second + options.disconnect_grace;
        if (until > now()) {
          next = std::min(next, until);
          ++at;
          continue;
        }
        if (const auto turn = turns.find(at->first); turn != turns.end()) {
          given_up.push_back(turn->second);
        }
        at = orphaned.erase(at);
      }
      if (!given_up.empty()) {
        guard.unlock();
        for (const auto& turn : given_up) {
          abort(*turn, {.origin = CancelOrigin::client_disconnect,
                        .text = "its client is gone and did not come back"});
        }
        guard.lock();
        continue;
      }
      if (next == never) {
        changed.wait(guard);
      } else {
        changed.wait_for(guard, std::clamp(next - now(), Millis{0}, Millis{60'000}));
      }
    }
  }
};

TurnRegistry::TurnRegistry() : TurnRegistry(Options{}) {}
TurnRegistry::TurnRegistry(Options options) : state_(std::make_shared<State>(std::move(options))) {}

TurnRegistry::~TurnRegistry() {
  std::thread waits;
  {
    const std::lock_guard guard(state_->mutex);
    state_->stopping = true;
    waits = std::move(state_->owner_wait);
  }
  state_->changed.notify_all();
  if (waits.joinable()) waits.join();
  const std::lock_guard guard(state_->observing);
  state_->closed = true;
}

Result<Turn> TurnRegistry::begin(TurnOptions options, const Turn* parent) {
  if (parent != nullptr) {
    return begin_in(parent->state_->scope, std::move(options), parent->state_->id);
  }
  return begin_in(CancelScope::root(), std::move(options));
}

Result<Turn> TurnRegistry::begin_in(const CancelScope& scope, TurnOptions options,
                                    std::string_view parent) {
  if (const auto why = scope.reason()) {
    return Error{ErrorCode::cancelled, "what the turn belongs to was called off by " +
                                           std::string(name_of(why->origin)) + " " + why->text};
  }
  const auto above = state_->find(parent);
  const int depth = above ? above->depth + 1 : parent.empty() ? 0 : 1;
  if (depth > turn_depth_max) {
    return Error{ErrorCode::exhausted, "turns nest " + std::to_string(turn_depth_max) +
                                           " deep at most; this one would be deeper"};
  }
  auto turn = std::make_shared<Turn::State>(std::move(options), scope.child(CancelScopeKind::turn),
                                            *state_->options.clock);
  turn->id = new_ulid(state_->options.clock->wall());
  turn->parent = parent;
  turn->depth = depth;
  turn->started = state_->options.clock->wall();
  turn->began = state_->now();
  turn->on_end = [registry = state_](Turn::State& ended) { registry->end(ended); };
  {
    const std::lock_guard guard(state_->mutex);
    turn->number = ++state_->begun;
    state_->turns.emplace(turn->id, turn);
  }
  state_->publish({TurnEvent::Kind::start, turn->id, turn->parent, depth});
  return Turn(std::move(turn));
}

std::vector<TurnInfo> TurnRegistry::active() const {
  std::vector<std::shared_ptr<Turn::State>> turns;
  {
    const std::lock_guard guard(state_->mutex);
    for (const auto& [id, turn] : state_->turns) turns.push_back(turn);
  }
  std::sort(turns.begin(), turns.end(),
            [](const auto& a, const auto& b) { return a->number < b->number; });
  std::vector<TurnInfo> infos;
  infos.reserve(turns.size());
  for (const auto& turn : turns) infos.push_back(turn->info());
  return infos;
}

std::optional<TurnInfo> TurnRegistry::find(std::string_view turn) const {
  const auto found = state_->find(turn);
  return found ? std::optional(found->info()) : std::nullopt;
}

AbortResult TurnRegistry::abort(std::string_view turn, CancelReason reason) {
  const auto found = state_->find(turn);
  return found ? state_->abort(*found, std::move(reason)) : AbortResult::not_found;
}

AbortResult TurnRegistry::abort_call(std::string_view turn, std::string_view call,
                                     CancelReason reason) {
  const auto found = state_->find(turn);
  if (!found) return AbortResult::not_found;
  std::shared_ptr<CallState> running;
  {
    const std::lock_guard guard(found->mutex);
    const auto entry = found->running.find(call);
    if (entry == found->running.end()) return AbortResult::not_found;
    running = entry->second;
  }
  return running->scope.cancel(std::move(reason)) ? AbortResult::aborted
                                                  : AbortResult::already_aborting;
}

std::size_t TurnRegistry::abort_all(CancelReason reason) {
  std::size_t count = 0;
  for (const auto& info : active()) {
    if (abort(info.id, reason) == AbortResult::aborted) ++count;
  }
  return count;
}

void TurnRegistry::client_connected(std::string_view turn) {
  const auto found = state_->find(turn);
  if (!found) return;
  const std::lock_guard guard(state_->mutex);
  ++found->connections;
  if (const auto gone = state_->orphaned.find(turn); gone != state_->orphaned.end()) {
    state_->orphaned.erase(gone);
  }
}

void TurnRegistry::client_disconnected(std::string_view turn) {
  const auto found = state_->find(turn);
  if (!found) return;
  const auto policy = found->options.on_disconnect;
  {
    const std::lock_guard guard(state_->mutex);
    if (found->connections == 0 || --found->connections > 0) return;
    if (policy == DisconnectPolicy::abort_after_grace) {
      state_->orphaned.insert_or_assign(std::string(turn), state_->now());
      if (!state_->owner_wait.joinable() && !state_->stopping) {
        state_->owner_wait = std::thread([state = state_] { state->wait_for_owners(); });
      }
      state_->changed.notify_all();
    }
  }
  if (policy == DisconnectPolicy::abort_now) {
    state_->abort(*found,
                  {.origin = CancelOrigin::client_disconnect, .text = "its client is gone"});
  }
}

void TurnRegistry::tick() {
  // Under the lock, so a thread that begins to wait does not miss it.
  const std::lock_guard guard(state_->mutex);
  state_->changed.notify_all();
}

}  // namespace watchdog
