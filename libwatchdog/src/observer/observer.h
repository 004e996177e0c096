/// \file
/// The judge of a store: folds every event in order and records each change of health.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codec/progress.h"
#include "observer/tally.h"
#include "store/store.h"
#include "store/transition_reader.h"
#include "watchdog/health.h"
#include "watchdog/result.h"

namespace watchdog {

/// A session as the observer holds it. A plain value.
struct Watched {
  Case judged{};
  std::shared_ptr<const Description> description{};
  WallTime created{};
};

/// A session that another one started. A plain value.
struct Child {
  std::string id{};
  Case judged{};
};

/// An open turn. A plain value.
struct ActiveTurn {
  std::string session{};
  std::string agent{};  ///< Of the session; empty: unknown.
  OpenTurn turn{};
  std::vector<OpenCall> calls{};  ///< Its running ones, oldest first.
};

/// Adds a session's open turns, oldest first, until there are `count_max`; with `id` only those of
/// that id.
void add_turns(std::vector<ActiveTurn>& turns, std::string_view session, const History& history,
               const Description& description, std::string_view id, std::size_t count_max);

/// One a file: the process that holds the judge's lock. Keeps the running sessions in memory, some
/// hundred bytes each. All but `watched`, `find`, `children`, `turns` and the tallies: use from
/// one thread at a time, the one that uses the store. Those are thread-safe.
class Observer {
 public:
  struct Options {
    /// A longer time between two looks is an absence of the observer, which becomes an event. So is
    /// a shorter one, if it delayed a session that is due now and might have been heard. Look at
    /// least once a second, and at the time that the previous look returned.
    Millis late_max{5'000};
    /// Receives each recorded change of health with its session's id, on the thread that looks. It
    /// must not block, nor must the next one. Of several monitors on one database each gets those
    /// of the others, too, all in the order of their ids.
    std::function<void(const TransitionRow&, const std::string& session)> concluded{};
    /// Receives each event once it is folded, in order, except those that were in the file when the
    /// sessions were loaded; `reloaded` covers these.
    std::function<void(const Event&, const std::string& session)> seen{};
    /// Called when some were folded and the look goes on.
    std::function<void()> seen_some{};
    /// The sessions were loaded: further calls follow this event and this transition.
    std::function<void(Seq, std::int64_t transition)> reloaded{};
    /// The rules of alerts; empty: no alerts.
    std::optional<AlertRules> alerts{};
  };

  /// Becomes the judge of the store's file. The store must outlive the observer. Errors:
  /// `conflict`, naming the pid of the present judge; or the store's errors.
  [[nodiscard]] static Result<std::unique_ptr<Observer>> start(Store& store, Options options);
  ~Observer();
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  /// Records that the observer is there, and an absence if it was away too long. A caller that
  /// appends reports of others calls this first: events that are stamped after an absence must
  /// follow it. Errors: the store's; then the absence continues.
  [[nodiscard]] Result<void> arrive();

  /// Folds what was appended since the last look, and concludes what follows from the time until
  /// the latest arrival. It arrives by itself if the caller did not. Returns when it must look
  /// again at the latest; `never` if only an event can change anything.
  [[nodiscard]] Result<Instant> look();

  /// Uses these rules of alerts from the next look on. A channel that is new gets the troubles that
  /// are open.
  void set_alert_rules(AlertRules rules);

  /// Writes all snapshots, so that a restart or retention need not read their events.
  [[nodiscard]] Result<void> checkpoint();

  /// Ends running sessions as `incomplete / abandoned` that reported nothing since then and whose
  /// process is not known to run here. Oldest activity first, at most `count_max`; returns their
  /// number. No alerts follow.
  [[nodiscard]] Result<std::size_t> abandon(Instant quiet_since, std::size_t count_max);

  /// Removes sessions that retention dropped from memory.
  void forget(const std::vector<SessionKey>& sessions);

  /// Returns the newest folded event.
  [[nodiscard]] Seq folded() const noexcept;

  /// Returns a running session.
  [[nodiscard]] std::optional<Watched> find(std::string_view session_id) const;
  /// Returns the running children of a session, the most severe health first, then the newest. Only
  /// the newest 1,000 are considered.
  [[nodiscard]] std::vector<Child> children(std::string_view session_id,
                                            std::size_t count_max) const;
  /// Returns the open turns of running sessions, those of the newest session first, at most
  /// `count_max`; with `id` only those of that id. Sessions without turns cost nothing.
  [[nodiscard]] std::vector<ActiveTurn> turns(std::size_t count_max,
                                              std::string_view id = {}) const;
  /// Returns the ids of the running sessions that are meant. `is_meant` must not wait: nothing is
  /// judged meanwhile.
  [[nodiscard]] std::vector<std::string> sessions_where(
      const std::function<bool(const Case&)>& is_meant) const;
  /// Returns the numbers of the sessions in memory.
  [[nodiscard]] Tally tally() const;
  /// The same of the sessions that other monitors on the same database judge.
  [[nodiscard]] Tally tally_of_others() const;
  /// Returns the number of sessions in memory.
  [[nodiscard]] std::size_t watched() const;

 private:
  struct State;
  struct TallyExchange;
  explicit Observer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace watchdog
