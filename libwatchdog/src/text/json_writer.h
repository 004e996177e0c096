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

/// Invalid UTF-8 and U+0000, which no engine of a store must meet, become U+FFFD and non-finite
/// numbers become null, so the text is always valid JSON. Use from one thread at a time.
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

  /// Valid until the next call.
  [[nodiscard]] std::string_view text() const noexcept { return {text_.data(), used_}; }
  /// Returns the text, and is empty then.
  [[nodiscard]] std::string finish();

 private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  JsonWriter& integer(std::int64_t number);
  JsonWriter& separated(std::string_view json);
  JsonWriter& string(std::string_view text, char after);
  /// Returns where `bytes` bytes may be written.
  char* room(std::size_t bytes);

  std::string text_;      ///< Longer than what was written.
  std::size_t used_ = 0;  ///< Written.
  bool comma_ = false;
};

/// Returns how many bytes at the beginning may be in a JSON string as they are and are ASCII.
[[nodiscard]] std::size_t plain_json_bytes(std::string_view text) noexcept;

/// Returns a digest as 16 digits, because some readers of JSON do not keep 64 bits of a number.
[[nodiscard]] std::string hexadecimal(std::uint64_t digest);

/// Appends the text as a JSON string with quotes.
void append_json_string(std::string& out, std::string_view text);

}  // namespace watchdog
