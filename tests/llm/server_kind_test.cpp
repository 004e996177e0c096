// Which server it is, and whether a check may be asked beside an agent of it.

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "llm/asking.h"
#include "watchdog/reasons.h"

namespace watchdog {
namespace {

using test::answering;
using test::client_to;
using test::Exchange;
using test::llama_slot;
using test::ModelServer;
using test::question;

void no_chat(Exchange& exchange) {
  exchange.respond(500, "{}");
}

TEST(ServerKind, each_server_is_found_and_remembered) {
  const std::vector<std::pair<std::function<void(Exchange&)>, ServerKind>> rows = {
      {[](Exchange& exchange) { test::be_llama(exchange); }, ServerKind::llama_cpp},
      {test::be_ollama, ServerKind::ollama},
      {test::be_vllm, ServerKind::vllm},
      {test::be_unknown, ServerKind::unknown}};
  for (const auto& [be, kind] : rows) {
    const ModelServer server(answering(no_chat, be));
    auto client = client_to(server);
    EXPECT_EQ(client.server(), kind);
    const auto asked = server.requests().size();
    EXPECT_EQ(client.server(), kind);
    EXPECT_EQ(server.requests().size(), asked) << "asked once";
  }
}

TEST(ServerKind, a_server_that_loads_its_model_is_known_already) {
  const ModelServer server([](Exchange& exchange) {
    exchange.respond(503, test::llama_loading, "application/json", test::llama_header);
  });
  auto client = client_to(server);
  EXPECT_EQ(client.server(), ServerKind::llama_cpp);
  const auto answer = client.chat(question());
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().reason, reasons::model_server_error);
  EXPECT_TRUE(answer.error().recoverable);
}

TEST(ServerKind, a_server_that_cannot_be_reached_is_asked_again) {
  std::atomic<bool> up = false;
  const ModelServer server(
      [&](Exchange& exchange) { up ? test::be_ollama(exchange) : exchange.close(); });
  auto client = client_to(server);
  EXPECT_EQ(client.server(), ServerKind::unknown);
  up = true;
  EXPECT_EQ(client.server(), ServerKind::ollama);
}

TEST(ServerKind, a_gateway_without_its_server_says_nothing_of_it) {
  std::atomic<bool> up = false;
  const ModelServer server([&](Exchange& exchange) {
    if (up) return test::be_llama(exchange);
    exchange.respond(502, "<html>502 Bad Gateway</html>", "text/html");
  });
  auto client = client_to(server);
  EXPECT_EQ(client.server(), ServerKind::unknown);
  up = true;
  EXPECT_EQ(client.server(), ServerKind::llama_cpp);
}

TEST(ServerKind, a_silent_server_is_given_up_after_a_bounded_time) {
  const ModelServer server([](Exchange& exchange) { exchange.wait_gone(); });
  EXPECT_EQ(client_to(server).server(), ServerKind::unknown);
}

TEST(ServerKind, the_question_is_called_off_as_well) {
  std::latch asked(1);
  const ModelServer server([&](Exchange& exchange) {
    asked.count_down();
    exchange.wait_gone();
  });
  std::stop_source stop;
  std::jthread canceller([&] {
    asked.wait();
    stop.request_stop();
  });
  auto client = client_to(server);
  const auto answer = client.chat(question(), {}, stop.get_token());
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().reason, reasons::cancelled);
}

/// A llama.cpp server with slots that a test sets.
class Llama {
 public:
  explicit Llama(std::vector<std::string> slots, bool sleeping = false)
      : sleeping_(sleeping), slots_(std::move(slots)) {}

  void set(std::size_t slot, std::string to) {
    const std::lock_guard guard(mutex_);
    slots_[slot] = std::move(to);
  }
  enum class Lost : std::uint8_t { never, before_it_begins, in_mid_answer };
  void lose(Lost when) {
    const std::lock_guard guard(mutex_);
    lost_ = when;
  }
  void fail_slots(bool fail) {
    const std::lock_guard guard(mutex_);
    slots_fail_ = fail;
  }
  void answer(Exchange& exchange) {
    const std::lock_guard guard(mutex_);
    const auto& target = exchange.request().target;
    if (exchange.is_chat()) {
      const auto body = nlohmann::json::parse(exchange.request().body);
      const int slot = body.value("id_slot", 0);
      if (lost_ == Lost::before_it_begins) return exchange.close();
      slots_.at(slot) = llama_slot(slot, false, ++task_, body.value("seed", test::llama_no_seed));
      lost_ == Lost::in_mid_answer ? exchange.close() : (void)test::stream(exchange, "A");
    } else if (target == "/slots") {
      if (slots_fail_) return (void)exchange.respond(503, test::llama_loading);
      std::string list;
      for (const auto& slot : slots_) list += (list.empty() ? "" : ",") + slot;
      exchange.respond(200, "[" + list + "]");
    } else if (target == "/props") {
      exchange.respond(200, test::llama_props(static_cast<int>(slots_.size()), sleeping_));
    } else {
      exchange.respond(404, "{}");
    }
  }

 private:
  std::mutex mutex_;
  bool sleeping_;
  std::vector<std::string> slots_;
  int task_ = 100;
  Lost lost_ = Lost::never;
  bool slots_fail_ = false;
};

struct Beside {
  explicit Beside(std::vector<std::string> slots, bool sleeping = false)
      : llama(std::move(slots), sleeping) {}
  Llama llama;
  ModelServer server{[this](Exchange& exchange) { llama.answer(exchange); }};
  ModelClient client = client_to(server);
};

TEST(Beside, a_check_takes_a_slot_that_nobody_used) {
  Beside beside({llama_slot(0, true, 5), llama_slot(1, false), llama_slot(2, false, 3)});
  const auto request = beside.client.beside(question());
  ASSERT_TRUE(request.ok()) << request.error().message;
  EXPECT_EQ(request->slot, 1);
}

TEST(Beside, a_check_takes_its_own_slot_again_unless_somebody_used_it_since) {
  Beside beside({llama_slot(0, true, 5), llama_slot(1, false)});
  for (int i = 0; i < 3; ++i) {
    const auto request = beside.client.beside(question());
    ASSERT_TRUE(request.ok()) << request.error().message;
    EXPECT_EQ(request->slot, 1);
    ASSERT_TRUE(beside.client.chat(*request).ok());
  }
  beside.llama.set(1, llama_slot(1, false, 999));
  const auto request = beside.client.beside(question());
  ASSERT_FALSE(request.ok());
  EXPECT_EQ(request.error().reason, "not_asked");
}

TEST(Beside, a_slot_is_known_again_whatever_went_wrong_in_and_after_its_check) {
  using Lost = Llama::Lost;
  Beside beside({llama_slot(0, true, 5), llama_slot(1, false)});
  for (const auto lost : {Lost::never, Lost::in_mid_answer, Lost::before_it_begins, Lost::never}) {
    const auto request = beside.client.beside(question());
    ASSERT_TRUE(request.ok()) << request.error().message;
    EXPECT_EQ(request->slot, 1);
    beside.llama.lose(lost);
    beside.llama.fail_slots(true);
    EXPECT_EQ(beside.client.chat(*request).ok(), lost == Lost::never);
    EXPECT_FALSE(beside.client.beside(question()).ok()) << "not while the slots are not told";
    beside.llama.fail_slots(false);
  }
  EXPECT_EQ(beside.client.beside(question())->slot, 1);
}

TEST(Beside, nothing_is_asked_after_a_check) {
  Beside beside({llama_slot(0, true, 5), llama_slot(1, false)});
  const auto request = beside.client.beside(question());
  ASSERT_TRUE(request.ok() && beside.client.chat(*request).ok());
  EXPECT_TRUE(beside.server.requests().back().target.ends_with("/chat/completions"));
}

TEST(Beside, a_slot_that_works_becomes_free_again_when_it_is_a_check_that_ends) {
  Beside beside({llama_slot(0, true, 5), llama_slot(1, false)});
  const auto request = beside.client.beside(question());
  ASSERT_TRUE(request.ok() && request->seed);
  beside.llama.set(1, llama_slot(1, true, 101, *request->seed));
  EXPECT_FALSE(beside.client.beside(question()).ok()) << "a check that was called off winds down";
  beside.llama.set(1, llama_slot(1, false, 101, *request->seed));
  EXPECT_EQ(beside.client.beside(question())->slot, 1);
}

TEST(Beside, a_slot_of_another_clients_check_is_not_free) {
  Beside beside({llama_slot(0, true, 5), llama_slot(1, false)});
  auto other = client_to(beside.server);
  const auto request = other.beside(question());
  ASSERT_TRUE(request.ok() && other.chat(*request).ok());
  EXPECT_FALSE(beside.client.beside(question()).ok());
}

TEST(Beside, a_slot_that_an_agent_chose_itself_does_not_become_the_checks) {
  Beside beside({llama_slot(0, true, 5), llama_slot(1, false)});
  auto own = question();
  own.slot = 1;
  ASSERT_TRUE(beside.client.chat(own).ok());
  EXPECT_FALSE(beside.client.beside(question()).ok());
}

TEST(Beside, one_slot_belongs_to_the_agent) {
  Beside beside({llama_slot(0, false)});
  const auto answer = beside.client.model_beside()(question(), {}, {});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.error().reason, "not_asked");
  EXPECT_TRUE(beside.server.chats().empty());
  const auto request = beside.client.beside(question());
  ASSERT_FALSE(request.ok());
  EXPECT_EQ(request.error().reason, "not_asked");
  EXPECT_NE(request.error().message.find("one slot"), std::string::npos);
  for (const auto& asked : beside.server.requests()) EXPECT_NE(asked.target, "/slots");
}

TEST(Beside, as_a_function_it_asks_on_the_slot_that_it_may_use) {
  Beside beside({llama_slot(0, true, 5), llama_slot(1, false)});
  const Model model = beside.client.model_beside();
  for (int i = 0; i < 2; ++i) {
    std::string reported;
    const auto answer = model(
        question(), [&](const ChatProgress&, std::string_view text) { reported += text; }, {});
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    EXPECT_EQ(answer->text, "A");
    EXPECT_EQ(reported, "A");
  }
  const auto chats = beside.server.chats();
  ASSERT_EQ(chats.size(), 2U);
  for (const auto& chat : chats) EXPECT_NE(chat.find(R"("id_slot":1)"), std::string::npos) << chat;

  std::stop_source stop;
  stop.request_stop();
  const auto cancelled = model(question(), {}, stop.get_token());
  ASSERT_FALSE(cancelled.ok());
  EXPECT_EQ(cancelled.error().reason, reasons::cancelled);
  EXPECT_EQ(beside.server.chats().size(), 2U);
}

TEST(Beside, a_server_that_sleeps_is_not_woken) {
  Beside beside({llama_slot(0, false), llama_slot(1, false)}, true);
  const auto request = beside.client.beside(question());
  ASSERT_FALSE(request.ok());
  EXPECT_NE(request.error().message.find("sleeps"), std::string::npos);
  for (const auto& asked : beside.server.requests()) EXPECT_NE(asked.target, "/slots");
}

TEST(Beside, slots_that_are_not_reported_are_not_used) {
  const ModelServer server([](Exchange& exchange) {
    if (exchange.request().target != "/slots") return test::be_llama(exchange);
    exchange.respond(501, R"({"error":{"code":501,"message":"This server does not support slots )"
                          R"(endpoint. Start it with `--slots`","type":"not_supported_error"}})");
  });
  EXPECT_EQ(client_to(server).beside(question()).error().reason, "not_asked");
}

TEST(Beside, other_servers_are_asked_where_prompts_do_not_displace_each_other) {
  const ModelServer vllm(answering(no_chat, test::be_vllm));
  const auto request = client_to(vllm).beside(question("same"));
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->messages.at(0).content, "same");
  EXPECT_EQ(request->slot, std::nullopt);

  const ModelServer ollama(answering(no_chat, test::be_ollama));
  EXPECT_EQ(client_to(ollama).beside(question()).error().reason, "not_asked");
  const ModelServer local(answering(no_chat));
  EXPECT_EQ(client_to(local).beside(question()).error().reason, "not_asked");
}

}  // namespace
}  // namespace watchdog
