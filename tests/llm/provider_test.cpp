#include "llm/provider.h"

#include <gtest/gtest.h>

namespace watchdog {
namespace {

TEST(Provider, is_known_by_the_host_of_its_server) {
  const std::pair<const char*, const char*> rows[] = {
      {"https://api.anthropic.com", "anthropic"},
      {"https://api.openai.com/v1", "openai"},
      {"https://chatgpt.com/backend-api/codex", "openai"},
      {"https://generativelanguage.googleapis.com", "gemini"},
      {"https://openrouter.ai/api/v1", "openrouter"},
      {"https://API.Groq.com/openai/v1", "groq"},
      {"https://mine.openai.azure.com", "azure"},
      {"https://llm.example.org:8443/v1", "llm.example.org"},
      {"https://notanthropic.com", "notanthropic.com"},
      {"http://127.0.0.1:8080", ""},
      {"http://[::1]:8080", ""},
      {"http://localhost:11434", ""},
      {"http://gpu.local:8000", ""},
      {"", ""},
      {"no URL", ""},
  };
  for (const auto& [url, provider] : rows) EXPECT_EQ(provider_of_url(url), provider) << url;
}

TEST(Provider, is_named_by_an_error_or_not_known) {
  const std::pair<const char*, const char*> rows[] = {
      {"Claude usage limit reached|1795806400", "anthropic"},
      {"Claude AI usage limit reached|1795806400", "anthropic"},
      {"You've hit your session limit · resets 9pm (Europe/Berlin)", "anthropic"},
      {"You've hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro)", "openai"},
      {"Rate limit reached for gpt-5 in organization org-1. See platform.openai.com", "openai"},
      {"OpenRouter: anthropic/claude-sonnet is limited upstream", "openrouter"},
      {"quota exceeded for generativelanguage.googleapis.com/generate_requests", "gemini"},
      {"Rate limit reached for model `claude-sonnet-4`", ""},
      {"HTTP 429", ""},
      {"", ""},
  };
  for (const auto& [text, provider] : rows) EXPECT_EQ(provider_in_text(text), provider) << text;
}

}  // namespace
}  // namespace watchdog
