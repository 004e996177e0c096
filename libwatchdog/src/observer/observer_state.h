/// \file
/// The state of an observer, and its look. For the .cpp files of this folder only.
#pragma once

#include <span>
#include <unordered_map>
#include <unordered_set>

#include "observer/call_looks.h"
#include "observer/families.h"
#include "observer/live_sessions.h"
#include "observer/observer.h"
#include "observer/process_looks.h"
#include "observer/schedule.h"
#include "store/lock.h"
#include "store/place.h"
#include "store/sharing.h"

namespace watchdog {

/// The numbers of sessions that monitors on one server show each other.
struct Observer::TallyExchange {
  Tally own{};  ///< Of all sessions in memory. Under the mutex, as the next one.
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

/// Each function returns the store's errors.
struct Observer::State {
  /// Events folded at one reading, and snapshots written at once.
  static constexpr int piece_events = 1'000;

  State(Store& opened, Options chosen) : store(opened), options(std::move(chosen)) {}
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Store& store;
  Options options;
  std::optional<FileLock> lock;       ///< Names the judge, and keeps older versions out.
  std::optional<FileLock> file_lock;  ///< Of the file itself.

  LiveSessions sessions;
  ProcessLooks processes{boots_of(store.reader())};
  CallLooks calls{sessions, processes};
  Schedule schedule{sessions, processes, calls};
  Families families{sessions, [this](std::string_view id) { return has_child_elsewhere(id); }};
  const DetailProvider details = [this](const Case& judged, Instant then) {
    return situation(judged, then);
  };

  // On a server that several monitors may share:
  std::string name;                      ///< Of this monitor; empty: it is a file.
  Instant leases_at = never;             ///< When they were renewed.
  Instant boots_at{};                    ///< When the boots were read.
  bool owes_grace = false;               ///< It gained sessions, and no absence says so yet.
  std::int64_t passed_transition = 0;    ///< The newest that was passed on, of any monitor.
  std::int64_t recorded_transition = 0;  ///< The newest of this monitor.
  struct Foreign {
    std::string id{};
    std::string parent{};
  };
  std::unordered_map<SessionKey, Foreign> foreign;  ///< Sessions of other monitors.
  TallyExchange tallies;
  bool knows_channels = false;  ///< Channels that are new have got the open troubles.

  bool incomplete = false;  ///< Memory may be wrong: everything is read once more.
  /// Sessions that this monitor judges and has not read yet; others judged them before.
  std::set<SessionKey> unread;
  Seq cursor = 0;
  Instant last_look{};  ///< When the observer arrived for the latest look that succeeded.
  /// When it arrived last. Later dates wait for its next arrival: a look takes time, and reports
  /// from meanwhile may not be in the file yet.
  Instant here{};
  bool arrived = false;  ///< For the look to come.

  // Concluded and not yet recorded:
  std::vector<Transition> changes;
  std::vector<SessionKey> to_keep;
  std::unordered_set<SessionKey> ended;  ///< Leave memory once written.

  // The look; see look.cpp.
  /// Folds what was appended and lets time pass up to the latest arrival.
  Result<Instant> look();
  Result<void> catch_up();
  Result<void> fold(const Event& event);
  /// After a session took events or time passed for it.
  void settle(LiveSession& session, bool changed);
  /// Writes down what was concluded, in one transaction, and lets ended sessions go.
  Result<void> keep();
  void publish(const Event& event) const;
  /// Passes on the recorded transitions; `id` is the first.
  void publish(std::int64_t id);
  /// Returns the details of a session that gets into trouble.
  [[nodiscard]] std::string situation(const Case& judged, Instant then);
  /// REQUIRES: mutex held.
  void forget(SessionKey session);

  // The passing of time; see passing_time.cpp.
  /// Notes that the observer is there, and an absence if it was away for too long.
  Result<void> arrive();
  /// True if the observer came so late that it may have missed reports of a session that is due.
  /// Its delay is then more than a quarter of the time for which the session was quiet.
  Result<bool> missed_some(Instant now);
  /// Lets time pass for the sessions that are due, and looks for the processes of the silent.
  Result<void> expire();
  /// Lets parents wait for their children, and rest after them.
  Result<void> notify_parents();
  /// Ends sessions that no known process will end; returns their number.
  Result<std::size_t> abandon(Instant then, std::size_t count_max);
  /// Runs `act` while no other process can append: the events are all that happened up to now.
  /// After a failure all is read again, because memory cannot be rolled back.
  Result<void> alone(const std::function<Result<void>()>& act);

  // Sharing with other monitors; see shared_store.cpp.
  Result<HeldShards::Change> renew_leases();
  Result<void> renew_when_due();
  void see_foreign(const Event& event);
  Result<void> pass_on_transitions();
  [[nodiscard]] const Foreign* foreign_session(SessionKey session);
  /// True if a child of this session works that is not in memory.
  [[nodiscard]] bool has_child_elsewhere(std::string_view id) const;
  [[nodiscard]] bool is_shared() const {
    return !name.empty() && Sharing(store).shares().monitors.size() > 1;
  }

  /// Brings sessions into memory; see loading.cpp.
  class Loading {
   public:
    explicit Loading(State& state) : state_(state) {}
    /// One, with all its events so far.
    Result<LiveSession*> load(SessionKey session);
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
    LiveSession& enter(SessionRow&& row, Case&& judged, bool changed);
    Result<void> load_together(std::span<const SessionKey> keys);
    Result<void> queue(const std::vector<SessionKey>& keys);

    State& state_;
  };
};

}  // namespace watchdog
