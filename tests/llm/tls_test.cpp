// Whom a client trusts.

#include <gtest/gtest.h>

#include <fstream>
#include <future>
#include <latch>

#include "llm/asking.h"
#include "support/temp_dir.h"
#include "watchdog/reasons.h"

namespace watchdog {
namespace {

using test::answering;
using test::Exchange;
using test::make_certificate;
using test::ModelServer;
using test::question;

const ModelServer::Handler yes =
    answering([](Exchange& exchange) { test::stream(exchange, "yes"); });

/// The answer of the server to a client that trusts this certificate and asks for this host.
Result<ChatAnswer, Failure> ask_trusting(const test::Certificate& trusted,
                                         const ModelServer& server, std::string_view host) {
  const test::TempDir dir;
  std::ofstream(dir / "ca.pem") << trusted.certificate;
  auto client = ModelClient::to({.base_url = server.base_url(host), .ca_file = dir / "ca.pem"});
  EXPECT_TRUE(client.ok());
  return client->chat(question());
}

void expect_untrusted(const Result<ChatAnswer, Failure>& answer, std::string_view why) {
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().reason, reasons::tls_failed);
  EXPECT_FALSE(answer.error().recoverable);
  EXPECT_NE(answer.error().message.find(why), std::string::npos) << answer.error().message;
}

TEST(Tls, a_trusted_certificate_for_the_name_or_the_address_is_taken) {
  const auto named = make_certificate("DNS:localhost");
  const ModelServer by_name(yes, named);
  const auto first = ask_trusting(named, by_name, "localhost");
  EXPECT_TRUE(first.ok()) << first.error().message;

  const auto addressed = make_certificate("IP:127.0.0.1");
  const ModelServer by_address(yes, addressed);
  const auto second = ask_trusting(addressed, by_address, "127.0.0.1");
  EXPECT_TRUE(second.ok()) << second.error().message;
  for (const auto& request : by_address.requests()) EXPECT_EQ(request.connection, 1);
}

TEST(Tls, a_certificate_for_another_name_is_refused) {
  const auto other = make_certificate("DNS:models.example");
  const ModelServer server(yes, other);
  expect_untrusted(ask_trusting(other, server, "localhost"), "hostname mismatch");
  expect_untrusted(ask_trusting(other, server, "127.0.0.1"), "IP address mismatch");
}

TEST(Tls, a_certificate_of_nobody_known_is_refused) {
  const ModelServer server(yes, make_certificate("DNS:localhost"));
  expect_untrusted(ask_trusting(make_certificate("DNS:localhost"), server, "localhost"),
                   "self-signed certificate");
}

TEST(Tls, a_certificate_that_has_expired_is_refused) {
  const auto old = make_certificate("DNS:localhost", 7'200);
  const ModelServer server(yes, old);
  expect_untrusted(ask_trusting(old, server, "localhost"), "expired");
}

TEST(Tls, a_server_without_it_is_refused) {
  const ModelServer server(yes);
  auto url = server.base_url();
  auto client = ModelClient::to({.base_url = url.replace(0, 4, "https")});
  expect_untrusted(client->chat(question()), "TLS");
}

TEST(Tls, nothing_is_sent_to_whom_is_not_trusted) {
  const ModelServer server(yes, make_certificate("DNS:localhost"));
  auto client =
      ModelClient::to({.base_url = server.base_url("localhost"), .api_key = "sk-very-secret"});
  EXPECT_FALSE(client->chat(question()).ok());
  EXPECT_TRUE(server.requests().empty());
}

TEST(Tls, a_question_is_called_off_in_mid_answer) {
  const auto certificate = make_certificate("DNS:localhost");
  std::latch gone(1);
  const ModelServer server(answering([&](Exchange& exchange) {
                             exchange.begin_stream();
                             exchange.event(test::text_delta("One"));
                             exchange.wait_gone();
                             gone.count_down();
                           }),
                           certificate);
  const test::TempDir dir;
  std::ofstream(dir / "ca.pem") << certificate.certificate;
  auto client =
      ModelClient::to({.base_url = server.base_url("localhost"), .ca_file = dir / "ca.pem"});
  std::stop_source stop;
  const auto answer = client->chat(
      question(), [&](const ChatProgress&, std::string_view) { stop.request_stop(); },
      stop.get_token());
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().reason, reasons::cancelled);
  gone.wait();
}

}  // namespace
}  // namespace watchdog
