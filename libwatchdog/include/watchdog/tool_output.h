/// \file
/// What a model is shown of a tool's output: readable, bounded, and honest about what is missing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "watchdog/artifact_store.h"

namespace watchdog {

/// What was left out. A plain value.
struct Truncation {
  std::uint64_t total = 0;  ///< Characters that there were, and
  std::uint64_t shown = 0;  ///< that are left.
  std::string how;          ///< What was cut and how to get the rest, in a sentence.
};

/// A tool's output as the model gets it. A plain value.
struct Output {
  std::string text;  ///< UTF-8. Marks of what was cut stand in it.
  std::optional<Truncation> truncation{};
  std::optional<ArtifactRef> artifact{};  ///< All of it but secrets.
  std::string artifact_error{};  ///< Why it could not be kept whole; empty: it was, or fits.
};

/// Bounds in characters (code points), items and levels. The depth counts from 1; lists and objects
/// below the first level get a quarter. A plain value.
struct OutputLimits {
  std::size_t inline_chars = 12'000;
  std::size_t string_chars = 3'000;
  std::size_t list_items = 200;
  std::size_t object_keys = 80;
  std::size_t depth = 4;
};

/// Where of a text that is cut the more important part is.
enum class OutputShape : std::uint8_t {
  text,   ///< evenly at both ends
  shell,  ///< a fifth of the beginning, the rest of the end: errors stand there
};

/// Invalid UTF-8 becomes U+FFFD; escape sequences of terminals and NUL go; of lines that a program
/// wrote over (CR) the last state stays. Idempotent. Linear.
[[nodiscard]] std::string readable(std::string_view raw);

/// The text within the limits, marked where it was cut. JSON documents stay JSON documents:
/// strings, lists and objects in them are cut one by one, and if that is not enough all of it is
/// cut as a text. Never half a character. Idempotent. `rest` says how to get the whole.
[[nodiscard]] Output compacted(std::string_view text, const OutputLimits& limits,
                               OutputShape shape = OutputShape::text, std::string_view rest = {});

/// All of it: what is above `inline_chars` is put into the store, then made readable and
/// compacted. Secrets are taken out of both (see redact). Without a store, or where that fails, the
/// output is cut all the same and says so.
[[nodiscard]] Output presented(std::string_view raw, const OutputLimits& limits,
                               ArtifactStore* store, OutputShape shape = OutputShape::text);

/// The same of an output that is kept already; `raw` may be less than all of it.
[[nodiscard]] Output presented(std::string_view raw, const OutputLimits& limits, ArtifactRef kept,
                               OutputShape shape = OutputShape::text);

}  // namespace watchdog
