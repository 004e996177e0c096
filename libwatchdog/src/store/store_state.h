/// \file
/// The inside of a Store, shared by its source files.
#pragma once

#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "store/change_notifier.h"
#include "store/event_row.h"
#include "store/files.h"
#include "store/lock.h"
#include "store/reader_state.h"
#include "store/retention.h"
#include "store/sqlite.h"
#include "store/store.h"

namespace watchdog {

/// Distance of the events of a session in `blocks`, where paging starts.
inline constexpr std::int64_t block_events = 128;
/// A longer wait for the writers' lock is recorded as an absence for all sessions.
inline constexpr Millis turn_late{1'000};
/// Wall clock and the file's time line may differ by this much.
inline constexpr Millis clocks_differ_max{3'600'000};
/// Sessions remembered between transactions; beyond it all are forgotten and read again.
inline constexpr std::size_t heads_max = 50'000;
/// A server that came back may have lost its newest events, which were heartbeats. Their numbers
/// are not given again: as many could have been lost.
inline constexpr Seq seqs_lost_max = 100'000;

/// The writer's cached state of a session, valid while no other process writes.
struct Head {
  SessionKey key = observer_key;
  std::string spec;
  ContentLevel content = ContentLevel::preview;
  std::int32_t attempt = 1;
  bool ended = false;
  Directive directive;
  bool turns = false;  ///< One has begun since it last started.
  Seq seq = 0;
  std::int64_t events = 0;
  bool dirty = false;               ///< To be written at the end of the transaction.
  std::optional<Heartbeats> beats;  ///< Heartbeats gathered and not yet stored.
  std::optional<WallTime> beats_at;
};

/// The rows of a batch. A plain value.
struct PreparedBatch {
  const Batch* batch = nullptr;       ///< As it was given; it outlives this.
  std::optional<SessionSpec> spec{};  ///< Without secrets, if it may be needed.
  ContentLevel level{};               ///< Of the kept contents.
  std::vector<Report> reports{};      ///< Marked, redacted and cut.
  std::size_t cut = 0;                ///< Contents that the level `preview` shortened.
};

/// Pure. Linear in the contents.
[[nodiscard]] PreparedBatch prepare(const Batch& batch, ContentLevel level);
/// Prepares all, at the levels of the sessions that are known. Pure.
[[nodiscard]] std::vector<PreparedBatch> prepare_all(
    std::span<const Batch> batches, const std::unordered_map<std::string, Head>& known);

/// Of an event's id, which is unique in its session.
[[nodiscard]] inline std::string key_of_id(std::string_view event_id, SessionKey session) {
  return std::to_string(session) + '/' + std::string(event_id);
}

struct Store::State {
  /// Turns reports into events. All need the transaction under way.
  class Appender {
   public:
    explicit Appender(State& log) : log_(log), insert_(log.database->prepare(insert_event_sql)) {}

    std::unordered_map<std::string, Head> heads;  ///< By the sessions' ids.
    Head observer;
    std::vector<Head*> dirty;           ///< Of the transaction under way, like the next ones.
    std::vector<SessionKey> addressed;  ///< Sessions whose own listeners are to be notified.
    // Known of a turn on a server, where each question is a round trip:
    std::unordered_set<std::string> absent;     ///< Sessions.
    std::unordered_set<std::string> known_ids;  ///< Of events, see key_of_id().

    /// Forgets what is cached, as after a failure.
    void forget();
    /// In a forked child: the connection belongs to its parent.
    void abandon() { insert_.abandon(); }
    /// On a server: finds the sessions and event ids of all batches at once.
    void fetch_ahead(std::span<const PreparedBatch> batches);
    /// Prepares the batch again only if its session has another content level than was expected.
    [[nodiscard]] Result<Receipt> append(PreparedBatch& batch);
    /// Writes the rows of the sessions that are dirty. Once, at the end of the transaction.
    void put_heads();
    /// Appends that the observer was away.
    void put_absence(Millis gap);

   private:
    [[nodiscard]] static Head head_from(const Statement& row);
    [[nodiscard]] Head* find(const std::string& id);
    Head& create(const std::string& id, const SessionSpec& spec, WallTime at);
    [[nodiscard]] bool is_duplicate(const Head& head, const Report& report);
    void put_also(const Head& head, const Report& report);
    void put_end(Head& head, Report report);
    [[nodiscard]] Outcome outcome_by_answer(const Head& head, Outcome reported);
    Stamp put(Head& head, const Report& report, bool late);
    void put_beats(Head& head);
    void fold_beats(Head& head, const Report& report);
    void touch_session(Head& head, const Stamp& stamp, const Report& report);
    void forget_cancel(Head& head);
    void touch_turns(Head& head, const Report& report);
    void add_abort(Head& head, CancelRequest request);
    void put_aborts(const Head& head);
    void put_turns(Head& head, bool turns);
    void fetch_heads(const std::vector<std::string_view>& names);
    void put_also_on_server(const Head& head, const Report& report);

    State& log_;
    Statement insert_;
    ReportOrigin origin_ = ReportOrigin::unknown;  ///< Of the batch under way.
  };

  /// The alerts of sessions and their deliveries. All but `has_new_messages` and `known` need the
  /// transaction under way.
  class Alerts {
   public:
    explicit Alerts(State& log) : log_(log) {}

    bool has_new_messages = false;  ///< Messages were made since the last question.
    /// Acknowledged (true) or snoozed since the last question.
    std::vector<std::pair<SessionKey, bool>> known;
    /// Makes the alerts that follow from conclusions.
    void notice(const Conclusions& verdicts);
    /// Makes those that are due by `until`, of sessions that this process judges.
    void notice_due(Instant until, const AlertRules& rules);
    [[nodiscard]] Instant next_due();
    /// Gives each channel the open troubles that it was never given: it is newer than they are.
    void give_to_new_channels(const AlertRules& rules);
    /// Of a server.
    [[nodiscard]] bool has_own_message(std::string_view channel);
    [[nodiscard]] std::vector<Alert> claim(std::string_view channel, bool single, Millis time);
    /// Changes one that a person acts on, in a transaction of its own.
    template <class Change>
    [[nodiscard]] Result<Alert> change(std::int64_t id, std::string_view unanswered_of,
                                       Change&& change);

   private:
    void notice(SessionKey session, const Condition& condition, const AlertRules& rules);
    void notice_wait(const Case& judged, const AlertRules& rules);
    void notice_end(const Case& judged, const AlertRules& rules);
    void put(SessionKey session, const AlertNotice& notice, const AlertRules& rules);
    /// An alert that waits to be sent.
    struct Waiting {
      std::int64_t alert = 0;
      SessionKey session = observer_key;
      std::string message{};
    };
    [[nodiscard]] bool owns(SessionKey session) const noexcept;
    /// The shards of which the database says so, too.
    [[nodiscard]] std::set<int> valid_shards();
    [[nodiscard]] std::vector<Waiting> unsent(std::string_view channel);
    [[nodiscard]] bool claim_all(std::string_view channel, std::span<const std::int64_t> ids,
                                 Millis time);
    [[nodiscard]] std::optional<AlertState> state_of(SessionKey session);
    /// On a server, where each question is a round trip: asks for the states of all at once.
    void fetch_states(const Conclusions& verdicts);
    void put_state(SessionKey session, const AlertState& state, Instant due);
    void keep_state(SessionKey session, const AlertState& state, Instant at,
                    const AlertRules& rules);
    void make_messages(const AlertRules& rules);
    [[nodiscard]] std::vector<MessageMade> messages_after(Instant then, int count_max);
    /// The number of messages that asked a person after that.
    [[nodiscard]] std::size_t questions_after(Instant then);
    void send_together(const std::vector<std::int64_t>& ids, const std::string& parent, Instant at);

    State& log_;
    std::vector<std::int64_t> made_;  ///< Of the transaction under way, as the next one.
    std::unordered_map<SessionKey, std::optional<AlertState>> fetched_;
  };

  /// Drops what is old or too much, in bounded pieces.
  class Retainer {
   public:
    explicit Retainer(State& log) : log_(log) {}

    std::vector<SessionKey> dropped;  ///< Since the last question.
    bool wants_room = false;          ///< Of the latest piece.
    Instant leap{};  ///< When a boot began whose clock was far ahead of the newest event then.
    /// Does a piece; false: nothing is left to do. Begins a round with `begin_round`, outside of a
    /// transaction, and ends it with `end_round`.
    [[nodiscard]] bool do_piece(const Retention& retention);
    void begin_round(const Retention& retention);
    void end_round();
    void drop_session_rows(SessionKey session);
    /// The session was erased.
    void forget(SessionKey session) {
      if (dropping_ && dropping_->session == session) dropping_.reset();
    }

   private:
    struct Merging {
      SessionKey session = observer_key;           ///< Being looked at.
      Seq from = std::numeric_limits<Seq>::max();  ///< Merged up to here, a remaining block end.
    };
    /// A session that is over, and its newest event. One that was continued since has another one.
    struct Over {
      SessionKey session = observer_key;
      Instant tick{};
      Seq head = 0;
    };
    [[nodiscard]] bool is_still_over(const Over& over, bool is_large, const Retention& retention);
    void find_over(const Retention& retention);
    [[nodiscard]] std::optional<Over> next_to_drop(const Retention& retention);
    [[nodiscard]] std::int64_t bytes_used();
    [[nodiscard]] bool may_age() const;
    [[nodiscard]] bool drop_ended(const Retention& retention);
    [[nodiscard]] bool drop_oldest(const Retention& retention);
    [[nodiscard]] bool drop_old_part(const Retention& retention);
    [[nodiscard]] bool drop_alerts(const Retention& retention);
    [[nodiscard]] bool merge_heartbeats(const Retention& retention);
    [[nodiscard]] bool merge_block(const Retention& retention, Seq end, Seq following);
    void drop_session(SessionKey session, Instant tick, int& events_left);
    void drop_audit(const Retention& retention);
    void drop_labels(SessionKey session);

    State& log_;
    std::optional<Over> dropping_;  ///< Begun and not finished.
    Merging merging_;
    std::unordered_map<SessionKey, Seq> merged_;  ///< How far earlier rounds came.
    bool changed_ = false;                        ///< This piece changed the file.
    std::vector<Over> over_;                      ///< Of this round, oldest activity first.
    std::size_t next_over_ = 0;                   ///< Those before it are done.
    bool searched_ = false;                       ///< In this round.
  };

  /// Erases sessions so that no byte of them is left.
  class Eraser {
   public:
    explicit Eraser(State& log) : log_(log) {}

    /// Returns keys and ids of the sessions to erase.
    [[nodiscard]] Result<std::map<SessionKey, std::string>> targets(const Erasure& erasure);
    /// Deletes the rows. REQUIRES: the transaction under way.
    void erase_rows(SessionKey session, const std::string& name);
    void note_deleted();
    /// Does the rest of an erasure; true if there was one. Throws SqlFailure.
    bool finish();

   private:
    [[nodiscard]] std::int64_t stage();
    void put_stage(std::int64_t stage);

    State& log_;
  };

  State(Options chosen, std::shared_ptr<Database> opened);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  Options options;
  std::shared_ptr<Database> database;
  StoreServer* server;  ///< Null: a file.
  HeldShards held;      ///< On a server.
  std::string monitor_name;
  std::vector<std::string> monitors;
  Millis leases_renewed{};  ///< Since boot.
  Millis renewal_wait = lease_renewed_every;
  std::int64_t step_downs = 0;
  bool is_taking_over = false;
  std::string tally;  ///< Of this monitor, for the others.
  bool tally_written = true;
  StoreReader reader;
  std::optional<FileLock> lock;  ///< Empty for a private store.
  std::optional<ChangeNotifier> notifier;
  int generation = fork_generation();
  StoreFiles files;    ///< Nothing for a private store.
  bool saved = false;  ///< The log lost its name, and what it held is in the database.
  Millis offset{};     ///< tick = since boot + offset
  bool alone = false;
  bool once = false;  ///< The work of the turn cannot be done again.

  std::int64_t seen_version = -1;
  Seq next_seq = 1;
  Instant last_tick{};

  // Of the transaction under way:
  Instant now{};
  WallTime wall{};
  bool durable = true;   ///< Otherwise a server's crash may lose it.
  Millis turn_clock{};   ///< The server's time line, when the turn began.
  Millis wall_offset{};  ///< The server's clock = since boot + wall_offset

  [[nodiscard]] Statement& sql(std::string_view text) { return reader.state_->prepared(text); }
  void settle_time();
  void settle_boot();
  void settle_leap();
  [[nodiscard]] bool has_server_time() const { return options.clock == &system_clock(); }
  void begin_with(const ServerTurn& turn);
  [[nodiscard]] std::vector<ShardLease> read_leases();
  void carry_out(const LeasePlan& plan, Millis clock);
  [[nodiscard]] Result<void> check_holds(const Conclusions& verdicts);
  void copy_tables(Database& from, StoreTransfer& done);
  void look_again();
  void forget();
  /// The files lost their names: writes what the log holds into the database, if that is still
  /// there. True if it is written. REQUIRES: the turn.
  [[nodiscard]] bool save_log();
  [[nodiscard]] Error replaced() const;
  void stamp();
  void notify();
  /// Runs `work` in a transaction, in turn with other processes' writers.
  template <class T, class Work>
  [[nodiscard]] Result<T> in_turn(Work&& work);

  template <class T, class Work>
  [[nodiscard]] Result<T> in_server_turn(Work&& work);

  /// The id of the first transition written.
  std::int64_t write(const Conclusions& verdicts);
  std::int64_t newest_transition();

  Appender appender{*this};
  Alerts alerts{*this};
  Retainer retainer{*this};
  Eraser eraser{*this};

  /// Deletions may take the newest event with them: what comes next must still be above it.
  void keep_floors();
};

template <class T, class Work>
Result<T> Store::State::in_turn(Work&& work) {
  if (alone) return work();
  if (server != nullptr) return in_server_turn<T>(work);
  try {
    const auto came = options.clock->since_boot();
    if (lock) lock->lock();
    struct Release {
      State& state;
      ~Release() {
        if (state.lock) state.lock->unlock();
      }
    } const release{*this};
    if (!files.in_place()) return replaced();
    Transaction transaction(*database);
    look_again();
    if (appender.heads.size() > heads_max) appender.heads.clear();
    // A writer that stalled within its turn kept all others from reporting. The next one records
    // that, so that their silence is not counted.
    const auto waited = options.clock->since_boot() - came;
    if (waited > turn_late &&
        Instant{options.clock->since_boot() + offset} - last_tick > turn_late) {
      appender.put_absence(waited);
    }
    auto result = work();
    if (result) {
      transaction.commit();
      // Data in a file without a name would be lost with this process.
      if (!files.in_place() && !save_log()) {
        forget();
        return replaced();
      }
    } else {
      forget();
    }
    return result;
  } catch (const SqlFailure& failure) {
    forget();
    return failure.error;
  }
}

/// Tries again what failed in passing. A commit whose answer got lost may have happened: the next
/// turn shows it by its own number.
template <class T, class Work>
Result<T> Store::State::in_server_turn(Work&& work) {
  struct Dropped {
    StoreServer& server;
    bool open = true;
    ~Dropped() {
      if (open) server.drop_turn();
    }
  };
  std::optional<Result<T>> in_doubt;
  std::int64_t doubted = 0;
  bool begun = false;
  for (int tries = 0;; ++tries) {
    try {
      const auto came = options.clock->since_boot();
      const auto turn = server->begin_turn();
      Dropped dropped{*server};
      if (in_doubt && turn.own_number == doubted) return std::move(*in_doubt);
      in_doubt.reset();
      begin_with(turn);
      // Monitors sign their leases in turns. If all leases ended meanwhile, then nobody was there,
      // or the server's clock was set ahead. The first turn says so before anything else: the judge
      // of a session may read a report of another monitor before it knows the time.
      const auto waited = options.clock->since_boot() - came;
      if (has_server_time() && turn.passed > lease_for)
        appender.put_absence(turn.passed);
      else if (waited > turn_late &&
               Instant{options.clock->since_boot() + offset} - last_tick > turn_late)
        appender.put_absence(waited);
      begun = true;
      auto result = work();
      if (!result) {
        forget();
        return result;
      }
      doubted = turn.number + 1;
      in_doubt.emplace(std::move(result));
      dropped.open = false;
      if (server->end_turn({.next_seq = next_seq, .last_tick = last_tick, .durable = durable}))
        seen_version = doubted;
      return std::move(*in_doubt);
    } catch (const SqlFailure& failure) {
      forget();
      const bool may_repeat = failure.is_passing && (!once || !begun);
      if (!may_repeat || tries == server_tries_max) return failure.error;
    }
    // The server restarts, or another writer was in the way: nothing here reports when it is over.
    std::this_thread::sleep_for(server_pause * (1 << tries));
  }
}

}  // namespace watchdog
