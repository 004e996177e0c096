/// \file
/// One session of a file, followed as its events are appended.
#pragma once

#include <sys/types.h>

#include <array>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "store/store_reader.h"
#include "watchdog/health.h"
#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

/// Folds what anybody appends, without a lock and without writing. Use from one thread at a time.
class SessionView {
 public:
  SessionView(std::filesystem::path database, std::string session, const Clock& clock)
      : database_(std::move(database)), id_(std::move(session)), clock_(clock) {}

  /// Gets each of the session's events that came after the first look that found it, and how it is
  /// after that.
  using Each = std::function<void(const Event& event, const Case& after)>;

  /// Reads what was appended since the last look. Returns false while there is no such file or
  /// session. A replaced file is opened again. Errors: the store's; `not_found` if the session was
  /// erased.
  [[nodiscard]] Result<bool> look(const Each& each);

  /// Returns the session by its events, without conclusions by time alone. REQUIRES: it exists, as
  /// for the next two.
  [[nodiscard]] const Case& judged() const noexcept { return judged_; }
  [[nodiscard]] const SessionRow& row() const noexcept { return row_; }
  /// The file's time line now; not before the newest event.
  [[nodiscard]] Instant now() const;
  /// The file, while it is there; else null.
  [[nodiscard]] StoreReader* reader() noexcept { return reader_ ? &*reader_ : nullptr; }

 private:
  /// Which file is under a name; nothing: none.
  struct FileId {
    dev_t device = 0;
    ino_t file = 0;
    bool operator==(const FileId&) const = default;
  };
  /// The database, its log and the log's index. A process that has a file without a name open does
  /// not see later writes.
  using FileIds = std::array<FileId, 3>;
  [[nodiscard]] FileIds files() const;
  [[nodiscard]] Result<bool> open();
  [[nodiscard]] Result<bool> look_at(const Each& each);
  [[nodiscard]] Result<bool> begin(const SessionRow& row);
  [[nodiscard]] Result<void> follow(const Each& each);
  [[nodiscard]] Result<void> place_in_time();

  std::filesystem::path database_;
  std::string id_;
  const Clock& clock_;
  std::optional<StoreReader> reader_;
  FileIds files_{};            ///< Those that are open.
  std::int64_t version_ = -1;  ///< Of the file, when it was last read.
  SessionRow row_;             ///< Its key is 0 until it is there.
  Case judged_;
  Seq through_ = 0;  ///< All events up to this one are folded.
  std::optional<Millis> offset_;
};

}  // namespace watchdog
