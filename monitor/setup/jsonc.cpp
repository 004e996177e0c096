// A scanner of one pass. It checks the structure itself and leaves each string, number and word to
// the JSON library. An edit is an insertion or an erasure at a place that the scanner found.
// with_item() inserts behind the last item, its trailing comma and the comment on its line, so that
// the comment stays beside what it explains. without_item() is its inverse: it erases the item, the
// white space before it, and the comma that with_item() added.
#include "setup/jsonc.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "codec/json.h"

namespace watchdog::monitor {
namespace {

constexpr std::string_view blanks = " \t\r\n";
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
constexpr auto none = JsoncNode::none;

/// Returns the place behind a comment that begins here; `none`: no comment does, or it has no end.
std::size_t comment_end(std::string_view text, std::size_t at) {
  if (text.substr(at, 2) == "/*") {
    const auto end = text.find("*/", at + 2);
    return end == none ? none : end + 2;
  }
  if (text.substr(at, 2) != "//") return none;
  auto end = std::min(text.find('\n', at), text.size());
  if (end < text.size() && text[end - 1] == '\r') --end;
  return end;
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {
    if (text_.starts_with(byte_order_mark)) at_ = byte_order_mark.size();
  }

  Result<JsoncNode> document() {
    JsoncNode root;
    skip();
    if (at_ < text_.size() && !error_) root = value(0);
    skip();
    if (at_ < text_.size()) fail("there is text after the end of the document");
    if (error_) return *error_;
    return root;
  }

 private:
  void fail(const std::string& why) {
    if (error_) return;
    const auto before = text_.substr(0, at_);
    error_ = Error{ErrorCode::malformed,
                   why,
                   {},
                   1 + static_cast<int>(std::count(before.begin(), before.end(), '\n'))};
  }

  void skip() {
    while (at_ < text_.size()) {
      at_ = std::min(text_.find_first_not_of(blanks, at_), text_.size());
      if (at_ == text_.size() || text_[at_] != '/') return;
      const auto end = comment_end(text_, at_);
      if (end == none) return fail("a comment has no end, or a slash begins no comment");
      at_ = end;
    }
  }

  [[nodiscard]] char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  /// Reads a string, number, true, false or null.
  void scalar(JsoncNode& node) {
    node.kind = next() == '"' ? JsoncNode::Kind::string : JsoncNode::Kind::other;
    if (node.kind == JsoncNode::Kind::string) {
      auto end = at_ + 1;
      while (end < text_.size() && text_[end] != '"' && text_[end] != '\n')
        end += text_[end] == '\\' ? 2 : 1;
      if (end >= text_.size() || text_[end] != '"') return fail("a string has no end");
      node.end = end + 1;
    } else {
      node.end = std::min(text_.find_first_of(" \t\r\n,:[]{}\"/", at_), text_.size());
    }
    const auto token = text_.substr(node.begin, node.end - node.begin);
    const auto parsed = nlohmann::json::parse(token, nullptr, false);
    if (parsed.is_discarded()) return fail("this is not a JSON value");
    if (parsed.is_string()) node.text = parsed.get<std::string>();
    at_ = node.end;
  }

  JsoncNode value(int depth) {
    JsoncNode node;
    node.place = node.begin = at_;
    if (depth >= json_depth_max) {
      fail("the values are nested too deeply");
    } else if (next() == '{' || next() == '[') {
      node.kind = next() == '{' ? JsoncNode::Kind::object : JsoncNode::Kind::array;
      container(node, depth);
    } else {
      scalar(node);
    }
    return node;
  }

  void container(JsoncNode& node, int depth) {
    const bool is_object = node.kind == JsoncNode::Kind::object;
    const char closing = is_object ? '}' : ']';
    ++at_;
    for (skip(); !error_ && next() != closing; skip()) {
      if (!node.items.empty() && node.items.back().comma == none)
        return fail(at_ < text_.size() ? "a comma is missing" : "a closing bracket is missing");
      JsoncNode key;
      key.begin = at_;
      if (is_object) {
        if (next() != '"') return fail("a key in double quotes is missing");
        scalar(key);
        skip();
        if (!error_ && next() != ':') return fail("a colon is missing");
        ++at_;
        skip();
      }
      if (error_) return;
      auto item = value(depth + 1);
      if (is_object) {
        item.key = key.text;
        item.place = key.begin;
      }
      skip();
      if (next() == ',') item.comma = at_++;
      node.items.push_back(std::move(item));
    }
    node.end = ++at_;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::optional<Error> error_;
};

/// Returns the place behind the last visible character before this place.
std::size_t end_before(std::string_view text, std::size_t place) {
  return text.find_last_not_of(blanks, place - 1) + 1;
}

/// Returns the place behind the comments that follow on the same line.
std::size_t after_comments(std::string_view text, std::size_t place) {
  for (;;) {
    const auto at = text.find_first_not_of(" \t", place);
    const auto end = at == none ? none : comment_end(text, at);
    if (end == none || text.substr(at, end - at).find('\n') != none) return place;
    place = end;
  }
}

/// Returns the end of the `//` comment that this place is in; `none`: it is in none.
std::size_t line_comment_end(std::string_view text, std::size_t place) {
  for (std::size_t at = 0; at < place;) {
    if (const auto end = comment_end(text, at); end != none) {
      if (text[at + 1] == '/' && end >= place) return end;
      at = end;
    } else if (text[at] == '"') {
      for (++at; at < place && text[at] != '"'; ++at)
        if (text[at] == '\\') ++at;
      ++at;
    } else {
      ++at;
    }
  }
  return none;
}

/// True if the container was created together with its only item: see with_item().
bool is_made_for_item(std::string_view text, const JsoncNode& container) {
  if (container.items.size() != 1) return false;
  const auto& item = container.items.front();
  const auto before = text.substr(container.begin + 1, item.place - container.begin - 1);
  const auto behind = text.substr(item.end, container.end - 1 - item.end);
  return before != " " && before.find_first_not_of(blanks) == none &&
         behind.find_first_not_of(blanks) == none;
}

std::string erased(std::string_view text, const JsoncNode& container, std::size_t index) {
  const auto& item = container.items[index];
  auto begin = end_before(text, item.place);
  const auto behind = item.comma == none ? item.end : item.comma + 1;
  // Blanks at the end of a comment belong to it, and the text behind must not become part of it.
  if (const auto end = line_comment_end(text, begin); end != none)
    begin = text.find_first_of("\r\n", behind) == behind ? end : item.place;
  std::string result(text);
  if (item.comma != none) result.erase(item.comma, 1);
  result.erase(begin, item.end - begin);
  if (item.comma == none && index > 0) result.erase(container.items[index - 1].comma, 1);
  return result;
}

}  // namespace

const JsoncNode* JsoncNode::find(std::string_view name) const {
  const auto found = std::find_if(items.rbegin(), items.rend(),
                                  [&](const JsoncNode& item) { return item.key == name; });
  return kind == Kind::object && found != items.rend() ? &*found : nullptr;
}

Result<JsoncNode> parse_jsonc(std::string_view text) {
  return Scanner(text).document();
}

std::string line_indent(std::string_view text, std::size_t place) {
  const auto before = place == 0 ? none : text.rfind('\n', place - 1);
  const auto begin = before == none ? 0 : before + 1;
  const auto end = std::min(text.find_first_not_of(" \t", begin), place);
  return std::string(text.substr(begin, end - begin));
}

JsoncStyle style_of(std::string_view text, const JsoncNode& root) {
  JsoncStyle style;
  if (const auto end = text.find('\n'); end != none && end > 0 && text[end - 1] == '\r')
    style.line_end = "\r\n";
  if (root.items.empty()) return style;
  const auto& first = root.items.front();
  const auto indent = line_indent(text, first.place);
  if (!indent.empty() && text.substr(root.begin, first.place - root.begin).find('\n') != none)
    style.indent = indent;
  return style;
}

std::string with_item(std::string_view text, const JsoncNode& container, const std::string& item) {
  const auto root = parse_jsonc(text);
  const auto style = root ? style_of(text, *root) : JsoncStyle{};
  auto new_line = style.line_end + line_indent(text, container.begin) + style.indent;
  std::string result(text);
  if (container.items.empty()) {
    auto at = end_before(text, container.end - 1);
    if (const auto end = line_comment_end(text, at); end != none) at = end;
    const auto inside = text.substr(container.begin + 1, at - container.begin - 1);
    const bool is_blank = inside.empty();
    return result.insert(at, (is_blank ? " " : new_line) + item);
  }
  const auto& last = container.items.back();
  const auto end = end_before(text, last.place);
  const auto gap = text.substr(end, last.place - end);
  if (gap.find('\n') != none) new_line = style.line_end + line_indent(text, last.place);
  const bool is_trailing = last.comma != none;
  const auto at = after_comments(text, is_trailing ? last.comma + 1 : last.end);
  result.insert(at, new_line + item + (is_trailing ? "," : ""));
  if (!is_trailing) result.insert(last.end, ",");
  return result;
}

std::string without_item(std::string_view text, const JsoncNode& root,
                         std::vector<std::size_t> indices) {
  std::vector<const JsoncNode*> containers{&root};
  for (const auto index : indices) containers.push_back(&containers.back()->items[index]);
  containers.pop_back();  // the item itself
  while (containers.size() > 1 && is_made_for_item(text, *containers.back())) {
    containers.pop_back();
    indices.pop_back();
  }
  return erased(text, *containers.back(), indices.back());
}

}  // namespace watchdog::monitor
