/// \file
/// Which files a store works on: the database, its log (`-wal`) and the log's index (`-shm`).
#pragma once

#include <sys/types.h>

#include <array>
#include <filesystem>
#include <string>

#include "store/sqlite.h"
#include "watchdog/result.h"

namespace watchdog {

/// The files as SQLite has them open. A removed or replaced file still works for the processes that
/// have it open, but no other process sees their writes. Use from one thread at a time.
class StoreFiles {
 public:
  StoreFiles() = default;
  /// Records the files behind a connection that has read. `named` is the path that was asked for.
  /// Errors: `unavailable`: SQLite has other files open than those that are there now.
  [[nodiscard]] static Result<StoreFiles> of(const std::filesystem::path& named,
                                             Database& database);
  ~StoreFiles();
  StoreFiles(StoreFiles&& other) noexcept;
  StoreFiles& operator=(StoreFiles&& other) noexcept;
  StoreFiles(const StoreFiles&) = delete;
  StoreFiles& operator=(const StoreFiles&) = delete;

  /// True while each name still leads to the file that was opened.
  [[nodiscard]] bool in_place() const;
  /// Returns true if the log may be written into the database although its name leads elsewhere:
  /// the database is in place, and no process uses another log or index.
  [[nodiscard]] bool can_save_log() const;
  /// Empties the file that is under the log's name now, if there is one.
  void empty_new_log() const;

 private:
  struct File {
    std::string path;
    int fd = -1;  ///< Held open, so that its inode is not given to another file.
    dev_t device{};
    ino_t inode{};
  };
  [[nodiscard]] static bool is_in_place(const File& file);
  enum : std::size_t { database, log, index };
  std::array<File, 3> files_;
};

}  // namespace watchdog
