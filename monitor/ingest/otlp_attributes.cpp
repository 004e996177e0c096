#include <algorithm>
#include <unordered_set>

#include "ingest/otlp_names.h"
#include "ingest/otlp_record.h"
#include "ingest/otlp_table.h"

namespace watchdog::monitor {

bool is_read_attribute(std::string_view name) {
  static const auto names = [] {
    std::unordered_set<std::string_view> all;
    for (const auto& aliases : otlp_names::all) all.insert(aliases.begin(), aliases.end());
    return all;
  }();
  return names.contains(name);
}

bool OtlpLimits::share(std::vector<OtlpRecord>& records, std::size_t first,
                       const OtlpRecord::Attributes& shared) {
  const auto bytes_of = [](const OtlpRecord::Attributes& attributes) {
    std::size_t bytes = 0;
    for (const auto& [name, text] : attributes)
      bytes += sizeof(OtlpRecord::Attributes::value_type) + name.size() + text.size();
    return bytes;
  };
  const auto shared_bytes = bytes_of(shared);
  for (auto at = first; at < records.size(); ++at) {
    auto& record = records[at];
    bytes_ += sizeof(OtlpRecord) + bytes_of(record.attributes) + shared_bytes + record.name.size() +
              record.status_text.size();
    if (at >= records_max || bytes_ > bytes_max) return false;
    record.attributes.insert(shared.begin(), shared.end());
  }
  return true;
}

Error OtlpLimits::exceeded() {
  return {ErrorCode::exhausted, "a request may have at most " + std::to_string(records_max) +
                                    " records, which take at most " + std::to_string(bytes_max) +
                                    " bytes; send fewer at once"};
}

bool is_read_metric(std::string_view name) {
  return std::ranges::any_of(otlp_table::rows, [name](const otlp_table::Row& row) {
    return row.signal == OtlpSignal::metrics && row.name == name;
  });
}

}  // namespace watchdog::monitor
