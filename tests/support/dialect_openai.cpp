#include <nlohmann/json.hpp>

#include "support/dialect.h"

namespace watchdog::test {
namespace {

using nlohmann::json;
using Part = ScriptedToken::Part;

constexpr std::int64_t created = 1'786'700'000;

std::string sse(const json& data) {
  return "data: " + data.dump() + "\n\n";
}

json usage_of(const Piece& done) {
  return {{"prompt_tokens", done.total},
          {"completion_tokens", done.written},
          {"total_tokens", done.total + done.written},
          {"prompt_tokens_details", {{"cached_tokens", done.cached}}}};
}

/// `/v1/chat/completions`, with what llama.cpp adds to it.
class OpenAiChat : public Dialect {
 public:
  OpenAiChat(const ScriptedAnswer& answer, const SimulatedModel& model)
      : answer_(answer), model_(model) {}

  std::string progress(const Piece& piece) override {
    json data = chunk(json{{"role", "assistant"}, {"content", nullptr}}, nullptr);
    data["prompt_progress"] = json::parse(progress_of(piece, model_));
    return sse(data);
  }

  std::string token(const ScriptedToken& token, bool is_first) override {
    std::string out;
    if (is_first) out = sse(chunk(json{{"role", "assistant"}, {"content", nullptr}}, nullptr));
    switch (token.part) {
      case Part::reasoning:
        return out + sse(chunk(json{{"reasoning_content", token.text}}, nullptr));
      case Part::text:
        return out + sse(chunk(json{{"content", token.text}}, nullptr));
      case Part::call:
        break;
    }
    json call = {{"index", token.call}, {"function", {{"arguments", token.text}}}};
    if (token.call >= calls_begun_) {
      ++calls_begun_;
      const auto& whole = answer_.calls[token.call];
      call["id"] = whole.id;
      call["type"] = "function";
      call["function"]["name"] = whole.name;
    }
    return out + sse(chunk(json{{"tool_calls", json::array({call})}}, nullptr));
  }

  std::string end(const Piece& done) override {
    json last = chunk(json::object(), finish());
    if (is_llama()) last["timings"] = json::parse(timings_of(done, model_));
    std::string out = sse(last);
    if (answer_.usage) {
      json usage = chunk(nullptr, nullptr);
      usage["choices"] = json::array();
      usage["usage"] = usage_of(done);
      out += sse(usage);
    }
    return out + "data: [DONE]\n\n";
  }

  std::string whole(const Piece& done) override {
    json message = {{"role", "assistant"}, {"content", text_of(answer_, Part::text)}};
    const std::string reasoning = text_of(answer_, Part::reasoning);
    if (!reasoning.empty()) message["reasoning_content"] = reasoning;
    for (const auto& call : answer_.calls)
      message["tool_calls"].push_back(
          {{"id", call.id},
           {"type", "function"},
           {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
    json body = {{"id", "chatcmpl-" + answer_.id},
                 {"object", "chat.completion"},
                 {"created", created},
                 {"model", answer_.model},
                 {"choices",
                  json::array({{{"index", 0}, {"finish_reason", finish()}, {"message", message}}})},
                 {"usage", usage_of(done)}};
    if (is_llama()) {
      body["system_fingerprint"] = "b10573-3f545be";
      body["timings"] = json::parse(timings_of(done, model_));
    }
    return body.dump();
  }

 private:
  [[nodiscard]] bool is_llama() const { return model_.build <= ServerBuild::llama_cpp_2025; }
  [[nodiscard]] std::string finish() const {
    return answer_.cut ? "length" : answer_.calls.empty() ? "stop" : "tool_calls";
  }
  [[nodiscard]] json chunk(const json& delta, const json& finish) const {
    json data = {
        {"choices", json::array({{{"index", 0}, {"delta", delta}, {"finish_reason", finish}}})},
        {"created", created},
        {"id", "chatcmpl-" + answer_.id},
        {"model", answer_.model},
        {"object", "chat.completion.chunk"}};
    if (is_llama()) data["system_fingerprint"] = "b10573-3f545be";
    return data;
  }

  const ScriptedAnswer& answer_;
  const SimulatedModel& model_;
  std::size_t calls_begun_ = 0;
};

/// `/v1/completions`.
class OpenAiText : public Dialect {
 public:
  OpenAiText(const ScriptedAnswer& answer, const SimulatedModel& model)
      : answer_(answer), model_(model) {}

  std::string progress(const Piece& piece) override {
    json data = body("", nullptr);
    data["prompt_progress"] = json::parse(progress_of(piece, model_));
    return sse(data);
  }
  std::string token(const ScriptedToken& token, bool) override {
    return sse(body(token.text, nullptr));
  }
  std::string end(const Piece& done) override {
    std::string out = sse(body("", answer_.cut ? "length" : "stop"));
    if (answer_.usage) {
      json usage = body("", nullptr);
      usage["choices"] = json::array();
      usage["usage"] = usage_of(done);
      out += sse(usage);
    }
    return out + "data: [DONE]\n\n";
  }
  std::string whole(const Piece& done) override {
    std::string text;
    for (const auto& token : answer_.tokens) text += token.text;
    json all = body(text, answer_.cut ? "length" : "stop");
    all["usage"] = usage_of(done);
    if (model_.build <= ServerBuild::llama_cpp_2025)
      all["timings"] = json::parse(timings_of(done, model_));
    return all.dump();
  }

 private:
  [[nodiscard]] json body(std::string_view text, const json& finish) const {
    return {{"choices", json::array({{{"index", 0}, {"text", text}, {"finish_reason", finish}}})},
            {"created", created},
            {"id", "cmpl-" + answer_.id},
            {"model", answer_.model},
            {"object", "text_completion"}};
  }
  const ScriptedAnswer& answer_;
  const SimulatedModel& model_;
};

/// `/v1/embeddings`: never a stream.
class OpenAiEmbeddings : public Dialect {
 public:
  explicit OpenAiEmbeddings(const ScriptedAnswer& answer) : answer_(answer) {}
  std::string token(const ScriptedToken&, bool) override { return {}; }
  std::string end(const Piece&) override { return {}; }
  std::string whole(const Piece& done) override {
    const double first = static_cast<double>(answer_.id.size()) / 16;
    return json{
        {"object", "list"},
        {"model", answer_.model},
        {"data",
         json::array(
             {{{"object", "embedding"}, {"index", 0}, {"embedding", {first, -0.5, 0.25, 0.125}}}})},
        {"usage", {{"prompt_tokens", done.total}, {"total_tokens", done.total}}}}
        .dump();
  }

 private:
  const ScriptedAnswer& answer_;
};

/// `/v1/responses`: each event has its name, and a number that rises.
class OpenAiResponses : public Dialect {
 public:
  explicit OpenAiResponses(const ScriptedAnswer& answer) : answer_(answer) {}

  std::string token(const ScriptedToken& token, bool is_first) override {
    std::string out;
    if (is_first) {
      out = event("response.created", {{"response", response("in_progress")}});
      out += event("response.in_progress", {{"response", response("in_progress")}});
    }
    if (!open_ || open_->part != token.part || open_->call != token.call) {
      out += close_item();
      out += open_item(token);
      open_ = {.part = token.part, .call = token.call, .text = {}};
    }
    open_->text += token.text;
    static constexpr std::string_view names[] = {"response.reasoning_text.delta",
                                                 "response.output_text.delta",
                                                 "response.function_call_arguments.delta"};
    return out +
           event(names[static_cast<std::size_t>(token.part)], {{"item_id", item_id()},
                                                               {"output_index", items_.size()},
                                                               {"content_index", 0},
                                                               {"delta", token.text}});
  }

  std::string end(const Piece& done) override {
    std::string out = close_item();
    json all = response(answer_.cut ? "incomplete" : "completed");
    all["usage"] = usage_of_response(done);
    if (answer_.cut) all["incomplete_details"] = {{"reason", "max_output_tokens"}};
    return out +
           event(answer_.cut ? "response.incomplete" : "response.completed", {{"response", all}});
  }

  std::string error_in_stream(const Piece& piece) override {
    return event("error", {{"code", piece.type}, {"message", piece.message}, {"param", nullptr}});
  }

  std::string whole(const Piece& done) override {
    for (const auto& token : answer_.tokens) (void)this->token(token, false);
    (void)close_item();
    json all = response(answer_.cut ? "incomplete" : "completed");
    all["usage"] = usage_of_response(done);
    return all.dump();
  }

 private:
  [[nodiscard]] static json usage_of_response(const Piece& done) {
    return {{"input_tokens", done.total},
            {"input_tokens_details", {{"cached_tokens", done.cached}}},
            {"output_tokens", done.written},
            {"output_tokens_details", {{"reasoning_tokens", 0}}},
            {"total_tokens", done.total + done.written}};
  }
  [[nodiscard]] json response(std::string_view status) const {
    return {{"id", "resp_" + answer_.id}, {"object", "response"}, {"created_at", created},
            {"model", answer_.model},     {"status", status},     {"output", items_}};
  }
  std::string event(std::string_view name, json data) {
    data["type"] = name;
    data["sequence_number"] = number_++;
    return "event: " + std::string(name) + "\ndata: " + data.dump() + "\n\n";
  }
  [[nodiscard]] std::string item_id() const { return "item_" + std::to_string(items_.size()); }

  /// The open item, as it is so far.
  [[nodiscard]] json item(const ScriptedToken& open, std::string_view status) const {
    json made = {{"id", item_id()}, {"status", status}};
    switch (open.part) {
      case Part::reasoning:
        made["type"] = "reasoning";
        made["summary"] = json::array();
        made["content"] = json::array({{{"type", "reasoning_text"}, {"text", open.text}}});
        break;
      case Part::text:
        made["type"] = "message";
        made["role"] = "assistant";
        made["content"] = json::array(
            {{{"type", "output_text"}, {"text", open.text}, {"annotations", json::array()}}});
        break;
      case Part::call:
        made["type"] = "function_call";
        made["call_id"] = answer_.calls[open.call].id;
        made["name"] = answer_.calls[open.call].name;
        made["arguments"] = open.text;
        break;
    }
    return made;
  }

  std::string open_item(const ScriptedToken& token) {
    json added = item({.part = token.part, .call = token.call, .text = {}}, "in_progress");
    if (token.part != Part::call) added["content"] = json::array();
    std::string out =
        event("response.output_item.added", {{"output_index", items_.size()}, {"item", added}});
    if (token.part == Part::text)
      out += event(
          "response.content_part.added",
          {{"item_id", item_id()},
           {"output_index", items_.size()},
           {"content_index", 0},
           {"part", {{"type", "output_text"}, {"text", ""}, {"annotations", json::array()}}}});
    return out;
  }

  std::string close_item() {
    if (!open_) return {};
    const json done = item(*open_, "completed");
    const json where = {
        {"item_id", item_id()}, {"output_index", items_.size()}, {"content_index", 0}};
    std::string out;
    const auto send = [&](std::string_view name, const char* key, const json& value) {
      json data = where;
      data[key] = value;
      out += event(name, std::move(data));
    };
    switch (open_->part) {
      case Part::reasoning:
        send("response.reasoning_text.done", "text", open_->text);
        break;
      case Part::text:
        send("response.output_text.done", "text", open_->text);
        send("response.content_part.done", "part", done["content"][0]);
        break;
      case Part::call:
        send("response.function_call_arguments.done", "arguments", open_->text);
        break;
    }
    out += event("response.output_item.done", {{"output_index", items_.size()}, {"item", done}});
    items_.push_back(done);
    open_.reset();
    return out;
  }

  const ScriptedAnswer& answer_;
  json items_ = json::array();
  std::optional<ScriptedToken> open_;
  int number_ = 0;
};

}  // namespace

std::unique_ptr<Dialect> openai_chat(const ScriptedAnswer& answer, const SimulatedModel& model) {
  return std::make_unique<OpenAiChat>(answer, model);
}
std::unique_ptr<Dialect> openai_text(const ScriptedAnswer& answer, const SimulatedModel& model) {
  return std::make_unique<OpenAiText>(answer, model);
}
std::unique_ptr<Dialect> openai_embeddings(const ScriptedAnswer& answer, const SimulatedModel&) {
  return std::make_unique<OpenAiEmbeddings>(answer);
}
std::unique_ptr<Dialect> openai_responses(const ScriptedAnswer& answer, const SimulatedModel&) {
  return std::make_unique<OpenAiResponses>(answer);
}

}  // namespace watchdog::test
