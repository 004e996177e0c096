/// \file
/// A message of another program in which each text in turn is very long, in characters of one to
/// four bytes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace watchdog::test {

/// Calls `check` with each variant of the message.
template <class Check>
void for_each_long_text(const nlohmann::json& message, Check&& check) {
  const auto texts = message.flatten();
  for (const auto& [place, value] : texts.items()) {
    if (!value.is_string()) continue;
    for (const std::string character : {"a", "é", "€", "😀"}) {
      auto variant = message;
      std::string text = "b";
      for (int i = 0; i < 2'000; ++i) text += character;
      variant[nlohmann::json::json_pointer(place)] = text;
      check(variant);
    }
  }
}

}  // namespace watchdog::test
