#include "llm/provider.h"

#include <re2/re2.h>

#include <algorithm>

#include "net/url.h"
#include "text/ascii.h"

namespace watchdog {
namespace {

/// The end of a host, and its provider. Several hosts may belong to one.
struct KnownHost {
  std::string_view end;
  std::string_view provider;
};
constexpr KnownHost known_hosts[] = {
    {"anthropic.com", "anthropic"},  {"openai.com", "openai"},
    {"chatgpt.com", "openai"},       {"generativelanguage.googleapis.com", "gemini"},
    {"openrouter.ai", "openrouter"}, {"groq.com", "groq"},
    {"azure.com", "azure"},
};

bool is_in_domain(std::string_view host, std::string_view end) {
  if (!host.ends_with(end)) return false;
  return host.size() == end.size() || host[host.size() - end.size() - 1] == '.';
}

}  // namespace

std::string provider_of_url(std::string_view url) {
  const auto read = url_from(url);
  if (!read) return {};
  const auto host = lower_case(read->host);
  for (const auto& known : known_hosts)
    if (is_in_domain(host, known.end)) return std::string(known.provider);
  const bool is_address =
      host.find(':') != host.npos || host.find_first_not_of("0123456789.") == host.npos;
  const bool has_domain = host.find('.') != host.npos && !is_in_domain(host, "local");
  return is_address || !has_domain ? std::string() : host;
}

std::string_view provider_in_text(std::string_view text) {
  struct Row {
    re2::RE2 pattern;
    std::string_view provider;
  };
  // Those that pass requests on come first: their texts may quote the other provider's.
  static const Row rows[] = {
      {re2::RE2(R"((?i)\bopenrouter\b)"), "openrouter"},
      {re2::RE2(R"((?i)\bgroq\b)"), "groq"},
      {re2::RE2(R"((?i)\bazure\b)"), "azure"},
      {re2::RE2(R"((?i)\bopenai\b|\bchatgpt\b)"), "openai"},
      // The limits of a subscription, as Claude Code prints them.
      {re2::RE2(R"((?i)\banthropic\b|\bclaude(?: ai)? usage limit|\bclaude\.(?:ai|com)\b|)"
                R"(\byour (?:session|weekly|opus|sonnet) limit\b)"),
       "anthropic"},
      {re2::RE2(R"((?i)\bgenerativelanguage\.googleapis\.com\b|\bgemini api\b)"), "gemini"},
  };
  constexpr std::size_t text_bytes_max = 8'192;
  const re2::StringPiece input(text.data(), std::min(text.size(), text_bytes_max));
  for (const auto& row : rows)
    if (re2::RE2::PartialMatch(input, row.pattern)) return row.provider;
  return {};
}

}  // namespace watchdog
