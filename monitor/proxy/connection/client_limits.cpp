// A limit fits if the request ended within 2 % of it. `LimitOf` says on which clock: until the
// head, since the last byte, or in total. Limits of events fit on three clocks, because all bytes
// may have been comments, and the clock may begin with the head. The rows of clients whose names
// are in the User-Agent come first, in the order of the table. After them come round figures for
// any client. No match means that the disconnect stays unexplained.
#include "proxy/connection/client_limits.h"

#include <algorithm>
#include <cctype>

namespace watchdog::monitor {
namespace {

constexpr Millis of_seconds(std::int64_t count) {
  return Millis{count * 1'000};
}

constexpr std::string_view nothing_resets_it = "nothing resets it: raise it";

// As found in the clients' sources and documentation in August 2026; those that name a version were
// measured with it in November 2026.
constexpr ClientLimit known_limits[] = {
    {"Cline",
     "Ollama request timeout, since August 2026",
     LimitOf::headers,
     of_seconds(300),
     "\"Request Timeout\" of its Ollama provider (requestTimeoutMs)",
     {"ollama-js", "cline"}},
    {"Cline",
     "Ollama request timeout, before August 2026",
     LimitOf::headers,
     of_seconds(30),
     "\"Request Timeout\" of its Ollama provider (requestTimeoutMs)",
     {"ollama-js", "cline"}},
    {"Roo Code",
     "API request timeout",
     LimitOf::headers,
     of_seconds(600),
     "roo-cline.apiRequestTimeout",
     {"roocode", "roo-code"}},
    {"Kilo Code",
     "API request timeout",
     LimitOf::headers,
     of_seconds(300),
     "kilo-code.apiRequestTimeout",
     {"kilocode", "kilo-code"}},
    {"opencode",
     "headerTimeout",
     LimitOf::headers,
     of_seconds(300),
     "provider.<name>.options.headerTimeout",
     {"opencode"},
     {},
     "opencode 1.18.33"},
    {"opencode",
     "chunkTimeout",
     LimitOf::bytes,
     of_seconds(300),
     "provider.<name>.options.chunkTimeout",
     {"opencode"},
     {},
     "opencode 1.18.33"},
    {"gemini-cli",
     "headers timeout",
     LimitOf::headers,
     of_seconds(60),
     "none (fixed in its fetch.ts)",
     {"geminicli", "gemini-cli"},
     {},
     "Gemini CLI 0.61.0"},
    {"gemini-cli",
     "body timeout",
     LimitOf::bytes,
     of_seconds(300),
     "none (fixed in its fetch.ts)",
     {"geminicli", "gemini-cli"},
     {},
     "Gemini CLI 0.61.0"},
    {"Codex",
     "stream_idle_timeout_ms",
     LimitOf::events,
     of_seconds(300),
     "model_providers.<name>.stream_idle_timeout_ms",
     {"codex"},
     "events of the proxy that Codex passes over reset it",
     "Codex 0.171.0"},
    {"Claude Code",
     "limit until the answer's head",
     LimitOf::headers,
     of_seconds(300),
     "none (fixed)",
     {"claude-cli", "claude-code"},
     {},
     "Claude Code 2.1.197; 2.1.332 waits for 330 s and longer"},
    // Less than 300 s is not obeyed.
    {"Claude Code",
     "CLAUDE_STREAM_IDLE_TIMEOUT_MS",
     LimitOf::events,
     of_seconds(300),
     "environment CLAUDE_STREAM_IDLE_TIMEOUT_MS",
     {"claude-cli", "claude-code"},
     "the proxy's ping events reset it in 2.1.332, and not in 2.1.197: raise it there",
     "Claude Code 2.1.197, 2.1.332"},
    {"Claude Code",
     "API_TIMEOUT_MS",
     LimitOf::headers,
     of_seconds(600),
     "environment API_TIMEOUT_MS",
     {"claude-cli", "claude-code"},
     {},
     "Claude Code 2.1.332"},
    {"Open WebUI",
     "AIOHTTP_CLIENT_TIMEOUT",
     LimitOf::total,
     of_seconds(300),
     "environment AIOHTTP_CLIENT_TIMEOUT",
     {"aiohttp"}},
    {"OpenHands",
     "LLM timeout",
     LimitOf::bytes,
     of_seconds(300),
     "LLM_TIMEOUT, llm.timeout",
     {"openhands", "litellm"}},
    {"Aider",
     "request_timeout",
     LimitOf::bytes,
     of_seconds(600),
     "--timeout",
     {"aider", "litellm"}},
    {"LiteLLM",
     "request_timeout",
     LimitOf::bytes,
     of_seconds(600),
     "litellm_settings.request_timeout, timeout of a model",
     {"litellm"}},
    {"LangChain",
     "stream_chunk_timeout",
     LimitOf::events,
     of_seconds(120),
     "stream_chunk_timeout, environment LANGCHAIN_OPENAI_STREAM_CHUNK_TIMEOUT_S",
     {"asyncopenai/python", "langchain"}},
    {"Continue",
     "request timeout",
     LimitOf::total,
     of_seconds(7'200),
     "requestOptions.timeout",
     {"continue"}},
    {"openai-python",
     "timeout",
     LimitOf::bytes,
     of_seconds(600),
     "OpenAI(timeout=…)",
     {"openai/python"}},
    {"openai-node",
     "timeout",
     LimitOf::headers,
     of_seconds(600),
     "new OpenAI({timeout: …})",
     {"openai/js"}},
    {"Node's fetch (undici)",
     "headersTimeout",
     LimitOf::headers,
     of_seconds(300),
     "headersTimeout of an undici Agent that is given as dispatcher",
     {"node", "undici", "ai-sdk", "openai/js"}},
    {"Node's fetch (undici)",
     "bodyTimeout",
     LimitOf::bytes,
     of_seconds(300),
     "bodyTimeout of an undici Agent that is given as dispatcher",
     {"node", "undici", "ai-sdk", "openai/js"}},
};

constexpr ClientLimit unknown_client(std::int64_t count) {
  return {"an unknown client", "a limit of its own", LimitOf::total, of_seconds(count),
          "its request timeout"};
}
constexpr ClientLimit round_figures[] = {
    unknown_client(30),    unknown_client(60),    unknown_client(90),    unknown_client(120),
    unknown_client(180),   unknown_client(300),   unknown_client(600),   unknown_client(900),
    unknown_client(1'200), unknown_client(1'800), unknown_client(3'600),
};

bool is_near(Millis time, Millis limit) {
  return std::chrono::abs(time - limit) * 50 <= limit;
}

bool contains_in_any_case(std::string_view text, std::string_view lower) {
  return std::search(text.begin(), text.end(), lower.begin(), lower.end(), [](char c, char wanted) {
           return std::tolower(static_cast<unsigned char>(c)) == wanted;
         }) != text.end();
}

bool fired(const ClientLimit& limit, const Waited& waited) {
  switch (limit.of) {
    case LimitOf::headers:
      return !waited.since_head && is_near(waited.lasted, limit.usual);
    case LimitOf::bytes:
      return is_near(waited.quiet, limit.usual);
    case LimitOf::events:  // of what went to it, comments may have been all
      return is_near(waited.quiet, limit.usual) || is_near(waited.lasted, limit.usual) ||
             (waited.since_head && is_near(*waited.since_head, limit.usual));
    case LimitOf::total:
      break;
  }
  return is_near(waited.lasted, limit.usual);
}

}  // namespace

std::span<const ClientLimit> client_limits() noexcept {
  return known_limits;
}

bool counts_events(std::string_view user_agent) noexcept {
  return contains_in_any_case(user_agent, "codex");
}

std::string_view defused_by(const ClientLimit& limit) noexcept {
  if (!limit.effect.empty()) return limit.effect;
  switch (limit.of) {
    case LimitOf::headers:
      return "avoided: the proxy sends the head early";
    case LimitOf::bytes:
      return "avoided: the proxy sends comments";
    case LimitOf::events:
      return "avoided with --keep-alive empty_delta; comments do not help";
    case LimitOf::total:
      break;
  }
  return nothing_resets_it;
}

std::optional<ClientLimit> probable_limit(std::string_view user_agent, const Waited& waited) {
  for (const auto& limit : known_limits) {
    const bool is_theirs = std::ranges::any_of(limit.agents, [&](std::string_view agent) {
      return !agent.empty() && contains_in_any_case(user_agent, agent);
    });
    if (is_theirs && fired(limit, waited)) return limit;
  }
  for (const auto& limit : round_figures) {
    if (is_near(waited.lasted, limit.usual) || is_near(waited.quiet, limit.usual)) return limit;
  }
  return std::nullopt;
}

}  // namespace watchdog::monitor
