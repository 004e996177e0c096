// Reads OTLP's JSON. The three requests have the same shape: resources, in them scopes, in them
// records. `shapes` has the names of the members. A member of a wrong type is treated as absent, so
// one strange record does not cost the others. Integers of 64 bits may be numbers or texts. Of
// attributes, only those that the mapping reads are copied.
#include <charconv>
#include <nlohmann/json.hpp>

#include "codec/json.h"
#include "codec/json_bounds.h"
#include "ingest/otlp_record.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

constexpr std::size_t body_bytes_max = 128;

struct Shape {
  const char* resources;
  const char* scopes;
  const char* records;
};
constexpr Shape shapes[] = {{"resourceLogs", "scopeLogs", "logRecords"},
                            {"resourceSpans", "scopeSpans", "spans"},
                            {"resourceMetrics", "scopeMetrics", "metrics"}};

/// The member; null: there is none, or it has another type.
const json* member(const json& object, const char* name, json::value_t type) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found != object.end() && found->type() == type ? &*found : nullptr;
}

/// The elements of a list; none if the member has another type.
const json& list_of(const json& object, const char* name) {
  static const json none = json::array();
  const auto* list = member(object, name, json::value_t::array);
  return list == nullptr ? none : *list;
}

std::string text_of(const json& object, const char* name) {
  const auto* text = member(object, name, json::value_t::string);
  return text == nullptr ? std::string() : text->get<std::string>();
}

std::int64_t integer_in(const json& value) {
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_string()) return 0;
  const auto& text = value.get_ref<const std::string&>();
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc{} ? number : 0;
}

std::int64_t integer_of(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? 0 : integer_in(*found);
}

/// Sets the value's text. False: it is a list, an object, bytes or nothing.
bool read_value(const json& value, std::string& text) {
  if (!value.is_object()) return false;
  for (const auto& [type, what] : value.items()) {
    if (type == "stringValue" && what.is_string()) {
      text = what.get<std::string>();
    } else if (type == "boolValue" && what.is_boolean()) {
      text = what.get<bool>() ? "true" : "false";
    } else if (type == "intValue" && (what.is_string() || what.is_number_integer())) {
      text = std::to_string(integer_in(what));
    } else if (type == "doubleValue" && what.is_number()) {
      text = what.dump();
    } else {
      continue;
    }
    return true;
  }
  return false;
}

void read_attributes(const json& object, OtlpRecord::Attributes& attributes) {
  for (const auto& item : list_of(object, "attributes")) {
    const auto* key = member(item, "key", json::value_t::string);
    const auto* value = member(item, "value", json::value_t::object);
    if (key == nullptr || value == nullptr) continue;
    const auto& name = key->get_ref<const std::string&>();
    if (!is_read_attribute(name)) continue;
    std::string text;
    if (read_value(*value, text)) attributes.insert_or_assign(name, std::move(text));
  }
}

OtlpRecord log_of(const json& item) {
  OtlpRecord record{.name = text_of(item, "eventName")};
  if (const auto* body = member(item, "body", json::value_t::object)) {
    if (!read_value(*body, record.body) || record.body.size() > body_bytes_max) record.body.clear();
  }
  record.end = integer_of(item, "timeUnixNano");
  if (record.end == 0) record.end = integer_of(item, "observedTimeUnixNano");
  return record;
}

OtlpRecord span_of(const json& item) {
  OtlpRecord record{.signal = OtlpSignal::traces,
                    .name = text_of(item, "name"),
                    .parent = text_of(item, "parentSpanId")};
  record.begin = integer_of(item, "startTimeUnixNano");
  record.end = integer_of(item, "endTimeUnixNano");
  if (const auto* status = member(item, "status", json::value_t::object)) {
    constexpr std::int64_t error = 2;
    record.failed = integer_of(*status, "code") == error;
    record.status_text = text_of(*status, "message");
  }
  for (const auto& event : list_of(item, "events")) {
    if (text_of(event, "name") == "exception") read_attributes(event, record.attributes);
  }
  return record;
}

double number_in(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end()) return 0;
  return found->is_number() ? found->get<double>() : static_cast<double>(integer_in(*found));
}

/// Reads the points of a metric. Gauges and summaries have no totals.
void read_points(const json& item, std::vector<OtlpRecord>& records) {
  constexpr std::int64_t delta = 1;
  const auto name = text_of(item, "name");
  if (!is_read_metric(name)) return;
  for (const auto* kind : {"sum", "histogram"}) {
    const auto* data = member(item, kind, json::value_t::object);
    if (data == nullptr) continue;
    for (const auto& point : list_of(*data, "dataPoints")) {
      if (!point.is_object()) continue;
      auto& record = records.emplace_back();
      record.signal = OtlpSignal::metrics;
      record.name = name;
      record.end = integer_of(point, "timeUnixNano");
      record.is_part = integer_of(*data, "aggregationTemporality") == delta;
      for (const auto* number : {"asDouble", "asInt", "sum"})
        record.total += number_in(point, number);
      read_attributes(point, record.attributes);
    }
  }
}

/// Reads a log record, a span or a metric.
void read_item(OtlpSignal signal, const json& item, std::vector<OtlpRecord>& records) {
  if (!item.is_object()) return;
  if (signal == OtlpSignal::metrics) return read_points(item, records);
  auto record = signal == OtlpSignal::logs ? log_of(item) : span_of(item);
  record.trace = text_of(item, "traceId");
  record.span = text_of(item, "spanId");
  read_attributes(item, record.attributes);
  records.push_back(std::move(record));
}

}  // namespace

Result<std::vector<OtlpRecord>> otlp_records_from_json(OtlpSignal signal, std::string_view body) {
  if (auto checked = check_json(body); !checked) return checked.error();
  const auto parsed = json::parse(body, nullptr, false);
  if (!parsed.is_object()) return Error{ErrorCode::malformed, "the body must be a JSON object"};
  const auto& shape = shapes[static_cast<std::size_t>(signal)];
  const auto resources = parsed.find(shape.resources);
  if (resources != parsed.end() && !resources->is_array() && !resources->is_null()) {
    return Error{ErrorCode::malformed, std::string(shape.resources) + " must be an array",
                 shape.resources};
  }
  std::vector<OtlpRecord> records;
  OtlpLimits limits;
  for (const auto& resource : list_of(parsed, shape.resources)) {
    OtlpRecord::Attributes shared;
    if (const auto* about = member(resource, "resource", json::value_t::object))
      read_attributes(*about, shared);
    const auto first = records.size();
    for (const auto& scope : list_of(resource, shape.scopes)) {
      for (const auto& item : list_of(scope, shape.records)) {
        if (records.size() > OtlpLimits::records_max) return OtlpLimits::exceeded();
        read_item(signal, item, records);
      }
    }
    if (!limits.share(records, first, shared)) return OtlpLimits::exceeded();
  }
  return records;
}

Result<std::vector<OtlpRecord>> otlp_records(OtlpSignal signal, OtlpEncoding encoding,
                                             std::string_view body) {
  return encoding == OtlpEncoding::json ? otlp_records_from_json(signal, body)
                                        : otlp_records_from_protobuf(signal, body);
}

}  // namespace watchdog::monitor
