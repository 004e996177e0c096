#include "text/json_writer.h"

#include <array>
#include <charconv>
#include <cmath>

#include "text/utf8.h"

namespace watchdog {
namespace {

void append_escaped(std::string& out, unsigned char c) {
  switch (c) {
    case '"':
      out += "\\\"";
      break;
    case '\\':
      out += "\\\\";
      break;
    case '\n':
      out += "\\n";
      break;
    case '\r':
      out += "\\r";
      break;
    case '\t':
      out += "\\t";
      break;
    default: {
      static constexpr std::string_view digits = "0123456789abcdef";
      out += "\\u00";
      out += digits[c >> 4U];
      out += digits[c & 0x0FU];
    }
  }
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  std::size_t copied = 0;
  const auto copy_to = [&](std::size_t end) { out.append(text, copied, end - copied); };
  for (std::size_t at = 0; at < text.size();) {
    const auto c = static_cast<unsigned char>(text[at]);
    if (c >= 0x20 && c < 0x80 && c != '"' && c != '\\') {
      ++at;
      continue;
    }
    if (c < 0x80) {
      copy_to(at);
      append_escaped(out, c);
      copied = ++at;
      continue;
    }
    if (const auto bytes = character_bytes(text.substr(at)); bytes > 0) {
      at += bytes;
      continue;
    }
    copy_to(at);
    out += "\xEF\xBF\xBD";
    copied = ++at;
  }
  copy_to(text.size());
  out += '"';
}

void JsonWriter::separate() {
  if (comma_) text_ += ',';
  comma_ = true;
}

JsonWriter& JsonWriter::open(char bracket) {
  separate();
  text_ += bracket;
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  text_ += bracket;
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  separate();
  append_json_string(text_, name);
  text_ += ':';
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  separate();
  append_json_string(text_, text);
  return *this;
}

JsonWriter& JsonWriter::value(bool yes) {
  return raw(yes ? "true" : "false");
}
JsonWriter& JsonWriter::value(std::nullptr_t) {
  return raw("null");
}

JsonWriter& JsonWriter::value(double number) {
  if (!std::isfinite(number)) return value(nullptr);
  std::array<char, 32> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return raw({digits.data(), static_cast<std::size_t>(end - digits.data())});
}

JsonWriter& JsonWriter::integer(std::int64_t number) {
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return raw({digits.data(), static_cast<std::size_t>(end - digits.data())});
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  separate();
  text_ += json;
  return *this;
}

std::string hexadecimal(std::uint64_t digest) {
  std::string text(16, '0');
  for (int i = 0; i < 16; ++i) text[i] = "0123456789abcdef"[digest >> (60 - 4 * i) & 0xFU];
  return text;
}

}  // namespace watchdog
