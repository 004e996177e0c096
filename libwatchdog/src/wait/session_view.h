/// \file
/// One session of a file as its events tell it, followed as they are appended.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "watchdog/case.h"
#include "watchdog/result.h"
#include "watchdog/store_reader.h"
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

  /// Takes in what was appended since the last look. False while there is no such file or session.
  /// A file that was replaced is opened anew. Errors: what the store says; `not_found` if the
  /// session was there and was taken out of the file.
  [[nodiscard]] Result<bool> look(const Each& each);

  /// As the events tell it; what follows from time alone is not concluded. REQUIRES: it is there,
  /// as for the next two.
  [[nodiscard]] const Case& judged() const noexcept { return judged_; }
  [[nodiscard]] const SessionRow& row() const noexcept { return row_; }
  /// The file's time line now; not before the newest event.
  [[nodiscard]] Instant now() const;
  /// The file, while it is there; else null.
  [[nodiscard]] StoreReader* reader() noexcept { return reader_ ? &*reader_ : nullptr; }

 private:
  [[nodiscard]] Result<bool> open();
  [[nodiscard]] bool was_replaced() const;
  [[nodiscard]] Result<bool> begin(const SessionRow& row);
  [[nodiscard]] Result<void> follow(const Each& each);
  [[nodiscard]] Result<void> place_in_time();

  std::filesystem::path database_;
  std::string id_;
  const Clock& clock_;
  std::optional<StoreReader> reader_;
  dev_t device_ = 0;  ///< With the next: of the file that is open.
  ino_t file_ = 0;
  std::int64_t version_ = -1;  ///< Of the file, when it was last read.
  SessionRow row_;             ///< Its key is 0 until it is there.
  Case judged_;
  Seq through_ = 0;  ///< All events up to this one are folded.
  std::optional<Millis> offset_;
};

}  // namespace watchdog
