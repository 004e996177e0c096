// A model asked over a real socket: what it answers, what goes wrong on the way, and that nobody
// waits longer than they want to.

#include "watchdog/model_client.h"

#include <gtest/gtest.h>

#include <future>
#include <latch>
#include <thread>

#include "support/model_replies.h"
#include "support/model_server.h"
#include "watchdog/reasons.h"

namespace watchdog {
namespace {

using test::be_llama;
using test::be_ollama;
using test::be_unknown;
using test::be_vllm;
using test::delta;
using test::ModelServer;
using test::text_delta;
using Exchange = ModelServer::Exchange;

ModelClient client_to(const ModelServer& server, ModelClient::Options options = {}) {
  options.base_url = server.base_url();
  auto client = ModelClient::to(std::move(options));
  EXPECT_TRUE(client.ok());
  return std::move(*client);
}

ChatRequest question(std::string text = "Well?") {
  return {.messages = {{.role = "user", .content = std::move(text)}}};
}

/// Nobody in particular, who answers questions in a certain way.
ModelServer::Handler answering(std::function<void(Exchange&)> answer) {
  return [answer = std::move(answer)](Exchange& exchange) {
    exchange.is_chat() ? answer(exchange) : be_unknown(exchange);
  };
}

/// What a question comes to at a server that answers so.
Result<ChatAnswer, Failure> ask(std::function<void(Exchange&)> answer,
                                ModelClient::Options options = {}) {
  const ModelServer server(answering(std::move(answer)));
  return client_to(server, std::move(options)).chat(question());
}

TEST(ModelClient, an_answer_is_put_together_from_its_stream) {
  const ModelServer server(answering([](Exchange& exchange) { test::stream(exchange, "Hello"); }));
  auto client = client_to(server);
  const auto answer = client.chat(question());
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->text, "Hello");
  EXPECT_EQ(answer->finish_reason, "stop");
  EXPECT_EQ(answer->model, "small");
  EXPECT_EQ(answer->prompt_tokens, 7);
  EXPECT_EQ(answer->output_tokens, 2);
}

TEST(ModelClient, a_whole_answer_comes_when_no_stream_is_wanted) {
  const ModelServer server(
      answering([](Exchange& exchange) { exchange.respond(200, test::completion("All of it")); }));
  auto client = client_to(server, {.stream = false});
  std::vector<ChatProgress> seen;
  const auto answer =
      client.chat(question(), [&](const ChatProgress& progress, std::string_view text) {
        seen.push_back(progress);
        EXPECT_EQ(text, "All of it");
      });
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->text, "All of it");
  EXPECT_EQ(answer->output_tokens, 2);
  EXPECT_EQ(seen.size(), 1U);
  EXPECT_NE(server.chats().at(0).find(R"("stream":false)"), std::string::npos);
}

TEST(ModelClient, a_key_is_sent_and_never_told) {
  const std::string key = "sk-very-secret";
  const ModelServer server([&](Exchange& exchange) {
    exchange.respond(401, R"({"error":{"message":"Incorrect API key provided: sk-very-secret."}})");
  });
  auto client = client_to(server, {.api_key = key});
  const auto answer = client.chat(question());
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().reason, reasons::authentication);
  EXPECT_FALSE(answer.error().recoverable);
  EXPECT_EQ(answer.error().status, 401);
  EXPECT_EQ(answer.error().message.find(key), std::string::npos) << answer.error().message;
  EXPECT_NE(answer.error().message.find(server.base_url()), std::string::npos);
  for (const auto& request : server.requests())
    EXPECT_NE(request.head.find("Authorization: Bearer " + key), std::string::npos);
}

TEST(ModelClient, one_connection_carries_one_question_after_another) {
  const ModelServer server(answering([](Exchange& exchange) { test::stream(exchange, "yes"); }));
  auto client = client_to(server);
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(client.chat(question()).ok());
  for (const auto& request : server.requests()) EXPECT_EQ(request.connection, 1) << request.target;
}

TEST(ModelClient, a_kept_connection_that_was_closed_meanwhile_is_replaced_unnoticed) {
  std::latch closed(1);
  const ModelServer server(answering([&](Exchange& exchange) {
    test::stream(exchange, "yes");
    if (exchange.request().connection == 1) {
      exchange.close();
      closed.count_down();
    }
  }));
  auto client = client_to(server);
  ASSERT_TRUE(client.chat(question()).ok());
  closed.wait();
  const auto again = client.chat(question());
  ASSERT_TRUE(again.ok()) << again.error().message;
  EXPECT_EQ(server.requests().back().connection, 2);
}

TEST(ModelClient, a_connection_lost_in_mid_answer_is_not_asked_again) {
  const auto answer = ask([](Exchange& exchange) {
    exchange.begin_stream();
    exchange.event(text_delta("Half a"));
    exchange.reset();
  });
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().reason, reasons::connection_lost);
  EXPECT_TRUE(answer.error().recoverable);
}

TEST(ModelClient, nobody_there_is_told_as_refused) {
  std::string url;
  {
    const ModelServer gone(be_unknown);
    url = gone.base_url();
  }
  auto client = ModelClient::to({.base_url = url});
  const auto answer = client->chat(question());
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().reason, reasons::connection_refused);
  EXPECT_TRUE(answer.error().recoverable);
  EXPECT_EQ(answer.error().status, 0);
}

TEST(ModelClient, a_question_is_called_off_while_the_server_says_nothing) {
  std::latch asked(1);
  std::latch gone(1);
  const ModelServer server(answering([&](Exchange& exchange) {
    asked.count_down();
    exchange.wait_gone();
    gone.count_down();
  }));
  auto client = client_to(server);
  std::stop_source stop;
  auto answer =
      std::async(std::launch::async, [&] { return client.chat(question(), {}, stop.get_token()); });
  asked.wait();
  stop.request_stop();
  const auto failure = answer.get();
  ASSERT_FALSE(failure.ok());
  EXPECT_EQ(failure.error().reason, reasons::cancelled_by_user);
  gone.wait();  // the server learns of it
}

TEST(ModelClient, a_question_is_called_off_in_mid_answer) {
  std::latch gone(1);
  const ModelServer server(answering([&](Exchange& exchange) {
    exchange.begin_stream();
    exchange.event(text_delta("One"));
    exchange.wait_gone();
    gone.count_down();
  }));
  auto client = client_to(server);
  std::stop_source stop;
  const auto answer = client.chat(
      question(), [&](const ChatProgress&, std::string_view) { stop.request_stop(); },
      stop.get_token());
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().reason, reasons::cancelled_by_user);
  gone.wait();
}

}  // namespace
}  // namespace watchdog
