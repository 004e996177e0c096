// A Field is a pointer into the settings, and its type decides everything. `set`, `shown` and
// `allowed_text` are visitors with one branch for each kind of type. The end of the key gives the
// unit: `_seconds` and `_percent` are converted in both directions. Thresholds go through the
// policy's own JSON, which has their types and ranges. A refused value leaves the field as it was.
#include "config/field.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <type_traits>

#include "codec/json.h"
#include "config/patterns.h"
#include "privacy/content.h"
#include "text/nearest.h"

namespace watchdog {
namespace {

using nlohmann::json;

constexpr std::size_t text_bytes_max = 4'096;
constexpr std::size_t list_values_max = 64;

Error refusal(const std::string& what) {
  return {ErrorCode::invalid, what};
}

template <class T>
constexpr bool is_optional = false;
template <class T>
constexpr bool is_optional<std::optional<T>> = true;

template <class T>
constexpr bool is_list = false;
template <class T>
constexpr bool is_list<std::vector<T>> = true;

template <class T>
concept Choice = requires {
  Names<T>::all;
};
template <class T>
concept Text = std::is_same_v<T, std::string> || std::is_same_v<T, std::filesystem::path>;

/// How many milliseconds, or which part of 1, one of the file's units is.
std::int64_t unit_of(std::string_view key) {
  return key.ends_with("_seconds") ? 1'000 : 1;
}
double divisor_of(std::string_view key) {
  return key.ends_with("_percent") ? 100 : 1;
}

std::string words_of(const auto& names) {
  std::string text;
  for (const auto name : names)
    text += (text.empty() ? "one of \"" : ", \"") + std::string(name) + '"';
  return text;
}

template <class T>
std::string wanted(const Allowed& allowed) {
  const auto range = [&] {
    return " from " + literal(allowed.min) + " to " + literal(allowed.max);
  };
  if constexpr (is_optional<T>) {
    return wanted<typename T::value_type>(allowed);
  } else if constexpr (is_list<T>) {
    return "a list of at most " + std::to_string(list_values_max) + ", each " +
           wanted<typename T::value_type>(allowed);
  } else if constexpr (std::is_same_v<T, bool>) {
    return "true or false";
  } else if constexpr (Choice<T>) {
    return words_of(Names<T>::all);
  } else if constexpr (Text<T>) {
    if (allowed.shape == Shape::pattern) return "a regular expression";
    return allowed.shape == Shape::url ? "an http:// or https:// URL" : "a text";
  } else if constexpr (std::is_same_v<T, double>) {
    return "a number" + range();
  } else {
    return "an integer" + range();
  }
}

/// A value in an error message: a user's text may be long.
std::string brief(const json& value) {
  const auto text = literal(value);
  const std::string begin(first_characters(text, 80));
  return begin.size() == text.size() ? text : begin + "…";
}

/// Why the text must not be used; empty: it may.
std::string fault_of(const std::string& text, const Allowed& allowed) {
  if (text.size() > text_bytes_max)
    return "has " + std::to_string(text.size()) + " bytes; at most " +
           std::to_string(text_bytes_max) + " are allowed";
  if (std::ranges::any_of(text, [](unsigned char c) { return c < 0x20 || c == 0x7F; }))
    return "holds a control character";
  if (allowed.shape == Shape::pattern) {
    const auto fault = pattern_fault(text);
    return fault.empty() ? fault : "holds " + brief(text) + ", which " + fault;
  }
  if (allowed.shape == Shape::text || text.empty()) return {};
  const auto scheme = text.starts_with("http://") ? 7U : text.starts_with("https://") ? 8U : 0U;
  const auto host = text.substr(scheme, text.find_first_of("/?#", scheme) - scheme);
  if (host.find('@') != std::string::npos)
    return "names a user or password before the host; put the key into $OPENAI_API_KEY or "
           "model.api_key_file";
  if (scheme == 0 || host.empty() || host.front() == ':' || text.find(' ') != std::string::npos)
    return "is " + brief(text) + "; it must be an http:// or https:// URL";
  return {};
}

bool is_utf8(const std::string& text) {
  const auto dumped = [&](json::error_handler_t handler) {
    return json(text).dump(-1, ' ', false, handler);
  };
  return dumped(json::error_handler_t::ignore) == dumped(json::error_handler_t::replace);
}

struct Setter {
  const json& given;
  std::string_view key;
  const Allowed& allowed;

  template <class T>
  [[nodiscard]] Error wrong() const {
    if (allowed.secret) return refusal("must be " + wanted<T>(allowed));
    if constexpr (Choice<T>) {
      const auto near = given.is_string() ? nearest(given.get<std::string>(), all_names<T>()) : "";
      if (!near.empty())
        return refusal("is " + brief(given) + "; did you mean \"" + near + "\"? It must be " +
                       wanted<T>(allowed));
    }
    return refusal("is " + brief(given) + "; it must be " + wanted<T>(allowed));
  }
  [[nodiscard]] bool in_range(double number) const {
    return number >= allowed.min && number <= allowed.max;  // false for NaN
  }

  template <class T>
  Result<void> operator()(T* into) const {
    if constexpr (is_optional<T>) {
      typename T::value_type value{};
      if (auto done = (*this)(&value); !done) return done;
      *into = value;
    } else if constexpr (is_list<T>) {
      if (!given.is_array() || given.size() > list_values_max) return wrong<T>();
      T values;
      for (const auto& item : given) {
        if (auto done = Setter{item, key, allowed}(&values.emplace_back()); !done) return done;
      }
      *into = std::move(values);
    } else if constexpr (std::is_same_v<T, bool>) {
      if (!given.is_boolean()) return wrong<T>();
      *into = given.get<bool>();
    } else if constexpr (Choice<T>) {
      const auto value = given.is_string() ? named<T>(given.get<std::string>()) : std::nullopt;
      if (!value) return wrong<T>();
      *into = *value;
    } else if constexpr (Text<T>) {
      if (!given.is_string()) return wrong<T>();
      const auto& text = given.get_ref<const std::string&>();
      if (const auto fault = fault_of(text, allowed); !fault.empty()) return refusal(fault);
      if (std::is_same_v<T, std::string> && !is_utf8(text)) return refusal("is no UTF-8");
      *into = text;
    } else if constexpr (std::is_same_v<T, double>) {
      if (!given.is_number() || !in_range(given.get<double>())) return wrong<T>();
      *into = given.get<double>() / divisor_of(key);
    } else {
      if (!given.is_number_integer() || !in_range(given.get<double>())) return wrong<T>();
      const auto number = given.get<std::int64_t>();
      if constexpr (std::is_same_v<T, Millis>) {
        *into = Millis{number * unit_of(key)};
      } else {
        *into = static_cast<T>(number);
      }
    }
    return {};
  }

  Result<void> operator()(const SecondsField& field) const {
    std::int64_t seconds = 0;
    if (auto done = (*this)(&seconds); !done) return done;
    *field.time = std::chrono::seconds(seconds);
    return {};
  }

  /// The policy's own JSON reader has the types and ranges.
  Result<void> operator()(const PolicyField& field) const {
    if (given.is_number_float() && !std::isfinite(given.get<double>()))
      return refusal("is " + brief(given) + "; it must be a finite number");
    if (given.is_null()) return refusal("is a date or a time, which no threshold is");
    auto whole = json::parse(to_json(*field.patch));
    auto* place = &whole;
    for (const auto& name : field.path) place = &(*place)[name];
    *place = given;
    auto patch = policy_patch_from_json(whole.dump(-1, ' ', false, json::error_handler_t::replace));
    if (!patch) return patch.error();
    *field.patch = std::move(*patch);
    return {};
  }
};

/// Code can set a part of a unit. That is shown as it is, so that it is refused and not cut.
json in_units(Millis time, std::int64_t unit) {
  if (time.count() % unit == 0) return time.count() / unit;
  return static_cast<double>(time.count()) / static_cast<double>(unit);
}

struct Shower {
  std::string_view key;

  template <class T>
  json operator()(T* field) const {
    if constexpr (is_list<T>) {
      auto values = json::array();
      for (auto& value : *field) values.push_back((*this)(&value));
      return values;
    } else if constexpr (is_optional<T>) {
      return *field ? (*this)(&**field) : json();
    } else if constexpr (Choice<T>) {
      return std::string(name_of(*field));
    } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
      return field->string();
    } else if constexpr (std::is_same_v<T, Millis>) {
      return in_units(*field, unit_of(key));
    } else if constexpr (std::is_same_v<T, double>) {
      const double number = *field * divisor_of(key);
      const double rounded = std::round(number * 1e9) / 1e9;  // 0.29 is 29 percent, not 28.99…
      return std::isfinite(rounded) ? rounded : number;
    } else {
      return *field;
    }
  }

  json operator()(const SecondsField& field) const { return in_units(*field.time, 1'000); }

  json operator()(const PolicyField& field) const {
    auto whole = json::parse(to_json(Policy{}));
    whole.merge_patch(json::parse(to_json(*field.patch)));
    const auto* place = &whole;
    for (const auto& name : field.path) {
      const auto found = place->find(name);
      if (found == place->end()) return {};
      place = &*found;
    }
    return *place;
  }
};

}  // namespace

Result<void> set(const Field& field, const json& given, std::string_view key,
                 const Allowed& allowed) {
  return std::visit(Setter{given, key, allowed}, field);
}

json shown(const Field& field, std::string_view key) {
  return std::visit(Shower{key}, field);
}

std::string allowed_text(const Field& field, const Allowed& allowed) {
  return std::visit(
      [&]<class T>(const T&) -> std::string {
        if constexpr (std::is_pointer_v<T>) return wanted<std::remove_pointer_t<T>>(allowed);
        if constexpr (std::is_same_v<T, SecondsField>) return wanted<Millis>(allowed);
        return {};  // the policy has them
      },
      field);
}

json parsed(const Field& field, const std::string& text) {
  const bool many =
      std::visit([]<class T>(const T&) { return is_list<std::remove_pointer_t<T>>; }, field);
  if (many) {
    // A text that is not a list is one element: a pattern may begin with a bracket.
    auto list = json::parse(text, nullptr, false);
    return list.is_array() ? list : json::array({text});
  }
  const bool is_text = std::visit(
      []<class T>(const T&) {
        using Value = std::remove_pointer_t<T>;
        return Choice<Value> || Text<Value>;
      },
      field);
  if (is_text) return text;
  if (text == "true" || text == "false") return text == "true";
  if ((text == "1" || text == "0") && shown(field, {}).is_boolean()) return text == "1";
  const auto* end = text.data() + text.size();
  std::int64_t integer = 0;
  if (const auto read = std::from_chars(text.data(), end, integer);
      read.ec == std::errc{} && read.ptr == end)
    return integer;
  double number = 0;
  if (const auto read = std::from_chars(text.data(), end, number);
      read.ec == std::errc{} && read.ptr == end)
    return number;
  return text;
}

std::string literal(const json& value) {
  if (value.is_null()) return "a date or a time";
  if (value.is_number_float()) {
    const auto number = value.get<double>();
    if (std::isnan(number)) return "nan";
    if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
    if (number == std::trunc(number) && std::abs(number) <= 1e15)
      return std::to_string(static_cast<std::int64_t>(number));
  }
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace watchdog
