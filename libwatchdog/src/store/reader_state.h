/// \file
/// The state that a StoreReader and a Store on the same connection share.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/lock.h"
#include "store/sqlite.h"
#include "store/store_reader.h"

namespace watchdog {

/// The newest transition's id, also if it was dropped.
inline constexpr std::string_view newest_transition_sql =
    "SELECT coalesce(max(id), 0) FROM (SELECT max(id) AS id FROM transitions UNION ALL SELECT "
    "value "
    "FROM meta WHERE key = 'last_transition') AS ids";

/// Of the columns sessions.cancel and sessions.aborts.
[[nodiscard]] Directive directive_from(const std::string& cancel, const std::string& aborts);

struct StoreReader::State {
  explicit State(std::shared_ptr<Database> connection) : database(std::move(connection)) {}
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  std::shared_ptr<Database> database;
  std::unordered_map<std::string, Statement> statements;
  int generation = fork_generation();
  std::optional<PolicyPatch> policy_for_all;    ///< See Store::Options; unset: what snapshots say.
  std::shared_ptr<const Policy> shared_policy;  ///< Of sessions that state nothing; null: default.

  /// The statement of this text, reset and ready to bind.
  [[nodiscard]] Statement& prepared(std::string_view sql);
  /// Follows `prev` from `from` down to, not including, `after`; oldest first. `bytes`, if given,
  /// gets the size of each.
  [[nodiscard]] std::vector<Event> walk(Seq from, Seq after,
                                        std::vector<std::size_t>* bytes = nullptr);
  [[nodiscard]] std::vector<Seq> chain(Seq from, Seq after);
  [[nodiscard]] Seq head_of(SessionKey session);
  [[nodiscard]] Instant latest_tick();
  void add_unwritten(std::vector<Transition>& concluded, const Case& judged,
                     std::vector<Transition>& changes);
  // Of several sessions at once, on a server:
  [[nodiscard]] Result<std::vector<SessionRow>> rows_of(std::span<const SessionKey> keys);
  [[nodiscard]] std::unordered_map<SessionKey, std::vector<Event>> events_of(
      std::span<const SessionRow> rows, std::span<const Seq> after);

  void fold_into(Case& judged, std::span<const Event> own, std::span<const Event> absences,
                 std::vector<Transition>* changes, const DetailProvider* details);
  [[nodiscard]] Case case_from(const SessionRow& row, const std::string* snapshot) const;
  void set_policy_for_all(const std::optional<PolicyPatch>& policy);
  /// Runs `work`, turning what it throws into an Error.
  template <class T, class Work>
  [[nodiscard]] Result<T> guarded(Work&& work);
};

/// Steps through events by `prev`, the newest first. A file is asked for each; on a server a
/// question is a round trip, so one finds many.
class Backwards {
 public:
  /// Begins with the event `from` and ends above `after`. `columns` include `prev`, at
  /// `prev_column`.
  Backwards(StoreReader::State& state, std::string_view columns, int prev_column, Seq from,
            Seq after = 0);
  ~Backwards() { row_.reset(); }
  Backwards(const Backwards&) = delete;
  Backwards& operator=(const Backwards&) = delete;

  /// Goes to the next event; false: no event follows, or it was trimmed.
  bool step();
  /// The present one, with the columns asked for.
  [[nodiscard]] const Statement& row() const noexcept { return row_; }
  [[nodiscard]] Seq seq() const noexcept { return seq_; }
  /// The event before the present one; 0: none.
  [[nodiscard]] Seq prev() const noexcept { return next_; }

 private:
  static constexpr int piece = 128;
  [[nodiscard]] static std::string question(bool on_server, std::string_view columns);
  bool on_server_;
  Statement& row_;
  int prev_column_;
  Seq seq_ = 0;
  Seq next_;
  Seq after_;
  int left_ = 0;  ///< Of the piece under way.
};

template <class T, class Work>
Result<T> StoreReader::State::guarded(Work&& work) {
  try {
    return work();
  } catch (const SqlFailure& failure) {
    for (auto& [sql, statement] : statements) statement.reset();
    return failure.error;
  }
}

}  // namespace watchdog
