#include <nlohmann/json.hpp>

#include "support/dialect.h"

namespace watchdog::test {
namespace {

using nlohmann::json;
using Part = ScriptedToken::Part;

/// `/v1/messages`.
class AnthropicMessages : public Dialect {
 public:
  explicit AnthropicMessages(const ScriptedAnswer& answer) : answer_(answer) {}

  std::string ping() override { return event("ping", json::object()); }

  std::string token(const ScriptedToken& token, bool is_first) override {
    std::string out;
    if (is_first)
      out = event("message_start", {{"message", message(nullptr, answer_.prompt_tokens, 0)}});
    if (!open_ || open_->part != token.part || open_->call != token.call) {
      out += close_block();
      out += event("content_block_start",
                   {{"index", blocks_}, {"content_block", block(token, /*whole=*/false)}});
      if (is_first) out += ping();
      open_ = {.part = token.part, .call = token.call, .text = {}};
    }
    static constexpr const char* types[] = {"thinking_delta", "text_delta", "input_json_delta"};
    static constexpr const char* names[] = {"thinking", "text", "partial_json"};
    const auto part = static_cast<std::size_t>(token.part);
    return out + event("content_block_delta",
                       {{"index", blocks_},
                        {"delta", {{"type", types[part]}, {names[part], token.text}}}});
  }

  std::string end(const Piece& done) override {
    return close_block() +
           event("message_delta", {{"delta", {{"stop_reason", stop()}, {"stop_sequence", nullptr}}},
                                   {"usage", {{"output_tokens", done.written}}}}) +
           event("message_stop", json::object());
  }

  std::string error(const Piece& piece) override {
    const char* type = piece.status == 503   ? "overloaded_error"
                       : piece.status == 400 ? "invalid_request_error"
                                             : "api_error";
    return json{{"type", "error"}, {"error", {{"type", type}, {"message", piece.message}}}}.dump();
  }
  std::string error_in_stream(const Piece& piece) override {
    return "event: error\ndata: " + error(piece) + "\n\n";
  }

  std::string whole(const Piece& done) override {
    json body = message(stop(), done.total, done.written);
    ScriptedToken open{.part = Part::call, .call = answer_.calls.size(), .text = {}};
    for (const auto& token : answer_.tokens) {
      if (token.part == open.part && token.call == open.call) continue;
      open = token;
      open.text = text_of(answer_, token.part);
      body["content"].push_back(block(open, /*whole=*/true));
    }
    return body.dump();
  }

 private:
  static std::string event(std::string_view name, json data) {
    data["type"] = name;
    return "event: " + std::string(name) + "\ndata: " + data.dump() + "\n\n";
  }
  [[nodiscard]] const char* stop() const {
    return answer_.cut ? "max_tokens" : answer_.calls.empty() ? "end_turn" : "tool_use";
  }
  [[nodiscard]] json message(const json& stop, std::int64_t input, std::int64_t output) const {
    return {{"id", "msg_" + answer_.id},
            {"type", "message"},
            {"role", "assistant"},
            {"model", answer_.model},
            {"content", json::array()},
            {"stop_reason", stop},
            {"stop_sequence", nullptr},
            {"usage", {{"input_tokens", input}, {"output_tokens", output}}}};
  }
  [[nodiscard]] json block(const ScriptedToken& token, bool whole) const {
    if (token.part == Part::reasoning)
      return {{"type", "thinking"}, {"thinking", whole ? token.text : ""}, {"signature", ""}};
    if (token.part == Part::text) return {{"type", "text"}, {"text", whole ? token.text : ""}};
    const auto& call = answer_.calls[token.call];
    const json input =
        whole ? json::parse(call.arguments, nullptr, /*allow_exceptions=*/false) : json::object();
    return {{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", input}};
  }
  std::string close_block() {
    if (!open_) return {};
    open_.reset();
    return event("content_block_stop", {{"index", blocks_++}});
  }

  const ScriptedAnswer& answer_;
  std::optional<ScriptedToken> open_;
  int blocks_ = 0;
};

/// `/api/chat` and `/api/generate`: an object a line.
class OllamaNative : public Dialect {
 public:
  OllamaNative(const ScriptedAnswer& answer, const SimulatedModel& model, bool chat)
      : answer_(answer), model_(model), chat_(chat) {}

  std::string_view stream_type() const override { return "application/x-ndjson"; }
  std::string ping() override { return {}; }

  std::string token(const ScriptedToken& token, bool) override {
    if (token.part == Part::call) return {};  // whole calls only, at the end
    return line(token.part == Part::reasoning ? "thinking" : "content", token.text);
  }
  std::string end(const Piece& done) override {
    std::string out;
    if (chat_ && !answer_.calls.empty()) {
      json data = body(false);
      data["message"] = {{"role", "assistant"}, {"content", ""}, {"tool_calls", calls()}};
      out = data.dump() + "\n";
    }
    json last = body(true);
    chat_ ? last["message"] = {{"role", "assistant"}, {"content", ""}} : last["response"] = "";
    last.update(figures(done));
    return out + last.dump() + "\n";
  }
  std::string error(const Piece& piece) override { return json{{"error", piece.message}}.dump(); }
  std::string error_in_stream(const Piece& piece) override { return error(piece) + "\n"; }
  std::string whole(const Piece& done) override {
    json all = body(true);
    const std::string text = text_of(answer_, Part::text);
    if (chat_) {
      all["message"] = {{"role", "assistant"}, {"content", text}};
      if (!answer_.calls.empty()) all["message"]["tool_calls"] = calls();
    } else {
      all["response"] = text;
    }
    all.update(figures(done));
    return all.dump();
  }

 private:
  [[nodiscard]] json body(bool done) const {
    return {
        {"model", answer_.model}, {"created_at", "2026-08-14T10:00:00.123456789Z"}, {"done", done}};
  }
  [[nodiscard]] std::string line(const char* name, std::string_view text) const {
    json data = body(false);
    if (!chat_) {
      data[name == std::string_view("content") ? "response" : name] = text;
    } else {
      data["message"] = {{"role", "assistant"}, {"content", ""}};
      data["message"][name] = text;
    }
    return data.dump() + "\n";
  }
  [[nodiscard]] json calls() const {
    json all = json::array();
    for (const auto& call : answer_.calls)
      all.push_back(
          {{"id", call.id},
           {"function",
            {{"index", all.size()},
             {"name", call.name},
             {"arguments", json::parse(call.arguments, nullptr, /*allow_exceptions=*/false)}}}});
    return all;
  }
  [[nodiscard]] json figures(const Piece& done) const {
    const auto nanoseconds = [](double seconds) {
      return static_cast<std::int64_t>(seconds * 1e9);
    };
    const auto read = nanoseconds(static_cast<double>(done.total - done.cached) / model_.read_rate);
    const auto wrote = nanoseconds(static_cast<double>(done.written) / model_.write_rate);
    const std::int64_t load = 20'000'000;
    return {{"done_reason", answer_.cut ? "length" : "stop"},
            {"total_duration", load + read + wrote},
            {"load_duration", load},
            {"prompt_eval_count", done.total},
            {"prompt_eval_duration", read},
            {"eval_count", done.written},
            {"eval_duration", wrote}};
  }

  const ScriptedAnswer& answer_;
  const SimulatedModel& model_;
  bool chat_;
};

/// llama.cpp's own `/completion`.
class LlamaCompletion : public Dialect {
 public:
  LlamaCompletion(const ScriptedAnswer& answer, const SimulatedModel& model)
      : answer_(answer), model_(model) {}

  std::string progress(const Piece& piece) override {
    json data = body("", false);
    data["prompt_progress"] = json::parse(progress_of(piece, model_));
    return "data: " + data.dump() + "\n\n";
  }
  std::string token(const ScriptedToken& token, bool) override {
    ++written_;
    return "data: " + body(token.text, false).dump() + "\n\n";
  }
  std::string end(const Piece& done) override { return "data: " + last("", done).dump() + "\n\n"; }
  std::string whole(const Piece& done) override {
    std::string text;
    for (const auto& token : answer_.tokens) text += token.text;
    return last(text, done).dump();
  }

 private:
  [[nodiscard]] json body(std::string_view text, bool stop) const {
    return {{"index", 0},
            {"content", text},
            {"tokens", json::array()},
            {"stop", stop},
            {"id_slot", 0},
            {"tokens_predicted", written_},
            {"tokens_evaluated", answer_.prompt_tokens}};
  }
  [[nodiscard]] json last(std::string_view text, const Piece& done) const {
    json data = body(text, true);
    data["tokens_predicted"] = done.written;
    data["stop_type"] = answer_.cut ? "limit" : "eos";
    data["timings"] = json::parse(timings_of(done, model_));
    return data;
  }

  const ScriptedAnswer& answer_;
  const SimulatedModel& model_;
  int written_ = 0;
};

}  // namespace

std::unique_ptr<Dialect> anthropic_messages(const ScriptedAnswer& answer, const SimulatedModel&) {
  return std::make_unique<AnthropicMessages>(answer);
}
std::unique_ptr<Dialect> ollama_chat(const ScriptedAnswer& answer, const SimulatedModel& model) {
  return std::make_unique<OllamaNative>(answer, model, /*chat=*/true);
}
std::unique_ptr<Dialect> ollama_generate(const ScriptedAnswer& answer,
                                         const SimulatedModel& model) {
  return std::make_unique<OllamaNative>(answer, model, /*chat=*/false);
}
std::unique_ptr<Dialect> llama_completion(const ScriptedAnswer& answer,
                                          const SimulatedModel& model) {
  return std::make_unique<LlamaCompletion>(answer, model);
}

}  // namespace watchdog::test
