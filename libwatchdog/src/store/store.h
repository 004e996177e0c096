/// \file
/// Writes the database. Every report enters it through `Store::append` and becomes an event.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "judge/lease_rule.h"
#include "store/alerts.h"
#include "store/audit.h"
#include "store/store_reader.h"
#include "watchdog/health.h"
#include "watchdog/report.h"
#include "watchdog/result.h"
#include "watchdog/session.h"
#include "watchdog/time.h"

namespace watchdog {

/// How to handle a session that is missing, or exists already.
enum class Creation : std::uint8_t {
  refuse,  ///< it must exist
  allow,   ///< created with default properties if it is missing
  attach,  ///< created with `spec` if it is missing; an existing one is continued
  demand   ///< created with `spec`; an existing one must have been created with the same
};

/// Reports of one session that are accepted together or not at all. A plain value.
struct Batch {
  std::string session{};
  Creation creation = Creation::allow;
  SessionSpec spec{};
  std::vector<Report> reports{};
  ReportOrigin by = ReportOrigin::unknown;  ///< The origin of all its reports.
};

/// The result of a batch.
struct Receipt {
  SessionKey key = observer_key;
  bool created = false;
  std::size_t accepted = 0;  ///< Late ones included; duplicates not.
  std::size_t duplicates = 0;
  std::size_t late = 0;
  std::size_t cut = 0;  ///< Contents that the level `preview` shortened.
  Seq last = 0;         ///< The session's newest event now.
  Directive directive{};
};

/// The conclusions of a judge. A plain value.
struct Conclusions {
  std::vector<Transition> transitions{};
  std::vector<const Case*>
      snapshots{};                     ///< Cases to store as snapshots; they must outlive the call.
  const AlertRules* alerts = nullptr;  ///< The rules of alerts; null sends none.
  [[nodiscard]] bool empty() const noexcept { return transitions.empty() && snapshots.empty(); }
};

/// Sessions to erase for good. A plain value.
struct Erasure {
  std::vector<std::string> sessions{};     ///< Their ids; each must exist.
  std::optional<WallTime> ended_before{};  ///< And all that ended, or died, until then.
  bool running_too = false;  ///< Also erase named sessions that run; else they are refused.
  bool only_say = false;     ///< Only return the ids, erase nothing.
};

/// The result of a copy from one store into another. A plain value.
struct StoreTransfer {
  std::int64_t sessions = 0;
  std::int64_t events = 0;
  std::uint64_t digest = 0;        ///< Of all rows of both, in any order.
  std::int64_t changed_texts = 0;  ///< They had bytes that a server cannot hold, see storable().
};

/// A store open for writing. Many processes may have the same file open; their writers take turns.
/// Use from one thread at a time.
class Store {
 public:
  struct Options {
    /// A path, ":memory:" for a private store that ends with this object, or the URL of a database
    /// on a server (see store/server.h).
    std::filesystem::path database{};
    const Clock* clock = &system_clock();
    bool create =
        true;  ///< Create the file (mode 0600, in a directory of mode 0700) if it is missing.
    /// Thresholds of all sessions, as far as these state none of their own. For the judge, also of
    /// sessions that are stored already. Unset: sessions are read as their judge left them.
    std::optional<PolicyPatch> policy{};
  };

  /// Errors: `invalid` (network filesystem, another program's or another user's file, more than one
  /// link, no regular file), `conflict` (a newer schema), `corrupt`, `unavailable`, `not_found`.
  [[nodiscard]] static Result<Store> open(Options options);
  ~Store();
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  /// Appends all batches in one transaction: durable when it returns. A refused batch does not
  /// affect the others. Consecutive heartbeats become one row. It waits for the writers of other
  /// processes. The batches stay as they are: after an error they can be appended again, with
  /// the same result. Errors: `unavailable`, `corrupt`: then nothing was stored.
  [[nodiscard]] Result<std::vector<Result<Receipt>>> append(std::span<const Batch> batches);

  /// Appends one event of the observer itself.
  [[nodiscard]] Result<Seq> append_observer(ObserverGap absence);

  /// Stores the judge's conclusions, and the alerts that follow from them, in one transaction.
  /// Returns the id of the first transition; the others follow it.
  [[nodiscard]] Result<std::int64_t> record(const Conclusions& verdicts);

  /// Adds an entry to the audit log and assigns its id. Durable when it returns.
  [[nodiscard]] Result<void> keep(const AuditEntry& entry);

  /// False: a file.
  [[nodiscard]] bool is_on_server() const noexcept;
  // Monitors that share a server each judge the sessions of their shards; see lease_rule.h. Once
  // shards are held, `record` refuses with `conflict` what another monitor judges, or dropped.
  /// Of a file: true.
  [[nodiscard]] bool owns(SessionKey session) const noexcept;

  /// Holds the writers' lock while `work` runs, so no event is stamped meanwhile: what `work` reads
  /// is everything up to now(). `work` may call `record` and the reader.
  [[nodiscard]] Result<void> alone(const std::function<Result<void>()>& work);

  /// Returns the present time of the file's time line. Never below any event's tick.
  [[nodiscard]] Instant now() const;
  /// Returns a reader on this connection, which sees what this store wrote at once.
  [[nodiscard]] StoreReader& reader();

  /// Returns the size of the database with its log; 0: it cannot be read now.
  [[nodiscard]] std::int64_t bytes() const;

  /// Erases sessions so that no byte of them is left in the file and its log: deletes them,
  /// rewrites the file and empties the log; other writers wait meanwhile. References in child
  /// sessions stay. For the judge of the file. Returns the ids. First completes an interrupted
  /// erasure; with an empty `erasure` it does only that. Errors: `not_found`, `conflict` (one
  /// runs): then nothing of this one was done; `unavailable`.
  [[nodiscard]] Result<std::vector<std::string>> erase(const Erasure& erasure);

  /// Copies all that another store holds into this one, in one transaction, and then compares both.
  /// Numbers of events, sessions and alerts stay the same. Errors: `conflict` (this one is not
  /// empty), `corrupt` (both differ afterwards), `unavailable`.
  [[nodiscard]] Result<StoreTransfer> fill_from(StoreReader& source);

  /// Returns true if the database, its log (`-wal`) or the log's index (`-shm`) was removed or
  /// replaced, or the store is closed. Nothing can be stored then.
  [[nodiscard]] bool vanished() const;
  /// Closes the store; after that only vanished() may be called. If the log or its index vanished,
  /// the log's content is first written into the database. Returns false if some of it is lost: the
  /// database itself vanished, or another program already uses another log.
  bool close();
  [[nodiscard]] const std::filesystem::path& path() const noexcept;

 private:
  // They act on the same connection, see the headers of these names:
  friend class AlertActs;
  friend class RetentionActs;
  friend class Sharing;
  struct State;
  explicit Store(std::unique_ptr<State> state);
  [[nodiscard]] static Result<Store> open_on_server(Options options);
  std::unique_ptr<State> state_;
};

/// Returns why a database must not be on a filesystem of this type (statfs(2) f_type), or nothing.
[[nodiscard]] std::optional<std::string> network_filesystem(std::int64_t type);

}  // namespace watchdog
