/// \file
/// What model servers write, as llama.cpp, Ollama and vLLM write it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "support/model_server.h"

namespace watchdog::test {

inline constexpr std::string_view llama_header = "Server: llama.cpp\r\n";
inline constexpr std::string_view llama_loading =
    R"({"error":{"code":503,"message":"Loading model","type":"unavailable_error"}})";
inline constexpr std::string_view not_found = R"({"detail":"Not Found"})";

inline std::string llama_props(int slots, bool sleeping = false) {
  return R"({"default_generation_settings":{"n_ctx":4096,"params":{}},"total_slots":)" +
         std::to_string(slots) + R"(,"model_path":"/models/a.gguf","is_sleeping":)" +
         (sleeping ? "true" : "false") + R"(,"chat_template":"","build_info":"b10573-3f545be"})";
}

/// The seed that llama.cpp shows for a task whose request had none.
inline constexpr std::int64_t llama_no_seed = 4'294'967'295;

/// One element of `/slots`; without a task it was never used.
inline std::string llama_slot(int id, bool processing, int task = -1,
                              std::int64_t seed = llama_no_seed) {
  std::string text = R"({"id":)" + std::to_string(id) +
                     R"(,"n_ctx":4096,"speculative":false,"is_processing":)" +
                     (processing ? "true" : "false");
  if (task >= 0) {
    text += R"(,"id_task":)" + std::to_string(task) +
            R"(,"n_prompt_tokens":12,"n_prompt_tokens_processed":12,"n_prompt_tokens_cache":0,)"
            R"("params":{"seed":)" +
            std::to_string(seed) +
            R"(,"stream":true},"next_token":[{"has_next_token":true,"n_decoded":3}])";
  }
  return text + "}";
}

/// A chunk of a stream with a delta, as all of them write it.
inline std::string delta(std::string_view content, std::string_view finish = "null",
                         std::string_view more = {}) {
  return R"({"choices":[{"finish_reason":)" + std::string(finish) + R"(,"index":0,"delta":)" +
         std::string(content) + R"(}],"created":1786700000,"id":"chatcmpl-7a","model":"small",)" +
         R"("system_fingerprint":"b10573-3f545be","object":"chat.completion.chunk")" +
         std::string(more) + "}";
}
inline std::string text_delta(std::string_view text) {
  return delta(R"({"content":")" + std::string(text) + R"("})");
}
inline std::string usage_chunk(int prompt, int output) {
  return R"({"choices":[],"created":1786700000,"id":"chatcmpl-7a","model":"small",)"
         R"("object":"chat.completion.chunk","usage":{"completion_tokens":)" +
         std::to_string(output) + R"(,"prompt_tokens":)" + std::to_string(prompt) +
         R"(,"total_tokens":)" + std::to_string(prompt + output) + "}}";
}
inline std::string prompt_chunk(int total, int cache, int processed) {
  return delta(R"({"role":"assistant","content":null})", "null",
               R"(,"prompt_progress":{"total":)" + std::to_string(total) + R"(,"cache":)" +
                   std::to_string(cache) + R"(,"processed":)" + std::to_string(processed) +
                   R"(,"time_ms":20})");
}

/// A whole answer that was not asked for as a stream.
inline std::string completion(std::string_view text) {
  return R"({"choices":[{"finish_reason":"stop","index":0,"message":{"role":"assistant","content":")" +
         std::string(text) +
         R"("}}],"created":1786700000,"model":"small","system_fingerprint":"b10573-3f545be",)"
         R"("object":"chat.completion","usage":{"completion_tokens":2,"prompt_tokens":7,)"
         R"("total_tokens":9},"id":"chatcmpl-7a"})";
}

/// Answers what is asked of llama.cpp besides questions.
inline void be_llama(ModelServer::Exchange& exchange, int slots = 4) {
  const auto& target = exchange.request().target;
  if (target == "/props") {
    exchange.respond(200, llama_props(slots), "application/json; charset=utf-8", llama_header);
  } else {
    exchange.respond(
        404, R"({"error":{"code":404,"message":"File Not Found","type":"not_found_error"}})",
        "application/json; charset=utf-8", llama_header);
  }
}
inline void be_ollama(ModelServer::Exchange& exchange) {
  exchange.request().target == "/api/version"
      ? exchange.respond(200, R"({"version":"0.30.1"})")
      : exchange.respond(404, "404 page not found", "text/plain");
}
inline void be_vllm(ModelServer::Exchange& exchange) {
  exchange.request().target == "/version"
      ? exchange.respond(200, R"({"version":"0.16.0"})", "application/json", "server: uvicorn\r\n")
      : exchange.respond(404, not_found, "application/json", "server: uvicorn\r\n");
}
/// Nobody in particular.
inline void be_unknown(ModelServer::Exchange& exchange) {
  exchange.respond(404, not_found);
}

/// A short answer as a stream.
inline void stream(ModelServer::Exchange& exchange, std::string_view text) {
  exchange.begin_stream();
  exchange.event(delta(R"({"role":"assistant","content":null})"));
  exchange.event(text_delta(text));
  exchange.event(delta("{}", "\"stop\""));
  exchange.event(usage_chunk(7, 2));
  exchange.end_stream();
}

}  // namespace watchdog::test
