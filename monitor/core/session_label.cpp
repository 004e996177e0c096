#include "core/session_label.h"

#include "codec/fields.h"

namespace watchdog::monitor {

std::vector<std::string> labels_of(const Description& description) {
  std::vector<std::string> labels;
  const auto members = parse_json("{" + description.members + "}");
  if (!members || !members->contains("labels")) return labels;
  for (const auto& [key, value] : (*members)["labels"].items())
    if (value.is_string()) labels.push_back(key + ":" + value.get<std::string>());
  return labels;
}

}  // namespace watchdog::monitor
