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

Result<std::map<SessionKey, std::string>> Store::State::Eraser::targets(const Erasure& erasure) {
  std::map<SessionKey, std::string> found;
  auto& named =
      log_.sql("SELECT id, ended_ms IS NOT NULL OR health = 'dead' FROM sessions WHERE name = ?");
  for (const auto& name : erasure.sessions) {
    named.reset().bind(1, std::string_view(name));
    if (!named.step()) {
      named.reset();
      return Error{ErrorCode::not_found, "unknown session " + name, "sessionId"};
    }
    const bool over = named.integer(1) != 0;
    found.emplace(named.integer(0), name);
    named.reset();
    if (!over && !erasure.running_too) return still_runs(name);
  }
  if (!erasure.ended_before) return found;
  auto& ended = log_.sql(
      "SELECT id, name FROM sessions WHERE ended_ms <= ?1 OR (ended_ms IS NULL AND health = "
      "'dead' AND updated_ms <= ?1)");
  ended.reset().bind(1, erasure.ended_before->time_since_epoch().count());
  while (ended.step()) found.emplace(ended.integer(0), ended.text(1));
  ended.reset();
  return found;
}

std::int64_t Store::State::Eraser::stage() {
  auto& query = log_.sql("SELECT value FROM meta WHERE key = ?");
  const ResetLater later(query);
  query.bind(1, stage_key);
  return query.step() ? query.integer(0) : done;
}

void Store::State::Eraser::put_stage(std::int64_t stage) {
  auto& put = log_.sql(
      "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = "
      "excluded.value");
  put.bind(1, stage_key).bind(2, stage);
  put.run();
}

/// Deleting overwrites a row, but rows that moved between pages may have left copies: only a
/// rewritten file has none. The log holds both until it is emptied.
bool Store::State::Eraser::finish() {
  if (log_.server != nullptr) return false;  // its files are the operator's, see VACUUM
  if (stage() == done) return false;
  if (log_.lock) log_.lock->lock();
  struct Release {
    State& state;
    ~Release() {
      if (state.lock) state.lock->unlock();
    }
  } const release{log_};
  if (!log_.files.in_place()) throw SqlFailure{log_.replaced()};
  if (stage() == deleted) {
    log_.database->exec("VACUUM");
    put_stage(rewritten);
  }
  for (int left = tries; log_.database->pragma("wal_checkpoint(TRUNCATE)") != 0;) {
    if (--left == 0) {
      throw SqlFailure{
          Error{ErrorCode::unavailable,
                "the sessions are deleted, but another program keeps reading the database, whose "
                "log still holds bytes of them until it has finished. The next start of the "
                "monitor, or the next erasure, empties the log"}};
    }
  }
  put_stage(done);
  return true;
}

/// Not by way of `prev`: what is to be gone is looked for everywhere.
void Store::State::Eraser::erase_rows(SessionKey session, const std::string& name) {
  auto& events = log_.sql("DELETE FROM events WHERE session = ?");
  events.bind(1, session);
  events.run();
  log_.retainer.forget(session);
  log_.retainer.drop_session_rows(session);
  auto& trail = log_.sql("UPDATE audit SET target = '' WHERE target = ?");
  trail.bind(1, name);
  trail.run();
}

void Store::State::Eraser::note_deleted() {
  if (log_.server == nullptr) put_stage(deleted);
  log_.keep_floors();
  log_.appender.heads.clear();
}

Result<std::vector<std::string>> Store::erase(const Erasure& erasure) {
  using Names = std::vector<std::string>;
  auto erased = state_->in_turn<Names>([&]() -> Result<Names> {
    state_->stamp();
    const auto found = state_->eraser.targets(erasure);
    if (!found) return found.error();
    Names names;
    for (const auto& [session, name] : *found) {
      names.push_back(name);
      if (!erasure.only_say) state_->eraser.erase_rows(session, name);
    }
    if (!names.empty() && !erasure.only_say) state_->eraser.note_deleted();
    return names;
  });
  if (erasure.only_say) return erased;
  try {
    const bool finished = state_->eraser.finish();
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
