/// \file
/// The path and query of a request, decoded.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/result.h"

namespace watchdog::monitor {

/// A plain value.
class Target {
 public:
  /// Errors: `malformed`.
  [[nodiscard]] static Result<Target> parse(std::string_view text);

  std::vector<std::string> segments;  ///< Of the path, without empty ones.

  /// The parameter's text; empty if it is absent or empty.
  [[nodiscard]] std::string text(const std::string& name) const;
  /// The parameter as a number. Errors: `malformed` (no integer), `invalid` (out of range).
  [[nodiscard]] Result<std::int64_t> number(const std::string& name, std::int64_t absent,
                                            std::int64_t min, std::int64_t max) const;
  /// The parameter as an enumerator's name; nothing if absent. Errors: `invalid`.
  template <class Enum>
  [[nodiscard]] Result<std::optional<Enum>> choice(const std::string& name) const {
    const auto word = text(name);
    if (word.empty()) return std::optional<Enum>{};
    const auto value = named<Enum>(word);
    if (!value) return Error{ErrorCode::invalid, name + " does not know " + word, name};
    return value;
  }

 private:
  std::map<std::string, std::string> parameters_;
};

}  // namespace watchdog::monitor
