#include "store/store_state.h"

namespace watchdog {
namespace {

/// The log can be emptied while no reader is active; readers take moments.
constexpr int tries = 5;

/// The progress of an erasure. The file stores it (`meta.erasing`), so the next process continues
/// after a crash.
constexpr std::string_view stage_key = "erasing";
constexpr std::int64_t done = 0;       ///< Nothing is left to do.
constexpr std::int64_t deleted = 1;    ///< The rows are gone; the file may hold copies of them.
constexpr std::int64_t rewritten = 2;  ///< The file holds none; its log may.

Error still_runs(const std::string& session) {
  return {ErrorCode::conflict,
          "session " + session +
              " still runs and would come back with its next report: cancel it first, or insist",
          "sessionId"};
}

}  // namespace

/// Keys and ids of what is to go.
Result<std::map<SessionKey, std::string>> Store::State::to_erase(const Erasure& erasure) {
  std::map<SessionKey, std::string> found;
  auto& named =
      sql("SELECT id, ended_ms IS NOT NULL OR health = 'dead' FROM sessions WHERE name = ?");
  for (const auto& name : erasure.sessions) {
    named.reset().bind(1, std::string_view(name));
    if (!named.step()) {
      named.reset();
      return Error{ErrorCode::not_found, "there is no session " + name, "sessionId"};
    }
    const bool over = named.integer(1) != 0;
    found.emplace(named.integer(0), name);
    named.reset();
    if (!over && !erasure.running_too) return still_runs(name);
  }
  if (!erasure.ended_before) return found;
  auto& ended =
      sql("SELECT id, name FROM sessions WHERE ended_ms <= ?1 OR (ended_ms IS NULL AND health = "
          "'dead' AND updated_ms <= ?1)");
  ended.reset().bind(1, erasure.ended_before->time_since_epoch().count());
  while (ended.step()) found.emplace(ended.integer(0), ended.text(1));
  ended.reset();
  return found;
}

std::int64_t Store::State::erasure_stage() {
  auto& query = sql("SELECT value FROM meta WHERE key = ?");
  const ResetLater later(query);
  query.bind(1, stage_key);
  return query.step() ? query.integer(0) : done;
}

void Store::State::put_erasure_stage(std::int64_t stage) {
  auto& put =
      sql("INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = "
          "excluded.value");
  put.bind(1, stage_key).bind(2, stage);
  put.run();
}

/// Deleting overwrites a row, but rows that moved between pages may have left copies: only a
/// rewritten file has none. The log holds both until it is emptied.
bool Store::State::finish_erasure() {
  if (erasure_stage() == done) return false;
  if (lock) lock->lock();
  struct Release {
    State& state;
    ~Release() {
      if (state.lock) state.lock->unlock();
    }
  } const release{*this};
  if (!files.in_place()) throw SqlFailure{replaced()};
  if (erasure_stage() == deleted) {
    database->exec("VACUUM");
    put_erasure_stage(rewritten);
  }
  for (int left = tries; database->pragma("wal_checkpoint(TRUNCATE)") != 0;) {
    if (--left == 0) {
      throw SqlFailure{
          Error{ErrorCode::unavailable,
                "the sessions are deleted, but another program keeps reading the database, whose "
                "log still holds bytes of them until it has finished. The next start of the "
                "monitor, or the next erasure, empties the log"}};
    }
  }
  put_erasure_stage(done);
  return true;
}

Result<std::vector<std::string>> Store::erase(const Erasure& erasure) {
  using Names = std::vector<std::string>;
  auto erased = state_->in_turn<Names>([&]() -> Result<Names> {
    state_->stamp();
    const auto found = state_->to_erase(erasure);
    if (!found) return found.error();
    Names names;
    for (const auto& [session, name] : *found) {
      names.push_back(name);
      if (erasure.only_say) continue;
      // Not by way of `prev`: what is to be gone is looked for everywhere.
      auto& events = state_->sql("DELETE FROM events WHERE session = ?");
      events.bind(1, session);
      events.run();
      if (state_->dropping == session) state_->dropping = observer_key;
      state_->drop_session_rows(session);
      auto& trail = state_->sql("UPDATE audit SET target = '' WHERE target = ?");
      trail.bind(1, name);
      trail.run();
    }
    if (!names.empty() && !erasure.only_say) {
      state_->put_erasure_stage(deleted);
      state_->keep_floors();
      state_->heads.clear();
    }
    return names;
  });
  if (erasure.only_say) return erased;
  try {
    const bool finished = state_->finish_erasure();
    if (!erased && finished) {
      auto error = erased.error();
      error.message += ". An earlier erasure that was interrupted is finished now";
      return error;
    }
  } catch (const SqlFailure& failure) {
    if (erased) return failure.error;
  }
  return erased;
}

}  // namespace watchdog
