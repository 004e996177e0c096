#include "proxy/sessions/spending.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "proxy/sessions/relaying.h"
#include "support/temp_dir.h"

namespace watchdog::test {
namespace {

using monitor::CalendarDay;
using monitor::local_day;
using monitor::Spender;
using monitor::Spending;
using monitor::SpendingNotice;
using monitor::SpentTokens;

constexpr Millis day{24 * 3'600'000};

/// Days of a test begin at multiples of 24 h.
CalendarDay even_day(WallTime at) {
  const auto number = at.time_since_epoch() / day;
  return {.name = "day-" + std::to_string(number), .end = WallTime{(number + 1) * day}};
}

struct Counting : testing::Test {
  std::map<std::string, ProxyBudget> budgets;
  std::map<std::string, ModelPrice> prices;
  std::filesystem::path file;
  WallTime now{day * 20'000 + Millis{3'600'000}};
  std::unique_ptr<Spending> spending;

  void begin() {
    spending = std::make_unique<Spending>(
        Spending::Options{.budgets = budgets, .prices = prices, .file = file, .day_of = even_day});
  }
  /// The percents of the notices, such as `daily 70`; `-` for a session's own figures alone.
  std::string charge(const Spender& spender, const SpentTokens& tokens) {
    if (!spending) begin();
    std::string all;
    for (const auto& notice : spending->charge(spender, tokens, now))
      all += (all.empty() ? "" : "; ") + notice.budget + " " +
             (notice.percent ? std::to_string(*notice.percent) : "-");
    return all;
  }
  std::string refusal(const Spender& spender) {
    const auto refused = spending->refusal(spender, now);
    return refused ? refused->text : std::string();
  }
};

const Spender ann{.session = "ann",
                  .agent = "codex",
                  .client = "codex/1",
                  .model = "gpt-5",
                  .server = "http://a"};
const Spender bob{.session = "bob",
                  .agent = "codex",
                  .client = "codex/2",
                  .model = "gpt-5-mini",
                  .server = "http://b"};

TEST_F(Counting, a_notice_comes_once_at_70_at_90_and_at_100_percent) {
  budgets["daily"] = {.per = BudgetScope::day, .tokens = 1'000};
  EXPECT_EQ(charge(ann, {.prompt = 690, .output = 9}), "");
  EXPECT_EQ(charge(ann, {.prompt = 1}), "daily 70");
  EXPECT_EQ(charge(ann, {.prompt = 100}), "");
  EXPECT_EQ(charge(bob, {.output = 100}), "daily 90");
  EXPECT_EQ(charge(ann, {.prompt = 100}), "daily 100");
  EXPECT_EQ(charge(ann, {.prompt = 5'000}), "");
}

TEST_F(Counting, one_large_request_has_one_notice) {
  budgets["daily"] = {.per = BudgetScope::day, .tokens = 1'000};
  const auto notices = (begin(), spending->charge(ann, {.prompt = 2'500}, now));
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_EQ(notices[0].percent, 100);
  EXPECT_EQ(notices[0].text, "the budget daily is used to 250 %: 2,500 of 1,000 tokens today");
}

TEST_F(Counting, each_scope_counts_together_what_its_name_says) {
  for (const auto scope : {BudgetScope::session, BudgetScope::agent, BudgetScope::client,
                           BudgetScope::model, BudgetScope::server, BudgetScope::day}) {
    const bool shared = scope == BudgetScope::agent || scope == BudgetScope::day;
    budgets = {{"one", {.per = scope, .tokens = 100, .refuse = true}}};
    begin();
    (void)charge(ann, {.prompt = 60});
    (void)charge(bob, {.prompt = 60});
    EXPECT_EQ(!refusal(ann).empty(), shared) << name_of(scope);
    (void)charge(ann, {.prompt = 60});
    EXPECT_NE(refusal(ann), "") << name_of(scope);
    EXPECT_EQ(!refusal(bob).empty(), shared) << name_of(scope);
  }
}

TEST_F(Counting, nothing_is_counted_of_a_name_that_is_not_known) {
  budgets["by-model"] = {.per = BudgetScope::model, .tokens = 10, .refuse = true};
  const Spender nobody{.session = "x"};
  EXPECT_EQ(charge(nobody, {.prompt = 1'000}), "");
  EXPECT_EQ(charge(ann, {.prompt = 1'000}), "by-model 100");
  EXPECT_EQ(refusal(nobody), "");
}

TEST_F(Counting, a_refusal_names_the_budget_the_figures_and_the_setting) {
  budgets["small"] = {.per = BudgetScope::session, .tokens = 1'000, .refuse = true};
  EXPECT_EQ(charge(ann, {.prompt = 1'200}), "small 100");
  EXPECT_EQ(refusal(ann),
            "the budget small is used up: 1,200 of 1,000 tokens of this session. The monitor "
            "refuses further requests, because its owner set proxy.budgets.small.refuse");
  EXPECT_EQ(spending->refusal(ann, now)->until, std::nullopt);
}

TEST_F(Counting, without_refuse_nothing_is_refused) {
  budgets["daily"] = {.per = BudgetScope::day, .tokens = 1'000};
  EXPECT_EQ(charge(ann, {.prompt = 9'000}), "daily 100");
  EXPECT_FALSE(spending->may_refuse());
  EXPECT_EQ(refusal(ann), "");
}

TEST_F(Counting, a_day_ends_at_midnight) {
  budgets["daily"] = {.per = BudgetScope::day, .tokens = 1'000, .refuse = true};
  EXPECT_EQ(charge(ann, {.prompt = 1'000}), "daily 100");
  EXPECT_EQ(spending->refusal(ann, now)->until, even_day(now).end);
  now = even_day(now).end - Millis{1};
  EXPECT_NE(refusal(ann), "");
  now += Millis{1};
  EXPECT_EQ(refusal(ann), "");
  EXPECT_EQ(charge(ann, {.prompt = 700}), "daily 70");
}

TEST_F(Counting, cost_follows_the_price_of_the_model_and_cached_tokens_have_their_own) {
  prices["large"] = {.models = {"gpt-5"},
                     .input_per_million = 10,
                     .cached_per_million = 1,
                     .output_per_million = 100};
  prices["small"] = {.models = {"gpt-5-*"},
                     .input_per_million = 2,
                     .cached_per_million = {},
                     .output_per_million = 20};
  budgets["money"] = {.per = BudgetScope::session, .cost = 100};
  const auto cost = [&](const Spender& spender, const SpentTokens& tokens) {
    begin();
    double found = 0;
    for (int n = 0; n < 1'000; ++n)
      for (const auto& notice : spending->charge(spender, tokens, now))
        found = notice.figures.cost / (n + 1);
    return found;
  };
  EXPECT_NEAR(cost(ann, {.prompt = 100'000, .cached = 90'000, .output = 1'000}), .1 + .09 + .1,
              1e-9);
  EXPECT_NEAR(cost(bob, {.prompt = 100'000, .cached = 90'000, .output = 1'000}), .2 + .02, 1e-9);
  EXPECT_NEAR(cost(ann, {.prompt = 10'000, .cached = 90'000, .output = 0}), .01, 1e-9)
      << "more cached than there are";
  EXPECT_EQ(cost({.session = "x", .model = "llama"}, {.prompt = 1'000'000}), 0);
}

TEST_F(Counting, the_axis_that_is_used_most_decides) {
  prices["all"] = {.models = {"*"}, .input_per_million = 1'000'000};
  budgets["both"] = {.per = BudgetScope::session, .tokens = 1'000, .cost = 10};
  begin();
  const auto notices = spending->charge(ann, {.prompt = 8}, now);
  ASSERT_EQ(notices.size(), 1U);
  EXPECT_EQ(notices[0].text,
            "the budget both is used to 80 %: 8.00 of 10.00 in cost of this session");
  EXPECT_EQ(notices[0].figures.axis, BudgetAxis::cost);
}

TEST_F(Counting, a_sessions_figures_are_passed_on_at_each_further_twentieth) {
  budgets["small"] = {.per = BudgetScope::session, .tokens = 1'000};
  EXPECT_EQ(charge(ann, {.prompt = 40}), "");
  EXPECT_EQ(charge(ann, {.prompt = 20}), "small -");
  EXPECT_EQ(charge(ann, {.prompt = 20}), "");
  EXPECT_EQ(charge(ann, {.prompt = 30}), "small -");
}

TEST_F(Counting, counts_outlive_the_process) {
  const TempDir folder;
  file = folder.path() / "spending";
  budgets["daily"] = {.per = BudgetScope::day, .tokens = 1'000, .refuse = true};
  budgets["small"] = {.per = BudgetScope::session, .tokens = 1'000'000, .refuse = true};
  (void)charge(ann, {.prompt = 950});
  ASSERT_TRUE(spending->save().ok());
  std::ifstream stored(file);
  const std::string text{std::istreambuf_iterator<char>(stored), {}};
  EXPECT_EQ(text.find("ann"), std::string::npos) << "names are digests";
  EXPECT_EQ(std::filesystem::status(file).permissions(), std::filesystem::perms(0600));
  begin();
  ASSERT_TRUE(spending->load().ok());
  EXPECT_EQ(charge(ann, {.prompt = 49}), "") << "the notice of 90 % came before";
  EXPECT_EQ(charge(ann, {.prompt = 1}), "daily 100");
  ASSERT_TRUE(spending->save().ok());
  begin();
  ASSERT_TRUE(spending->load().ok());
  EXPECT_NE(refusal(ann), "");
  budgets["daily"].tokens = 2'000;
  begin();
  ASSERT_TRUE(spending->load().ok());
  EXPECT_EQ(refusal(ann), "") << "its owner raised the limit";
  EXPECT_EQ(charge(ann, {.prompt = 400}), "daily 70");
  budgets["daily"].per = BudgetScope::model;
  begin();
  ASSERT_TRUE(spending->load().ok());
  EXPECT_EQ(charge(ann, {.prompt = 10}), "") << "another scope begins again";
}

TEST_F(Counting, a_file_of_another_kind_is_corrupt_and_counts_begin_again) {
  const TempDir folder;
  file = folder.path() / "spending";
  budgets["daily"] = {.per = BudgetScope::day, .tokens = 1'000, .refuse = true};
  begin();
  EXPECT_TRUE(spending->load().ok()) << "the file does not exist yet";
  for (const char* text :
       {"", "{", "[]", "{}", R"({"budgets":3})", R"({"budgets":[3]})", R"({"budgets":[{}]})",
        R"({"budgets":[{"name":"daily","per":"week","spent":[]}]})",
        R"({"budgets":[{"name":"daily","per":"day","spent":[3]}]})",
        R"({"budgets":[{"name":"daily","per":"day","spent":[{"of":"x","tokens":"many"}]}]})"}) {
    std::filesystem::remove(file);
    std::ofstream(file) << text;
    std::filesystem::permissions(file, std::filesystem::perms(0600));
    begin();
    const auto loaded = spending->load();
    ASSERT_FALSE(loaded.ok()) << text;
    EXPECT_EQ(loaded.error().code, ErrorCode::corrupt) << text;
    EXPECT_EQ(charge(ann, {.prompt = 10}), "");
  }
  std::ofstream(file)
      << R"({"budgets":[{"name":"daily","per":"day","spent":[{"of":"day-20000","tokens":-5,"cost":1e300,"noticed":999,"at":-1}]}]})";
  begin();
  ASSERT_TRUE(spending->load().ok());
  EXPECT_EQ(charge(ann, {.prompt = 700}), "daily 70");
}

TEST_F(Counting, a_save_that_fails_is_tried_again) {
  const TempDir folder;
  file = folder.path() / "missing" / "spending";
  budgets["daily"] = {.per = BudgetScope::day, .tokens = 1'000};
  (void)charge(ann, {.prompt = 1});
  EXPECT_FALSE(spending->save().ok());
  std::filesystem::create_directory(folder.path() / "missing");
  EXPECT_TRUE(spending->save().ok());
  EXPECT_TRUE(std::filesystem::exists(file));
}

TEST_F(Counting, the_quietest_spender_is_forgotten_beyond_the_bound) {
  budgets["small"] = {.per = BudgetScope::session, .tokens = 10, .refuse = true};
  (void)charge(ann, {.prompt = 10});
  for (std::size_t n = 0; n < Spending::spenders_max; ++n) {
    ASSERT_NE(refusal(ann), "") << n;
    now += Millis{1};
    (void)charge({.session = "s" + std::to_string(n)}, {.prompt = 1});
  }
  EXPECT_EQ(refusal(ann), "");
}

TEST_F(Counting, threads_may_ask_while_another_charges) {
  budgets["daily"] = {.per = BudgetScope::day, .tokens = 10'000, .refuse = true};
  begin();
  std::vector<std::thread> asking;
  for (int n = 0; n < 3; ++n)
    asking.emplace_back([&] {
      while (!spending->refusal(ann, now)) std::this_thread::yield();
    });
  for (int n = 0; n < 10'000; ++n) (void)spending->charge(ann, {.prompt = 1}, now);
  for (auto& thread : asking) thread.join();
}

TEST(LocalDay, it_ends_at_the_next_midnight_of_the_time_zone) {
  const auto now = WallTime{Millis{1'700'000'000'000}};
  const auto today = local_day(now);
  EXPECT_EQ(today.name.size(), 10U);
  EXPECT_GT(today.end, now);
  EXPECT_LE(today.end - now, Millis{25 * 3'600'000});
  EXPECT_EQ(local_day(today.end - Millis{1}).name, today.name);
  EXPECT_NE(local_day(today.end).name, today.name);
}

// Reports of the recorder.

struct Spent : Relaying {
  std::shared_ptr<Spending> spending = std::make_shared<Spending>(Spending::Options{
      .budgets = {{"small", {.per = BudgetScope::session, .tokens = 1'000, .refuse = true}}}});
  std::vector<std::string> said;
  SessionRecorder counting{
      {.spending = spending,
       .on_spending = [this](const auto&, const auto& text) { said.push_back(text); }}};

  std::string ask(const std::string& usage) {
    const auto number = ++exchanges;
    ExchangeBegan began{
        .method = "POST", .target = "/v1/chat/completions", .session = "s", .peer = "::1"};
    began.body = std::make_shared<std::string>(
        json{{"model", "m"}, {"stream", true}, {"messages", {user("U" + std::to_string(number))}}}
            .dump());
    const auto pass = [&](decltype(Observation::what) what) {
      hear(counting.record({.exchange = number, .at = now, .what = std::move(what)}));
    };
    pass(began);
    (void)news();
    pass(AnswerBegan{.status = 200, .content_type = "text/event-stream"});
    pass(AnswerPiece{
        R"(data: {"choices":[{"index":0,"delta":{"content":"A"},"finish_reason":"stop"}]})"
        "\n\n"});
    if (!usage.empty()) pass(AnswerPiece{"data: {\"choices\":[],\"usage\":" + usage + "}\n\n"});
    pass(ExchangeEnded{});
    return news();
  }
};

TEST_F(Spent, an_answer_is_charged_and_its_session_gets_figures_and_notices) {
  EXPECT_EQ(ask(R"({"prompt_tokens":20,"completion_tokens":1})").find("budget"), std::string::npos);
  const auto at_half = ask(R"({"prompt_tokens":480,"completion_tokens":9})");
  EXPECT_NE(at_half.find("budget small"), std::string::npos) << at_half;
  EXPECT_EQ(at_half.find("message notification"), std::string::npos) << at_half;
  const auto late = ask(R"({"prompt_tokens":400,"completion_tokens":9})");
  EXPECT_NE(late.find("budget small; message notification 'the budget small is used to 91 %"),
            std::string::npos)
      << late;
  EXPECT_EQ(said, (std::vector<std::string>{
                      "the budget small is used to 91 %: 919 of 1,000 tokens of this session"}));
}

TEST_F(Spent, tokens_that_the_server_does_not_report_are_estimated) {
  (void)ask("");
  const auto refused = spending->charge({.session = "s"}, {.prompt = 1'000}, now);
  ASSERT_EQ(refused.size(), 1U);
  // A token for each four bytes of the request, and one piece of the answer.
  EXPECT_GT(refused[0].figures.tokens, 1'000 + 15);
  EXPECT_LT(refused[0].figures.tokens, 1'000 + 40);
}

TEST_F(Spent, a_request_over_the_budget_waits_for_quota_and_names_no_server) {
  (void)ask(R"({"prompt_tokens":2000,"completion_tokens":1})");
  const auto refusal = spending->refusal({.session = "s"}, now);
  ASSERT_TRUE(refusal);
  server = "http://model.example:8080";
  ExchangeBegan began{.method = "POST",
                      .target = "/v1/chat/completions",
                      .session = "s",
                      .peer = "::1",
                      .server = server};
  began.body =
      std::make_shared<std::string>(json{{"model", "m"}, {"messages", {user("more")}}}.dump());
  hear(counting.record({.exchange = 99, .at = now, .what = began}));
  (void)news();
  hear(counting.record({.exchange = 99,
                        .at = now,
                        .what = ExchangeEnded{.how = How::over_budget, .message = refusal->text}}));
  ASSERT_FALSE(reported.empty());
  const Report* waits = nullptr;
  for (const auto& batch : reported)
    for (const auto& report : batch.reports)
      if (report.kind == ReportKind::wait) waits = &report;
  ASSERT_NE(waits, nullptr);
  EXPECT_EQ(waits->name, "quota");
  EXPECT_EQ(waits->content, refusal->text);
}

}  // namespace
}  // namespace watchdog::test
