#include <gtest/gtest.h>

#include <deque>

#include "support/temp_dir.h"
#include "watchdog/reasons.h"
#include "watchdog/run.h"

namespace watchdog::test {
namespace {

/// A model that gives these answers one after the other.
class Answers {
 public:
  explicit Answers(std::deque<Result<ChatAnswer, Failure>> answers)
      : answers_(std::move(answers)) {}
  Model model() {
    return [this](const ChatRequest& request, const ChatSink&, const std::stop_token&) {
      asked.push_back(request);
      auto answer = answers_.front();
      answers_.pop_front();
      return answer;
    };
  }
  std::vector<ChatRequest> asked;

 private:
  std::deque<Result<ChatAnswer, Failure>> answers_;
};

Failure failure(std::string_view reason) {
  return {.reason = std::string(reason), .message = "because"};
}

class Planning : public ::testing::Test {
 protected:
  TempDir directory;
  ProgressTracker tracker{{.session = "planner", .database = directory.path() / "w.db"}};
};

TEST_F(Planning, is_a_state_change) {
  Answers answers(
      {ChatAnswer{.text = "Here it is:\n```json\n{\"steps\": [\"look\", \"leap\"]}\n```"}});
  const auto made = plan(answers.model(), tracker, "cross the street", "it rains");
  ASSERT_TRUE(made);
  EXPECT_EQ(made->steps, (std::vector<std::string>{"look", "leap"}));
  EXPECT_FALSE(made->simplified);
  EXPECT_NE(answers.asked.at(0).messages.at(1).content.find("it rains"), std::string::npos);
  const auto judged = tracker.judged();
  EXPECT_EQ(judged.history.last_change_type, "plan_generated");
  EXPECT_EQ(judged.history.phase, "planning");
}

TEST_F(Planning, asks_for_a_simpler_plan_where_that_may_help) {
  const std::vector<Result<ChatAnswer, Failure>> hopeful = {
      ChatAnswer{.text = "I would start by looking around."},
      ChatAnswer{.text = R"({"steps": []})"},
      ChatAnswer{.text = R"({"steps": ["a", 2]})"},
      ChatAnswer{.text = R"({"plan": ["a"]})"},
      ChatAnswer{.text = ""},
      failure(reasons::connection_lost),
      failure(reasons::context_exceeded),
      failure(reasons::model_server_error),
      failure(reasons::malformed_answer)};
  for (const auto& first : hopeful) {
    Answers answers({first, ChatAnswer{.text = R"({"steps": ["leap"]})"}});
    const auto made = plan(answers.model(), tracker, "cross the street", "a long context");
    ASSERT_TRUE(made) << (first ? first->text : first.error().reason);
    EXPECT_TRUE(made->simplified);
    EXPECT_EQ(answers.asked.at(1).messages.at(1).content, "cross the street");
  }
}

TEST_F(Planning, gives_up_with_the_class_of_the_failure) {
  for (const auto reason :
       {reasons::authentication, reasons::connection_refused, reasons::tls_failed,
        reasons::model_client_error, reasons::rate_limited}) {
    Answers answers({failure(reason)});
    const auto made = plan(answers.model(), tracker, "cross the street");
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().reason, reason);
  }
  Answers answers({ChatAnswer{.text = "no"}, ChatAnswer{.text = "never"}});
  EXPECT_EQ(plan(answers.model(), tracker, "cross the street").error().reason,
            reasons::malformed_answer);
  EXPECT_EQ(tracker.judged().history.state_changes, 0);
}

}  // namespace
}  // namespace watchdog::test
