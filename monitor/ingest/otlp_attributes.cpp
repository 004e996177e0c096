#include <algorithm>

#include "ingest/otlp_names.h"
#include "ingest/otlp_record.h"

namespace watchdog::monitor {

bool is_read_attribute(std::string_view name) {
  return std::ranges::any_of(otlp_names::all, [name](const otlp_names::Aliases& aliases) {
    return std::ranges::find(aliases, name) != aliases.end();
  });
}

}  // namespace watchdog::monitor
