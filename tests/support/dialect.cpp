#include "support/dialect.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

namespace watchdog::test {

using nlohmann::json;

std::string Dialect::error(const Piece& piece) {
  return json{{"error", {{"code", piece.status}, {"message", piece.message}, {"type", piece.type}}}}
      .dump();
}

std::string Dialect::error_in_stream(const Piece& piece) {
  return "data: " + error(piece) + "\n\n";
}

std::string text_of(const ScriptedAnswer& answer, ScriptedToken::Part part) {
  std::string text;
  for (const auto& token : answer.tokens)
    if (token.part == part) text += token.text;
  return text;
}

std::string timings_of(const Piece& done, const SimulatedModel& model) {
  const auto read = done.total - done.cached;
  return json{{"cache_n", done.cached},
              {"prompt_n", read},
              {"prompt_ms", static_cast<double>(read) / model.read_rate * 1'000},
              {"prompt_per_second", model.read_rate},
              {"predicted_n", done.written},
              {"predicted_ms", static_cast<double>(done.written) / model.write_rate * 1'000},
              {"predicted_per_second", model.write_rate}}
      .dump();
}

std::string progress_of(const Piece& piece, const SimulatedModel& model) {
  const auto read = static_cast<double>(piece.read - piece.cached);
  return json{{"total", piece.total},
              {"cache", piece.cached},
              {"processed", piece.read},
              {"time_ms", static_cast<std::int64_t>(read / model.read_rate * 1'000)}}
      .dump();
}

Spoken spoken_at(std::string_view path) {
  static constexpr std::array<std::pair<std::string_view, Spoken>, 12> table = {{
      {"/v1/chat/completions", {openai_chat}},
      {"/chat/completions", {openai_chat}},
      {"/v1/completions", {openai_text}},
      {"/v1/responses", {openai_responses}},
      {"/responses", {openai_responses}},
      {"/v1/embeddings", {openai_embeddings, false, true}},
      {"/embeddings", {openai_embeddings, false, true}},
      {"/v1/messages", {anthropic_messages}},
      {"/api/chat", {ollama_chat, true}},
      {"/api/generate", {ollama_generate, true}},
      {"/completion", {llama_completion}},
      {"/completions", {llama_completion}},
  }};
  for (const auto& [name, spoken] : table)
    if (name == path) return spoken;
  return {};
}

}  // namespace watchdog::test
