// Which limit of a client probably ended an exchange.

#include "proxy/connection/client_limits.h"

#include <gtest/gtest.h>

namespace watchdog::monitor {
namespace {

constexpr Millis operator""_s(unsigned long long count) {
  return Millis{static_cast<std::int64_t>(count) * 1'000};
}

TEST(ClientLimits, a_client_that_went_at_its_own_limit_is_named_with_its_setting) {
  const struct {
    std::string_view agent;
    Millis lasted, quiet;
    bool answer_began;
    std::string_view client, name;
  } rows[] = {
      {"OpenAI/Python 1.99.1", 1'500_s, 600_s, true, "openai-python", "timeout"},
      {"OpenAI/JS 5.10.1", 600_s, 600_s, false, "openai-node", "timeout"},
      {"node", 301_s, 301_s, false, "Node's fetch (undici)", "headersTimeout"},
      {"node", 900_s, 300_s, true, "Node's fetch (undici)", "bodyTimeout"},
      {"ai/5.0.1 ai-sdk/provider-utils/3.0.0 runtime/node.js/22", 300_s, 300_s, false,
       "Node's fetch (undici)", "headersTimeout"},
      {"ollama-js/0.5.16 (x64 linux Node.js/v20)", 30_s, 30_s, false, "Cline",
       "Ollama request timeout, before August 2026"},
      {"RooCode/3.25.0", 600_s, 600_s, false, "Roo Code", "API request timeout"},
      {"Kilo-Code/4.50.0", 300_s, 300_s, false, "Kilo Code", "API request timeout"},
      {"opencode/1.0.1", 299_s, 299_s, false, "opencode", "headerTimeout"},
      {"opencode/1.0.1", 2'000_s, 300_s, true, "opencode", "chunkTimeout"},
      {"GeminiCLI/0.1.9", 60_s, 60_s, false, "gemini-cli", "headers timeout"},
      {"codex_cli_rs/0.20.0", 300_s, 10_s, true, "Codex", "stream_idle_timeout_ms"},
      {"claude-cli/2.0.1 (external, cli)", 600_s, 600_s, false, "Claude Code", "API_TIMEOUT_MS"},
      {"Python/3.11 aiohttp/3.12.15", 300_s, 1_s, true, "Open WebUI", "AIOHTTP_CLIENT_TIMEOUT"},
      {"litellm/1.75.0", 400_s, 300_s, true, "OpenHands", "LLM timeout"},
      {"litellm/1.75.0", 600_s, 600_s, false, "Aider", "request_timeout"},
      {"AsyncOpenAI/Python 1.99.1", 120_s, 10_s, true, "LangChain", "stream_chunk_timeout"},
      {"curl/8.0", 61_s, 61_s, false, "an unknown client", "a limit of its own"},
      {"", 5_s, 90_s, true, "an unknown client", "a limit of its own"},
  };
  for (const auto& row : rows) {
    const auto limit = probable_limit(row.agent, row.lasted, row.quiet, row.answer_began);
    ASSERT_TRUE(limit) << row.agent;
    EXPECT_EQ(limit->client, row.client) << row.agent;
    EXPECT_EQ(limit->name, row.name) << row.agent;
    EXPECT_FALSE(limit->setting.empty());
  }
}

TEST(ClientLimits, no_limit_is_named_if_the_client_left_at_another_time) {
  EXPECT_FALSE(probable_limit("node", 45_s, 45_s, false));
  EXPECT_FALSE(probable_limit("node", 310_s, 310_s, false)) << "more than 2 % later";
  EXPECT_FALSE(probable_limit("", 0_s, 0_s, false));
  EXPECT_FALSE(probable_limit("OpenAI/Python", 700_s, 1_s, true));
}

TEST(ClientLimits, each_limit_says_what_resets_it) {
  EXPECT_GT(client_limits().size(), 15U);
  for (const auto& limit : client_limits()) {
    EXPECT_GT(limit.usual, 0_s) << limit.client;
    EXPECT_FALSE(defused_by(limit.of).empty());
    EXPECT_FALSE(limit.agents.front().empty()) << limit.client;
  }
}

}  // namespace
}  // namespace watchdog::monitor
