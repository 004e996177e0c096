#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "proxy/sessions/relaying.h"

namespace watchdog::test {
namespace {

/// The requests of a real agent, one JSON object a line: url, headers, body.
std::vector<json> recorded_requests(const char* file) {
  const auto path = std::filesystem::path(PROJECT_ROOT) / "tests/data/api" / file;
  std::ifstream lines(path);
  EXPECT_TRUE(lines.is_open()) << path;
  std::vector<json> all;
  for (std::string line; std::getline(lines, line);) all.push_back(json::parse(line));
  return all;
}

class RecordedApi : public Relaying {
 protected:
  /// The sessions' names differ by agent, and are no matter here.
  std::string reported_now() {
    for (auto& batch : reported) batch.session = "s";
    return news();
  }

  std::uint64_t ask(const json& request) {
    ExchangeBegan began{
        .method = "POST", .target = request.at("url"), .session = {}, .peer = "127.0.0.1"};
    for (const auto& [name, value] : request.at("headers").items())
      began.headers.emplace_back(name, value.get<std::string>());
    began.body = std::make_shared<std::string>(request.at("body").dump());
    see(++exchanges, std::move(began));
    return exchanges;
  }

  void answer_gemini(std::uint64_t exchange, const json& part) {
    head(exchange);
    see(exchange,
        AnswerPiece{"data: " +
                    json{{"candidates",
                          {{{"content", {{"parts", {part}}, {"role", "model"}}},
                            {"finishReason", "STOP"}}}},
                         {"usageMetadata", {{"promptTokenCount", 90}, {"candidatesTokenCount", 2}}}}
                        .dump() +
                    "\n\n"});
    end(exchange);
  }
};

TEST_F(RecordedApi, gemini_cli_is_read_as_the_others_are) {
  const auto requests = recorded_requests("gemini-cli.jsonl");
  ASSERT_EQ(requests.size(), 4U);
  std::string session_name;
  const char* shown[] = {
      "state_change input 'SCENARIO:tools look around'; loop 1 model",
      "tool_result run_shell_command #call_tools_0 '<untrusted_context>\nOutput: total 20\ndrwxr-"
      "xr-x 3 u u 4096 N'; loop 2 model tokens=2",
      "tool_result read_file #call_tools_1 'one\ntwo\n'; loop 3 model tokens=4",
      "tool_result run_shell_command #call_tools_2 '<untrusted_context>\nOutput: done\nProcess "
      "Group PGID: 21779\n<'; loop 4 model tokens=6"};
  for (std::size_t at = 0; at < requests.size(); ++at) {
    const auto exchange = ask(requests[at]);
    ASSERT_EQ(reported.size(), 1U);
    EXPECT_EQ(reported[0].spec.agent, "gemini-cli");
    EXPECT_EQ(reported[0].spec.labels.at("model"), "gemini-2.5-flash");
    if (at == 0) session_name = reported[0].session;
    EXPECT_EQ(reported[0].session, session_name) << "one conversation is one session";
    EXPECT_EQ(reported_now(), shown[at]);
    if (at == 3) {
      answer_gemini(exchange, {{"text", "All done"}});
      EXPECT_EQ(reported_now(),
                "relay tokens=8 prompt_tokens=90; message assistant 'All done'; idle relay");
      break;
    }
    answer_gemini(exchange,
                  requests[at + 1].at("body").at("contents").at(1 + 2 * at).at("parts")[0]);
    const auto reported_calls = reported_now();
    EXPECT_EQ(reported_calls.find("tool_call"), 0U) << reported_calls;
    EXPECT_NE(reported_calls.find("#call_tools_" + std::to_string(at)), std::string::npos);
  }
}

TEST_F(RecordedApi, calls_without_an_id_are_those_that_the_client_answers_under_its_own) {
  auto requests = recorded_requests("gemini-cli.jsonl");
  answer_gemini(ask(requests[0]), {{"functionCall", {{"name", "run_shell_command"}}}});
  EXPECT_NE(reported_now().find("tool_call run_shell_command #request-1.1 '{}'"),
            std::string::npos);
  ask(requests[1]);
  EXPECT_EQ(reported_now().find("tool_result run_shell_command #request-1.1 "), 0U);
}

TEST_F(RecordedApi, a_request_for_a_title_is_not_the_agents_work) {
  const auto requests = recorded_requests("opencode.jsonl");
  ASSERT_EQ(requests.size(), 5U);
  // It comes first, and its answer last.
  const auto title = ask(requests[0]);
  EXPECT_EQ(reported_now(), "") << "nothing is known of the agent itself";
  const auto late = ask(requests[0]);
  const auto first = ask(requests[1]);
  EXPECT_EQ(reported_now(), "state_change input '\"SCENARIO:tools look around\"'; loop 1 model");
  const auto again = ask(requests[0]);
  EXPECT_EQ(reported_now(), "");
  answer_calls(first, {requests[2].at("body").at("messages")[2].at("tool_calls")[0]});
  EXPECT_EQ(reported_now().find("tool_call bash #call_tools_0"), 0U);
  answer_text(title, "A title");
  answer_text(late, "A title");
  EXPECT_EQ(reported_now(), "");
  const auto second = ask(requests[2]);
  EXPECT_NE(reported_now().find("loop 2 model"), std::string::npos);
  answer_text(second, "Done");
  EXPECT_EQ(reported_now(), "relay tokens=2; message assistant 'Done'; idle relay")
      << "the agent rests, whatever its helper still asks";
  answer_text(again, "A title");
  EXPECT_EQ(reported_now(), "");
  now += std::chrono::seconds{60};
  hear(recorder.beat(now));
  EXPECT_EQ(reported_now(), "");
}

TEST_F(RecordedApi, a_title_made_by_a_separate_thread_is_not_a_session) {
  auto title = recorded_requests("opencode.jsonl")[0];
  title.at("body").erase("messages");
  title.at("url") = "/v1/responses";
  title.at("body")["input"] = "Generate a concise, single-line task title";
  const auto from = [&](const char* source) {
    title.at("headers") = {
        {"user-agent", "codex-tui/0.169.0"},
        {"session-id", "01a205c3-f076-75c1-9eea-e836eaf4b022"},
        {"x-codex-turn-metadata", std::string(R"({"thread_source":")") + source + R"("})"}};
    return title;
  };
  ask(from("thread_title"));
  EXPECT_EQ(reported_now(), "");
  ask(from("user"));
  EXPECT_NE(reported_now(), "");
}

TEST_F(RecordedApi, a_request_without_tools_belongs_to_a_helper_of_an_agent_with_tools) {
  auto requests = recorded_requests("opencode.jsonl");
  answer_text(ask(requests[1]), "Done");
  reported.clear();
  auto summary = requests[1];
  summary.at("body").erase("tools");
  answer_text(ask(summary), "They looked around.");
  EXPECT_EQ(reported_now(), "");
  // Of an unknown program nobody knows that.
  for (auto* request : {&requests[1], &summary})
    request->at("headers") = {{"user-agent", "mine/1"}, {"x-session-id", "other"}};
  answer_text(ask(requests[1]), "Done");
  reported.clear();
  ask(summary);
  EXPECT_NE(reported_now(), "");
}

}  // namespace
}  // namespace watchdog::test
