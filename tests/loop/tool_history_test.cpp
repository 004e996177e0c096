// A conversation that was interrupted anywhere is one that every API takes.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "support/scenario.h"
#include "watchdog/tool_runner.h"

namespace watchdog::test {
namespace {

using Talk = std::vector<ChatMessage>;

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
std::vector<std::string> lines(const Talk& talk) {
  std::vector<std::string> all;
  for (const auto& message : talk) {
    auto line = message.role + " " + message.tool_call_id + ": " + message.content;
    for (const auto& call : message.tool_calls) line += " [" + call.id + "]";
    all.push_back(line);
  }
  return all;
}
std::vector<std::string> lines_of(const Talk& talk, bool tools) {
  auto some = talk;
  std::erase_if(some, [&](const auto& message) { return (message.role == "tool") != tools; });
  return lines(some);
}

/// Behind each message with calls stands one answer for each, in their order, and none elsewhere.
void expect_answered(const Talk& talk) {
  for (std::size_t at = 0; at < talk.size();) {
    const auto& message = talk[at++];
    ASSERT_NE(message.role, "tool") << message.content << " answers nothing";
    for (const auto& call : message.tool_calls) {
      ASSERT_LT(at, talk.size()) << call.id << " has no answer";
      ASSERT_EQ(talk[at].role, "tool") << call.id << " has no answer";
      ASSERT_EQ(talk[at].tool_call_id, call.id);
      ++at;
    }
  }
}

void expect_repaired(const Talk& broken) {
  auto talk = broken;
  const bool changed = repair_history(talk);
  expect_answered(talk);
  EXPECT_EQ(changed, lines(talk) != lines(broken));
  EXPECT_EQ(lines_of(talk, false), lines_of(broken, false)) << "something else was lost";
  auto again = talk;
  EXPECT_FALSE(repair_history(again));
  EXPECT_EQ(lines(again), lines(talk));
}

/// Turns of up to five calls. As with some models, ids begin again in each turn.
Talk random_talk(std::mt19937& random) {
  Talk talk{said("system", "be good"), said("user", "do it")};
  for (auto turns = 1 + random() % 4; turns > 0; --turns) {
    std::vector<std::string> ids;
    for (auto calls = random() % 6; calls > 0; --calls)
      ids.push_back("call_" + std::to_string(ids.size()));
    talk.push_back(asks(ids));
    for (const auto& id : ids) talk.push_back(answers(id, "result " + std::to_string(random())));
    if (random() % 2 == 0) talk.push_back(said("user", "and then?"));
  }
  talk.push_back(said("assistant", "done"));
  return talk;
}

TEST(RepairHistory, a_conversation_cut_anywhere_is_whole_again_and_nothing_else_is_lost) {
  std::mt19937 random(random_seed());
  for (int left = repetitions(300); left > 0; --left) {
    const auto whole = random_talk(random);
    auto untouched = whole;
    EXPECT_FALSE(repair_history(untouched));
    for (std::size_t count = 0; count <= whole.size(); ++count) {
      const Talk cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(count));
      expect_repaired(cut);
      // An answered call keeps its answer.
      auto talk = cut;
      (void)repair_history(talk);
      const auto kept = lines_of(talk, true);
      for (const auto& answer : lines_of(cut, true))
        EXPECT_NE(std::ranges::find(kept, answer), kept.end()) << answer;
    }
  }
}

TEST(RepairHistory, a_conversation_that_lost_and_mixed_up_anything_is_one_that_is_taken) {
  std::mt19937 random(random_seed());
  for (int left = repetitions(3'000); left > 0; --left) {
    auto talk = random_talk(random);
    for (auto times = 1 + random() % 6; times > 0 && !talk.empty(); --times) {
      const auto at = [&] {
        return talk.begin() + static_cast<std::ptrdiff_t>(random() % talk.size());
      };
      switch (random() % 4) {
        case 0:
          talk.erase(at());
          break;
        case 1: {
          auto twice = *at();
          talk.insert(at(), std::move(twice));
          break;
        }
        case 2:
          std::iter_swap(at(), at());
          break;
        default:
          talk.insert(at(), random() % 2 == 0 ? said("user", "wait") : answers("call_0", "stray"));
      }
    }
    expect_repaired(talk);
  }
}

TEST(RepairHistory, finished_calls_are_distinguished_from_interrupted_ones_among_27_calls) {
  std::vector<std::string> ids;
  for (int at = 0; at < 27; ++at) ids.push_back("c" + std::to_string(at));
  for (std::size_t done = 0; done <= ids.size(); ++done) {
    Talk talk{said("user", "do it"), asks(ids)};
    for (std::size_t at = 0; at < done; ++at) talk.push_back(answers(ids[at], "ok"));
    expect_repaired(talk);
    EXPECT_EQ(repair_history(talk), done < ids.size());
    const auto kept = std::ranges::count(talk, "ok", &ChatMessage::content);
    EXPECT_EQ(kept, static_cast<std::ptrdiff_t>(done));
    const auto interrupted = std::ranges::count_if(talk, [](const ChatMessage& message) {
      return message.content.starts_with("[CANCELLED] Tool \"tool c");
    });
    EXPECT_EQ(interrupted, static_cast<std::ptrdiff_t>(ids.size() - done));
  }
}

TEST(RepairHistory, a_user_message_between_the_answers_is_moved_after_them) {
  Talk talk{asks({"a", "b"}), answers("b", "second"), said("user", "hurry"), answers("a", "first")};
  EXPECT_TRUE(repair_history(talk));
  EXPECT_EQ(lines(talk), lines({asks({"a", "b"}), answers("a", "first"), answers("b", "second"),
                                said("user", "hurry")}));
}

}  // namespace
}  // namespace watchdog::test
