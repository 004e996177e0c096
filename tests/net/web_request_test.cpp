#include "net/web_request.h"

#include <gtest/gtest.h>

#include "support/model_server.h"

namespace watchdog {
namespace {

using test::ModelServer;
using Exchange = ModelServer::Exchange;

std::string root_of(const ModelServer& server) {
  const auto url = server.base_url();
  return url.substr(0, url.rfind('/'));
}

TEST(Post, brings_a_body_to_the_whole_of_a_url) {
  const ModelServer server([](Exchange& exchange) {
    exchange.respond(202, std::string(5'000, 'x'), "text/plain", "Retry-After: 7\r\n");
  });
  for (const auto& [path, target] : {std::pair{"", "/"},
                                     {"/", "/"},
                                     {"/a/b", "/a/b"},
                                     {"/a/b/", "/a/b/"},
                                     {"?k=v", "/?k=v"},
                                     {"/a?k=v&l", "/a?k=v&l"}}) {
    const auto answer = ask_once({.url = root_of(server) + path,
                                  .headers = {{"Idempotency-Key", "k-1"}},
                                  .body = R"({"a":1})"});
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    EXPECT_EQ(answer->status, 202);
    EXPECT_EQ(answer->body.size(), 1'024U);
    EXPECT_EQ(answer->retry_after, Millis{7'000});
    const auto asked = server.requests().back();
    EXPECT_EQ(asked.method, "POST");
    EXPECT_EQ(asked.target, target);
    EXPECT_EQ(asked.body, R"({"a":1})");
    EXPECT_NE(asked.head.find("Idempotency-Key: k-1\r\n"), std::string::npos);
    EXPECT_NE(asked.head.find("Content-Type: application/json\r\n"), std::string::npos);
  }
}

TEST(Post, says_why_there_is_no_answer_and_not_what_the_secret_path_is) {
  const ModelServer server([](Exchange& exchange) {
    const auto& target = exchange.request().target;
    if (target == "/secret/never") return exchange.wait_gone();
    if (target == "/secret/close") return exchange.close();
    if (target == "/secret/reset") return exchange.reset();
    exchange.write("this is no HTTP\r\n\r\n");
    exchange.close();
  });
  for (const auto& [path, why] : {std::pair{"never", "no answer within 200 ms"},
                                  {"close", "closed the connection"},
                                  {"reset", ""},
                                  {"garbage", "no HTTP"}}) {
    const auto answer =
        ask_once({.url = root_of(server) + "/secret/" + path, .at_most = Millis{200}});
    ASSERT_FALSE(answer.ok()) << path;
    EXPECT_EQ(answer.error().code, ErrorCode::unavailable);
    EXPECT_NE(answer.error().message.find(why), std::string::npos) << answer.error().message;
    EXPECT_EQ(answer.error().message.find("secret"), std::string::npos) << answer.error().message;
  }
}

TEST(Post, refuses_an_invalid_url) {
  for (const auto* url : {"", "ftp://x", "http://", "http://u:p@x/", "http://x/a b",
                          "http://x/?a b", "http://x/?a#b", "http://x:99999/"}) {
    EXPECT_EQ(check_web_url(url).error().code, ErrorCode::invalid) << url;
    EXPECT_EQ(ask_once({.url = url}).error().code, ErrorCode::invalid) << url;
  }
}

TEST(Post, signs_as_the_standard_does) {
  // RFC 4231, test cases 1 and 2.
  EXPECT_EQ(hmac_sha256(std::string(20, '\x0b'), "Hi There"),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hmac_sha256("Jefe", "what do ya want for nothing?"),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

}  // namespace
}  // namespace watchdog
