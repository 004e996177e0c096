/// \file
/// The statements of a TOML text with their places, so that one can be changed and all others stay
/// as they are. `toml_leaves` says what the values mean. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace watchdog::monitor {

/// A plain value.
struct TomlStatement {
  enum class Kind {
    header,  ///< `[a.b]`, or `[[a.b]]`
    pair,    ///< `key = value`, over one line or several
    other    ///< a comment, a blank line, or what is not TOML
  };
  Kind kind = Kind::other;
  std::vector<std::string> path{};  ///< The parts of the header's name, or of the key.
  std::size_t begin = 0;
  std::size_t end = 0;          ///< Behind its line end.
  std::size_t value_begin = 0;  ///< Of a pair.
  std::size_t value_end = 0;    ///< Behind the value: a comment may follow.
};

/// Returns the statements in their order. Together they are the whole text, whatever it is.
[[nodiscard]] std::vector<TomlStatement> toml_statements(std::string_view text);

}  // namespace watchdog::monitor
