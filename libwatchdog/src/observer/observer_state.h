/// \file
/// The state of an observer, and its look. For the .cpp files of this folder only.
#pragma once

#include <algorithm>
#include <deque>
#include <limits>
#include <mutex>
#include <queue>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "codec/json.h"
#include "codec/progress.h"
#include "facts/digest.h"
#include "facts/process.h"
#include "judge/situation.h"
#include "observer/observer.h"
#include "store/alert_acts.h"
#include "store/event_reader.h"
#include "store/lock.h"
#include "store/place.h"
#include "store/sharing.h"
#include "store/transition_reader.h"
#include "watchdog/reasons.h"

namespace watchdog {

/// The numbers of sessions that monitors on one server show each other.
struct Observer::TallyExchange {
  Tally own{};  ///< Of all entries. Under the mutex, as the next one.
  Tally others{};
  bool others_changed = true;
  Instant others_at{};      ///< When they were read.
  bool own_changed = true;  ///< Since it was made for the others.
  Instant shown_at{};       ///< When that was.

  /// Moves a session from the numbers in which it is counted to the present ones.
  void count(std::optional<Tally::Part>& counted, std::optional<Tally::Part> present);
  /// Makes the own tally for the others, if it is time; the next conclusions take it along.
  void show(State& state);
  Result<void> exchange(State& state);
};

struct Observer::State {
  /// Events folded at one reading.
  static constexpr int piece_events = 1'000;
  /// A snapshot is written at every transition and at least after this many events.
  static constexpr int snapshot_events = 1'000;
  /// The caller looks at least this often.
  static constexpr Millis look_every{1'000};
  /// A look that comes later than it should by less than this missed nothing.
  static constexpr Millis lateness_min{100};
  /// Interval of checks for a silent session's process.
  static constexpr Millis process_look_every{10'000};
  /// The same for a process that hooks or the proxy found, which does not report its end.
  static constexpr Millis found_process_look_every{2'000};
  /// More children of one session are not looked at: others wait meanwhile.
  static constexpr std::size_t children_max = 1'000;
  /// Processes inspected for situations in one look; later sessions get a situation without a
  /// process. Other sessions wait meanwhile, and a stalled machine affects all its sessions at
  /// once.
  static constexpr int processes_max = 64;
  /// Sessions read together, and about how many and how long in one look: reports wait meanwhile.
  static constexpr std::size_t together_max = 64;
  static constexpr std::size_t loaded_max = 1'000;
  static constexpr std::chrono::milliseconds loading_max{50};
  /// About how long a turn on a server lasts in which time passes for sessions. The other sessions
  /// wait for the next look. Other writers wait, and details of trouble take some round trips each.
  static constexpr std::chrono::milliseconds expiry_max{300};

  struct Entry {
    Case judged;
    std::string id;
    std::shared_ptr<const Description> description;
    WallTime created{};
    std::int32_t since_snapshot = 0;
    std::optional<Tally::Part> counted{};  ///< In the tally.
    Instant queued = never;                ///< Its earliest place in the queue of due sessions.
  };

  /// Entries are found by their own ids.
  static std::string_view id_of(const Entry* entry) { return entry->id; }
  static std::string_view id_of(std::string_view id) { return id; }
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

  State(Store& opened, Options chosen) : store(opened), options(std::move(chosen)) {
    const auto self = this_process();
    boot = self.boot_id;
    host = self.host;
    machine = machine_of(self);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Store& store;
  Options options;
  std::optional<FileLock> lock;       ///< Names the judge, and keeps older versions out.
  std::optional<FileLock> file_lock;  ///< Of the file itself.
  std::string boot, host;
  std::uint64_t machine = 0;

  /// Guards what other threads may ask for: the entries and their ids.
  mutable std::mutex mutex;
  std::unordered_map<SessionKey, Entry> entries;
  std::unordered_set<const Entry*, IdHash, SameId> by_id;
  /// Of sessions with a parent; apart from the entries, because few have one.
  std::unordered_map<SessionKey, std::string> parents;
  std::set<std::pair<std::string_view, SessionKey>> by_parent;  ///< The ids are in `parents`.
  std::set<SessionKey> with_turns;                              ///< Sessions that have open turns.
  /// Sessions that may have begun or ceased to wait for their children since the last look.
  std::set<SessionKey> may_wait;
  /// Sessions of one agent with one task share their description.
  struct SharedHash {
    std::size_t operator()(const std::shared_ptr<const Description>& one) const noexcept {
      return std::hash<std::string_view>{}(one->members);
    }
  };
  struct SharedSame {
    bool operator()(const std::shared_ptr<const Description>& a,
                    const std::shared_ptr<const Description>& b) const noexcept {
      return *a == *b;
    }
  };
  std::unordered_set<std::shared_ptr<const Description>, SharedHash, SharedSame> descriptions;

  const DetailProvider details = [this](const Case& judged, Instant then) {
    return situation(judged, then);
  };
  int processes_left = processes_max;  ///< Of this look.

  // On a server that several monitors may share:
  std::string name;                      ///< Of this monitor; empty: it is a file.
  Instant leases_at = never;             ///< When they were renewed.
  bool owes_grace = false;               ///< It gained sessions, and no absence says so yet.
  std::int64_t passed_transition = 0;    ///< The newest that was passed on, of any monitor.
  std::int64_t recorded_transition = 0;  ///< The newest of this monitor.
  struct Foreign {
    std::string id{};
    std::string parent{};
  };
  std::unordered_map<SessionKey, Foreign> foreign;  ///< Sessions of other monitors.
  TallyExchange tallies;

  bool incomplete = false;  ///< Memory may be wrong: everything is read once more.
  /// Sessions that this monitor judges and has not read yet; others judged them before.
  std::set<SessionKey> unread;
  Seq cursor = 0;
  Instant last_look{};  ///< When the observer arrived for the latest look that succeeded.
  /// When it arrived last. Later dates wait for its next arrival: a look takes time, and reports
  /// from meanwhile may not be in the file yet.
  Instant here{};
  bool arrived = false;  ///< For the look to come.
  using Due = std::pair<Instant, SessionKey>;
  /// A vector would keep room for twice as many.
  std::priority_queue<Due, std::deque<Due>, std::greater<>> due;

  /// When silent sessions' processes were last looked for.
  std::unordered_map<SessionKey, Instant> looked;

  // Concluded and not yet recorded:
  std::vector<Transition> changes;
  std::vector<SessionKey> to_keep;
  std::unordered_set<SessionKey> ended;  ///< Leave memory once written.

  Entry* entry_of(SessionKey session) {
    const auto found = entries.find(session);
    return found == entries.end() ? nullptr : &found->second;
  }

  /// REQUIRES: mutex held.
  [[nodiscard]] std::shared_ptr<const Description> described(const SessionSpec& spec) {
    auto made = std::make_shared<const Description>(description_of(spec));
    if (const auto known = descriptions.find(made); known != descriptions.end()) return *known;
    if (descriptions.size() > 64 + 2 * entries.size()) {
      std::erase_if(descriptions, [](const auto& item) { return item.use_count() == 1; });
    }
    descriptions.insert(made);
    return made;
  }

  [[nodiscard]] bool runs_here(const History& history) const {
    return history.pid > 0 && history.machine == machine;
  }

  /// Returns the details of a session that gets into trouble.
  [[nodiscard]] std::string situation(const Case& judged, Instant then) {
    SituationContext around;
    // Unreadable events are left out; the next reader of the file gets the error.
    if (auto events = EventReader(store.reader()).up_to(judged.history.seq, situation_events))
      around.events = std::move(*events);
    // The present process says nothing about an earlier time.
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

  /// Returns from when a quiet session's process is looked for: one interval after its silence
  /// began, so a supervisor that restarts crashed agents can act before an alert.
  [[nodiscard]] static Instant process_look_from(const Entry& entry) {
    const auto silence = silence_begins(entry.judged.history, *entry.judged.policy);
    return silence == never ? never : silence + entry.judged.policy->heartbeat_interval;
  }

  [[nodiscard]] Instant looked_at(const Entry& entry) const {
    const auto found = looked.find(entry.judged.session);
    return found == looked.end() ? Instant{} : found->second;
  }

  /// Returns when its process is looked for next.
  [[nodiscard]] Instant next_process_look(const Entry& entry) const {
    const History& history = entry.judged.history;
    if (!runs_here(history) || history.notes->exited_seq != 0) return never;
    if (history.notes->process_found) return looked_at(entry) + found_process_look_every;
    const auto look = process_look_from(entry);
    return look == never ? never : std::max(look, looked_at(entry) + process_look_every);
  }

  /// Returns when the session needs a look without a new event.
  [[nodiscard]] Instant next_due(const Entry& entry) const {
    const History& history = entry.judged.history;
    if (is_end(history.lifecycle)) return never;
    return std::min(entry.judged.health.valid_until, next_process_look(entry));
  }

  /// Later dates are corrected when the earlier one comes up, so heartbeats cost nothing here.
  void enqueue(SessionKey session, Entry& entry) {
    const auto at = next_due(entry);
    if (at >= entry.queued) return;
    entry.queued = at;
    due.emplace(at, session);
  }

  // The waits of parents for their children; see families.cpp.
  void note_family(SessionKey session, const Entry& entry);
  [[nodiscard]] bool has_working_child(std::string_view id, std::set<SessionKey>& seen) const;
  [[nodiscard]] bool is_wrong_about_children(SessionKey session);
  [[nodiscard]] std::vector<Batch> waits_of_parents();
  Result<void> notify_parents();

  /// After an entry took events or time passed for it.
  void settle(SessionKey session, Entry& entry, bool changed) {
    note_family(session, entry);
    tallies.count(entry.counted, Tally::part_of(entry.judged));
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

  // Sharing with other monitors; see shared_store.cpp.
  Result<HeldShards::Change> renew_leases();
  Result<void> renew_when_due();
  void see_foreign(const Event& event);
  Result<void> pass_on_transitions();
  [[nodiscard]] const Foreign* foreign_session(SessionKey session);
  [[nodiscard]] bool has_working_foreign_child(std::string_view id) const;
  [[nodiscard]] bool is_shared() const {
    return !name.empty() && Sharing(store).shares().monitors.size() > 1;
  }

  /// Brings sessions into memory; see loading.cpp.
  class Loading {
   public:
    explicit Loading(State& state) : state_(state) {}
    /// One, with all its events so far.
    Result<Entry*> load(SessionKey session);
    /// A piece of what is unread.
    Result<void> load_some();
    Result<void> load_all();
    /// After leases changed: lets the sessions of lost shards go, and begins with those of gained
    /// ones.
    Result<void> hand_over(const HeldShards::Change& change);
    /// Forgets everything, and begins to read it. Conclusions that were not recorded are made
    /// again.
    Result<void> begin_again();

   private:
    Entry& enter(SessionRow&& row, Case&& judged, bool changed);
    Result<void> load_together(std::span<const SessionKey> sessions);
    Result<void> queue(const std::vector<SessionKey>& sessions);

    State& state_;
  };

  Result<void> fold(const Event& event) {
    if (event.session == observer_key) {
      const std::lock_guard guard(mutex);
      for (auto& [session, entry] : entries) {
        if (event.seq <= entry.judged.folded || entry.judged.history.seq == 0) continue;
        const auto before = changes.size();
        entry.judged.fold(event, changes, &details);
        ++entry.since_snapshot;
        settle(session, entry, changes.size() != before);
      }
      return {};
    }
    if (!store.owns(event.session)) {
      see_foreign(event);
      return {};
    }
    Entry* entry = entry_of(event.session);
    if (entry == nullptr) {
      auto loaded = Loading(*this).load(event.session);
      if (!loaded && loaded.error().code != ErrorCode::not_found) return loaded.error();
      return {};  // not_found: retention was quicker
    }
    if (event.seq <= entry->judged.folded) return {};
    const std::lock_guard guard(mutex);
    const auto before = changes.size();
    const auto lifecycle = entry->judged.history.lifecycle;
    // A change that lists show is kept as well, even if it is not a transition.
    const auto look = [&] {
      return std::pair(standing_of(entry->judged, WallTime{}),
                       entry->judged.history.notes->words->prompt.empty());
    };
    const auto looked_like = look();
    ended.erase(event.session);
    entry->judged.fold(event, changes, &details);
    ++entry->since_snapshot;
    settle(event.session, *entry,
           changes.size() != before || lifecycle != entry->judged.history.lifecycle ||
               looked_like != look());
    return {};
  }

  void publish(const Event& event) const {
    const auto entry = entries.find(event.session);
    if (entry != entries.end()) return options.seen(event, entry->second.id);
    const auto other = foreign.find(event.session);
    if (other != foreign.end()) options.seen(event, other->second.id);
  }

  Result<void> catch_up() {
    while (true) {
      auto events = EventReader(store.reader()).after(cursor, piece_events, page_bytes_max);
      if (!events) return events.error();
      for (const auto& event : *events) {
        if (auto folded_event = fold(event); !folded_event) return folded_event;
        cursor = event.seq;
        if (options.seen) publish(event);
      }
      if (events->empty()) return {};
      if (options.seen_some) options.seen_some();
      if (auto kept = keep(); !kept) return kept;
    }
  }

  /// REQUIRES: mutex held.
  void forget(SessionKey session) {
    unread.erase(session);
    const auto gone = entries.find(session);
    if (gone == entries.end()) return;
    tallies.count(gone->second.counted, {});
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
    tallies.show(*this);
    Conclusions verdicts{.transitions = changes,
                         .alerts = options.alerts ? &*options.alerts : nullptr};
    for (const auto session : to_keep) {
      if (auto* entry = entry_of(session)) verdicts.snapshots.push_back(&entry->judged);
    }
    const auto recorded = store.record(verdicts);
    if (!recorded) {
      incomplete = true;  // its sessions may be another monitor's by now
      return recorded.error();
    }
    for (const auto session : to_keep) {
      if (auto* entry = entry_of(session)) entry->since_snapshot = 0;
    }
    if (name.empty()) {
      if (options.concluded) publish(*recorded);
    } else if (!changes.empty()) {
      recorded_transition = *recorded + static_cast<std::int64_t>(changes.size()) - 1;
    }
    changes.clear();
    to_keep.clear();
    if (!ended.empty()) {
      const std::lock_guard guard(mutex);
      for (const auto session : ended) forget(session);
      ended.clear();
    }
    return {};
  }

  /// Passes on the recorded transitions; `id` is the first.
  void publish(std::int64_t id) {
    for (auto& change : changes) {
      TransitionRow row{
          .id = id++, .detector = std::string(detector_version), .quiet = change.quiet};
      row.transition = std::move(change);
      const auto entry = entries.find(row.transition.session);
      if (entry != entries.end()) options.concluded(row, entry->second.id);
    }
  }

  /// Removes the sessions from the queue that are due at `now`.
  std::vector<SessionKey> drain_due(Instant now) {
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

  /// True if the observer came so late that it may have missed reports of a session that is due.
  /// Its delay is then more than a quarter of the time for which the session was quiet.
  Result<bool> missed_some(Instant now) {
    const auto should_have = [&](Instant at) {
      return std::min(std::max(at, last_look), last_look + look_every);
    };
    if (incomplete || due.empty() || now - should_have(due.top().first) < lateness_min)
      return false;
    // Events that others wrote into the file meanwhile were received in time.
    if (auto caught = catch_up(); !caught) return caught.error();
    bool missed = false;
    for (const auto session : drain_due(now)) {
      Entry& entry = *entry_of(session);
      const History& history = entry.judged.history;
      // Looking for a found process is frequent, and does not show what was missed.
      const auto at =
          history.notes->process_found ? entry.judged.health.valid_until : next_due(entry);
      if (at > now) {
        enqueue(session, entry);
        continue;
      }
      const bool silence = at >= silence_begins(history, *entry.judged.policy);
      const auto quiet_from = silence ? history.last_sign : history.pace_from;
      missed |= 4 * (now - should_have(at)) > at - quiet_from;
      enqueue(session, entry);
    }
    return missed;
  }

  /// Notes that the observer is there, and an absence if it was away for too long.
  Result<void> arrive() {
    if (const auto renewed = renew_when_due(); !renewed) return renewed.error();
    const auto now = store.now();
    const auto away = now - last_look;
    auto absent = away > options.late_max ? Result<bool>(true) : missed_some(now);
    if (!absent) return absent.error();
    here = now;
    if (!*absent) return {};
    if (auto concluded = store.append_observer({away}); !concluded) return concluded.error();
    last_look = here = store.now();
    return {};
  }

  /// Lets time pass for the sessions that are due, and looks for the processes of the silent.
  Result<void> expire() {
    const Instant now = here;
    const auto sessions = drain_due(now);
    if (sessions.empty()) return {};
    std::vector<Batch> gone;
    // While no other process can append, the events are all that happened up to now.
    auto done = store.alone([&]() -> Result<void> {
      const auto begun = std::chrono::steady_clock::now();
      if (auto caught = catch_up(); !caught) return caught;
      for (const auto session : sessions) {
        Entry* entry = entry_of(session);
        if (entry == nullptr) continue;
        const std::lock_guard guard(mutex);
        if (!name.empty() && std::chrono::steady_clock::now() - begun > expiry_max) {
          enqueue(session, *entry);
          continue;
        }
        const auto before = changes.size();
        entry->judged.expire(now, changes, &details);
        if (auto facts = process_gone(*entry, now)) gone.push_back(std::move(*facts));
        settle(session, *entry, changes.size() != before);
      }
      return keep();
    });
    if (!done) {
      // The conclusions may not have been recorded, and cannot be undone in memory.
      if (auto again = Loading(*this).begin_again(); !again) return again;
      return done;
    }
    if (gone.empty()) return {};
    if (auto appended = store.append(gone); !appended) return appended.error();
    return catch_up();
  }

  /// Folds what was appended and lets time pass up to the latest arrival.
  Result<Instant> look() {
    processes_left = processes_max;
    if (incomplete) {
      if (auto again = Loading(*this).begin_again(); !again) return again.error();
    }
    if (auto caught = catch_up(); !caught) return caught.error();
    if (auto kept = keep(); !kept) return kept.error();
    if (auto loaded = Loading(*this).load_some(); !loaded) return loaded.error();
    if (auto expired = expire(); !expired) return expired.error();
    if (auto concluded = notify_parents(); !concluded) return concluded.error();
    if (auto concluded = pass_on_transitions(); !concluded) return concluded.error();
    if (auto exchanged = tallies.exchange(*this); !exchanged) return exchanged.error();
    // Sessions whose alerts are due may be better by what was not read yet.
    if (!unread.empty()) return store.now();
    const Instant next = due.empty() ? never : due.top().first;
    if (!options.alerts) return next;
    const auto alert = AlertActs(store).next_due(*options.alerts);
    return alert ? std::min(next, *alert) : alert;
  }

  /// Returns running sessions that no known process will end, oldest activity first.
  std::vector<std::pair<Seq, SessionKey>> unattended(std::size_t count_max) {
    std::vector<std::pair<Seq, SessionKey>> found;
    for (const auto& [session, entry] : entries) {
      const auto& history = entry.judged.history;
      const bool is_attended = runs_here(history) && !history.notes->process_found;
      if (is_end(history.lifecycle) || is_attended) continue;
      found.emplace_back(history.seq, session);
    }
    const auto count = std::min(count_max, found.size());
    std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count),
                      found.end());
    found.resize(count);
    return found;
  }

  /// The sessions to be abandoned; those first of which there never was an event, since nothing but
  /// the wall clock says how old they are.
  Result<std::vector<std::string>> quiet_since(Instant then, std::size_t count_max) {
    auto ids = store.reader().sessions_without_events(WallTime{then.time_since_epoch()}, count_max);
    if (!ids) return ids;
    for (const auto& [seq, session] : unattended(count_max - ids->size())) {
      const auto tick = EventReader(store.reader()).tick_of(seq);
      if (!tick) return tick.error();
      if (tick->value_or(Instant{}) > then) break;  // nothing: dropped already
      const auto& id = entries.at(session).id;
      if (std::find(ids->begin(), ids->end(), id) == ids->end()) ids->push_back(id);
    }
    return ids;
  }

  Result<std::size_t> abandon(Instant then, std::size_t count_max) {
    std::size_t count = 0;
    // While no other process can append, none of them reports.
    auto done = store.alone([&]() -> Result<void> {
      if (auto caught = catch_up(); !caught) return caught;
      const auto ids = quiet_since(then, count_max);
      if (!ids) return ids.error();
      std::vector<Batch> ends;
      for (const auto& id : *ids) {
        Report end{.kind = ReportKind::end};
        end.detail =
            Outcome{.kind = OutcomeKind::incomplete, .reason = std::string(reasons::abandoned)};
        ends.push_back({.session = id,
                        .creation = Creation::refuse,
                        .reports = {std::move(end)},
                        .by = ReportOrigin::monitor});
      }
      count = ends.size();
      if (ends.empty()) return {};
      if (auto stored = store.append(ends); !stored) return stored.error();
      if (auto caught = catch_up(); !caught) return caught;
      return keep();
    });
    if (done) return count;
    if (auto again = Loading(*this).begin_again(); !again) return again.error();
    return done.error();
  }

  std::optional<Batch> process_gone(Entry& entry, Instant now) {
    const History& history = entry.judged.history;
    if (is_end(history.lifecycle) || now < next_process_look(entry)) return std::nullopt;
    looked[entry.judged.session] = now;
    auto process = facts_of_process(history);
    if (is_running(process) != false) return std::nullopt;
    auto row = store.reader().session(entry.judged.session);
    if (!row) return std::nullopt;
    Batch batch{.session = row->id, .creation = Creation::refuse, .by = ReportOrigin::monitor};
    Report& report = batch.reports.emplace_back();
    if (auto outcome = outcome_of_exit(history)) {
      report.kind = ReportKind::end;
      report.detail = std::move(*outcome);
    } else {
      report.kind = ReportKind::exited;
      report.detail = std::move(process);
    }
    return batch;
  }

  /// True if the session waits because its model's server refused a request.
  static bool was_refused(const History& history) {
    constexpr std::string_view refusals[] = {backend,
                                             wait_reports::login,
                                             wait_reports::billing,
                                             wait_reports::quota,
                                             wait_reports::overload,
                                             wait_reports::retry};
    return history.lifecycle == Lifecycle::waiting &&
           std::ranges::find(refusals, history.notes->waiting_for) != std::end(refusals);
  }

  /// Returns the outcome of a session whose process is gone; nothing: it died.
  static std::optional<Outcome> outcome_of_exit(const History& history) {
    const auto& cancel = history.notes->cancel;
    if (cancel)
      return Outcome{.kind = OutcomeKind::cancelled,
                     .reason = std::string(reasons::cancelled),
                     .error = cancel->reason,
                     .subject = cancel->by};
    // An agent that does not report its end leaves when its turn is over: with an answer, by an
    // interruption, or because its model's server refused it.
    const bool rests = history.lifecycle == Lifecycle::idle || was_refused(history);
    if (history.notes->process_found && rests)
      return Outcome{.kind = OutcomeKind::completed,
                     .reason = std::string(reasons::task_complete),
                     .error = {},
                     .stated = false,
                     .subject = {},
                     .by_answer = true};
    return std::nullopt;
  }
};

}  // namespace watchdog
