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
    std::optional<Millis> since_head;
    std::string_view client, name;
  } rows[] = {
      {"OpenAI/Python 1.99.1", 1'500_s, 600_s, 1'500_s, "openai-python", "timeout"},
      {"OpenAI/JS 5.10.1", 600_s, 600_s, {}, "openai-node", "timeout"},
      {"node", 301_s, 301_s, {}, "Node's fetch (undici)", "headersTimeout"},
      {"node", 900_s, 300_s, 900_s, "Node's fetch (undici)", "bodyTimeout"},
      {"ai/5.0.1 ai-sdk/provider-utils/3.0.0 runtime/node.js/22",
       300_s,
       300_s,
       {},
       "Node's fetch (undici)",
       "headersTimeout"},
      {"ollama-js/0.5.16 (x64 linux Node.js/v20)",
       30_s,
       30_s,
       {},
       "Cline",
       "Ollama request timeout, before August 2026"},
      {"RooCode/3.25.0", 600_s, 600_s, {}, "Roo Code", "API request timeout"},
      {"Kilo-Code/4.50.0", 300_s, 300_s, {}, "Kilo Code", "API request timeout"},
      {"opencode/1.0.1", 299_s, 299_s, {}, "opencode", "headerTimeout"},
      {"opencode/1.0.1", 2'000_s, 300_s, 2'000_s, "opencode", "chunkTimeout"},
      {"GeminiCLI/0.1.9", 60_s, 60_s, {}, "gemini-cli", "headers timeout"},
      {"codex_cli_rs/0.20.0", 300_s, 10_s, 300_s, "Codex", "stream_idle_timeout_ms"},
      {"claude-cli/2.0.1 (external, cli)", 600_s, 600_s, {}, "Claude Code", "API_TIMEOUT_MS"},
      {"claude-cli/2.1.197 (external, cli)",
       300_s,
       300_s,
       {},
       "Claude Code",
       "limit until the answer's head"},
      // The proxy's head came after 10 s, and its last `ping` 9 s ago.
      {"claude-cli/2.1.197 (external, cli)", 311_s, 9_s, 301_s, "Claude Code",
       "CLAUDE_STREAM_IDLE_TIMEOUT_MS"},
      {"Python/3.11 aiohttp/3.12.15", 300_s, 1_s, 300_s, "Open WebUI", "AIOHTTP_CLIENT_TIMEOUT"},
      {"litellm/1.75.0", 400_s, 300_s, 400_s, "OpenHands", "LLM timeout"},
      {"litellm/1.75.0", 600_s, 600_s, {}, "Aider", "request_timeout"},
      {"AsyncOpenAI/Python 1.99.1", 120_s, 10_s, 120_s, "LangChain", "stream_chunk_timeout"},
      {"curl/8.0", 61_s, 61_s, {}, "an unknown client", "a limit of its own"},
      {"", 5_s, 90_s, 5_s, "an unknown client", "a limit of its own"},
  };
  for (const auto& row : rows) {
    const auto limit = probable_limit(row.agent, {row.lasted, row.quiet, row.since_head});
    ASSERT_TRUE(limit) << row.agent;
    EXPECT_EQ(limit->client, row.client) << row.agent;
    EXPECT_EQ(limit->name, row.name) << row.agent;
    EXPECT_FALSE(limit->setting.empty());
  }
}

TEST(ClientLimits, no_limit_is_named_if_the_client_left_at_another_time) {
  EXPECT_FALSE(probable_limit("node", {45_s, 45_s, {}}));
  EXPECT_FALSE(probable_limit("node", {310_s, 310_s, {}})) << "more than 2 % later";
  EXPECT_FALSE(probable_limit("", {0_s, 0_s, {}}));
  EXPECT_FALSE(probable_limit("OpenAI/Python", {700_s, 1_s, 700_s}));
}

TEST(ClientLimits, each_limit_says_what_resets_it) {
  EXPECT_GT(client_limits().size(), 15U);
  for (const auto& limit : client_limits()) {
    EXPECT_GT(limit.usual, 0_s) << limit.client;
    EXPECT_FALSE(defused_by(limit).empty());
    EXPECT_FALSE(limit.agents.front().empty()) << limit.client;
  }
}

}  // namespace
}  // namespace watchdog::monitor
