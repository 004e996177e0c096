/// \file
/// The one door: whatever happens to a session comes in here and becomes an event.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "watchdog/alerts.h"
#include "watchdog/audit.h"
#include "watchdog/case.h"
#include "watchdog/report.h"
#include "watchdog/result.h"
#include "watchdog/session.h"
#include "watchdog/store_reader.h"
#include "watchdog/time.h"

namespace watchdog {

/// Where the database is unless somebody says otherwise: `$WATCHDOG_DB`, else
/// `$XDG_STATE_HOME/watchdog/watchdog.db`, else `~/.local/state/watchdog/watchdog.db`.
[[nodiscard]] std::filesystem::path default_database();

/// What is done with a session that is not there, or is there already.
enum class Creation : std::uint8_t {
  refuse,  ///< it must exist
  allow,   ///< made with default properties if it does not
  attach,  ///< made with `spec` if it does not; an existing one is taken up as it is
  demand   ///< made with `spec`; one that exists must have been made with the same
};

/// Reports of one session that are accepted together or not at all. A plain value.
struct Batch {
  std::string session;
  Creation creation = Creation::allow;
  SessionSpec spec;
  std::vector<Report> reports;
};

/// What became of a batch.
struct Receipt {
  SessionKey key = observer_key;
  bool created = false;
  std::size_t accepted = 0;  ///< Late ones among them; not the duplicates.
  std::size_t duplicates = 0;
  std::size_t late = 0;
  Seq last = 0;  ///< The session's newest event now.
  Directive directive;
};

/// What a judge wrote down. A plain value.
struct Verdicts {
  std::vector<Transition> transitions;
  std::vector<const Case*> snapshots;  ///< Cases to be kept whole; they must outlive the call.
  const AlertRules* alerts = nullptr;  ///< By which people are told of them; null: they are not.
  [[nodiscard]] bool empty() const noexcept { return transitions.empty() && snapshots.empty(); }
};

/// What retention keeps.
struct Retention {
  /// Ended sessions are kept so long; so is who acted, but for the newest 1,000 acts.
  Millis ended_for{30LL * 24 * 3'600'000};
  std::int64_t bytes_max = 1'000'000'000;  ///< Of the database file.
  Millis heartbeats_for{3'600'000};        ///< Older heartbeat rows are merged.
  /// Events up to this one are in snapshots: of running sessions, only these may go or be merged.
  Seq folded_through = 0;
};

/// What is to be taken out of a store for good. A plain value.
struct Erasure {
  std::vector<std::string> sessions;     ///< Their ids; each must be there.
  std::optional<WallTime> ended_before;  ///< And all that ended, or died, until then.
  bool running_too = false;              ///< Also those named that run; else they are refused.
  bool only_say = false;                 ///< Nothing is done.
};

/// A store open for writing. Many processes may have the same file open; their writers take turns.
/// Use from one thread at a time.
class Store {
 public:
  struct Options {
    /// A path, or ":memory:" for a private store that is gone with this object.
    std::filesystem::path database;
    const Clock* clock = &system_clock();
    bool create =
        true;  ///< Make the file (mode 0600, in a directory of mode 0700) if it is missing.
  };

  /// Errors: `invalid` (network filesystem, another program's file), `conflict` (a newer schema),
  /// `corrupt`, `unavailable`, `not_found`.
  [[nodiscard]] static Result<Store> open(Options options);
  ~Store();
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Appends all batches in one transaction: durable when it returns. A batch that is refused
  /// leaves the others untouched. Heartbeats that follow each other become one row. Waits its turn
  /// behind the writers of other processes. The batches stay as they are but for what sealing cuts,
  /// so that they may be given again after an error. Errors: `unavailable`, `corrupt`: then nothing
  /// was stored.
  [[nodiscard]] Result<std::vector<Result<Receipt>>> append(std::span<Batch> batches);

  /// Appends one event of the observer itself.
  [[nodiscard]] Result<Seq> append_observer(ObserverGap absence);

  /// Writes what the judge concluded, and what people are to be told of it. Returns the id of the first transition; the others follow it.
  [[nodiscard]] Result<std::int64_t> record(const Verdicts& verdicts);

  /// Adds to the trail of who acted; the entry's id is given here. Durable when it returns.
  [[nodiscard]] Result<void> keep(const AuditEntry& entry);

  /// Writes down what people are to be told because of the time that passed. Returns when it must
  /// be called again at the latest. For the judge alone.
  [[nodiscard]] Result<Instant> tell_due(const AlertRules& rules);
  /// True if what there is to send changed since the last call.
  [[nodiscard]] bool take_told();
  /// What became of a delivery.
  [[nodiscard]] Result<void> note(const Attempt& attempt);
  /// Somebody knows of an alert: nothing more of that trouble until it is over. The first one
  /// counts. Errors: `not_found`, `conflict` (it tells of a recovery).
  [[nodiscard]] Result<Alert> acknowledge_alert(std::int64_t id, const std::string& by);
  /// No more of its session for so long; then again, if it is in trouble still. Errors: likewise.
  [[nodiscard]] Result<Alert> snooze_alert(std::int64_t id, Millis time);

  /// Holds the writers' queue while `work` runs, so that no event is stamped meanwhile: what `work`
  /// reads is all there is up to now(). `work` may call `record` and the reader.
  [[nodiscard]] Result<void> alone(const std::function<Result<void>()>& work);

  /// The file's time line now. Never below any event's tick.
  [[nodiscard]] Instant now() const;
  /// A reader on this connection: sees what this store wrote at once.
  [[nodiscard]] StoreReader& reader();

  /// Does a bounded piece (some milliseconds) of what retention asks for; true while there is more.
  [[nodiscard]] Result<bool> trim(const Retention& retention);

  /// Takes sessions out so that no byte of them is left in the file and its log: deletes them,
  /// writes the file anew and empties the log; other writers wait meanwhile. What children say of
  /// their parent is theirs and stays. For the judge of the file. Gives the ids. Errors:
  /// `not_found`, `conflict` (one runs): then nothing was done; `unavailable`.
  [[nodiscard]] Result<std::vector<std::string>> erase(const Erasure& erasure);

  /// The sessions that `trim` and `erase` dropped since the last call.
  [[nodiscard]] std::vector<SessionKey> take_dropped();

  /// True if the file is no longer the one that was opened (deleted or replaced).
  [[nodiscard]] bool vanished() const;
  [[nodiscard]] const std::filesystem::path& path() const noexcept;

 private:
  struct State;
  explicit Store(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Why a database must not lie on the filesystem of this type (statfs(2) f_type), or nothing.
[[nodiscard]] std::optional<std::string> network_filesystem(std::int64_t type);

}  // namespace watchdog
