// The doctor's findings about each kind of server, and its advice.

#include "proxy/server/diagnosis.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/model_replies.h"
#include "support/model_server.h"
#include "support/silent_process.h"

namespace watchdog::monitor {
namespace {

using test::ModelServer;
using Exchange = ModelServer::Exchange;
using test::SilentProcess;

Diagnosis diagnosis_of(const Url& url) {
  auto questions = ServerQuestions::to({.server = url, .api_key = {}});
  EXPECT_TRUE(questions.ok());
  return diagnose(url, *questions);
}

Diagnosis diagnosis_of(const ModelServer& server) {
  auto url = url_from(server.base_url());
  url->path.clear();
  return diagnosis_of(*url);
}

bool advises(const Diagnosis& diagnosis, std::string_view what) {
  return std::ranges::any_of(advice_for(diagnosis), [&](const std::string& line) {
    return line.find(what) != std::string::npos;
  });
}

TEST(Diagnosis, llama_cpp_with_everything) {
  const ModelServer server([](Exchange& exchange) {
    const auto& target = exchange.request().target;
    if (target == "/slots") {
      exchange.respond(200,
                       "[" + test::llama_slot(0, true, 7) + "," + test::llama_slot(1, false) + "]");
    } else if (target == "/metrics") {
      exchange.respond(200, "llamacpp:n_decode_total 1\n", "text/plain");
    } else {
      test::be_llama(exchange, 2);
    }
  });
  const auto found = diagnosis_of(server);
  EXPECT_TRUE(found.is_reachable);
  EXPECT_EQ(found.kind, "llama_cpp");
  EXPECT_EQ(found.version, "b10573-3f545be");
  EXPECT_EQ(found.models, std::vector<std::string>{"a.gguf"});
  EXPECT_EQ(found.slots_total, 2U);
  EXPECT_EQ(found.slots_busy, 1U);
  EXPECT_EQ(found.context, 4'096);
  EXPECT_TRUE(found.shows_prompt_progress && found.shows_reading);
  EXPECT_EQ(found.metrics, Asked::answered);
  ASSERT_TRUE(found.process);
  EXPECT_EQ(found.process->pid, getpid());
  EXPECT_EQ(advice_for(found).size(), 1U) << "but for the clients nothing is to be changed";
  EXPECT_TRUE(advises(found, "a ping every 30 s"));
}

TEST(Diagnosis, llama_cpp_without_slots_and_metrics) {
  const ModelServer server([](Exchange& exchange) {
    const auto& target = exchange.request().target;
    target == "/props" ? test::be_llama(exchange) : (void)exchange.respond(501, "{}");
  });
  const auto found = diagnosis_of(server);
  EXPECT_EQ(found.slots, Asked::unsupported);
  EXPECT_EQ(found.slots_total, 4U) << "as /props has it";
  EXPECT_TRUE(advises(found, "--no-slots"));
  EXPECT_TRUE(advises(found, "--metrics"));
}

TEST(Diagnosis, a_sleeping_model_is_not_woken) {
  const ModelServer server([](Exchange& exchange) {
    exchange.request().target == "/props" ? exchange.respond(200, test::llama_props(1, true))
                                          : exchange.respond(501, "{}");
  });
  const auto found = diagnosis_of(server);
  EXPECT_TRUE(found.is_sleeping);
  EXPECT_EQ(found.slots, Asked::unasked);
  for (const auto& asked : server.requests()) EXPECT_NE(asked.target, "/slots");
  EXPECT_TRUE(advises(found, "sleeps"));
}

TEST(Diagnosis, loading_and_locked_servers_are_reported) {
  const ModelServer loading([](Exchange& exchange) {
    exchange.respond(503, test::llama_loading, "application/json", test::llama_header);
  });
  EXPECT_TRUE(diagnosis_of(loading).is_loading);
  const ModelServer locked([](Exchange& exchange) {
    exchange.respond(401, "{}", "application/json", test::llama_header);
  });
  const auto found = diagnosis_of(locked);
  EXPECT_TRUE(found.needs_key);
  EXPECT_TRUE(advises(found, "--key-file"));
}

TEST(Diagnosis, the_other_kinds) {
  const ModelServer ollama([](Exchange& exchange) {
    if (exchange.request().target != "/api/ps") return test::be_ollama(exchange);
    exchange.respond(200, R"({"models":[{"name":"qwen3:8b","context_length":8192}]})");
  });
  auto found = diagnosis_of(ollama);
  EXPECT_EQ(found.kind, "ollama");
  EXPECT_EQ(found.version, "0.30.1");
  EXPECT_EQ(found.models, std::vector<std::string>{"qwen3:8b"});
  EXPECT_EQ(found.context, 8'192);
  EXPECT_FALSE(found.shows_prompt_progress);

  const ModelServer vllm([](Exchange& exchange) {
    if (exchange.request().target != "/v1/models") return test::be_vllm(exchange);
    exchange.respond(200, R"({"data":[{"id":"big"}]})");
  });
  found = diagnosis_of(vllm);
  EXPECT_EQ(found.kind, "vllm");
  EXPECT_EQ(found.version, "0.16.0");
  EXPECT_EQ(found.models, std::vector<std::string>{"big"});
  EXPECT_TRUE(advises(found, "/metrics"));

  const ModelServer sglang([](Exchange& exchange) {
    if (exchange.request().target != "/metrics") return test::be_unknown(exchange);
    exchange.respond(200, "sglang:num_running_reqs 0\n");
  });
  EXPECT_EQ(diagnosis_of(sglang).kind, "sglang");

  const ModelServer unknown(test::be_unknown);
  found = diagnosis_of(unknown);
  EXPECT_TRUE(found.is_reachable);
  EXPECT_EQ(found.kind, "unknown");
}

TEST(Diagnosis, a_silent_server_gives_no_answer_and_a_stopped_process_is_named) {
  const SilentProcess server;
  auto found = diagnosis_of(server.url());
  EXPECT_FALSE(found.is_reachable);
  EXPECT_EQ(found.trouble, "it accepts connections, and did not answer within 2 s");
  kill(server.pid(), SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(server.pid(), &status, WUNTRACED), server.pid());
  found = diagnosis_of(server.url());
  EXPECT_NE(found.trouble.find("kill -CONT " + std::to_string(server.pid())), std::string::npos)
      << found.trouble;
}

TEST(Diagnosis, nobody_there_is_unreachable) {
  Url url;
  {
    const ModelServer server(test::be_unknown);
    url = *url_from(server.base_url());
  }
  const auto found = diagnosis_of(url);
  EXPECT_FALSE(found.is_reachable);
  EXPECT_FALSE(found.trouble.empty());
}

}  // namespace
}  // namespace watchdog::monitor
