#include "watchdog/content.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <optional>

#include "base/digest.h"

namespace watchdog {
namespace {

constexpr std::size_t label_chars_max = 256;
constexpr std::size_t explanation_chars_max = 2'000;
constexpr std::string_view mask = "[redacted]";

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool is_token(char c) {
  return is_word(c) || c == '-' || c == '.' || c == '+' || c == '/' || c == '=';
}

std::size_t token_end(std::string_view text, std::size_t from) {
  while (from < text.size() && is_token(text[from])) ++from;
  return from;
}

bool same_folded(std::string_view text, std::size_t at, std::string_view lower) {
  if (text.size() - at < lower.size()) return false;
  return std::equal(
      lower.begin(), lower.end(), text.begin() + static_cast<std::ptrdiff_t>(at),
      [](char a, char b) { return a == std::tolower(static_cast<unsigned char>(b)); });
}

struct Prefix {
  std::string_view text;
  std::size_t rest_min;  ///< Token characters that must follow.
};

/// Credentials that their providers made recognisable; the shapes are the providers' published
/// ones.
constexpr std::array prefixes{
    Prefix{"sk-", 16},         Prefix{"ghp_", 20},  Prefix{"gho_", 20},   Prefix{"ghu_", 20},
    Prefix{"ghs_", 20},        Prefix{"ghr_", 20},  Prefix{"glpat-", 16}, Prefix{"xoxa-", 10},
    Prefix{"xoxb-", 10},       Prefix{"xoxp-", 10}, Prefix{"xoxr-", 10},  Prefix{"xoxs-", 10},
    Prefix{"AKIA", 16},        Prefix{"ASIA", 16},  Prefix{"AIza", 30},   Prefix{"hf_", 20},
    Prefix{"github_pat_", 20}, Prefix{"npm_", 30},  Prefix{"gsk_", 20},   Prefix{"xai-", 20}};

/// Words after which a value is a secret: `password=…`, `"api_key": "…"`.
constexpr std::array<std::string_view, 10> secret_words{
    "password", "passwd",  "secret",     "token",       "api_key",
    "apikey",   "api-key", "access_key", "private_key", "authorization"};

/// A stretch of the text to be replaced; `end == 0`: none.
struct Stretch {
  std::size_t begin = 0;
  std::size_t end = 0;
};

Stretch prefixed(std::string_view text, std::size_t at) {
  for (const auto& prefix : prefixes) {
    if (text.substr(at, prefix.text.size()) != prefix.text) continue;
    const auto end = token_end(text, at + prefix.text.size());
    if (end - at - prefix.text.size() >= prefix.rest_min) return {at, end};
  }
  // A JSON web token: two base64url objects and a signature, with dots between.
  if (text.substr(at, 3) == "eyJ") {
    const auto end = token_end(text, at);
    const auto dots = std::count(text.begin() + static_cast<std::ptrdiff_t>(at),
                                 text.begin() + static_cast<std::ptrdiff_t>(end), '.');
    if (dots == 2 && end - at >= 30) return {at, end};
  }
  for (const std::string_view scheme : {"bearer ", "basic "}) {
    if (!same_folded(text, at, scheme)) continue;
    const auto end = token_end(text, at + scheme.size());
    if (end - at - scheme.size() >= 8) return {at + scheme.size(), end};
  }
  return {};
}

/// `word`, optional quote, `:` or `=`, then the value: quoted up to its closing quote, else one
/// token.
Stretch valued(std::string_view text, std::size_t at) {
  for (const auto word : secret_words) {
    if (!same_folded(text, at, word)) continue;
    auto i = at + word.size();
    const auto skip = [&](std::string_view set) {
      while (i < text.size() && set.find(text[i]) != std::string_view::npos) ++i;
    };
    skip("\\\"'");
    skip(" ");
    if (i >= text.size() || (text[i] != ':' && text[i] != '=')) return {};
    ++i;
    skip(" ");
    while (i < text.size() && text[i] == '\\') ++i;
    const char quote = i < text.size() && (text[i] == '"' || text[i] == '\'') ? text[i] : '\0';
    if (quote != '\0') ++i;
    auto end = i;
    while (end < text.size() &&
           (quote != '\0' ? text[end] != quote && text[end] != '\n' : is_token(text[end]))) {
      end += text[end] == '\\' && quote != '\0' && end + 1 < text.size() && text[end + 1] != quote
                 ? 2
                 : 1;
    }
    end = std::min(end, text.size());
    if (quote != '\0' && end > i && text[end - 1] == '\\') --end;
    // "token: 512" is a number of tokens, and "authorization: Bearer x" is handled above.
    const auto value = text.substr(i, end - i);
    const bool number = std::all_of(value.begin(), value.end(),
                                    [](unsigned char c) { return std::isdigit(c) != 0; });
    if (value.size() < 4 || (number && word == "token") || same_folded(value, 0, "bearer") ||
        same_folded(value, 0, "basic") || value == mask.substr(0, value.size())) {
      return {};
    }
    return {i, end};
  }
  return {};
}

/// `://user:password@`: the password.
Stretch in_url(std::string_view text, std::size_t at) {
  if (text.substr(at, 3) != "://") return {};
  std::size_t colon = 0;
  for (auto i = at + 3; i < text.size() && i < at + 300; ++i) {
    const char c = text[i];
    if (c == '@' && colon != 0 && i > colon + 1) return {colon + 1, i};
    if (c == ':' && colon == 0) colon = i;
    if (c == '/' || c == ' ' || c == '"' || c == '\n') return {};
  }
  return {};
}

Stretch pem(std::string_view text, std::size_t at) {
  if (text.substr(at, 11) != "-----BEGIN ") return {};
  const auto header_end = text.find("-----", at + 11);
  if (header_end == std::string_view::npos || header_end > at + 60) return {};
  if (text.substr(at, header_end - at).find("PRIVATE KEY") == std::string_view::npos) return {};
  const auto footer = text.find("-----END ", header_end);
  if (footer == std::string_view::npos) return {at, text.size()};
  const auto end = text.find("-----", footer + 9);
  return {at, end == std::string_view::npos ? text.size() : end + 5};
}

/// The secret that begins at `at`, if one does. `prev` is the character before.
Stretch secret_at(std::string_view text, std::size_t at, char prev) {
  const char c = text[at];
  if (c == ':') return in_url(text, at);
  if (c == '-') return pem(text, at);
  switch (c | 0x20) {
    case 's':
    case 'g':
    case 'x':
    case 'a':
    case 'h':
    case 'n':
    case 'e':
    case 'b':
      if (!is_word(prev)) {
        if (const auto found = prefixed(text, at); found.end != 0) return found;
      }
      break;
    default:
      break;
  }
  switch (c | 0x20) {
    // A word may end another one: DB_PASSWORD, x-api-key, clientSecret.
    case 'p':
    case 's':
    case 't':
    case 'a':
      return valued(text, at);
    default:
      return {};
  }
}

/// Says in three lookups whether a secret may begin at a place. Nearly everywhere none does, and
/// only where one may is the text compared with each shape.
class Beginnings {
 public:
  constexpr Beginnings() {
    for (const auto& prefix : prefixes) add(prefix.text);
    for (const auto word : secret_words) add(word);
    for (const std::string_view text : {"eyJ", "bearer", "basic", "://", "-----"}) add(text);
  }

  /// REQUIRES: two more characters follow `at`.
  [[nodiscard]] bool may_begin(std::string_view text, std::size_t at) const noexcept {
    const auto bits = [&](std::size_t i) {
      return masks_[i][static_cast<unsigned char>(text[at + i])];
    };
    return (bits(0) & bits(1) & bits(2)) != 0;
  }

 private:
  constexpr void add(std::string_view text) {
    for (std::size_t i = 0; i < masks_.size(); ++i) {
      const auto c = static_cast<unsigned char>(text[i]);
      const bool letter = (c | 0x20U) >= 'a' && (c | 0x20U) <= 'z';
      masks_[i][c] |= bit_;
      if (letter) masks_[i][c ^ 0x20U] |= bit_;
    }
    bit_ = std::rotl(bit_, 1);  // a bit with two owners costs a comparison, no more
  }

  /// Of each of the first three characters: which beginnings have it there.
  std::array<std::array<std::uint32_t, 256>, 3> masks_{};
  std::uint32_t bit_ = 1;
};
constexpr Beginnings beginnings;

/// The text without its secrets; nothing where there are none, which is nearly always.
std::optional<std::string> without_secrets(std::string_view text) {
  std::string clean;
  std::size_t copied = 0;
  for (std::size_t at = 0; at + 2 < text.size();) {
    if (!beginnings.may_begin(text, at)) {
      ++at;
      continue;
    }
    const auto found = secret_at(text, at, at == 0 ? ' ' : text[at - 1]);
    if (found.end == 0) {
      ++at;
      continue;
    }
    clean.append(text, copied, found.begin - copied).append(mask);
    at = copied = found.end;
  }
  if (copied == 0) return std::nullopt;
  return std::move(clean.append(text, copied));
}

}  // namespace

std::string redact(std::string_view text) {
  auto clean = without_secrets(text);
  return clean ? std::move(*clean) : std::string(text);
}

std::string_view first_characters(std::string_view text, std::size_t chars_max) noexcept {
  if (text.size() <= chars_max) return text;
  std::size_t chars = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool begins_character = (static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U;
    if (begins_character && chars++ == chars_max) return text.substr(0, i);
    if (i >= chars_max * 4) return text.substr(0, i);  // not UTF-8: nothing begins a character
  }
  return text;
}

void seal(Report& report, ContentLevel level) {
  const auto cut = [](std::string& text, std::size_t chars) {
    text.resize(first_characters(text, chars).size());
  };
  for (auto* label :
       {&report.name, &report.call_id, &report.turn, &report.hash, &report.event_id}) {
    cut(*label, label_chars_max);
  }
  // Why something ended or is to stop is kept at every level, without secrets.
  const auto keep = [&](std::string& text, std::size_t chars) {
    if (auto clean = without_secrets(text)) text = std::move(*clean);
    cut(text, chars);
  };
  if (auto* outcome = std::get_if<Outcome>(&report.detail)) {
    keep(outcome->reason, label_chars_max);
    keep(outcome->error, explanation_chars_max);
  } else if (auto* request = std::get_if<CancelRequest>(&report.detail)) {
    keep(request->by, label_chars_max);
    keep(request->reason, explanation_chars_max);
    cut(request->turn, label_chars_max);
    cut(request->call, label_chars_max);
  } else if (auto* turn = std::get_if<TurnFacts>(&report.detail)) {
    cut(turn->parent, label_chars_max);
    keep(turn->reason, label_chars_max);
  }
  if (report.bytes < 0) {
    report.bytes = static_cast<std::int64_t>(report.content.size());
    report.digest = report.content.empty() ? 0 : digest_of(report.content);
  }
  if (level <= ContentLevel::digest) {
    if (level == ContentLevel::none) {
      report.digest = 0;
      if (std::holds_alternative<Marks>(report.detail)) report.detail = {};
    }
    report.content.clear();
    return;
  }
  if (level == ContentLevel::full) {
    report.content = redact(report.content);
    return;
  }
  // A secret that the cut would split must be seen whole: look a little beyond what is kept.
  constexpr std::size_t look_ahead = 4'096;
  auto& content = report.content;
  if (auto clean = without_secrets(first_characters(content, preview_chars_max + look_ahead))) {
    content = std::move(*clean);
  }
  content.resize(first_characters(content, preview_chars_max).size());
}

}  // namespace watchdog
