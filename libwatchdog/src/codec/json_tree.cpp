// Each event is read and written here, and both cost most of its time with the library. Most bytes
// of JSON are in strings; the reader copies their plain parts at once. It refuses every text that
// is not ordinary. The library then reads that text, and alone decides what is an error.
#include "codec/json_tree.h"

#include <charconv>
#include <cstdint>
#include <utility>

#include "codec/json.h"
#include "text/json_writer.h"
#include "text/utf8.h"

namespace watchdog {
namespace {

using nlohmann::json;

/// Reads values from the front of a text. Each function returns false if the expected text does not
/// follow.
class TreeReader {
 public:
  TreeReader(std::string_view text, std::size_t values_max) : rest_(text), left_(values_max) {}

  bool document(json& into) {
    if (!count() || !value(into)) return false;
    skip_blanks();
    return rest_.empty();
  }

 private:
  [[nodiscard]] char next() const { return rest_.empty() ? '\0' : rest_.front(); }
  bool take(char c) {
    if (next() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void skip_blanks() {
    while (next() == ' ' || next() == '\n' || next() == '\r' || next() == '\t')
      rest_.remove_prefix(1);
  }
  /// Each value follows a bracket or a comma, but the first.
  bool count() { return left_-- > 0; }

  bool value(json& into) {
    skip_blanks();
    switch (next()) {
      case '{':
        return object(into);
      case '[':
        return array(into);
      case '"': {
        std::string text;
        const bool is_whole = string(text);
        into = std::move(text);
        return is_whole;
      }
      case 't':
        into = true;
        return take("true");
      case 'f':
        into = false;
        return take("false");
      case 'n':
        into = nullptr;
        return take("null");
      default:
        return number(into);
    }
  }

  bool open(char bracket) { return take(bracket) && count() && ++depth_ <= json_depth_max; }
  bool close(char bracket) {
    skip_blanks();
    if (!take(bracket)) return false;
    --depth_;
    return true;
  }
  bool comma() { return take(',') && count(); }

  bool object(json& into) {
    if (!open('{')) return false;
    auto& members = (into = json::object()).get_ref<json::object_t&>();
    if (close('}')) return true;
    do {
      std::string name;
      skip_blanks();
      if (!string(name)) return false;
      skip_blanks();
      if (!take(':') || !value(members[std::move(name)]))
        return false;  // the last of a name counts
      if (close('}')) return true;
    } while (comma());
    return false;
  }

  bool array(json& into) {
    if (!open('[')) return false;
    auto& items = (into = json::array()).get_ref<json::array_t&>();
    if (close(']')) return true;
    do {
      if (!value(items.emplace_back())) return false;
      if (close(']')) return true;
    } while (comma());
    return false;
  }

  bool string(std::string& into) {
    if (!take('"')) return false;
    while (true) {
      const auto plain = plain_json_bytes(rest_);
      into.append(rest_, 0, plain);
      rest_.remove_prefix(plain);
      if (take('"')) return true;
      if (take('\\')) {
        if (!escaped(into)) return false;
        continue;
      }
      const auto bytes = static_cast<unsigned char>(next()) < 0x80 ? 0 : character_bytes(rest_);
      if (bytes == 0) return false;
      into.append(rest_, 0, bytes);
      rest_.remove_prefix(bytes);
    }
  }

  /// Reads the rest of an escape, after its backslash.
  bool escaped(std::string& into) {
    constexpr std::string_view names = "\"\\/bfnrt";
    constexpr std::string_view meanings = "\"\\/\b\f\n\r\t";
    if (take('u')) {
      const auto unit = code_unit();
      const bool is_first = unit >= 0xD800 && unit <= 0xDBFF;
      const auto second = is_first && take("\\u") ? code_unit() : 0;
      if (is_first && (second < 0xDC00 || second > 0xDFFF)) return false;
      if (unit < 0 || (unit >= 0xDC00 && unit <= 0xDFFF)) return false;
      append(into, static_cast<std::uint32_t>(
                       is_first ? 0x10000 + (unit - 0xD800) * 0x400 + second - 0xDC00 : unit));
      return true;
    }
    const auto at = rest_.empty() ? std::string_view::npos : names.find(rest_.front());
    if (at == std::string_view::npos) return false;
    into += meanings[at];
    rest_.remove_prefix(1);
    return true;
  }

  /// Reads four hexadecimal digits. Returns -1 if they do not follow.
  std::int32_t code_unit() {
    std::int32_t unit = 0;
    const auto digits = rest_.substr(0, 4);
    const auto* end = digits.data() + digits.size();
    const auto read = std::from_chars(digits.data(), end, unit, 16);
    if (digits.size() < 4 || digits.front() == '-' || read.ptr != end || read.ec != std::errc{})
      return -1;
    rest_.remove_prefix(4);
    return unit;
  }

  static void append(std::string& into, std::uint32_t character) {
    const auto byte = [&](std::uint32_t bits) { into += static_cast<char>(bits); };
    if (character < 0x80) return byte(character);
    if (character < 0x800) {
      byte(0xC0U | character >> 6U);
    } else if (character < 0x10000) {
      byte(0xE0U | character >> 12U);
      byte(0x80U | (character >> 6U & 0x3FU));
    } else {
      byte(0xF0U | character >> 18U);
      byte(0x80U | (character >> 12U & 0x3FU));
      byte(0x80U | (character >> 6U & 0x3FU));
    }
    byte(0x80U | (character & 0x3FU));
  }

  static std::size_t digits_in(std::string_view text) {
    const auto end = text.find_first_not_of("0123456789");
    return end == std::string_view::npos ? text.size() : end;
  }

  bool number(json& into) {
    const auto whole = rest_;
    const bool negative = take('-');
    const auto digits = digits_in(rest_);
    if (digits == 0 || (rest_.front() == '0' && digits > 1)) return false;
    rest_.remove_prefix(digits);
    bool is_integer = true;
    if (take('.')) {
      is_integer = false;
      const auto decimals = digits_in(rest_);
      if (decimals == 0) return false;
      rest_.remove_prefix(decimals);
    }
    if (take('e') || take('E')) {
      is_integer = false;
      if (!take('+')) take('-');
      const auto power = digits_in(rest_);
      if (power == 0) return false;
      rest_.remove_prefix(power);
    }
    const auto text = whole.substr(0, whole.size() - rest_.size());
    if (!is_integer) return number<double>(text, into);
    return negative ? number<std::int64_t>(text, into) : number<std::uint64_t>(text, into);
  }
  template <class Number>
  static bool number(std::string_view text, json& into) {
    Number number{};
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    into = number;
    return read.ec == std::errc{};
  }

  std::string_view rest_;
  std::size_t left_;
  int depth_ = 0;
};

void append_compact(std::string& out, const json& tree);

void append_string(std::string& out, const std::string& text) {
  // These two have names of their own in the library's text.
  if (text.find('\b') != std::string::npos || text.find('\f') != std::string::npos) {
    out += json(text).dump();
  } else {
    append_json_string(out, text);
  }
}

void append_members(std::string& out, const json::object_t& members) {
  out += '{';
  for (const auto& [name, value] : members) {
    if (out.back() != '{') out += ',';
    append_string(out, name);
    out += ':';
    append_compact(out, value);
  }
  out += '}';
}

void append_items(std::string& out, const json::array_t& items) {
  out += '[';
  for (const auto& item : items) {
    if (&item != &items.front()) out += ',';
    append_compact(out, item);
  }
  out += ']';
}

void append_compact(std::string& out, const json& tree) {
  if (tree.is_object()) {
    append_members(out, tree.get_ref<const json::object_t&>());
  } else if (tree.is_array()) {
    append_items(out, tree.get_ref<const json::array_t&>());
  } else if (tree.is_string()) {
    append_string(out, tree.get_ref<const std::string&>());
  } else if (tree.is_number_unsigned()) {
    out += std::to_string(tree.get<std::uint64_t>());
  } else {
    out += tree.dump();
  }
}

}  // namespace

std::optional<json> tree_of(std::string_view text, std::size_t values_max) {
  json tree;
  if (!TreeReader(text, values_max).document(tree)) return std::nullopt;
  return tree;
}

std::string compact(const json& tree) {
  std::string text;
  append_compact(text, tree);
  return text;
}

}  // namespace watchdog
