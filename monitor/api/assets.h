/// \file
/// The files that the pages load: styles, scripts, an icon. They are part of the program.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "api/message.h"

namespace watchdog::monitor {

/// A file as it was when the program was built. A plain value.
struct EmbeddedFile {
  std::string_view name;
  std::string_view content;
  std::string_view gzipped;
};

/// All of them; the build writes this function.
[[nodiscard]] std::span<const EmbeddedFile> embedded_files();

/// Where the files are, for example `/assets/0123456789abcdef`: another place whenever one of them
/// has changed, so that a browser may keep what it has for ever. Thread-safe.
[[nodiscard]] const std::string& assets_path();

/// The file of this name under `place`, the last part of `assets_path()`; 304 where the browser has
/// it. Nothing where there is no such file, or not there.
[[nodiscard]] std::optional<Response> asset(std::string_view place, std::string_view name,
                                            const Request& request);

}  // namespace watchdog::monitor
