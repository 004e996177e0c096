// Reads the timeout among a call's arguments, also in the spellings of other agents' tools.
#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "codec/json.h"
#include "watchdog/deadline.h"

namespace watchdog {
namespace {

using Json = nlohmann::ordered_json;

/// How tools of other agents spell a timeout. `either`: seconds below 1,000, else milliseconds.
struct Spelling {
  const char* name;
  enum class Unit : std::uint8_t { milliseconds, seconds, either } unit;
};
constexpr double shortest_ms = 1'000;
constexpr const char* own_spelling = "timeout_ms";
constexpr Spelling spellings[] = {{own_spelling, Spelling::Unit::milliseconds},
                                  {"timeoutMs", Spelling::Unit::milliseconds},
                                  {"timeout_millis", Spelling::Unit::milliseconds},
                                  {"timeout_milliseconds", Spelling::Unit::milliseconds},
                                  {"timeout", Spelling::Unit::either},
                                  {"timeout_s", Spelling::Unit::seconds},
                                  {"timeout_sec", Spelling::Unit::seconds},
                                  {"timeout_secs", Spelling::Unit::seconds},
                                  {"timeout_seconds", Spelling::Unit::seconds},
                                  {"timeoutSeconds", Spelling::Unit::seconds}};

/// A number above 0, or why it is none.
std::optional<double> number_in(const Json& value, const char* where, TimeoutHint& hint) {
  if (hint.timeout || !hint.note.empty()) return std::nullopt;
  if (!value.is_number()) {
    hint.note = std::string(where) + " ignored: not a number of milliseconds";
    return std::nullopt;
  }
  const double number = value.get<double>();
  if (number >= 1) return std::min(number, 1e12);
  hint.note = std::string(where) + " ignored: must be above 0";
  return std::nullopt;
}

void read_hint(const Json& value, const char* where, TimeoutHint& hint) {
  const auto ms = number_in(value, where, hint);
  if (!ms) return;
  hint.timeout = Millis{static_cast<std::int64_t>(*ms)};
  // Nobody asks for less than a second: seconds are meant.
  if (*ms >= shortest_ms) return;
  hint.timeout = Millis{static_cast<std::int64_t>(*ms * 1'000)};
  hint.note = std::string(where) + " is understood as " +
              std::to_string(hint.timeout->count() / 1'000) + " s; write milliseconds";
}

void read_spelling(const Json& value, const Spelling& spelling, TimeoutHint& hint) {
  const auto number = number_in(value, spelling.name, hint);
  if (!number) return;
  const bool in_seconds = spelling.unit == Spelling::Unit::seconds ||
                          (spelling.unit == Spelling::Unit::either && *number < shortest_ms);
  hint.timeout = Millis{static_cast<std::int64_t>(in_seconds ? *number * 1'000 : *number)};
  if (spelling.name == std::string_view(own_spelling)) return;
  hint.note = std::string(spelling.name) + " is understood as " +
              std::to_string(hint.timeout->count()) + " ms; write " + own_spelling;
}

}  // namespace

TimeoutHint extract_hint(std::string& arguments, const std::vector<std::string>& declares,
                         bool takes_timeout) {
  TimeoutHint hint;
  // Nearly every call has none, and a document of a megabyte is not read for nothing.
  if (arguments.find("timeout") == std::string::npos &&
      arguments.find("\\u") == std::string::npos) {
    return hint;
  }
  if (!is_json(arguments)) return hint;
  auto document = Json::parse(arguments, nullptr, false);
  if (!document.is_object()) return hint;
  const auto is_declared = [&](const char* name) {
    return std::find(declares.begin(), declares.end(), name) != declares.end();
  };
  bool changed = false;
  if (const auto meta = document.find("_meta"); meta != document.end() && meta->is_object()) {
    if (const auto value = meta->find("timeout"); value != meta->end()) {
      read_hint(*value, "_meta.timeout", hint);
      if (!is_declared("_meta")) {
        meta->erase("timeout");
        if (meta->empty()) document.erase("_meta");
        changed = true;
      }
    }
  }
  if (const auto value = document.find("_timeout"); value != document.end()) {
    read_hint(*value, "_timeout", hint);
    if (!is_declared("_timeout")) {
      document.erase("_timeout");
      changed = true;
    }
  }
  if (takes_timeout) {
    for (const auto& spelling : spellings) {
      const auto value = document.find(spelling.name);
      const bool is_own = spelling.name == std::string_view(own_spelling);
      if (value == document.end() || (!is_own && is_declared(spelling.name))) continue;
      read_spelling(*value, spelling, hint);
      document.erase(spelling.name);
      changed = true;
    }
  }
  if (changed) arguments = document.dump(-1, ' ', false, Json::error_handler_t::replace);
  return hint;
}

}  // namespace watchdog
