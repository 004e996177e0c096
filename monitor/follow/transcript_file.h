/// \file
/// Reads the new lines of a file that another program appends to.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog::monitor {

/// A longer line is skipped.
inline constexpr std::size_t transcript_line_max = 16UL * 1024 * 1024;
/// A larger file that is one JSON value is skipped.
inline constexpr std::int64_t transcript_whole_max = 64L * 1024 * 1024;

/// How far a file was read. Of a session in a database: `offset` counts its events, and `head` is
/// the digest of the newest one's id. A plain value.
struct TranscriptPosition {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t offset = 0;      ///< The first byte that is not read.
  std::int64_t head_bytes = 0;  ///< The first bytes of the file, at most some,
  std::uint64_t head = 0;       ///< and their digest.
  std::uint64_t tail = 0;       ///< The digest of the last bytes before the offset; 0: unknown.
  bool is_skipping = false;     ///< In the middle of a line that is too long.
};

/// An open file. Moves only.
class TranscriptFile {
 public:
  /// Errors: `not_found`; `invalid` (a link, a pipe or another file that is not regular);
  /// `unavailable`. Never waits.
  [[nodiscard]] static Result<TranscriptFile> open(const std::filesystem::path& path);
  ~TranscriptFile();
  TranscriptFile(TranscriptFile&& other) noexcept;
  TranscriptFile& operator=(TranscriptFile&& other) noexcept;
  TranscriptFile(const TranscriptFile&) = delete;
  TranscriptFile& operator=(const TranscriptFile&) = delete;

  [[nodiscard]] std::int64_t size() const noexcept { return size_; }
  [[nodiscard]] WallTime changed() const noexcept { return changed_; }
  /// True if the position is one of this file: it was not replaced, truncated or overwritten.
  [[nodiscard]] bool is_at(const TranscriptPosition& position) const;
  /// The position at the file's beginning.
  [[nodiscard]] TranscriptPosition beginning() const noexcept;

  /// A piece of the file. A plain value; the lines are without their ends, and none is empty.
  struct Piece {
    std::string bytes{};
    std::vector<std::string_view> lines{};
    std::int64_t skipped = 0;  ///< Lines above the limit that ended here.
    bool is_end = false;       ///< No complete line follows at the moment.
    bool is_half = false;      ///< The file is not a complete JSON value yet.
  };
  /// Reads the complete lines after the position, some 256 KiB of them, and moves it behind them.
  /// Errors: `unavailable`.
  [[nodiscard]] Result<void> read(TranscriptPosition& position, Piece& piece) const;
  /// Reads a file that is one JSON value as one line, unless it is as it was at the position. A
  /// half value leaves the position as it is. Errors: `unavailable`.
  [[nodiscard]] Result<void> read_whole(TranscriptPosition& position, Piece& piece) const;

 private:
  explicit TranscriptFile(int descriptor) : descriptor_(descriptor) {}
  [[nodiscard]] std::uint64_t head_digest(std::int64_t bytes) const;
  [[nodiscard]] std::uint64_t tail_digest(std::int64_t offset) const;
  [[nodiscard]] Result<void> read_lines(TranscriptPosition& position, Piece& piece) const;
  [[nodiscard]] Result<void> fill(std::string& bytes, std::int64_t offset, std::size_t size) const;

  int descriptor_ = -1;
  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
  std::int64_t size_ = 0;
  WallTime changed_{};
};

}  // namespace watchdog::monitor
