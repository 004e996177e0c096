/// \file
/// Files that a power loss leaves as they were before or as they were made, and in no third state.
/// All files beside the database that are replaced as a whole go through here.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "files/open_file.h"

namespace watchdog {

/// The fate of a file that is there already.
enum class Existing : std::uint8_t { replace, keep };

/// A file under another name beside its place, until it is put there. It is removed with this
/// object unless it was placed. A crash can leave it; a later one of the same place removes such
/// files after an hour. Use from one thread at a time.
class DurableFile {
 public:
  /// The folder must exist; links to it are followed. An error shows as `!file()`, with errno.
  explicit DurableFile(const std::filesystem::path& path, mode_t mode = 0600) noexcept;
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  /// Open for reading and writing.
  [[nodiscard]] const OpenFile& file() const noexcept { return file_; }
  /// Returns one more descriptor of the open file, with its locks, which the caller closes; -1:
  /// errno says why.
  [[nodiscard]] int duplicate() const noexcept;
  /// Writes it to the disk, puts it in its place, and writes the folder to the disk. 0, or the
  /// number of the error; EEXIST: there is one, and it is to be kept.
  [[nodiscard]] int place(Existing existing = Existing::replace) noexcept;

 private:
  void remove_old_drafts() const noexcept;

  std::string name_, draft_;
  OpenFile folder_;
  OpenFile file_;
  bool is_placed_ = false;
};

/// Makes a file of these bytes. Errors: as of DurableFile.
[[nodiscard]] int put_file(const std::filesystem::path& path, std::string_view bytes,
                           mode_t mode = 0600, Existing existing = Existing::replace) noexcept;

/// Makes a folder with `mode`, and its missing parents with the usual one. A power loss keeps their
/// names. 0, also if the folder is there, or the number of the error.
[[nodiscard]] int make_folders(const std::filesystem::path& folder, mode_t mode) noexcept;

}  // namespace watchdog
