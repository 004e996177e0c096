/// \file
/// JSON with comments and trailing commas, with the place of each value in the text.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/result.h"

namespace watchdog::monitor {

/// A value, and the key that it has as a member. Places are offsets in bytes. A plain value.
struct JsoncNode {
  enum class Kind { nothing, object, array, string, other };
  static constexpr std::size_t none = std::string_view::npos;

  Kind kind = Kind::nothing;  ///< `nothing`: the text has white space and comments only.
  std::string key{};
  std::string text{};        ///< Of a string, decoded.
  std::size_t place = 0;     ///< Of the key, or of the value if it has none.
  std::size_t begin = 0;     ///< Of the value.
  std::size_t end = 0;       ///< Behind the value.
  std::size_t comma = none;  ///< Of the comma that follows; `none`: there is none.
  std::vector<JsoncNode> items{};

  /// Returns the member of this key; null: there is none. Agents read the last of equal keys.
  [[nodiscard]] const JsoncNode* find(std::string_view name) const;
};

/// Reads a text. A byte order mark is skipped. Errors: `malformed` with the line. Pure.
[[nodiscard]] Result<JsoncNode> parse_jsonc(std::string_view text);

/// Returns the text with the item (`VALUE` or `"KEY": VALUE`) at the end of the container. A line
/// of the container's form begins with it, or one blank if the container is empty. Pure.
[[nodiscard]] std::string with_item(std::string_view text, const JsoncNode& container,
                                    const std::string& item);

/// Returns the text without the item at these indices, from the root down. A container that has no
/// other content goes with it, unless with_item() found it empty. The root stays. Pure.
[[nodiscard]] std::string without_item(std::string_view text, const JsoncNode& root,
                                       std::vector<std::size_t> indices);

/// White space that lines of the text begin and end with. A plain value.
struct JsoncStyle {
  std::string line_end = "\n";
  std::string indent = "  ";  ///< Of one level.
};
[[nodiscard]] JsoncStyle style_of(std::string_view text, const JsoncNode& root);
/// Returns the white space at the beginning of the line of a place.
[[nodiscard]] std::string line_indent(std::string_view text, std::size_t place);

}  // namespace watchdog::monitor
