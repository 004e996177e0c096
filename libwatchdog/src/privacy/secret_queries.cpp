// Finds secrets in the query and the fragment of URLs, and in forms, by the names of parameters.
// A separator (`=`, also encoded) is the mark. The name is read backwards from it and decoded. So
// `access%5Ftoken`, `data[token]` and a URL within a URL are known as well. Names that also mean
// harmless things, such as `code` and `key`, need a value that a program may have made.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "privacy/secrets.h"

namespace watchdog {
namespace {

constexpr std::size_t name_bytes_max = 128;

enum class Meaning : std::uint8_t { none, weak, strong };

/// A plain value.
struct Parameter {
  Meaning meaning = Meaning::none;
  bool needs_next = false;  ///< It is one only if another parameter follows.
};

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  return folded(c) >= 'a' && folded(c) <= 'f' ? folded(c) - 'a' + 10 : -1;
}

std::string percent_decoded(std::string_view text) {
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool is_code = text[at] == '%' && at + 2 < text.size() && hex_digit(text[at + 1]) >= 0 &&
                         hex_digit(text[at + 2]) >= 0;
    plain += is_code ? static_cast<char>(hex_digit(text[at + 1]) * 16 + hex_digit(text[at + 2]))
                     : text[at];
    if (is_code) at += 2;
  }
  return plain;
}

/// `X-Amz-Signature`, `data[api_key]` → `xamzsignature`, `apikey`.
std::string plain_name(std::string_view name) {
  while (name.ends_with("[]")) name.remove_suffix(2);
  if (name.ends_with(']')) {
    name.remove_suffix(1);
    if (const auto open = name.rfind('['); open != name.npos) name.remove_prefix(open + 1);
  }
  std::string plain;
  for (const char c : name)
    if (is_alnum(c)) plain += folded(c);
  return plain;
}

Meaning meaning_of(std::string_view name) {
  constexpr std::array<std::string_view, 12> weak{"code",    "key",  "auth",      "ticket",
                                                  "session", "sid",  "otp",       "pin",
                                                  "hash",    "hmac", "challenge", "credentials"};
  constexpr std::array<std::string_view, 17> strong{
      "sig",       "jwt",        "saml",      "samlresponse",      "samlrequest", "samlart",
      "assertion", "wresult",    "authcode",  "authorizationcode", "devicecode",  "codeverifier",
      "phpsessid", "jsessionid", "sessionid", "authorization",     "bearer"};
  constexpr std::array<std::string_view, 14> ends{
      "token",     "secret",    "password",  "passwd",  "pwd",        "passphrase", "apikey",
      "accesskey", "secretkey", "signature", "authkey", "credential", "privatekey", "assertion"};
  // The place where a list goes on.
  constexpr std::array<std::string_view, 6> harmless{
      "pagetoken", "nextpagetoken", "nexttoken", "continuationtoken", "synctoken", "nextsynctoken"};
  if (std::ranges::find(harmless, name) != harmless.end()) return Meaning::none;
  if (std::ranges::find(strong, name) != strong.end()) return Meaning::strong;
  if (std::ranges::any_of(ends, [&](auto end) { return name.ends_with(end); }))
    return Meaning::strong;
  return std::ranges::find(weak, name) != weak.end() ? Meaning::weak : Meaning::none;
}

bool is_name_byte(char c) {
  return is_alnum(c) || std::string_view("_-.%[]~$").find(c) != std::string_view::npos;
}

/// Returns whether what is before `at` belongs to a URL or a form: `?`, `&` or `/` in the same
/// word.
bool is_in_url(std::string_view text, std::size_t at) {
  const auto least = at - std::min(at, secret_context);
  while (at > least && !is_blank(text[at - 1]) && !is_quote(text[at - 1])) {
    --at;
    if (text[at] == '?' || text[at] == '&' || text[at] == '/') return true;
  }
  return false;
}

/// The parameter whose separator is at `separator`.
Parameter parameter_at(std::string_view text, std::size_t separator) {
  const auto least = separator - std::min(separator, name_bytes_max);
  auto begin = separator;
  while (begin > least && is_name_byte(text[begin - 1])) --begin;
  if (begin == separator) return {};
  auto raw = text.substr(begin, separator - begin);
  char before = begin > 0 ? text[begin - 1] : ' ';
  if (before == '\\' && raw.size() > 5 && raw[0] == 'u') {  // JSON: \u0026, \u003f, \u0023
    const auto code = raw.substr(1, 4);
    if (code == "0026" || has_folded(code, 0, "003f") || code == "0023") {
      before = '&';
      raw.remove_prefix(5);
    }
  }
  auto decoded = std::string(raw);
  for (int i = 0; i < 2 && decoded.find('%') != decoded.npos; ++i)
    decoded = percent_decoded(decoded);
  if (const auto inner = decoded.find_last_of("?&#;="); inner != decoded.npos) {
    before = decoded[inner];  // of a URL within this one
    decoded.erase(0, inner + 1);
  }
  const auto meaning = meaning_of(plain_name(decoded));
  if (meaning == Meaning::none) return {};
  if (before == '?' || before == '&' || before == '#') return {meaning};
  if (before == ';') {
    const auto head = text.substr(0, begin);
    const bool is_ampersand =
        head.ends_with("&amp;") || head.ends_with("&#38;") || head.ends_with("&#x26;");
    if (is_ampersand || meaning == Meaning::strong || is_in_url(text, begin - 1)) return {meaning};
    return {};
  }
  // The first one of a form has nothing before it.
  const bool begins_word =
      is_blank(before) || is_quote(before) || before == '(' || before == '{' || before == ',';
  return begins_word ? Parameter{meaning, true} : Parameter{};
}

/// Returns the end of a value. `ends` is the encoded `&` of a URL within a URL, if it is in one.
std::size_t value_end(std::string_view text, std::size_t at, std::string_view encoded_end) {
  const auto begin = at;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (is_blank(c) || is_quote(c) || c == '\\' || c == '&' || c == '#' || c == ';' || c == '<' ||
        c == '>') {
      break;
    }
    if (c == '%' && !encoded_end.empty() && has_folded(text, at, encoded_end)) break;
    const bool is_closing = c == ')' || c == ']' || c == '}' || c == '|';
    if (is_closing && (at + 1 == text.size() || !is_alnum(text[at + 1]))) break;
  }
  // The sentence around it.
  while (at > begin && std::string_view(".,:!?").find(text[at - 1]) != std::string_view::npos) --at;
  return at;
}

/// Returns whether another parameter follows the value, which may go on at `at`.
bool has_next(std::string_view text, std::size_t begin, std::size_t at) {
  if (at - begin >= deciding_bytes / 2)
    at = value_end(text.substr(0, begin + 2 * secret_context), begin, {});
  if (at >= text.size() || text[at] != '&') return false;
  auto end = at + 1;
  while (end < text.size() && end - at < name_bytes_max &&
         (is_name_byte(text[end]) || text[end] == ';'))
    ++end;
  return end > at + 1 && end < text.size() && text[end] == '=';
}

bool is_made_by_program(std::string_view value) {
  const auto digits = std::ranges::count_if(value, is_digit);
  const auto letters = std::ranges::count_if(value, is_letter);
  if (letters == 0) return digits >= 12;
  if (digits > 0 && value.size() >= 6) return true;
  const bool is_words = value.find_first_of("_-.+") != value.npos;
  const bool has_small = std::ranges::any_of(value, [](char c) { return c >= 'a' && c <= 'z'; });
  const bool has_capital = std::ranges::any_of(value, [](char c) { return c >= 'A' && c <= 'Z'; });
  return !is_words && (value.size() >= 20 || (value.size() >= 12 && has_small && has_capital));
}

bool is_secret_value(std::string_view value, Meaning meaning) {
  if (value.size() < 4 || is_masked(value) || value.front() == '{' || value.front() == '$')
    return false;
  if (is_placeholder(value.substr(0, deciding_bytes)) || is_harmless_word(value)) return false;
  if (meaning == Meaning::weak) return is_made_by_program(value);
  const bool is_short_number = value.size() < 6 && std::ranges::all_of(value, is_digit);
  return !is_short_number;
}

/// Between a name and its value. A plain value.
struct Separator {
  std::size_t length = 0;          ///< 0: no secret was found.
  std::string_view encoded_end{};  ///< Ends the value, as `&` does.
};
Separator separator_at(std::string_view text, std::size_t at) {
  if (text[at] == '=') return {1, {}};
  if (has_folded(text, at, "%3d")) return {3, "%26"};
  if (has_folded(text, at, "%253d")) return {5, "%2526"};
  if (has_folded(text, at, "\\u003d")) return {6, {}};
  return {};
}

}  // namespace

void add_query_secrets(std::string_view text, std::vector<Stretch>& all) {
  for (std::size_t at = 0; at < text.size();) {
    if (text[at] != '=' && text[at] != '%' && text[at] != '\\') {
      ++at;
      continue;
    }
    const auto separator = separator_at(text, at);
    const auto begin = at + separator.length;
    const auto parameter = separator.length > 0 ? parameter_at(text, at) : Parameter{};
    at = std::max(begin, at + 1);
    if (parameter.meaning == Meaning::none) continue;
    const auto found = decided(
        text, begin, [&](auto part) { return value_end(part, begin, separator.encoded_end); },
        [&](Stretch value) {
          return (!parameter.needs_next || has_next(text, begin, value.end)) &&
                 is_secret_value(text.substr(value.begin, value.end - value.begin),
                                 parameter.meaning);
        });
    if (found.end <= found.begin) continue;
    all.push_back(found);
    at = found.end;
  }
}

}  // namespace watchdog
