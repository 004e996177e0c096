/// \file
/// Reads the records of an OTLP/HTTP request.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "watchdog/result.h"

namespace watchdog::monitor {

/// The kinds of telemetry that OTLP carries, by the last part of their path.
enum class OtlpSignal : std::uint8_t { logs, traces, metrics };

/// The encodings of a request. The answer has the same one.
enum class OtlpEncoding : std::uint8_t { json, protobuf };

/// One log record, one span or one point of a metric. A plain value.
struct OtlpRecord {
  using Attributes = std::map<std::string, std::string, std::less<>>;

  OtlpSignal signal = OtlpSignal::logs;
  std::string name;         ///< A span's or metric's name, or the record's `eventName`.
  std::string body;         ///< A log's body, if it is a text of at most 128 bytes.
  std::string trace;        ///< Hex; empty: none.
  std::string span;         ///< Likewise.
  std::string parent;       ///< Of a span: the span above it. Empty: it is the trace's first.
  std::int64_t begin = 0;   ///< Nanoseconds since 1970; 0: not known. Only spans have it.
  std::int64_t end = 0;     ///< Likewise. A log record's own time.
  bool failed = false;      ///< A span's status is an error.
  std::string status_text;  ///< The message of that status.
  double total = 0;         ///< Of a metric: its number, or the sum of its distribution.
  bool is_part = false;     ///< Of a metric: `total` counts since the point before, not from 0.
  /// The values as texts. Those of the resource count where the record has none of that name. Only
  /// names for which `is_read_attribute` is true are here, so no personal data is.
  Attributes attributes;
};

/// Bounds the memory that the records of one request take. A few bytes make a record, and each
/// record gets a copy of its resource's attributes. Exporters send some hundred records at once.
class OtlpLimits {
 public:
  static constexpr std::size_t records_max = 20'000;
  static constexpr std::size_t bytes_max = 64UL * 1024 * 1024;

  /// Adds the attributes to the records from `first` on, and counts them. False: there is no room
  /// for all of them.
  [[nodiscard]] bool share(std::vector<OtlpRecord>& records, std::size_t first,
                           const OtlpRecord::Attributes& shared);
  [[nodiscard]] static Error exceeded();

 private:
  std::size_t bytes_ = 0;
};

/// Returns true for the attributes that the mapping reads. All others are dropped while a request
/// is read, among them `user.*`, `enduser.*` and ids of accounts and installations. Pure.
[[nodiscard]] bool is_read_attribute(std::string_view name);

/// Returns true for the metrics that the mapping reads. All others are dropped likewise. Pure.
[[nodiscard]] bool is_read_metric(std::string_view name);

/// Returns the records of a request in their order, of metrics one for each point. Members and
/// fields that are not known are ignored, and so is a record of a wrong type. Errors: `malformed`:
/// the body cannot be decoded; `exhausted`: it needs too much memory. Pure.
[[nodiscard]] Result<std::vector<OtlpRecord>> otlp_records(OtlpSignal signal, OtlpEncoding encoding,
                                                           std::string_view body);

/// As `otlp_records`, of one encoding.
[[nodiscard]] Result<std::vector<OtlpRecord>> otlp_records_from_json(OtlpSignal signal,
                                                                     std::string_view body);
[[nodiscard]] Result<std::vector<OtlpRecord>> otlp_records_from_protobuf(OtlpSignal signal,
                                                                         std::string_view body);

}  // namespace watchdog::monitor

namespace watchdog {
template <>
struct Names<monitor::OtlpSignal> {
  static constexpr std::string_view all[] = {"logs", "traces", "metrics"};
};
}  // namespace watchdog
