// One pass over the text, without a tree and without memory: a request may have 16 MiB, and two or
// three members matter. Strings are skipped by memchr to the next quote with an even number of
// backslashes before it. Brackets are counted and not matched, so malformed JSON may pass; the
// model's server judges that. Values are views into the text. A text that breaks off finds nothing
// at all, so nobody acts on half a request.
#include "proxy/connection/json_members.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>

namespace watchdog::monitor {
namespace {

constexpr bool is_blank(char c) noexcept {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/// Walks over a text without looking at what does not matter.
class Walk {
 public:
  explicit Walk(std::string_view text) noexcept : text_(text) {}

  [[nodiscard]] bool at_end() const noexcept { return at_ >= text_.size(); }
  [[nodiscard]] char here() const noexcept { return at_end() ? '\0' : text_[at_]; }
  [[nodiscard]] std::size_t place() const noexcept { return at_; }

  void skip_blanks() noexcept {
    while (!at_end() && is_blank(text_[at_])) ++at_;
  }
  bool accept(char c) noexcept {
    skip_blanks();
    if (here() != c) return false;
    ++at_;
    return true;
  }
  /// Sets `inside` to the text between the quotes; false: there is no complete string here.
  bool string(std::string_view& inside) noexcept {
    if (!accept('"')) return false;
    const auto begin = at_;
    while (true) {
      const auto* quote =
          static_cast<const char*>(std::memchr(text_.data() + at_, '"', text_.size() - at_));
      if (quote == nullptr) return false;
      const auto end = static_cast<std::size_t>(quote - text_.data());
      std::size_t slashes = 0;
      while (end - slashes > begin && text_[end - slashes - 1] == '\\') ++slashes;
      at_ = end + 1;
      if (slashes % 2 == 0) {
        inside = text_.substr(begin, end - begin);
        return true;
      }
    }
  }
  /// Passes over a value of any type; brackets are counted, not matched.
  bool value() noexcept {
    skip_blanks();
    std::size_t depth = 0;
    do {
      std::string_view ignored;
      const char c = here();
      if (c == '"') {
        if (!string(ignored)) return false;
        if (depth == 0) return true;
        continue;
      }
      if (at_end()) return false;
      if (depth == 0 && (c == ',' || c == '}' || c == ']')) return false;
      ++at_;
      if (c == '{' || c == '[') ++depth;
      if (c == '}' || c == ']') {
        if (--depth == 0) return true;
      }
      if (depth == 0) return word();
    } while (depth > 0);
    return true;
  }

 private:
  /// The rest of a number or of a word.
  bool word() noexcept {
    while (!at_end() && !is_blank(here()) && here() != ',' && here() != '}' && here() != ']') ++at_;
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

/// `found` has what was complete before the text broke off, if it did. Returns true if it did not.
bool walk_members(Walk& walk, std::string_view object, std::span<const std::string_view> names,
                  std::span<std::string_view> found) noexcept {
  if (walk.accept('}')) return true;
  while (true) {
    std::string_view name;
    if (!walk.string(name) || !walk.accept(':')) return false;
    walk.skip_blanks();
    const auto begin = walk.place();
    // A number that ends with the text may go on behind it.
    if (!walk.value() || walk.at_end()) return false;
    for (std::size_t at = 0; at < names.size(); ++at) {
      if (names[at] == name) found[at] = object.substr(begin, walk.place() - begin);
    }
    if (walk.accept('}')) return true;
    if (!walk.accept(',')) return false;
  }
}

}  // namespace

bool find_members(std::string_view object, std::span<const std::string_view> names,
                  std::span<std::string_view> found) noexcept {
  Walk walk(object);
  std::ranges::fill(found, std::string_view());
  if (walk.accept('{') && walk_members(walk, object, names, found)) return true;
  std::ranges::fill(found, std::string_view());
  return false;
}

bool find_first_members(std::string_view beginning, std::span<const std::string_view> names,
                        std::span<std::string_view> found) noexcept {
  Walk walk(beginning);
  std::ranges::fill(found, std::string_view());
  if (!walk.accept('{')) return false;
  walk_members(walk, beginning, names, found);
  return true;
}

std::string_view member_of(std::string_view object, std::string_view name) noexcept {
  std::string_view found;
  find_members(object, {&name, 1}, {&found, 1});
  return found;
}

std::optional<std::string> string_in(std::string_view value) {
  if (!value.starts_with('"')) return std::nullopt;
  const auto parsed = nlohmann::json::parse(value, nullptr, false);
  if (!parsed.is_string()) return std::nullopt;
  return parsed.get<std::string>();
}

std::optional<bool> flag_in(std::string_view value) noexcept {
  if (value == "true") return true;
  if (value == "false") return false;
  return std::nullopt;
}

std::optional<std::int64_t> count_in(std::string_view value) noexcept {
  std::int64_t number = 0;
  const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
  if (read.ec != std::errc{} || number < 0 || number > 1'000'000'000'000) return std::nullopt;
  return number;
}

std::optional<double> number_in(std::string_view value) noexcept {
  double number = 0;
  const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
  if (read.ec != std::errc{} || !std::isfinite(number)) return std::nullopt;
  return number;
}

std::string with_member(std::string_view object, std::string_view member) {
  const auto brace = object.find('{') + 1;
  Walk rest(object.substr(brace));
  std::string made;
  made.reserve(object.size() + member.size() + 1);
  made.append(object.substr(0, brace)).append(member);
  if (!rest.accept('}')) made += ',';
  return made.append(object.substr(brace));
}

}  // namespace watchdog::monitor
