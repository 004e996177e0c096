/// \file
/// The form of an output in a file: unchanged, or, if it was too long, its first and last half with
/// a footer that describes the cut.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "files/open_file.h"
#include "watchdog/result.h"

namespace watchdog {

/// The places of an output's bytes in its file. Byte k is at k while k < `first`; the others are in
/// a ring after that, so that the latest replace the oldest without copying. A plain value.
struct ArtifactLayout {
  std::uint64_t given = 0;
  std::uint64_t kept = 0;
  std::uint64_t first = 0;   ///< Bytes before the ring.
  std::uint64_t turned = 0;  ///< Where in the ring its oldest byte is.

  [[nodiscard]] bool cut() const noexcept { return kept < given; }
};

/// Writes one. Use from one thread at a time.
class ArtifactWriter {
 public:
  explicit ArtifactWriter(std::uint64_t bytes_max) noexcept
      : first_(bytes_max - bytes_max / 2), ring_(bytes_max / 2) {}

  /// 0 or the number of the error.
  [[nodiscard]] int append(const OpenFile& file, std::string_view bytes) noexcept;
  /// Adds the footer where something was cut. `digest` is of all that was given.
  [[nodiscard]] int finish(const OpenFile& file, std::string_view digest) const;
  [[nodiscard]] ArtifactLayout layout() const noexcept;

 private:
  std::uint64_t first_;
  std::uint64_t ring_;
  std::uint64_t given_ = 0;
};

/// Returns the layout as the file states it; only its form is checked. Errors: `corrupt`.
[[nodiscard]] Result<ArtifactLayout> layout_of(const OpenFile& file, const std::string& digest,
                                               bool cut);
/// Checks that every byte is what was put. Errors: `corrupt`, `unavailable`.
[[nodiscard]] Result<void> verify(const OpenFile& file, const ArtifactLayout& layout,
                                  const std::string& digest);
/// REQUIRES: offset ≤ kept.
[[nodiscard]] Result<std::string> read_part(const OpenFile& file, const ArtifactLayout& layout,
                                            std::uint64_t offset, std::size_t bytes_max);

}  // namespace watchdog
