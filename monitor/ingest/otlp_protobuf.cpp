// Reads OTLP's protobuf without generated code. The numbers are those of opentelemetry-proto's
// logs.proto, trace.proto, common.proto and resource.proto. `field` is a number with its wire type:
// protozero only asserts that the type is the one that is read, so each field is asked for both. A
// field of another type is skipped like one that is not known. A message that is cut off throws and
// refuses the whole request. Texts that are not UTF-8 are repaired, because the store takes nothing
// else.
#include <cmath>
#include <nlohmann/json.hpp>
#include <protozero/pbf_reader.hpp>

#include "ingest/otlp_record.h"

namespace watchdog::monitor {
namespace {

using protozero::pbf_reader;
using protozero::pbf_wire_type;

constexpr std::size_t body_bytes_max = 128;

/// A field's number and wire type as one.
constexpr std::uint32_t field(std::uint32_t number, pbf_wire_type type) {
  return protozero::tag_and_type(number, type);
}
constexpr auto varint = pbf_wire_type::varint;
constexpr auto fixed64 = pbf_wire_type::fixed64;
constexpr auto bytes = pbf_wire_type::length_delimited;  ///< Texts and messages, too.

/// The text, with a replacement for every byte that is not UTF-8.
std::string repaired(std::string text) {
  using nlohmann::json;
  const auto dumped = json(std::move(text)).dump(-1, ' ', false, json::error_handler_t::replace);
  return json::parse(dumped).get<std::string>();
}

std::string hex(const std::string& id) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const auto letter : id) {
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
    switch (value.tag_and_type()) {
      case field(1, bytes):
        text = repaired(value.get_string());
        found = true;
        break;
      case field(2, varint):
        text = value.get_bool() ? "true" : "false";
        found = true;
        break;
      case field(3, varint):
        text = std::to_string(value.get_int64());
        found = true;
        break;
      case field(4, fixed64):
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
    if (item.tag_and_type() == field(1, bytes)) {
      name = item.get_string();
    } else if (item.tag_and_type() == field(2, bytes)) {
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
    if (message.tag_and_type() == field(tag, bytes)) {
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
    switch (message.tag_and_type()) {
      case field(1, fixed64):
        record.end = static_cast<std::int64_t>(message.get_fixed64());
        break;
      case field(5, bytes):
        if (!read_value(message.get_message(), record.body) || record.body.size() > body_bytes_max)
          record.body.clear();
        break;
      case field(6, bytes):
        read_attribute(message.get_message(), record.attributes);
        break;
      case field(9, bytes):
        record.trace = hex(message.get_bytes());
        break;
      case field(10, bytes):
        record.span = hex(message.get_bytes());
        break;
      case field(11, fixed64):
        observed = static_cast<std::int64_t>(message.get_fixed64());
        break;
      case field(12, bytes):
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
    if (status.tag_and_type() == field(2, bytes)) {
      record.status_text = repaired(status.get_string());
    } else if (status.tag_and_type() == field(3, varint)) {
      record.failed = status.get_enum() == error;
    } else {
      status.skip();
    }
  }
}

OtlpRecord span_of(pbf_reader message) {
  OtlpRecord record{.signal = OtlpSignal::traces};
  while (message.next()) {
    switch (message.tag_and_type()) {
      case field(1, bytes):
        record.trace = hex(message.get_bytes());
        break;
      case field(2, bytes):
        record.span = hex(message.get_bytes());
        break;
      case field(4, bytes):
        record.parent = hex(message.get_bytes());
        break;
      case field(5, bytes):
        record.name = repaired(message.get_string());
        break;
      case field(7, fixed64):
        record.begin = static_cast<std::int64_t>(message.get_fixed64());
        break;
      case field(8, fixed64):
        record.end = static_cast<std::int64_t>(message.get_fixed64());
        break;
      case field(9, bytes):
        read_attribute(message.get_message(), record.attributes);
        break;
      case field(11, bytes):
        read_attributes(message.get_message(), 3, record.attributes);
        break;
      case field(15, bytes):
        read_status(message.get_message(), record);
        break;
      default:
        message.skip();
    }
  }
  return record;
}

/// Reads a point of a sum, or of a histogram.
OtlpRecord point_of(pbf_reader message, bool is_sum) {
  OtlpRecord record{.signal = OtlpSignal::metrics};
  while (message.next()) {
    if (message.tag_and_type() == field(3, fixed64)) {
      record.end = static_cast<std::int64_t>(message.get_fixed64());
    } else if (message.tag_and_type() == field(is_sum ? 7 : 9, bytes)) {
      read_attribute(message.get_message(), record.attributes);
    } else if (message.tag_and_type() == field(is_sum ? 4 : 5, fixed64)) {
      record.total = message.get_double();
    } else if (is_sum && message.tag_and_type() == field(6, fixed64)) {
      record.total = static_cast<double>(message.get_sfixed64());
    } else {
      message.skip();
    }
  }
  if (!std::isfinite(record.total)) record.total = 0;
  return record;
}

/// Reads the points of a sum or of a histogram.
void read_points(pbf_reader data, bool is_sum, const std::string& name,
                 std::vector<OtlpRecord>& records) {
  constexpr std::int32_t delta = 1;
  const auto first = records.size();
  bool is_part = false;
  while (data.next()) {
    if (records.size() > OtlpLimits::records_max) return;  // the request is refused
    if (data.tag_and_type() == field(1, bytes)) {
      records.push_back(point_of(data.get_message(), is_sum));
    } else if (data.tag_and_type() == field(2, varint)) {
      is_part = data.get_enum() == delta;
    } else {
      data.skip();
    }
  }
  for (auto at = first; at < records.size(); ++at) {
    records[at].name = name;
    records[at].is_part = is_part;
  }
}

void read_metric(pbf_reader metric, std::vector<OtlpRecord>& records) {
  auto named = metric;
  std::string name;
  while (named.next()) {
    if (named.tag_and_type() == field(1, bytes)) {
      name = repaired(named.get_string());
    } else {
      named.skip();
    }
  }
  if (!is_read_metric(name)) return;
  while (metric.next()) {
    if (metric.tag_and_type() == field(7, bytes)) {
      read_points(metric.get_message(), true, name, records);
    } else if (metric.tag_and_type() == field(9, bytes)) {
      read_points(metric.get_message(), false, name, records);
    } else {
      metric.skip();
    }
  }
}

void read_item(pbf_reader item, OtlpSignal signal, std::vector<OtlpRecord>& records) {
  if (signal == OtlpSignal::metrics) return read_metric(item, records);
  records.push_back(signal == OtlpSignal::logs ? log_of(item) : span_of(item));
}

/// Returns false where there is no room for all records. The attributes may come behind the
/// records.
bool read_resource(pbf_reader resource, OtlpSignal signal, OtlpLimits& limits,
                   std::vector<OtlpRecord>& records) {
  const auto first = records.size();
  OtlpRecord::Attributes shared;
  while (resource.next()) {
    if (resource.tag_and_type() == field(1, bytes)) {
      read_attributes(resource.get_message(), 1, shared);
    } else if (resource.tag_and_type() == field(2, bytes)) {
      auto scope = resource.get_message();
      while (scope.next()) {
        if (records.size() > OtlpLimits::records_max) return false;
        if (scope.tag_and_type() == field(2, bytes)) {
          read_item(scope.get_message(), signal, records);
        } else {
          scope.skip();
        }
      }
    } else {
      resource.skip();
    }
  }
  return limits.share(records, first, shared);
}

}  // namespace

Result<std::vector<OtlpRecord>> otlp_records_from_protobuf(OtlpSignal signal,
                                                           std::string_view body) {
  std::vector<OtlpRecord> records;
  OtlpLimits limits;
  try {
    pbf_reader request(body.data(), body.size());
    while (request.next()) {
      if (request.tag_and_type() == field(1, bytes)) {
        if (!read_resource(request.get_message(), signal, limits, records))
          return OtlpLimits::exceeded();
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
