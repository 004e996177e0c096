#include "proxy/sessions/session_recorder.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include "llm/observed_answer.h"
#include "proxy/sessions/relaying.h"
#include "support/scenario.h"

namespace watchdog::test {
namespace {

using namespace std::chrono_literals;

TEST_F(Relaying, an_exchange_with_a_tool_is_reported_in_order) {
  const auto one = begin({user("Do it")});
  EXPECT_EQ(reported.at(0).session, "s");
  EXPECT_EQ(reported.at(0).spec.labels.at("via"), "proxy");
  EXPECT_EQ(reported.at(0).spec.labels.at("model"), "m");
  EXPECT_EQ(reported.at(0).reports.at(0).at, now);
  EXPECT_EQ(news(), "state_change input 'Do it'; loop 1 model");
  answer_calls(one, {asked_call("a", R"({"x":1})"), asked_call("b", "{}", "look")});
  EXPECT_EQ(news(), R"(tool_call run #a '{"x":1}'; tool_call look #b '{}'; relay tools tokens=1)");
  const auto two = begin({user("Do it"), calls({asked_call("a"), asked_call("b", "{}", "look")}),
                          result("a", "A"), result("b", "B")});
  EXPECT_EQ(news(), "tool_result run #a 'A'; tool_result look #b 'B'; loop 2 model tokens=1");
  answer_text(two, "Done");
  EXPECT_EQ(news(), "relay tokens=2; message assistant 'Done'; idle relay");
}

TEST_F(Relaying, results_that_failed_are_errors_and_words_beside_results_no_change) {
  ExchangeBegan began{.method = "POST", .target = "/v1/messages", .session = "s"};
  began.body = std::make_shared<std::string>(
      R"({"messages":[{"role":"user","content":"U"},{"role":"assistant","content":[{"type":"tool_use","id":"u","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"u","content":"no such file","is_error":true},{"type":"text","text":"<reminder>"}]}]})");
  see(1, std::move(began));
  EXPECT_EQ(news(), "error f #u 'no such file'; message user '<reminder>'; loop 1 model");
}

TEST_F(Relaying, an_open_request_beats_quiet_or_not_and_never_more_often_than_asked) {
  const auto one = begin({user("U")});
  news();
  for (int second = 1; second <= 20; ++second) {
    now += 1s;
    hear(recorder.beat(now));
  }
  EXPECT_EQ(news(), "relay model; relay model; relay model; relay model");
  head(one);
  for (int n = 1; n <= 1'000; ++n) {
    now += 10ms;
    see(one, AnswerPiece{"data: {\"prompt_progress\":{\"total\":2000,\"processed\":" +
                         std::to_string(n) + "}}\n\n"});
  }
  EXPECT_EQ(news(),
            "relay model prompt_read=500 prompt_tokens=2000; "
            "relay model prompt_read=1000 prompt_tokens=2000");
  for (int n = 1; n <= 500; ++n) {
    now += 10ms;
    delta(one, {{"content", "word" + std::to_string(n * n) + " "}});
  }
  EXPECT_EQ(news(), "relay model tokens=500 prompt_read=1000 prompt_tokens=2000");
  end(one, How::client_gone, "the client hung up");
  news();
  now += 60s;
  hear(recorder.beat(now));
  EXPECT_EQ(news(), "idle relay 'the client hung up; no request for 60 s'");
  now += 60s;
  hear(recorder.beat(now));
  EXPECT_EQ(news(), "") << "nothing is open";
}

TEST_F(Relaying, running_totals_never_fall) {
  double before = 0;
  for (int n = 0; n < 5; ++n) {
    const auto one = begin({user("U" + std::to_string(n))});
    head(one);
    for (int piece = 0; piece < 100; ++piece) {
      now += 1s;
      delta(one, {{"content", "a"}});
    }
    see(one, AnswerPiece{"data: {\"choices\":[],\"usage\":{\"completion_tokens\":60}}\n\n"});
    end(one);
  }
  for (const auto& batch : reported) {
    for (const auto& report : batch.reports) {
      if (const auto* beats = std::get_if<Heartbeats>(&report.detail)) {
        for (const auto& [name, count] : beats->counters) {
          if (name != "tokens") continue;
          EXPECT_GE(count, before);
          before = count;
        }
      }
    }
  }
  EXPECT_GE(before, 300);
}

TEST_F(Relaying, evidence_is_reported_when_it_changes_and_its_numbers_every_few_seconds) {
  const auto one = begin({user("U")});
  news();
  const auto look = [&](ServerState state, std::int64_t done) {
    see(one, ExchangeEvidence{{.state = state, .done = done, .total = 900}, "why"});
  };
  look(ServerState::unknown, 0);
  EXPECT_EQ(news(), "") << "that is no evidence";
  look(ServerState::queued, 0);
  look(ServerState::queued, 0);
  look(ServerState::reading, 10);
  EXPECT_EQ(news(), "evidence queued #request-1 'why'; evidence reading 10 #request-1 'why'");
  for (int n = 2; n <= 11; ++n) {
    now += 1s;
    look(ServerState::reading, 10 * n);
  }
  EXPECT_EQ(news(), "evidence reading 60 #request-1 'why'; evidence reading 110 #request-1 'why'");
  look(ServerState::gone, 0);
  EXPECT_EQ(news(), "relay; evidence gone #request-1 'why'; wait backend 'why'");
  end(one, How::lost, "the server broke off");
  EXPECT_EQ(news(), "relay; message server 'the server broke off'; evidence over #request-1")
      << "it waits already";
}

TEST_F(Relaying, a_silence_is_reported_less_often_the_longer_it_lasts) {
  const auto one = begin({user("U")});
  news();
  std::vector<int> observed_at;
  for (int second = 0; second <= 3'600; ++second, now += 1s) {
    const auto why = "no token for " + std::to_string(second) + " s";
    see(one, ExchangeEvidence{{.state = ServerState::hung}, why});
    const auto said = news();
    if (said.empty()) continue;
    EXPECT_NE(said.find(why), std::string::npos) << said;
    const int since = observed_at.empty() ? 0 : second - observed_at.back();
    EXPECT_LE(since, std::max(6, second / 8 + 1)) << "it is out of date";
    observed_at.push_back(second);
  }
  EXPECT_GE(observed_at.back(), 3'000);
  EXPECT_LE(observed_at.size(), 60U) << "an hour of silence fills no disk";
}

TEST_F(Relaying, each_kind_of_failure_is_reported_in_its_own_words) {
  struct Row {
    How how;
    int status;
    std::string body;
    const char* reported;
  };
  const std::string error = R"({"error":{"message":"no"}})";
  const Row rows[] = {
      {How::answered, 503, error,
       "relay; message server 'HTTP 503: no'; wait backend 'HTTP 503: no'"},
      {How::answered, 429, error,
       "relay; message server 'HTTP 429: no'; wait quota 'HTTP 429: no'"},
      {How::answered, 400, error,
       "relay; message server 'HTTP 400: no'; idle error 'HTTP 400: no'"},
      {How::answered, 500, "",
       "relay; message server 'HTTP 500: no reason given'; "
       "wait backend 'HTTP 500: no reason given'"},
      {How::answered, 200, "data: " + error + "\n\n",
       "relay; message server 'no'; idle error 'no'"},
      {How::answered, 200, "data: {\"choices\":[{\"delta\":{}}]}\n\n",
       "relay; message server 'the answer broke off before its end'; "
       "wait backend 'the answer broke off before its end'"},
      {How::answered, 200, ": ping\n\n",
       "relay; message server 'the server ended its stream without an event'; "
       "wait backend 'the server ended its stream without an event'"},
      {How::answered, 200, "<html>",
       "relay; idle relay 'the server answered, and the answer is not read here'"},
      {How::client_gone, 200, "", "relay; message client 'because'; wait retry 'because'"},
      {How::refused, 0, "", "relay; message server 'because'; wait backend 'because'"},
      {How::lost, 200, "", "relay; message server 'because'; wait backend 'because'"},
      {How::malformed, 0, "", "relay; message server 'because'; wait backend 'because'"},
      {How::failed, 0, "", "relay; message server 'because'; wait backend 'because'"},
      {How::stopped, 0, "", "relay"},
  };
  for (const auto& row : rows) {
    SessionRecorder fresh;
    const auto record = [&](auto what) {
      hear(fresh.record({.exchange = 1, .at = now, .what = std::move(what)}));
    };
    record(ExchangeBegan{.method = "POST", .target = "/v1/messages", .session = "s"});
    if (row.status != 0)
      record(AnswerBegan{.status = row.status, .content_type = "text/event-stream"});
    if (row.status == 200 && row.body == "<html>") record(AnswerSkipped{.bytes = 6});
    news();
    std::string pieces = row.body;
    if (!pieces.empty() && row.body != "<html>")
      (void)fresh.record({.exchange = 1, .at = now, .what = AnswerPiece{pieces}});
    record(ExchangeEnded{.how = row.how, .message = "because"});
    auto got = news();
    if (const auto tokens = got.find(" tokens=1"); tokens != std::string::npos)
      got.erase(tokens, 9);
    EXPECT_EQ(got, row.reported) << name_of(row.how) << row.status;
  }
}

TEST_F(Relaying, no_message_is_reported_from_an_answer_that_was_not_seen_whole) {
  const auto one = begin({user("U")});
  head(one);
  delta(one, {{"content", "Hi"}});
  see(one, AnswerSkipped{.bytes = 100});
  delta(one, {}, "stop");
  news();
  end(one);
  const std::string unread = "idle relay 'the server answered, and the answer is not read here";
  EXPECT_EQ(news(), "relay tokens=2; " + unread + "'");
  const auto two = begin({user("U"), calls({asked_call("k", R"({"x":1})")}), result("k", "K")});
  EXPECT_EQ(news(), R"(tool_call run #k '{"x":1}'; tool_result run #k 'K'; loop 2 model tokens=2)");
  head(two, 200, "gzip");
  see(two, AnswerPiece{"\x1F\x8B"});
  end(two);
  EXPECT_EQ(news(), "relay tokens=3; " + unread + ": it is '");
}

TEST_F(Relaying, a_client_that_hangs_up_after_the_last_word_has_the_whole_answer) {
  const auto one = begin({user("U")});
  head(one);
  delta(one, {{"content", "Hi"}}, "stop");
  news();
  end(one, How::client_gone, "the client hung up");
  EXPECT_EQ(news(), "relay tokens=1; message assistant 'Hi'; idle relay");
}

TEST_F(Relaying, a_retry_is_not_a_new_round_unless_the_request_had_an_answer) {
  end(begin({user("U")}), How::refused, "refused");
  news();
  const auto two = begin({user("U")});
  EXPECT_EQ(news(), "retry; relay model");
  answer_calls(two, {asked_call("a")});
  news();
  begin({user("U")});
  EXPECT_EQ(news(), "retry asked_again; loop 3 model tokens=1");
}

TEST_F(Relaying, a_helpers_requests_neither_end_nor_overtake_the_agents_calls) {
  answer_calls(begin({user("U")}), {asked_call("a")});
  news();
  const auto title = begin({user("A title for U")});
  EXPECT_EQ(news(), "state_change input 'A title for U'; loop model tokens=1");
  answer_text(title, "U");
  EXPECT_EQ(news(), "relay tokens=2; message assistant 'U'") << "the agent's call runs: not idle";
}

TEST_F(Relaying, a_session_is_idle_once_all_of_its_requests_are_over) {
  const auto one = begin({user("1")});
  const auto two = begin({user("2")});
  answer_text(two, "B");
  EXPECT_EQ(news().find("idle"), std::string::npos);
  answer_text(one, "A");
  EXPECT_NE(news().find("idle"), std::string::npos);
}

TEST_F(Relaying, a_text_that_repeats_itself_is_heard_while_it_comes) {
  const auto one = begin({user("U")});
  head(one);
  news();
  for (int n = 0; n < 30; ++n) delta(one, {{"content", "I will now do it again. "}});
  EXPECT_EQ(news().substr(0, 24), "chant 'I will now do it ");
  delta(one, {}, "stop");
  end(one);
  const auto* marks = std::get_if<Marks>(&reported.back().reports.at(1).detail);
  ASSERT_NE(marks, nullptr);
  EXPECT_EQ(marks->text_repeats, 0) << "and not once more at its end";
}

TEST_F(Relaying, a_request_that_is_not_a_conversation_has_no_session_of_its_own) {
  see(1, ExchangeBegan{.method = "GET", .target = "/v1/models", .session = "s"});
  EXPECT_EQ(news(), "relay");
  ExchangeBegan nobody{.method = "POST", .target = "/v1/embeddings"};
  nobody.body = std::make_shared<std::string>(R"({"user":"u","input":"x"})");
  see(2, std::move(nobody));
  see(1, AnswerPiece{"x"});
  see(1, ExchangeEnded{});
  see(99, ExchangeEnded{});
  see(99, AnswerPiece{"x"});
  see(99, AnswerSkipped{});
  see(99, ExchangeEvidence{});
  EXPECT_EQ(news(), "");
}

TEST_F(Relaying, the_last_request_ends_its_session_and_another_request_starts_it_again) {
  session.clear();
  extra = {{"x-dynamo-session-id", "s"}, {"x-dynamo-session-final", "true"}};
  const auto one = begin({user("Bye")});
  news();
  answer_text(one, "Bye");
  EXPECT_EQ(news(), "relay tokens=1; message assistant 'Bye'; end");
  extra.erase("x-dynamo-session-final");
  begin({user("Hi again")});
  EXPECT_EQ(news(), "start; state_change input 'Hi again'; loop 2 model tokens=1");
}

TEST_F(Relaying, a_request_that_continues_an_answer_is_in_the_same_session) {
  session.clear();
  const auto ask = [&](const char* body) {
    ExchangeBegan began{.method = "POST", .target = "/v1/responses", .peer = "::1"};
    began.body = std::make_shared<std::string>(body);
    see(++exchanges, std::move(began));
    const auto name = reported.back().session;
    see(exchanges, AnswerBegan{.status = 200, .content_type = "application/json"});
    see(exchanges, AnswerPiece{R"({"object":"response","id":"resp_)" + std::to_string(exchanges) +
                               R"(","status":"completed","output":[]})"});
    see(exchanges, ExchangeEnded{});
    return name;
  };
  const auto first = ask(R"({"input":"Go"})");
  EXPECT_EQ(ask(R"({"input":"On","previous_response_id":"resp_1"})"), first);
  EXPECT_EQ(ask(R"({"input":"On","previous_response_id":"resp_2"})"), first);
  EXPECT_NE(ask(R"({"input":"On","previous_response_id":"resp_9"})"), first);
}

TEST_F(Relaying, two_clients_of_one_session_do_not_mix_their_exchanges) {
  const auto one = begin({user("1")});
  const auto two = begin({user("2")});
  head(one);
  head(two);
  news();
  const std::string a = R"(data: {"choices":[{"delta":{"content":"one"},"finish_reason":"stop"}]})";
  const std::string b = R"(data: {"choices":[{"delta":{"content":"two"},"finish_reason":"stop"}]})";
  for (std::size_t at = 0; at < a.size(); ++at) {
    see(one, AnswerPiece{a.substr(at, 1)});
    see(two, AnswerPiece{b.substr(at, 1)});
  }
  end(one);
  end(two);
  const auto all = news();
  EXPECT_NE(all.find("assistant 'one'"), std::string::npos) << all;
  EXPECT_NE(all.find("assistant 'two'"), std::string::npos) << all;
}

TEST_F(Relaying, a_denied_request_ends_its_session_as_cancelled) {
  answer_text(begin({user("go")}), "done");
  (void)news();
  const auto denied = begin({user("go"), agent("done"), user("more")});
  EXPECT_NE(news().find("'more'"), std::string::npos) << "it asked all the same";
  see(denied,
      ExchangeEnded{
          .how = How::denied, .message = "cancelled", .cancel = {.by = "ann", .reason = "enough"}});
  ASSERT_FALSE(reported.empty());
  const auto& end = reported.back().reports.back();
  EXPECT_EQ(end.kind, ReportKind::end);
  EXPECT_EQ(std::get<Outcome>(end.detail).kind, OutcomeKind::cancelled);
  EXPECT_EQ(std::get<Outcome>(end.detail).subject, "ann");
}

/// How often the recorder reported that it found a process.
int processes_in(const std::vector<Batch>& reported) {
  int count = 0;
  for (const auto& batch : reported)
    for (const auto& report : batch.reports)
      count += report.kind == ReportKind::start && report.name == found_process ? 1 : 0;
  return count;
}

TEST_F(Relaying, a_process_that_asks_twice_is_the_agent_of_the_session) {
  const auto ask = [&](std::int64_t pid) {
    process = ProcessFacts{.pid = pid, .start_ticks = pid};
    const auto exchange = begin({user("go")});
    see(exchange, ExchangeReached{});
    answer_text(exchange, "done");
    return processes_in(std::exchange(reported, {}));
  };
  for (const std::int64_t pid : {1, 2, 3}) EXPECT_EQ(ask(pid), 0) << "may end with its answer";
  EXPECT_EQ(ask(3), 1);
  EXPECT_EQ(ask(3), 0) << "known";
  is_gone = true;
  EXPECT_EQ(ask(4), 0);
  is_gone = false;
  EXPECT_EQ(ask(4), 1) << "another one goes on";
}

TEST_F(Relaying, a_coding_agent_is_its_sessions_process_with_its_first_request) {
  const decltype(extra) agents[] = {
      {{"User-Agent", "opencode/1.18.33 ai-sdk/openai-compatible/2.0"}},
      {{"User-Agent", "OpenAI/JS 5.20.1"}, {"x-initiator", "user"}},  // Copilot CLI
  };
  std::int64_t pid = 0;
  for (const auto& headers : agents) {
    extra = headers;
    ++pid;
    process = ProcessFacts{.pid = pid, .start_ticks = pid};
    const auto exchange = begin({user("part " + std::to_string(pid))});
    see(exchange, ExchangeReached{});
    EXPECT_EQ(processes_in(std::exchange(reported, {})), 1) << "it may be killed in its first call";
    answer_calls(exchange, {asked_call("1")});
    EXPECT_EQ(processes_in(std::exchange(reported, {})), 0) << "told once";
  }
}

TEST_F(Relaying, a_summary_that_copilot_cli_asks_for_is_one_compaction) {
  const auto of = [&](const char* why) {
    extra = {{"User-Agent", "OpenAI/JS 5.20.1"}, {"x-interaction-type", why}};
  };
  of("conversation-user");
  answer_calls(begin({user("go")}), {asked_call("1")});
  (void)news();
  of("conversation-compaction");
  const auto exchange = begin({user("go"), user("Please sum it up.")});
  EXPECT_EQ(news(), "compaction") << "no prompt";
  answer_text(exchange, "The summary.");
  EXPECT_EQ(news(), "") << "no answer to a person";
  of("conversation-subagent");
  answer_text(begin({user("a part of the work")}), "That part is done.");
  EXPECT_EQ(news(), "");
}

TEST_F(Relaying, a_request_after_the_agent_is_gone_starts_the_session_again) {
  process = ProcessFacts{.pid = 1, .start_ticks = 1};
  for (int n = 0; n < 2; ++n) {
    const auto exchange = begin({user("go")});
    see(exchange, ExchangeReached{});
    answer_text(exchange, "done");
  }
  (void)news();
  is_gone = true;
  process = ProcessFacts{.pid = 2, .start_ticks = 2};
  const auto exchange = begin({user("go")});
  EXPECT_TRUE(news().starts_with("start; "));
  // Denied, it was cancelled before that; the next one is not.
  see(exchange, ExchangeEnded{.how = How::denied, .message = "cancelled"});
  EXPECT_EQ(news().find("end"), std::string::npos);
}

TEST_F(Relaying, a_request_of_an_agent_that_is_gone_by_now_does_not_start_the_session_again) {
  process = ProcessFacts{.pid = 1, .start_ticks = 1};
  for (int n = 0; n < 2; ++n) {
    const auto exchange = begin({user("go")});
    see(exchange, ExchangeReached{});
    answer_text(exchange, "done");
  }
  (void)news();
  is_gone = true;  // Before its last request was taken up here.
  begin({user("and this")});
  EXPECT_FALSE(news().starts_with("start"));
}

TEST_F(Relaying, an_agent_that_died_while_it_asked_does_not_rest) {
  process = ProcessFacts{.pid = 1, .start_ticks = 1};
  const auto exchange = begin({user("go")});
  see(exchange, ExchangeReached{});
  (void)news();
  see(exchange, ExchangeEnded{.how = How::client_gone, .message = "hung up", .client_died = true});
  EXPECT_EQ(processes_in(reported), 1);
  EXPECT_EQ(news().find("idle"), std::string::npos);
}

TEST_F(Relaying, many_exchanges_take_bounded_memory) {
  SessionRecorder small({.sessions_max = 64, .beat_every = 5s});
  const auto body = [](int n) {
    return std::make_shared<std::string>(
        json{{"messages", {user("U" + std::to_string(n))}}}.dump());
  };
  std::size_t reports = 0;
  std::size_t half = 0;  // bytes of memory then; with a sanitizer always none
  const auto record = [&](std::uint64_t exchange, auto what) {
    for (const auto& batch :
         small.record({.exchange = exchange, .at = now, .what = std::move(what)}))
      reports += batch.reports.size();
  };
  const int count = repetitions(100'000);
  for (int n = 1; n <= count; ++n) {
    const auto exchange = static_cast<std::uint64_t>(n);
    now += 10ms;
    record(exchange, ExchangeBegan{.method = "POST",
                                   .target = "/v1/chat/completions",
                                   .session = "s" + std::to_string(n % 1'000),
                                   .body = body(n)});
    record(exchange, AnswerBegan{.status = 200, .content_type = "application/json"});
    record(exchange,
           AnswerPiece{R"({"id":"r)" + std::to_string(n) +
                       R"(","choices":[{"message":{"content":"A"},"finish_reason":"stop"}]})"});
    // Some are never heard of again.
    if (n % 7 != 0 || n > count / 4) record(exchange, ExchangeEnded{});
    if (n == count / 2) half = mallinfo2().uordblks;
  }
  EXPECT_GT(reports, 3U * static_cast<std::size_t>(count));
  EXPECT_LT(mallinfo2().uordblks, half + half / 8 + 1) << "as much after all of them as after half";
  EXPECT_LE(small.beat(now + 1h).size(), 64U + 16'384U);
}

TEST_F(Relaying, a_request_that_is_sent_elsewhere_ends_and_its_next_try_is_none) {
  for (const int status : {301, 302, 303, 307, 308}) {
    session = "s";
    const auto words = "Do " + std::to_string(status);
    const auto one = begin({user(words)});
    news();
    head(one, status);
    end(one);
    const auto why = "'HTTP " + std::to_string(status) + ": the server names another address'";
    EXPECT_TRUE(news().ends_with("; message server " + why + "; idle error " + why)) << status;
    const auto two = begin({user(words)}, "/v1/chat/completions/");
    const auto again = news();
    EXPECT_TRUE(again.starts_with("relay model") && again.find(';') == again.npos)
        << "neither a prompt nor a retry nor a round: " << again;
    answer_text(two, "Done");
    news();
  }
}

TEST_F(Relaying, an_answer_that_cannot_be_read_ends_too) {
  const auto one = begin({user("U")});
  head(one, 200, "br");
  see(one, AnswerPiece{"\x1B"});
  news();
  end(one);
  EXPECT_EQ(
      news(),
      "relay tokens=1; idle relay 'the server answered, and the answer is not read here: it is '");
  const auto two = begin({user("V")});
  head(two);
  see(two, AnswerSkipped{.bytes = 100});
  news();
  end(two);
  EXPECT_EQ(news(),
            "relay tokens=1; idle relay 'the server answered, and the answer is not read here'");
}

TEST_F(Relaying, why_a_request_is_not_read_is_said_once_a_session) {
  const auto ask = [this] {
    ExchangeBegan began{.method = "POST", .target = "/v1/responses", .session = "s"};
    began.unread = "the request is compressed by zstd";
    see(++exchanges, std::move(began));
    const auto said = news();
    end(exchanges);
    news();
    return said;
  };
  EXPECT_EQ(ask(), "message server 'the request is compressed by zstd'; loop 1 model");
  EXPECT_EQ(ask(), "loop 2 model");
}

TEST_F(Relaying, an_answer_that_ended_early_says_how) {
  const auto ends = [this](const char* finish, const std::string& text, const char* question) {
    const auto asked = begin({user(question)});
    head(asked);
    delta(asked, {{"content", text}}, finish);
    news();
    end(asked);
    const auto said = news();
    return said.substr(said.rfind("idle"));
  };
  EXPECT_EQ(ends("stop", "A whole answer", "W"), "idle relay");
  EXPECT_EQ(ends("length", "Half of an", "X"), "idle relay 'length'");
  EXPECT_EQ(ends("tool_calls", "Wait", "Y"), "idle relay 'calls'");
  EXPECT_EQ(ends("length", "", "Z"), "idle relay 'length'") << "it only thought";
}

TEST_F(Relaying, a_text_that_is_not_kept_to_its_end_promises_nothing) {
  const auto promises = [this](const std::string& text) {
    const auto asked = begin({user("Q" + std::to_string(text.size()))});
    head(asked);
    delta(asked, {{"content", text}}, "stop");
    end(asked);
    for (const auto& batch : std::exchange(reported, {}))
      for (const auto& report : batch.reports)
        if (report.kind == ReportKind::message && report.name == "assistant")
          return std::get<Marks>(report.detail).promises;
    return false;
  };
  EXPECT_TRUE(promises("All is read. Now I will run the tests."));
  // The kept beginning ends with an announcement. The whole text does not.
  std::string kept(answer_text_bytes_max - 26, 'a');
  kept += ". Now I will run the test.";
  ASSERT_EQ(kept.size(), answer_text_bytes_max);
  EXPECT_FALSE(promises(kept + " All of them passed."));
}

}  // namespace
}  // namespace watchdog::test
