#include "watchdog/content.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/redactor.h"
#include "watchdog/digest.h"
#include "watchdog/redaction.h"

namespace watchdog {
namespace {

constexpr std::size_t label_chars_max = 256;
constexpr std::size_t argument_bytes_max = 64;  // as policies are read
constexpr std::size_t explanation_chars_max = 2'000;

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
constexpr std::array prefixes{Prefix{"sk-", 16},
                              Prefix{"sk_live_", 16},
                              Prefix{"sk_test_", 16},
                              Prefix{"rk_live_", 16},
                              Prefix{"whsec_", 16},
                              Prefix{"ghp_", 20},
                              Prefix{"gho_", 20},
                              Prefix{"ghu_", 20},
                              Prefix{"ghs_", 20},
                              Prefix{"ghr_", 20},
                              Prefix{"github_pat_", 20},
                              Prefix{"glpat-", 16},
                              Prefix{"xoxa-", 10},
                              Prefix{"xoxb-", 10},
                              Prefix{"xoxp-", 10},
                              Prefix{"xoxr-", 10},
                              Prefix{"xoxs-", 10},
                              Prefix{"xapp-", 10},
                              Prefix{"AKIA", 16},
                              Prefix{"ASIA", 16},
                              Prefix{"AIza", 30},
                              Prefix{"GOCSPX-", 16},
                              Prefix{"ya29.", 20},
                              Prefix{"hf_", 20},
                              Prefix{"npm_", 30},
                              Prefix{"pypi-", 30},
                              Prefix{"gsk_", 20},
                              Prefix{"xai-", 20},
                              Prefix{"SG.", 30},
                              Prefix{"dop_v1_", 30},
                              Prefix{"hooks.slack.com/services/", 16}};

/// Words after which a value is a secret: `password=…`, `"api_key": "…"`.
constexpr std::array<std::string_view, 12> secret_words{
    "password", "passwd",  "passphrase", "secret",     "token",       "api_key",
    "apikey",   "api-key", "access_key", "accountkey", "private_key", "authorization"};

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

/// The mask, of whatever kind, or the begin of one that was cut.
bool is_masked(std::string_view value) {
  return value == secret_mask.substr(0, value.size()) || value.starts_with("[redacted-");
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
        same_folded(value, 0, "basic") || is_masked(value)) {
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

/// Whether a word may begin here: not within another one. In JSON a line's end is `\n`.
bool may_begin_word(std::string_view text, std::size_t at) {
  if (at == 0 || !is_word(text[at - 1])) return true;
  return at > 1 && text[at - 2] == '\\' &&
         std::string_view("nrtbf").find(text[at - 1]) != std::string_view::npos;
}

/// The secret that begins at `at`, if one does.
Stretch secret_at(std::string_view text, std::size_t at) {
  if (text[at] == ':') return in_url(text, at);
  if (text[at] == '-') return pem(text, at);
  if (may_begin_word(text, at)) {
    if (const auto found = prefixed(text, at); found.end != 0) return found;
  }
  // A word may end another one: DB_PASSWORD, x-api-key, clientSecret.
  return valued(text, at);
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
  std::array<std::array<std::uint64_t, 256>, 3> masks_{};
  std::uint64_t bit_ = 1;
};
constexpr Beginnings beginnings;

/// What a program added at its start: a list that only grows, so that it is read without a lock.
struct Added {
  SecretFinder finder;
  const Added* next = nullptr;
};
std::atomic<const Added*> added{nullptr};

/// The first secret of a well-known shape at or after `from`.
Stretch well_known(std::string_view text, std::size_t from) {
  for (auto at = from; at + 2 < text.size(); ++at) {
    if (!beginnings.may_begin(text, at)) continue;
    const auto found = secret_at(text, at);
    if (found.end != 0) return found;
  }
  return {};
}

std::string plain_mask(std::string_view /*secret*/) {
  return std::string(secret_mask);
}
/// Keeps two identifiers apart. Not for contents: a short password can be guessed from its digest.
std::string telling_mask(std::string_view secret) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.begin(), digits.end(), digest_of(secret), 16).ptr;
  return "[redacted-" + std::string(digits.data(), end) + "]";
}

/// The text without what `find` finds; nothing where that is nothing, which is nearly always.
template <class Find, class Mask>
std::optional<std::string> without(std::string_view text, const Find& find, const Mask& mask) {
  auto found = find(text, 0);
  if (found.end <= found.begin) return std::nullopt;
  std::string clean;
  std::size_t copied = 0;
  for (; found.end > found.begin; found = find(text, copied)) {
    clean.append(text, copied, found.begin - copied);
    clean.append(mask(text.substr(found.begin, found.end - found.begin)));
    copied = found.end;
  }
  return std::move(clean.append(text, copied));
}

/// All of them, by where they begin.
std::vector<Stretch> secrets_in(std::string_view text) {
  std::vector<Stretch> all;
  const auto add = [&](const auto& find) {
    for (auto found = find(text, 0); found.end > found.begin; found = find(text, found.end))
      all.push_back(found);
  };
  add(well_known);
  for (const auto* own = added.load(std::memory_order_acquire); own != nullptr; own = own->next)
    add(own->finder);
  std::ranges::sort(all, {}, &Stretch::begin);
  return all;
}

template <class Mask = std::string (*)(std::string_view)>
std::optional<std::string> without_secrets(std::string_view text, const Mask& mask = plain_mask) {
  auto clean = without(text, well_known, mask);
  for (const auto* own = added.load(std::memory_order_acquire); own != nullptr; own = own->next) {
    if (auto cleaner = without(clean ? std::string_view(*clean) : text, own->finder, mask)) {
      clean = std::move(cleaner);
    }
  }
  return clean;
}

/// What is put in a secret's place may be longer than it.
void bound(std::string& text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return;
  while (bytes_max > 0 && (static_cast<unsigned char>(text[bytes_max]) & 0xC0U) == 0x80U)
    --bytes_max;
  text.resize(bytes_max);
}

void redact_identifiers(auto&... texts) {
  const auto clean_one = [](std::string& text) {
    if (auto clean = without_secrets(text, telling_mask)) text = std::move(*clean);
  };
  (clean_one(texts), ...);
}

void redact_process(ProcessFacts& process) {
  redact_identifiers(process.boot_id, process.host);
}

/// Rules by names of tools, which are texts of the agent's.
void redact_tools(std::map<std::string, ToolRule>& tools) {
  std::map<std::string, ToolRule> clean;
  for (auto& [name, rule] : tools) {
    for (auto& argument : rule.identity) {
      redact_identifiers(argument);
      bound(argument, argument_bytes_max);
    }
    clean.insert_or_assign(redact_identifier(name), std::move(rule));
  }
  tools = std::move(clean);
}

}  // namespace

std::string Redactor::take(std::string_view piece) {
  held_ += piece;
  if (held_.size() < 2 * look_ahead) return {};
  // What makes a value a secret stands at most so far before it: its name, a URL's beginning.
  constexpr std::size_t context = 512;
  const bool is_full = held_.size() >= 8 * look_ahead;
  auto sure = held_.size() - look_ahead;
  std::string clean;
  std::size_t copied = 0;
  for (const auto& secret : secrets_in(held_)) {
    if (secret.begin >= sure + context) break;
    if (secret.end == held_.size() && !is_full) {  // it may go on
      const auto from = secret.begin - std::min(context, secret.begin);
      sure = std::min(sure, std::max(copied, from));
      break;
    }
    sure = std::max(sure, secret.end);
    if (secret.begin >= copied)
      clean.append(held_, copied, secret.begin - copied).append(secret_mask);
    copied = std::max(copied, secret.end);
  }
  clean.append(held_, copied, sure - copied);
  held_.erase(0, sure);
  return clean;
}

std::string Redactor::rest() {
  return redact(std::exchange(held_, {}));
}

void add_redaction(SecretFinder finder) {
  auto* own = new Added{std::move(finder), added.load()};  // NOLINT: lives as long as the process
  while (!added.compare_exchange_weak(own->next, own)) {
  }
}

std::string redact(std::string_view text) {
  auto clean = without_secrets(text);
  return clean ? std::move(*clean) : std::string(text);
}

std::string redact_identifier(std::string_view text) {
  auto clean = without_secrets(text, telling_mask);
  return clean ? std::move(*clean) : std::string(text);
}

void redact(PolicyPatch& patch) {
  redact_tools(patch.tools);
}

void redact(SessionSpec& spec) {
  spec.task = redact(std::string_view(spec.task));
  bound(spec.task, task_bytes_max);
  redact_identifiers(spec.agent);
  bound(spec.agent, label_bytes_max);
  std::map<std::string, std::string> labels;
  for (const auto& [key, value] : spec.labels) {
    // Labels are looked for by their values, also where the key calls them secret.
    const auto line = key + "=" + value;
    auto clean = redact_identifier(value);
    if (clean == value && redact(line) != line) clean = telling_mask(value);
    auto name = redact_identifier(key);
    bound(clean, label_bytes_max);
    bound(name, label_bytes_max);
    labels.insert_or_assign(std::move(name), std::move(clean));
  }
  spec.labels = std::move(labels);
  redact(spec.policy);
  if (spec.process) redact_process(*spec.process);
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
  // A secret that the cut would split must be seen whole: look a little beyond what is kept.
  constexpr std::size_t look_ahead = 4'096;
  const auto label = [&](auto&... texts) {
    (cut(texts, label_chars_max + look_ahead), ...);
    redact_identifiers(texts...);
    (cut(texts, label_chars_max), ...);
  };
  // Why something ended or is to stop is kept at every level, without secrets.
  const auto keep = [&](std::string& text, std::size_t chars) {
    if (auto clean = without_secrets(text)) text = std::move(*clean);
    cut(text, chars);
  };
  label(report.name, report.call_id, report.turn, report.hash, report.event_id);
  auto& detail = report.detail;
  if (auto* outcome = std::get_if<Outcome>(&detail)) {
    keep(outcome->reason, label_chars_max);
    keep(outcome->error, explanation_chars_max);
  } else if (auto* request = std::get_if<CancelRequest>(&detail)) {
    keep(request->by, label_chars_max);
    keep(request->reason, explanation_chars_max);
    label(request->turn, request->call);
  } else if (auto* turn = std::get_if<TurnFacts>(&detail)) {
    label(turn->parent);
    keep(turn->reason, label_chars_max);
  } else if (auto* beats = std::get_if<Beats>(&detail)) {
    label(beats->phase);
    for (auto& [name, value] : beats->counters) label(name);
  } else if (auto* process = std::get_if<ProcessFacts>(&detail)) {
    redact_process(*process);
  } else if (auto* policy = std::get_if<PolicyPatch>(&detail)) {
    redact_tools(policy->tools);
  } else if (auto* limit = std::get_if<LimitPassed>(&detail)) {
    label(limit->name);
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
  auto& content = report.content;
  if (level == ContentLevel::full) {
    if (auto clean = without_secrets(content)) content = std::move(*clean);
    return;
  }
  if (auto clean = without_secrets(first_characters(content, preview_chars_max + look_ahead))) {
    content = std::move(*clean);
  }
  cut(content, preview_chars_max);
}

}  // namespace watchdog
