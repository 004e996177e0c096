#include "llm/answer_stream.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <utility>

#include "support/scenario.h"

namespace watchdog {
namespace {

/// The observed answer, as one line that a test can compare.
std::string shown(const ObservedAnswer& heard) {
  std::string all = heard.text + "|" + heard.finish_reason + "|" +
                    (heard.complete ? "complete"
                     : heard.begun  ? "begun"
                                    : "nothing");
  for (const auto& call : heard.calls) all += "|" + call.id + ":" + call.name + call.arguments;
  if (heard.prompt_read > 0) all += "|read " + std::to_string(heard.prompt_read);
  if (heard.prompt_tokens > 0) all += "|prompt " + std::to_string(heard.prompt_tokens);
  if (heard.output_tokens > 0) all += "|output " + std::to_string(heard.output_tokens);
  if (!heard.id.empty()) all += "|id " + heard.id;
  if (!heard.error.empty()) all += "|error " + heard.error;
  return all + (heard.lost ? "|lost" : "");
}

struct Heard {
  std::string line;
  std::string sunk;  // text and reasoning
  std::int64_t pieces = 0;
};

Heard hear(std::string_view body, std::string_view type, int status,
           const std::function<std::size_t()>& next_bytes) {
  Heard all;
  AnswerStream stream(status, type, [&](std::string_view text) { all.sunk += text; });
  while (!body.empty()) {
    const auto piece = body.substr(0, next_bytes());
    stream.feed(piece);
    body.remove_prefix(piece.size());
  }
  stream.end();
  all.line = shown(stream.heard());
  all.pieces = stream.heard().pieces;
  return all;
}
Heard hear(std::string_view body, std::string_view type = "text/event-stream", int status = 200) {
  return hear(body, type, status, [&] { return body.size(); });
}

struct Recorded {
  const char* what;
  const char* type;
  int status;
  std::string body;
  const char* line;
};

const std::vector<Recorded>& recorded() {
  static const std::string args = R"({\"a\":1})";
  static const std::vector<Recorded> all = {
      {"chat stream", "text/event-stream", 200,
       "data: {\"id\":\"c1\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\","
       "\"content\":null}}],\"prompt_progress\":{\"total\":90,\"cache\":0,\"processed\":40}}\n\n"
       ": ping\n\n"
       "data: {\"id\":\"c1\",\"choices\":[{\"delta\":{\"reasoning_content\":\"Hm\"}}]}\n\n"
       "data: {\"id\":\"c1\",\"choices\":[{\"delta\":{\"content\":\"H\xC3\xA4\"}}]}\n\n"
       "data: {\"id\":\"c1\",\"choices\":[{\"delta\":{\"content\":\" there\"}}]}\n\n"
       "data: {\"id\":\"c1\",\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
       "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":90,\"completion_tokens\":5}}\n\n"
       "data: [DONE]\n\n",
       "H\xC3\xA4 there|stop|complete|read 40|prompt 90|output 5|id c1"},
      {"chat stream of calls", "text/event-stream", 200,
       R"(data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}}]})"
       "\r\n\r\n"
       R"(data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":"}}]}}]})"
       "\r\n\r\n"
       R"(data: {"choices":[{"delta":{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":"{}"}},{"index":0,"function":{"arguments":"1}"}}]}}]})"
       "\r\n\r\n"
       R"(data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]})"
       "\r\n\r\n",
       R"(|tool_calls|complete|a:f{"x":1}|b:g{})"},
      {"chat whole", "application/json", 200,
       R"({"id":"c","choices":[{"index":0,"message":{"content":"Yes","tool_calls":[{"id":"a","function":{"name":"f"}}]},"finish_reason":"tool_calls"},{"index":1,"message":{"content":"No"}}],"usage":{"prompt_tokens":3,"completion_tokens":2}})",
       "Yes|tool_calls|complete|a:f{}|prompt 3|output 2|id c"},
      {"completions", "text/event-stream", 200,
       "data: {\"id\":\"t\",\"choices\":[{\"text\":\"a\",\"finish_reason\":null}]}\n\n"
       "data: {\"id\":\"t\",\"choices\":[{\"text\":\"b\",\"finish_reason\":\"length\"}]}\n\n",
       "ab|length|complete|id t"},
      {"Responses stream", "text/event-stream; charset=utf-8", 200,
       "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r1\","
       "\"object\":\"response\",\"status\":\"in_progress\",\"error\":null,\"output\":[]}}\n\n"
       "event: x\ndata: {\"type\":\"response.reasoning_summary_text.delta\",\"delta\":\"hm\"}\n\n"
       "data: {\"type\":\"response.output_text.delta\",\"delta\":\"Hi\"}\n\n"
       "data: {\"type\":\"response.function_call_arguments.delta\",\"delta\":\"{\\\"a\\\":1}\"}\n\n"
       "data: {\"type\":\"response.output_item.done\",\"item\":{\"type\":\"function_call\","
       "\"call_id\":\"k\",\"name\":\"f\",\"arguments\":\"{\\\"a\\\":1}\"}}\n\n"
       "data: {\"type\":\"response.completed\",\"response\":{\"id\":\"r1\",\"status\":"
       "\"completed\",\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\","
       "\"text\":\"Hi\"}]},{\"type\":\"function_call\",\"call_id\":\"k\",\"name\":\"f\","
       "\"arguments\":\"{\\\"a\\\":1}\"}],\"usage\":{\"input_tokens\":7,\"output_tokens\":2}}}\n\n",
       R"(Hi|completed|complete|k:f{"a":1}|prompt 7|output 2|id r1)"},
      {"Responses whole", "application/json", 200,
       R"({"id":"r2","object":"response","status":"completed","error":null,"output":[{"type":"reasoning"},{"type":"message","content":[{"type":"output_text","text":"Hi"}]},{"type":"web_search_call","id":"w"},{"type":"custom_tool_call","call_id":"q","name":"patch","input":"*** x"}],"usage":{"input_tokens":7,"output_tokens":2}})",
       "Hi|completed|complete|q:patch*** x|prompt 7|output 2|id r2"},
      {"Responses failed", "text/event-stream", 200,
       R"(data: {"type":"response.failed","response":{"id":"r","status":"failed","error":{"code":"server_error","message":"no luck"}}})"
       "\n\n",
       "|failed|complete|id r|error no luck"},
      {"Anthropic stream", "text/event-stream", 200,
       "event: message_start\ndata: "
       "{\"type\":\"message_start\",\"message\":{\"id\":\"m1\",\"type\":"
       "\"message\",\"content\":[],\"usage\":{\"input_tokens\":4,\"cache_read_input_tokens\":6,"
       "\"output_tokens\":1}}}\n\n"
       "event: ping\ndata: {\"type\":\"ping\"}\n\n"
       "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\","
       "\"text\":\"\"}}\n\n"
       "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\","
       "\"text\":\"Hi\"}}\n\n"
       "data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":"
       "\"tool_use\",\"id\":\"u\",\"name\":\"f\",\"input\":{}}}\n\n"
       "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":"
       "\"input_json_delta\",\"partial_json\":\"{\\\"x\\\": \"}}\n\n"
       "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":"
       "\"input_json_delta\",\"partial_json\":\"2}\"}}\n\n"
       "data: {\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":"
       "\"server_tool_use\",\"id\":\"s\",\"name\":\"search\",\"input\":{}}}\n\n"
       "data: {\"type\":\"content_block_delta\",\"index\":2,\"delta\":{\"type\":"
       "\"input_json_delta\",\"partial_json\":\"{}\"}}\n\n"
       "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{"
       "\"output_tokens\":9}}\n\n"
       "data: {\"type\":\"message_stop\"}\n\n",
       R"(Hi|tool_use|complete|u:f{"x": 2}|prompt 10|output 9|id m1)"},
      {"Anthropic whole", "application/json", 200,
       R"({"id":"m","type":"message","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"Hi"},{"type":"tool_use","id":"u","name":"f","input":{"x":2}}],"stop_reason":"end_turn","usage":{"input_tokens":4,"output_tokens":9}})",
       R"(Hi|end_turn|complete|u:f{"x":2}|prompt 4|output 9|id m)"},
      {"Anthropic error in the stream", "text/event-stream", 200,
       "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\","
       "\"message\":\"Overloaded\"}}\n\n",
       "||nothing|error Overloaded"},
      {"Ollama chat", "application/x-ndjson", 200,
       "{\"model\":\"q\",\"message\":{\"role\":\"assistant\",\"content\":\"H\"},\"done\":false}\n"
       "{\"model\":\"q\",\"message\":{\"content\":\"i\",\"thinking\":\"hm\",\"tool_calls\":[{"
       "\"function\":{\"name\":\"f\",\"arguments\":{\"x\":1}}},{\"function\":{\"name\":\"f\","
       "\"arguments\":{\"x\":2}}}]},\"done\":false}\n"
       "{\"model\":\"q\",\"message\":{\"content\":\"\"},\"done\":true,\"done_reason\":\"stop\","
       "\"prompt_eval_count\":11,\"eval_count\":5}\n",
       R"(Hi|stop|complete|:f{"x":1}|:f{"x":2}|prompt 11|output 5)"},
      {"Ollama generate, whole", "application/json; charset=utf-8", 200,
       R"({"model":"q","response":"Hi","done":true,"eval_count":5})", "Hi|stop|complete|output 5"},
      {"Ollama lines called a document", "application/json", 200,
       "{\"model\":\"q\",\"response\":\"H\",\"done\":false}\n{\"model\":\"q\",\"response\":\"i\","
       "\"done\":true}\n",
       "Hi|stop|complete"},
      {"Ollama error in the stream", "application/x-ndjson", 200,
       "{\"model\":\"q\",\"message\":{\"content\":\"H\"},\"done\":false}\n{\"error\":\"gone\"}\n",
       "H||begun|error gone"},
      {"llama.cpp completion", "text/event-stream", 200,
       "data: {\"content\":\"H\",\"stop\":false,\"prompt_progress\":{\"total\":9,\"processed\":9}}"
       "\n\n"
       "data: {\"content\":\"\",\"stop\":true,\"stop_type\":\"eos\",\"tokens_predicted\":4,"
       "\"tokens_evaluated\":9,\"timings\":{\"cache_n\":0,\"prompt_n\":9,\"predicted_n\":4}}\n\n",
       "H|stop|complete|read 9|prompt 9|output 4"},
      {"Gemini stream", "text/event-stream", 200,
       R"(data: {"candidates":[{"content":{"parts":[{"text":"hm","thought":true}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":12},"modelVersion":"g","responseId":"r"})"
       "\r\n\r\n"
       R"(data: {"candidates":[{"content":{"parts":[{"text":"Hi"},{"functionCall":{"id":"a","name":"f","args":{"x":1}}},{"functionCall":{"name":"f","args":{}}}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":12,"candidatesTokenCount":3,"thoughtsTokenCount":2,"totalTokenCount":17},"responseId":"r"})"
       "\r\n\r\n",
       R"(Hi|STOP|complete|a:f{"x":1}|:f{}|prompt 12|output 5|id r)"},
      {"Gemini whole", "application/json; charset=UTF-8", 200,
       R"({"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"MAX_TOKENS"},{"content":{"parts":[{"text":"No"}]},"index":1}],"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":9}})",
       "Hi|MAX_TOKENS|complete|prompt 4|output 9"},
      {"Gemini stream as an array", "application/json", 200,
       R"([{"candidates":[{"content":{"parts":[{"text":"H"}]}}]},
         {"candidates":[{"content":{"parts":[{"text":"i"}]},"finishReason":"STOP"}]}])",
       "Hi|STOP|complete"},
      {"Gemini for users who logged in", "text/event-stream", 200,
       R"(data: {"response":{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}]}})"
       "\n\n",
       "Hi|STOP|complete"},
      {"Gemini blocked the prompt", "application/json", 200,
       R"({"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":4}})",
       "||begun|prompt 4|error the model server blocked the prompt: SAFETY"},
      {"Gemini error", "application/json", 429,
       R"({"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED"}})",
       "||nothing|error Quota exceeded"},
      {"error status", "application/json", 503,
       R"({"error":{"code":503,"message":"Loading model","type":"unavailable_error"}})",
       "||nothing|error Loading model"},
      {"error status in HTML", "text/html", 502, "<html>Bad gateway</html>",
       "||nothing|error <html>Bad gateway</html>"},
      {"cut off", "text/event-stream", 200,
       "data: {\"choices\":[{\"delta\":{\"content\":\"H\"}}]}\n\ndata: {\"choices\":[{\"del",
       "H||begun"},
      {"garbage", "text/event-stream", 200,
       "data: {nope\n\ndata: [1,2]\n\ndata: {\"choices\":[7,{\"delta\":\"x\"},{\"delta\":{"
       "\"content\":{\"a\":1},\"tool_calls\":[3,null,{}]}}]}\n\n\xFF\xFE\n\n",
       "||begun"},
  };
  return all;
}

TEST(AnswerStream, every_api_is_understood) {
  for (const auto& row : recorded())
    EXPECT_EQ(hear(row.body, row.type, row.status).line, row.line) << row.what;
}

TEST(AnswerStream, how_the_bytes_are_cut_changes_nothing) {
  std::mt19937 random(test::random_seed());
  for (const auto& row : recorded()) {
    const auto whole = hear(row.body, row.type, row.status);
    for (std::size_t at = 0; at <= row.body.size(); ++at) {  // every cut in two
      bool first = true;
      const auto two = hear(row.body, row.type, row.status, [&] {
        return std::exchange(first, false) && at > 0 ? at : row.body.size();
      });
      ASSERT_EQ(two.line, whole.line) << row.what << " cut at " << at;
    }
    const auto bytes = hear(row.body, row.type, row.status, [] { return 1; });
    EXPECT_EQ(bytes.line, whole.line) << row.what;
    EXPECT_EQ(bytes.sunk, whole.sunk) << row.what;
    EXPECT_EQ(bytes.pieces, whole.pieces) << row.what;
    for (int times = 0; times < test::repetitions(50); ++times)
      EXPECT_EQ(hear(row.body, row.type, row.status, [&] { return 1 + random() % 60; }).line,
                whole.line)
          << row.what;
  }
}

TEST(AnswerStream, text_and_reasoning_go_on_as_they_come) {
  EXPECT_EQ(hear(recorded()[0].body).sunk, "HmH\xC3\xA4 there");
  EXPECT_EQ(hear(recorded()[4].body).sunk, "hmHi") << "and not once more at the end";
}

TEST(AnswerStream, a_long_text_keeps_its_beginning_alone) {
  std::size_t sunk = 0;
  AnswerStream stream(200, "text/event-stream",
                      [&](std::string_view text) { sunk += text.size(); });
  std::string piece;
  for (int n = 0; n < 333; ++n) piece += "\xE2\x82\xAC";
  for (int n = 0; n < 1'000; ++n)
    stream.feed(R"(data: {"choices":[{"delta":{"content":")" + piece + "\"}}]}\n\n");
  stream.end();
  EXPECT_EQ(sunk, 999'000U);
  EXPECT_EQ(stream.heard().text_bytes, 999'000);
  EXPECT_LE(stream.heard().text.size(), answer_text_bytes_max);
  EXPECT_EQ(stream.heard().text.size() % 3, 0U) << "no half character";
  EXPECT_EQ(stream.heard().pieces, 1'000);
}

TEST(AnswerStream, of_long_arguments_a_digest_remains_that_reports_them_apart) {
  const auto arguments = [](std::size_t fragment, char last) {
    std::string text(3'000'000, 'x');
    text.back() = last;
    AnswerStream stream(200, "text/event-stream", {});
    std::string id = R"("id":"a",)";
    for (std::size_t at = 0; at < text.size(); at += fragment) {
      stream.feed(R"(data: {"choices":[{"delta":{"tool_calls":[{"index":0,)" + id +
                  R"("function":{"name":"write","arguments":")" + text.substr(at, fragment) +
                  "\"}}]}}]}\n\n");
      id.clear();
    }
    stream.end();
    EXPECT_FALSE(stream.heard().lost);
    return stream.heard().calls.at(0).arguments;
  };
  const auto one = arguments(1'000'000, 'x');
  EXPECT_EQ(one, arguments(7'777, 'x'));
  EXPECT_NE(one, arguments(1'000'000, 'y'));
  EXPECT_LT(one.size(), 100U);
  EXPECT_NE(one.find("\"bytes\":3000000"), std::string::npos) << one;
}

TEST(AnswerStream, an_answer_that_is_too_large_or_endless_is_reported_as_lost) {
  AnswerStream line(200, "text/event-stream", {});
  for (int n = 0; n < 100; ++n) line.feed(std::string(100'000, 'x'));
  line.end();
  EXPECT_TRUE(line.heard().lost);
  AnswerStream document(200, "application/json", {});
  for (int n = 0; n < 100; ++n) document.feed("{" + std::string(100'000, ' '));
  document.end();
  EXPECT_TRUE(document.heard().lost);
  AnswerStream blanks(200, "", {});
  for (int n = 0; n < 100; ++n) blanks.feed(std::string(100'000, ' '));
  blanks.end();
  EXPECT_TRUE(blanks.heard().lost);
  EXPECT_NE(hear(std::string(200'000, '['), "application/json").line.find("nothing"),
            std::string::npos);
  std::string calls;
  for (int n = 0; n < 5'000; ++n)
    calls += R"({"id":"c)" + std::to_string(n) + R"(","function":{"name":"f","arguments":"{}"}},)";
  calls.pop_back();
  EXPECT_NE(hear("data: {\"choices\":[{\"delta\":{\"tool_calls\":[" + calls + "]}}]}\n\n")
                .line.find("lost"),
            std::string::npos);
}

}  // namespace
}  // namespace watchdog
