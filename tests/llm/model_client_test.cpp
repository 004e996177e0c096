// A model asked over a real socket: what it answers, what goes wrong on the way, and that nobody
// waits longer than they want to.

#include "watchdog/model_client.h"

#include <gtest/gtest.h>

#include <future>
#include <latch>
#include <thread>

#include "llm/asking.h"
#include "watchdog/reasons.h"

namespace watchdog {
namespace {

using test::answering;
using test::ask;
using test::be_unknown;
using test::client_to;
using test::delta;
using test::Exchange;
using test::ModelServer;
using test::question;
using test::text_delta;

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

TEST(ModelClient, a_key_is_sent_and_never_reported) {
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

TEST(ModelClient, a_missing_server_is_reported_as_refused) {
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
  EXPECT_EQ(failure.error().reason, reasons::cancelled);
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
  EXPECT_EQ(answer.error().reason, reasons::cancelled);
  gone.wait();
}

TEST(ModelClient, a_question_that_is_called_off_already_is_not_asked) {
  const ModelServer server(be_unknown);
  std::stop_source stop;
  stop.request_stop();
  const auto answer = client_to(server).chat(question(), {}, stop.get_token());
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().reason, reasons::cancelled);
  EXPECT_TRUE(server.requests().empty());
}

TEST(ModelClient, an_answer_is_read_however_slowly_the_prompt_is) {
  const ModelServer server(answering(
      [](Exchange& exchange) {
        exchange.begin_stream(test::llama_header);
        exchange.chunk(":\n\n");
        exchange.event(test::prompt_chunk(4'096, 0, 0));
        exchange.event(test::prompt_chunk(4'096, 0, 2'048));
        exchange.event(test::prompt_chunk(4'096, 0, 4'096));
        exchange.event(text_delta("Yes"));
        exchange.event(delta("{}", "\"stop\""));
        exchange.end_stream();
      },
      [](Exchange& exchange) { test::be_llama(exchange); }));
  auto client = client_to(server);
  std::vector<std::int64_t> read;
  const auto answer = client.chat(question(), [&](const ChatProgress& progress, std::string_view) {
    EXPECT_EQ(progress.prompt_tokens, 4'096);
    read.push_back(progress.prompt_read);
  });
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(read, (std::vector<std::int64_t>{0, 2'048, 4'096, 4'096}));
  EXPECT_NE(server.chats().at(0).find(R"("return_progress":true)"), std::string::npos);
}

TEST(ModelClient, letters_and_chunks_may_be_cut_anywhere) {
  const auto answer = ask([](Exchange& exchange) {
    std::string wire = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    wire += "data: " + text_delta("Grüße 中") + "\n\ndata: [DONE]\n\n";
    for (const char byte : wire) exchange.write({&byte, 1});
    exchange.close();
  });
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->text, "Grüße 中");
}

TEST(ModelClient, an_answer_is_taken_when_it_is_there_though_the_body_has_no_end) {
  std::latch gone(1);
  const auto answer = ask([&](Exchange& exchange) {
    exchange.begin_stream();
    exchange.event(text_delta("Done"));
    exchange.event("[DONE]");
    exchange.wait_gone();
    gone.count_down();
  });
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->text, "Done");
  gone.wait();
}

TEST(ModelClient, an_interim_answer_is_passed_over) {
  const auto answer = ask([](Exchange& exchange) {
    exchange.write("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n");
    exchange.respond(200, test::completion("after all"));
  });
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->text, "after all");
}

TEST(ModelClient, an_endless_answer_is_refused_with_bounded_memory) {
  std::atomic<std::size_t> sent = 0;
  const std::string event = "data: " + text_delta(std::string(1'000, 'x')) + "\n\n";
  constexpr std::size_t gigabyte = 1U << 30U;
  const auto answer = ask(
      [&](Exchange& exchange) {
        exchange.begin_stream();
        while (sent < gigabyte && exchange.chunk(event)) sent += event.size();
      },
      {.answer_bytes_max = 1U << 20U});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().reason, reasons::malformed_answer);
  EXPECT_FALSE(answer.error().recoverable);
  EXPECT_LT(sent, 64U << 20U);
}

TEST(ModelClient, a_question_may_bound_its_own_answer_further) {
  const ModelServer server(
      answering([](Exchange& exchange) { test::stream(exchange, std::string(2'000, 'x')); }));
  auto client = client_to(server, {.answer_bytes_max = 10'000});
  for (const std::size_t bytes : {1'000U, 5'000U, 1U << 30U}) {
    auto request = question();
    request.answer_bytes_max = bytes;
    const auto answer = client.chat(request);
    EXPECT_EQ(answer.ok(), bytes > 2'000) << bytes;
    if (answer.ok()) continue;
    EXPECT_EQ(answer.error().reason, reasons::malformed_answer);
    EXPECT_FALSE(answer.error().recoverable);
  }
  auto small = client_to(server, {.answer_bytes_max = 1'000});
  auto request = question();
  request.answer_bytes_max = 1U << 30U;
  EXPECT_FALSE(small.chat(request).ok());
}

TEST(ModelClient, values_without_end_are_refused) {
  std::string body = R"({"choices":[{"message":{"content":"A"}}],"x":[)";
  while (body.size() < (8U << 20U)) body += "[],";
  const auto answer = ask([&](Exchange& exchange) { exchange.respond(200, body + "0]}"); });
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().reason, reasons::malformed_answer);
  EXPECT_FALSE(answer.error().recoverable);
}

TEST(ModelClient, an_endless_document_or_line_is_refused) {
  for (const char* type : {"application/json", "text/event-stream"}) {
    std::atomic<std::size_t> sent = 0;
    const std::string piece(65'536, type[0] == 'a' ? ' ' : ':');
    const auto answer = ask(
        [&](Exchange& exchange) {
          exchange.write("HTTP/1.1 200 OK\r\nContent-Type: " + std::string(type) + "\r\n\r\n{");
          while (sent < (1U << 30U) && exchange.write(piece)) sent += piece.size();
        },
        {.answer_bytes_max = 1'000});
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.error().reason, reasons::malformed_answer);
    EXPECT_FALSE(answer.error().recoverable);
    EXPECT_LT(sent, 64U << 20U);
  }
}

TEST(ModelClient, a_head_without_end_is_refused) {
  std::atomic<std::size_t> sent = 0;
  const auto answer = ask([&](Exchange& exchange) {
    exchange.write("HTTP/1.1 200 OK\r\n");
    const std::string line = "X-More: " + std::string(1'000, 'x') + "\r\n";
    while (sent < (1U << 30U) && exchange.write(line)) sent += line.size();
  });
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().reason, reasons::malformed_answer);
  EXPECT_LT(sent, 64U << 20U);
}

struct Wrong {
  const char* what;
  std::string wire;
  std::string_view reason;
  bool recoverable;
};

TEST(ModelClient, an_invalid_answer_is_reported_with_its_true_reason) {
  const std::string json = "Content-Type: application/json\r\n";
  const std::vector<Wrong> rows = {
      {"a web page", "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>Sign in</html>",
       reasons::malformed_answer, true},
      {"garbage", "\x16\x03\x01 nothing that is HTTP\r\n\r\n", reasons::malformed_answer, true},
      {"no JSON", "HTTP/1.1 200 OK\r\n" + json + "\r\nwell, well", reasons::malformed_answer, true},
      {"an empty body", "HTTP/1.1 200 OK\r\n" + json + "Content-Length: 0\r\n\r\n",
       reasons::malformed_answer, true},
      {"no content", "HTTP/1.1 204 No Content\r\n\r\n", reasons::malformed_answer, true},
      {"nothing", "", reasons::connection_lost, true},
      {"half a head", "HTTP/1.1 200 OK\r\nContent-", reasons::connection_lost, true},
      {"half a body", "HTTP/1.1 200 OK\r\n" + json + "Content-Length: 500\r\n\r\n{\"choices\":",
       reasons::connection_lost, true},
      {"half a chunk",
       "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
       "400\r\ndata: {",
       reasons::connection_lost, true},
      {"half a refusal", "HTTP/1.1 500 Oh\r\n" + json + "Content-Length: 500\r\n\r\n{\"error\"",
       reasons::model_server_error, true},
      {"a redirect",
       "HTTP/1.1 302 Found\r\nLocation: https://else.where/\r\nContent-Length: 0\r\n\r\n",
       reasons::model_client_error, false},
      {"a model that loads",
       "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 7\r\n" + json + "\r\n" +
           std::string(test::llama_loading),
       reasons::model_server_error, true},
  };
  for (const auto& row : rows) {
    const auto answer = ask([&](Exchange& exchange) {
      exchange.write(row.wire);
      exchange.close();
    });
    ASSERT_FALSE(answer.ok()) << row.what;
    EXPECT_EQ(answer.error().reason, row.reason) << row.what << ": " << answer.error().message;
    EXPECT_EQ(answer.error().recoverable, row.recoverable) << row.what;
    if (answer.error().status == 503) {
      EXPECT_EQ(answer.error().retry_after, Millis{7'000});
    }
  }
}

TEST(ModelClient, a_refused_extra_is_asked_without_once_and_no_more) {
  const ModelServer server(answering([](Exchange& exchange) {
    exchange.respond(400, R"({"error":{"message":"logprobs: extra fields not permitted"}})");
  }));
  auto request = question();
  request.probabilities = true;
  const auto answer = client_to(server).chat(request);
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().reason, reasons::model_client_error);
  const auto chats = server.chats();
  ASSERT_EQ(chats.size(), 2U);
  EXPECT_NE(chats[0].find("logprobs"), std::string::npos);
  EXPECT_EQ(chats[1].find("logprobs"), std::string::npos);
}

TEST(ModelClient, many_threads_ask_at_once) {
  const ModelServer server(answering([](Exchange& exchange) {
    const auto& body = exchange.request().body;
    const auto at = body.find("number ");
    test::stream(exchange, body.substr(at, body.find('"', at) - at));
  }));
  auto client = client_to(server);
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int thread = 0; thread < 8; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 10; ++i) {
        const auto text = "number " + std::to_string(thread * 100 + i);
        const auto answer = client.chat(question(text));
        if (answer.ok() && answer->text == text) ++right;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(right, 80);
}

TEST(ModelClient, an_exception_of_the_one_who_listens_goes_through) {
  const ModelServer server(answering([](Exchange& exchange) { test::stream(exchange, "a"); }));
  auto client = client_to(server);
  const ChatSink bad = [](const ChatProgress&, std::string_view) { throw std::runtime_error("x"); };
  EXPECT_THROW((void)client.chat(question(), bad), std::runtime_error);
  EXPECT_TRUE(client.chat(question()).ok());
}

TEST(ModelClient, options_that_cannot_work_are_refused) {
  EXPECT_EQ(ModelClient::to({.base_url = "models:8080"}).error().field, "base_url");
  EXPECT_EQ(ModelClient::to({.base_url = "https://a", .api_key = "a\r\nX: b"}).error().field,
            "api_key");
  EXPECT_EQ(ModelClient::to({.base_url = "https://a", .ca_file = "/nowhere"}).error().field,
            "ca_file");
}

TEST(ModelClient, a_base_url_works_with_and_without_its_version) {
  const ModelServer server(answering([](Exchange& exchange) { test::stream(exchange, "yes"); }));
  const auto root = server.base_url().substr(0, server.base_url().size() - 3);
  for (const auto& url : {root, root + "/", root + "/v1/", root + "/proxied/v1"}) {
    auto client = ModelClient::to({.base_url = url});
    EXPECT_TRUE(client->chat(question()).ok()) << url;
  }
  const auto requests = server.requests();
  EXPECT_EQ(requests.at(0).target, "/props");
  EXPECT_EQ(requests.at(3).target, "/v1/chat/completions");
  EXPECT_EQ(requests.back().target, "/proxied/v1/chat/completions");
  EXPECT_EQ(requests.at(requests.size() - 2).target, "/proxied/version");
}

}  // namespace
}  // namespace watchdog
