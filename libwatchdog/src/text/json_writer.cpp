// The writer fills a string that is longer than the text so far, because appending to a string
// costs as much as a short member. It copies a string of plain characters at once, as nearly all
// are. It escapes any other string apart, and then copies that.
#include "text/json_writer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

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

/// Returns whether one of eight bytes is not ASCII, or must be escaped in a string.
bool has_special(std::uint64_t word) {
  constexpr std::uint64_t each = 0x0101010101010101U;
  // The highest bit of a byte is set if it is 0. A borrow may set it above such a byte as well.
  const auto zeros = [](std::uint64_t bytes) { return (bytes - each) & ~bytes; };
  const auto control = (word - 0x20U * each) & ~word;
  const auto special = word | control | zeros(word ^ ('"' * each)) | zeros(word ^ ('\\' * each));
  return (special & (0x80U * each)) != 0;
}

template <class Word>
Word word_at(const char* bytes) {
  Word word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

}  // namespace

std::size_t plain_json_bytes(std::string_view text) noexcept {
  using Half = std::uint32_t;
  using Whole = std::uint64_t;
  const char* const end = text.data() + text.size();
  const char* at = text.data();
  while (static_cast<std::size_t>(end - at) >= sizeof(Whole) && !has_special(word_at<Whole>(at)))
    at += sizeof(Whole);
  // The last word, and the two halves of a short text, overlap with what is before.
  if (at != text.data() && static_cast<std::size_t>(end - at) < sizeof(Whole)) {
    if (!has_special(word_at<Whole>(end - sizeof(Whole)))) return text.size();
  } else if (text.size() >= sizeof(Half) && text.size() < sizeof(Whole)) {
    const auto second = static_cast<Whole>(word_at<Half>(end - sizeof(Half)));
    if (!has_special(word_at<Half>(at) | second << 32U)) return text.size();
  }
  const auto is_plain = [](unsigned char c) {
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
  };
  while (at != end && is_plain(static_cast<unsigned char>(*at))) ++at;
  return static_cast<std::size_t>(at - text.data());
}

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  while (true) {
    const auto plain = plain_json_bytes(text);
    out.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;
    const auto c = static_cast<unsigned char>(text.front());
    const auto bytes = c < 0x80 ? 0 : character_bytes(text);
    if (bytes > 0) {
      out.append(text.substr(0, bytes));
    } else if (c < 0x80) {
      append_escaped(out, c);
    } else {
      out += "\xEF\xBF\xBD";
    }
    text.remove_prefix(std::max<std::size_t>(bytes, 1));
  }
  out += '"';
}

char* JsonWriter::room(std::size_t bytes) {
  constexpr std::size_t least = 120;
  if (text_.size() - used_ < bytes)
    text_.resize(std::max(least, std::max(2 * text_.size(), used_ + bytes)));
  return text_.data() + used_;
}

/// Appends JSON, after a comma if a value is before it.
JsonWriter& JsonWriter::separated(std::string_view json) {
  char* at = room(json.size() + 1);
  *at = ',';
  const std::size_t comma = comma_ ? 1 : 0;
  json.copy(at + comma, json.size());
  used_ += comma + json.size();
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::open(char bracket) {
  separated({&bracket, 1});
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::close(char bracket) {
  *room(1) = bracket;
  ++used_;
  comma_ = true;
  return *this;
}

/// Appends a text with its quotes, and after that a character, if there is one.
JsonWriter& JsonWriter::string(std::string_view text, char after) {
  if (plain_json_bytes(text) < text.size()) {
    std::string without_nul;
    if (text.find('\0') != std::string_view::npos) {  // PostgreSQL cannot read it in JSON
      for (const char c : text) c == '\0' ? without_nul += "\xEF\xBF\xBD" : without_nul += c;
      text = without_nul;
    }
    std::string escaped;
    append_json_string(escaped, text);
    if (after != 0) escaped += after;
    return separated(escaped);
  }
  char* const begin = room(text.size() + 4);
  char* at = begin;
  if (comma_) *at++ = ',';
  *at++ = '"';
  at += text.copy(at, text.size());
  *at++ = '"';
  if (after != 0) *at++ = after;
  used_ += static_cast<std::size_t>(at - begin);
  comma_ = true;
  return *this;
}

JsonWriter& JsonWriter::key(std::string_view name) {
  string(name, ':');
  comma_ = false;
  return *this;
}

JsonWriter& JsonWriter::value(std::string_view text) {
  return string(text, 0);
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
  std::array<char, 24> digits;  // NOLINT(cppcoreguidelines-pro-type-member-init): written next
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  return raw({digits.data(), static_cast<std::size_t>(end - digits.data())});
}

JsonWriter& JsonWriter::raw(std::string_view json) {
  return separated(json);
}

std::string JsonWriter::finish() {
  const auto used = std::exchange(used_, 0);
  // Callers keep many of these texts for long, so spare room is given back.
  if (2 * used < text_.size()) return std::string(text_.data(), used);
  text_.resize(used);
  return std::exchange(text_, {});
}

std::string hexadecimal(std::uint64_t digest) {
  std::string text(16, '0');
  for (int i = 0; i < 16; ++i) text[i] = "0123456789abcdef"[digest >> (60 - 4 * i) & 0xFU];
  return text;
}

}  // namespace watchdog
