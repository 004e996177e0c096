/// \file
/// The judge of a store: folds every event in order and writes down each change of health.
#pragma once

#include <array>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "watchdog/case.h"
#include "watchdog/result.h"
#include "watchdog/store.h"

namespace watchdog {

/// A session as the observer holds it. A plain value.
struct Watched {
  Case judged;
  std::shared_ptr<const std::string> description;  ///< See description_of().
  WallTime created{};
};

/// A session that another one started. A plain value.
struct Child {
  std::string id;
  Case judged;
};

/// A turn that is not over. A plain value.
struct ActiveTurn {
  std::string session;
  std::string agent;  ///< Of the session; empty: not said.
  OpenTurn turn;
  std::optional<OpenCall> call;  ///< Its newest running call.
};

/// Adds a session's open turns, oldest first, until there are `count_max`; only those of this id,
/// unless it is empty. `description`: see description_of().
void add_turns(std::vector<ActiveTurn>& turns, std::string_view session, const History& history,
               std::string_view description, std::string_view id, std::size_t count_max);

/// How many sessions there are, by lifecycle (those before `completed`) and health.
using Tally = std::array<std::array<std::int64_t, std::size(Names<HealthKind>::all)>,
                         static_cast<std::size_t>(Lifecycle::completed)>;

/// One a file: the process that holds the judge's lock. Keeps the running sessions in memory, some
/// hundred bytes each. All but `watched`, `find`, `children`, `turns` and `tally`: use from one
/// thread at a time, the one that uses the store. Those five are thread-safe.
class Observer {
 public:
  struct Options {
    /// A longer time between two looks is an absence of the observer, which becomes an event. The
    /// caller looks at least once a second.
    Millis late_max{5'000};
    /// Gets each change of health once it is written down, with its session's id, on the thread
    /// that looks. It is not to wait for anything, as is the next one.
    std::function<void(const TransitionRow&, const std::string& session)> told{};
    /// Gets each event once it is folded, in order; but none that was already in the file when the
    /// sessions were loaded, for which there is `reloaded`.
    std::function<void(const Event&, const std::string& session)> seen{};
    /// Some were, and more is to be done before the look ends.
    std::function<void()> seen_some{};
    /// The sessions were loaded: what is told next follows this event and this transition.
    std::function<void(Seq, std::int64_t transition)> reloaded{};
    /// When people are told of it; empty: never.
    std::optional<AlertRules> alerts{};
  };

  /// Becomes the judge of the store's file. The store must outlive the observer. Errors:
  /// `conflict`, naming the pid of the judge that is there already; or what the store says.
  [[nodiscard]] static Result<std::unique_ptr<Observer>> start(Store& store, Options options);
  ~Observer();
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;

  /// Folds what was appended since the last look and concludes what follows from the time that
  /// passed. Notices by itself when it was away too long. Returns when it must look again at the
  /// latest; `never` if only an event can change anything.
  [[nodiscard]] Result<Instant> look();

  /// Writes all histories down, so that a restart or retention need not read their events.
  [[nodiscard]] Result<void> checkpoint();

  /// Lets sessions go that retention dropped.
  void forget(const std::vector<SessionKey>& sessions);

  /// The newest event folded.
  [[nodiscard]] Seq folded() const noexcept;

  /// A running session.
  [[nodiscard]] std::optional<Watched> find(std::string_view session_id) const;
  /// The running sessions that name this one as their parent, those first whose health is the most
  /// severe, then the newest. Only the newest 1,000 are looked at.
  [[nodiscard]] std::vector<Child> children(std::string_view session_id,
                                            std::size_t count_max) const;
  /// The open turns of running sessions, those of the newest session first, at most so many; only
  /// those of this id, unless it is empty. Sessions without turns cost nothing.
  [[nodiscard]] std::vector<ActiveTurn> turns(std::size_t count_max,
                                              std::string_view id = {}) const;
  /// Of those watched.
  [[nodiscard]] Tally tally() const;
  /// How many sessions are watched.
  [[nodiscard]] std::size_t watched() const;

 private:
  struct State;
  explicit Observer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace watchdog
