// The public functions of the observer, its lock as the judge, and the first absence after a
// restart. The look itself is in look.cpp: catch up with the events, record what follows, then let
// time pass for the sessions that are due.
#include "facts/ids.h"
#include "observer/observer_state.h"
#include "store/sharing.h"

namespace watchdog {

void add_turns(std::vector<ActiveTurn>& turns, std::string_view session, const History& history,
               const Description& description, std::string_view id, std::size_t count_max) {
  for (const auto& turn : *history.notes->turns) {
    if (turns.size() >= count_max) return;
    if (!id.empty() && turn.id != id) continue;
    auto& active = turns.emplace_back(
        ActiveTurn{.session = std::string(session), .agent = description.agent, .turn = turn});
    for (const auto& call : *history.open_calls) {
      if (call.notes->turn == turn.id) active.calls.push_back(call);
    }
  }
}

Observer::Observer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Observer::~Observer() {
  // Others need not wait for the end of the leases.
  if (!state_->name.empty()) (void)Sharing(state_->store).renew(state_->name, true);
}

Result<std::unique_ptr<Observer>> Observer::start(Store& store, Options options) {
  auto state = std::make_unique<State>(store, std::move(options));
  if (store.is_on_server()) {
    state->name = state->processes.host() + "-" + new_ulid(system_clock().wall());
    if (auto renewed = state->renew_leases(); !renewed) return renewed.error();
  } else if (store.path() != ":memory:") {
    auto lock = FileLock::open(real_file(store.path()).string() + "-judge");
    if (!lock) return lock.error();
    auto file_lock = FileLock::open_database(store.path().string());
    if (!file_lock) return file_lock.error();
    if (!lock->try_lock() || !file_lock->try_lock()) {
      const auto holder = lock->read_pid();
      return Error{ErrorCode::conflict,
                   "database " + store.path().string() + " is watched by another monitor already" +
                       (holder != 0 ? " (process " + std::to_string(holder) + ")" : "")};
    }
    lock->write_pid();
    state->lock = std::move(*lock);
    state->file_lock = std::move(*file_lock);
  }
  // The previous judge was there at least until the latest tick in the file.
  const auto latest = store.reader().latest_tick();
  if (!latest) return latest.error();
  const auto gap = store.now() - *latest;
  state->last_look = *latest;
  if (*latest == Instant{} || gap > options.late_max) {
    if (*latest != Instant{}) {
      if (auto appended = store.append_observer({gap}); !appended) return appended.error();
    }
    state->last_look = store.now();
  }
  State::Loading loading(*state);
  if (auto begun = loading.begin_again(); !begun) return begun.error();
  if (auto loaded = loading.load_all(); !loaded) return loaded.error();
  return std::unique_ptr<Observer>(new Observer(std::move(state)));
}

Result<void> Observer::arrive() {
  auto done = state_->arrive();
  state_->arrived = done.ok();
  return done;
}

Result<Instant> Observer::look() {
  State& state = *state_;
  if (!std::exchange(state.arrived, false)) {
    if (auto there = state.arrive(); !there) return there.error();
  }
  auto looked = state.look();
  // Reports that cannot be stored are not received either: after a failure the absence goes on.
  if (looked) state.last_look = state.here;
  return looked;
}

void Observer::set_alert_rules(AlertRules rules) {
  state_->options.alerts = std::move(rules);
  state_->knows_channels = false;
}

Result<void> Observer::checkpoint() {
  std::vector<SessionKey> sessions;
  for (const auto& [key, session] : state_->sessions.all()) {
    if (session.since_snapshot > 0) sessions.push_back(key);
  }
  for (std::size_t from = 0; from < sessions.size(); from += State::piece_events) {
    const auto to = std::min(sessions.size(), from + State::piece_events);
    state_->to_keep.assign(sessions.begin() + static_cast<std::ptrdiff_t>(from),
                           sessions.begin() + static_cast<std::ptrdiff_t>(to));
    if (auto kept = state_->keep(); !kept) return kept;
  }
  return {};
}

Result<std::size_t> Observer::abandon(Instant quiet_since, std::size_t count_max) {
  return state_->abandon(quiet_since, count_max);
}

void Observer::forget(const std::vector<SessionKey>& sessions) {
  const std::lock_guard guard(state_->sessions.mutex);
  for (const auto session : sessions) state_->forget(session);
}

Seq Observer::folded() const noexcept {
  return state_->cursor;
}

std::optional<Watched> Observer::find(std::string_view session_id) const {
  const std::lock_guard guard(state_->sessions.mutex);
  const auto* found = state_->sessions.find(session_id);
  if (found == nullptr) return std::nullopt;
  return Watched{
      .judged = found->judged, .description = found->description, .created = found->created};
}

std::vector<Child> Observer::children(std::string_view session_id, std::size_t count_max) const {
  const std::lock_guard guard(state_->sessions.mutex);
  const auto& all = state_->sessions.all();
  std::vector<std::pair<int, SessionKey>> order;
  for (const auto key : state_->sessions.children_of(session_id)) {
    const auto& judged = all.at(key).judged;
    if (!is_end(judged.history.lifecycle)) order.emplace_back(severity(judged.health.kind), key);
  }
  const auto count = std::min(order.size(), count_max);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    std::greater<>());
  std::vector<Child> children;
  children.reserve(count);
  for (std::size_t at = 0; at < count; ++at) {
    const auto& session = all.at(order[at].second);
    children.push_back({.id = session.id, .judged = session.judged});
  }
  return children;
}

std::vector<ActiveTurn> Observer::turns(std::size_t count_max, std::string_view id) const {
  const std::lock_guard guard(state_->sessions.mutex);
  const auto& sessions = state_->sessions.with_turns();
  std::vector<ActiveTurn> turns;
  for (auto at = sessions.rbegin(); at != sessions.rend() && turns.size() < count_max; ++at) {
    const auto& session = state_->sessions.all().at(*at);
    add_turns(turns, session.id, session.judged.history, *session.description, id, count_max);
  }
  return turns;
}

std::vector<std::string> Observer::sessions_where(
    const std::function<bool(const Case&)>& is_meant) const {
  const std::lock_guard guard(state_->sessions.mutex);
  std::vector<std::string> sessions;
  for (const auto& [key, session] : state_->sessions.all())
    if (is_meant(session.judged)) sessions.push_back(session.id);
  return sessions;
}

Tally Observer::tally() const {
  const std::lock_guard guard(state_->sessions.mutex);
  return state_->tallies.own;
}

Tally Observer::tally_of_others() const {
  const std::lock_guard guard(state_->sessions.mutex);
  return state_->tallies.others;
}

std::size_t Observer::watched() const {
  const std::lock_guard guard(state_->sessions.mutex);
  return state_->sessions.all().size();
}

}  // namespace watchdog
