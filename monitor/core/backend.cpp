// A file has no memory of sessions: `FileBackend` folds each one from the file and lets time pass
// up to now. It answers on the caller's thread, before it returns. `erase` first becomes the file's
// judge, so it fails beside a running monitor, which would write the sessions again. Names come
// first, then artifacts, then rows: after an interruption the rows still say what is left to erase.
#include "core/backend.h"

#include <array>
#include <limits>
#include <utility>

#include "codec/progress.h"
#include "store/server.h"
#include "watchdog/artifact_store.h"

namespace watchdog::monitor {
namespace {

Error reading_only() {
  return {ErrorCode::unavailable, "the database is open for reading only"};
}

}  // namespace

Error no_room() {
  return {ErrorCode::unavailable,
          "the database is above its limit of size (monitor.retention_bytes), and reports come in "
          "faster than old ones can be dropped. Send it again in some seconds, send less, or raise "
          "the limit"};
}

Result<Case> judged_at(StoreReader& reader, const SessionRow& row, Instant now) {
  auto judged = reader.fold(row);
  if (!judged) return judged;
  std::vector<Transition> unkept;
  judged->expire(now, unkept);
  return judged;
}

FileBackend::FileBackend(Store store) : store_(std::move(store)) {}
FileBackend::FileBackend(StoreReader reader, Millis tick_offset)
    : reader_(std::move(reader)), tick_offset_(tick_offset) {}

void FileBackend::append(Batch batch, std::function<void(Result<Receipt>)> done) {
  if (!store_) return done(reading_only());
  std::array batches{std::move(batch)};
  auto receipts = store_->append(batches);
  done(receipts ? std::move(receipts->front()) : Result<Receipt>(receipts.error()));
}

void FileBackend::write(std::function<Result<void>(Store&)> work,
                        std::function<void(Result<void>)> done) {
  done(store_ ? work(*store_) : reading_only());
}

void FileBackend::read(std::function<void(StoreReader&)> work, std::function<void(Error)>) {
  work(store_ ? store_->reader() : *reader_);
}

std::optional<Watched> FileBackend::watched(std::string_view) const {
  return std::nullopt;
}

Result<std::vector<Child>> children_in(const Backend& backend, StoreReader& reader,
                                       std::string_view session, std::size_t count_max) {
  const auto rows = reader.running_children(session, static_cast<int>(count_max));
  if (!rows) return rows.error();
  std::vector<Child> children;
  for (const auto& row : *rows) {
    auto found = look_up(backend, reader, row);
    if (!found) return found.error();
    children.push_back({.id = row.id, .judged = std::move(found->judged)});
  }
  return children;
}

Result<std::vector<Child>> FileBackend::children(std::string_view session, std::size_t count_max) {
  return children_in(*this, store_ ? store_->reader() : *reader_, session, count_max);
}

Result<std::vector<ActiveTurn>> turns_in(const Backend& backend, StoreReader& reader,
                                         std::size_t count_max, std::string_view id) {
  constexpr int piece = 100;
  std::vector<ActiveTurn> turns;
  SessionKey below = std::numeric_limits<SessionKey>::max();
  while (true) {
    const auto rows = reader.sessions_with_turns(below, piece);
    if (!rows) return rows.error();
    for (const auto& row : *rows) {
      if (turns.size() >= count_max) return turns;
      const auto found = look_up(backend, reader, row);
      if (!found) return found.error();
      add_turns(turns, row.id, found->judged.history, *found->description, id, count_max);
    }
    if (static_cast<int>(rows->size()) < piece) return turns;
    below = rows->back().key;
  }
}

Result<std::vector<ActiveTurn>> FileBackend::turns(std::size_t count_max, std::string_view id) {
  return turns_in(*this, store_ ? store_->reader() : *reader_, count_max, id);
}

Result<Tally> FileBackend::tally() {
  auto& reader = store_ ? store_->reader() : *reader_;
  const auto keys = reader.sessions_to_judge();
  if (!keys) return keys.error();
  Tally tally;
  for (const auto key : *keys) {
    const auto row = reader.session(key);
    if (!row) return row.error();
    const auto judged = judged_at(reader, *row, now());
    if (!judged) return judged.error();
    tally.add(*judged, family_of(row->spec));
  }
  return tally;
}

Result<Watched> look_up(const Backend& backend, StoreReader& reader, const SessionRow& row) {
  if (auto watched = backend.watched(row.id)) return std::move(*watched);
  auto judged = judged_at(reader, row, backend.now());
  if (!judged) return judged.error();
  return Watched{.judged = std::move(*judged),
                 .description = std::make_shared<const Description>(description_of(row.spec))};
}

namespace {

Result<void> forget_artifacts(const std::filesystem::path& directory,
                              const std::vector<std::string>& sessions) {
  std::error_code trouble;
  if (sessions.empty() || !std::filesystem::is_directory(directory, trouble)) return {};
  auto store = ArtifactStore::open(directory, "forget");
  if (!store) return store.error();
  for (const auto& session : sessions) {
    if (auto gone = store->forget(session); !gone) return gone.error();
  }
  return {};
}

}  // namespace

void FileBackend::erase(Erasure erasure,
                        std::function<void(Result<std::vector<std::string>>)> done) {
  if (!store_) return done(Error{ErrorCode::unavailable, "the database is open for reading only"});
  if (store_->is_on_server()) {
    return done(erase_with_artifacts(*store_, erasure, artifacts_beside(store_->path())));
  }
  // Its judge alone may: a monitor that runs would write down again what it has in memory.
  const auto judge = Observer::start(*store_, {});
  if (!judge) return done(judge.error());
  done(erase_with_artifacts(*store_, erasure, artifacts_beside(store_->path())));
}

Result<std::vector<std::string>> erase_with_artifacts(Store& store, const Erasure& erasure,
                                                      const std::filesystem::path& directory) {
  auto asked = erasure;
  asked.only_say = true;
  auto named = store.erase(asked);
  if (erasure.only_say) return named;
  if (!named) return store.erase(erasure);  // says why, and finishes what was interrupted
  if (auto gone = forget_artifacts(directory, *named); !gone) return gone.error();
  return store.erase({.sessions = std::move(*named), .running_too = erasure.running_too});
}

std::filesystem::path artifacts_beside(const std::filesystem::path& database) {
  return folder_beside(database) / "artifacts";
}

Instant FileBackend::now() const {
  return store_ ? store_->now() : Instant{system_clock().since_boot() + tick_offset_};
}

}  // namespace watchdog::monitor
