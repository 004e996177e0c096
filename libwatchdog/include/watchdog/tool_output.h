/// \file
/// Prepares a tool's output for a model: readable, bounded, with a note on each cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "watchdog/artifact_store.h"

namespace watchdog {

/// The cut of an output that was too long. A plain value.
struct Truncation {
  std::uint64_t total = 0;  ///< Characters of the whole, and
  std::uint64_t shown = 0;  ///< of the shown part.
  std::string how{};        ///< In words: the removed parts, and how to get the rest.
};

/// A tool's output for the model. A plain value.
struct Output {
  std::string text{};  ///< UTF-8. A mark shows each cut.
  std::optional<Truncation> truncation{};
  std::optional<ArtifactRef> artifact{};  ///< The whole output without secrets.
  std::string artifact_error{};  ///< Why it could not be stored in full; empty: it was, or it fits.
};

/// Limits in characters (code points), items and levels. The depth counts from 1. Lists and objects
/// below the first level get a quarter, except the list `entries` of the first level. A plain
/// value.
struct OutputLimits {
  std::size_t inline_chars = 12'000;
  std::size_t string_chars = 3'000;
  std::size_t list_items = 200;
  std::size_t object_keys = 80;
  std::size_t depth = 4;
};

/// Which part of a long text is more important.
enum class OutputShape : std::uint8_t {
  text,   ///< evenly at both ends
  shell,  ///< a fifth of the beginning, the rest of the end, where errors are
};

/// Replaces invalid UTF-8 by U+FFFD, removes terminals' escape sequences and NUL, and keeps the
/// last state of lines that a program overwrote (CR). Idempotent. Linear.
[[nodiscard]] std::string readable(std::string_view raw);

/// Returns the text within the limits, marked at each cut. A JSON document stays one: its strings,
/// lists and objects are cut one by one; if that is not enough, it is cut as text. No character is
/// split. Idempotent. `rest` says how to get the whole.
[[nodiscard]] Output compacted(std::string_view text, const OutputLimits& limits,
                               OutputShape shape = OutputShape::text, std::string_view rest = {});

/// Prepares a whole output: above `inline_chars` it is stored, then made readable and compacted.
/// Secrets are removed from both (see redact). Without a store, or if storing fails, the output is
/// cut and says so.
[[nodiscard]] Output presented(std::string_view raw, const OutputLimits& limits,
                               ArtifactStore* store, OutputShape shape = OutputShape::text);

/// The same for an output that is already stored; `raw` may be a part of it.
[[nodiscard]] Output presented(std::string_view raw, const OutputLimits& limits, ArtifactRef kept,
                               OutputShape shape = OutputShape::text);

}  // namespace watchdog
