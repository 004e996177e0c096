#include "api/backend.h"

#include <array>
#include <limits>
#include <utility>

#include "watchdog/progress.h"

namespace watchdog::monitor {

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
  if (!store_) return done(Error{ErrorCode::unavailable, "the database is open for reading only"});
  std::array batches{std::move(batch)};
  auto receipts = store_->append(batches);
  done(receipts ? std::move(receipts->front()) : Result<Receipt>(receipts.error()));
}

void FileBackend::read(std::function<void(StoreReader&)> work, std::function<void(Error)>) {
  work(store_ ? store_->reader() : *reader_);
}

void FileBackend::write(std::function<void(Store&)> work, std::function<void(Error)> failed) {
  if (store_) return work(*store_);
  failed({ErrorCode::unavailable, "the database is open for reading only"});
}

std::optional<Watched> FileBackend::watched(std::string_view) const {
  return std::nullopt;
}

Result<std::vector<Child>> FileBackend::children(std::string_view session, std::size_t count_max) {
  auto& reader = store_ ? store_->reader() : *reader_;
  const auto rows = reader.running_children(session, static_cast<int>(count_max));
  if (!rows) return rows.error();
  std::vector<Child> children;
  for (const auto& row : *rows) {
    auto judged = judged_at(reader, row, now());
    if (!judged) return judged.error();
    children.push_back({.id = row.id, .judged = std::move(*judged)});
  }
  return children;
}

Result<std::vector<ActiveTurn>> FileBackend::turns(std::size_t count_max, std::string_view id) {
  constexpr int piece = 100;
  auto& reader = store_ ? store_->reader() : *reader_;
  std::vector<ActiveTurn> turns;
  SessionKey below = std::numeric_limits<SessionKey>::max();
  while (true) {
    const auto rows = reader.sessions_with_turns(below, piece);
    if (!rows) return rows.error();
    for (const auto& row : *rows) {
      if (turns.size() >= count_max) return turns;
      const auto judged = judged_at(reader, row, now());
      if (!judged) return judged.error();
      add_turns(turns, row.id, judged->history, description_of(row.spec), id, count_max);
    }
    if (static_cast<int>(rows->size()) < piece) return turns;
    below = rows->back().key;
  }
}

Instant FileBackend::now() const {
  return store_ ? store_->now() : Instant{system_clock().since_boot() + tick_offset_};
}

}  // namespace watchdog::monitor
