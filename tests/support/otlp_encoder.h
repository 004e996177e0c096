/// \file
/// Encodes OTLP's JSON as protobuf, as an exporter would.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <protozero/pbf_writer.hpp>
#include <string>

namespace watchdog::test {

/// Returns the request in protobuf. `request` has `resourceLogs`, `resourceSpans` or
/// `resourceMetrics`. Only members that the fixtures have are encoded.
class OtlpEncoder {
 public:
  static std::string encoded(const nlohmann::json& request) {
    if (request.contains("resourceMetrics")) return metrics(request);
    const bool is_logs = request.contains("resourceLogs");
    return list(request, is_logs ? "resourceLogs" : "resourceSpans", 1, [&](const json& resource) {
      auto text = resource.contains("resource") ? field(1, attributes(resource["resource"], 1))
                                                : std::string();
      return text + list(resource, is_logs ? "scopeLogs" : "scopeSpans", 2, [&](const json& scope) {
               return list(scope, is_logs ? "logRecords" : "spans", 2, is_logs ? log_of : span_of);
             });
    });
  }

 private:
  using json = nlohmann::json;

  static std::string metrics(const nlohmann::json& request) {
    return list(request, "resourceMetrics", 1, [](const json& resource) {
      auto text = resource.contains("resource") ? field(1, attributes(resource["resource"], 1))
                                                : std::string();
      return text + list(resource, "scopeMetrics", 2,
                         [](const json& scope) { return list(scope, "metrics", 2, metric_of); });
    });
  }
  static std::string metric_of(const json& item) {
    std::string text;
    protozero::pbf_writer(text).add_string(1, item["name"].get<std::string>());
    for (const auto& [kind, tag] : {std::pair{"sum", 7U}, {"histogram", 9U}}) {
      if (!item.contains(kind)) continue;
      const auto& data = item[kind];
      auto points = list(data, "dataPoints", 1, [&, tag = tag](const json& point) {
        std::string inner;
        {
          protozero::pbf_writer out(inner);
          add_time(out, 3, point, "timeUnixNano");
          if (point.contains("asInt")) out.add_sfixed64(6, integer(point["asInt"]));
          if (point.contains("asDouble")) out.add_double(4, point["asDouble"].get<double>());
          if (point.contains("count")) out.add_fixed64(4, 1);
          if (point.contains("sum")) out.add_double(5, point["sum"].get<double>());
        }
        return inner + attributes(point, tag);
      });
      protozero::pbf_writer(points).add_enum(2, data.value("aggregationTemporality", 0));
      text += field(tag, points);
    }
    return text;
  }
  static std::string field(std::uint32_t tag, const std::string& message) {
    std::string text;
    protozero::pbf_writer(text).add_message(tag, message);
    return text;
  }
  template <class Encode>
  static std::string list(const json& object, const char* name, std::uint32_t tag, Encode encode) {
    std::string text;
    if (object.contains(name))
      for (const auto& item : object[name]) text += field(tag, encode(item));
    return text;
  }
  static std::int64_t integer(const json& value) {
    return value.is_string() ? std::stoll(value.get<std::string>()) : value.get<std::int64_t>();
  }
  static std::string value_of(const json& value) {
    std::string text;
    protozero::pbf_writer out(text);
    if (value.contains("stringValue")) out.add_string(1, value["stringValue"].get<std::string>());
    if (value.contains("boolValue")) out.add_bool(2, value["boolValue"].get<bool>());
    if (value.contains("intValue")) out.add_int64(3, integer(value["intValue"]));
    if (value.contains("doubleValue")) out.add_double(4, value["doubleValue"].get<double>());
    if (value.contains("arrayValue")) out.add_message(5, std::string());
    return text;
  }
  static std::string attributes(const json& object, std::uint32_t tag) {
    return list(object, "attributes", tag, [](const json& item) {
      std::string text;
      protozero::pbf_writer out(text);
      out.add_string(1, item["key"].get<std::string>());
      out.add_message(2, value_of(item["value"]));
      return text;
    });
  }
  static void add_id(protozero::pbf_writer& out, std::uint32_t tag, const json& item,
                     const char* name) {
    const auto hex = item.value(name, std::string());
    std::string bytes;
    for (std::size_t at = 0; at + 1 < hex.size(); at += 2)
      bytes += static_cast<char>(std::stoi(hex.substr(at, 2), nullptr, 16));
    out.add_bytes(tag, bytes);
  }
  static void add_time(protozero::pbf_writer& out, std::uint32_t tag, const json& item,
                       const char* name) {
    if (item.contains(name)) out.add_fixed64(tag, static_cast<std::uint64_t>(integer(item[name])));
  }
  static std::string log_of(const json& item) {
    std::string text;
    {
      protozero::pbf_writer out(text);
      add_time(out, 1, item, "timeUnixNano");
      if (item.contains("body") && item["body"].is_object())
        out.add_message(5, value_of(item["body"]));
      add_id(out, 9, item, "traceId");
      add_id(out, 10, item, "spanId");
      add_time(out, 11, item, "observedTimeUnixNano");
      out.add_string(12, item.value("eventName", std::string()));
    }
    return text + attributes(item, 6);
  }
  static std::string span_of(const json& item) {
    std::string text;
    {
      protozero::pbf_writer out(text);
      add_id(out, 1, item, "traceId");
      add_id(out, 2, item, "spanId");
      add_id(out, 4, item, "parentSpanId");
      out.add_string(5, item["name"].get<std::string>());
      add_time(out, 7, item, "startTimeUnixNano");
      add_time(out, 8, item, "endTimeUnixNano");
      std::string status;
      protozero::pbf_writer inner(status);
      inner.add_string(2, item["status"].value("message", std::string()));
      inner.add_enum(3, item["status"].value("code", 0));
      out.add_message(15, status);
    }
    text += list(item, "events", 11, [](const json& event) { return attributes(event, 3); });
    return text + attributes(item, 9);
  }
};

}  // namespace watchdog::test
