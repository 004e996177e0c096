/// \file
/// A JSON document made smaller value by value, its tokens as they were written.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "watchdog/artifact_store.h"

namespace watchdog {

/// A plain value.
struct JsonCut {
  std::string text;  ///< Without white space between tokens.
  std::size_t strings = 0, lists = 0, objects = 0, deep = 0;  ///< That were cut.
  std::size_t mark_chars = 0;  ///< Of the text; they were not there before.

  [[nodiscard]] bool cut() const noexcept { return strings + lists + objects + deep > 0; }
};

/// Returns the note at the end of the document's first level about the missing part, from the
/// number of shown characters.
using Notice = std::function<std::string(std::size_t)>;

/// Values are cut to the limits. With a notice the first level gives up a place for it. REQUIRES:
/// is_json(json).
[[nodiscard]] JsonCut cut_json(std::string_view json, const OutputLimits& limits,
                               const Notice& notice = {});

}  // namespace watchdog
