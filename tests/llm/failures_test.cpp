// The meaning of a server's refusal for the client that asked.

#include "llm/failures.h"

#include <gtest/gtest.h>

#include "support/model_replies.h"
#include "watchdog/reasons.h"

namespace watchdog {
namespace {

const ServerName server{.url = "http://models:8080/v1", .secret = "sk-secret"};
const WallTime noon{std::chrono::sys_days{std::chrono::year{2026} / 3 / 1} +
                    std::chrono::hours{12}};

Failure refusal(int status, std::string_view body,
                std::vector<std::pair<std::string, std::string>> headers = {}) {
  return failure_of(HttpHead{.status = status, .headers = std::move(headers)}, body, server, noon);
}

Failure in_stream(ErrorBody error) {
  return failure_of(AnswerFault{.kind = AnswerFault::Kind::error, .error = std::move(error)},
                    HttpHead{.status = 200}, server);
}

struct Answer {
  const char* what;
  int status;
  std::string body;
  std::string_view reason;
  bool recoverable;
};

TEST(Failures, each_status_has_its_class) {
  const std::vector<Answer> rows = {
      {"no key", 401,
       R"({"error":{"code":401,"message":"Invalid API Key","type":"authentication_error"}})",
       reasons::authentication, false},
      {"not allowed", 403, "", reasons::authentication, false},
      {"no such model (Ollama)", 404,
       R"({"error":{"message":"model 'x' not found","type":"not_found_error","param":null,"code":null}})",
       reasons::model_client_error, false},
      {"bad request", 400, R"({"error":{"message":"bad","type":"invalid_request_error"}})",
       reasons::model_client_error, false},
      {"moved", 301, "", reasons::model_client_error, false},
      {"slow client", 408, "", reasons::rate_limited, true},
      {"too early", 425, "", reasons::rate_limited, true},
      {"too many", 429,
       R"({"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}})",
       reasons::rate_limited, true},
      {"unpaid", 429,
       R"({"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}})",
       reasons::rate_limited, false},
      {"failed", 500, "oops", reasons::model_server_error, true},
      {"not made", 501,
       R"({"error":{"code":501,"message":"This server does not support completions.","type":"not_supported_error"}})",
       reasons::model_server_error, false},
      {"a gateway's page", 502, "<html><h1>502 Bad Gateway</h1></html>",
       reasons::model_server_error, true},
      {"loading (llama.cpp)", 503, std::string(test::llama_loading), reasons::model_server_error,
       true},
      {"full (Ollama)", 503,
       R"({"error":{"message":"server busy, please try again.  maximum pending requests exceeded","type":"api_error"}})",
       reasons::model_server_error, true},
      {"overloaded", 529, "", reasons::model_server_error, true},
  };
  for (const auto& row : rows) {
    const auto failure = refusal(row.status, row.body);
    EXPECT_EQ(failure.reason, row.reason) << row.what;
    EXPECT_EQ(failure.recoverable, row.recoverable) << row.what;
    EXPECT_EQ(failure.status, row.status) << row.what;
    EXPECT_NE(failure.message.find(server.url), std::string::npos) << failure.message;
    EXPECT_NE(failure.message.find(std::to_string(row.status)), std::string::npos);
  }
}

TEST(Failures, a_prompt_that_is_too_long_is_known_from_every_server) {
  const std::vector<std::pair<const char*, std::string>> rows = {
      {"llama.cpp",
       R"({"error":{"code":400,"message":"request (7900 tokens) exceeds the available context size (4096 tokens), try increasing it","type":"exceed_context_size_error","n_prompt_tokens":7900,"n_ctx":4096}})"},
      {"older llama.cpp",
       R"({"error":{"code":400,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"invalid_request_error"}})"},
      {"OpenAI",
       R"({"error":{"message":"This model's maximum context length is 4097 tokens. However, your messages resulted in 6988 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}})"},
      {"vLLM",
       R"({"error":{"message":"You passed 1015 input tokens and requested 10 output tokens. However, the model's context length is only 1024 tokens, resulting in a maximum input length of 1014 tokens.","type":"BadRequestError","param":"input_tokens","code":400}})"},
      {"older vLLM",
       R"({"object":"error","message":"This model's maximum context length is 16384 tokens. However, you requested 122946 tokens","type":"BadRequestError","param":null,"code":400})"},
      {"no room in vLLM",
       R"({"object":"error","message":"max_tokens must be at least 1, got -186.","type":"BadRequestError","param":null,"code":400})"},
      {"Ollama",
       R"({"error":{"message":"the input length exceeds the context length","type":"invalid_request_error","param":null,"code":null}})"},
      {"Ollama's cloud",
       R"({"error":{"message":"prompt too long; exceeded max context length by 500 tokens","type":"invalid_request_error"}})"},
  };
  for (const auto& [who, body] : rows) {
    const auto failure = refusal(400, body);
    EXPECT_EQ(failure.reason, reasons::context_exceeded) << who;
    EXPECT_FALSE(failure.recoverable) << who;
  }
  EXPECT_EQ(
      in_stream(
          {.message = "Context size has been exceeded.", .type = "server_error", .status = 500})
          .reason,
      reasons::context_exceeded);
}

TEST(Failures, errors_within_a_stream_are_classed_like_those_before_it) {
  EXPECT_EQ(in_stream({.message = "Compute error.", .type = "server_error", .status = 500}).reason,
            reasons::model_server_error);
  EXPECT_TRUE(in_stream({.message = "no word about it"}).recoverable);
  EXPECT_EQ(in_stream({.type = "rate_limit_error"}).reason, reasons::rate_limited);
  EXPECT_EQ(in_stream({.type = "authentication_error"}).reason, reasons::authentication);
  EXPECT_EQ(in_stream({.type = "invalid_request_error"}).reason, reasons::model_client_error);
  EXPECT_EQ(in_stream({.type = "overloaded_error"}).reason, reasons::model_server_error);
  EXPECT_EQ(in_stream({.status = 429}).status, 429);
}

TEST(Failures, each_network_failure_has_its_reason) {
  const std::vector<std::tuple<HttpTrouble, std::string_view, bool>> rows = {
      {HttpTrouble::cancelled, reasons::cancelled, false},
      {HttpTrouble::late, reasons::connection_lost, true},
      {HttpTrouble::host_not_found, reasons::host_not_found, false},
      {HttpTrouble::no_name_service, reasons::host_not_found, true},
      {HttpTrouble::refused, reasons::connection_refused, true},
      {HttpTrouble::untrusted, reasons::tls_failed, false},
      {HttpTrouble::lost, reasons::connection_lost, true},
      {HttpTrouble::malformed, reasons::malformed_answer, true},
  };
  for (const auto& [trouble, reason, recoverable] : rows) {
    const auto failure = failure_of(HttpFault{trouble, "why it was"}, server);
    EXPECT_EQ(failure.reason, reason);
    EXPECT_EQ(failure.recoverable, recoverable) << reason;
    EXPECT_EQ(failure.status, 0);
    EXPECT_NE(failure.message.find(server.url), std::string::npos);
  }
}

TEST(Failures, a_retry_delay_is_read_in_every_form) {
  const auto wait = [](std::vector<std::pair<std::string, std::string>> headers) {
    return refusal(429, "", std::move(headers)).retry_after;
  };
  EXPECT_EQ(wait({}), std::nullopt);
  EXPECT_EQ(wait({{"Retry-After", "20"}}), Millis{20'000});
  EXPECT_EQ(wait({{"retry-after", "0"}}), Millis{0});
  EXPECT_EQ(wait({{"Retry-After", "1.5"}}), Millis{1'000});
  EXPECT_EQ(wait({{"Retry-After-Ms", "1500"}, {"Retry-After", "9"}}), Millis{1'500});
  EXPECT_EQ(wait({{"Retry-After-Ms", "250.75"}}), Millis{250});
  EXPECT_EQ(wait({{"Retry-After", "Sun, 01 Mar 2026 12:01:30 GMT"}}), Millis{90'000});
  EXPECT_EQ(wait({{"Retry-After", "Sun, 01 Mar 2026 11:00:00 GMT"}}), Millis{0}) << "it is over";
  EXPECT_EQ(wait({{"Retry-After", "Sun, 01 Mar 2026 12:01:30 GMT"},
                  {"Date", "Sun, 01 Mar 2026 12:01:00 GMT"}}),
            Millis{30'000})
      << "by the server's own clock";
  for (const char* nonsense :
       {"soon", "-5", "", "5s", "Sun, 31 Feb 2026 12:01:30 GMT", "Sun, 01 Mar 2026 25:01:30 GMT",
        "Sun, 01 Foo 2026 12:01:30 GMT", "Sun, 01 Mar 2026 12:01:30 CET"})
    EXPECT_EQ(wait({{"Retry-After", nonsense}}), std::nullopt) << nonsense;
  EXPECT_EQ(wait({{"Retry-After", "9000000000000000000"}}), Millis{366LL * 24 * 3'600'000});
  EXPECT_EQ(refusal(503, "", {{"Retry-After", "3"}}).retry_after, Millis{3'000});
}

TEST(Failures, a_quote_is_short_clean_and_without_the_key) {
  EXPECT_EQ(server.quote("  a\r\n\tb \x01 c  "), "a b c");
  EXPECT_EQ(server.quote("key sk-secret, sk-secret"), "key [key], [key]");
  EXPECT_EQ(server.quote("\xff text \xe4\xb8"), "\uFFFD text \uFFFD\uFFFD");
  const auto long_one = server.quote(std::string(10'000, 'x'));
  EXPECT_LE(long_one.size(), 300U);
  EXPECT_TRUE(long_one.ends_with("…"));
  std::string chinese;
  for (int i = 0; i < 1'000; ++i) chinese += "中";
  const auto cut = server.quote("x" + chinese);
  EXPECT_LE(cut.size(), 300U);
  EXPECT_TRUE(cut.starts_with("x中中"));
  EXPECT_TRUE(cut.ends_with("中…"));
  EXPECT_EQ((ServerName{.url = "u", .secret = "x"}.quote("exact")), "exact");
}

}  // namespace
}  // namespace watchdog
