// Finds a row by comparing the key's parts with the row's parts, where `*` matches any name. It
// compares parts, not texts, because a name may hold dots; `key_text` quotes those. The names for a
// `*` come from the settings. A listing expands adjacent rows of one
// table together, so all keys of a name follow each other. Variables are made from the key.
#include "config/table.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "codec/json.h"
#include "config/former.h"
#include "text/ascii.h"

namespace watchdog {
namespace {

/// A second name of a key, which stays valid. A `*` in both stands for the same name.
struct OtherName {
  std::string_view name;
  std::string_view key;
};
constexpr std::array other_names{
    OtherName{"task_tool.default_plan_max_steps", "task_tool.agents.plan.max_steps"},
    OtherName{"task_tool.default_explore_max_steps", "task_tool.agents.explore.max_steps"},
    OtherName{"proxy.ca_file", "model.ca_file"},
    OtherName{"alerts.channels.*.routing_key_file", "alerts.channels.*.secret_file"},
};

constexpr std::size_t name_bytes_max = 256;

bool matches(std::string_view pattern, const std::string& part) {
  return pattern == "*" ? !part.empty() && part.size() <= name_bytes_max : pattern == part;
}

/// Returns the names for the `*` of a row.
std::vector<std::string> names_for(const Row& row, const Settings& settings) {
  std::vector<std::string> names;
  if (row.key.starts_with("task_tool.agents.")) {
    for (const auto& [name, limits] : settings.task_tool.agents) names.push_back(name);
  } else if (row.key.starts_with("policy.tools.")) {
    for (const auto& [name, rule] : settings.policy.tools) names.push_back(name);
  } else if (row.key.starts_with("alerts.channels.")) {
    for (const auto& [name, channel] : settings.alerts.channels) names.push_back(name);
  } else if (row.key.starts_with("proxy.upstreams.")) {
    for (const auto& [name, upstream] : settings.proxy.upstreams) names.push_back(name);
  } else if (row.key.starts_with("proxy.budgets.")) {
    for (const auto& [name, budget] : settings.proxy.budgets) names.push_back(name);
  } else if (row.key.starts_with("proxy.prices.")) {
    for (const auto& [name, price] : settings.proxy.prices) names.push_back(name);
  } else if (row.key.starts_with("recovery.rules.")) {
    for (const auto& [name, rule] : settings.recovery.rules) names.push_back(name);
  } else if (row.key.starts_with("tools.timeouts.")) {
    for (const auto& [name, time] : settings.tools.deadlines.per_tool) names.push_back(name);
  }
  return names;
}

/// Returns the parts of a key, with the name of `path` in the place of its `*`.
KeyPath other_path(std::string_view key, const KeyPath& path) {
  auto parts = parts_of(key);
  for (std::size_t at = 0; at < parts.size() && at < path.size(); ++at)
    if (parts[at] == "*") parts[at] = path[at];
  return parts;
}

bool is_bare(const std::string& part) {
  return !part.empty() && std::ranges::all_of(part, [](unsigned char c) {
    return (c < 0x80 && std::isalnum(c) != 0) || c == '_' || c == '-';
  });
}

}  // namespace

std::string variable_of(std::string_view key) {
  std::string name = "WATCHDOG_";
  for (const char c : key) {
    const auto upper = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    if (c == '.') {
      name += '_';
    } else {
      if (c >= 'A' && c <= 'Z' && name.back() != '_') name += '_';
      name += upper;
    }
  }
  return name;
}

bool is_key_of(const KeyPath& path, std::string_view key) {
  return std::ranges::equal(parts_of(key), path, matches);
}

std::string Setting::key() const {
  return key_text(path);
}

std::vector<std::string> Setting::variables() const {
  std::vector<std::string> names;
  if (!row->variable.empty()) names.emplace_back(row->variable);
  if (row->key.starts_with("policy.tools.")) return names;  // no scalars, and any name
  for (const auto& other : other_names)
    if (is_key_of(path, other.key))
      names.push_back(variable_of(key_text(other_path(other.name, path))));
  names.push_back(variable_of(key()));
  return names;
}

std::optional<Setting> find_setting(const KeyPath& path) {
  for (const auto& other : other_names)
    if (is_key_of(path, other.name)) return find_setting(other_path(other.key, path));
  for (const auto& row : setting_rows())
    if (is_key_of(path, row.key)) return Setting{&row, path};
  return {};
}

std::optional<Setting> find_setting(std::string_view plain_key) {
  return find_setting(parts_of(plain_key));
}

std::vector<Setting> settings_in(const Settings& settings) {
  std::vector<Setting> all;
  const auto name_in = [](const Row& row) { return row.key.find('*') != std::string_view::npos; };
  const auto table_of = [](const Row& row) { return row.key.substr(0, row.key.rfind('.')); };
  const auto rows = setting_rows();
  for (auto row = rows.begin(); row != rows.end();) {
    if (!name_in(*row)) {
      all.push_back({&*row, parts_of(row->key)});
      ++row;
      continue;
    }
    // All keys of one name, then all of the next.
    const auto end = std::find_if(
        row, rows.end(), [&](const Row& other) { return table_of(other) != table_of(*row); });
    for (const auto& name : names_for(*row, settings)) {
      for (auto each = row; each != end; ++each) {
        auto path = parts_of(each->key);
        std::ranges::replace(path, "*", name);
        all.push_back({&*each, std::move(path)});
      }
    }
    row = end;
  }
  return all;
}

std::optional<Setting> named_setting(std::string_view variable) {
  constexpr std::size_t at_name = 2;
  std::optional<Setting> found;
  for (const auto& row : setting_rows()) {
    auto path = parts_of(row.key);
    if (path.size() <= at_name || path[at_name] != "*") continue;
    // The one letter stands for a name of any length.
    path[at_name] = "n";
    const auto pattern = variable_of(key_text(path));
    const auto begin = variable_of(path[0] + "." + path[1]).size() + 1;
    const auto end = pattern.substr(begin + 1);
    if (variable.size() < pattern.size() || !variable.starts_with(pattern.substr(0, begin)) ||
        !variable.ends_with(end))
      continue;
    path[at_name] = lower_case(variable.substr(begin, variable.size() - begin - end.size()));
    if (found && found->path[at_name].size() <= path[at_name].size()) continue;
    const Setting setting{&row, std::move(path)};
    const auto names = setting.variables();
    if (!names.empty() && names.back() == variable) found = setting;
  }
  return found;
}

bool is_section(const KeyPath& path) {
  const auto begins = [&](const auto& row) {
    const auto parts = parts_of(row.key);
    return path.size() < parts.size() &&
           std::equal(path.begin(), path.end(), parts.begin(),
                      [](const auto& part, const auto& pattern) { return matches(pattern, part); });
  };
  return std::ranges::any_of(setting_rows(), begins) || std::ranges::any_of(former_keys(), begins);
}

std::string key_text(const KeyPath& path) {
  std::string text;
  for (const auto& part : path) {
    if (!text.empty()) text += '.';
    text += is_bare(part) ? part : literal(part);
  }
  return text;
}

KeyPath parts_of(std::string_view plain_key) {
  KeyPath parts;
  for (std::size_t begin = 0; begin <= plain_key.size();) {
    const auto end = std::min(plain_key.find('.', begin), plain_key.size());
    parts.emplace_back(plain_key.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace watchdog
