// Reads OTLP's protobuf without generated code. The numbers are those of opentelemetry-proto's
// logs.proto, trace.proto, common.proto and resource.proto. protozero throws on a message that is
// cut off or has a wrong wire type; that refuses the whole request. Fields that are not known are
// skipped. Texts that are not UTF-8 are repaired, because the store takes nothing else.
#include <nlohmann/json.hpp>
#include <protozero/pbf_reader.hpp>

#include "ingest/otlp_record.h"

namespace watchdog::monitor {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr std::size_t body_bytes_max = 128;

/// The text, with a replacement for every byte that is not UTF-8.
std::string repaired(std::string text) {
  using nlohmann::json;
  const auto dumped = json(std::move(text)).dump(-1, ' ', false, json::error_handler_t::replace);
  return json::parse(dumped).get<std::string>();
}

std::string hex(const std::string& bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const auto letter : bytes) {
    const auto byte = static_cast<unsigned char>(letter);
    text += digits[byte >> 4U];
    text += digits[byte & 15U];
  }
  return text;
}

/// Sets the value's text. False: it is a list, an object, bytes or nothing.
bool read_value(pbf_reader value, std::string& text) {
  bool found = false;
  while (value.next()) {
    switch (value.tag()) {
      case 1:
        text = repaired(value.get_string());
        found = true;
        break;
      case 2:
        text = value.get_bool() ? "true" : "false";
        found = true;
        break;
      case 3:
        text = std::to_string(value.get_int64());
        found = true;
        break;
      case 4:
        text = nlohmann::json(value.get_double()).dump();
        found = true;
        break;
      default:
        value.skip();
    }
  }
  return found;
}

void read_attribute(pbf_reader item, OtlpRecord::Attributes& attributes) {
  std::string name;
  pbf_reader value;
  while (item.next()) {
    if (item.tag() == 1) {
      name = item.get_string();
    } else if (item.tag() == 2) {
      value = item.get_message();
    } else {
      item.skip();
    }
  }
  std::string text;
  if (is_read_attribute(name) && read_value(value, text))
    attributes.insert_or_assign(name, std::move(text));
}

/// Reads the attributes of a message, which has them in the field `tag`.
void read_attributes(pbf_reader message, std::uint32_t tag, OtlpRecord::Attributes& attributes) {
  while (message.next()) {
    if (message.tag() == tag) {
      read_attribute(message.get_message(), attributes);
    } else {
      message.skip();
    }
  }
}

OtlpRecord log_of(pbf_reader message) {
  OtlpRecord record;
  std::int64_t observed = 0;
  while (message.next()) {
    switch (message.tag()) {
      case 1:
        record.end = static_cast<std::int64_t>(message.get_fixed64());
        break;
      case 5:
        if (!read_value(message.get_message(), record.body) || record.body.size() > body_bytes_max)
          record.body.clear();
        break;
      case 6:
        read_attribute(message.get_message(), record.attributes);
        break;
      case 9:
        record.trace = hex(message.get_bytes());
        break;
      case 10:
        record.span = hex(message.get_bytes());
        break;
      case 11:
        observed = static_cast<std::int64_t>(message.get_fixed64());
        break;
      case 12:
        record.name = repaired(message.get_string());
        break;
      default:
        message.skip();
    }
  }
  if (record.end == 0) record.end = observed;
  return record;
}

void read_status(pbf_reader status, OtlpRecord& record) {
  constexpr std::int32_t error = 2;
  while (status.next()) {
    if (status.tag() == 2) {
      record.status_text = repaired(status.get_string());
    } else if (status.tag() == 3) {
      record.failed = status.get_enum() == error;
    } else {
      status.skip();
    }
  }
}

OtlpRecord span_of(pbf_reader message) {
  OtlpRecord record{.signal = OtlpSignal::traces};
  while (message.next()) {
    switch (message.tag()) {
      case 1:
        record.trace = hex(message.get_bytes());
        break;
      case 2:
        record.span = hex(message.get_bytes());
        break;
      case 4:
        record.parent = hex(message.get_bytes());
        break;
      case 5:
        record.name = repaired(message.get_string());
        break;
      case 7:
        record.begin = static_cast<std::int64_t>(message.get_fixed64());
        break;
      case 8:
        record.end = static_cast<std::int64_t>(message.get_fixed64());
        break;
      case 9:
        read_attribute(message.get_message(), record.attributes);
        break;
      case 11:
        read_attributes(message.get_message(), 3, record.attributes);
        break;
      case 15:
        read_status(message.get_message(), record);
        break;
      default:
        message.skip();
    }
  }
  return record;
}

void read_resource(pbf_reader resource, OtlpSignal signal, std::vector<OtlpRecord>& records) {
  const auto first = records.size();
  OtlpRecord::Attributes shared;
  while (resource.next()) {
    if (resource.tag() == 1) {
      read_attributes(resource.get_message(), 1, shared);
    } else if (resource.tag() == 2) {
      auto scope = resource.get_message();
      while (scope.next()) {
        if (scope.tag() == 2) {
          records.push_back(signal == OtlpSignal::logs ? log_of(scope.get_message())
                                                       : span_of(scope.get_message()));
        } else {
          scope.skip();
        }
      }
    } else {
      resource.skip();
    }
  }
  for (auto at = first; at < records.size(); ++at)
    records[at].attributes.insert(shared.begin(), shared.end());
}

}  // namespace

Result<std::vector<OtlpRecord>> otlp_records_from_protobuf(OtlpSignal signal,
                                                           std::string_view body) {
  std::vector<OtlpRecord> records;
  try {
    pbf_reader request(body.data(), body.size());
    while (request.next()) {
      if (request.tag() == 1 && signal != OtlpSignal::metrics) {
        read_resource(request.get_message(), signal, records);
      } else {
        request.skip();
      }
    }
  } catch (const protozero::exception& error) {
    return Error{ErrorCode::malformed, std::string("the body is not protobuf: ") + error.what()};
  }
  return records;
}

}  // namespace watchdog::monitor
