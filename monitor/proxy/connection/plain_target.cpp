#include "proxy/connection/plain_target.h"

#include <algorithm>

#include "api/target.h"

namespace watchdog::monitor {

std::string plain_target(std::string_view target) {
  if (target.find('%') == std::string_view::npos) return std::string(target);
  const auto query = std::min(target.find('?'), target.size());
  const auto path = Target::parse(target.substr(0, query));
  if (!path) return std::string(target);
  std::string plain;
  for (const auto& segment : path->segments) plain.append("/").append(segment);
  return plain.append(target.substr(query));
}

}  // namespace watchdog::monitor
