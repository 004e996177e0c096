// Whom a tool that stops something asks, and which tools a token shows.

#include <gtest/gtest.h>

#include "mcp/manual_server.h"
#include "mcp/tool_table.h"

namespace watchdog {
namespace {

using namespace monitor::mcp;
using test::ManualServer;

std::string access_of(std::vector<std::string> scopes, const json& name = "bot") {
  return json{{"scopes", scopes}, {"name", name}}.dump();
}

std::vector<std::string> listed(const std::string& access) {
  ManualServer server;
  if (!access.empty()) server.source->answers = {{"/api/access", {.body = access}}};
  server.request("tools/list");
  std::vector<std::string> names;
  const auto result = server.result();
  for (const auto& tool : result["tools"]) names.push_back(tool["name"]);
  return names;
}

TEST(McpAccess, a_token_lists_the_tools_that_it_permits) {
  using Names = std::vector<std::string>;
  const Names all{"agents", "agent", "explain", "bundle",    "wait",
                  "report", "check", "cancel",  "abort_call"};
  EXPECT_EQ(listed(access_of({"read", "report", "act"})), all);
  EXPECT_EQ(listed(access_of({"report"})), Names{"report"});
  EXPECT_EQ(listed(access_of({"read"})), (Names{"agents", "agent", "explain", "bundle", "wait"}));
  EXPECT_EQ(listed(access_of({"act"})), (Names{"cancel", "abort_call"}));
  EXPECT_EQ(listed(access_of({"read", "report"})), Names(all.begin(), all.begin() + 7));
  EXPECT_EQ(listed(access_of({"read", "report"}, nullptr)), all) << "a call says what is missing";
  for (const auto* unknown : {"", "{}", "[]", "no JSON", R"({"scopes":7,"name":"x"})"})
    EXPECT_EQ(listed(unknown), all) << unknown;
}

TEST(McpAccess, a_monitor_that_does_not_answer_keeps_no_client_from_its_tools) {
  ManualServer server;
  server.source->is_silent = true;
  server.request("tools/list");
  server.loop.pass(access_max - Millis{1});
  EXPECT_TRUE(server.sent.empty());
  server.loop.pass(Millis{1});
  EXPECT_EQ(server.result()["tools"].size(), 9U);
  server.loop.pass(Millis{60'000});
  EXPECT_EQ(server.sent.size(), 1U);
}

TEST(McpAccess, a_report_is_about_the_own_session_alone) {
  ManualServer server;
  server.context.own_session = "own";
  server.source->answers = {{"/api/autonomous/sessions/own/events", {.body = "{}"}}};
  for (const auto& arguments :
       {json{{"kind", "progress"}}, json{{"kind", "progress"}, {"session", "own"}}}) {
    server.call("report", arguments);
    EXPECT_EQ(server.structured()["stored"], true) << server.last();
  }
  const auto asked = server.source->questions.size();
  server.call("report", {{"kind", "progress"}, {"session", "other"}});
  EXPECT_EQ(server.result()["isError"], true);
  EXPECT_EQ(server.source->questions.size(), asked);
}

/// A client that can ask its person.
struct AskingServer : ManualServer {
  explicit AskingServer(const json& elicitation = json::object()) {
    source->answers = {{"/api/access", {.body = access_of({"read", "report", "act"})}},
                       {"/api/autonomous/sessions/s/cancel",
                        {.body = R"({"ok":true,"ended":false,"message":"asked"})"}},
                       {"/api/turns/t/abort-tool/c", {.body = "{}"}}};
    request("initialize",
            {{"protocolVersion", "2025-11-25"}, {"capabilities", {{"elicitation", elicitation}}}});
  }
  [[nodiscard]] bool has_acted() const {
    return source->questions.back().method == monitor::Method::post;
  }
  void answer(const json& id, const json& result) {
    accept(json{{"jsonrpc", "2.0"}, {"id", id}, {"result", result}}.dump());
  }
};

TEST(McpConfirm, a_person_agrees_or_nothing_is_stopped) {
  for (const auto& [action, stops] : std::vector<std::pair<json, bool>>{
           {"accept", true}, {"decline", false}, {"cancel", false}, {"", false}, {7, false}}) {
    AskingServer server;
    server.call("cancel", {{"session", "s"}, {"reason", "it\nloops"}});
    const auto question = server.last();
    ASSERT_EQ(question["method"], "elicitation/create") << action;
    EXPECT_EQ(question["params"]["message"],
              "Stop the agent's session \"s\"? The reason given is: \"it loops\"");
    EXPECT_EQ(question["params"]["requestedSchema"]["type"], "object");
    EXPECT_FALSE(server.has_acted());
    server.answer("another", {{"action", "accept"}});
    EXPECT_FALSE(server.has_acted()) << "that is the answer to no question";
    server.answer(question["id"], {{"action", action}});
    EXPECT_EQ(server.has_acted(), stops) << action;
    EXPECT_EQ(server.result().value("isError", false), !stops) << action;
    const auto sent = server.sent.size();
    server.answer(question["id"], {{"action", "accept"}});
    EXPECT_EQ(server.sent.size(), sent) << "one answer counts";
  }
}

TEST(McpConfirm, a_client_that_cannot_ask_stops_nothing) {
  AskingServer server;
  server.call("abort_call", {{"turn", "t"}, {"call", "c"}});
  EXPECT_EQ(server.last()["params"]["message"], "Stop the call \"c\" of the agent's turn \"t\"?");
  server.accept(json{{"jsonrpc", "2.0"},
                     {"id", server.last()["id"]},
                     {"error", {{"code", -32601}, {"message", "unknown"}}}}
                    .dump());
  EXPECT_EQ(server.result()["isError"], true);
  EXPECT_FALSE(server.has_acted());
}

TEST(McpConfirm, a_question_goes_with_its_call) {
  AskingServer server;
  server.call("cancel", {{"session", "s"}});
  const auto id = server.last()["id"];
  server.accept(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
  server.answer(id, {{"action", "accept"}});
  EXPECT_FALSE(server.has_acted());
  EXPECT_TRUE(server.peer->is_idle());
  server.call("cancel", {{"session", "s"}});
  server.peer->end_waits();
  EXPECT_TRUE(server.peer->is_idle()) << "no answer comes after the end of the input";
}

TEST(McpConfirm, a_client_without_forms_decides_by_itself) {
  const std::vector<json> without = {nullptr, {{"url", json::object()}}, "yes"};
  for (const auto& elicitation : without) {
    AskingServer server(elicitation);
    server.call("cancel", {{"session", "s"}});
    EXPECT_TRUE(server.has_acted()) << elicitation;
  }
  AskingServer both({{"url", json::object()}, {"form", json::object()}});
  both.call("cancel", {{"session", "s"}});
  EXPECT_FALSE(both.has_acted());
}

TEST(McpConfirm, a_person_is_not_asked_for_what_the_monitor_refuses) {
  AskingServer server;
  server.source->answers = {
      {"/api/access", {.body = access_of({"read"})}},
      {"/api/autonomous/sessions/s/cancel",
       {.status = 403, .body = R"({"error":{"message":"it lacks the scope act"}})"}}};
  server.call("cancel", {{"session", "s"}});
  EXPECT_EQ(server.result()["isError"], true);
  EXPECT_NE(server.last().dump().find("scope act"), std::string::npos);
}

TEST(McpConfirm, in_2026_07_28_the_question_is_the_answer_and_the_client_calls_again) {
  AskingServer server;
  const auto call = [&](const json& reason, json more = json::object()) {
    json params = {{"name", "cancel"}, {"arguments", {{"session", "s"}, {"reason", reason}}}};
    params.update(more);
    params["_meta"] = {{meta_version, "2026-07-28"},
                       {meta_capabilities, {{"elicitation", {{"form", json::object()}}}}}};
    server.request("tools/call", params);
    return server.result();
  };
  const auto asked = call("r");
  ASSERT_EQ(asked["resultType"], "input_required") << server.last();
  const auto question = asked["inputRequests"]["confirm"];
  EXPECT_EQ(question["method"], "elicitation/create");
  EXPECT_EQ(question["params"]["mode"], "form");
  const auto with = [&](const json& action) {
    return json{{"inputResponses", {{"confirm", {{"action", action}}}}},
                {"requestState", asked["requestState"]}};
  };
  EXPECT_EQ(call("another reason", with("accept"))["resultType"], "input_required");
  EXPECT_EQ(call("r", {{"inputResponses", {{"confirm", {{"action", "accept"}}}}}})["resultType"],
            "input_required");
  EXPECT_FALSE(server.has_acted());
  EXPECT_EQ(call("r", with("decline"))["isError"], true);
  EXPECT_FALSE(server.has_acted());
  EXPECT_EQ(call("r", with("accept"))["structuredContent"]["message"], "asked");
  EXPECT_TRUE(server.has_acted());
}

}  // namespace
}  // namespace watchdog
