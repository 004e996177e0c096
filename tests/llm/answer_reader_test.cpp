// The reader builds answers from a server's bytes, however they are cut, and refuses other bytes.

#include "llm/answer_reader.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <random>

#include "support/model_replies.h"
#include "support/scenario.h"

namespace watchdog {
namespace {

using test::delta;
using test::text_delta;
using test::usage_chunk;
using Kind = AnswerFault::Kind;
using Read = Result<ChatAnswer, AnswerFault>;

const ChatSink nobody;

std::string events(const std::vector<std::string>& chunks, bool done = true) {
  std::string body;
  for (const auto& chunk : chunks) body += "data: " + chunk + "\n\n";
  return done ? body + "data: [DONE]\n\n" : body;
}

Read read(std::string_view body, bool cut = false,
          std::string_view content_type = "text/event-stream") {
  AnswerReader reader(content_type, {.bytes_max = 1'000'000, .probabilities = true}, nobody);
  reader.feed(body);
  return reader.end(cut);
}

Read read_document(std::string_view body) {
  return read(body, false, "application/json");
}

std::string call_delta(std::string_view calls) {
  return delta(R"({"tool_calls":[)" + std::string(calls) + "]}");
}

/// The calls as one text: id name(arguments) …
std::string calls_of(const Read& answer) {
  if (!answer.ok()) return "no answer";
  std::string text;
  for (const auto& call : answer->tool_calls)
    text += call.id + " " + call.name + "(" + call.arguments + ") ";
  return text;
}

TEST(Answer, text_and_reasoning_are_kept_apart) {
  const auto answer = read(
      events({delta(R"({"role":"assistant","content":null})"),
              delta(R"({"reasoning_content":"Let me "})"), delta(R"({"reasoning":"think."})"),
              text_delta("It "), text_delta("is."), delta("{}", "\"stop\""), usage_chunk(30, 12)}));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->reasoning, "Let me think.");
  EXPECT_EQ(answer->text, "It is.");
  EXPECT_EQ(answer->finish_reason, "stop");
  EXPECT_EQ(answer->model, "small");
  EXPECT_EQ(answer->prompt_tokens, 30);
  EXPECT_EQ(answer->output_tokens, 12);
}

TEST(Answer, reasoning_under_both_names_counts_once) {
  const auto answer = read(
      events({delta(R"({"reasoning_content":"Hm.","reasoning":"Hm."})"), delta("{}", "\"stop\"")}));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->reasoning, "Hm.");
}

TEST(Answer, content_in_parts_is_joined) {
  const auto answer = read_document(
      R"({"choices":[{"message":{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}}]})");
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->text, "ab");
}

TEST(Answer, a_whole_answer_is_read_like_a_stream) {
  const auto answer = read_document(test::completion("All"));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->text, "All");
  EXPECT_EQ(answer->finish_reason, "stop");
  EXPECT_EQ(answer->prompt_tokens, 7);
  EXPECT_EQ(answer->output_tokens, 2);
}

TEST(Answer, the_form_counts_not_the_name_that_the_server_gives_it) {
  EXPECT_TRUE(read(events({text_delta("a")}), false, "text/plain").ok());
  EXPECT_TRUE(read(": ping\n\n" + events({text_delta("a")}), false, "").ok());
  EXPECT_TRUE(read("\r\n " + test::completion("a"), false, "text/plain").ok());
}

TEST(Answer, timings_count_tokens_where_usage_is_missing) {
  const auto answer =
      read(events({text_delta("a"), delta("{}", "\"stop\"",
                                          R"(,"timings":{"cache_n":20,"prompt_n":5,)"
                                          R"("prompt_ms":9.5,"predicted_n":3})")}));
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->prompt_tokens, 25);
  EXPECT_EQ(answer->output_tokens, 3);
}

struct CallRow {
  const char* what;
  std::vector<std::string> chunks;
  std::string calls;
};

TEST(Answer, calls_are_put_together_as_servers_send_them) {
  const std::vector<CallRow> rows = {
      {"in fragments, by index",
       {call_delta(
            R"({"index":0,"id":"a","type":"function","function":{"name":"read","arguments":""}})"),
        call_delta(R"({"index":0,"function":{"arguments":"{\"x\""}})"),
        call_delta(R"({"index":1,"id":"b","function":{"name":"write","arguments":"{"}})"),
        call_delta(R"({"index":0,"function":{"arguments":":1}"}})"),
        call_delta(R"({"index":1,"function":{"arguments":"}"}})")},
       R"(a read({"x":1}) b write({}) )"},
      {"each fragment with its id and name",
       {call_delta(R"({"index":0,"id":"a","function":{"name":"read","arguments":"{"}})"),
        call_delta(R"({"index":0,"id":"a","function":{"name":"read","arguments":"}"}})")},
       "a read({}) "},
      {"whole, without an index",
       {call_delta(R"({"id":"a","function":{"name":"read","arguments":"{}"}})"),
        call_delta(R"({"id":"b","function":{"name":"read","arguments":"{}"}})")},
       "a read({}) b read({}) "},
      {"whole, all with the same index",
       {call_delta(R"({"index":0,"id":"a","function":{"name":"read","arguments":"{}"}})"),
        call_delta(R"({"index":0,"id":"b","function":{"name":"read","arguments":"{}"}})")},
       "a read({}) b read({}) "},
      {"whole, without index and id",
       {call_delta(R"({"function":{"name":"read","arguments":"{}"}})"),
        call_delta(R"({"function":{"name":"write","arguments":"{}"}})")},
       "chatcmpl-7a_1 read({}) chatcmpl-7a_2 write({}) "},
      {"whole, with the same index and without ids",
       {call_delta(R"({"index":0,"function":{"name":"read","arguments":"{}"}})"),
        call_delta(R"({"index":0,"function":{"name":"read","arguments":"{}"}})")},
       "chatcmpl-7a_1 read({}) chatcmpl-7a_2 read({}) "},
      {"with brackets in their arguments' texts",
       {call_delta(R"({"index":0,"function":{"name":"f","arguments":"{\"a\":\"}\\\""}})"),
        call_delta(R"({"index":0,"function":{"name":"f","arguments":"}\",\"b\":[{}]"}})"),
        call_delta(R"({"index":0,"function":{"name":"f","arguments":"} "}})"),
        call_delta(R"({"index":0,"function":{"name":"f","arguments":"{}"}})")},
       R"(chatcmpl-7a_1 f({"a":"}\"}","b":[{}]} ) chatcmpl-7a_2 f({}) )"},
      {"fragments without index and id",
       {call_delta(R"({"function":{"name":"read","arguments":"{"}})"),
        call_delta(R"({"function":{"arguments":"}"}})")},
       "chatcmpl-7a_1 read({}) "},
      {"with one id for two",
       {call_delta(R"({"index":0,"id":"a","function":{"name":"read","arguments":"{}"}},)"
                   R"({"index":1,"id":"a","function":{"name":"write","arguments":"{}"}})")},
       "a read({}) chatcmpl-7a_2 write({}) "},
      {"arguments that are not text",
       {call_delta(R"({"id":"a","function":{"name":"read","arguments":{"x":[1]}}})")},
       R"(a read({"x":[1]}) )"},
      {"without a function around them",
       {call_delta(R"({"id":"a","name":"read","arguments":"{}"})")},
       "a read({}) "},
      {"nonsense among them",
       {call_delta(
           R"(7,null,{"index":"x","id":5,"function":[]},{"id":"a","function":{"name":"r"}})")},
       "chatcmpl-7a_1 () a r() "},
  };
  for (const auto& row : rows) {
    auto chunks = row.chunks;
    chunks.push_back(delta("{}", "\"tool_calls\""));
    EXPECT_EQ(calls_of(read(events(chunks))), row.calls) << row.what;
  }
}

std::string token(std::string_view text, double logprob) {
  return R"({"token":")" + std::string(text) + R"(","logprob":)" + std::to_string(logprob) +
         R"(,"bytes":[65],"top_logprobs":[]})";
}

TEST(Answer, probabilities_are_those_of_the_text) {
  const std::string tokens = R"({"content":[)" + token("Hm", -0.1) + "," + token("A", -0.5) + "," +
                             token(" yes", -2) + "," + token("<end>", -0.1) + "]}";
  const auto answer = read_document(
      R"({"choices":[{"message":{"reasoning_content":"Hm","content":"A yes"},"logprobs":)" +
      tokens + R"(,"finish_reason":"stop"}]})");
  ASSERT_TRUE(answer.ok());
  ASSERT_EQ(answer->tokens.size(), 2U);
  EXPECT_EQ(answer->tokens[0].token, "A");
  EXPECT_NEAR(answer->tokens[0].probability, std::exp(-0.5), 1e-9);
  EXPECT_EQ(answer->tokens[1].token, " yes");
}

TEST(Answer, probabilities_of_nobody_knows_what_are_left_out) {
  const auto answer =
      read_document(R"({"choices":[{"message":{"reasoning_content":"Hm","content":"B"},"logprobs":)"
                    R"({"content":[)" +
                    token("Hm", -0.1) + R"(]},"finish_reason":"stop"}]})");
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(answer->tokens.empty());
}

TEST(Answer, probabilities_that_nobody_asked_for_are_passed_over) {
  AnswerReader reader("application/json", {.bytes_max = 1'000'000}, nobody);
  reader.feed(R"({"choices":[{"message":{"content":"A"},"logprobs":{"content":[)" +
              token("A", -0.4) + R"(]}}]})");
  const auto answer = reader.end(false);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->text, "A");
  EXPECT_TRUE(answer->tokens.empty());
}

TEST(Answer, a_probability_is_never_above_one) {
  const auto answer =
      read_document(R"({"choices":[{"message":{"content":"A"},"logprobs":{"content":[)" +
                    token("A", 0.4) + R"(]}}]})");
  ASSERT_TRUE(answer.ok());
  ASSERT_EQ(answer->tokens.size(), 1U);
  EXPECT_EQ(answer->tokens[0].probability, 1);
}

struct EndRow {
  const char* what;
  std::string body;
  bool cut;
  std::optional<Kind> fault;  // nothing: it is an answer
};

TEST(Answer, an_answer_is_whole_when_something_says_so) {
  const std::vector<EndRow> rows = {
      {"both ends", events({text_delta("a"), delta("{}", "\"stop\"")}), false, {}},
      {"a reason only", events({text_delta("a"), delta("{}", "\"stop\"")}, false), false, {}},
      {"a reason, then a reset",
       events({text_delta("a"), delta("{}", "\"stop\"")}, false),
       true,
       {}},
      {"the end only", events({text_delta("a")}), false, {}},
      {"an end without its newlines", "data: " + text_delta("a") + "\n\ndata: [DONE]", false, {}},
      {"neither", events({text_delta("a")}, false), false, Kind::cut_off},
      {"neither, and a reset", events({text_delta("a")}, false), true, Kind::cut_off},
      {"half a chunk", "data: " + text_delta("a") + "\n\ndata: {\"choi", true, Kind::cut_off},
      {"nothing but pings", ": ping\n\n", false, Kind::cut_off},
      {"an end of nothing", "data: [DONE]\n\n", false, Kind::malformed},
      {"nothing said, properly", events({delta("{}", "\"stop\"")}), false, {}},
      {"no JSON", "data: hello\n\n", false, Kind::malformed},
  };
  for (const auto& row : rows) {
    const auto answer = read(row.body, row.cut);
    EXPECT_EQ(answer.ok(), !row.fault) << row.what;
    if (answer.ok() || !row.fault) continue;
    EXPECT_EQ(answer.error().kind, *row.fault) << row.what;
  }
}

TEST(Answer, an_invalid_answer_is_quoted) {
  const std::vector<std::pair<std::string, Kind>> rows = {
      {"<html><body>Sign in</body></html>", Kind::malformed},
      {"{}", Kind::malformed},
      {"[1,2]", Kind::malformed},
      {"{\"choices\":[]}", Kind::malformed},
      {"{\"choices\":[{\"message\":{\"content\":\"half", Kind::malformed},
      {std::string("\0\xff\x80", 3), Kind::malformed},
  };
  for (const auto& [body, kind] : rows) {
    const auto answer = read_document(body);
    ASSERT_FALSE(answer.ok()) << body;
    EXPECT_EQ(answer.error().kind, kind) << body;
    EXPECT_EQ(answer.error().excerpt, body);
  }
  EXPECT_EQ(read("", false, "").error().kind, Kind::malformed);
  EXPECT_EQ(read(test::completion("a").substr(0, 60), true, "").error().kind, Kind::cut_off);
}

TEST(Answer, an_error_within_is_the_servers_own_word) {
  const auto first = text_delta("a");
  const std::vector<std::string> bodies = {
      events({first, R"({"error":{"code":500,"message":"Compute error.","type":"server_error"}})"}),
      "data: " + first + "\n\nerror: {\"error\":{\"code\":500,\"message\":\"Compute error.\"}}\n\n",
      "data: " + first + "\n\n{\"error\":\"Compute error.\"}\n",
      events({first, R"({"object":"error","message":"Compute error.","code":500})"}),
  };
  for (const auto& body : bodies) {
    const auto answer = read(body);
    ASSERT_FALSE(answer.ok()) << body;
    EXPECT_EQ(answer.error().kind, Kind::error) << body;
    EXPECT_EQ(answer.error().error.message, "Compute error.") << body;
  }
}

TEST(Answer, an_answer_above_its_bound_is_refused_in_any_form) {
  const std::string big(2'000, 'x');
  const std::vector<std::string> chunks = {
      text_delta(big), delta(R"({"reasoning":")" + big + R"("})"),
      call_delta(R"({"index":0,"function":{"name":"f","arguments":")" + big + R"("}})"),
      call_delta(R"({"index":0,"id":")" + big + R"("})")};
  for (const auto& chunk : chunks) {
    AnswerReader reader("text/event-stream", {.bytes_max = 1'000}, nobody);
    EXPECT_FALSE(reader.feed(events({chunk})));
    EXPECT_EQ(reader.end(false).error().kind, Kind::too_large) << chunk.substr(0, 100);
  }
  AnswerReader calls("text/event-stream", {.bytes_max = 1'000}, nobody);
  bool more = true;
  int index = 0;
  for (; more && index < 1'000; ++index)
    more = calls.feed(events({call_delta(R"({"index":)" + std::to_string(index) + "}")}, false));
  EXPECT_LT(index, 100) << "each call costs something, however empty";

  AnswerReader document("application/json", {.bytes_max = 1'000}, nobody);
  bool accepted = true;
  for (int i = 0; accepted && i < 10'000; ++i) accepted = document.feed(" " + big);
  EXPECT_FALSE(accepted);
}

TEST(Answer, more_calls_than_anybody_can_use_are_refused) {
  for (const std::size_t calls : {answer_calls_max, answer_calls_max + 1}) {
    std::string all;
    for (std::size_t i = 0; i < calls; ++i)
      all += (i == 0 ? "" : ",") + (R"({"id":"c)" + std::to_string(i) + R"(","name":"f"})");
    const auto answer = read(events({call_delta(all), delta("{}", "\"stop\"")}));
    EXPECT_EQ(answer.ok(), calls == answer_calls_max);
    if (answer.ok()) {
      EXPECT_EQ(answer->tool_calls.size(), calls);
    } else {
      EXPECT_EQ(answer.error().kind, Kind::too_large);
    }
  }
}

TEST(Answer, more_values_than_their_memory_is_bounded_for_are_refused) {
  std::string lists = "[";
  for (int i = 0; i < 300'000; ++i) lists += "[],";
  const auto document =
      read_document(R"({"choices":[{"message":{"content":"A"}}],"x":)" + lists + "0]}");
  ASSERT_FALSE(document.ok());
  EXPECT_EQ(document.error().kind, Kind::too_large);
  const auto stream = read(events({text_delta("A"), R"({"x":)" + lists + "0]}"}));
  ASSERT_FALSE(stream.ok());
  EXPECT_EQ(stream.error().kind, Kind::too_large);
}

/// How long it takes to read this with room for it, and what came of it.
std::pair<Read, double> timed(std::string_view body, std::string_view content_type) {
  const std::clock_t begin = std::clock();
  AnswerReader reader(content_type, {.bytes_max = 64U << 20U, .probabilities = true}, nobody);
  reader.feed(body);
  auto answer = reader.end(false);
  return {std::move(answer), static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC};
}

TEST(Answer, the_work_for_tokens_grows_with_them_alone) {
  const std::string letters(1'000, 'a');
  std::string tokens;
  for (int i = 0; i < 8'000; ++i) tokens += (i == 0 ? "" : ",") + token(letters, -0.1);
  const auto [answer, seconds] =
      timed(R"({"choices":[{"message":{"reasoning_content":"Hm","content":")" +
                std::string(4'000'000, 'a') + R"(b"},"logprobs":{"content":[)" + tokens + "]}}]}",
            "application/json");
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(answer->tokens.empty());
  EXPECT_LT(seconds, 15);  // with a sanitizer; work that grows with the square takes minutes
}

TEST(Answer, the_work_for_calls_grows_with_their_pieces_alone) {
  constexpr std::size_t pieces = 40'000;
  const auto repeated = [](const std::string& call) {
    std::string calls = call;
    for (std::size_t i = 1; i < pieces; ++i) calls += "," + call;
    return call_delta(calls);
  };
  // Which call a piece belongs to is looked for, and whether what came before is whole by now.
  const auto [answer, seconds] =
      timed(events({call_delta(R"({"index":0,"name":"f","arguments":"{"})"),
                    repeated(R"({"index":0,"name":"f","arguments":" "})")}),
            "text/event-stream");
  ASSERT_TRUE(answer.ok());
  ASSERT_EQ(answer->tool_calls.size(), 1U);
  EXPECT_EQ(answer->tool_calls[0].arguments.size(), pieces + 1);
  EXPECT_LT(seconds, 5);
}

TEST(Answer, it_can_be_called_off_between_two_events) {
  std::stop_source stop;
  int reported = 0;
  const ChatSink sink = [&](const ChatProgress&, std::string_view) {
    if (++reported == 2) stop.request_stop();
  };
  AnswerReader reader("text/event-stream", {.bytes_max = 1'000'000}, sink, stop.get_token());
  const auto body = events({text_delta("a"), text_delta("b"), text_delta("c"), text_delta("d")});
  EXPECT_FALSE(reader.feed(body)) << "all in one piece";
  EXPECT_FALSE(reader.feed(body));
  EXPECT_EQ(reported, 2);
  EXPECT_EQ(reader.end(false).error().kind, Kind::cancelled);

  AnswerReader document("application/json", {.bytes_max = 1'000'000}, nobody, stop.get_token());
  document.feed(test::completion("a"));
  EXPECT_EQ(document.end(false).error().kind, Kind::cancelled);
}

TEST(Answer, progress_is_reported_and_only_rises) {
  std::vector<ChatProgress> seen;
  std::string reported;
  const ChatSink sink = [&](const ChatProgress& progress, std::string_view text) {
    if (!seen.empty()) {
      EXPECT_GE(progress.prompt_tokens, seen.back().prompt_tokens);
      EXPECT_GE(progress.prompt_read, seen.back().prompt_read);
      EXPECT_GE(progress.pieces, seen.back().pieces);
      EXPECT_GE(progress.bytes, seen.back().bytes);
    }
    seen.push_back(progress);
    reported += text;
  };
  AnswerReader reader("text/event-stream", {.bytes_max = 1'000'000}, sink);
  reader.feed(
      events({test::prompt_chunk(100, 10, 10), test::prompt_chunk(100, 10, 60),
              test::prompt_chunk(100, 10, 40), test::prompt_chunk(100, 10, 100),
              delta(R"({"reasoning_content":"Hm. "})"), delta("{}"), text_delta("Yes"),
              call_delta(R"({"index":0,"id":"a","function":{"name":"f","arguments":"{}"}})"),
              delta("{}", "\"stop\"")}));
  EXPECT_TRUE(reader.end(false).ok());
  EXPECT_EQ(reported, "Hm. Yes");
  ASSERT_EQ(seen.size(), 7U) << "nothing is told of chunks without news";
  EXPECT_EQ(seen.back().prompt_tokens, 100);
  EXPECT_EQ(seen.back().prompt_read, 100);
  EXPECT_EQ(seen.back().pieces, 3);
  EXPECT_EQ(seen.back().bytes, 9);
}

TEST(Answer, it_is_the_same_however_the_bytes_are_cut) {
  const std::vector<std::string> bodies = {
      events({delta(R"({"reasoning_content":"Grübeln 中"})"), text_delta("你好，"),
              text_delta("Welt"), call_delta(R"({"index":0,"id":"a","function":{"name":"f"}})"),
              delta("{}", "\"stop\""), usage_chunk(1, 2)}),
      test::completion("你好"), "<html>no</html>", events({text_delta("a")}, false)};
  std::mt19937 random(test::random_seed());
  for (int round = test::repetitions(2'000); round > 0; --round) {
    for (const auto& body : bodies) {
      const auto whole = read(body, false, "");
      AnswerReader reader("", {.bytes_max = 1'000'000}, nobody);
      for (std::size_t at = 0; at < body.size();) {
        const std::size_t bytes = 1 + random() % 20;
        reader.feed(std::string_view(body).substr(at, bytes));
        at += bytes;
      }
      const auto pieces = reader.end(false);
      ASSERT_EQ(pieces.ok(), whole.ok());
      if (whole.ok()) {
        ASSERT_EQ(pieces->text, whole->text);
        ASSERT_EQ(pieces->reasoning, whole->reasoning);
        ASSERT_EQ(calls_of(pieces), calls_of(whole));
        ASSERT_EQ(pieces->output_tokens, whole->output_tokens);
      } else {
        ASSERT_EQ(pieces.error().kind, whole.error().kind);
      }
    }
  }
}

}  // namespace
}  // namespace watchdog
