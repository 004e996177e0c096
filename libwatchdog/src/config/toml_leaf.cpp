#include "config/toml_leaf.h"

// Strangers' files reach its assertions (toml++ 3.3: a key that begins with no letter); what they
// guard is an error right behind them.
#define TOML_ASSERT(expression) static_assert(true)
#include <toml++/toml.h>

#include <algorithm>
#include <optional>

namespace watchdog {
namespace {

using nlohmann::json;

// The parser bounds how deep arrays and inline tables nest, but not how many parts a key has: each
// is a table in a table, and it would run out of stack. A key is on one line.
constexpr int dots_max = 64;

std::optional<TomlFault> too_deep(std::string_view text) {
  int line = 1;
  int column = 0;
  int dots = 0;
  for (const char c : text) {
    ++column;
    if (c == '\n') {
      ++line;
      column = dots = 0;
    } else if (c == '.' && ++dots > dots_max) {
      return TomlFault{line, column,
                       "a line may hold at most " + std::to_string(dots_max) + " dots"};
    }
  }
  return {};
}

// No setting is deeper than a list of texts; what is shown of others need not be whole.
constexpr int value_depth_max = 8;

json value_of(const toml::node& node, int depth = 0) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* flag = node.as_boolean()) return flag->get();
  if (const auto* integer = node.as_integer()) return integer->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (depth == value_depth_max) return "…";
  if (const auto* array = node.as_array()) {
    auto values = json::array();
    for (const auto& item : *array) values.push_back(value_of(item, depth + 1));
    return values;
  }
  if (const auto* table = node.as_table()) {
    auto members = json::object();
    for (const auto& [key, member] : *table)
      members[std::string(key.str())] = value_of(member, depth + 1);
    return members;
  }
  return {};
}

void collect(const toml::table& table, KeyPath& path, std::vector<TomlLeaf>& leaves) {
  for (const auto& [key, node] : table) {
    path.emplace_back(key.str());
    const auto* inner = node.as_table();
    if (inner != nullptr && !inner->empty()) {
      collect(*inner, path, leaves);
    } else {
      leaves.push_back({path, value_of(node), static_cast<int>(key.source().begin.line)});
    }
    path.pop_back();
  }
}

}  // namespace

Result<std::vector<TomlLeaf>, TomlFault> toml_leaves(std::string_view text) {
  if (auto fault = too_deep(text)) return *fault;
  try {
    const auto table = toml::parse(text);
    std::vector<TomlLeaf> leaves;
    KeyPath path;
    collect(table, path, leaves);
    std::ranges::stable_sort(leaves, {}, &TomlLeaf::line);
    return leaves;
  } catch (const toml::parse_error& error) {
    const auto& at = error.source().begin;
    return TomlFault{static_cast<int>(at.line), static_cast<int>(at.column),
                     std::string(error.description())};
  }
}

}  // namespace watchdog
