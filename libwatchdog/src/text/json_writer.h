/// \file
/// Writes JSON text by appending. A library reads JSON. Appending costs a twentieth of building and
/// dumping a tree, and the progress document is written at every request.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace watchdog {

/// Invalid UTF-8 becomes U+FFFD and non-finite numbers become null, so the text is always valid
/// JSON. Use from one thread at a time.
class JsonWriter {
 public:
  JsonWriter& open_object() { return open('{'); }
  JsonWriter& close_object() { return close('}'); }
  JsonWriter& open_array() { return open('['); }
  JsonWriter& close_array() { return close(']'); }
  JsonWriter& key(std::string_view name);

  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(const std::string& text) { return value(std::string_view(text)); }
  JsonWriter& value(bool yes);
  JsonWriter& value(double number);
  JsonWriter& value(std::nullptr_t);
  template <std::integral Integer>
  JsonWriter& value(Integer number) {
    return integer(static_cast<std::int64_t>(number));
  }
  template <class T>
  JsonWriter& value(const std::optional<T>& maybe) {
    return maybe ? value(*maybe) : value(nullptr);
  }
  /// Appends text that is already JSON.
  JsonWriter& raw(std::string_view json);

  template <class T>
  JsonWriter& field(std::string_view name, const T& content) {
    return key(name).value(content);
  }

  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  [[nodiscard]] std::string finish() { return std::move(text_); }

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& integer(std::int64_t number);
  void separate();

  std::string text_;
  bool comma_ = false;
};

/// Returns a digest as 16 digits, because some readers of JSON do not keep 64 bits of a number.
[[nodiscard]] std::string hexadecimal(std::uint64_t digest);

/// Appends the text as a JSON string with quotes.
void append_json_string(std::string& out, std::string_view text);

}  // namespace watchdog
