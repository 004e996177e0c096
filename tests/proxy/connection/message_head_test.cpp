#include "proxy/connection/message_head.h"

#include <gtest/gtest.h>

#include "proxy/connection/model_api.h"
#include "text/wildcard.h"

namespace watchdog::monitor {
namespace {

const Url server{.host = "model.lan", .port = "8080", .path = ""};

TEST(MessageHead, ARequestGoesUpAsItCameButForWhatIsBetweenNeighbours) {
  const Headers came{{"Host", "127.0.0.1:3001"},
                     {"authorization", "Bearer k"},
                     {"X-Custom", "1"},
                     {"x-custom", "2"},
                     {"Connection", "close, X-Hop"},
                     {"X-Hop", "gone"},
                     {"Transfer-Encoding", "chunked"},
                     {"Expect", "100-continue"},
                     {"X-Watchdog-Session", "mine"},
                     {"Accept-Encoding", "gzip"}};
  EXPECT_EQ(request_head("POST", "/v1/x?y=1", came, server, {Framing::Kind::length, 7}, false),
            "POST /v1/x?y=1 HTTP/1.1\r\nHost: model.lan:8080\r\nauthorization: Bearer k\r\n"
            "X-Custom: 1\r\nx-custom: 2\r\nAccept-Encoding: gzip\r\nContent-Length: 7\r\n\r\n");
  // The proxy reads this answer, so the answer must not be compressed. Without the header the
  // server might choose any coding.
  const auto plain = request_head("POST", "/", came, server, {Framing::Kind::chunks}, true);
  EXPECT_NE(plain.find("\r\nAccept-Encoding: identity\r\n"), std::string::npos);
  EXPECT_EQ(plain.find("gzip"), std::string::npos);
}

TEST(MessageHead, TheLoginOfTheMonitorIsNotForTheModelsServer) {
  const auto cookie = [](const char* sent) {
    const auto head = request_head("GET", "/", {{"Cookie", sent}}, server, {}, false);
    const auto at = head.find("Cookie: ");
    return at == head.npos ? std::string() : head.substr(at + 8, head.find('\r', at) - at - 8);
  };
  EXPECT_EQ(cookie("a=1; watchdog-1=x; b=2"), "a=1; b=2");
  EXPECT_EQ(cookie("Watchdog-1=x"), "");
  EXPECT_EQ(cookie("a=1"), "a=1");
  EXPECT_EQ(cookie(";; watchdog-=; =;c"), "=; c");
}

TEST(MessageHead, AnAnswerComesDownWithItsOwnReasonAndOrder) {
  const Headers came{
      {"Server", "me"},      {"Content-Length", "5"},     {"Set-Cookie", "a=1"},
      {"set-cookie", "b=2"}, {"Keep-Alive", "timeout=5"}, {"Connection", "keep-alive"}};
  EXPECT_EQ(answer_head(418, "Short and stout", came, {Framing::Kind::length, 5}, false),
            "HTTP/1.1 418 Short and stout\r\nServer: me\r\nSet-Cookie: a=1\r\nset-cookie: b=2\r\n"
            "Content-Length: 5\r\n\r\n");
  // An answer to HEAD gives the length of a body that does not come.
  EXPECT_EQ(answer_head(200, "OK", came, {}, true),
            "HTTP/1.1 200 OK\r\nServer: me\r\nContent-Length: 5\r\nSet-Cookie: a=1\r\n"
            "set-cookie: b=2\r\nConnection: close\r\n\r\n");
}

TEST(MessageHead, APathSaysWhoseRequestItIs) {
  struct Row {
    std::string_view target, session, token, rest;
  };
  for (const auto& row :
       {Row{"/v1/chat/completions", "", "", "/v1/chat/completions"},
        Row{"/s/run-7/v1/models?a=b", "run-7", "", "/v1/models?a=b"},
        Row{"/t/secret/s/run-7/v1", "run-7", "secret", "/v1"},
        Row{"/s/run-7/t/secret/v1", "run-7", "secret", "/v1"}, Row{"/s/a%20b/", "a b", "", "/"},
        Row{"/s/run-7", "run-7", "", "/"}, Row{"/s/run-7?x", "run-7", "", "/?x"},
        Row{"/s//v1", "", "", "/s//v1"}, Row{"/s/a/s/b/v1", "a", "", "/s/b/v1"},
        Row{"/s/%zz/v1", "", "", "/s/%zz/v1"}, Row{"/system", "", "", "/system"}}) {
    const auto found = prefix_in(row.target);
    EXPECT_EQ(found.session, row.session) << row.target;
    EXPECT_EQ(found.token, row.token) << row.target;
    EXPECT_EQ(found.target, row.rest) << row.target;
    EXPECT_TRUE(found.text + found.target == row.target ||
                found.text + found.target.substr(1) == row.target)
        << found.text;
  }
}

TEST(MessageHead, ARedirectToTheServerItselfStaysHere) {
  struct Row {
    const char* location;
    const char* here;  ///< Nothing: it is another address.
  };
  const Row rows[] = {
      {"http://model.lan:8080/v1/x/", "/v1/x/"},
      {"HTTP://Model.LAN:8080/v1/x/?a=http://b/", "/v1/x/?a=http://b/"},
      {"http://model.lan:8080", "/"},
      {"http://model.lan:8080?a", "/?a"},
      {"//model.lan:8080/v1", "/v1"},
      {"/v1/x/", "/v1/x/"},
      {"/", "/"},
      {"https://model.lan:8080/v1", nullptr},
      {"http://model.lan/v1", nullptr},
      {"http://model.lan:80801/v1", nullptr},
      {"http://model.lan:8080@evil/v1", nullptr},
      {"http://other.lan:8080/v1", nullptr},
      {"//other.lan/v1", nullptr},
      {"x/y", nullptr},
      {"?page=2", nullptr},
      {"mailto:a@b", nullptr},
      {"http:/v1", nullptr},
      {"", nullptr},
  };
  for (const std::string prefix : {"", "/s/run-7", "/t/secret/s/run-7"}) {
    for (const auto& row : rows) {
      const auto wanted = row.here == nullptr ? std::string(row.location) : prefix + row.here;
      EXPECT_EQ(location_here(row.location, server, prefix), wanted) << row.location;
    }
  }
  // A server with TLS, below a path, that knows neither.
  const Url above{.tls = true, .host = "model.lan", .port = "443", .path = "/api"};
  for (const auto* own : {"https://model.lan/api/v1", "http://model.lan/api/v1",
                          "https://model.lan:443/api/v1", "/api/v1"})
    EXPECT_EQ(location_here(own, above, "/s/a"), "/s/a/v1") << own;
  for (const auto* other : {"https://model.lan/v1", "https://model.lan/apix", "/v1", "/apis/v1",
                            "http://model.lan:80/api/v1"})
    EXPECT_EQ(location_here(other, above, "/s/a"), other);
}

TEST(MessageHead, NoCredentialIsKept) {
  const Headers came{{"Authorization", "Bearer k"},
                     {"X-Api-Key", "k"},
                     {"api-key", "k"},
                     {"Cookie", "c"},
                     {"X-Auth-Token", "t"},
                     {"My-Secret", "s"},
                     {"User-Agent", "a"},
                     {"x-session-id", "s"}};
  EXPECT_EQ(without_secrets(came), (Headers{{"User-Agent", "a"}, {"x-session-id", "s"}}));
  EXPECT_NE(key_digest(came), 0U);
  EXPECT_NE(key_digest({{"Authorization", "Bearer other"}}), key_digest(came));
  EXPECT_EQ(key_digest({{"User-Agent", "a"}}), 0U);
}

TEST(MessageHead, APatternNamesModels) {
  EXPECT_TRUE(matches_wildcard("qwen3", "qwen3"));
  EXPECT_FALSE(matches_wildcard("qwen3", "qwen3:8b"));
  EXPECT_TRUE(matches_wildcard("qwen3*", "qwen3:8b"));
  EXPECT_TRUE(matches_wildcard("*", ""));
  EXPECT_TRUE(matches_wildcard("*:8b", "qwen3:8b"));
  EXPECT_TRUE(matches_wildcard("a*b*c", "a-b-b-c"));
  EXPECT_FALSE(matches_wildcard("a*b*c", "a-b-b"));
  EXPECT_FALSE(matches_wildcard("", "x"));
}

TEST(ModelApi, IsKnownByMethodAndPath) {
  EXPECT_EQ(api_of("POST", "/v1/chat/completions"), ModelApi::openai_chat);
  EXPECT_EQ(api_of("POST", "/chat/completions?x"), ModelApi::openai_chat);
  EXPECT_EQ(api_of("POST", "/v1/completions"), ModelApi::openai_completions);
  EXPECT_EQ(api_of("POST", "/v1/responses"), ModelApi::openai_responses);
  EXPECT_EQ(api_of("POST", "/v1/messages"), ModelApi::anthropic_messages);
  EXPECT_EQ(api_of("POST", "/v1/messages/count_tokens"), ModelApi::other);
  EXPECT_EQ(api_of("POST", "/api/chat"), ModelApi::ollama_chat);
  EXPECT_EQ(api_of("POST", "/completion"), ModelApi::llama_completion);
  EXPECT_EQ(api_of("POST", "/v1beta/models/g:streamGenerateContent?alt=sse"), ModelApi::gemini);
  EXPECT_EQ(api_of("POST", "/v1beta/models/g:generateContent"), ModelApi::gemini);
  EXPECT_EQ(api_of("POST", "/v1beta/models/g:countTokens"), ModelApi::other);
  EXPECT_EQ(api_of("GET", "/v1/responses"), ModelApi::other);
  EXPECT_EQ(api_of("GET", "/v1/models"), ModelApi::other);
}

TEST(ModelApi, OwnApisOfServersAreNamed) {
  const auto named = [](std::string_view method, std::string_view target) {
    const auto* api = unread_api_of(method, target);
    return api == nullptr ? std::string_view() : api->server;
  };
  EXPECT_EQ(named("POST", "/api/v1/chat"), "LM Studio");
  EXPECT_EQ(named("POST", "/api/v1/generate?x=1"), "KoboldCpp");
  EXPECT_EQ(named("POST", "/api/extra/generate/stream/"), "KoboldCpp");
  EXPECT_EQ(named("POST", "/generate"), "TGI or SGLang");
  EXPECT_EQ(named("POST", "/generate_stream"), "TGI");
  EXPECT_EQ(named("GET", "/generate"), "");
  for (const auto* target : {"/api/v0/chat/completions", "/api/generate", "/api/chat",
                             "/v1/completions", "/api/v1/models", "/other/generate", "/"}) {
    EXPECT_EQ(named("POST", target), "") << target;
  }
  const auto words = words_of(*unread_api_of("POST", "/api/v1/chat"));
  EXPECT_NE(words.find("/api/v1/chat of LM Studio"), std::string::npos) << words;
}

TEST(ModelApi, GeminiSaysInThePathWhatOthersSayInTheBody) {
  const auto streams = [](const char* target) {
    return streams_by_target(api_of("POST", target), target);
  };
  const auto model = [](const char* target) {
    return model_in_target(api_of("POST", target), target);
  };
  EXPECT_TRUE(streams("/v1beta/models/g:streamGenerateContent?alt=sse"));
  EXPECT_FALSE(streams("/v1beta/models/g:streamGenerateContent")) << "one array";
  EXPECT_FALSE(streams("/v1beta/models/g:generateContent?alt=sse"));
  EXPECT_FALSE(streams("/v1/responses?alt=sse"));
  EXPECT_EQ(model("/v1beta/models/gemini-2.5-flash:generateContent?key=k"), "gemini-2.5-flash");
  EXPECT_EQ(model("/v1internal:generateContent"), "");
  EXPECT_EQ(model("/models/m/responses"), "");
}

TEST(ModelApi, ErrorsAreWhatItsClientsRead) {
  EXPECT_EQ(error_body(ModelApi::openai_chat, 502, "server_lost", "it is gone"),
            R"({"error":{"message":"it is gone","type":"server_lost","code":502}})");
  EXPECT_EQ(error_body(ModelApi::anthropic_messages, 502, "api_error", "it is gone"),
            R"({"type":"error","error":{"message":"it is gone","type":"api_error"}})");
  EXPECT_EQ(error_body(ModelApi::ollama_chat, 502, "x", "it is gone"), R"({"error":"it is gone"})");
  EXPECT_EQ(error_in_stream(ModelApi::openai_chat, "{\n}"), "data: {}\n\n");
  EXPECT_EQ(error_in_stream(ModelApi::anthropic_messages, "{}"), "event: error\ndata: {}\n\n");
  EXPECT_EQ(error_in_stream(ModelApi::ollama_chat, "{}"), "{}\n");
  EXPECT_EQ(error_in_stream(ModelApi::gemini, "{\n}"), "{}\n\n");
}

}  // namespace
}  // namespace watchdog::monitor
