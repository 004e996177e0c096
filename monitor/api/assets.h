/// \file
/// The files that are part of the program: the styles, scripts and icon of the page, and the
/// schemas of the API.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/message.h"

namespace watchdog::monitor {

/// A file as the program contains it. A plain value.
struct PackedFile {
  std::string_view name;
  std::string_view gzipped;
};

/// All of them; the build writes this function.
[[nodiscard]] std::span<const PackedFile> packed_files();

/// A file as it was when the program was built. `content` is valid as long as the program runs.
struct EmbeddedFile {
  std::string_view name;
  std::string content;
  std::string_view gzipped;
};

/// All of them. The first call unpacks them. Thread-safe.
[[nodiscard]] std::span<const EmbeddedFile> embedded_files();

/// Returns the path of the files, for example `/assets/0123456789abcdef`. It changes with each of
/// them, so a browser may keep them for ever. Thread-safe.
[[nodiscard]] const std::string& assets_path();

/// Returns the names of the scripts that the scripts `entries` import, and of these, each once.
/// Imports by a call, which happen later, are not among them.
[[nodiscard]] std::vector<std::string_view> modules_of(std::vector<std::string_view> entries);

/// Returns the file of this name under `place`, the last part of `assets_path()`; 304 if the
/// browser has it. Nothing if there is no such file.
[[nodiscard]] std::optional<Response> asset(std::string_view place, std::string_view name,
                                            const Request& request);

/// Returns `openapi.yaml`, or one of the schemas that it refers to; 304 if the client has it.
/// Returns nothing for an unknown name.
[[nodiscard]] std::optional<Response> schema_file(std::string_view name, const Request& request);

}  // namespace watchdog::monitor
