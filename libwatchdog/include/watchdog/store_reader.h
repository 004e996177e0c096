/// \file
/// Reading a store. Nothing here can change it, so whoever judges gets this and no more.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/alerts.h"
#include "watchdog/audit.h"
#include "watchdog/case.h"
#include "watchdog/report.h"
#include "watchdog/result.h"
#include "watchdog/session.h"

namespace watchdog {

/// A session as the store lists it. A plain value.
struct SessionRow {
  SessionKey key = observer_key;
  std::string id;
  SessionSpec spec;
  WallTime created{};
  WallTime updated{};  ///< Newest change of lifecycle or health; of an ended one, its end.
  std::string outcome_reason;  ///< Empty while it runs.
  std::int32_t attempt = 1;
  Lifecycle lifecycle = Lifecycle::running;
  HealthKind health = HealthKind::unknown;
  Seq head = 0;  ///< Its newest event; 0: none yet.
};

/// Which sessions to list; empty fields match all. Newest first.
struct SessionFilter {
  std::optional<HealthKind> health;
  std::optional<Lifecycle> lifecycle;
  std::string agent;
  std::string parent;
  std::string label_key;
  std::string label_value;
  std::string text;      ///< Somewhere in id, agent or task.
  SessionKey after = 0;  ///< Continue below this key; 0: from the newest.
  int limit = 100;
};

/// A part of a session's events.
struct EventPage {
  std::vector<Event> events;
  std::optional<Seq> next;  ///< Where the part that follows begins; empty: that was all.
};

struct TransitionRow {
  std::int64_t id = 0;
  Transition transition;
  std::string detector;
  /// From the newest event then to the change: 0 if that event caused it, more if the health before
  /// it expired. Empty: that event is not kept any more.
  std::optional<Millis> quiet;
};

/// A copy of a store that was checked. A plain value.
struct StoreCopy {
  std::int64_t bytes = 0;
  std::int64_t sessions = 0;
  std::int64_t events = 0;
};

class StoreReader {
 public:
  /// Opens an existing store for reading. Errors: `not_found`, `unavailable`, `corrupt`, `invalid`
  /// (another program's file), `conflict` (a newer schema).
  [[nodiscard]] static Result<StoreReader> open(const std::filesystem::path& database);
  ~StoreReader();
  StoreReader(StoreReader&&) noexcept;
  StoreReader& operator=(StoreReader&&) noexcept;
  StoreReader(const StoreReader&) = delete;
  StoreReader& operator=(const StoreReader&) = delete;

  [[nodiscard]] Result<SessionRow> session(std::string_view id);
  [[nodiscard]] Result<SessionRow> session(SessionKey key);
  /// What the agent of a session is asked to do at the moment; nothing where there is no session.
  [[nodiscard]] Result<Directive> directive_of(std::string_view id);
  [[nodiscard]] Result<std::vector<SessionRow>> sessions(const SessionFilter& filter);
  /// Sessions that name this one as their parent and have not ended, those first whose listed
  /// health is the most severe, then the newest. Only its newest 1,000 children are looked at.
  [[nodiscard]] Result<std::vector<SessionRow>> running_children(std::string_view id,
                                                                 int count_max);
  /// Running sessions that have begun a turn since they last started, below a key, newest first.
  [[nodiscard]] Result<std::vector<SessionRow>> sessions_with_turns(SessionKey below,
                                                                    int count_max);
  /// Keys of the sessions that have not ended, or ended while nobody judged.
  [[nodiscard]] Result<std::vector<SessionKey>> sessions_to_judge();

  /// Events of all sessions after `seq`, in order.
  [[nodiscard]] Result<std::vector<Event>> events_after(Seq seq, int count_max);
  /// A session's events after `after`, oldest first; of one kind, if given. Cost: independent of
  /// how many come before.
  [[nodiscard]] Result<EventPage> page(SessionKey session, Seq after, int count_max,
                                       std::optional<ReportKind> kind = {});
  /// Likewise those before `before`, newest first.
  [[nodiscard]] Result<EventPage> page_before(SessionKey session, Seq before, int count_max,
                                              std::optional<ReportKind> kind = {});
  /// The event and those of its session before it, at most so many, oldest first; fewer where they
  /// are not kept any more.
  [[nodiscard]] Result<std::vector<Seq>> events_up_to(Seq seq, int count_max);
  /// A session's newest events, oldest first; of any kind but heartbeats.
  [[nodiscard]] Result<std::vector<Event>> latest(SessionKey session, int count_max);
  /// The newest opinion of a model with this `event_id`, of whatever session.
  [[nodiscard]] Result<std::optional<Event>> opinion(std::string_view event_id);
  /// A session's transitions after an id, oldest first.
  [[nodiscard]] Result<std::vector<TransitionRow>> transitions(SessionKey session,
                                                               std::int64_t after, int count_max);

  /// Transitions of all sessions after an id, in their order; none that was concluded of an event
  /// after `through`.
  [[nodiscard]] Result<std::vector<TransitionRow>> transitions_after(std::int64_t id, Seq through,
                                                                     int count_max);
  /// The newest transition's id, also if it is not kept any more; 0: there was none.
  [[nodiscard]] Result<std::int64_t> newest_transition();
  /// Events below it are not kept any more.
  [[nodiscard]] Result<Seq> first_kept();

  /// Who acted, after an id, oldest first.
  [[nodiscard]] Result<std::vector<AuditEntry>> audit(std::int64_t after, int count_max);

  /// Those that follow from the events and from the time up to `now`, but that no judge has written
  /// down. Their ids go on from the session's newest; the same events give the same ids.
  [[nodiscard]] Result<std::vector<TransitionRow>> unwritten(const SessionRow& row, Instant now);

  /// The session as judged by all its events so far: from its snapshot and what came after it.
  /// Nothing is stored. `changes`, where given, gets what the events after the snapshot changed, as
  /// `witness` saw it.
  [[nodiscard]] Result<Case> fold(const SessionRow& row, std::vector<Transition>* changes = nullptr,
                                  const Witness* witness = nullptr);

  [[nodiscard]] Result<std::vector<Alert>> alerts(const AlertFilter& filter);
  /// The alerts of the oldest message that a channel has not got; `single`: only the first of them.
  /// Without their deliveries.
  [[nodiscard]] Result<std::vector<Alert>> next_message(std::string_view channel, bool single);

  /// The newest event's seq and tick, 0 in an empty store.
  [[nodiscard]] Result<std::pair<Seq, Instant>> newest();
  /// The latest tick of anything in the file, judgements by time included.
  [[nodiscard]] Result<Instant> latest_tick();
  /// What `Clock::since_boot` must be raised by to become a tick. Empty: nobody has written since
  /// the machine started.
  [[nodiscard]] Result<std::optional<Millis>> tick_offset(const std::string& boot_id);
  /// Writes the store as it is at this moment into a new file (mode 0600), durably, and reads it
  /// back. Writers go on meanwhile. Errors: `conflict` (the file is there already), `unavailable`,
  /// `corrupt` (then the copy is deleted).
  [[nodiscard]] Result<StoreCopy> copy_to(const std::filesystem::path& file);
  /// Changes whenever another connection committed.
  [[nodiscard]] Result<std::int64_t> version();

 private:
  friend class Store;
  struct State;
  explicit StoreReader(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace watchdog
