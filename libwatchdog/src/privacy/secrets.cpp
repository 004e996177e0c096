// A scanner over the table of shapes. It runs for every text of every report. At nearly every place
// one lookup shows that no secret is there. At the other places the scanner compares the text with
// the few shapes that may be there.

#include "privacy/secrets.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace watchdog {
namespace {

bool is_of(char c, const Alphabet& alphabet) {
  if (is_digit(c)) return true;
  if (is_letter(c)) {
    return (!alphabet.is_hex || folded(c) <= 'f') && (!alphabet.is_caps || c <= 'Z');
  }
  return alphabet.signs.find(c) != std::string_view::npos;
}

constexpr Alphabet any_token = shapes::base64;

std::size_t token_end(std::string_view text, std::size_t from, const Alphabet& alphabet) {
  while (from < text.size() && is_of(text[from], alphabet)) ++from;
  return from;
}

Stretch token(std::string_view text, std::size_t at, const SecretShape& shape) {
  if (!text.substr(at).starts_with(shape.text) || !may_begin_word(text, at)) return {};
  const auto begin = at + shape.text.size();
  for (auto i = begin; i < begin + shape.after; ++i)
    if (i >= text.size() || !is_of(text[i], shape.alphabet)) return {};
  const bool is_random = looks_random(text.substr(begin, std::max<std::size_t>(shape.after, 40)));
  return is_random ? Stretch{at, token_end(text, begin + shape.after, any_token)} : Stretch{};
}

Stretch within(std::string_view text, std::size_t at, const SecretShape& shape) {
  if (!text.substr(at).starts_with(shape.text)) return {};
  auto begin = at;
  while (begin > 0 && at - begin < shape.before && is_of(text[begin - 1], shape.alphabet)) --begin;
  if (at - begin < shape.before) return {};
  const auto end = token_end(text, at + shape.text.size(), shape.alphabet);
  return end - at - shape.text.size() >= shape.after ? Stretch{begin, end} : Stretch{};
}

/// `8-10 digits:AA33 characters`.
Stretch telegram(std::string_view text, std::size_t at) {
  auto begin = at;
  while (begin > 0 && at - begin < 11 && is_digit(text[begin - 1])) --begin;
  if (at - begin < 8 || at - begin > 10) return {};
  const auto end = token_end(text, at + 1, shapes::url);
  return end - at > 30 ? Stretch{begin, end} : Stretch{};
}

/// Three parts with dots between; the first is a number in base64.
Stretch discord(std::string_view text, std::size_t at) {
  if (!may_begin_word(text, at)) return {};
  const auto part = [&](std::size_t from, std::size_t least, std::size_t most) -> std::size_t {
    const auto end = token_end(text.substr(0, from + most + 1), from, shapes::url);
    return end - from >= least && end - from <= most ? end : 0;
  };
  const auto id = part(at, 20, 30);
  if (id == 0 || id >= text.size() || text[id] != '.') return {};
  const auto time = part(id + 1, 5, 8);
  if (time == 0 || time >= text.size() || text[time] != '.') return {};
  const auto end = part(time + 1, 25, 50);
  return end == 0 ? Stretch{} : Stretch{at, end};
}

/// A JSON web token: two objects in base64url and a signature, or five parts; dots are between.
Stretch web_token(std::string_view text, std::size_t at) {
  if (!may_begin_word(text, at) || (at > 0 && (text[at - 1] == '-' || text[at - 1] == '_')))
    return {};
  auto end = at;
  for (int part = 0; part < 2; ++part) {
    const auto begin = end;
    end = token_end(text, begin, shapes::url);
    if (end - begin < (part == 0 ? 10 : 4) || end >= text.size() || text[end] != '.') return {};
    ++end;
  }
  return {at, token_end(text, end, any_token)};
}

/// `Bearer …`.
Stretch after_scheme(std::string_view text, std::size_t at, const SecretShape& shape) {
  if (!has_folded(text, at, shape.text)) return {};
  const auto begin = at + shape.text.size();
  const Stretch found{begin, token_end(text, begin, any_token)};
  const bool is_long = found.end - found.begin >= 8;
  return is_long && looks_random(text.substr(begin, std::min<std::size_t>(found.end - begin, 40)))
             ? found
             : Stretch{};
}

bool ends_url(char c) {
  return is_blank(c) || is_quote(c) || c == '<' || c == '>';
}

/// True for `:8080` before a path: no password.
bool is_port(std::string_view text, std::size_t colon) {
  auto at = colon + 1;
  while (at < text.size() && is_digit(text[at])) ++at;
  return at < text.size() && (text[at] == '/' || text[at] == '?' || text[at] == '#');
}

/// `://user:password@host`: the password, in which `@` and `/` may be as well.
/// `https://token@host`.
Stretch in_url(std::string_view text, std::size_t at) {
  if (text.substr(at, 3) != "://") return {};
  const auto end = std::min(text.size(), at + secret_context);
  auto colon = at + 3;
  for (; colon < end && text[colon] != ':'; ++colon) {
    const char c = text[colon];
    if (c == '@') {
      const auto user = text.substr(at + 3, colon - at - 3);
      const bool is_web = (at >= 4 && has_folded(text, at - 4, "http")) ||
                          (at >= 5 && has_folded(text, at - 5, "https"));
      const bool is_token = user.size() >= 20 || std::ranges::any_of(user, is_digit);
      return is_web && user.size() >= 8 && is_token ? Stretch{at + 3, colon} : Stretch{};
    }
    if (ends_url(c) || c == '/' || c == '?' || c == '#') return {};
  }
  if (colon >= end || is_port(text, colon)) return {};
  std::size_t last = 0;
  for (auto i = colon + 1; i < end && !ends_url(text[i]); ++i)
    if (text[i] == '@') last = i;
  if (last <= colon + 1) return {};
  const auto password = text.substr(colon + 1, last - colon - 1);
  if (!is_placeholder(password)) return {colon + 1, last};
  return {};
}

/// The line before `end`, which may be escaped as in JSON. REQUIRES: `from < end`.
Stretch line_before(std::string_view text, std::size_t from, std::size_t end) {
  if (text[end - 1] == '\n') {
    --end;
  } else if (end - from > 1 && text[end - 2] == '\\' && text[end - 1] == 'n') {
    end -= 2;
    while (end > from && text[end - 1] == '\\') --end;
  }
  auto begin = end;
  while (begin > from && is_of(text[begin - 1], shapes::base64)) {
    if (text[begin - 1] == 'n' && begin - 1 > from && text[begin - 2] == '\\') break;
    --begin;
  }
  return {begin, end};
}

/// The lines of a key whose begin was cut off, up to its footer at `at`.
Stretch end_of_key(std::string_view text, std::size_t from, std::size_t at) {
  const auto close = text.substr(0, at + 65).find("-----", at + 9);
  if (close == std::string_view::npos) return {};
  if (text.substr(at, close - at).find("PRIVATE KEY") == std::string_view::npos) return {};
  auto begin = at;
  for (bool is_last = true; begin > from; is_last = false) {
    const auto line = line_before(text, from, begin);
    const auto length = line.end - line.begin;
    if (length == 0 || (length < 40 && !is_last && line.begin > from)) break;
    begin = line.begin;
  }
  return begin < at ? Stretch{begin, close + 5} : Stretch{};
}

/// Returns whether a key follows its header, which ends at `at`; a text may only mention the
/// header.
bool is_key(std::string_view text, std::size_t at, std::size_t footer) {
  const auto body = text.substr(at, std::min<std::size_t>(text.size() - at, 120));
  if (skip(body, 0, " \r\n\\nrt\"") >= body.size()) return true;  // the text ends here
  for (const auto* word : {"Proc-Type:", "Version:", "Comment:", "Charset:"})
    if (body.find(word) != std::string_view::npos) return true;
  std::size_t run = 0;
  for (const char c : body.substr(0, 80)) {
    run = is_of(c, shapes::base64) ? run + 1 : 0;
    if (run >= 24) return true;
  }
  if (footer == std::string_view::npos || footer > at + 200) return false;
  const auto whole = text.substr(at, footer - at);
  return std::ranges::any_of(whole, is_alnum) && std::ranges::all_of(whole, [](char c) {
           return is_of(c, shapes::base64) || c == '\n' || c == '\r' || c == '\\' || c == '.';
         });
}

/// Remembers results of a scan of one text, so that it does not search a stretch twice.
struct Memory {
  /// Returns the first footer of a key at or after `from`, which never goes back.
  [[nodiscard]] std::size_t footer_after(std::string_view text, std::size_t from) {
    if (!is_searched || footer < from) footer = text.find("-----END ", from);
    is_searched = true;
    return footer;
  }

  NamedPrograms programs{};
  std::size_t footer = 0;
  bool is_searched = false;
};

Stretch pem(std::string_view text, std::size_t from, std::size_t at, Memory& memory) {
  if (text.substr(at, 9) == "-----END ") return end_of_key(text, from, at);
  if (text.substr(at, 11) != "-----BEGIN ") return {};
  const auto header_end = text.substr(0, at + 65).find("-----", at + 11);
  if (header_end == std::string_view::npos) return {};
  if (text.substr(at, header_end - at).find("PRIVATE KEY") == std::string_view::npos) return {};
  const auto footer = memory.footer_after(text, header_end);
  if (!is_key(text, header_end + 5, footer)) return {};
  if (footer == std::string_view::npos) return {at, text.size()};
  const auto end = text.find("-----", footer + 9);
  return {at, end == std::string_view::npos ? text.size() : end + 5};
}

/// The private lines of a key file of PuTTY: a number of base64 lines follows.
Stretch putty(std::string_view text, std::size_t at) {
  if (!has_folded(text, at, "private-lines:")) return {};
  auto begin = skip(text, at + 14, " 0123456789\\r\n");
  if (begin > at + 14 && begin < text.size() && text[begin] == 'n' && text[begin - 1] == '\\')
    ++begin;
  auto end = begin;
  while (end < text.size() && (is_of(text[end], shapes::base64) || text[end] == '\n' ||
                               text[end] == '\r' || text[end] == '\\'))
    ++end;
  return end - begin >= 16 ? Stretch{begin, end} : Stretch{};
}

/// `IDENTIFIED BY '…'` of SQL.
Stretch identified(std::string_view text, std::size_t at, const SecretShape& shape) {
  if (!has_folded(text, at, shape.text)) return {};
  const auto seen = quoted_at(text.substr(0, at + secret_context), at + shape.text.size());
  if (!seen || is_masked(text.substr(seen->begin, seen->end - seen->begin))) return {};
  return *quoted_at(text, at + shape.text.size());
}

/// Returns the secret of this shape at `at` that does not begin before `from`.
Stretch secret_at(std::string_view text, std::size_t from, std::size_t at, const SecretShape& shape,
                  Memory& memory) {
  switch (shape.kind) {
    case SecretKind::chosen:
    case SecretKind::generated:
    case SecretKind::cookie:
    case SecretKind::header:
    case SecretKind::query:
      return named_secret(text, at, shape);
    case SecretKind::attached:
    case SecretKind::argument:
    case SecretKind::pair:
    case SecretKind::jar:
      return flag_secret(text, at, shape, memory.programs);
    case SecretKind::token:
      return token(text, at, shape);
    case SecretKind::within:
      return within(text, at, shape);
    case SecretKind::discord:
      return discord(text, at);
    case SecretKind::identified:
      return identified(text, at, shape);
    case SecretKind::netrc:
      return netrc_secret(text, at);
    case SecretKind::pem:
      return pem(text, from, at, memory);
    case SecretKind::putty:
      return putty(text, at);
    case SecretKind::scheme:
      return after_scheme(text, at, shape);
    case SecretKind::telegram:
      return telegram(text, at);
    case SecretKind::url:
      return in_url(text, at);
    case SecretKind::web_token:
      return web_token(text, at);
  }
  return {};
}

/// Says which shapes may show at a place, by its first three characters. Of each five bits count:
/// a letter's case does not, and a sign that is taken for a letter costs a comparison.
class Beginnings {
 public:
  using Key = std::uint32_t;
  static constexpr Key key_max = 1U << 15U;

  constexpr Beginnings() {
    for (std::size_t i = 0; i < shapes::all.size(); ++i) add(static_cast<std::uint16_t>(i));
  }

  /// Returns the key of `before` with `c` added. Only the last three characters count.
  [[nodiscard]] static constexpr Key longer(Key before, char c) noexcept {
    return before << 5U | (static_cast<unsigned char>(c) & 31U);
  }
  [[nodiscard]] static constexpr Key key(Key whole) noexcept { return whole & (key_max - 1); }
  /// Returns the first place from `at` on where a shape may begin, and its key. Returns the text's
  /// end if there is no such place.
  [[nodiscard]] std::pair<std::size_t, Key> find(std::string_view text,
                                                 std::size_t at) const noexcept {
    if (at + 2 >= text.size()) return {text.size(), 0};
    Key longer_key = longer(longer(0, text[at]), text[at + 1]);
    const char* next = text.data() + at + 2;
    for (const char* const end = text.data() + text.size(); next != end; ++next) {
      longer_key = longer(longer_key, *next);
      if (has(key(longer_key)))
        return {static_cast<std::size_t>(next - text.data()) - 2, key(longer_key)};
    }
    return {text.size(), 0};
  }
  /// Calls `look` with each shape until that returns true.
  template <class Look>
  bool any_of(Key key, const Look& look) const {
    for (auto at = first_[key]; at != 0; at = entries_[at].next)
      if (look(shapes::all[entries_[at].shape])) return true;
    return false;
  }

 private:
  [[nodiscard]] bool has(Key key) const noexcept {
    return (known_[key / 64] >> key % 64 & 1U) != 0;
  }

  struct Entry {
    std::uint16_t shape = 0;
    std::uint16_t next = 0;
  };

  constexpr void add(std::uint16_t shape) {
    const auto& row = shapes::all[shape];
    if (row.kind == SecretKind::discord)  // numbers of 17 digits and more in base64
      return add(shape, "MNO", "DTjz", "AEIMQUYcgk");
    const auto text = row.text.substr(row.text[0] == '|' ? 1 : 0);
    const auto first = text[0] == ' ' ? std::string_view(" \t\n\"'") : text.substr(0, 1);
    const auto third = text.size() > 2
                           ? text.substr(2, 1)
                           : std::string_view("0123456789abcdefghijklmnopqrstuvwxyz~._");
    add(shape, first, text.substr(1, 1), third);
  }
  constexpr void add(std::uint16_t shape, std::string_view firsts, std::string_view seconds,
                     std::string_view thirds) {
    for (const char first : firsts)
      for (const char second : seconds)
        for (const char third : thirds)
          add(shape, key(longer(longer(longer(0, first), second), third)));
  }
  constexpr void add(std::uint16_t shape, Key key) {
    if (first_[key] != 0 && entries_[first_[key]].shape == shape) return;
    known_[key / 64] |= std::uint64_t{1} << key % 64;
    entries_[used_] = {shape, first_[key]};
    first_[key] = used_++;
  }

  std::array<std::uint64_t, key_max / 64> known_{};
  std::array<std::uint16_t, key_max> first_{};  ///< Of each key; 0: none.
  std::array<Entry, 1'024> entries_{};
  std::uint16_t used_ = 1;
};
constexpr Beginnings beginnings;

}  // namespace

bool may_begin_word(std::string_view text, std::size_t at) {
  if (at == 0 || !is_alnum(text[at - 1])) return true;
  const auto before = [&](std::size_t back) { return at >= back ? text[at - back] : ' '; };
  if (before(2) == '\\') return std::string_view("nrtbf").find(before(1)) != std::string_view::npos;
  if (before(3) == '%') return true;
  if (before(6) == '\\' && before(5) == 'u') return true;
  if (before(1) != 'm') return false;
  auto colour = at - 1;
  while (colour > 0 && at - colour < 16 && (is_digit(text[colour - 1]) || text[colour - 1] == ';'))
    --colour;
  return colour > 0 && text[colour - 1] == '[';
}

bool looks_random(std::string_view text) {
  bool has_digit = false, has_small = false, has_capital = false;
  std::size_t run = 0, longest = 0;
  for (const char c : text) {
    if (!is_alnum(c) && c != '_' && c != '-' && c != '+' && c != '/' && c != '.' && c != '=') break;
    has_digit |= is_digit(c) || c == '=' || c == '+';
    has_small |= c >= 'a' && c <= 'z';
    has_capital |= c >= 'A' && c <= 'Z';
    run = is_alnum(c) ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  return has_digit || (has_small && has_capital) || longest >= 16;
}

bool begins_key(std::string_view line) {
  const auto begin = line.rfind("-----BEGIN ");
  if (begin == std::string_view::npos) return false;
  const auto header = line.substr(begin);
  return header.substr(0, 60).find("PRIVATE KEY") != std::string_view::npos &&
         header.find("-----END ") == std::string_view::npos;
}

std::vector<Stretch> key_parts(std::string_view line) {
  constexpr std::size_t run_min = 24;
  std::vector<Stretch> parts;
  for (std::size_t at = 0; at < line.size(); ++at) {
    const auto end = token_end(line, at, shapes::base64);
    if (end - at >= run_min) parts.push_back({at, end});
    at = end;
  }
  const auto begin = skip(line, 0, " \t");
  const auto end = token_end(line, begin, shapes::base64);
  if (parts.empty() && end > begin && skip(line, end, " \t\r\\n") == line.size())
    parts.push_back({begin, end});
  return parts;
}

bool is_masked(std::string_view value) {
  return value == secret_mask.substr(0, value.size()) || value.starts_with("[redacted-");
}

std::vector<Stretch> well_known_secrets(std::string_view text) {
  std::vector<Stretch> all;
  std::vector<Stretch> open;  // those that do not end before the last place; they are few
  std::size_t closed = 0;     // the end of the others
  Memory memory;
  for (std::size_t from_here = 0; true;) {
    const auto [at, key] = beginnings.find(text, from_here);
    if (at == text.size()) break;
    from_here = at + 1;
    // A found secret is not searched again. It may begin later than its mark, and others may be
    // between the two.
    bool is_within = false;
    for (const auto& found : open) {
      if (found.end <= at) {
        closed = std::max(closed, found.end);
      } else if (found.begin <= at) {
        is_within = true;
        from_here = std::max(from_here, found.end);
      }
    }
    std::erase_if(open, [at = at](const Stretch& found) { return found.end <= at; });
    if (is_within) continue;
    Stretch found;
    const bool is_there = beginnings.any_of(key, [&, at = at](const SecretShape& shape) {
      found = secret_at(text, closed, at, shape, memory);
      return found.end > found.begin &&
             !is_masked(text.substr(found.begin, found.end - found.begin));
    });
    if (!is_there) continue;
    all.push_back(found);
    open.push_back(found);
  }
  add_query_secrets(text, all);
  std::ranges::sort(all, {}, &Stretch::begin);
  std::size_t kept = 0;
  for (const auto& found : all) {
    if (kept > 0 && found.begin < all[kept - 1].end) {
      all[kept - 1].end = std::max(all[kept - 1].end, found.end);
    } else {
      all[kept++] = found;
    }
  }
  all.resize(kept);
  return all;
}

}  // namespace watchdog
