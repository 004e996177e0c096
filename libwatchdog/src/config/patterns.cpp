#include "config/patterns.h"

#include <re2/re2.h>

#include <memory>

#include "privacy/redaction.h"
#include "watchdog/settings.h"

namespace watchdog {
namespace {

constexpr std::size_t pattern_bytes_max = 1'000;
constexpr std::int64_t memory_max = 1 << 20;  // also bounds what a byte of text may cost

std::unique_ptr<re2::RE2> compiled(const std::string& pattern) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(memory_max);
  options.set_never_capture(true);
  return std::make_unique<re2::RE2>(pattern, options);
}

}  // namespace

std::string pattern_fault(const std::string& pattern) {
  if (pattern.size() > pattern_bytes_max)
    return "is longer than " + std::to_string(pattern_bytes_max) + " bytes";
  const auto expression = compiled(pattern);
  if (!expression->ok()) return "is not a regular expression: " + expression->error();
  // This is also what refuses those that match everything, and nothing.
  if (re2::RE2::PartialMatch(redact_identifier("://a:secret@") + std::string(secret_mask),
                             *expression))
    return "matches even what stands for a secret: make it more particular";
  return {};
}

Result<void> add_redactions(const PrivacySettings& privacy) {
  std::vector<std::shared_ptr<const re2::RE2>> expressions;
  for (const auto& pattern : privacy.patterns) {
    if (const auto fault = pattern_fault(pattern); !fault.empty())
      return Error{ErrorCode::invalid, "privacy.patterns holds a text that " + fault,
                   "privacy.patterns"};
    expressions.push_back(compiled(pattern));
  }
  for (auto& expression : expressions) {
    add_redaction([expression = std::move(expression)](std::string_view text, std::size_t from) {
      re2::StringPiece found;
      if (!expression->Match({text.data(), text.size()}, from, text.size(), re2::RE2::UNANCHORED,
                             &found, 1))
        return Stretch{};
      const auto begin = static_cast<std::size_t>(found.data() - text.data());
      return Stretch{begin, begin + found.size()};
    });
  }
  return {};
}

}  // namespace watchdog
