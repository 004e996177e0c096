/// \file
/// A checkpoint's record of its files, and its form on disk.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/result.h"
#include "watchdog/time.h"

namespace watchdog {

enum class ImageKind : std::uint8_t {
  unknown,  ///< Not checked.
  none,     ///< Nothing was there.
  file,
  other,  ///< A directory, a link, a device: nothing that is brought back or replaced.
};

template <>
struct Names<ImageKind> {
  static constexpr std::string_view all[] = {"unknown", "none", "file", "other"};
};

/// The content of a path. A plain value.
struct Image {
  ImageKind kind = ImageKind::unknown;
  std::string digest{};  ///< Of a file, as the others.
  mode_t mode = 0;       ///< Without the type.
  uid_t user = 0;
  gid_t group = 0;

  friend bool operator==(const Image&, const Image&) = default;
};

/// True if nothing was there both times, or files with the same content.
[[nodiscard]] bool same_content(const Image& a, const Image& b) noexcept;

/// A path before and after a tool, or a restore. A plain value.
struct CheckpointEntry {
  std::filesystem::path path;
  Image before{};
  Image after{};
};

/// A plain value.
struct CheckpointRecord {
  std::string call;
  WallTime at{};
  bool sealed = false;  ///< `after` is known.
  std::vector<CheckpointEntry> entries;
};

/// Lines of text, and their SHA-256 at the end.
[[nodiscard]] std::string encoded(const CheckpointRecord& record);
/// Errors: `corrupt`; the message goes on after the checkpoint's name.
[[nodiscard]] Result<CheckpointRecord> decoded_checkpoint(std::string_view text);

}  // namespace watchdog
