/// \file
/// The path and query of a request, decoded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/nearest.h"
#include "watchdog/result.h"

namespace watchdog::monitor {

/// A plain value.
class Target {
 public:
  /// Errors: `malformed`.
  [[nodiscard]] static Result<Target> parse(std::string_view text);

  std::vector<std::string> segments;  ///< Of the path, without empty ones.

  /// Names of the parameters that are there.
  [[nodiscard]] std::vector<std::string> names() const;
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
    if (!value) return Error{ErrorCode::invalid, unknown_word(name, word, all_names<Enum>()), name};
    return value;
  }
  /// The parameter as names of enumerators, with commas between; none if absent. Errors: `invalid`.
  template <class Enum>
  [[nodiscard]] Result<std::vector<Enum>> choices(const std::string& name) const {
    std::vector<Enum> values;
    const auto words = text(name);
    for (std::size_t from = 0; from < words.size();) {
      const auto to = std::min(words.find(',', from), words.size());
      const auto word = words.substr(from, to - from);
      const auto value = named<Enum>(word);
      if (!value)
        return Error{ErrorCode::invalid, unknown_word(name, word, all_names<Enum>()), name};
      values.push_back(*value);
      from = to + 1;
    }
    return values;
  }

 private:
  std::map<std::string, std::string> parameters_;
};

/// Text as one segment or value of a URL.
[[nodiscard]] std::string url_encoded(const std::string& text);

}  // namespace watchdog::monitor
