// Finds values that are secret by their names, as shells, JSON, YAML, XML, URLs, programs and
// people write them. A value without quotes extends to the next blank, quote or closing bracket: a
// password may have any other character. A variable, a call or a type in a value's place stays, and
// so do the placeholders of texts about secrets.

#include <algorithm>
#include <array>
#include <optional>

#include "privacy/secrets.h"

namespace watchdog {
namespace {

constexpr std::size_t name_chars_max = 64;
/// A value that is longer is not looked at more closely.
constexpr std::size_t harmless_bytes_max = 96;
static_assert(harmless_bytes_max + name_chars_max < deciding_bytes);

bool is_name_char(char c) {
  return is_alnum(c) || c == '_' || c == '-' || c == '.' || c == '$';
}

/// A name, and the text before it.
struct Name {
  std::size_t begin = 0;
  std::size_t end = 0;
  SecretKind kind{};
  bool is_caps = false;  ///< As the variables of an environment are.
  bool is_flag = false;  ///< `--name`.
  Surroundings within = Surroundings::text;
};

/// Returns the end of the name that `pattern` describes; 0: it is not here.
std::size_t match(std::string_view text, std::size_t at, std::string_view pattern) {
  if (pattern.starts_with('|')) {
    const bool is_hump = at > 0 && text[at] <= 'Z' && text[at - 1] >= 'a';
    if (at > 0 && is_letter(text[at - 1]) && !is_hump && !may_begin_word(text, at)) return 0;
    pattern.remove_prefix(1);
  }
  for (const char expected : pattern) {
    const bool is_there = at < text.size();
    if (expected == '?') {
      if (is_there && (text[at] == '_' || text[at] == '-' || text[at] == ' ')) ++at;
    } else if (is_there && folded(text[at]) == expected) {
      ++at;
    } else {
      return 0;
    }
  }
  return at;
}

/// Returns whether `?` is in the word before `at`.
bool is_in_query(std::string_view text, std::size_t at) {
  for (const auto least = at - std::min(at, secret_context); at > least; --at) {
    if (text[at - 1] == '?') return true;
    if (is_blank(text[at - 1]) || is_quote(text[at - 1])) return false;
  }
  return false;
}

/// Of a name that begins at `begin`.
Surroundings surroundings_before(std::string_view text, std::size_t begin) {
  const char before = begin > 0 ? text[begin - 1] : '\n';
  if (before == '?' || before == '&' || (begin >= 5 && text.substr(begin - 5, 5) == "&amp;") ||
      (before == '\\' && text.substr(begin, 5) == "u0026")) {
    return Surroundings::query;
  }
  return before == ';' && is_in_query(text, begin - 1) ? Surroundings::semicolon_query
                                                       : Surroundings::text;
}

Name name_around(std::string_view text, std::size_t at, std::size_t end, SecretKind kind) {
  Name name{.begin = at, .end = end, .kind = kind};
  while (name.begin > 0 && at - name.begin < name_chars_max && is_name_char(text[name.begin - 1]))
    --name.begin;
  const auto before = [&] { return name.begin > 0 ? text[name.begin - 1] : '\n'; };
  if (before() == '\\' && text.substr(name.begin, 5) == "u0026") {
    name.begin += 5;
    name.within = Surroundings::query;
  } else if (before() == '\\' && name.begin < at &&
             std::string_view("nrt").find(text[name.begin]) != std::string_view::npos) {
    ++name.begin;  // in JSON a line's end is `\n`
  } else {
    auto whole = name.begin;  // characters of a name in a query may be encoded
    while (whole > 0 && at - whole < name_chars_max &&
           (is_name_char(text[whole - 1]) || text[whole - 1] == '%')) {
      --whole;
    }
    name.within = surroundings_before(text, whole);
    const auto is_hex = [&](std::size_t of) {
      return is_digit(text[of]) || (folded(text[of]) >= 'a' && folded(text[of]) <= 'f');
    };
    if (before() == '%' && name.begin + 2 <= at && is_hex(name.begin) && is_hex(name.begin + 1))
      name.begin += 2;
    if (has_folded(text, end, "%3d")) name.within = Surroundings::encoded_query;
  }
  const auto word = text.substr(name.begin, end - name.begin);
  name.is_caps = std::ranges::none_of(word, [](char c) { return c >= 'a' && c <= 'z'; });
  name.is_flag = word.starts_with('-');
  return name;
}

/// Returns whether a line may begin at `at`: nothing, or `name=`, `name:`.
bool begins_line(std::string_view text, std::size_t at) {
  if (at >= text.size() || is_blank(text[at]) || is_quote(text[at]) || text[at] == '\\')
    return true;
  const auto begin = at;
  while (at < text.size() && at - begin < name_chars_max && is_name_char(text[at])) ++at;
  return at > begin && at < text.size() && (text[at] == '=' || text[at] == ':');
}

/// The begin of a quoted text.
struct Quote {
  char mark = '"';
  std::size_t escapes = 0;  ///< Backslashes before it: it is within a quoted text itself.
  std::size_t begin = 0;    ///< After the mark.
  bool is_triple = false;
};

/// `"`, `\"`, `b'`, `$'`, `"""` and such.
std::optional<Quote> quote_at(std::string_view text, std::size_t at) {
  constexpr std::string_view letters = "bBrRuUfFL@$";
  for (int i = 0; i < 2 && at < text.size() && letters.find(text[at]) != letters.npos; ++i) ++at;
  Quote quote;
  const auto begin = at;
  at = skip(text, at, "\\");
  if (at >= text.size() || !is_quote(text[at])) return std::nullopt;
  quote.mark = text[at];
  quote.escapes = at - begin;
  quote.is_triple = quote.escapes == 0 && at + 2 < text.size() && text[at + 1] == quote.mark &&
                    text[at + 2] == quote.mark;
  quote.begin = at + (quote.is_triple ? 3 : 1);
  return quote;
}

/// Returns the end of the quoted text. A quote within it has more backslashes before it than its
/// own.
std::size_t quoted_end(std::string_view text, const Quote& quote) {
  if (quote.is_triple)
    return std::min(text.find(std::string_view(text.data() + quote.begin - 3, 3), quote.begin),
                    text.size());
  std::size_t backslashes = 0;
  for (auto at = quote.begin; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\n') return at;
    if (c == '\\') {
      ++backslashes;
      continue;
    }
    if (c == quote.mark) {
      if (backslashes < quote.escapes) return at - backslashes;  // of the text around it
      if ((backslashes - quote.escapes) % (2 * (quote.escapes + 1)) == 0) {
        const bool is_doubled = quote.escapes == 0 && backslashes == 0 && at > quote.begin &&
                                at + 1 < text.size() && text[at + 1] == quote.mark;
        if (!is_doubled) return at - quote.escapes;
        ++at;
      }
    }
    backslashes = 0;
  }
  return text.size();
}

/// Returns whether a quote after `password:` ends the surrounding text, as in `"Password: "`.
bool closes_text(std::string_view text, const Name& name, const Quote& quote) {
  if (quote.begin < text.size() && !is_blank(text[quote.begin]) &&
      std::string_view(",;)]}>+.:\\").find(text[quote.begin]) == std::string_view::npos) {
    return false;
  }
  const auto from = name.begin - std::min(name.begin, secret_context);
  auto before = text.substr(from, name.begin - from);
  if (const auto line = before.rfind('\n'); line != before.npos) before.remove_prefix(line);
  return std::ranges::count(before, quote.mark) % 2 == 1;
}

bool is_identifier(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, [](char c) {
    return is_letter(c) || c == '_' || c == '.' || c == ':' || c == '-' || c == '>' || c == '$';
  });
}

bool holds_folded(std::string_view text, std::string_view lower) {
  for (std::size_t at = 0; at + lower.size() <= text.size(); ++at)
    if (has_folded(text, at, lower)) return true;
  return false;
}

bool names_secret(std::string_view word) {
  constexpr std::array<std::string_view, 8> parts{"pass", "pwd",  "secret", "token",
                                                  "key",  "cred", "auth",   "cookie"};
  return std::ranges::any_of(parts, [&](auto part) { return holds_folded(word, part); });
}

bool word_is(std::string_view word, std::string_view lower) {
  return word.size() == lower.size() && has_folded(word, 0, lower);
}

/// A shorter value is a secret only after a name that says so.
constexpr std::size_t long_bytes_min = 4;

/// Words, types, names of variables and placeholders of up to three characters.
bool is_harmless_short(std::string_view value) {
  constexpr std::array<std::string_view, 58> words{
      "a",   "an",  "and", "any", "are", "arg", "as",  "at",  "bad", "be",  "but", "by",
      "can", "for", "get", "had", "has", "how", "if",  "in",  "int", "is",  "it",  "its",
      "k",   "key", "let", "may", "new", "nil", "no",  "not", "of",  "off", "ok",  "old",
      "on",  "or",  "p",   "pw",  "pwd", "s",   "see", "set", "so",  "str", "tbd", "the",
      "to",  "too", "use", "v",   "val", "var", "via", "was", "yes", "you"};
  if (value.size() > 1 && std::string_view("$%:<{[(&*").find(value.front()) != value.npos)
    return true;
  return std::ranges::any_of(words, [&](auto known) { return word_is(value, known); });
}

/// Returns whether the brackets that `value` opens are closed on its line, or its list goes on in
/// the next one: `compute(user, password)`.
bool is_call_with_blanks(std::string_view value, std::string_view rest) {
  if (rest.empty() || !is_blank(rest[0])) return false;
  if (rest[0] == '\n' || rest[0] == '\r') return value.ends_with(',');
  auto open = std::ranges::count_if(value, [](char c) { return c == '(' || c == '['; }) -
              std::ranges::count_if(value, [](char c) { return c == ')' || c == ']'; });
  if (open <= 0) return false;
  for (const char c : rest) {
    if (c == '\n' || c == '\r') return false;
    if (c == '(' || c == '[') ++open;
    if ((c == ')' || c == ']') && --open == 0) return true;
  }
  return false;
}

/// `os.environ[…]`, `get_password()`, `self.token`, `db_password` in code; a tag of YAML. `after`
/// is what follows the value.
bool is_code(std::string_view value, const Name& name, bool after_blank, std::string_view after) {
  const char next = after.empty() ? '\n' : after[0];
  const auto path = value.substr(0, value.find_first_of("([{<,;"));
  const bool is_path = is_identifier(path);
  const auto rest = value.substr(path.size());
  if (!rest.empty() && (rest[0] == '(' || rest[0] == '[')) {
    const bool is_open = rest.size() == 1 || next == ')' || next == ']' || is_quote(next) ||
                         is_call_with_blanks(value, after);
    const bool is_plain = std::ranges::all_of(value, [](char c) {
      return is_name_char(c) || std::string_view(":>&*!()[],").find(c) != std::string_view::npos;
    });
    // With digits in it, it is code only where it looks like that.
    return is_open && is_plain && !path.empty() && !is_digit(path[0]) &&
           (std::ranges::none_of(value, is_digit) ||
            path.find_first_of("._") != std::string_view::npos);
  }
  if (value.starts_with('!') && is_identifier(value.substr(1))) return true;
  if (!is_path || name.is_caps) return false;
  const bool is_end = rest.empty() || rest == ";" || rest == ",";
  if (!is_end) return false;
  if (path.find('.') != path.npos || path.find("::") != path.npos || path.find("->") != path.npos) {
    constexpr std::array<std::string_view, 16> roots{
        "self.", "this.", "os.",      "process.", "config.",  "settings.", "args.", "options.",
        "opts.", "req.",  "request.", "ctx.",     "context.", "params.",   "env.",  "props."};
    return names_secret(path) ||
           std::ranges::any_of(roots, [&](auto root) { return path.starts_with(root); });
  }
  // Without a blank, `password=my_password` may be a file's.
  return names_secret(path) &&
         (after_blank || !rest.empty() || next == ')' || path.size() == name.end - name.begin);
}

/// Returns whether a program made it: letters and digits, or letters at random.
bool looks_generated(std::string_view value, bool is_quoted) {
  if (value.size() < 6) return false;
  if (std::ranges::all_of(value, [](char c) {
        return is_digit(c) || std::string_view(".,/%+-:xXkKM").find(c) != std::string_view::npos;
      })) {
    return value.size() > 24;  // numbers, counts, dates
  }
  if (std::ranges::any_of(value, is_digit)) {
    return !value.starts_with("./") && !value.starts_with("~/") && !value.starts_with("../") &&
           !(value[0] == '/' && value.substr(0, 24).find('/', 1) != value.npos);
  }
  if (std::ranges::all_of(value, [](char c) { return is_letter(c) || c == '_' || c == '-'; }) &&
      (value.find('_') != value.npos || value.find('-') != value.npos)) {
    return false;  // words
  }
  const auto capitals = std::ranges::count_if(value, [](char c) { return c >= 'A' && c <= 'Z'; });
  return value.size() >= 32 || (is_quoted && capitals >= 3 && value.size() >= 12);
}

/// Looks for the value of one name.
class Finder {
 public:
  Finder(std::string_view text, const Name& name) : text_(text), name_(name) {}

  [[nodiscard]] Stretch find() const {
    auto at = name_.end;
    while (at < text_.size() && at < name_.end + 2 && is_digit(text_[at])) ++at;  // password2
    if (const auto found = in_element(at); found.end != 0) return found;
    const auto after_quotes = skip(text_, at, "\\\"'`");
    const bool was_quoted = after_quotes > at;
    at = was_quoted ? skip(text_, after_quotes, "]") : at;
    const auto next = skip(text_, at, " \t");
    if (name_.is_flag && !is_separator(next)) {
      const auto value = skip(text_, at, " \t,\n");
      if (value == at || value >= text_.size() || text_[value] == '-') return {};
      return judged(value, true);
    }
    if (!is_separator(next)) return as_member(at, was_quoted);
    return after_separator(next);
  }

  /// The value at `at`, which a blank may be before.
  [[nodiscard]] Stretch judged(std::size_t at, bool after_blank) const {
    if (name_.kind == SecretKind::cookie || name_.kind == SecretKind::header)
      return judged_line(at);
    if (const auto quote = quote_at(text_, at)) {
      if (closes_text(text_, name_, *quote)) return {};
      return decided(
          text_, quote->begin, [&](auto text) { return quoted_end(text, *quote); },
          [&](Stretch value) { return is_quoted_secret(value); });
    }
    return decided(
        text_, at, [&](auto text) { return bare_end(text, at, name_.within); },
        [&](Stretch value) { return is_bare_secret(value, after_blank); });
  }

 private:
  [[nodiscard]] bool is_separator(std::size_t at) const {
    if (at >= text_.size()) return false;
    return text_[at] == ':' || text_[at] == '=' || text_.substr(at, 6) == "\\u003d" ||
           has_folded(text_, at, "%3d");
  }

  /// `<password`, `<db:password`.
  [[nodiscard]] bool begins_tag() const {
    auto at = name_.begin;
    while (at > 0 && (is_name_char(text_[at - 1]) || text_[at - 1] == ':') &&
           name_.begin - at < name_chars_max) {
      --at;
    }
    return at > 0 && text_[at - 1] == '<';
  }

  /// `<password>value</password>`.
  [[nodiscard]] Stretch in_element(std::size_t at) const {
    if (at < text_.size() && text_[at] == ' ' && begins_tag()) {
      const auto close = text_.substr(at, 200).find_first_of("<>");
      if (close == std::string_view::npos || text_[at + close] == '<') return {};
      at += close;
    }
    constexpr std::array<std::array<std::string_view, 2>, 3> brackets{
        {{">", "</"}, {"\\u003e", "\\u003c/"}, {"&gt;", "&lt;/"}}};
    for (const auto& [open, close] : brackets) {
      if (!has_folded(text_, at, open)) continue;
      const auto begin = at + open.size();
      const auto part = text_.substr(begin, secret_context);
      auto length = part.find(close);
      if (close == "</") length = std::min(length, part.find("<\\/"));  // as PHP escapes
      if (length == std::string_view::npos) return {};
      const Stretch value{begin, begin + length};
      return is_quoted_secret(value) ? value : Stretch{};
    }
    return {};
  }

  /// `"name": "PASSWORD", "value": "…"`, and `PASSWORD '…'` of SQL.
  [[nodiscard]] Stretch as_member(std::size_t at, bool was_quoted) const {
    auto value = skip(text_, at, " \t\n,");
    for (int i = 0; i < 4 && text_.substr(value, 2) == "\\n"; ++i)
      value = skip(text_, value + 2, " \t\n,");
    if (value == at) return {};
    if (const auto word = skip(text_, value, "\\\"'"); has_folded(text_, word, "value")) {
      const auto next = skip(text_, skip(text_, word + 5, "\\\"'"), " \t");
      return is_separator(next) ? after_separator(next) : Stretch{};
    }
    // ["Cookie", "a=b"]
    if (was_quoted && (name_.kind == SecretKind::cookie || name_.kind == SecretKind::header))
      return text_[at] == ',' && quote_at(text_, value) ? judged(value, true) : Stretch{};
    if (was_quoted || name_.kind != SecretKind::chosen || text_[at] != ' ') return {};
    const auto quote = quote_at(text_, at + 1);
    if (!quote || quote->mark != '\'') return {};
    return judged(at + 1, false);
  }

  [[nodiscard]] Stretch after_separator(std::size_t at) const {
    const bool is_colon = text_[at] == ':';
    // "PASS: a test", "first pass: …"
    if (is_colon && name_.end - name_.begin == 4 && name_.end == at && at + 1 < text_.size() &&
        is_blank(text_[at + 1]) && has_folded(text_, name_.begin, "pass")) {
      return {};
    }
    const bool is_escaped = text_[at] == '\\' || text_[at] == '%';
    at = is_escaped ? at + (text_[at] == '%' ? 3 : 6) : skip(text_, at, ":=");
    if (!is_escaped && at < text_.size() && text_[at] == '>') ++at;
    const auto begin = skip(text_, at, " \t");
    if (begin >= text_.size()) return {};
    if (is_colon) {
      if (const auto found = after_type(begin); found.end != 0) return found;
      if (const auto found = block(begin); found.end != 0) return found;
    }
    return judged(begin, begin > at);
  }

  /// `password: str = "…"`.
  [[nodiscard]] Stretch after_type(std::size_t at) const {
    const auto type = text_.substr(at, 48);
    const auto end = type.find_first_not_of(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789&<>[]|' ");
    if (end == 0 || end == std::string_view::npos || type[end] != '=' || type[end - 1] != ' ')
      return {};
    const auto value = skip(text_, at + end + 1, " ");
    return quote_at(text_, value) ? judged(value, false) : Stretch{};
  }

  /// `password: |` and the next line.
  [[nodiscard]] Stretch block(std::size_t at) const {
    if (text_[at] != '|' && text_[at] != '>') return {};
    const auto end = skip(text_, at + 1, "-+");
    if (end >= text_.size() || text_[end] != '\n') return {};
    const auto line = skip(text_, end, "\n ");
    return decided(
        text_, line, [&](auto text) { return std::min(text.find('\n', line), text.size()); },
        [&](Stretch value) { return is_quoted_secret(value); });
  }

  /// The value of a header: to the end of the line, or of the text that quotes it.
  [[nodiscard]] Stretch judged_line(std::size_t at) const {
    if (name_.kind == SecretKind::cookie && text_[at] == '[' &&
        quote_at(text_, skip(text_, at + 1, " \n"))) {  // a list of them
      return judged_header(at + 1,
                           [&](auto text) { return std::min(text.find(']', at), text.size()); });
    }
    if (const auto quote = quote_at(text_, at)) {
      if (closes_text(text_, name_, *quote)) return {};
      return judged_header(quote->begin, [&](auto text) { return quoted_end(text, *quote); });
    }
    return judged_header(at, [&](auto text) { return line_end(text, at); });
  }

  template <class End>
  [[nodiscard]] Stretch judged_header(std::size_t begin, const End& end) const {
    auto secret_begin = begin;
    const auto found = decided(text_, begin, end, [&](Stretch seen) {
      const auto value = text_.substr(seen.begin, seen.end - seen.begin);
      secret_begin += header_scheme(value);
      return name_.kind == SecretKind::cookie ? is_cookie(value) : is_credential(value);
    });
    return found.end > secret_begin ? Stretch{secret_begin, found.end} : Stretch{};
  }

  [[nodiscard]] bool is_cookie(std::string_view value) const {
    if (value.size() < 4 || is_masked(value)) return false;
    const auto word = value.substr(0, value.find_first_of(" ;,"));
    const auto split = word.find('=');
    if (split == word.npos || split == 0 || split + 1 == word.size()) {
      return word.size() == value.size() &&
             looks_generated(word.substr(0, harmless_bytes_max), false);
    }
    return !is_code(word, name_, true, " ");
  }

  /// Returns the length of `Bearer ` and such at the begin of a header that has credentials.
  [[nodiscard]] std::size_t header_scheme(std::string_view value) const {
    if (name_.kind == SecretKind::cookie) return 0;
    const auto word = value.substr(0, value.find_first_of(" ;,"));
    return word.size() < value.size() && value[word.size()] == ' ' && is_scheme(word)
               ? word.size() + 1
               : 0;
  }

  [[nodiscard]] bool is_credential(std::string_view value) const {
    if (value.size() < 4 || is_masked(value)) return false;
    const auto scheme = header_scheme(value);
    if (scheme == 0) {
      const auto head = value.substr(0, harmless_bytes_max);
      return value.find_first_of(" ;,") == value.npos && looks_generated(head, false) &&
             !is_placeholder(head);
    }
    const auto rest = value.substr(scheme);
    if (rest.size() < 4 || is_masked(rest)) return false;
    return rest.size() > harmless_bytes_max ||
           !(is_placeholder(rest) || is_harmless_word(rest.substr(0, rest.find(' '))) ||
             (rest.find(' ') != rest.npos && !looks_random(rest)));
  }

  /// Returns the end of a header. Quotes after `=` belong to it: `response="…"`.
  [[nodiscard]] static std::size_t line_end(std::string_view text, std::size_t at) {
    for (bool is_inner = false; at < text.size(); ++at) {
      const auto begin = at;
      at = skip(text, at, "\\");
      if (at >= text.size()) return begin;
      const char c = text[at];
      if (c == '\n' || c == '\r') return at;
      if (at > begin && (c == 'n' || c == 'r')) return begin;
      if (!is_quote(c)) continue;
      if (!is_inner && text[begin - 1] != '=') return begin;
      is_inner = !is_inner;
    }
    return text.size();
  }

  /// Returns whether the text is not a value of any kind.
  [[nodiscard]] bool is_nothing(std::string_view value) const {
    if (value.empty() || is_masked(value)) return true;
    if (value.size() > harmless_bytes_max) return false;
    if (value.size() < long_bytes_min && (!names_short() || is_harmless_short(value))) return true;
    return is_placeholder(value) || is_harmless_word(value);
  }

  /// Returns whether the name means a password, so that few characters are one as well. `pass`
  /// alone counts tests.
  [[nodiscard]] bool names_short() const {
    if (name_.kind != SecretKind::chosen) return false;
    if (name_.begin == name_.end) return true;  // after a flag for passwords
    const auto word = text_.substr(name_.begin, name_.end - name_.begin);
    const auto ends_with = [&](std::string_view lower) {
      return word.size() >= lower.size() && has_folded(word, word.size() - lower.size(), lower);
    };
    if (ends_with("_pass")) return name_.is_caps;
    constexpr std::array<std::string_view, 6> names{"password", "passwd", "passphrase",
                                                    "passcode", "pwd",    "secret"};
    return std::ranges::any_of(names, ends_with);
  }

  [[nodiscard]] bool is_quoted_secret(Stretch found) const {
    const auto value = text_.substr(found.begin, found.end - found.begin);
    if (is_nothing(value)) return false;
    switch (name_.kind) {
      case SecretKind::chosen:
        return true;
      case SecretKind::generated:
        return looks_generated(value.substr(0, harmless_bytes_max), true);
      default:
        return is_signature(value);
    }
  }

  [[nodiscard]] bool is_bare_secret(Stretch found, bool after_blank) const {
    const auto value = text_.substr(found.begin, found.end - found.begin);
    if (is_nothing(value)) return false;
    if (value.size() < long_bytes_min && std::ranges::none_of(value, is_alnum)) return false;
    if (value.size() <= harmless_bytes_max) {
      const auto after = text_.substr(found.end, deciding_bytes);
      const auto plain = value.substr(0, value.find_last_not_of(".,;:!?") + 1);
      if (is_nothing(plain) || is_code(value, name_, after_blank, after)) return false;
      if (value.front() == '{' || value.front() == '[') return false;
    }
    switch (name_.kind) {
      case SecretKind::chosen:
        if (folded(text_[name_.end - 1]) == 'd' && (value.front() == '/' || value.front() == '~') &&
            has_folded(text_, name_.end - 3, "pwd")) {
          return false;  // PWD=/home/bob: a folder
        }
        return true;
      case SecretKind::generated: {
        const auto head = value.substr(0, harmless_bytes_max);
        const bool is_number = std::ranges::all_of(value, [](char c) { return !is_letter(c); });
        const bool is_variable = name_.is_caps && !after_blank && !is_number;
        return is_variable || looks_generated(head, false);
      }
      default:
        return is_signature(value);
    }
  }

  [[nodiscard]] bool is_signature(std::string_view value) const {
    return name_.within != Surroundings::text && value.size() >= 16;
  }

  /// Returns whether the word begins credentials in a header.
  [[nodiscard]] static bool is_scheme(std::string_view word) {
    constexpr std::array<std::string_view, 22> schemes{
        "bearer",        "basic",  "token",     "apikey",    "api-key",
        "key",           "digest", "negotiate", "ntlm",      "aws4-hmac-sha256",
        "oauth",         "hawk",   "sharedkey", "signature", "sharedaccesssignature",
        "sharedkeylite", "bot",    "geniekey",  "ssws",      "splunk",
        "googlelogin",   "jwt"};
    return std::ranges::any_of(schemes, [&](auto known) {
      return word.size() == known.size() && has_folded(word, 0, known);
    });
  }

  std::string_view text_;
  const Name& name_;
};

}  // namespace

bool is_harmless_word(std::string_view word) {
  constexpr std::array<std::string_view, 81> words{
      "null",      "none",    "true",    "false",     "undefined", "string",     "bytes",
      "number",    "integer", "boolean", "bool",      "object",    "array",      "optional",
      "required",  "missing", "invalid", "incorrect", "wrong",     "empty",      "expired",
      "unset",     "given",   "must",    "should",    "cannot",    "could",      "would",
      "does",      "doesn't", "option",  "options",   "flag",      "flags",      "argument",
      "arguments", "value",   "values",  "parameter", "unknown",   "unexpected", "expected",
      "hidden",    "stdin",   "prompt",  "file",      "from",      "with",       "that",
      "this",      "these",   "when",    "where",     "which",     "will",       "have",
      "been",      "only",    "your",    "their",     "used",      "using",      "into",
      "read",      "they",    "what",    "rejected",  "accepted",  "redacted",   "masked",
      "refused",   "changed", "valid",   "text",      "variable",  "secretstr",  "await",
      "async",     "yield",   "lambda",  "return"};
  return std::ranges::any_of(words, [&](auto known) { return word_is(word, known); });
}

std::size_t bare_end(std::string_view text, std::size_t from, Surroundings within) {
  const bool in_query = within != Surroundings::text;
  for (auto at = from; at < text.size(); ++at) {
    const char c = text[at];
    if (is_blank(c)) return at;
    if (is_quote(c)) {  // and what escapes it stays with it
      while (at > from && text[at - 1] == '\\') --at;
      return at;
    }
    if (c == '&' && in_query) return at;
    if (c == ';' && within == Surroundings::semicolon_query) return at;
    if (c == '%' && within == Surroundings::encoded_query && text.substr(at, 3) == "%26") return at;
    const bool is_closing = c == ')' || c == ']' || c == '}';
    if (is_closing && (at + 1 == text.size() || !is_alnum(text[at + 1]))) return at;
    if (c != '\\') continue;
    const auto letter = skip(text, at, "\\");
    if (in_query && text.substr(letter - 1, 6) == "\\u0026") return letter - 1;
    if (letter < text.size() && (text[letter] == 'n' || text[letter] == 'r') &&
        begins_line(text, letter + 1)) {
      return at;
    }
    at = letter - 1;
  }
  return text.size();
}

bool is_placeholder(std::string_view value) {
  const char first = value.front();
  const char last = value.back();
  if (std::ranges::all_of(value, [&](char c) { return c == first; }))
    return !is_alnum(first) || folded(first) == 'x';
  if (value.starts_with("\xe2\x80\xa2") || value.starts_with("\xe2\x80\xa6")) return true;  // • …
  if (value.starts_with("${") || value.starts_with("$(") || value.starts_with("{{") ||
      value.starts_with("%(") || value.starts_with("#{")) {
    return true;
  }
  const auto inner = value.substr(1, value.size() - 2);
  const auto is_words = [](std::string_view words) {
    return std::ranges::all_of(
        words, [](char c) { return is_letter(c) || c == '_' || c == '-' || c == ' ' || c == '.'; });
  };
  if (((first == '<' && last == '>') || (first == '{' && last == '}') ||
       (first == '[' && last == ']') || (first == '%' && last == '%') ||
       (first == '(' && last == ')')) &&
      is_words(inner)) {
    return true;
  }
  if (first == '$' && std::ranges::all_of(value.substr(1), [](char c) {
        return (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
      })) {
    return true;
  }
  return (first == '$' || first == '%' || has_folded(value, 0, "your")) &&
         is_identifier(value.substr(1)) && names_secret(value);
}

std::optional<Stretch> quoted_at(std::string_view text, std::size_t at) {
  const auto quote = quote_at(text, at);
  if (!quote) return std::nullopt;
  return Stretch{quote->begin, quoted_end(text, *quote)};
}

Stretch chosen_secret(std::string_view text, std::size_t at) {
  const Name name{.begin = at, .end = at, .kind = SecretKind::chosen, .is_flag = true};
  return Finder(text, name).judged(at, true);
}

Stretch named_secret(std::string_view text, std::size_t at, const SecretShape& shape) {
  const auto end = match(text, at, shape.text);
  if (end == 0) return {};
  const auto name = name_around(text, at, end, shape.kind);
  return Finder(text, name).find();
}

}  // namespace watchdog
