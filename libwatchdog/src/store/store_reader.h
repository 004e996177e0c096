/// \file
/// Reads a store. Nothing here can change it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/alerts.h"
#include "store/audit.h"
#include "watchdog/health.h"
#include "watchdog/report.h"
#include "watchdog/result.h"
#include "watchdog/session.h"

namespace watchdog {

/// A session as the store lists it. A plain value.
struct SessionRow {
  SessionKey key = observer_key;
  std::string id{};
  SessionSpec spec{};
  WallTime created{};
  WallTime updated{};  ///< Newest change of lifecycle or health; of an ended one, its end.
  std::string outcome_reason{};  ///< Empty while it runs.
  // Of an ended session:
  std::int32_t wasted_calls = 0;  ///< Of the loop in which it ended.
  Words words{};
  std::string error{};        ///< The error that it ended with, for people.
  std::string subject{};      ///< The subject of the reason, such as a budget's axis.
  bool acknowledged = false;  ///< A person acknowledged the alert about its end or its trouble.
  std::int32_t attempt = 1;
  Lifecycle lifecycle = Lifecycle::running;
  HealthKind health = HealthKind::unknown;
  Seq head = 0;  ///< Its newest event; 0: none yet.
};

/// How many levels below an ancestor a filter finds sessions.
inline constexpr int ancestor_levels_max = 8;

/// Selects sessions to list; empty fields match all. Newest first.
struct SessionFilter {
  std::vector<HealthKind> healths{};  ///< One of these.
  std::optional<Lifecycle> lifecycle{};
  std::string agent{};
  std::string parent{};
  std::string ancestor{};  ///< One above them, at most `ancestor_levels_max` levels.
  std::string label_key{};
  std::string label_value{};
  std::string text{};    ///< Contained in id, agent, title, task or labels.
  SessionKey after = 0;  ///< Continue below this key; 0: from the newest.
  int limit = 100;
};

/// A verified copy of a store. A plain value.
struct StoreCopy {
  std::int64_t bytes = 0;
  std::int64_t sessions = 0;
  std::int64_t events = 0;
};

/// A boot of a machine. A plain value.
struct Boot {
  std::string id{};
  std::string host{};  ///< Empty: this one.
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
  /// Returns the present requests to the agent of a session; nothing if there is no session.
  [[nodiscard]] Result<Directive> directive_of(std::string_view id);
  [[nodiscard]] Result<std::vector<SessionRow>> sessions(const SessionFilter& filter);
  /// How many sessions ended in each way, and how many of those that failed or are incomplete need
  /// a person: they ended after `fresh_after`, and nobody acknowledged it.
  struct Ends {
    std::int64_t completed = 0, failed = 0, incomplete = 0, cancelled = 0;
    std::int64_t fresh = 0;
  };
  [[nodiscard]] Result<Ends> ends(WallTime fresh_after);
  /// Returns the children of a session that have not ended, the most severe health first, then the
  /// newest. Only its newest 1,000 children are considered.
  [[nodiscard]] Result<std::vector<SessionRow>> running_children(std::string_view id,
                                                                 int count_max);
  /// Returns running sessions that began a turn since their last start, below a key, newest first.
  [[nodiscard]] Result<std::vector<SessionRow>> sessions_with_turns(SessionKey below,
                                                                    int count_max);
  /// Returns the keys of the sessions that have not ended, or that ended without a judge.
  [[nodiscard]] Result<std::vector<SessionKey>> sessions_to_judge();

  /// Returns running sessions without any event that were created until then; at most `count_max`.
  [[nodiscard]] Result<std::vector<std::string>> sessions_without_events(WallTime made_until,
                                                                         std::size_t count_max);
  /// Returns entries of the audit log after an id, oldest first.
  [[nodiscard]] Result<std::vector<AuditEntry>> audit(std::int64_t after, int count_max);

  /// Returns the session as judged by all its events: from its snapshot and later events. Nothing
  /// is stored. `changes`, if given, gets the transitions after the snapshot, with the text of
  /// `details`.
  [[nodiscard]] Result<Case> fold(const SessionRow& row, std::vector<Transition>* changes = nullptr,
                                  const DetailProvider* details = nullptr);

  [[nodiscard]] Result<std::vector<Alert>> alerts(const AlertFilter& filter);
  /// Returns the alerts of the oldest undelivered message of a channel, without their deliveries;
  /// `single`: only the first.
  [[nodiscard]] Result<std::vector<Alert>> next_message(std::string_view channel, bool single);

  /// Returns the latest tick in the file, judgements by time included.
  [[nodiscard]] Result<Instant> latest_tick();
  /// Returns the offset from `Clock::since_boot` to ticks. Empty: no process has written since the
  /// machine started.
  [[nodiscard]] Result<std::optional<Millis>> tick_offset(const std::string& boot_id);
  /// Writes the present store into a new file (mode 0600), durably, and verifies it. Writers go on
  /// meanwhile. Errors: `conflict` (the file exists), `unavailable`, `corrupt` (then the copy is
  /// deleted).
  [[nodiscard]] Result<StoreCopy> copy_to(const std::filesystem::path& file);
  /// Returns a number that changes with each commit of another connection.
  [[nodiscard]] Result<std::int64_t> version();

 private:
  friend class Store;
  friend class Sharing;
  friend class AlertActs;
  friend class EventReader;
  friend class TransitionReader;
  friend class Backwards;
  friend std::vector<Boot> boots_of(StoreReader& store);
  struct State;
  explicit StoreReader(std::unique_ptr<State> state);
  [[nodiscard]] static Result<StoreReader> open_on_server(const std::filesystem::path& url);
  std::unique_ptr<State> state_;
};

/// Returns at most 1,000 boots, the newest first. Of a file: all of the machine on which it was
/// written. Of a server: those that are over, of each machine that has a monitor. Empty: unknown.
[[nodiscard]] std::vector<Boot> boots_of(StoreReader& store);

}  // namespace watchdog
