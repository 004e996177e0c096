// Reads OTLP's JSON while it is parsed, without a tree of it. The three requests have the same
// shape: resources, in them scopes, in them records. `shapes` has the names of the members. The
// reader knows its place in the document: `child_of` says what an object or a list in a place is.
// Everything else is skipped. A member of a wrong type is treated as absent, so one strange record
// does not cost the others. Integers of 64 bits may be numbers or texts. Of attributes, only those
// that the mapping reads are copied. Members may come in any order, so a resource's attributes are
// shared when the resource ends.
#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "codec/json.h"
#include "codec/json_bounds.h"
#include "ingest/otlp_record.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;

constexpr std::size_t body_bytes_max = 128;

struct Shape {
  std::string_view resources;
  std::string_view scopes;
  std::string_view records;
};
constexpr Shape shapes[] = {{"resourceLogs", "scopeLogs", "logRecords"},
                            {"resourceSpans", "scopeSpans", "spans"},
                            {"resourceMetrics", "scopeMetrics", "metrics"}};

std::int64_t integer_in(std::string_view text) {
  std::int64_t number = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc{} ? number : 0;
}

/// An object or a list of the document, by its meaning.
enum class Place : std::uint8_t {
  skipped,
  root,
  resources,
  resource_item,
  resource,
  scopes,
  scope,
  records,
  record,
  attributes,
  attribute,
  value,
  body,
  status,
  events,
  event,
  data,
  points,
  point
};

/// The records of a request while it is read. Members are named by their place and name.
class OtlpJsonRecords {
 public:
  explicit OtlpJsonRecords(OtlpSignal signal) : signal_(signal) {}

  /// An object or a list begins in another one. False: there is no room for it.
  [[nodiscard]] bool begin(Place place, Place above);
  /// It ends. False: likewise.
  [[nodiscard]] bool end(Place place);
  void feed_text(Place place, std::string_view name, const std::string& text);
  void take_integer(Place place, std::string_view name, std::int64_t number);
  void take_double(Place place, std::string_view name, double number);
  /// The value of the attribute or the body. The first one counts.
  void set_value(std::string_view text);
  [[nodiscard]] std::vector<OtlpRecord> take() { return std::move(records_); }

 private:
  void end_attribute();
  void end_event();
  void end_record();
  void take_text_of_record(std::string_view name, const std::string& text);

  const OtlpSignal signal_;
  OtlpLimits room_;
  std::vector<OtlpRecord> records_;
  std::size_t first_ = 0;  ///< Of the resource,
  OtlpRecord::Attributes shared_;
  OtlpRecord record_;
  std::int64_t observed_ = 0;
  OtlpRecord::Attributes exceptions_;  ///< Of the span's events.
  std::vector<OtlpRecord> points_;     ///< Of the metric.
  std::size_t first_point_ = 0;        ///< Of its sum or histogram.
  bool is_part_ = false;
  OtlpRecord::Attributes of_event_;
  std::string event_;  ///< Its name.
  OtlpRecord::Attributes* attributes_ = nullptr;
  std::string name_;  ///< Of the attribute,
  std::string text_;  ///< and its value, or the one of the body.
  bool has_name_ = false;
  bool has_value_ = false;
};

bool OtlpJsonRecords::begin(Place place, Place above) {
  switch (place) {
    case Place::attributes:
      attributes_ = above == Place::resource ? &shared_
                    : above == Place::record ? &record_.attributes
                    : above == Place::event  ? &of_event_
                                             : &points_.back().attributes;
      return true;
    case Place::resource_item:
      shared_.clear();
      first_ = records_.size();
      return true;
    case Place::record:
      if (records_.size() > OtlpLimits::records_max) return false;
      record_ = {};
      record_.signal = signal_;
      observed_ = 0;
      exceptions_.clear();
      points_.clear();
      return true;
    case Place::attribute:
      has_name_ = has_value_ = false;
      return true;
    case Place::value:
    case Place::body:
      has_value_ = false;
      return true;
    case Place::event:
      event_.clear();
      of_event_.clear();
      return true;
    case Place::data:
      first_point_ = points_.size();
      is_part_ = false;
      return true;
    case Place::point:
      if (points_.size() > OtlpLimits::records_max) return false;
      points_.emplace_back().signal = signal_;
      return true;
    default:
      return true;
  }
}

bool OtlpJsonRecords::end(Place place) {
  switch (place) {
    case Place::attribute:
      end_attribute();
      break;
    case Place::body:
      if (has_value_ && text_.size() <= body_bytes_max) record_.body = text_;
      break;
    case Place::event:
      end_event();
      break;
    case Place::data:
      for (auto at = first_point_; at < points_.size(); ++at) points_[at].is_part = is_part_;
      break;
    case Place::record:
      end_record();
      break;
    case Place::resource_item:
      return room_.share(records_, first_, shared_);
    default:
      break;
  }
  return true;
}

void OtlpJsonRecords::end_attribute() {
  if (has_name_ && has_value_ && is_read_attribute(name_))
    attributes_->insert_or_assign(name_, text_);
}

void OtlpJsonRecords::end_event() {
  if (event_ != "exception") return;
  for (auto& [name, text] : of_event_) exceptions_.insert_or_assign(name, std::move(text));
}

void OtlpJsonRecords::end_record() {
  if (signal_ == OtlpSignal::metrics) {
    if (!is_read_metric(record_.name)) return;
    for (auto& point : points_) {
      point.name = record_.name;
      records_.push_back(std::move(point));
    }
    points_.clear();
    return;
  }
  if (signal_ == OtlpSignal::logs && record_.end == 0) record_.end = observed_;
  record_.attributes.merge(exceptions_);
  records_.push_back(std::move(record_));
}

void OtlpJsonRecords::set_value(std::string_view text) {
  if (std::exchange(has_value_, true)) return;
  text_ = text;
}

void OtlpJsonRecords::feed_text(Place place, std::string_view name, const std::string& text) {
  switch (place) {
    case Place::attribute:
      if (name == "key") {
        name_ = text;
        has_name_ = true;
      }
      break;
    case Place::value:
    case Place::body:
      if (name == "stringValue") set_value(text);
      if (name == "intValue") set_value(std::to_string(integer_in(text)));
      break;
    case Place::record:
      take_text_of_record(name, text);
      break;
    case Place::event:
      if (name == "name") event_ = text;
      break;
    case Place::status:
      if (name == "message") record_.status_text = text;
      if (name == "code") take_integer(place, name, integer_in(text));
      break;
    case Place::point:
      take_integer(place, name, integer_in(text));
      take_double(place, name, static_cast<double>(integer_in(text)));
      break;
    case Place::data:
      take_integer(place, name, integer_in(text));
      break;
    default:
      break;
  }
}

void OtlpJsonRecords::take_text_of_record(std::string_view name, const std::string& text) {
  if (name == "traceId") record_.trace = text;
  if (name == "spanId") record_.span = text;
  if (name == "parentSpanId" && signal_ == OtlpSignal::traces) record_.parent = text;
  if (name == (signal_ == OtlpSignal::logs ? "eventName" : "name")) record_.name = text;
  if (name.ends_with("UnixNano")) take_integer(Place::record, name, integer_in(text));
}

void OtlpJsonRecords::take_integer(Place place, std::string_view name, std::int64_t number) {
  constexpr std::int64_t error_code = 2;
  constexpr std::int64_t delta = 1;
  switch (place) {
    case Place::value:
    case Place::body:
      if (name == "intValue" || name == "doubleValue") set_value(std::to_string(number));
      break;
    case Place::record:
      if (signal_ == OtlpSignal::traces) {
        if (name == "startTimeUnixNano") record_.begin = number;
        if (name == "endTimeUnixNano") record_.end = number;
      } else if (signal_ == OtlpSignal::logs) {
        if (name == "timeUnixNano") record_.end = number;
        if (name == "observedTimeUnixNano") observed_ = number;
      }
      break;
    case Place::status:
      if (name == "code") record_.failed = number == error_code;
      break;
    case Place::data:
      if (name == "aggregationTemporality") is_part_ = number == delta;
      break;
    case Place::point:
      if (name == "timeUnixNano") points_.back().end = number;
      break;
    default:
      break;
  }
}

void OtlpJsonRecords::take_double(Place place, std::string_view name, double number) {
  if (place != Place::point) return;
  if (name == "asDouble" || name == "asInt" || name == "sum") points_.back().total += number;
}

Place child_of_record(OtlpSignal signal, std::string_view name, bool is_list) {
  if (signal == OtlpSignal::metrics)
    return !is_list && (name == "sum" || name == "histogram") ? Place::data : Place::skipped;
  if (is_list && name == "attributes") return Place::attributes;
  if (signal == OtlpSignal::logs) return !is_list && name == "body" ? Place::body : Place::skipped;
  if (is_list) return name == "events" ? Place::events : Place::skipped;
  return name == "status" ? Place::status : Place::skipped;
}

/// Returns the place of an object or a list that is the member `name` of its parent, or an element.
Place child_of(OtlpSignal signal, Place parent, std::string_view name, bool is_list) {
  const auto& shape = shapes[static_cast<std::size_t>(signal)];
  const auto list_if = [&](std::string_view wanted, Place place) {
    return is_list && name == wanted ? place : Place::skipped;
  };
  const auto object = [&](Place place) { return is_list ? Place::skipped : place; };
  switch (parent) {
    case Place::root:
      return list_if(shape.resources, Place::resources);
    case Place::resources:
      return object(Place::resource_item);
    case Place::resource_item:
      if (name == "resource") return object(Place::resource);
      return list_if(shape.scopes, Place::scopes);
    case Place::scopes:
      return object(Place::scope);
    case Place::scope:
      return list_if(shape.records, Place::records);
    case Place::records:
      return object(Place::record);
    case Place::record:
      return child_of_record(signal, name, is_list);
    case Place::resource:
    case Place::event:
    case Place::point:
      return list_if("attributes", Place::attributes);
    case Place::attributes:
      return object(Place::attribute);
    case Place::attribute:
      return name == "value" ? object(Place::value) : Place::skipped;
    case Place::events:
      return object(Place::event);
    case Place::data:
      return list_if("dataPoints", Place::points);
    case Place::points:
      return object(Place::point);
    case Place::value:
    case Place::body:
    case Place::status:
    case Place::skipped:
      break;
  }
  return Place::skipped;
}

/// Takes the events of the parser. Its functions return false to stop it.
class OtlpJsonReader final : public nlohmann::json_sax<json> {
 public:
  explicit OtlpJsonReader(OtlpSignal signal) : signal_(signal), records_(signal) {}

  [[nodiscard]] Result<std::vector<OtlpRecord>> read(std::string_view body);

  bool null() override { return depth_ == 0 ? not_object() : count(); }
  bool boolean(bool given) override {
    if (is_wrong()) return not_object();
    if (is_value("boolValue")) records_.set_value(given ? "true" : "false");
    return count();
  }
  bool number_integer(std::int64_t given) override {
    if (is_wrong()) return not_object();
    records_.take_integer(place(), member_name(), given);
    records_.take_double(place(), member_name(), static_cast<double>(given));
    return count();
  }
  bool number_unsigned(std::uint64_t given) override {
    if (is_wrong()) return not_object();
    if (is_value("doubleValue")) records_.set_value(std::to_string(given));
    records_.take_integer(place(), member_name(), static_cast<std::int64_t>(given));
    records_.take_double(place(), member_name(), static_cast<double>(given));
    return count();
  }
  bool number_float(double given, const std::string& /*text*/) override {
    if (is_wrong()) return not_object();
    if (is_value("doubleValue")) records_.set_value(json(given).dump());
    records_.take_double(place(), member_name(), given);
    return count();
  }
  bool string(std::string& text) override {
    if (is_wrong()) return not_object();
    records_.feed_text(place(), member_name(), text);
    return count();
  }
  bool binary(json::binary_t& /*bytes*/) override { return count(); }
  bool start_object(std::size_t /*elements*/) override { return enter(false); }
  bool key(std::string& name) override {
    frames_[depth_ - 1].key = name;
    return true;
  }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t /*elements*/) override { return enter(true); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t /*position*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return fail({ErrorCode::malformed, "the body is not JSON"});
  }

 private:
  struct Frame {
    Place place = Place::skipped;
    std::string key;  ///< Of an object: the member that is read.
  };

  [[nodiscard]] Place place() const { return frames_[depth_ - 1].place; }
  [[nodiscard]] const std::string& member_name() const { return frames_[depth_ - 1].key; }
  [[nodiscard]] bool is_value(std::string_view name) const {
    return (place() == Place::value || place() == Place::body) && member_name() == name;
  }
  /// The body is not an object, or its resources are not a list.
  [[nodiscard]] bool is_wrong() const {
    return depth_ == 0 || (place() == Place::root && member_name() == resources());
  }
  [[nodiscard]] std::string_view resources() const {
    return shapes[static_cast<std::size_t>(signal_)].resources;
  }
  bool fail(Error error) {
    if (!error_) error_ = std::move(error);
    return false;
  }
  bool not_object() {
    if (depth_ == 0) return fail({ErrorCode::malformed, "the body must be a JSON object"});
    return fail({ErrorCode::malformed, std::string(resources()) + " must be an array",
                 std::string(resources())});
  }
  bool count() {
    if (++values_ <= json_values_max) return true;
    return fail({ErrorCode::exhausted,
                 "the JSON has more than " + std::to_string(json_values_max) + " values"});
  }
  bool enter(bool is_list);
  bool leave() { return records_.end(frames_[--depth_].place) || fail(OtlpLimits::exceeded()); }

  const OtlpSignal signal_;
  std::vector<Frame> frames_;  ///< Kept for the next object of that depth; see `depth_`.
  std::size_t depth_ = 0;
  std::size_t values_ = 0;
  std::optional<Error> error_;
  OtlpJsonRecords records_;
};

bool OtlpJsonReader::enter(bool is_list) {
  auto child = Place::root;
  auto above = Place::skipped;
  if (depth_ > 0) {
    above = place();
    child = child_of(signal_, above, member_name(), is_list);
    if (is_wrong() && child == Place::skipped) return not_object();
  } else if (is_list) {
    return not_object();
  }
  if (depth_ == static_cast<std::size_t>(json_depth_max))
    return fail({ErrorCode::malformed,
                 "the JSON is nested deeper than " + std::to_string(json_depth_max) + " levels"});
  if (depth_ == frames_.size()) frames_.emplace_back();
  frames_[depth_].place = child;
  frames_[depth_].key.clear();
  ++depth_;
  if (!records_.begin(child, above)) return fail(OtlpLimits::exceeded());
  return count();
}

Result<std::vector<OtlpRecord>> OtlpJsonReader::read(std::string_view body) {
  // The parser would skip a byte order mark, which is no JSON (RFC 8259, section 8.1).
  if (body.starts_with("\xEF\xBB\xBF")) return Error{ErrorCode::malformed, "the body is not JSON"};
  const bool is_read = json::sax_parse(body, this);
  if (error_) return std::move(*error_);
  if (!is_read) return Error{ErrorCode::malformed, "the body is not JSON"};
  return records_.take();
}

}  // namespace

Result<std::vector<OtlpRecord>> otlp_records_from_json(OtlpSignal signal, std::string_view body) {
  return OtlpJsonReader(signal).read(body);
}

Result<std::vector<OtlpRecord>> otlp_records(OtlpSignal signal, OtlpEncoding encoding,
                                             std::string_view body) {
  return encoding == OtlpEncoding::json ? otlp_records_from_json(signal, body)
                                        : otlp_records_from_protobuf(signal, body);
}

}  // namespace watchdog::monitor
