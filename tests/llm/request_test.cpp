// Questions as each server wants them written.

#include "llm/request.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace watchdog {
namespace {

using nlohmann::json;

const ChatRequest whole{
    .messages = {{.role = "system", .content = "Be \"brief\".\n"},
                 {.role = "assistant",
                  .tool_calls = {{.id = "a", .name = "read", .arguments = R"({"x":1})"}}},
                 {.role = "tool", .content = "done", .tool_call_id = "a"}},
    .tools = R"([{"type":"function","function":{"name":"read"}}])",
    .output_tokens_max = 50,
    .temperature = 0.5,
    .schema = R"({"type":"object"})",
    .thinking = false,
    .probabilities = true,
    .slot = 2};

json written(const ChatRequest& request, ServerKind server, bool stream = true) {
  return json::parse(to_json(request, {.server = server, .model = "own", .stream = stream}));
}

TEST(ChatRequest, the_conversation_is_written_as_the_api_has_it) {
  const auto body = written(whole, ServerKind::unknown);
  EXPECT_EQ(body["model"], "own");
  EXPECT_EQ(body["messages"][0], json::parse(R"({"role":"system","content":"Be \"brief\".\n"})"));
  EXPECT_EQ(body["messages"][1],
            json::parse(R"({"role":"assistant","content":"","tool_calls":[{"id":"a",
              "type":"function","function":{"name":"read","arguments":"{\"x\":1}"}}]})"));
  EXPECT_EQ(body["messages"][2],
            json::parse(R"({"role":"tool","content":"done","tool_call_id":"a"})"));
  EXPECT_EQ(body["tools"][0]["function"]["name"], "read");
  EXPECT_EQ(body["max_tokens"], 50);
  EXPECT_EQ(body["temperature"], 0.5);
  EXPECT_EQ(body["logprobs"], true);
  EXPECT_EQ(body["top_logprobs"], 5);
  EXPECT_EQ(body["stream"], true);
  EXPECT_EQ(body["stream_options"], json::parse(R"({"include_usage":true})"));
  EXPECT_EQ(body["response_format"], json::parse(R"({"type":"json_schema","json_schema":
    {"name":"answer","schema":{"type":"object"},"strict":true}})"));
}

TEST(ChatRequest, an_option_that_is_not_set_is_not_written) {
  const auto body = written({.model = "this", .messages = {{.role = "user", .content = "a"}}},
                            ServerKind::llama_cpp, false);
  EXPECT_EQ(body, json::parse(R"({"model":"this","messages":[{"role":"user","content":"a"}],
                                  "stream":false})"));
}

TEST(ChatRequest, each_server_gets_the_fields_it_knows) {
  const auto llama = written(whole, ServerKind::llama_cpp);
  EXPECT_EQ(llama["return_progress"], true);
  EXPECT_EQ(llama["id_slot"], 2);
  EXPECT_EQ(llama["chat_template_kwargs"], json::parse(R"({"enable_thinking":false})"));
  EXPECT_FALSE(llama.contains("reasoning_effort"));

  const auto vllm = written(whole, ServerKind::vllm);
  EXPECT_EQ(vllm["chat_template_kwargs"], json::parse(R"({"enable_thinking":false})"));
  for (const char* field : {"return_progress", "id_slot", "reasoning_effort"})
    EXPECT_FALSE(vllm.contains(field)) << field;

  const auto ollama = written(whole, ServerKind::ollama);
  EXPECT_EQ(ollama["reasoning_effort"], "none");
  for (const char* field : {"return_progress", "id_slot", "chat_template_kwargs"})
    EXPECT_FALSE(ollama.contains(field)) << field;

  const auto unknown = written(whole, ServerKind::unknown);
  for (const char* field :
       {"return_progress", "id_slot", "chat_template_kwargs", "reasoning_effort"})
    EXPECT_FALSE(unknown.contains(field)) << field;
}

TEST(ChatRequest, text_that_is_not_utf8_is_made_valid) {
  const auto body =
      written({.messages = {{.role = "user", .content = "a\xff"}}}, ServerKind::unknown);
  EXPECT_EQ(body["messages"][0]["content"], "a\xEF\xBF\xBD");
}

TEST(ChatRequest, fields_that_have_to_be_json_are_looked_at) {
  EXPECT_EQ(wrong_field(whole), "");
  EXPECT_EQ(wrong_field({.tools = "[{]"}), "tools");
  EXPECT_EQ(wrong_field({.schema = "} , \"model\":\"other\""}), "schema");
}

TEST(ChatRequest, a_refused_extra_is_left_out_the_second_time) {
  const RequestShape shape{.server = ServerKind::unknown, .model = "own"};
  const auto sent = to_json(whole, shape);
  EXPECT_FALSE(plainer(shape, sent, 400, "bad prompt"));
  EXPECT_FALSE(plainer(shape, sent, 500, "response_format is not supported"));
  EXPECT_FALSE(plainer(shape, sent, 400, "chat_template_kwargs is not permitted")) << "not sent";

  const auto without = plainer(shape, sent, 400, "response_format is not supported");
  ASSERT_TRUE(without);
  const auto body = json::parse(to_json(whole, *without));
  for (const char* field : {"response_format", "logprobs", "top_logprobs", "stream_options"})
    EXPECT_FALSE(body.contains(field)) << field;
  EXPECT_TRUE(body.contains("tools"));
  EXPECT_TRUE(body.contains("max_tokens"));
  EXPECT_FALSE(plainer(*without, body.dump(), 400, "response_format again"));

  const auto newer = plainer(shape, sent, 400,
                             "Unsupported parameter: 'max_tokens' is not supported with this "
                             "model. Use 'max_completion_tokens' instead.");
  ASSERT_TRUE(newer);
  const auto other = json::parse(to_json(whole, *newer));
  EXPECT_EQ(other["max_completion_tokens"], 50);
  EXPECT_FALSE(other.contains("max_tokens"));
  EXPECT_TRUE(other.contains("response_format"));
}

TEST(ChatRequest, a_server_that_refuses_field_after_field_gets_what_is_left) {
  // As reasoning models refuse: one field a time.
  std::optional<RequestShape> shape = RequestShape{.server = ServerKind::unknown, .model = "own"};
  const ChatRequest asked{.messages = {{.role = "user", .content = "x"}},
                          .output_tokens_max = 50,
                          .temperature = 0.0,
                          .schema = "{}",
                          .thinking = false,
                          .probabilities = true,
                          .seed = 7};
  int tries = 0;
  std::string sent = to_json(asked, *shape);
  while (shape && tries < 10) {
    ++tries;
    sent = to_json(asked, *shape);
    std::string refused;
    for (const auto* field : {"max_tokens", "temperature", "seed", "logprobs", "response_format"})
      if (refused.empty() && json::parse(sent).contains(field)) refused = field;
    if (refused.empty()) break;
    shape = plainer(*shape, sent, 400,
                    "Unsupported parameter: " + refused +
                        (refused == "max_tokens" ? ". Use max_completion_tokens" : ""));
  }
  EXPECT_TRUE(shape) << "it gave up although something could be left out: " << sent;
  EXPECT_LE(tries, 5);
  EXPECT_TRUE(json::parse(sent).contains("max_completion_tokens"));
}

}  // namespace
}  // namespace watchdog
