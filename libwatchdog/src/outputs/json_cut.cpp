// Walks once over a document that was parsed before, and copies tokens as they were written. Values
// beyond a limit are skipped and counted. `container` remembers the state before the last allowed
// member, because a mark may have to take its place. In an object the mark needs a name that no
// member has: it gets more ellipses than any. A mark's numbers change its length, so the right one
// is found by trying.
#include "outputs/json_cut.h"

#include <algorithm>
#include <utility>

#include "privacy/content.h"
#include "text/json_writer.h"
#include "text/utf8.h"

namespace watchdog {
namespace {

constexpr std::string_view ellipsis = "…";

std::string number_of(std::size_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

/// Bytes of the character of a string that begins the text, as it is written: `é`, `\n`, `\u00e9`,
/// `\ud83d\ude00`. REQUIRES: it is in a JSON string.
std::size_t written_bytes(std::string_view text) {
  if (text[0] != '\\') return std::max<std::size_t>(character_bytes(text), 1);
  if (text[1] != 'u') return 2;
  const bool pair =
      (text[2] | 0x20) == 'd' && std::string_view("89abAB").find(text[3]) != std::string_view::npos;
  return pair ? 12 : 6;
}

/// One walk over a document. The text was parsed before: here it is only followed.
class Cutter {
 public:
  Cutter(std::string_view json, const OutputLimits& limits, const Notice& notice)
      : json_(json), limits_(limits), notice_(notice) {}

  JsonCut run() && {
    space();
    value(1);
    return std::move(done_);
  }

 private:
  struct Members {
    char close;
    std::string_view noun;
    std::size_t max;
  };

  /// `entries`: this is what the document is about, below its first level.
  [[nodiscard]] Members members_at(std::size_t depth, bool entries = false) const {
    const bool object = json_[at_] == '{';
    const auto whole = object ? limits_.object_keys : limits_.list_items;
    return {.close = object ? '}' : ']',
            .noun = object ? "key" : "item",
            .max = std::max<std::size_t>(depth == 1 || entries ? whole : whole / 4, 1)};
  }
  [[nodiscard]] std::size_t string_max() const {
    return std::max<std::size_t>(limits_.string_chars, 1);
  }

  void space() {
    while (at_ < json_.size() &&
           std::string_view(" \t\r\n").find(json_[at_]) != std::string_view::npos)
      ++at_;
  }
  /// The token that begins here.
  std::string_view token() {
    const auto begin = at_;
    if (json_[at_] == '"') {
      for (++at_; json_[at_] != '"'; ++at_) at_ += json_[at_] == '\\' ? 1 : 0;
      ++at_;
    } else {
      at_ = std::min(json_.find_first_of(",:]} \t\r\n", at_), json_.size());
    }
    return json_.substr(begin, at_ - begin);
  }

  void value(std::size_t depth, bool entries = false) {
    if (json_[at_] == '"') return string(depth == 1 ? &notice_ : nullptr);
    if (json_[at_] != '{' && json_[at_] != '[') {
      done_.text += token();
    } else if (depth > std::max<std::size_t>(limits_.depth, 1)) {
      too_deep();
    } else {
      container(depth, entries && json_[at_] == '[');
    }
  }

  void string(const Notice* notice) {
    const auto written = token();
    auto rest = written.substr(1, written.size() - 2);
    std::size_t chars = 0;
    for (; !rest.empty(); ++chars) rest.remove_prefix(written_bytes(rest));
    if (chars <= string_max()) {
      done_.text += written;
      return;
    }
    ++done_.strings;
    const auto mark_for = [&](std::size_t shown) {
      auto text = std::string(ellipsis) + " [" + std::to_string(chars - shown) + " more chars]";
      if (notice != nullptr && *notice) text += " " + (*notice)(shown);
      return text;
    };
    const auto max = string_max();
    std::string mark;
    auto shown = max - 1;  // until it fits: its own numbers change its length
    for (mark = mark_for(shown); shown > 0 && shown + characters_in(mark) > max; --shown)
      mark = mark_for(shown - 1);
    if (shown + characters_in(mark) > max || characters_in(mark) > max / 2) {
      mark = ellipsis;
      shown = max - 1;
    }
    rest = written.substr(1);
    for (std::size_t left = shown; left > 0; --left) rest.remove_prefix(written_bytes(rest));
    done_.text += written.substr(0, written.size() - rest.size());
    done_.text += quoted(mark).substr(1);
    done_.mark_chars += characters_in(mark);
  }

  static std::string quoted(std::string_view text) {
    std::string out;
    append_json_string(out, text);
    return out;
  }

  void add_mark(std::string_view text, std::string_view before = {}) {
    const auto size = done_.text.size();
    done_.text.append(before).append(quoted(first_characters(text, string_max())));
    done_.mark_chars += characters_in(std::string_view(done_.text).substr(size));
  }

  void too_deep() {
    const auto members = members_at(1);
    const auto begin = at_;
    const auto count = skip();
    if (count == 0) {
      done_.text += members.close == '}' ? "{}" : "[]";
      return;
    }
    ++done_.deep;
    add_mark("[… " + std::string(json_[begin] == '{' ? "an object of " : "a list of ") +
             number_of(count, members.noun) + "]");
  }

  /// Over a list or an object; gives how many members it has.
  std::size_t skip() {
    std::size_t depth = 0;
    std::size_t separators = 0;
    bool any = false;
    do {
      space();
      const char c = json_[at_];
      if (c == '{' || c == '[') {
        any = any || depth == 1;
        ++depth;
        ++at_;
      } else if (c == '}' || c == ']') {
        --depth;
        ++at_;
      } else if (c == ',' || c == ':') {
        if (c == ',' && depth == 1) ++separators;
        ++at_;
      } else {
        any = any || depth == 1;
        token();
      }
    } while (depth > 0);
    return any ? separators + 1 : 0;
  }

  /// `"name":` of a member; gives how many times … the name is, if it is nothing else.
  std::size_t name() {
    const auto begin = at_ + 1;
    string(nullptr);
    std::string_view name = json_.substr(begin, at_ - 1 - begin);
    is_entries_ = name == "entries";
    std::size_t times = 0;
    for (; name.starts_with(ellipsis); ++times) name.remove_prefix(ellipsis.size());
    space();
    ++at_;
    space();
    done_.text += ':';
    return name.empty() ? times : 0;
  }

  void skip_member() {
    if (json_[at_] == '{' || json_[at_] == '[') {
      skip();
      return;
    }
    token();
    space();
    if (at_ < json_.size() && json_[at_] == ':') {
      ++at_;
      space();
      skip_member();
    }
  }

  /// The mark behind the last member that is shown.
  void mark_end(const Members& members, std::size_t left_out, bool follows, std::size_t ellipses,
                bool noticed) {
    std::string mark;
    if (left_out > 0) {
      mark = "[… " + std::to_string(left_out) + " more " + std::string(members.noun) +
             (left_out == 1 ? "]" : "s]");
    }
    if (noticed) {
      if (left_out > 0) mark += ' ';
      mark += notice_(characters_in(done_.text) - done_.mark_chars);
    }
    std::string before = follows ? "," : "";
    if (members.close == '}') {  // a name that no member has
      before += '"';
      for (auto times = std::min(ellipses + 1, string_max()); times > 0; --times)
        before += ellipsis;
      before += "\":";
    }
    add_mark(mark, before);
  }

  void container(std::size_t depth, bool entries) {
    const auto members = members_at(depth, entries);
    const bool object = members.close == '}';
    const bool noticed = depth == 1 && notice_;
    const auto places = members.max - (noticed ? 1 : 0);
    std::size_t count = 0;
    std::size_t ellipses = 0;
    JsonCut before_last;  // what was done before the last place was taken: a mark may need it
    std::size_t size_before_last = 0;
    done_.text += json_[at_++];
    for (space(); json_[at_] != members.close; space()) {
      if (count + 1 == places) {
        size_before_last = done_.text.size();
        before_last = counts();
      }
      if (count < places) {
        if (count > 0) done_.text += ',';
        if (object) ellipses = std::max(ellipses, name());
        value(depth + 1, object && depth == 1 && is_entries_);
      } else {
        skip_member();
      }
      ++count;
      space();
      if (json_[at_] == ',') ++at_;
    }
    ++at_;

    auto left_out = count - std::min(count, places);
    if (left_out > 0 && !noticed) {
      ++left_out;
      done_.text.resize(size_before_last);
      set_counts(before_last);
    }
    if (left_out > 0) ++(object ? done_.objects : done_.lists);
    if (left_out > 0 || noticed) mark_end(members, left_out, left_out < count, ellipses, noticed);
    done_.text += members.close;
  }

  [[nodiscard]] JsonCut counts() const {
    return {.strings = done_.strings,
            .lists = done_.lists,
            .objects = done_.objects,
            .deep = done_.deep,
            .mark_chars = done_.mark_chars};
  }
  void set_counts(const JsonCut& counts) {
    done_.strings = counts.strings;
    done_.lists = counts.lists;
    done_.objects = counts.objects;
    done_.deep = counts.deep;
    done_.mark_chars = counts.mark_chars;
  }

  std::string_view json_;
  const OutputLimits& limits_;
  const Notice& notice_;
  std::size_t at_ = 0;
  bool is_entries_ = false;  ///< The newest name was.
  JsonCut done_;
};

}  // namespace

JsonCut cut_json(std::string_view json, const OutputLimits& limits, const Notice& notice) {
  return Cutter(json, limits, notice).run();
}

}  // namespace watchdog
