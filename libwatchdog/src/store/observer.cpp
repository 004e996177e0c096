#include "watchdog/observer.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <mutex>
#include <queue>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/process.h"
#include "json/situation.h"
#include "store/lock.h"
#include "watchdog/digest.h"
#include "watchdog/json.h"
#include "watchdog/progress.h"

namespace watchdog {
namespace {

/// Events folded at one reading.
constexpr int piece_events = 1'000;
/// A history is written down at every transition and at least every so many of its events.
constexpr int snapshot_events = 1'000;
/// How often a silent session's process is looked for.
constexpr Millis process_look_every{10'000};
/// More children of one session are not looked at: others wait meanwhile.
constexpr std::size_t children_max = 1'000;
/// Processes looked into for situations in one look; of further sessions that get into trouble then
/// nobody does. Others wait meanwhile, and a machine that stands still takes all its sessions
/// along.
constexpr int processes_max = 64;

struct Entry {
  Case judged;
  std::string id;
  std::shared_ptr<const std::string> description;
  WallTime created{};
  std::int32_t since_snapshot = 0;
  Instant queued = never;  ///< Its earliest place in the queue of due sessions.
};

/// Entries are found by the ids that stand in them.
std::string_view id_of(const Entry* entry) {
  return entry->id;
}
std::string_view id_of(std::string_view id) {
  return id;
}
struct IdHash {
  using is_transparent = void;
  std::size_t operator()(const auto& item) const noexcept {
    return std::hash<std::string_view>{}(id_of(item));
  }
};
struct SameId {
  using is_transparent = void;
  bool operator()(const auto& a, const auto& b) const noexcept { return id_of(a) == id_of(b); }
};

}  // namespace

struct Observer::State {
  State(Store& door, Options chosen) : store(door), options(std::move(chosen)) {
    const auto self = this_process();
    boot = self.boot_id;
    host = self.host;
    machine = machine_of(self);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Store& store;
  Options options;
  std::optional<FileLock> lock;
  std::string boot, host;
  std::uint64_t machine = 0;

  /// Guards what other threads may ask for: the entries and their ids.
  mutable std::mutex mutex;
  std::unordered_map<SessionKey, Entry> entries;
  std::unordered_set<const Entry*, IdHash, SameId> by_id;
  /// Of those that have one; apart from the entries, because few have.
  std::unordered_map<SessionKey, std::string> parents;
  std::set<std::pair<std::string_view, SessionKey>> by_parent;  ///< The ids stand in `parents`.
  std::set<SessionKey> with_turns;                              ///< Sessions that have open turns.
  /// Sessions of one agent with one task share their description.
  std::unordered_map<std::string_view, std::shared_ptr<const std::string>> descriptions;

  const Witness witness = [this](const Case& judged, Instant then) {
    return situation(judged, then);
  };
  int processes_left = processes_max;  ///< Of this look.

  bool incomplete = false;  ///< Not all sessions could be loaded: once more.
  Seq cursor = 0;
  Instant last_look{};
  using Due = std::pair<Instant, SessionKey>;
  /// A vector would keep room for twice as many.
  std::priority_queue<Due, std::deque<Due>, std::greater<>> due;

  /// When silent sessions' processes were last looked for.
  std::unordered_map<SessionKey, Instant> looked;

  // Concluded and not yet written down:
  std::vector<Transition> changes;
  std::vector<SessionKey> to_keep;
  std::unordered_set<SessionKey> ended;  ///< Leave memory once written.

  Entry* entry_of(SessionKey session) {
    const auto found = entries.find(session);
    return found == entries.end() ? nullptr : &found->second;
  }

  /// REQUIRES: mutex held.
  [[nodiscard]] std::shared_ptr<const std::string> described(const SessionSpec& spec) {
    auto text = std::make_shared<const std::string>(description_of(spec));
    if (const auto known = descriptions.find(*text); known != descriptions.end())
      return known->second;
    if (descriptions.size() > 64 + 2 * entries.size()) {
      std::erase_if(descriptions, [](const auto& item) { return item.second.use_count() == 1; });
    }
    descriptions.emplace(*text, text);  // the key is the text's own
    return text;
  }

  [[nodiscard]] bool runs_here(const History& history) const {
    return history.pid > 0 && history.machine == machine;
  }

  /// What is known of a session that gets into trouble.
  [[nodiscard]] std::string situation(const Case& judged, Instant then) {
    Surroundings around;
    // What cannot be read now is missing; the next one who asks the file is told why.
    if (auto events = store.reader().events_up_to(judged.history.seq, situation_events))
      around.events = std::move(*events);
    // How a process is now says nothing of what was long ago.
    const bool now = store.now() - then <= options.late_max;
    if (now && runs_here(judged.history) && processes_left > 0) {
      --processes_left;
      around.process = process_tree(facts_of_process(judged.history));
    }
    return situation_of(judged, then, around);
  }

  [[nodiscard]] ProcessFacts facts_of_process(const History& history) const {
    return {.pid = history.pid, .start_ticks = history.start_ticks, .boot_id = boot, .host = host};
  }

  /// From when on a quiet session's process is looked for: an interval after its silence began, so
  /// that whoever restarts crashed agents may do so before anybody is told of a death.
  [[nodiscard]] static Instant process_look_from(const Entry& entry) {
    const auto silence = silence_begins(entry.judged.history, *entry.judged.policy);
    return silence == never ? never : silence + entry.judged.policy->heartbeat_interval;
  }

  [[nodiscard]] Instant looked_at(const Entry& entry) const {
    const auto found = looked.find(entry.judged.session);
    return found == looked.end() ? Instant{} : found->second;
  }

  /// When the session needs a look although nothing happens.
  [[nodiscard]] Instant next_due(const Entry& entry) const {
    const History& history = entry.judged.history;
    if (is_end(history.lifecycle)) return never;
    Instant at = entry.judged.health.valid_until;
    if (runs_here(history) && history.notes->exited_seq == 0) {
      const auto look = process_look_from(entry);
      if (look != never) at = std::min(at, std::max(look, looked_at(entry) + process_look_every));
    }
    return at;
  }

  /// Later dates are corrected when the earlier one comes up, so heartbeats cost nothing here.
  void enqueue(SessionKey session, Entry& entry) {
    const auto at = next_due(entry);
    if (at >= entry.queued) return;
    entry.queued = at;
    due.emplace(at, session);
  }

  /// After an entry took events or time passed for it.
  void settle(SessionKey session, Entry& entry, bool changed) {
    if (!entry.judged.history.notes->turns->empty()) {
      with_turns.insert(session);
    } else if (!with_turns.empty()) {
      with_turns.erase(session);
    }
    const bool has_ended = is_end(entry.judged.history.lifecycle);
    if (changed || has_ended || entry.since_snapshot >= snapshot_events) {
      if (to_keep.empty() || to_keep.back() != session) to_keep.push_back(session);
    }
    if (has_ended) {
      ended.insert(session);
    } else {
      enqueue(session, entry);
    }
  }

  /// Brings a session into memory, with all its events so far.
  Result<Entry*> load(SessionKey session) {
    auto row = store.reader().session(session);
    if (!row) return row.error();
    const auto before = changes.size();
    auto judged = store.reader().fold(*row, &changes, &witness);
    if (!judged) return judged.error();
    const std::lock_guard guard(mutex);
    Entry& entry = entries[session];
    entry.judged = std::move(*judged);
    entry.id = row->id;
    entry.description = described(row->spec);
    entry.created = row->created;
    by_id.insert(&entry);
    if (!row->spec.parent.empty()) {
      by_parent.emplace(parents.try_emplace(session, row->spec.parent).first->second, session);
    }
    entry.since_snapshot = 1;  // what came after the stored one is in no snapshot yet
    settle(session, entry, changes.size() != before);
    return &entry;
  }

  Result<void> take(const Event& event) {
    if (event.session == observer_key) {
      const std::lock_guard guard(mutex);
      for (auto& [session, entry] : entries) {
        if (event.seq <= entry.judged.folded || entry.judged.history.seq == 0) continue;
        const auto before = changes.size();
        entry.judged.take(event, changes, &witness);
        ++entry.since_snapshot;
        settle(session, entry, changes.size() != before);
      }
      return {};
    }
    Entry* entry = entry_of(event.session);
    if (entry == nullptr) {
      auto loaded = load(event.session);
      if (!loaded && loaded.error().code != ErrorCode::not_found) return loaded.error();
      return {};  // not_found: retention was quicker
    }
    if (event.seq <= entry->judged.folded) return {};
    const std::lock_guard guard(mutex);
    const auto before = changes.size();
    const auto lifecycle = entry->judged.history.lifecycle;
    ended.erase(event.session);
    entry->judged.take(event, changes, &witness);
    ++entry->since_snapshot;
    settle(event.session, *entry,
           changes.size() != before || lifecycle != entry->judged.history.lifecycle);
    return {};
  }

  /// Reads everything anew. What was concluded and not written down is concluded again.
  Result<void> reload() {
    incomplete = true;
    const auto newest = store.reader().newest();
    if (!newest) return newest.error();
    const auto sessions = store.reader().sessions_to_judge();
    if (!sessions) return sessions.error();
    {
      const std::lock_guard guard(mutex);
      by_id.clear();
      by_parent.clear();
      parents.clear();
      with_turns.clear();
      entries.clear();
    }
    due = {};
    changes.clear();
    to_keep.clear();
    ended.clear();
    cursor = newest->first;
    for (const auto session : *sessions) {
      if (auto loaded = load(session); !loaded) return loaded.error();
      if (to_keep.size() < piece_events) continue;
      if (auto kept = keep(); !kept) return kept;
    }
    incomplete = false;
    if (auto kept = keep(); !kept) return kept;
    if (!options.reloaded) return {};
    const auto transition = store.reader().newest_transition();
    if (!transition) return transition.error();
    options.reloaded(cursor, *transition);
    return {};
  }

  void tell(const Event& event) const {
    const auto entry = entries.find(event.session);
    if (entry != entries.end()) options.seen(event, entry->second.id);
  }

  Result<void> catch_up() {
    while (true) {
      auto events = store.reader().events_after(cursor, piece_events);
      if (!events) return events.error();
      for (const auto& event : *events) {
        if (auto taken = take(event); !taken) return taken;
        cursor = event.seq;
        if (options.seen) tell(event);
      }
      if (events->empty()) return {};
      if (options.seen_some) options.seen_some();
      if (auto kept = keep(); !kept) return kept;
    }
  }

  /// REQUIRES: mutex held.
  void forget(SessionKey session) {
    const auto gone = entries.find(session);
    if (gone == entries.end()) return;
    by_id.erase(&gone->second);
    with_turns.erase(session);
    looked.erase(session);
    if (const auto parent = parents.find(session); parent != parents.end()) {
      by_parent.erase({parent->second, session});
      parents.erase(parent);
    }
    entries.erase(gone);
  }

  /// Writes down what was concluded, in one transaction, and lets ended sessions go.
  Result<void> keep() {
    if (changes.empty() && to_keep.empty()) return {};
    Verdicts verdicts{.transitions = changes,
                      .alerts = options.alerts ? &*options.alerts : nullptr};
    for (const auto session : to_keep) {
      if (auto* entry = entry_of(session)) verdicts.snapshots.push_back(&entry->judged);
    }
    const auto recorded = store.record(verdicts);
    if (!recorded) return recorded.error();
    for (const auto session : to_keep) {
      if (auto* entry = entry_of(session)) entry->since_snapshot = 0;
    }
    if (options.told) tell(*recorded);
    changes.clear();
    to_keep.clear();
    if (!ended.empty()) {
      const std::lock_guard guard(mutex);
      for (const auto session : ended) forget(session);
      ended.clear();
    }
    return {};
  }

  /// What was written down, `id` first.
  void tell(std::int64_t id) {
    for (auto& change : changes) {
      TransitionRow row{
          .id = id++, .detector = std::string(detector_version), .quiet = change.quiet};
      row.transition = std::move(change);
      const auto entry = entries.find(row.transition.session);
      if (entry != entries.end()) options.told(row, entry->second.id);
    }
  }

  /// Takes the sessions out of the queue that are due at `now`.
  std::vector<SessionKey> take_due(Instant now) {
    std::vector<SessionKey> sessions;
    while (!due.empty() && due.top().first <= now) {
      const auto [at, session] = due.top();
      due.pop();
      Entry* entry = entry_of(session);
      if (entry == nullptr || entry->queued != at) continue;  // gone, or queued again for earlier
      entry->queued = never;
      if (next_due(*entry) <= now) {
        sessions.push_back(session);
      } else {
        enqueue(session, *entry);
      }
    }
    return sessions;
  }

  /// Lets time pass for the sessions that are due, and looks for the processes of the silent.
  Result<void> expire() {
    const auto sessions = take_due(store.now());
    if (sessions.empty()) return {};
    std::vector<Batch> gone;
    // While nobody else can append, what is read is all that happened up to now.
    auto done = store.alone([&]() -> Result<void> {
      if (auto caught = catch_up(); !caught) return caught;
      const Instant now = store.now();
      for (const auto session : sessions) {
        Entry* entry = entry_of(session);
        if (entry == nullptr) continue;
        const std::lock_guard guard(mutex);
        const auto before = changes.size();
        entry->judged.expire(now, changes, &witness);
        if (auto facts = process_gone(*entry, now)) gone.push_back(std::move(*facts));
        settle(session, *entry, changes.size() != before);
      }
      return keep();
    });
    if (!done) {
      // What was concluded may not have been written, and cannot be taken back in memory.
      if (auto again = reload(); !again) return again;
      return done;
    }
    if (gone.empty()) return {};
    if (auto appended = store.append(gone); !appended) return appended.error();
    return catch_up();
  }

  std::optional<Batch> process_gone(Entry& entry, Instant now) {
    const History& history = entry.judged.history;
    if (!runs_here(history) || history.notes->exited_seq != 0 || is_end(history.lifecycle) ||
        now < process_look_from(entry)) {
      return std::nullopt;
    }
    looked[entry.judged.session] = now;
    auto process = facts_of_process(history);
    if (is_running(process) != false) return std::nullopt;
    auto row = store.reader().session(entry.judged.session);
    if (!row) return std::nullopt;
    Batch batch{.session = row->id, .creation = Creation::refuse};
    Report& report = batch.reports.emplace_back();
    report.kind = ReportKind::exited;
    report.detail = std::move(process);
    return batch;
  }
};

void add_turns(std::vector<ActiveTurn>& turns, std::string_view session, const History& history,
               std::string_view description, std::string_view id, std::size_t count_max) {
  std::optional<std::string> agent;
  for (const auto& turn : *history.notes->turns) {
    if (turns.size() >= count_max) return;
    if (!id.empty() && turn.id != id) continue;
    if (!agent) {
      const auto named = text_field_from_json("{" + std::string(description) + "}", "agent");
      agent = named ? *named : std::string();
    }
    const auto* call = newest_call(history, turn.id);
    turns.push_back({.session = std::string(session),
                     .agent = *agent,
                     .turn = turn,
                     .call = call != nullptr ? std::optional(*call) : std::nullopt});
  }
}

Observer::Observer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Observer::~Observer() = default;

Result<std::unique_ptr<Observer>> Observer::start(Store& store, Options options) {
  auto state = std::make_unique<State>(store, std::move(options));
  if (store.path() != ":memory:") {
    auto lock = FileLock::open(store.path().string() + "-judge");
    if (!lock) return lock.error();
    if (!lock->try_lock()) {
      return Error{ErrorCode::conflict, "database " + store.path().string() +
                                            " is watched by another monitor already (process " +
                                            std::to_string(lock->read_pid()) + ")"};
    }
    lock->write_pid();
    state->lock = std::move(*lock);
  }
  // Whoever judged last was there at least until the latest thing in the file.
  const auto latest = store.reader().latest_tick();
  if (!latest) return latest.error();
  const auto gap = store.now() - *latest;
  if (*latest != Instant{} && gap > options.late_max) {
    if (auto told = store.append_observer({gap}); !told) return told.error();
  }
  if (auto loaded = state->reload(); !loaded) return loaded.error();
  state->last_look = store.now();
  return std::unique_ptr<Observer>(new Observer(std::move(state)));
}

Result<Instant> Observer::look() {
  State& state = *state_;
  const auto away = state.store.now() - state.last_look;
  if (away > state.options.late_max) {
    if (auto told = state.store.append_observer({away}); !told) return told.error();
  }
  state.last_look = state.store.now();
  state.processes_left = processes_max;
  if (state.incomplete) {
    if (auto again = state.reload(); !again) return again.error();
  }
  if (auto caught = state.catch_up(); !caught) return caught.error();
  if (auto kept = state.keep(); !kept) return kept.error();
  if (auto expired = state.expire(); !expired) return expired.error();
  const Instant due = state.due.empty() ? never : state.due.top().first;
  if (!state.options.alerts) return due;
  const auto next = state.store.tell_due(*state.options.alerts);
  return next ? std::min(due, *next) : next;
}

Result<void> Observer::checkpoint() {
  std::vector<SessionKey> sessions;
  for (const auto& [session, entry] : state_->entries) {
    if (entry.since_snapshot > 0) sessions.push_back(session);
  }
  for (std::size_t from = 0; from < sessions.size(); from += piece_events) {
    const auto to = std::min(sessions.size(), from + piece_events);
    state_->to_keep.assign(sessions.begin() + static_cast<std::ptrdiff_t>(from),
                           sessions.begin() + static_cast<std::ptrdiff_t>(to));
    if (auto kept = state_->keep(); !kept) return kept;
  }
  return {};
}

void Observer::forget(const std::vector<SessionKey>& sessions) {
  const std::lock_guard guard(state_->mutex);
  for (const auto session : sessions) state_->forget(session);
}

Seq Observer::folded() const noexcept {
  return state_->cursor;
}

std::optional<Watched> Observer::find(std::string_view session_id) const {
  const std::lock_guard guard(state_->mutex);
  const auto found = state_->by_id.find(session_id);
  if (found == state_->by_id.end()) return std::nullopt;
  return Watched{.judged = (*found)->judged,
                 .description = (*found)->description,
                 .created = (*found)->created};
}

std::vector<Child> Observer::children(std::string_view session_id, std::size_t count_max) const {
  const std::lock_guard guard(state_->mutex);
  const auto& by_parent = state_->by_parent;
  const auto oldest = by_parent.lower_bound({session_id, 0});
  std::vector<std::pair<int, SessionKey>> order;
  for (auto at = by_parent.upper_bound({session_id, std::numeric_limits<SessionKey>::max()});
       at != oldest && order.size() < children_max;) {
    const auto session = (--at)->second;
    const auto& judged = state_->entries.at(session).judged;
    if (!is_end(judged.history.lifecycle))
      order.emplace_back(severity(judged.health.kind), session);
  }
  const auto count = std::min(order.size(), count_max);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(count), order.end(),
                    std::greater<>());
  std::vector<Child> children;
  children.reserve(count);
  for (std::size_t at = 0; at < count; ++at) {
    const auto& entry = state_->entries.at(order[at].second);
    children.push_back({.id = entry.id, .judged = entry.judged});
  }
  return children;
}

std::vector<ActiveTurn> Observer::turns(std::size_t count_max, std::string_view id) const {
  const std::lock_guard guard(state_->mutex);
  const auto& sessions = state_->with_turns;
  std::vector<ActiveTurn> turns;
  for (auto at = sessions.rbegin(); at != sessions.rend() && turns.size() < count_max; ++at) {
    const auto& entry = state_->entries.at(*at);
    add_turns(turns, entry.id, entry.judged.history, *entry.description, id, count_max);
  }
  return turns;
}

Tally Observer::tally() const {
  Tally tally{};
  const std::lock_guard guard(state_->mutex);
  for (const auto& [session, entry] : state_->entries) {
    const auto lifecycle = entry.judged.history.lifecycle;
    if (is_end(lifecycle)) continue;
    ++tally[static_cast<std::size_t>(lifecycle)]
           [static_cast<std::size_t>(entry.judged.health.kind)];
  }
  return tally;
}

std::size_t Observer::watched() const {
  const std::lock_guard guard(state_->mutex);
  return state_->entries.size();
}

}  // namespace watchdog
