#include "proxy/sessions/conversation.h"

#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

namespace watchdog::monitor {
namespace {

using nlohmann::json;
using Answer = Conversation::Answer;

json system(const std::string& text) {
  return {{"role", "system"}, {"content", text}};
}
json user(const std::string& text) {
  return {{"role", "user"}, {"content", text}};
}
json agent(const std::string& text) {
  return {{"role", "assistant"}, {"content", text}};
}
json call(const std::string& id, const std::string& tool = "f") {
  return {
      {"role", "assistant"},
      {"tool_calls", {{{"id", id}, {"function", {{"name", tool}, {"arguments", "{\"x\":1}"}}}}}}};
}
json result(const std::string& id, const std::string& text) {
  return {{"role", "tool"}, {"tool_call_id", id}, {"content", text}};
}

ModelRequest request(const std::vector<json>& messages) {
  return *model_request_from("POST", "/v1/chat/completions", json{{"messages", messages}}.dump());
}

std::string shown(const News& news) {
  std::string all = std::to_string(news.thread);
  for (const auto& asked : news.calls) all += " call " + asked.id;
  for (const auto& back : news.results) all += " " + back.call_id + "=" + back.content;
  if (!news.words.empty()) all += " '" + news.words + "'";
  if (news.compacted) all += " compacted";
  if (news.repeated) all += " repeated";
  if (news.repeated && news.answered) all += " answered";
  if (news.repeated && news.calling) all += " calling";
  return all;
}

class Conversing : public testing::Test {
 protected:
  Conversation conversation;
  std::uint64_t thread = 0;

  /// Asks, and is answered with calls of these ids.
  std::string say(const std::vector<json>& messages, const std::vector<std::string>& calls = {},
                  Answer answer = Answer::whole) {
    const auto news = conversation.ask(request(messages));
    thread = news.thread;
    std::vector<ToolRequest> asked;
    for (const auto& id : calls) asked.push_back({.id = id, .name = "f", .arguments = "{}"});
    conversation.answer(thread, answer, asked, "request");
    return shown(news);
  }
};

TEST_F(Conversing, each_request_brings_what_follows_the_agents_latest_words) {
  EXPECT_EQ(say({system("S"), user("U")}, {"a", "b"}), "1 'U'");
  EXPECT_TRUE(conversation.has_open_calls());
  const std::vector<json> history = {system("S"), user("U"), call("a"), call("b")};
  auto with = history;
  with.push_back(result("a", "A"));
  with.push_back(result("b", "B"));
  EXPECT_EQ(say(with), "1 a=A b=B");
  EXPECT_FALSE(conversation.has_open_calls());
  with.push_back(agent("Done"));
  with.push_back(user("More"));
  EXPECT_EQ(say(with), "1 'More'");
}

TEST_F(Conversing, a_history_that_was_not_seen_before_is_not_news) {
  EXPECT_EQ(say({user("U"), call("a"), result("a", "A"), call("b"), result("b", "B")}), "1 b=B");
}

TEST_F(Conversing, the_same_request_again_is_a_repetition) {
  EXPECT_EQ(say({user("U")}, {}, Answer::none), "1 'U'");
  EXPECT_EQ(say({user("U")}, {}, Answer::none), "1 repeated");
  EXPECT_EQ(say({user("U"), user("V")}), "1 'V'") << "and something new";
  EXPECT_EQ(say({user("U"), user("V")}, {"a"}), "1 repeated answered");
  EXPECT_EQ(say({user("U"), user("V")}), "1 repeated answered calling");
  EXPECT_EQ(say({user("U"), user("V"), agent("T"), user("V")}), "1 'V'") << "the same, later";
}

TEST_F(Conversing, two_of_the_same_at_once_are_no_repetition) {
  EXPECT_EQ(shown(conversation.ask(request({user("U")}))), "1 'U'");
  EXPECT_EQ(shown(conversation.ask(request({user("U")}))), "1");
}

TEST_F(Conversing, system_prompts_that_change_are_no_news) {
  EXPECT_EQ(say({system("It is 9:00"), user("U")}), "1 'U'");
  EXPECT_EQ(say({system("It is 9:01"), user("U")}), "1 repeated answered");
  EXPECT_EQ(say({system("It is 9:02"), user("U"), agent("T"), user("V")}), "1 'V'");
}

TEST_F(Conversing, results_whose_calls_were_not_read_bring_their_calls) {
  EXPECT_EQ(say({user("U")}, {}, Answer::unread), "1 'U'");
  EXPECT_EQ(say({user("U"), call("a"), result("a", "A")}, {"b"}), "1 call a a=A");
  EXPECT_EQ(say({user("U"), call("a"), result("a", "A"), call("b"), result("b", "B")}), "1 b=B");
}

TEST_F(Conversing, results_without_ids_belong_to_calls_by_name_or_in_order) {
  const auto news = conversation.ask(request({user("U")}));
  std::vector<ToolRequest> calls = {{.id = {}, .name = "f", .arguments = "1"},
                                    {.id = {}, .name = "g", .arguments = "2"},
                                    {.id = {}, .name = "f", .arguments = "3"}};
  conversation.answer(news.thread, Answer::whole, calls, "request-7");
  EXPECT_EQ(calls[2].id, "request-7.3");
  const auto answer = [](const char* name, const char* text) {
    return json{{"role", "tool"}, {"tool_name", name}, {"content", text}};
  };
  EXPECT_EQ(say({user("U"), agent(""), answer("g", "G"), answer("f", "F"), answer("f", "H")}),
            "1 request-7.2=G request-7.1=F request-7.3=H");
}

TEST_F(Conversing, a_helper_that_shares_the_session_has_a_thread_of_its_own) {
  say({system("S"), user("U")}, {"a"});
  EXPECT_EQ(say({system("Name it"), user("Title for: U")}), "2 'Title for: U'");
  EXPECT_TRUE(conversation.has_open_calls());
  EXPECT_TRUE(conversation.has_open_calls(2));
  EXPECT_FALSE(conversation.has_open_calls(1));
  EXPECT_EQ(say({system("S"), user("U"), call("a"), result("a", "A")}), "1 a=A");
}

TEST_F(Conversing, a_history_that_is_shorter_and_begins_otherwise_was_compacted) {
  say({system("S"), user("U"), agent("1"), user("V"), agent("2"), user("W")});
  EXPECT_EQ(say({system("S"), user("Summary of U, V, W")}), "1 'Summary of U, V, W' compacted");
  EXPECT_EQ(say({system("S"), user("Summary of U, V, W"), agent("3"), user("X")}), "1 'X'");
}

TEST_F(Conversing, a_history_that_lost_all_answers_was_compacted) {
  say({system("S"), user("U")});
  say({system("S"), user("U"), agent("1"), user("V")});
  EXPECT_EQ(say({system("S"), user("U"), agent("1"), user("V"), agent("2"), user("W")}), "1 'W'");
  EXPECT_EQ(say({system("S"), user("U"), agent("1"), user("X")}), "1 'X'") << "edited";
  say({system("S"), user("U"), agent("1"), user("X"), agent("3"), user("Y")});
  const auto shortened = say({system("S"), user("U"), user("X"), user("Y"), user("Summary")});
  EXPECT_TRUE(shortened.ends_with("Summary' compacted")) << shortened;
  say({system("S"), user("U"), user("X"), user("Y"), user("Summary"), agent("4"), user("Z")});
  EXPECT_EQ(say({system("S"), user("U"), agent("1"), user("V")}), "1 'V'") << "edited";
}

TEST_F(Conversing, a_program_that_runs_again_begins_as_before) {
  say({system("S"), user("U")});
  say({system("S"), user("U"), agent("1"), user("V"), agent("2"), user("W")});
  EXPECT_EQ(say({system("S"), user("U")}), "1 'U'");
}

TEST_F(Conversing, a_summary_before_the_newest_turn_was_compacted) {
  say({user("U"), agent("1"), user("V"), agent("2"), user("W")}, {"k"});
  EXPECT_EQ(say({user("Summary"), call("k"), result("k", "K")}), "1 k=K compacted");
}

TEST_F(Conversing, a_history_that_slides_or_is_edited_stays_the_same_thread) {
  say({system("S"), user("1"), agent("a"), user("2"), agent("b"), user("3")}, {"k"});
  EXPECT_EQ(say({system("S"), user("2"), agent("b"), user("3"), call("k"), result("k", "K")}),
            "1 k=K");
  EXPECT_EQ(say({system("S"), user("3"), agent("c"), user("4")}), "1 '4' compacted")
      << "two messages were dropped";
  EXPECT_EQ(say({system("S"), user("3"), agent("c"), user("5")}), "1 '5'") << "edited";
}

TEST_F(Conversing, a_conversation_that_continues_without_a_result_does_not_wait_for_it) {
  say({user("U")}, {"a"});
  EXPECT_EQ(say({user("U"), user("Stop that")}), "1 'Stop that'");
  EXPECT_FALSE(conversation.has_open_calls());
}

TEST_F(Conversing, bodies_that_cannot_be_read_leave_no_call_open_for_ever) {
  say({user("U")}, {"a"});
  const auto unread = *model_request_from("POST", "/v1/messages", "\x1F\x8B");
  EXPECT_EQ(shown(conversation.ask(unread)), "0");
  EXPECT_FALSE(conversation.has_open_calls());
}

TEST_F(Conversing, the_chain_of_responses_sends_only_what_is_new) {
  const auto ask = [&](const std::string& body) {
    const auto news = conversation.ask(*model_request_from("POST", "/v1/responses", body));
    std::vector<ToolRequest> calls = {{.id = "k", .name = "f", .arguments = "{}"}};
    conversation.answer(news.thread, Answer::whole, calls, "r");
    return shown(news);
  };
  EXPECT_EQ(ask(R"({"input":"Go"})"), "1 'Go'");
  EXPECT_EQ(
      ask(R"({"previous_response_id":"r1","input":[{"type":"function_call_output","call_id":"k","output":"A"}]})"),
      "1 k=A");
  EXPECT_EQ(ask(R"({"previous_response_id":"r2","input":"Go on"})"), "1 'Go on'");
  EXPECT_EQ(ask(R"({"previous_response_id":"r3","input":"Go on"})"), "1 'Go on'");
  EXPECT_EQ(ask(R"({"previous_response_id":"r3","input":"Go on"})"), "1 repeated answered calling");
}

TEST_F(Conversing, words_of_a_person_come_before_markup_of_the_agent) {
  const std::string context = "<environment_context>\n<cwd>/src</cwd>\n</environment_context>\n";
  EXPECT_EQ(conversation.ask(request({user(context), user("Mend the parser")})).words,
            "Mend the parser\n\n" + context);
  EXPECT_EQ(conversation.ask(request({user("Other"), user(context), user("and more")})).words,
            "Other\n\n" + context + "\n\nand more");
}

TEST_F(Conversing, threads_and_calls_are_bounded) {
  for (int n = 0; n < 1'000; ++n) {
    std::vector<std::string> calls;
    for (int at = 0; at < 100; ++at) calls.push_back(std::string(10'000, 'c') + std::to_string(at));
    say({user("U" + std::to_string(n))}, calls);
  }
  EXPECT_EQ(thread, 1'000U);
  EXPECT_EQ(say({user("U1")}), "1001 'U1'") << "long forgotten";
}

TEST_F(Conversing, a_huge_history_costs_no_more_than_its_size) {
  const auto cost = [&](int count) {
    std::vector<json> messages;
    for (int n = 0; n < count; ++n)
      messages.push_back(n % 2 == 0 ? user("U" + std::to_string(n)) : agent(std::to_string(n)));
    messages.push_back(user("last " + std::to_string(count)));
    const auto asked = request(messages);
    const auto begin = std::chrono::steady_clock::now();
    for (int times = 0; times < 20; ++times) (void)conversation.ask(asked);
    return std::chrono::steady_clock::now() - begin;
  };
  const auto small = cost(2'000);
  EXPECT_LT(cost(20'000), 60 * small) << "a tenth of what a quadratic one would take";
}

}  // namespace
}  // namespace watchdog::monitor
