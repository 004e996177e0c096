#include "workspace/checkpoint_record.h"

#include <array>
#include <charconv>
#include <optional>

#include "files/sha256.h"

namespace watchdog {
namespace {

constexpr std::string_view title = "watchdog-checkpoint 1\n";
constexpr std::string_view last_word = "end ";

/// A path may hold any byte but NUL; a line must not hold the end of one.
std::string on_one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    if (c == '\\') {
      line += "\\\\";
    } else if (c == '\n') {
      line += "\\n";
    } else {
      line += c;
    }
  }
  return line;
}

std::string from_one_line(std::string_view line) {
  std::string text;
  for (std::size_t at = 0; at < line.size(); ++at) {
    if (line[at] == '\\' && at + 1 < line.size()) {
      ++at;
      text += line[at] == 'n' ? '\n' : line[at];
    } else {
      text += line[at];
    }
  }
  return text;
}

std::string octal(unsigned number) {
  std::array<char, 16> digits{};
  return {digits.data(), std::to_chars(digits.begin(), digits.end(), number, 8).ptr};
}

std::string encoded(const Image& image) {
  if (image.kind != ImageKind::file) return std::string(name_of(image.kind));
  return "file " + image.digest + " " + octal(image.mode) + " " + std::to_string(image.user) + " " +
         std::to_string(image.group);
}

/// Takes lines apart; once something is wrong it stays so.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool at_end() const { return text_.empty(); }

  /// The rest of the line, which must begin with the word.
  std::string_view line(std::string_view word) {
    const auto end = text_.find('\n');
    if (end == std::string_view::npos || !text_.starts_with(word)) {
      ok_ = false;
      text_ = {};
      return {};
    }
    const auto rest = text_.substr(word.size(), end - word.size());
    text_.remove_prefix(end + 1);
    return rest;
  }

  template <class Number>
  Number number(std::string_view& text, int base = 10) {
    Number value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    ok_ = ok_ && error == std::errc();
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    if (text.starts_with(' ')) text.remove_prefix(1);
    return value;
  }

  Image image(std::string_view text) {
    const auto kind = named<ImageKind>(text.substr(0, text.find(' ')));
    ok_ = ok_ && kind;
    Image image{.kind = kind.value_or(ImageKind::unknown)};
    if (image.kind != ImageKind::file) return image;
    image.digest = text.substr(5 < text.size() ? 5 : text.size(), 64);
    ok_ = ok_ && is_sha256(image.digest) && text.size() > 70;
    if (!ok_) return image;
    text.remove_prefix(70);
    image.mode = number<mode_t>(text, 8);
    image.user = number<uid_t>(text);
    image.group = number<gid_t>(text);
    return image;
  }

 private:
  std::string_view text_;
  bool ok_ = true;
};

}  // namespace

bool same_content(const Image& a, const Image& b) noexcept {
  const bool known = a.kind == ImageKind::none || a.kind == ImageKind::file;
  return known && a.kind == b.kind && a.digest == b.digest;
}

std::string encoded(const CheckpointRecord& record) {
  std::string text(title);
  text += "call " + on_one_line(record.call) + "\n";
  text += "at " + std::to_string(record.at.time_since_epoch().count()) + "\n";
  text += "sealed " + std::to_string(record.sealed ? 1 : 0) + "\n";
  for (const auto& entry : record.entries) {
    text += "path " + on_one_line(entry.path.native()) + "\n";
    text += "before " + encoded(entry.before) + "\n";
    text += "after " + encoded(entry.after) + "\n";
  }
  return text + std::string(last_word) + sha256_of(text) + "\n";
}

Result<CheckpointRecord> decoded_checkpoint(std::string_view text) {
  const auto last_bytes = last_word.size() + 65;
  const Error torn{ErrorCode::corrupt,
                   "is not what was written (" + std::to_string(text.size()) + " bytes)"};
  if (text.size() < title.size() + last_bytes || !text.starts_with(title)) return torn;
  const auto body = text.substr(0, text.size() - last_bytes);
  if (text.substr(body.size()) != std::string(last_word) + sha256_of(body) + "\n") return torn;

  Reader reader(body.substr(title.size()));
  CheckpointRecord record;
  record.call = from_one_line(reader.line("call "));
  auto at = reader.line("at ");
  record.at = WallTime{Millis{reader.number<std::int64_t>(at)}};
  record.sealed = reader.line("sealed ") == "1";
  while (reader.ok() && !reader.at_end()) {
    CheckpointEntry entry;
    entry.path = from_one_line(reader.line("path "));
    entry.before = reader.image(reader.line("before "));
    entry.after = reader.image(reader.line("after "));
    record.entries.push_back(std::move(entry));
  }
  if (!reader.ok()) return torn;
  return record;
}

}  // namespace watchdog
