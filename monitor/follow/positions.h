/// \file
/// Remembers how far transcripts were read, over restarts.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "follow/transcript_file.h"
#include "watchdog/result.h"

namespace watchdog::monitor {

/// A file's position, and what its reader knows there. A plain value.
struct SavedTranscript {
  TranscriptPosition position{};
  std::string state{};  ///< See Transcript::save().
};

/// A file of positions, which only its owner may read. One process at a time has it. Use from one
/// thread at a time.
class Positions {
 public:
  /// Reads the file; makes it if it is missing. Lines that cannot be read are left out. Errors:
  /// `conflict` (another process has it), `invalid` (others may read it, or it is not a regular
  /// file), `unavailable`.
  [[nodiscard]] static Result<Positions> open(std::filesystem::path path);
  /// Positions that no file remembers.
  Positions() = default;
  ~Positions();
  Positions(Positions&& other) noexcept;
  Positions& operator=(Positions&& other) noexcept;
  Positions(const Positions&) = delete;
  Positions& operator=(const Positions&) = delete;

  /// The saved transcripts by their paths, or by digests of paths, see erase().
  [[nodiscard]] const std::map<std::string, SavedTranscript>& all() const { return all_; }
  /// Null: none is saved of this path.
  [[nodiscard]] const SavedTranscript* find(const std::string& path) const;
  /// Saves one. It is there after a crash of this process; a crash of the machine may lose it.
  /// Errors: `unavailable`: then it only holds until this object ends.
  [[nodiscard]] Result<void> put(const std::string& path, SavedTranscript saved);
  void forget(const std::string& path) { all_.erase(path); }
  /// Takes sessions out of the file, so that no byte of them is left: of their transcripts only the
  /// position stays, under a digest of the path. So they are not read again from their begin.
  /// Errors: `unavailable`.
  [[nodiscard]] Result<void> erase(std::span<const std::string> sessions);

 private:
  [[nodiscard]] Result<void> write_anew();

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::size_t bytes_ = 0;       ///< Of the file,
  std::size_t live_bytes_ = 0;  ///< and after it was last replaced.
  std::map<std::string, SavedTranscript> all_;
};

}  // namespace watchdog::monitor
