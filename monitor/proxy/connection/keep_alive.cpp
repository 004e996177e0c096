#include "proxy/connection/keep_alive.h"

namespace watchdog::monitor {
namespace {

/// A piece of an answer with nothing in it. `model`: JSON text.
std::string empty_piece(ModelApi api, std::string_view model) {
  const auto named = std::string(model.empty() ? std::string_view("\"\"") : model);
  switch (api) {
    case ModelApi::openai_chat:
      return R"(data: {"id":"keep-alive","object":"chat.completion.chunk","created":0,"model":)" +
             named + R"(,"choices":[{"index":0,"delta":{},"finish_reason":null}]})" + "\n\n";
    case ModelApi::openai_completions:
      return R"(data: {"id":"keep-alive","object":"text_completion","created":0,"model":)" + named +
             R"(,"choices":[{"index":0,"text":"","finish_reason":null}]})" + "\n\n";
    case ModelApi::ollama_chat:
      return R"({"model":)" + named +
             R"(,"created_at":"1970-01-01T00:00:00Z","message":{"role":"assistant","content":""},"done":false})" +
             "\n";
    case ModelApi::ollama_generate:
      return R"({"model":)" + named +
             R"(,"created_at":"1970-01-01T00:00:00Z","response":"","done":false})" + "\n";
    default:
      return {};
  }
}

std::string stream_piece(const ProxySettings& settings, const WaitingClient& client) {
  // Documented for that API: clients pass over it.
  if (client.api == ModelApi::anthropic_messages)
    return "event: ping\ndata: {\"type\": \"ping\"}\n\n";
  if (settings.keep_alive == KeepAliveMode::empty_delta) {
    if (auto piece = empty_piece(client.api, client.model); !piece.empty()) return piece;
  }
  // Codex 0.171 counts this event and passes over it, before its first event, after that and within
  // a text. Other clients of that API expect another first event.
  if (client.api == ModelApi::openai_responses && client.counts_events)
    return "event: keepalive\ndata: {\"type\":\"keepalive\",\"sequence_number\":0}\n\n";
  // Before a JSON value a blank means nothing; a whole empty line would be read as a value.
  if (streams_lines(client.api)) return " ";
  // Google's clients end the answer with an error at a comment; blank lines they pass over.
  if (client.api == ModelApi::gemini) return "\n";
  // One line break: some clients take an empty line for the end of an event, and count or parse it.
  return ": still at work\n";
}

/// Whether its owner says that it works, and nothing shows the contrary.
bool is_assumed_busy(const ProxySettings& settings, const WaitingClient& client) {
  const bool shows_nothing =
      client.server == ServerState::unknown || client.server == ServerState::quiet;
  return shows_nothing && client.silent < settings.assume_working;
}

}  // namespace

std::string_view answer_type(ModelApi api, bool streams) noexcept {
  if (!streams) return "application/json";
  return streams_lines(api) ? "application/x-ndjson" : "text/event-stream";
}

KeepAlive keep_alive(const ProxySettings& settings, const WaitingClient& client) {
  if (settings.keep_alive == KeepAliveMode::off) return {};
  if (!is_busy(client.server) && !is_assumed_busy(settings, client)) return {};
  if (!generates(client.api) || !client.chunks) return {};
  const auto due = client.head_sent ? settings.keep_alive_every : settings.keep_alive_after;
  if (client.quiet < due) return {};
  if (client.head_sent && !client.between) return {};
  if (!client.streams) {
    if (settings.keep_alive != KeepAliveMode::whitespace) return {};
    return {.head = !client.head_sent, .bytes = " "};
  }
  return {.head = !client.head_sent, .bytes = stream_piece(settings, client)};
}

}  // namespace watchdog::monitor
