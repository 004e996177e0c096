// Opens a store, and takes the writers' lock for each transaction. `append` stamps one tick for the
// transaction; appender.cpp says what becomes of each report. The writer's cached state of sessions
// is valid only until another process commits. After any SQL error the writer drops it and reads it
// again. What only the judge of a file writes is in files of their own: conclusions, alerts, audit,
// retention and erasure.
#include "store/store.h"

#include <algorithm>

#include "store/event_reader.h"
#include "store/lock.h"
#include "store/place.h"
#include "store/reader_state.h"
#include "store/store_state.h"

namespace watchdog {
namespace {

constexpr std::string_view memory = ":memory:";

}  // namespace

Store::State::State(Options chosen, std::shared_ptr<Database> opened)
    : options(std::move(chosen)),
      database(std::move(opened)),
      server(database->server()),
      reader(StoreReader(std::make_unique<StoreReader::State>(database))) {
  if (options.policy) reader.state_->set_policy_for_all(options.policy);
}

Store::State::~State() {
  if (fork_generation() != generation) {
    appender.abandon();  // the reader abandons the connection
  } else if (!files.in_place()) {
    if (lock) lock->lock();
    (void)save_log();
    if (lock) lock->unlock();
  }
}

Store::Store(std::unique_ptr<State> state) : state_(std::move(state)) {}
Store::~Store() = default;
bool Store::close() {
  if (!state_ || fork_generation() != state_->generation) return false;
  if (state_->lock) state_->lock->lock();
  const bool kept = state_->files.in_place() || state_->save_log();
  if (state_->lock) state_->lock->unlock();
  state_.reset();
  return kept;
}
Store::Store(Store&&) noexcept = default;
Store& Store::operator=(Store&&) noexcept = default;

Result<Store> Store::open_on_server(Options options) {
  auto server = open_server(options.database, true);
  if (!server) return server.error();
  try {
    if (options.create) {
      (*server)->prepare_tables();
    } else {
      (*server)->check_tables();
    }
    auto database = std::make_shared<Database>(options.database.string(), std::move(*server),
                                               OpenMode::read_write_create);
    auto state = std::make_unique<State>(std::move(options), std::move(database));
    auto settled = state->in_turn<bool>([&]() -> Result<bool> {
      if (!state->has_server_time()) state->settle_boot();
      state->settle_leap();
      return true;
    });
    if (!settled) return settled.error();
    return Store(std::move(state));
  } catch (const SqlFailure& failure) {
    return failure.error;
  }
}

Result<Store> Store::open(Options options) {
  if (is_server_url(options.database)) return open_on_server(std::move(options));
  const bool on_disk = options.database != memory;
  if (on_disk) {
    std::error_code trouble;
    if (!options.create && !std::filesystem::exists(options.database, trouble)) {
      return Error{ErrorCode::not_found, "there is no database " + options.database.string()};
    }
    if (auto made = make_file(options.database); !made) return made.error();
  }
  try {
    std::optional<FileLock> lock;
    if (on_disk) {
      auto opened = FileLock::open(real_file(options.database).string() + "-writer");
      if (!opened) return opened.error();
      lock = std::move(*opened);
      lock->lock();  // tables are made once
    }
    auto database =
        std::make_shared<Database>(options.database.string(), OpenMode::read_write_create);
    prepare_schema(*database, OpenMode::read_write_create);
    auto state = std::make_unique<State>(std::move(options), std::move(database));
    state->lock = std::move(lock);
    state->settle_time();
    if (on_disk) {
      state->notifier.emplace(state->options.database);
      auto files = StoreFiles::of(state->options.database, *state->database);
      if (!files) {
        state->database->leave_log();
        return files.error();
      }
      state->files = std::move(*files);
    }
    if (state->lock) state->lock->unlock();
    return Store(std::move(state));
  } catch (const SqlFailure& failure) {
    return failure.error;
  }
}

/// Finds or makes this boot's offset, such that ticks continue above everything in the file.
void Store::State::settle_time() {
  Transaction transaction(*database);
  settle_boot();
  transaction.commit();
  settle_leap();
}

/// REQUIRES: the transaction under way.
void Store::State::settle_boot() {
  const Instant last = reader.state_->latest_tick();
  const auto boot_id = options.clock->boot_id();
  const auto known = reader.tick_offset(boot_id);
  if (!known) throw SqlFailure{known.error()};
  if (*known) {
    offset = **known;
  } else {
    // A file's first tick equals the wall clock, so that ticks can be read by people.
    const auto today = options.clock->wall().time_since_epoch();
    offset = std::max(today, last.time_since_epoch()) - options.clock->since_boot();
    auto& remember = sql("INSERT INTO boots (boot_id, offset_ms) VALUES (?, ?)");
    remember.bind(1, std::string_view(boot_id)).bind(2, offset.count());
    remember.run();
    const Instant begins{options.clock->since_boot() + offset};
    if (last != Instant{} && begins - last > clocks_differ_max) {
      auto& remember_leap =
          sql("INSERT INTO meta (key, value) VALUES ('leap_tick_ms', ?) ON CONFLICT (key) DO "
              "UPDATE SET value = excluded.value");
      remember_leap.bind(1, begins.time_since_epoch().count());
      remember_leap.run();
    }
  }
}

void Store::State::settle_leap() {
  auto& newest_leap = sql("SELECT value FROM meta WHERE key = 'leap_tick_ms'");
  const ResetLater later(newest_leap);
  if (newest_leap.step()) retainer.leap = Instant{Millis{newest_leap.integer(0)}};
}

/// After a commit of another process, the cached state must be read again.
void Store::State::look_again() {
  const auto version = database->pragma("data_version");
  if (version == seen_version) return;
  seen_version = version;
  appender.heads.clear();
  const auto newest = EventReader(reader).newest();
  if (!newest) throw SqlFailure{newest.error()};
  last_tick = std::max(last_tick, reader.state_->latest_tick());
  auto& floor = sql("SELECT value FROM meta WHERE key = 'next_seq'");
  next_seq = std::max(newest->first + 1, floor.step() ? floor.integer(0) : Seq{1});
  floor.reset();
}

/// The present state of the tables, at the begin of a turn on a server.
void Store::State::begin_with(const ServerTurn& turn) {
  appender.absent.clear();
  appender.known_ids.clear();
  durable = true;
  if (turn.number != seen_version || appender.heads.size() > heads_max) appender.heads.clear();
  seen_version = turn.number;
  next_seq = turn.next_seq;
  if (turn.server_came_back) next_seq += seqs_lost_max;
  last_tick = std::max(last_tick, turn.last_tick);
  turn_clock = has_server_time() ? turn.clock : options.clock->wall().time_since_epoch();
  if (has_server_time()) offset = turn.clock - options.clock->since_boot();
  if (has_server_time()) wall_offset = turn.wall - options.clock->since_boot();
}

/// After a failure the cached state may be wrong.
void Store::State::forget() {
  seen_version = -1;
  appender.forget();
  tally_written = tally.empty();
}

bool Store::State::save_log() {
  database->leave_log();
  if (saved) return true;
  if (!files.can_save_log()) return false;
  try {
    if (database->pragma("wal_checkpoint(TRUNCATE)") != 0) return false;
  } catch (const SqlFailure&) {
    return false;
  }
  files.empty_new_log();
  return saved = true;
}

Error Store::State::replaced() const {
  return {ErrorCode::unavailable,
          "database " + options.database.string() +
              ": the file or its log (-wal) was removed or replaced while it was open, so this was "
              "not stored; try again"};
}

void Store::State::stamp() {
  now = std::max(last_tick, Instant{options.clock->since_boot() + offset});
  last_tick = now;
  if (server == nullptr || !has_server_time()) {
    wall = options.clock->wall();
  } else {
    wall = WallTime{options.clock->since_boot() + wall_offset};
  }
  if (server != nullptr) next_seq = server->first_seq_for(now, next_seq);
}

void Store::State::notify() {
  if (notifier) notifier->notify(appender.addressed);
  appender.addressed.clear();
}

Result<std::vector<Result<Receipt>>> Store::append(std::span<const Batch> batches) {
  using Receipts = std::vector<Result<Receipt>>;
  auto& appender = state_->appender;
  // Once, and before the turn: while it lasts other writers wait, and it may have to begin again.
  auto prepared = prepare_all(batches, appender.heads);
  appender.dirty.clear();
  appender.addressed.clear();
  auto receipts = state_->in_turn<Receipts>([&]() -> Result<Receipts> {
    state_->stamp();
    if (state_->server != nullptr) appender.fetch_ahead(prepared);
    Receipts made;
    made.reserve(prepared.size());
    for (auto& batch : prepared) made.push_back(appender.append(batch));
    appender.put_heads();
    return made;
  });
  if (receipts) state_->notify();
  return receipts;
}

Instant Store::now() const {
  return std::max(state_->last_tick, Instant{state_->options.clock->since_boot() + state_->offset});
}

StoreReader& Store::reader() {
  return state_->reader;
}

bool Store::vanished() const {
  return !state_ || !state_->files.in_place();
}

const std::filesystem::path& Store::path() const noexcept {
  return state_->options.database;
}

}  // namespace watchdog
