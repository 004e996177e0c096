#include "api/backend.h"

#include <array>
#include <utility>

namespace watchdog::monitor {

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

std::optional<Watched> FileBackend::watched(std::string_view) const {
  return std::nullopt;
}

Instant FileBackend::now() const {
  return store_ ? store_->now() : Instant{system_clock().since_boot() + tick_offset_};
}

}  // namespace watchdog::monitor
