/// \file
/// Reads a TOML text into its leaves, each with its line.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "config/table.h"
#include "watchdog/result.h"

namespace watchdog {

struct TomlLeaf {
  KeyPath path;
  nlohmann::json value;  ///< Null: a date or a time. An object: a table without anything in it.
  int line = 0;
};

/// The place where a text stops being TOML, and the cause.
struct TomlFault {
  int line = 0;
  int column = 0;
  std::string message;
};

/// In the order of the text, which may be hostile.
[[nodiscard]] Result<std::vector<TomlLeaf>, TomlFault> toml_leaves(std::string_view text);

}  // namespace watchdog
