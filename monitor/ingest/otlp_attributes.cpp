#include <algorithm>

#include "ingest/otlp_names.h"
#include "ingest/otlp_record.h"

namespace watchdog::monitor {

bool is_read_attribute(std::string_view name) {
  return std::ranges::any_of(otlp_names::all, [name](const otlp_names::Aliases& aliases) {
    return std::ranges::find(aliases, name) != aliases.end();
  });
}

bool OtlpRoom::take(const OtlpRecord& record, const OtlpRecord::Attributes& shared) {
  const auto bytes_of = [](const OtlpRecord::Attributes& attributes) {
    std::size_t bytes = 0;
    for (const auto& [name, text] : attributes)
      bytes += sizeof(OtlpRecord::Attributes::value_type) + name.size() + text.size();
    return bytes;
  };
  bytes_ += sizeof(OtlpRecord) + bytes_of(record.attributes) + bytes_of(shared) +
            record.name.size() + record.status_text.size();
  return ++records_ <= records_max && bytes_ <= bytes_max;
}

Error OtlpRoom::exceeded() {
  return {ErrorCode::exhausted, "a request may have at most " + std::to_string(records_max) +
                                    " records, which take at most " + std::to_string(bytes_max) +
                                    " bytes; send fewer at once"};
}

}  // namespace watchdog::monitor
