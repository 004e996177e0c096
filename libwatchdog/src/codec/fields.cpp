// Reads members of JSON objects with their bounds. A member of a wrong type, or beyond a bound, is
// an error that names the member. A body is bounded before it is parsed, so that a small body
// cannot become a large tree.
#include "codec/fields.h"

#include <algorithm>

#include "codec/json.h"
#include "codec/json_tree.h"

namespace watchdog {
namespace {

/// How much a text may become. A plain value.
struct Extent {
  int depth = 0;           ///< Deepest nesting of brackets outside strings.
  std::size_t values = 1;  ///< At most as many: each follows a bracket or a comma, but the first.
};

/// The parser checks that the brackets match.
Extent extent_of(std::string_view text) {
  Extent extent;
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_string = false;
      }
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      extent.depth = std::max(extent.depth, ++depth);
      ++extent.values;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ',') {
      ++extent.values;
    }
  }
  return extent;
}

Error too_many_values(std::size_t values_max) {
  return {ErrorCode::exhausted, "the JSON has more than " + std::to_string(values_max) + " values"};
}

/// The parser's message without its own error numbers.
std::string reason_of(const nlohmann::json::exception& error) {
  std::string_view what = error.what();
  if (const auto bracket = what.find("] "); bracket != std::string_view::npos) {
    what.remove_prefix(bracket + 2);
  }
  return std::string(what.substr(0, 300));
}

}  // namespace

Result<nlohmann::json> parse_json(std::string_view text, std::size_t values_max) {
  if (auto tree = tree_of(text, values_max)) return std::move(*tree);
  const Extent extent = extent_of(text);
  if (extent.depth > json_depth_max) {
    return Error{ErrorCode::malformed,
                 "the JSON is nested deeper than " + std::to_string(json_depth_max) + " levels"};
  }
  if (extent.values > values_max) {
    return too_many_values(values_max);
  }
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& error) {  // not JSON, or a number out of range
    return Error{ErrorCode::malformed, "this is not JSON: " + reason_of(error)};
  }
}

Result<nlohmann::json> parse_object(std::string_view text) {
  auto parsed = parse_json(text);
  if (parsed && !parsed->is_object()) {
    return Error{ErrorCode::malformed,
                 std::string("a JSON object is needed, this is of type ") + parsed->type_name()};
  }
  return parsed;
}

Result<void> check_json(std::string_view text) {
  if (extent_of(text).values > json_values_max) return too_many_values(json_values_max);
  if (!is_json(text)) return Error{ErrorCode::malformed, "the body is not JSON"};
  return {};
}

bool is_json(std::string_view text) {
  // The parser would skip a byte order mark, which is no JSON (RFC 8259, section 8.1).
  return !text.starts_with("\xEF\xBB\xBF") && extent_of(text).depth <= json_depth_max &&
         nlohmann::json::accept(text);
}

const nlohmann::json* Fields::find(std::string_view name) const {
  const auto found = object_.find(name);
  if (asked_count_ < asked_max) asked_[asked_count_++] = name;
  if (found == object_.end()) return nullptr;
  const auto* const end = read_.begin() + read_count_;
  if (read_count_ < asked_max && std::find(read_.cbegin(), end, &*found) == end)
    read_[read_count_++] = &*found;
  return found->is_null() ? nullptr : &*found;
}

void Fields::text(std::string_view name, std::string& into, std::size_t bytes_max) {
  const auto* value = find(name);
  if (value == nullptr) return;
  if (!value->is_string()) return fail(ErrorCode::malformed, name, "must be a string");
  const auto& text = value->get_ref<const std::string&>();
  if (text.size() > bytes_max) {
    return fail(ErrorCode::invalid, name,
                "has " + std::to_string(text.size()) + " bytes; at most " +
                    std::to_string(bytes_max) + " are allowed");
  }
  into = text;
}

void Fields::flag(std::string_view name, std::optional<bool>& into) {
  const auto* value = find(name);
  if (value == nullptr) return;
  if (!value->is_boolean()) return fail(ErrorCode::malformed, name, "must be true or false");
  into = value->get<bool>();
}

void Fields::integer(std::string_view name, std::optional<std::int64_t>& into) {
  const auto* value = find(name);
  if (value == nullptr) return;
  if (!value->is_number_integer()) return fail(ErrorCode::malformed, name, "must be an integer");
  if (value->is_number_unsigned() && value->get<std::uint64_t>() > INT64_MAX) {
    return fail(ErrorCode::invalid, name, "is above 2^63 - 1");
  }
  into = value->get<std::int64_t>();
}

void Fields::number(std::string_view name, std::optional<double>& into) {
  const auto* value = find(name);
  if (value == nullptr) return;
  if (!value->is_number()) return fail(ErrorCode::malformed, name, "must be a number");
  into = value->get<double>();
}

void Fields::fail(ErrorCode code, std::string_view name, std::string what) {
  if (error_) return;
  error_ = Error{code, std::string(name) + " " + std::move(what), std::string(name)};
}

ProcessFacts read_process(Fields& fields, std::string_view start_field,
                          std::string_view boot_field) {
  ProcessFacts process;
  std::optional<std::int64_t> number;
  fields.integer("pid", number);
  if (number && *number <= 0) fields.fail(ErrorCode::invalid, "pid", "must be above 0");
  process.pid = number.value_or(0);
  number.reset();
  fields.integer(start_field, number);
  process.start_ticks = number.value_or(0);
  fields.text(boot_field, process.boot_id, 256);
  fields.text("host", process.host, 256);
  return process;
}

}  // namespace watchdog
