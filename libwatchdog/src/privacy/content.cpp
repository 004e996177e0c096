// `seal` redacts ids and names with a mask that distinguishes them, and contents with one that does
// not. It looks beyond what is kept, because a cut could split a secret and hide it. Length and
// digest are taken before the content is cut. `Redactor` holds back the end of the text, because a
// secret may go on there. Finders form a list that only grows, so it is read without a lock.
#include "privacy/content.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "facts/digest.h"
#include "privacy/each_text.h"
#include "privacy/redaction.h"
#include "privacy/redactor.h"
#include "privacy/secrets.h"

namespace watchdog {
namespace {

constexpr std::size_t label_chars_max = 256;
constexpr std::size_t argument_bytes_max = 64;  // as policies are read
constexpr std::size_t explanation_chars_max = 2'000;
/// Characters behind the kept ones that are redacted, too: a secret that the cut would split must
/// be seen whole. The time is linear in the text, so it is not redacted further.
constexpr std::size_t look_ahead = 4'096;

/// Finders that a program added at its start: a list that only grows, so it is read without a lock.
struct Added {
  SecretFinder finder;
  const Added* next = nullptr;
};
std::atomic<const Added*> added{nullptr};

std::string plain_mask(std::string_view /*secret*/) {
  return std::string(secret_mask);
}
/// Keeps two identifiers apart. Not for contents: a short password can be guessed from its digest.
std::string descriptive_mask(std::string_view secret) {
  std::array<char, 16> digits{};
  const auto end = std::to_chars(digits.begin(), digits.end(), digest_of(secret), 16).ptr;
  return "[redacted-" + std::string(digits.data(), end) + "]";
}

/// Returns the stretches that an added finder finds, in order.
std::vector<Stretch> found_by(const SecretFinder& find, std::string_view text) {
  std::vector<Stretch> all;
  for (auto found = find(text, 0); found.end > found.begin; found = find(text, found.end))
    all.push_back(found);
  return all;
}

/// The text without these stretches, which are in order; nothing where there are none.
template <class Mask>
std::optional<std::string> without(std::string_view text, const std::vector<Stretch>& all,
                                   const Mask& mask) {
  if (all.empty()) return std::nullopt;
  std::string clean;
  std::size_t copied = 0;
  for (const auto& found : all) {
    clean.append(text, copied, found.begin - copied);
    clean.append(mask(text.substr(found.begin, found.end - found.begin)));
    copied = found.end;
  }
  return std::move(clean.append(text, copied));
}

/// All of them, by where they begin.
std::vector<Stretch> secrets_in(std::string_view text) {
  auto all = well_known_secrets(text);
  for (const auto* own = added.load(std::memory_order_acquire); own != nullptr; own = own->next) {
    const auto more = found_by(own->finder, text);
    all.insert(all.end(), more.begin(), more.end());
  }
  std::ranges::sort(all, {}, &Stretch::begin);
  return all;
}

template <class Mask = std::string (*)(std::string_view)>
std::optional<std::string> without_secrets(std::string_view text, const Mask& mask = plain_mask) {
  auto clean = without(text, well_known_secrets(text), mask);
  for (const auto* own = added.load(std::memory_order_acquire); own != nullptr; own = own->next) {
    const std::string_view rest = clean ? std::string_view(*clean) : text;
    if (auto cleaner = without(rest, found_by(own->finder, rest), mask)) clean = std::move(cleaner);
  }
  return clean;
}

/// A replacement may be longer than its secret.
void bound(std::string& text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return;
  while (bytes_max > 0 && (static_cast<unsigned char>(text[bytes_max]) & 0xC0U) == 0x80U)
    --bytes_max;
  text.resize(bytes_max);
}

void redact_identifiers(auto&... texts) {
  const auto clean_one = [](std::string& text) {
    if (text.empty()) return;  // most are
    if (auto clean = without_secrets(text, descriptive_mask)) text = std::move(*clean);
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
      bound(argument, argument_bytes_max + look_ahead);
      redact_identifiers(argument);
      bound(argument, argument_bytes_max);
    }
    clean.insert_or_assign(redact_identifier(name), std::move(rule));
  }
  tools = std::move(clean);
}

}  // namespace

std::string Redactor::feed(std::string_view piece) {
  held_ += piece;
  if (held_.size() < next_scan_) return {};
  // A secret that goes on is not looked at again for each small piece.
  next_scan_ = held_.size() + look_ahead;
  const bool is_full = held_.size() >= 8 * look_ahead;
  auto sure = held_.size() - look_ahead;
  // The rest of a word must not look like the beginning of one.
  if (const auto blank = held_.find_last_of(" \t\n", sure);
      blank != std::string::npos && blank + secret_context > sure) {
    sure = blank;
  }
  std::string clean;
  std::size_t copied = 0;
  for (const auto& secret : secrets_in(held_)) {
    if (secret.begin >= sure + secret_context) break;
    if (secret.end == held_.size() && !is_full) {  // it may go on
      const auto from = secret.begin - std::min(secret_context, secret.begin);
      sure = std::min(sure, std::max(copied, from));
      break;
    }
    sure = std::max(sure, secret.end);
    if (secret.begin >= copied) {
      clean.append(held_, copied, secret.begin - copied);
      append_masked(clean, secret.begin, secret.end);
    }
    copied = std::max(copied, secret.end);
  }
  clean.append(held_, copied, sure - copied);
  given_ += clean.size();
  held_.erase(0, sure);
  next_scan_ = std::max(next_scan_ - sure, 2 * look_ahead);
  return clean;
}

std::string Redactor::rest() {
  if (!taken_out_) return redact(std::exchange(held_, {}));
  std::string clean;
  std::size_t copied = 0;
  for (const auto& secret : secrets_in(held_)) {
    if (secret.begin < copied) continue;
    clean.append(held_, copied, secret.begin - copied);
    append_masked(clean, secret.begin, secret.end);
    copied = secret.end;
  }
  clean.append(held_, copied);
  given_ += clean.size();
  held_.clear();
  return clean;
}

void Redactor::append_masked(std::string& clean, std::size_t begin, std::size_t end) {
  if (taken_out_)
    taken_out_(given_ + clean.size(), std::string_view(held_).substr(begin, end - begin));
  clean.append(secret_mask);
}

std::string LineRedactor::redacted(std::string_view line) const {
  std::string text = before_ + std::string(line);
  auto all = secrets_in(text);
  if (key_lines_left_ > 0) {
    for (const auto& part : key_parts(line))
      all.push_back({before_.size() + part.begin, before_.size() + part.end});
    std::ranges::sort(all, {}, &Stretch::begin);
  }
  std::string clean;
  auto copied = before_.size();
  for (const auto& secret : all) {
    if (secret.end <= copied) continue;
    const auto begin = std::max(secret.begin, copied);
    clean.append(text, copied, begin - copied).append(secret_mask);
    copied = secret.end;
  }
  return clean.append(text, copied);
}

void LineRedactor::pass(std::string_view line) {
  // As long a key as there is; who only names its begin does not silence a program for good.
  constexpr int key_lines_max = 1'000;
  key_lines_left_ = begins_key(line) ? key_lines_max
                    : line.find("-----END ") != std::string_view::npos
                        ? 0
                        : std::max(0, key_lines_left_ - 1);
  before_ += line.substr(line.size() - std::min(line.size(), secret_context));
  before_ += '\n';
  if (before_.size() > secret_context) before_.erase(0, before_.size() - secret_context);
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

Stretch secret_around(std::string_view text, std::size_t at) {
  const auto from = at - std::min(at, look_ahead);
  for (const auto& secret : secrets_in(text.substr(from, at - from + look_ahead))) {
    if (from + secret.begin < at && at < from + secret.end)
      return {from + secret.begin, from + secret.end};
  }
  return {at, at};
}

std::string redact_identifier(std::string_view text) {
  auto clean = without_secrets(text, descriptive_mask);
  return clean ? std::move(*clean) : std::string(text);
}

void redact(PolicyPatch& patch) {
  redact_tools(patch.tools);
}

void redact(SessionSpec& spec) {
  const auto cut = [](std::string& text, std::size_t bytes_max) {
    bound(text, bytes_max + look_ahead);
  };
  cut(spec.task, task_bytes_max);
  spec.task = redact(std::string_view(spec.task));
  bound(spec.task, task_bytes_max);
  cut(spec.title, label_bytes_max);
  spec.title = redact(std::string_view(spec.title));
  bound(spec.title, label_bytes_max);
  cut(spec.agent, label_bytes_max);
  redact_identifiers(spec.agent);
  bound(spec.agent, label_bytes_max);
  std::map<std::string, std::string> labels;
  for (const auto& [whole_key, whole_value] : spec.labels) {
    std::string key = whole_key;
    std::string value = whole_value;
    cut(key, label_bytes_max);
    cut(value, label_bytes_max);
    // Labels are looked for by their values, also where the key calls them secret.
    const auto line = key + "=" + value;
    auto clean = redact_identifier(value);
    if (clean == value && redact(line) != line) clean = descriptive_mask(value);
    auto name = redact_identifier(key);
    bound(clean, label_bytes_max);
    bound(name, label_bytes_max);
    labels.insert_or_assign(std::move(name), std::move(clean));
  }
  spec.labels = std::move(labels);
  redact(spec.policy);
  if (spec.process) redact_process(*spec.process);
}

std::size_t text_bytes(const Report& report) {
  std::size_t bytes = 0;
  each_text(report, [&](const std::string& text) { bytes += text.size(); });
  return bytes;
}

std::size_t text_bytes(const SessionSpec& spec) {
  std::size_t bytes = 0;
  each_text(spec, [&](const std::string& text) { bytes += text.size(); });
  return bytes;
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

std::optional<std::string> as_compared(std::string_view text) {
  constexpr std::size_t compared_bytes = 64U << 10U;
  const auto begin = text.substr(0, compared_bytes);
  auto compared = without_secrets(begin, [](std::string_view secret) {
    constexpr std::string_view digits = "0123456789abcdef";
    const auto digest = digest_of(secret);
    return std::string{'[', digits[digest >> 60U], digits[digest >> 56U & 15U], ']'};
  });
  if (compared) compared->append(text.substr(begin.size()));
  return compared;
}

void measure(Report& report) {
  if (report.bytes >= 0) return;
  report.bytes = static_cast<std::int64_t>(report.content.size());
  report.digest = 0;
  if (report.content.empty()) return;
  const auto compared = as_compared(report.content);
  report.digest = digest_of(compared ? std::string_view(*compared) : report.content);
}

void seal(Report& report, ContentLevel level) {
  const auto cut = [](std::string& text, std::size_t chars) {
    if (text.size() > chars) text.resize(first_characters(text, chars).size());
  };
  const auto label = [&](auto&... texts) {
    (cut(texts, label_chars_max + look_ahead), ...);
    redact_identifiers(texts...);
    (cut(texts, label_chars_max), ...);
  };
  // Why something ended or is to stop is kept at every level, without secrets.
  const auto keep = [&](std::string& text, std::size_t chars) {
    cut(text, chars + look_ahead);
    if (auto clean = without_secrets(text)) text = std::move(*clean);
    cut(text, chars);
  };
  label(report.name, report.also, report.call_id, report.turn, report.hash, report.event_id,
        report.provider);
  auto& detail = report.detail;
  if (auto* outcome = std::get_if<Outcome>(&detail)) {
    keep(outcome->reason, label_chars_max);
    keep(outcome->subject, label_chars_max);
    keep(outcome->error, explanation_chars_max);
  } else if (auto* request = std::get_if<CancelRequest>(&detail)) {
    keep(request->by, label_chars_max);
    keep(request->reason, explanation_chars_max);
    label(request->turn, request->call);
  } else if (auto* turn = std::get_if<TurnFacts>(&detail)) {
    label(turn->parent);
    keep(turn->reason, label_chars_max);
  } else if (auto* beats = std::get_if<Heartbeats>(&detail)) {
    label(beats->phase);
    for (auto& [name, value] : beats->counters) label(name);
  } else if (auto* process = std::get_if<ProcessFacts>(&detail)) {
    redact_process(*process);
  } else if (auto* policy = std::get_if<PolicyPatch>(&detail)) {
    redact_tools(policy->tools);
  } else if (auto* limit = std::get_if<LimitPassed>(&detail)) {
    label(limit->name);
  }
  measure(report);
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

void redact(Report& report) {
  // The receiver can compare only what it gets.
  if (report.hash.empty()) {
    if (const auto compared = as_compared(report.content)) {
      std::array<char, 16> digits{};
      const auto end =
          std::to_chars(digits.data(), digits.data() + digits.size(), digest_of(*compared), 16).ptr;
      report.hash.assign(digits.data(), end);
    }
  }
  seal(report, ContentLevel::full);
  report.bytes = -1;
  report.digest = 0;
}

}  // namespace watchdog
