// A conversation that was interrupted anywhere is one that every API takes.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "support/scenario.h"
#include "watchdog/tool_runner.h"

namespace watchdog::test {
namespace {

using Conversation = std::vector<ChatMessage>;

ChatMessage said(const std::string& role, const std::string& text) {
  return {.role = role, .content = text};
}
ChatMessage asks(const std::vector<std::string>& ids) {
  ChatMessage message = said("assistant", "");
  for (const auto& id : ids) message.tool_calls.push_back({.id = id, .name = "tool " + id});
  return message;
}
ChatMessage answers(const std::string& id, const std::string& text) {
  return {.role = "tool", .content = text, .tool_call_id = id};
}

/// A message on a line, so that two conversations can be compared and read.
std::vector<std::string> lines(const Conversation& conversation) {
  std::vector<std::string> all;
  for (const auto& message : conversation) {
    auto line = message.role + " " + message.tool_call_id + ": " + message.content;
    for (const auto& call : message.tool_calls) line += " [" + call.id + "]";
    all.push_back(line);
  }
  return all;
}
std::vector<std::string> lines_of(const Conversation& conversation, bool tools) {
  auto some = conversation;
  std::erase_if(some, [&](const auto& message) { return (message.role == "tool") != tools; });
  return lines(some);
}

/// Behind each message with calls stands one answer for each, in their order, and none elsewhere.
void expect_answered(const Conversation& conversation) {
  for (std::size_t at = 0; at < conversation.size();) {
    const auto& message = conversation[at++];
    ASSERT_NE(message.role, "tool") << message.content << " answers nothing";
    for (const auto& call : message.tool_calls) {
      ASSERT_LT(at, conversation.size()) << call.id << " has no answer";
      ASSERT_EQ(conversation[at].role, "tool") << call.id << " has no answer";
      ASSERT_EQ(conversation[at].tool_call_id, call.id);
      ++at;
    }
  }
}

void expect_repaired(const Conversation& broken) {
  auto conversation = broken;
  const bool changed = repair_history(conversation);
  expect_answered(conversation);
  EXPECT_EQ(changed, lines(conversation) != lines(broken));
  EXPECT_EQ(lines_of(conversation, false), lines_of(broken, false)) << "something else was lost";
  auto again = conversation;
  EXPECT_FALSE(repair_history(again));
  EXPECT_EQ(lines(again), lines(conversation));
}

/// Turns of up to five calls. As with some models, ids begin again in each turn.
Conversation random_conversation(std::mt19937& random) {
  Conversation conversation{said("system", "be good"), said("user", "do it")};
  for (auto turns = 1 + random() % 4; turns > 0; --turns) {
    std::vector<std::string> ids;
    for (auto calls = random() % 6; calls > 0; --calls)
      ids.push_back("call_" + std::to_string(ids.size()));
    conversation.push_back(asks(ids));
    for (const auto& id : ids)
      conversation.push_back(answers(id, "result " + std::to_string(random())));
    if (random() % 2 == 0) conversation.push_back(said("user", "and then?"));
  }
  conversation.push_back(said("assistant", "done"));
  return conversation;
}

TEST(RepairHistory, a_conversation_cut_anywhere_is_whole_again_and_nothing_else_is_lost) {
  std::mt19937 random(random_seed());
  for (int left = repetitions(300); left > 0; --left) {
    const auto whole = random_conversation(random);
    auto untouched = whole;
    EXPECT_FALSE(repair_history(untouched));
    for (std::size_t count = 0; count <= whole.size(); ++count) {
      const Conversation cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(count));
      expect_repaired(cut);
      // An answered call keeps its answer.
      auto conversation = cut;
      (void)repair_history(conversation);
      const auto kept = lines_of(conversation, true);
      for (const auto& answer : lines_of(cut, true))
        EXPECT_NE(std::ranges::find(kept, answer), kept.end()) << answer;
    }
  }
}

TEST(RepairHistory, a_conversation_that_lost_and_mixed_up_anything_is_one_that_is_taken) {
  std::mt19937 random(random_seed());
  for (int left = repetitions(3'000); left > 0; --left) {
    auto conversation = random_conversation(random);
    for (auto times = 1 + random() % 6; times > 0 && !conversation.empty(); --times) {
      const auto at = [&] {
        return conversation.begin() + static_cast<std::ptrdiff_t>(random() % conversation.size());
      };
      switch (random() % 4) {
        case 0:
          conversation.erase(at());
          break;
        case 1: {
          auto twice = *at();
          conversation.insert(at(), std::move(twice));
          break;
        }
        case 2:
          std::iter_swap(at(), at());
          break;
        default:
          conversation.insert(
              at(), random() % 2 == 0 ? said("user", "wait") : answers("call_0", "stray"));
      }
    }
    expect_repaired(conversation);
  }
}

TEST(RepairHistory, finished_calls_are_distinguished_from_interrupted_ones_among_27_calls) {
  std::vector<std::string> ids;
  for (int at = 0; at < 27; ++at) ids.push_back("c" + std::to_string(at));
  for (std::size_t done = 0; done <= ids.size(); ++done) {
    Conversation conversation{said("user", "do it"), asks(ids)};
    for (std::size_t at = 0; at < done; ++at) conversation.push_back(answers(ids[at], "ok"));
    expect_repaired(conversation);
    EXPECT_EQ(repair_history(conversation), done < ids.size());
    const auto kept = std::ranges::count(conversation, "ok", &ChatMessage::content);
    EXPECT_EQ(kept, static_cast<std::ptrdiff_t>(done));
    const auto interrupted = std::ranges::count_if(conversation, [](const ChatMessage& message) {
      return message.content.starts_with("[CANCELLED] Tool \"tool c");
    });
    EXPECT_EQ(interrupted, static_cast<std::ptrdiff_t>(ids.size() - done));
  }
}

TEST(RepairHistory, a_user_message_between_the_answers_is_moved_after_them) {
  Conversation conversation{asks({"a", "b"}), answers("b", "second"), said("user", "hurry"),
                            answers("a", "first")};
  EXPECT_TRUE(repair_history(conversation));
  EXPECT_EQ(lines(conversation), lines({asks({"a", "b"}), answers("a", "first"),
                                        answers("b", "second"), said("user", "hurry")}));
}

}  // namespace
}  // namespace watchdog::test
