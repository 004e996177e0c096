// Seen through to the judge: an agent without code, and what is concluded of it.

#include <gtest/gtest.h>

#include <random>

#include "observer/observer.h"
#include "proxy/sessions/relaying.h"
#include "store/transition_reader.h"
#include "support/manual_clock.h"
#include "support/scenario.h"

namespace watchdog::test {
namespace {

using namespace std::chrono_literals;

class Judged : public Relaying {
 protected:
  ManualClock clock;
  Store store = std::move(*Store::open({.database = ":memory:", .clock = &clock}));
  std::unique_ptr<Observer> observer = std::move(*Observer::start(store, {}));
  std::vector<json> history;

  void judge() {
    auto batches = std::exchange(reported, {});
    const auto receipts = store.append(batches);
    ASSERT_TRUE(receipts.ok());
    for (const auto& receipt : *receipts)
      ASSERT_TRUE(receipt.ok()) << (receipt.ok() ? "" : receipt.error().message);
    ASSERT_TRUE(observer->look().ok());
  }
  void pass(Millis time) {
    for (; time > 0ms; time -= 1s) {
      now += 1s;
      clock.advance(1s);
      hear(recorder.beat(now));
      judge();
    }
  }
  /// Asks with all that was said, and is answered after a while with one call that gets a result.
  void round(const std::string& arguments, const std::string& text) {
    const auto exchange = begin(history);
    judge();
    pass(3s);
    const auto id = "call_" + std::to_string(exchange);
    answer_calls(exchange, {asked_call(id, arguments)});
    judge();
    pass(1s);
    history.push_back(calls({asked_call(id, arguments)}));
    history.push_back(result(id, text));
  }
  HealthKind health() { return observer->find("s")->judged.health.kind; }
  std::string reason() {
    const auto judged = observer->find("s")->judged;
    return reason_of(judged.health, judged.history, *judged.policy, store.now());
  }
  Lifecycle lifecycle() { return observer->find("s")->judged.history.lifecycle; }
  /// All healths that it ever had.
  std::string path() {
    std::string all;
    const auto row = store.reader().session("s");
    const auto changes = TransitionReader(store.reader()).of(row->key, 0, 1'000);
    for (const auto& change : *changes) {
      if (!all.empty()) all += ' ';
      all += name_of(change.transition.health.kind);
    }
    return all;
  }
};

TEST_F(Judged, an_agent_that_does_the_same_again_and_again_is_looping) {
  history = {user("Fix the build")};
  for (int n = 0; n < 8; ++n)
    round(R"({"command":"make"})",
          "make: *** No rule to make target 'all'. Stop. " + std::string(200, '.'));
  EXPECT_EQ(health(), HealthKind::looping) << path();
}

TEST_F(Judged, an_agent_that_works_progresses) {
  history = {user("Fix the build")};
  for (int n = 0; n < 30; ++n)
    round("{\"path\":\"src/file" + std::to_string(n * 7919) + ".cpp\"}",
          "contents of another file, number " + std::to_string(n) + ": " +
              std::string(200, static_cast<char>('a' + n % 26)));
  EXPECT_EQ(health(), HealthKind::progressing) << path();
  EXPECT_EQ(path(), "progressing");
}

TEST_F(Judged, a_chat_is_idle_between_its_questions) {
  for (int n = 0; n < 5; ++n) {
    history.push_back(user("Question " + std::to_string(n)));
    const auto exchange = begin(history);
    judge();
    EXPECT_EQ(lifecycle(), Lifecycle::running);
    pass(5s);
    answer_text(exchange, "Answer " + std::to_string(n));
    history.push_back(agent("Answer " + std::to_string(n)));
    judge();
    EXPECT_EQ(lifecycle(), Lifecycle::idle);
    EXPECT_EQ(health(), HealthKind::idle);
    pass(900s);
  }
  EXPECT_EQ(path(),
            "progressing idle progressing idle progressing idle progressing idle progressing idle");
}

TEST_F(Judged, an_agent_whose_tools_are_plain_text_with_ever_new_inputs_is_never_stuck) {
  history = {user("You have tools: <read path=…/>")};
  for (int n = 0; n < 40; ++n) {
    const auto exchange = begin(history);
    judge();
    pass(4s);
    answer_text(exchange, "<read path='file" + std::to_string(n) + "'/>");
    judge();
    history.push_back(agent("<read path='file" + std::to_string(n) + "'/>"));
    history.push_back(user("<result>line of file " + std::to_string(n) + " " +
                           std::string(100, static_cast<char>('a' + n % 26)) + "</result>"));
  }
  for (const char* trouble : {"slow", "silent", "suspect", "stuck", "looping", "dead"})
    EXPECT_EQ(path().find(trouble), std::string::npos) << path();
}

TEST_F(Judged, a_tool_that_runs_for_an_hour_between_requests_is_not_a_problem) {
  history = {user("Train it")};
  round(R"({"command":"prepare"})", "prepared");
  const auto exchange = begin(history);
  judge();
  pass(3s);
  answer_calls(exchange, {asked_call("train", R"({"command":"train"})")});
  judge();
  pass(3'600s);
  history.push_back(calls({asked_call("train", R"({"command":"train"})")}));
  history.push_back(result("train", "accuracy 0.93"));
  answer_text(begin(history), "It is trained.");
  judge();
  for (const char* trouble : {"silent", "suspect", "stuck", "looping", "dead"})
    EXPECT_EQ(path().find(trouble), std::string::npos) << path();
}

TEST_F(Judged, a_server_that_is_away_is_waited_for_and_retries_are_no_loop) {
  history = {user("Hi")};
  for (int n = 0; n < 20; ++n) {
    end(begin(history), How::refused, "connection refused");
    judge();
    EXPECT_EQ(lifecycle(), Lifecycle::waiting);
    EXPECT_EQ(health(), HealthKind::blocked);
    pass(8s);
  }
  const auto exchange = begin(history);
  head(exchange);
  delta(exchange, {{"content", "Hello"}});
  pass(10s);
  EXPECT_EQ(health(), HealthKind::progressing) << path();
  EXPECT_EQ(path(), "progressing blocked progressing");
}

/// A server that is back is not waited for, whatever it does with the request; one that refuses
/// requests, because it still loads, is.
TEST_F(Judged, a_session_leaves_blocked_as_soon_as_its_server_takes_a_request) {
  server = "http://127.0.0.1:8080";
  history = {user("Hi")};
  const auto refused = begin(history);
  EXPECT_EQ(reported.front().spec.labels.at("server"), server);
  end(refused, How::refused,
      "the model server at http://127.0.0.1:8080 cannot be reached: Connection refused");
  judge();
  EXPECT_EQ(health(), HealthKind::blocked);
  EXPECT_NE(reason().find("http://127.0.0.1:8080 cannot be reached: Connection refused"),
            std::string::npos)
      << reason();
  for (int n = 0; n < 20; ++n) {
    pass(10s);
    const auto loading = begin(history);
    see(loading, ExchangeReached{});
    see(loading, AnswerBegan{.status = 503, .content_type = "application/json"});
    see(loading, AnswerPiece{R"({"error":{"message":"Loading model"}})"});
    end(loading);
    judge();
    EXPECT_EQ(path(), "progressing blocked") << "it says that it has no room";
  }
  EXPECT_EQ(reason(),
            "Waits for the model server at http://127.0.0.1:8080: HTTP 503: Loading model");
  pass(10s);
  const auto second = begin(history);
  see(second, ExchangeReached{});
  judge();
  EXPECT_EQ(health(), HealthKind::blocked) << "it may refuse it yet";
  pass(1s);
  EXPECT_NE(health(), HealthKind::blocked) << path();
  pass(120s);
  EXPECT_NE(health(), HealthKind::blocked) << "it reads, and tells nothing";
  end(second, How::lost, "the model server broke off within its answer");
  judge();
  EXPECT_EQ(reason(),
            "Waits for the model server at http://127.0.0.1:8080: the model server "
            "broke off within its answer");

  const auto answered = begin(history);
  see(answered, ExchangeReached{});
  head(answered);
  judge();
  EXPECT_NE(health(), HealthKind::blocked) << "an answer begins";
}

TEST_F(Judged, a_model_that_says_nothing_is_named_with_how_long) {
  history = {user("Hi")};
  const auto exchange = begin(history);
  head(exchange);
  delta(exchange, {{"content", "Hel"}});
  judge();
  pass(2'000s);
  EXPECT_EQ(health(), HealthKind::slow) << path();
  const auto before = reason();
  EXPECT_EQ(before.find("The model has been silent for "), 0U) << before;
  EXPECT_EQ(before.find("usual"), std::string::npos) << "nothing is known of what is usual";
  pass(60s);
  EXPECT_NE(reason(), before) << "it grows";
}

TEST_F(Judged, a_refused_login_needs_a_person_until_the_server_answers) {
  history = {user("Hi")};
  const auto refuse = [&](int status, const char* message) {
    const auto refused = begin(history);
    see(refused, ExchangeReached{});
    see(refused, AnswerBegan{.status = status, .content_type = "application/json"});
    see(refused, AnswerPiece{json{{"error", {{"message", message}}}}.dump()});
    end(refused);
    judge();
  };
  for (int tries = 0; tries < 6; ++tries) {
    refuse(401, "Invalid API key");
    EXPECT_EQ(health(), HealthKind::blocked) << path();
    pass(2s);
  }
  EXPECT_EQ(reason(), "Waits for login: HTTP 401: Invalid API key");
  pass(600s);
  EXPECT_EQ(health(), HealthKind::blocked) << "nobody logged in";
  const auto answered = begin(history);
  see(answered, ExchangeReached{});
  head(answered);
  judge();
  EXPECT_NE(health(), HealthKind::blocked) << path();
  answer_text(answered, "Hello");
  judge();
  refuse(429, "used up");
  EXPECT_EQ(reason(), "Waits for quota: HTTP 429: used up");
  pass(70s);
  EXPECT_EQ(reason(), "Waits for input: HTTP 429: used up; no request for 60 s");
  history = {user("Hi"), agent("Hello"), user("And now?")};
  begin(history);
  judge();
  EXPECT_NE(health(), HealthKind::blocked) << "a person went on";
}

TEST_F(Judged, no_health_begins_before_its_session) {
  now = clock.wall() - 40s;  // what was seen is stored later
  const auto exchange = begin({user("U")});
  see(exchange, ExchangeEvidence{{.state = ServerState::hung}, "no slot works on it"});
  judge();
  const auto watched = observer->find("s");
  EXPECT_EQ(watched->created, clock.wall() - 40s);
  EXPECT_GE(watched->judged.health_since, watched->created);
}

TEST_F(Judged, a_server_that_goes_while_it_writes_is_waited_for) {
  history = {user("Hi")};
  const auto exchange = begin(history);
  head(exchange);
  delta(exchange, {{"content", "Hel"}});
  see(exchange, ExchangeEvidence{{.state = ServerState::gone}, "its process is gone"});
  end(exchange, How::lost, "its process is gone");
  pass(900s);
  EXPECT_EQ(path(), "progressing blocked") << "words that came before end no wait";
}

TEST_F(Judged, a_client_that_gives_up_on_a_slow_server_again_and_again_is_not_called_stuck) {
  history = {user("Hi")};
  for (int n = 0; n < 12; ++n) {
    const auto exchange = begin(history);
    judge();
    pass(30s);
    end(exchange, How::client_gone, "the client hung up after 30 s");
    judge();
  }
  EXPECT_EQ(path().find("stuck"), std::string::npos) << path();
}

TEST_F(Judged, a_client_that_hung_up_never_has_a_complete_answer) {
  for (const int pieces : {-1, 0, 3}) {  // -1: not even a head
    session = "s";
    const auto exchange = begin({user("U" + std::to_string(pieces))});
    if (pieces >= 0) head(exchange);
    for (int n = 0; n < pieces; ++n) delta(exchange, {{"content", "leaf "}});
    judge();
    end(exchange, How::client_gone, "the client hung up after 1.2 s");
    judge();
    EXPECT_EQ(lifecycle(), Lifecycle::waiting) << "it may ask again";
    EXPECT_EQ(reason(), "Waits for retry: the client hung up after 1.2 s");
    pass(30s);
    EXPECT_EQ(lifecycle(), Lifecycle::waiting);
    pass(40s);
    EXPECT_EQ(lifecycle(), Lifecycle::idle) << "it is the person's turn";
    EXPECT_EQ(reason(), "The client hung up after 1.2 s; no request for 60 s");
    pass(900s);
    EXPECT_EQ(lifecycle(), Lifecycle::idle);
  }
  // The next try ends the wait, and has an answer.
  end(begin({user("V")}), How::client_gone, "the client hung up after 1.2 s");
  judge();
  const auto again = begin({user("V")});
  judge();
  EXPECT_EQ(lifecycle(), Lifecycle::running);
  answer_text(again, "Here it is.");
  judge();
  EXPECT_EQ(reason(), "The answer is complete");
  pass(900s);
  EXPECT_EQ(reason(), "The answer is complete");
}

TEST_F(Judged, a_client_that_hung_up_and_works_on_is_not_at_rest) {
  end(begin({user("U")}), How::client_gone, "the client hung up after 1.2 s");
  judge();
  // Its hooks report what the proxy does not see.
  Report call;
  call.kind = ReportKind::tool_call;
  call.name = "Bash";
  call.call_id = "c1";
  call.at = now;
  reported = {{.session = "s", .creation = Creation::attach, .reports = {call}}};
  judge();
  pass(120s);
  EXPECT_EQ(lifecycle(), Lifecycle::running);
  EXPECT_EQ(reason().find("hung up"), std::string::npos) << reason();
}

TEST_F(Judged, a_client_that_hangs_up_when_all_was_said_has_its_answer) {
  const auto exchange = begin({user("U")});
  head(exchange);
  delta(exchange, {{"content", "All"}}, "stop");
  end(exchange, How::client_gone, "the client hung up after 1.2 s");
  judge();
  EXPECT_EQ(reason(), "The answer is complete");
}

TEST_F(Judged, an_answer_that_is_not_read_says_so) {
  const auto exchange = begin({user("U")});
  head(exchange, 200, "br");
  end(exchange);
  judge();
  EXPECT_EQ(lifecycle(), Lifecycle::idle);
  EXPECT_EQ(reason(),
            "The server answered, and the answer is not read here: it is compressed by br");
}

TEST_F(Judged, a_prompt_alone_does_not_show_work) {
  const auto exchange = begin({user("U")});
  judge();
  pass(32s);
  EXPECT_EQ(reason(), "Asked 32 s ago; no sign of work from the model server");
  see(exchange,
      ExchangeEvidence{{.state = ServerState::reading, .done = 5, .total = 9}, "it reads"});
  pass(8s);
  EXPECT_EQ(reason().find("Asked 40 s ago; the model server reads the prompt"), 0U) << reason();
  see(exchange, ExchangeEvidence{{.state = ServerState::unknown}, ""});
  head(exchange);
  for (int n = 0; n < 8; ++n) {
    delta(exchange, {{"content", "word "}});
    pass(1s);
  }
  EXPECT_EQ(reason(), "Asked 48 s ago; the model answers");
}

TEST_F(Judged, a_prompt_that_is_read_for_long_is_slow_and_a_server_that_hangs_is_named) {
  const auto exchange = begin({user("U")});
  for (int n = 1; n <= 120; ++n) {
    see(exchange,
        ExchangeEvidence{{.state = ServerState::reading, .done = 500 * n, .total = 90'000},
                         "the prompt is read"});
    pass(10s);
  }
  EXPECT_EQ(path(), "progressing slow");
  see(exchange, ExchangeEvidence{{.state = ServerState::hung}, "no slot works on it"});
  pass(1s);
  EXPECT_EQ(health(), HealthKind::stuck);
  see(exchange, ExchangeEvidence{{.state = ServerState::writing, .done = 3}, "it writes"});
  answer_text(exchange, "Here it is.");
  judge();
  EXPECT_EQ(health(), HealthKind::idle) << path();
}

TEST_F(Judged, an_answer_that_was_slow_is_over_at_once) {
  const auto exchange = begin({user("U")});
  see(exchange, ExchangeEvidence{{.state = ServerState::working}, "its process computes"});
  pass(1'000s);
  answer_text(exchange, "Here it is.");
  pass(10s);
  EXPECT_EQ(path(), "progressing slow progressing idle") << "slow once, and by its server";
}

TEST_F(Judged, pieces_of_any_size_are_judged_alike) {
  std::mt19937 random(random_seed());
  const std::string stream =
      "data: {\"choices\":[{\"delta\":{\"reasoning_content\":\"Hm\"}}]}\n\n"
      "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{"
      "\"name\":\"f\",\"arguments\":\"{}\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n"
      "data: [DONE]\n\n";
  std::string whole;
  for (int times = 0; times <= repetitions(100); ++times) {
    const auto exchange = begin({user("U" + std::to_string(times))});
    head(exchange);
    news();
    for (std::size_t at = 0; at < stream.size();) {
      const auto bytes = times == 0 ? stream.size() : 1 + random() % 50;
      see(exchange, AnswerPiece{stream.substr(at, bytes)});
      at += bytes;
    }
    end(exchange);
    const auto got = news();
    const auto call = got.substr(0, got.find(';'));
    if (times == 0) whole = call;
    EXPECT_EQ(call, whole);
  }
  EXPECT_EQ(whole, "tool_call f #a '{}'");
}

}  // namespace
}  // namespace watchdog::test
