/// \file
/// The members of a hook's event under all names that agents use.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>

#include "codec/json.h"
#include "codec/json_bounds.h"
#include "ingest/bounded_text.h"
#include "privacy/content.h"

namespace watchdog::monitor {

/// Text as it is, anything else as its JSON; not more than an event may have.
[[nodiscard]] inline std::string hook_text(const nlohmann::json& value) {
  auto text = value.is_string()
                  ? value.get<std::string>()
                  : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  if (text.size() > event_bytes_max) text = first_characters(text, event_bytes_max / 4);
  return text;
}

/// The members of one event. Agents call the same thing by different names: the first of those
/// given that is there counts.
class HookMembers {
 public:
  using Aliases = std::initializer_list<const char*>;

  explicit HookMembers(const nlohmann::json& object) : object_(object) {}

  [[nodiscard]] const nlohmann::json* find(Aliases names) const {
    for (const auto* name : names) {
      const auto found = object_.find(name);
      if (found != object_.end() && !found->is_null()) return &*found;
    }
    return nullptr;
  }
  [[nodiscard]] std::string text(Aliases names) const {
    const auto* value = find(names);
    return value == nullptr ? std::string() : hook_text(*value);
  }
  [[nodiscard]] const nlohmann::json& all() const { return object_; }
  /// The beginning of the text, at most `bytes_max` bytes.
  [[nodiscard]] std::string word(Aliases names, std::size_t bytes_max) const {
    return first_bytes(text(names), bytes_max);
  }

 private:
  const nlohmann::json& object_;
};

}  // namespace watchdog::monitor
