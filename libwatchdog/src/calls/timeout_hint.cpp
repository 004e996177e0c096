#include <algorithm>
#include <nlohmann/json.hpp>

#include "codec/json.h"
#include "watchdog/deadline.h"

namespace watchdog {
namespace {

using Json = nlohmann::ordered_json;

/// A number of milliseconds above 0, or why it is none.
void read_hint(const Json& value, const char* where, TimeoutHint& hint) {
  if (hint.timeout || !hint.note.empty()) return;
  if (!value.is_number()) {
    hint.note = std::string(where) + " ignored: not a number of milliseconds";
    return;
  }
  const double ms = value.get<double>();
  if (!(ms >= 1)) {
    hint.note = std::string(where) + " ignored: must be above 0";
    return;
  }
  hint.timeout = Millis{static_cast<std::int64_t>(std::min(ms, 1e12))};
}

}  // namespace

TimeoutHint extract_hint(std::string& arguments, const std::vector<std::string>& declares) {
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
  if (changed) arguments = document.dump(-1, ' ', false, Json::error_handler_t::replace);
  return hint;
}

}  // namespace watchdog
