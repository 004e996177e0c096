#include "llm/model_request.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace watchdog {
namespace {

using nlohmann::json;

ModelRequest read(std::string_view target, const std::string& body) {
  auto request = model_request_from("POST", target, body);
  EXPECT_TRUE(request.has_value()) << target;
  return request ? *request : ModelRequest{};
}

/// The model and the new parts of the request, as one line that a test can compare.
std::string shown(const ModelRequest& request) {
  std::string all = request.model + (request.stream ? " stream " : " ") +
                    std::to_string(request.messages.size()) + "/" + std::to_string(request.newest);
  for (const auto& call : request.calls) all += "|" + call.id + ":" + call.name + call.arguments;
  for (const auto& message : request.unanswered) {
    if (!message.text.empty()) all += "|" + message.text;
    for (const auto& result : message.results)
      all += "|" + result.call_id + (result.is_error ? "!" : "=") + result.name + result.content;
  }
  return all;
}

TEST(ModelRequest, every_api_is_understood) {
  struct Row {
    const char* target;
    const char* body;
    const char* shown;
  };
  const Row rows[] = {
      {"/v1/chat/completions",
       R"({"model":"m","stream":true,"messages":[{"role":"system","content":"S"},{"role":"user","content":"U"}]})",
       "m stream 2/0|U"},
      {"/openai/deployments/x/chat/completions?api-version=1",
       R"({"messages":[{"role":"user","content":"U"},{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"b","function":{"name":"g","arguments":"{}"}}]},{"role":"tool","tool_call_id":"a","content":"A"},{"role":"tool","tool_call_id":"b","content":[{"type":"text","text":"B"}]}]})",
       R"( 4/2|a:f{"x":1}|b:g{}|a=A|b=B)"},
      {"/v1/chat/completions",
       R"({"messages":[{"role":"user","content":"U"},{"role":"assistant","function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"A"}]})",
       " 3/2|:f{}|=fA"},
      {"/v1/completions", R"({"model":"m","prompt":"Once"})", "m 1/0|Once"},
      {"/completion", R"({"prompt":["a","b"],"stream":true})", " stream 1/0|a\nb"},
      {"/v1/responses", R"({"model":"m","input":"Hi","instructions":"S"})", "m 2/0|Hi"},
      {"/v1/responses",
       R"({"input":[{"role":"user","content":[{"type":"input_text","text":"U"}]},{"type":"reasoning","id":"r"},{"type":"function_call","call_id":"a","name":"f","arguments":"{}"},{"type":"local_shell_call","call_id":"b","action":{"x":1}},{"type":"function_call_output","call_id":"a","output":"A"},{"type":"local_shell_call_output","call_id":"b","output":"B"}]})",
       R"( 6/4|a:f{}|b:local_shell_call{"x":1}|a=A|b=B)"},
      {"/v1/messages?beta=true",
       R"({"model":"c","system":[{"type":"text","text":"S"}],"messages":[{"role":"user","content":"U"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"T"},{"type":"tool_use","id":"u","name":"f","input":{"x":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"u","content":[{"type":"text","text":"A"}],"is_error":true},{"type":"text","text":"and this"}]}]})",
       R"(c 4/3|u:f{"x":1}|and this|u!A)"},
      {"/api/chat",
       R"({"model":"q","messages":[{"role":"user","content":"U"},{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{"x":1}}}]},{"role":"tool","tool_name":"f","content":"A"}]})",
       R"(q stream 3/2|:f{"x":1}|=fA)"},
      {"/api/generate", R"({"model":"q","prompt":"Hi","system":"S","stream":false})", "q 2/0|Hi"},
      {"/api/generate", R"({"model":"q","prompt":""})", "q stream 0/0"},
      {"/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
       R"({"systemInstruction":{"parts":[{"text":"S"}]},"contents":[{"role":"user","parts":[{"text":"C"},{"text":"U"}]},{"role":"model","parts":[{"text":"hm","thought":true},{"functionCall":{"id":"a","name":"f","args":{"x":1}},"thoughtSignature":"z"},{"functionCall":{"name":"g"}}]},{"role":"user","parts":[{"functionResponse":{"id":"a","name":"f","response":{"output":"A"}}},{"functionResponse":{"name":"g","response":{"error":"B"}}}]}]})",
       R"(gemini-2.5-flash stream 4/3|a:f{"x":1}|:g|a=fA|!gB)"},
      {"/v1/projects/p/locations/l/publishers/google/models/gemini-pro:generateContent",
       R"({"system_instruction":{"parts":{"text":"S"}},"contents":[{"parts":[{"text":"U"},{"inlineData":{"data":""}}]},{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"role":"function","parts":[{"functionResponse":{"name":"f","response":{"n":7}}}]}]})",
       R"(gemini-pro 4/3|:f|=f{"n":7})"},
      {"/v1internal:streamGenerateContent?alt=sse",
       R"({"model":"gemini-2.5-pro","project":"p","request":{"contents":[{"role":"user","parts":[{"text":"U"}]}]}})",
       "gemini-2.5-pro stream 1/0|U"},
      // The beginning of an answer, which the model is to continue, is not an answer.
      {"/v1/messages",
       R"({"messages":[{"role":"user","content":"U"},{"role":"assistant","content":"{"}]})",
       " 1/0|U"},
  };
  for (const auto& row : rows) EXPECT_EQ(shown(read(row.target, row.body)), row.shown) << row.body;
}

TEST(ModelRequest, a_request_that_asks_for_no_answer_is_not_a_model_request) {
  for (const char* target :
       {"/v1/models", "/v1/embeddings", "/api/tags", "/api/ps", "/v1/messages/count_tokens",
        "/v1beta/models/m:countTokens", "/v1beta/models/m:embedContent", "/v1/threads/t/messages",
        "/v1/responses/r/input_items", "/tokenize", "/", ""})
    EXPECT_FALSE(model_request_from("POST", target, "{}").has_value()) << target;
  EXPECT_FALSE(model_request_from("GET", "/v1/responses", "").has_value());
}

TEST(ModelRequest, a_slash_at_the_end_of_its_path_changes_nothing) {
  for (const char* target :
       {"/v1/chat/completions/", "/v1/chat/completions/?a=b", "/v1/responses//", "/api/chat/",
        "/v1/messages/", "/v1beta/models/m:generateContent/"})
    EXPECT_TRUE(model_request_from("POST", target, "{}").has_value()) << target;
}

TEST(ModelRequest, of_a_cut_body_its_opening_is_known_and_its_end_is_not) {
  const std::string whole =
      R"({"model":"m","stream":true,"prompt_cache_key":"k","messages":[{"role":"system","content":"S"},{"role":"user","content":"U 1"},{"role":"assistant","content":"A"},{"role":"user","content":"V"}]})";
  const auto read = *model_request_from("POST", "/v1/chat/completions", whole);
  const auto first = whole.find("U 1") + 3;
  for (std::size_t size = 0; size <= whole.size(); ++size) {
    const auto cut =
        *model_request_from_beginning("POST", "/v1/chat/completions", whole.substr(0, size));
    EXPECT_TRUE(cut.is_cut);
    EXPECT_FALSE(cut.readable);
    EXPECT_TRUE(cut.messages.empty() && cut.unanswered.empty());
    if (size >= first) {
      EXPECT_EQ(cut.opening, read.opening) << size;
    }
    if (size <= whole.find("U 1")) {
      EXPECT_TRUE(cut.opening == 0 || cut.opening != read.opening) << size;
    }
    if (size > first) {
      EXPECT_EQ(cut.names.cache_key, "k");
      EXPECT_TRUE(cut.stream);
    }
  }
  EXPECT_FALSE(model_request_from_beginning("POST", "/v1/embeddings", whole).has_value());
}

TEST(ModelRequest, a_helpers_prompt_says_that_it_is_one) {
  struct Row {
    const char* body;
    bool helper;
    bool tools;
  };
  const Row rows[] = {
      {R"({"messages":[{"role":"system","content":"You are a title generator. You output"},{"role":"user","content":"U"}]})",
       true, false},
      {R"({"system":[{"type":"text","text":"You are Claude Code."},{"type":"text","text":"Generate a concise, sentence-case title"}],"messages":[{"role":"user","content":"U"}]})",
       true, false},
      {R"({"messages":[{"role":"system","content":"You are a title generator."},{"role":"user","content":"U"}],"tools":[{"function":{"name":"f"}}]})",
       false, true},
      {R"({"messages":[{"role":"system","content":"Say not: You are a title generator."},{"role":"user","content":"U"}],"tools":[]})",
       false, false},
      {R"({"messages":[{"role":"user","content":"You are a title generator."}]})", false, false},
      {R"({"messages":[{"role":"user","content":"U"},{"role":"assistant","content":"A"},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"R"},{"type":"text","text":"CRITICAL: Respond with TEXT ONLY. Do NOT call any tools.\n"}]}],"tools":[{"name":"f"}]})",
       true, true},
      {R"({"messages":[{"role":"user","content":"CRITICAL: Respond with TEXT ONLY. Do NOT call any tools."},{"role":"assistant","content":"A"},{"role":"user","content":"U"}],"tools":[{"name":"f"}]})",
       false, true},
      {R"({"contents":[{"role":"user","parts":[{"text":"U"}]}],"tools":[{"functionDeclarations":[{"name":"f"}]}]})",
       false, true},
  };
  for (const auto& row : rows) {
    const auto request = read("/v1/messages", row.body);
    EXPECT_EQ(request.is_helper, row.helper) << row.body;
    EXPECT_EQ(request.has_tools, row.tools) << row.body;
  }
}

TEST(ModelRequest, a_message_is_the_same_however_clients_wrap_it) {
  const auto digest = [](const std::string& message) {
    return read("/v1/messages", R"({"messages":[)" + message + "]}").messages.at(0).digest;
  };
  const auto plain = digest(R"({"role":"user","content":"U"})");
  EXPECT_EQ(plain, digest(R"({"content":[{"type":"text","text":"U"}],"role":"user"})"));
  EXPECT_EQ(plain, digest(R"({"role":"user","content":[{"type":"text","text":"U",)"
                          R"("cache_control":{"type":"ephemeral"}}]})"));
  EXPECT_NE(plain, digest(R"({"role":"user","content":"V"})"));
  EXPECT_NE(plain, digest(R"({"role":"system","content":"U"})"));
  const auto picture = [&](const char* data) {
    return digest(std::string(R"({"role":"user","content":[{"type":"image","source":{"data":")") +
                  data + "\"}}]}");
  };
  EXPECT_NE(picture("AAAA"), picture("BBBB"));
}

TEST(ModelRequest, an_opening_is_the_same_tomorrow) {
  const auto opening = [](const char* system, const char* user) {
    return read("/v1/chat/completions", json{{"messages",
                                              {{{"role", "system"}, {"content", system}},
                                               {{"role", "user"}, {"content", user}}}}}
                                            .dump())
        .opening;
  };
  EXPECT_EQ(opening("It is 2026-01-02 9:05.", "Hi"), opening("It is 2027-11-30 10:41.", "Hi"));
  EXPECT_NE(opening("S", "Hi"), opening("S", "Ho"));
  EXPECT_NE(opening("S", "Hi"), opening("T", "Hi"));
}

TEST(ModelRequest, clients_names_for_their_conversations_are_found) {
  const auto names = [](const char* body) { return read("/v1/responses", body).names; };
  EXPECT_EQ(names(R"({"prompt_cache_key":"k"})").cache_key, "k");
  EXPECT_EQ(names(R"({"metadata":{"session_id":"s"}})").session, "s");
  EXPECT_EQ(names(R"({"metadata":{"user_id":"user_1f_account_2e_session_9-8"}})").session, "9-8");
  EXPECT_EQ(names(R"({"metadata":{"user_id":"{\"session_id\":\"j\"}"}})").session, "j");
  EXPECT_EQ(names(R"({"metadata":{"user_id":"somebody"}})").session, "");
  EXPECT_EQ(names(R"({"previous_response_id":"r"})").previous_response, "r");
  EXPECT_EQ(names(R"({"conversation":{"id":"c"}})").conversation, "c");
  EXPECT_EQ(names(R"({"conversation":"c"})").conversation, "c");
  EXPECT_EQ(names(R"({"user":"u"})").user, "u");
  EXPECT_EQ(names(R"({"user":{"a":1},"metadata":[1],"prompt_cache_key":7})").user, "");
}

TEST(ModelRequest, hostile_bodies_are_bounded) {
  const std::string deep(100'000, '[');
  const std::string many = "{\"prompt\":[" + std::string(2'000'000, '0') + "]}";
  std::string zeros = "{\"prompt\":[0";
  for (int n = 0; n < 1'000'000; ++n) zeros += ",0";
  zeros += "]}";
  for (const auto& body : {deep, "{\"messages\":" + deep, many, zeros, std::string("null"),
                           std::string("\xFF\xFE"), std::string()})
    EXPECT_FALSE(read("/v1/chat/completions", body).readable) << body.substr(0, 40);
  for (const char* body :
       {R"({"messages":7})", R"({"messages":[7,null,[],{"role":3,"content":{"x":1}}]})",
        R"({"messages":[{"role":"tool","content":[[],{"text":4}]}]})", R"({"input":[{"type":9}]})",
        R"({"messages":[{"role":"assistant","tool_calls":[1,{"function":4}]},{"role":"user"}]})"})
    EXPECT_TRUE(read("/v1/chat/completions", body).readable) << body;
}

TEST(ModelRequest, only_the_new_part_of_a_huge_history_is_kept) {
  json messages = json::array();
  for (int n = 0; n < 10'000; ++n)
    messages.push_back({{"role", n % 2 == 0 ? "user" : "assistant"},
                        {"content", std::string(1'000, 'a') + std::to_string(n)}});
  messages.push_back({{"role", "user"}, {"content", std::string(3'000'000, 'b')}});
  const auto request = read("/v1/chat/completions", json{{"messages", messages}}.dump());
  EXPECT_EQ(request.messages.size(), 10'001U);
  EXPECT_EQ(request.newest, 10'000U);
  ASSERT_EQ(request.unanswered.size(), 1U);
  EXPECT_EQ(request.unanswered[0].text.size(), 1U << 20U);
}

TEST(ModelRequest, more_results_than_anybody_asks_for_are_passed_over) {
  json messages = {{{"role", "user"}, {"content", "U"}}};
  for (int n = 0; n < 50'000; ++n)
    messages.push_back({{"role", "tool"}, {"tool_call_id", "c"}, {"content", "A"}});
  const auto request = read("/v1/chat/completions", json{{"messages", messages}}.dump());
  std::size_t results = 0;
  for (const auto& message : request.unanswered) results += message.results.size();
  EXPECT_EQ(results, 1'000U);
  EXPECT_EQ(request.messages.size(), 50'001U);
}

}  // namespace
}  // namespace watchdog
