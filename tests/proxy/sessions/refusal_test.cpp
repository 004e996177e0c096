#include <gtest/gtest.h>

#include "proxy/sessions/relaying.h"

namespace watchdog::test {
namespace {

using namespace std::chrono_literals;

/// A client whose requests are refused, and the wait that its session reports.
class Refusal : public Relaying {
 protected:
  void refuse(std::uint64_t exchange, int status, const std::string& message,
              std::optional<Millis> retry_after = {}) {
    see(exchange, ExchangeReached{});
    see(exchange,
        AnswerBegan{
            .status = status, .content_type = "application/json", .retry_after = retry_after});
    see(exchange, AnswerPiece{json{{"error", {{"message", message}}}}.dump()});
    end(exchange);
  }
  void wait_for(std::chrono::seconds time) {
    for (const auto until = now + time; now < until; now += 1s) hear(recorder.beat(now));
  }
  /// The last report of that kind; nothing: there is none.
  [[nodiscard]] std::optional<Report> last_of(ReportKind kind) const {
    std::optional<Report> found;
    for (const auto& batch : reported)
      for (const auto& report : batch.reports)
        if (report.kind == kind) found = report;
    return found;
  }
};

TEST_F(Refusal, each_refusal_is_a_wait_for_what_ends_it) {
  struct Row {
    int status;
    const char* message;
    const char* waits_for;  // empty: the turn ended without an answer
  };
  const Row rows[] = {
      {401, "Invalid API key", "login"},
      {403, "not allowed", "login"},
      {402, "pay first", "quota"},
      {429, "slow down", "quota"},
      {500, "oops", "backend"},
      {503, "loading", "backend"},
      {529, "Overloaded", "overload"},
      {503, "The model is overloaded. Please try again later.", "overload"},
      {400, "API key not valid. Please pass a valid API key.", "login"},
      {400, "Your credit balance is too low to access the API.", "quota"},
      {400, "messages: must not be empty", ""},
      {404, "no such model", ""},
  };
  for (const auto& row : rows) {
    session = "s" + std::to_string(exchanges);
    refuse(begin({user("U")}), row.status, row.message);
    const auto wait = last_of(ReportKind::wait);
    const auto idle = last_of(ReportKind::idle);
    const auto cause = "HTTP " + std::to_string(row.status) + ": " + row.message;
    if (*row.waits_for != '\0') {
      ASSERT_TRUE(wait) << cause;
      EXPECT_EQ(wait->name, row.waits_for) << cause;
      EXPECT_EQ(wait->content, cause);
      EXPECT_FALSE(wait->until) << cause;
      EXPECT_FALSE(idle) << cause;
    } else {
      EXPECT_FALSE(wait) << cause;
      ASSERT_TRUE(idle) << cause;
      EXPECT_EQ(idle->name, idle_reports::failed);
      EXPECT_EQ(idle->content, cause);
    }
    reported.clear();
  }
}

TEST_F(Refusal, the_pause_that_the_server_asks_for_is_shown) {
  server = "http://gpu:8080";
  refuse(begin({user("U")}), 429, "slow down", 20s);
  const auto wait = last_of(ReportKind::wait);
  ASSERT_TRUE(wait);
  EXPECT_EQ(wait->until, now + 20s);
  EXPECT_EQ(wait->content,
            "the model server at http://gpu:8080: HTTP 429: slow down; the server asks for a pause "
            "of 20 s");
}

TEST_F(Refusal, a_quota_has_an_end_and_a_provider) {
  server = "https://chatgpt.com/backend-api/codex";
  const auto id = begin({user("U")});
  see(id, ExchangeReached{});
  see(id, AnswerBegan{.status = 429, .content_type = "application/json"});
  // In two pieces, as servers send it.
  see(id, AnswerPiece{R"({"error":{"type":"usage_limit_reached","message":"The usage limit)"});
  see(id, AnswerPiece{R"( has been reached","resets_in_seconds":7200}})"});
  end(id);
  const auto wait = last_of(ReportKind::wait);
  ASSERT_TRUE(wait);
  EXPECT_EQ(wait->name, "quota");
  EXPECT_EQ(wait->until, now + 2h);
  EXPECT_EQ(wait->provider, "openai");
  reported.clear();
  wait_for(2h);
  EXPECT_EQ(news(), "") << "it did not give up: it could not ask before";
  wait_for(61s);
  EXPECT_EQ(last_of(ReportKind::wait).value_or(Report{}).name, "input");
}

TEST_F(Refusal, a_client_that_asks_no_more_has_given_up) {
  for (int again = 0; again < 3; ++again) {
    refuse(begin({user("U")}), 429, "slow down");
    wait_for(5s);
  }
  reported.clear();
  wait_for(54s);
  EXPECT_FALSE(last_of(ReportKind::wait)) << "it may try again";
  wait_for(3s);
  const auto wait = last_of(ReportKind::wait);
  ASSERT_TRUE(wait);
  EXPECT_EQ(wait->name, "input") << "a person has to make it go on";
  EXPECT_EQ(wait->content, "HTTP 429: slow down; no request for 60 s");
  reported.clear();
  wait_for(600s);
  EXPECT_EQ(news(), "") << "that is said once";
}

TEST_F(Refusal, an_agent_that_ends_after_it_failed) {
  struct Row {
    int status;  // 0: nobody listens
    const char* reason;
  };
  for (const auto& row : {Row{429, "rate_limited"}, Row{401, "authentication"},
                          Row{503, "model_server_error"}, Row{0, "connection_refused"}}) {
    session = "s" + std::to_string(row.status);
    is_gone = false;
    process = ProcessFacts{.pid = 1, .start_ticks = 1};
    for (int tries = 0; tries < 2; ++tries) {
      const auto exchange = begin({user("U")});
      if (row.status > 0) {
        refuse(exchange, row.status, "no");
      } else {
        end(exchange, How::refused, "no");
      }
    }
    reported.clear();
    wait_for(3s);
    EXPECT_FALSE(last_of(ReportKind::end)) << "it lives";
    is_gone = true;
    wait_for(1s);
    const auto over = last_of(ReportKind::end);
    ASSERT_TRUE(over) << row.reason;
    const auto& outcome = std::get<Outcome>(over->detail);
    EXPECT_EQ(outcome.kind, OutcomeKind::failed);
    EXPECT_EQ(outcome.reason, row.reason);
    EXPECT_NE(outcome.error.find("no"), std::string::npos);
    reported.clear();
    wait_for(600s);
    EXPECT_EQ(news(), "") << "that is said once";
    const auto again = begin({user("Again")});
    EXPECT_NE(news().find("start"), std::string::npos) << "somebody tries again";
    answer_text(again, "Hi");
  }
}

TEST_F(Refusal, a_program_started_for_each_request_is_not_an_agent_that_ended) {
  process = ProcessFacts{.pid = 1, .start_ticks = 1};
  refuse(begin({user("U")}), 429, "slow down");
  is_gone = true;
  reported.clear();
  wait_for(50s);
  EXPECT_EQ(news(), "");
  session = "codex";
  extra = {{"User-Agent", "codex_exec/0.169.0"}};
  refuse(begin({user("U")}), 429, "slow down");
  wait_for(1s);
  EXPECT_TRUE(last_of(ReportKind::end)) << "this one is";
}

TEST_F(Refusal, a_client_that_retries_rarely_or_was_asked_to_pause_is_given_more_time) {
  end(begin({user("U")}), How::refused, "refused");
  wait_for(50s);
  end(begin({user("U")}), How::refused, "refused");
  reported.clear();
  wait_for(149s);
  EXPECT_FALSE(last_of(ReportKind::wait)) << "three times as long as between the latest tries";
  wait_for(3s);
  EXPECT_TRUE(last_of(ReportKind::wait));

  session = "other";
  refuse(begin({user("U")}), 429, "slow down", 100s);
  reported.clear();
  wait_for(159s);
  EXPECT_FALSE(last_of(ReportKind::wait)) << "the pause, and a minute";
  wait_for(3s);
  EXPECT_TRUE(last_of(ReportKind::wait));
}

TEST_F(Refusal, a_lost_login_waits_until_there_is_one) {
  refuse(begin({user("U")}), 401, "Invalid API key");
  reported.clear();
  wait_for(3'600s);
  EXPECT_EQ(news(), "");
  const auto again = begin({user("U")});
  see(again, ExchangeReached{});
  reported.clear();
  wait_for(10s);
  EXPECT_EQ(news().find("takes requests again"), std::string::npos)
      << "a server may take its time to refuse";
  head(again);
  EXPECT_NE(news().find("takes requests again"), std::string::npos);
  delta(again, {{"content", "Hi"}}, "stop");
  end(again);
  EXPECT_NE(news().find("idle relay"), std::string::npos);
  wait_for(3'600s);
  EXPECT_EQ(news(), "");
}

TEST_F(Refusal, a_client_with_an_open_request_has_not_given_up) {
  end(begin({user("U")}), How::refused, "refused");
  const auto open = begin({user("U")});
  reported.clear();
  wait_for(600s);
  EXPECT_FALSE(last_of(ReportKind::wait));
  end(open, How::refused, "refused");
  EXPECT_TRUE(last_of(ReportKind::wait));
}

}  // namespace
}  // namespace watchdog::test
