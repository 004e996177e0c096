// Replaces what differs between two runs of the same thing: times, durations, labelled ids,
// random parts of temporary paths, UUIDs, addresses, colours. One pass looks up for each byte
// whether a variable part may begin there; within a word none does. The first two letters of a
// word select the few names that it may be. Bare digits stay, because a falling number is
// progress.
#include "judge/variation.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace watchdog {
namespace {

/// A part of a text that varies; 0: it does not.
struct Varying {
  std::size_t length = 0;
  char stand_in = '\0';  ///< Its replacement, in brackets; 0: none.
};

enum class Value : std::uint8_t {
  process,   ///< One number, or several with commas.
  duration,  ///< A number, behind a colon or an equals sign.
  time,      ///< A long number, likewise.
  id         ///< A word with a digit in it.
};

struct Label {
  /// In lower case. A space stands for ' ', '_', '-' or nothing, as in "request id", "requestId".
  std::string_view words;
  Value value;
};
constexpr std::array labels{
    Label{"pid", Value::process},
    Label{"pids", Value::process},
    Label{"ppid", Value::process},
    Label{"pgid", Value::process},
    Label{"tid", Value::process},
    Label{"process id", Value::process},
    Label{"process group", Value::process},
    Label{"thread id", Value::process},
    Label{"duration", Value::duration},
    Label{"duration ms", Value::duration},
    Label{"duration s", Value::duration},
    Label{"duration seconds", Value::duration},
    Label{"total duration ms", Value::duration},
    Label{"elapsed", Value::duration},
    Label{"elapsed ms", Value::duration},
    Label{"elapsed seconds", Value::duration},
    Label{"elapsed time", Value::duration},
    Label{"execution time", Value::duration},
    Label{"latency", Value::duration},
    Label{"latency ms", Value::duration},
    Label{"time ms", Value::duration},
    Label{"took", Value::duration},
    Label{"took ms", Value::duration},
    Label{"wall time", Value::duration},
    Label{"timestamp", Value::time},
    Label{"timestamp ms", Value::time},
    Label{"time", Value::time},
    Label{"ts", Value::time},
    Label{"date", Value::time},
    Label{"created", Value::time},
    Label{"created at", Value::time},
    Label{"updated at", Value::time},
    Label{"started at", Value::time},
    Label{"finished at", Value::time},
    Label{"chunk id", Value::id},
    Label{"request id", Value::id},
    Label{"req id", Value::id},
    Label{"response id", Value::id},
    Label{"trace id", Value::id},
    Label{"span id", Value::id},
    Label{"correlation id", Value::id},
};

/// Ids that say what they are of.
constexpr std::array<std::string_view, 8> id_prefixes{"req_", "resp_",  "msg_",      "call_",
                                                      "run_", "toolu_", "chatcmpl-", "fc_"};
constexpr std::array<std::string_view, 12> months{"jan", "feb", "mar", "apr", "may", "jun",
                                                  "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 6> temporary_roots{
    "/tmp/", "/var/tmp/", "/private/tmp/", "/dev/shm/", "/var/folders/", "/private/var/folders/"};
constexpr std::array<std::string_view, 18> units{
    "s",   "ms",   "us",     "ns",      "\xC2\xB5s", "sec", "secs", "second", "seconds",
    "min", "mins", "minute", "minutes", "h",         "hr",  "hrs",  "hour",   "hours"};

constexpr bool is_figure(char c) {
  return c >= '0' && c <= '9';
}
constexpr char small(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}
constexpr bool is_hex(char c) {
  return is_figure(c) || (small(c) >= 'a' && small(c) <= 'f');
}
constexpr bool is_letter(char c) {
  return small(c) >= 'a' && small(c) <= 'z';
}
constexpr auto word_bytes = [] {
  std::array<bool, 256> table{};
  for (std::size_t byte = 0; byte < table.size(); ++byte) {
    const auto c = static_cast<char>(byte);
    table[byte] = is_letter(c) || is_figure(c) || c == '_' || byte >= 0x80;
  }
  return table;
}();
/// Letters, digits and every byte of a character beyond ASCII.
constexpr bool in_word(char c) {
  return word_bytes[static_cast<unsigned char>(c)];
}
constexpr bool is_blank(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

/// Returns whether something variable may begin with the byte.
constexpr auto may_begin = [] {
  std::array<bool, 256> table{};
  const auto allow = [&](char c) {
    table[static_cast<unsigned char>(c)] = true;
    if (is_letter(c)) table[static_cast<unsigned char>(c - 'a' + 'A')] = true;
  };
  for (const char c : {'\x1b', '/', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c',
                       'd', 'e', 'f'})
    allow(c);
  for (const auto& label : labels) allow(label.words.front());
  for (const auto prefix : id_prefixes) allow(prefix.front());
  for (const auto month : months) allow(month.front());
  return table;
}();

/// A set of names, one bit for each.
struct NameSet {
  std::uint64_t labels = 0;
  std::uint32_t months = 0;
  std::uint32_t ids = 0;

  constexpr NameSet operator&(const NameSet& other) const {
    return {labels & other.labels, months & other.months, ids & other.ids};
  }
};
static_assert(labels.size() <= 64 && months.size() <= 32 && id_prefixes.size() <= 32);

/// The names that have a certain letter at that place, in either case.
constexpr std::array<NameSet, 256> names_with(std::size_t place) {
  std::array<NameSet, 256> table{};
  const auto each = [&](char letter, auto put) {
    put(table[static_cast<unsigned char>(letter)]);
    put(table[static_cast<unsigned char>(letter - 'a' + 'A')]);
  };
  for (std::size_t i = 0; i < labels.size(); ++i)
    each(labels[i].words[place], [&](NameSet& set) { set.labels |= std::uint64_t{1} << i; });
  for (std::size_t i = 0; i < months.size(); ++i)
    each(months[i][place], [&](NameSet& set) { set.months |= 1U << i; });
  for (std::size_t i = 0; i < id_prefixes.size(); ++i)
    each(id_prefixes[i][place], [&](NameSet& set) { set.ids |= 1U << i; });
  return table;
}
constexpr auto by_first_letter = names_with(0);
constexpr auto by_second_letter = names_with(1);

/// Looks at what begins at a place of a text.
class Look {
 public:
  Look(std::string_view text, std::size_t at) : text_(text), at_(at) {}

  /// Returns true for the letter of `\n` and its like in JSON: no part of the word behind it.
  [[nodiscard]] bool is_escaped() const {
    const char c = text_[at_];
    return (c == 'n' || c == 't' || c == 'r') && at_ > 0 && text_[at_ - 1] == '\\';
  }
  [[nodiscard]] Varying varying() const {
    const char c = text_[at_];
    if (c == '\x1b') return {colour(), '\0'};
    if (c == '/') return {temporary_path(), '/'};
    if (at_ > 0 && in_word(text_[at_ - 1]) && !Look(text_, at_ - 1).is_escaped()) return {};
    if (const auto length = uuid(); length != 0) return {length, 'u'};
    if (is_figure(c)) {
      if (const auto length = address(); length != 0) return {length, 'x'};
      if (const auto length = time(); length != 0) return {length, 't'};
      return {duration(), 'd'};
    }
    if (at_ + 1 >= text_.size()) return {};
    const auto names = by_first_letter[static_cast<unsigned char>(c)] &
                       by_second_letter[static_cast<unsigned char>(text_[at_ + 1])];
    if (names.months != 0) {
      if (const auto length = day_and_time(); length != 0) return {length, 't'};
    }
    if (names.ids != 0) {
      if (const auto length = named_id(); length != 0) return {length, 'i'};
    }
    for (auto left = names.labels; left != 0; left &= left - 1) {
      const auto& label = labels[static_cast<std::size_t>(std::countr_zero(left))];
      const auto end = after_label(label.words);
      if (end == 0) continue;
      if (const auto length = value_end(end, label.value); length != 0) return {length - at_, 'v'};
    }
    return {};
  }

 private:
  [[nodiscard]] bool is(std::size_t from, char c) const {
    return from < text_.size() && text_[from] == c;
  }
  [[nodiscard]] bool ends_word(std::size_t from) const {
    return from >= text_.size() || !in_word(text_[from]);
  }
  [[nodiscard]] std::size_t figures(std::size_t from, std::size_t max) const {
    std::size_t count = 0;
    while (count < max && from + count < text_.size() && is_figure(text_[from + count])) ++count;
    return count;
  }
  [[nodiscard]] std::size_t hex(std::size_t from, std::size_t max) const {
    std::size_t count = 0;
    while (count < max && from + count < text_.size() && is_hex(text_[from + count])) ++count;
    return count;
  }
  [[nodiscard]] std::size_t colour() const {
    if (!is(at_ + 1, '[')) return 0;
    auto end = at_ + 2;
    while (end < text_.size() && (is_figure(text_[end]) || text_[end] == ';')) ++end;
    return std::min(end + 1, text_.size()) - at_;
  }
  [[nodiscard]] std::size_t address() const {
    const auto count =
        is(at_, '0') && (is(at_ + 1, 'x') || is(at_ + 1, 'X')) ? hex(at_ + 2, 64) : 0;
    return count > 0 ? 2 + count : 0;
  }
  [[nodiscard]] std::size_t uuid() const {
    const bool is_one = hex(at_, 9) == 8 && is(at_ + 8, '-') && hex(at_ + 9, 5) == 4 &&
                        is(at_ + 13, '-') && hex(at_ + 14, 5) == 4 && is(at_ + 18, '-') &&
                        hex(at_ + 19, 5) == 4 && is(at_ + 23, '-') && hex(at_ + 24, 13) == 12;
    return is_one ? 36 : 0;
  }

  /// hh:mm:ss, with a fraction and a zone where they follow; or hh:mm, where that will do.
  [[nodiscard]] std::size_t clock(std::size_t from, bool seconds = true) const {
    if (figures(from, 3) != 2 || !is(from + 2, ':') || figures(from + 3, 3) != 2) return 0;
    std::size_t end = from + 5;
    if (is(end, ':') && figures(end + 1, 3) == 2) {
      end += 3;
    } else if (seconds) {
      return 0;
    }
    if ((is(end, '.') || is(end, ',')) && figures(end + 1, 9) > 0) end += 1 + figures(end + 1, 9);
    if (is(end, 'Z') || is(end, 'z')) return end + 1;
    if ((is(end, '+') || is(end, '-')) && figures(end + 1, 3) == 2) {
      const auto minutes = is(end + 3, ':') ? end + 4 : end + 3;
      if (figures(minutes, 3) == 2) return minutes + 2;
    }
    return end;
  }
  [[nodiscard]] std::size_t time() const {
    if (const auto end = clock(at_); end != 0) return end - at_;
    const auto count = figures(at_, 15);
    if (count == 4 && is(at_ + 4, '-') && figures(at_ + 5, 3) == 2 && is(at_ + 7, '-') &&
        figures(at_ + 8, 3) == 2 && at_ + 10 < text_.size() &&
        (small(text_[at_ + 10]) == 't' || text_[at_ + 10] == ' ')) {
      if (const auto end = clock(at_ + 11, false); end != 0) return end - at_;
    }
    if (count == 8 && (is(at_ + 8, 'T') || is(at_ + 8, '_') || is(at_ + 8, '-')) &&
        figures(at_ + 9, 7) == 6) {  // 20261122T102739Z
      const auto end = at_ + 15;
      return (is(end, 'Z') ? end + 1 : end) - at_;
    }
    // Since 1970: milliseconds, or seconds with a fraction.
    if (count == 13 && is(at_, '1') && ends_word(at_ + count)) return count;
    if (count == 10 && is(at_, '1') && is(at_ + 10, '.') && figures(at_ + 11, 10) >= 3)
      return 11 + figures(at_ + 11, 9);
    return 0;
  }
  /// Nov 22 10:27, as `ls` and `date` write it.
  [[nodiscard]] std::size_t day_and_time() const {
    if (at_ + 12 > text_.size() ||
        std::none_of(months.begin(), months.end(), [&](auto month) { return begins(month); }))
      return 0;
    auto end = at_ + 3;
    while (end < at_ + 5 && is(end, ' ')) ++end;
    const auto day = figures(end, 3);
    if (end == at_ + 3 || day == 0 || day > 2 || !is(end + day, ' ')) return 0;
    end = clock(end + day + 1, false);
    return end == 0 ? 0 : end - at_;
  }

  /// Numbers with their units: `41 ms`, `0m0.043s`, `1m 3s`. An "m" alone may be metres.
  [[nodiscard]] std::size_t duration() const {
    std::size_t whole = 0;
    auto at = at_;
    for (int parts = 0; parts < 4 && is_figure_at(at); ++parts) {
      auto end = at + figures(at, 15);
      if (is(end, '.') && figures(end + 1, 9) > 0) end += 1 + figures(end + 1, 9);
      if (is(end, 'm') || is(end, 'h')) {
        const auto next = is(end + 1, ' ') ? end + 2 : end + 1;
        if (is_figure_at(next)) {
          at = next;
          continue;
        }
      }
      if (is(end, ' ')) ++end;
      auto unit = end;
      while (unit < text_.size() && unit - end < 8 && in_word(text_[unit]) &&
             !is_figure(text_[unit]))
        ++unit;
      std::array<char, 8> word{};
      std::transform(text_.begin() + static_cast<std::ptrdiff_t>(end),
                     text_.begin() + static_cast<std::ptrdiff_t>(unit), word.begin(), small);
      const bool is_unit =
          unit > end &&
          std::ranges::find(units, std::string_view(word.data(), unit - end)) != units.end();
      if (!is_unit || (!ends_word(unit) && !is_figure_at(unit))) break;
      whole = unit - at_;
      at = is(unit, ' ') && is_figure_at(unit + 1) ? unit + 1 : unit;
    }
    return whole;
  }
  [[nodiscard]] bool is_figure_at(std::size_t at) const {
    return at < text_.size() && is_figure(text_[at]);
  }

  [[nodiscard]] bool begins(std::string_view word) const {
    return text_.size() - at_ >= word.size() &&
           std::equal(word.begin(), word.end(), text_.begin() + static_cast<std::ptrdiff_t>(at_),
                      [](char a, char b) { return a == small(b); });
  }
  /// The end of the token that begins at `from`. A token has at least `least` letters and contains
  /// a digit. Returns `from` where there is no token.
  [[nodiscard]] std::size_t token_end(std::size_t from, std::size_t least) const {
    auto end = from;
    bool has_figure = false;
    for (; end < text_.size() && end - from < 128 && (in_word(text_[end]) || text_[end] == '-');
         ++end)
      has_figure = has_figure || is_figure(text_[end]);
    return has_figure && end - from >= least ? end : from;
  }
  [[nodiscard]] std::size_t named_id() const {
    for (const auto prefix : id_prefixes) {
      if (!begins(prefix)) continue;
      const auto from = at_ + prefix.size();
      const auto end = token_end(from, 8);
      return end == from ? 0 : end - at_;
    }
    return 0;
  }

  /// Returns the end of the label's words if they begin here; else 0.
  [[nodiscard]] std::size_t after_label(std::string_view words) const {
    auto at = at_;
    for (const char letter : words) {
      if (letter == ' ') {
        if (is(at, ' ') || is(at, '_') || is(at, '-')) ++at;
        continue;
      }
      if (at >= text_.size() || small(text_[at]) != letter) return 0;
      ++at;
    }
    return ends_word(at) ? at : 0;
  }
  /// Behind the value that follows a label; 0: none of that kind does.
  [[nodiscard]] std::size_t value_end(std::size_t from, Value kind) const {
    auto at = from;
    bool is_assigned = false;
    for (; at < text_.size() && at - from < 8; ++at) {
      const char c = text_[at];
      is_assigned = is_assigned || c == ':' || c == '=';
      if (!is_blank(c) && c != ':' && c != '=' && c != '"' && c != '\\' && c != '#') break;
    }
    if (at == from) return 0;
    if (kind == Value::id) {
      const auto end = token_end(at, 4);
      return end == at ? 0 : end;
    }
    if (kind != Value::process && !is_assigned) return 0;
    auto count = figures(at, 20);
    if (count == 0 || (kind == Value::time && count < 9)) return 0;
    auto end = at + count;
    if (kind == Value::process) {
      while (is(end, ',')) {
        const auto next = is(end + 1, ' ') ? end + 2 : end + 1;
        count = figures(next, 20);
        if (count == 0) break;
        end = next + count;
      }
    } else if (is(end, '.') && figures(end + 1, 20) > 0) {
      end += 1 + figures(end + 1, 20);
    }
    return ends_word(end) || kind == Value::duration ? end : 0;
  }

  /// A temporary path up to its random part: /tmp/tmpab12cd34/x.py but for "/x.py".
  [[nodiscard]] std::size_t temporary_path() const {
    for (const auto root : temporary_roots) {
      if (!begins(root)) continue;
      auto end = at_;
      std::size_t from = at_ + root.size();
      // /var/folders/xx/yyyy/T/…; /tmp/pytest-of-u/pytest-12/…
      const bool is_deep =
          root.ends_with("folders/") || text_.substr(from).starts_with("pytest-of-");
      for (int parts = is_deep ? 4 : 1; parts > 0; --parts) {
        const auto stop = part_end(from);
        if (stop == from) break;
        if (is_random(text_.substr(from, stop - from))) end = random_end(from, stop);
        if (!is(stop, '/')) break;
        from = stop + 1;
      }
      if (end > at_) return end - at_;
    }
    return 0;
  }
  [[nodiscard]] std::size_t part_end(std::size_t from) const {
    while (from < text_.size() &&
           (in_word(text_[from]) || text_[from] == '.' || text_[from] == '-' || text_[from] == '+'))
      ++from;
    return from;
  }
  /// Without the extension: that is not random.
  [[nodiscard]] std::size_t random_end(std::size_t from, std::size_t stop) const {
    const auto dot = text_.substr(from, stop - from).rfind('.');
    if (dot == std::string_view::npos || dot < 5) return stop;
    const auto extension = stop - from - dot - 1;
    return extension >= 1 && extension <= 5 ? from + dot : stop;
  }
  static bool is_random(std::string_view part) {
    if (part.starts_with("pytest-") || part == "T") return true;
    if (part.starts_with("tmp.") && part.size() >= 9) return true;
    const auto stem = part.substr(0, part.find('.'));
    if (stem.starts_with("tmp") && stem.size() == 11) return true;  // as Python makes them
    for (std::size_t at = 0; at < part.size();) {
      auto end = at;
      while (end < part.size() && (is_letter(part[end]) || is_figure(part[end]))) ++end;
      if (is_mixed(part.substr(at, end - at))) return true;
      at = end + 1;
    }
    return false;
  }
  /// At least six letters and digits that no person mixes so: `test10` and `CamelCase` are names.
  static bool is_mixed(std::string_view run) {
    if (run.size() < 5) return false;
    std::size_t trailing = 0;
    while (trailing < run.size() && is_figure(run[run.size() - 1 - trailing])) ++trailing;
    if (trailing >= 5) return true;
    if (run.size() < 6) return false;
    int changes = trailing > 0 ? 1 : 0;
    const auto body = run.substr(0, run.size() - trailing);
    for (std::size_t at = 1; at < body.size(); ++at) {
      const auto kind = [](char c) { return is_figure(c) ? 0 : c >= 'a' && c <= 'z' ? 1 : 2; };
      const auto before = kind(body[at - 1]);
      const auto now = kind(body[at]);
      if (before != now && !(before == 2 && now == 1)) ++changes;  // a capital begins a word
    }
    return changes >= 2;
  }

  std::string_view text_;
  std::size_t at_;
};

}  // namespace

std::string without_variation(std::string_view text) {
  // A replacement has three characters, and replaces two or more.
  std::string normal(text.size() + text.size() / 2 + 1, '\0');
  char* end = normal.data();
  const auto spaced = [&] { return end == normal.data() || end[-1] == ' '; };
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (is_blank(c)) {
      if (!spaced()) *end++ = ' ';
      ++at;
      continue;
    }
    const Look look(text, at);
    const auto found = may_begin[static_cast<unsigned char>(c)] ? look.varying() : Varying{};
    if (found.length == 0) {
      *end++ = c;
      ++at;
      // Nothing varying begins within a word, but behind the letter of `\n` one may.
      if (in_word(c) && !look.is_escaped())
        while (at < text.size() && in_word(text[at])) *end++ = text[at++];
      continue;
    }
    if (found.stand_in != '\0') {
      for (const char part : {'<', found.stand_in, '>'}) *end++ = part;
    }
    at += found.length;
  }
  if (end != normal.data() && end[-1] == ' ') --end;
  normal.resize(static_cast<std::size_t>(end - normal.data()));
  return normal;
}

}  // namespace watchdog
