// Messages of clients of each revision: what is answered, and with which code.

#include <gtest/gtest.h>

#include "mcp/brief.h"
#include "mcp/manual_server.h"
#include "mcp/tool_table.h"

namespace watchdog {
namespace {

using namespace monitor::mcp;
using test::document;
using test::ManualServer;

TEST(McpPeer, hostile_messages_get_the_code_that_fits) {
  struct Row {
    std::string text;
    int code;
    bool has_id;
  };
  const std::string deep(200, '[');
  const std::vector<Row> rows = {
      {"", rpc_parse_error, false},
      {"{", rpc_parse_error, false},
      {"\xff", rpc_parse_error, false},
      {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}", rpc_parse_error, false},
      {"7", rpc_invalid_request, false},
      {"null", rpc_invalid_request, false},
      {"[]", rpc_invalid_request, false},
      {R"([{"jsonrpc":"2.0","id":1,"method":"ping"}])", rpc_invalid_request, false},
      {deep, rpc_invalid_request, false},
      {R"({"id":1,"method":"ping"})", rpc_invalid_request, true},
      {R"({"jsonrpc":"1.0","id":1,"method":"ping"})", rpc_invalid_request, true},
      {R"({"jsonrpc":"2.0","id":1})", rpc_invalid_request, true},
      {R"({"jsonrpc":"2.0","id":1,"method":5})", rpc_invalid_request, true},
      {R"({"jsonrpc":"2.0","id":null,"method":"ping"})", rpc_invalid_request, false},
      {R"({"jsonrpc":"2.0","id":1.5,"method":"ping"})", rpc_invalid_request, false},
      {R"({"jsonrpc":"2.0","id":[],"method":"ping"})", rpc_invalid_request, false},
      {R"({"jsonrpc":"2.0","id":1,"method":"ping","params":[1]})", rpc_invalid_params, true},
      {R"({"jsonrpc":"2.0","id":1,"method":"nothing/here"})", rpc_method_not_found, true},
      {R"({"jsonrpc":"2.0","id":1,"method":"prompts/list"})", rpc_method_not_found, true},
      {R"({"jsonrpc":"2.0","id":1,"method":"server/discover"})", rpc_method_not_found, true},
      {R"({"jsonrpc":"2.0","id":1,"method":"tools/call"})", rpc_invalid_params, true},
      {R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rm"}})",
       rpc_invalid_params, true},
      {R"({"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}})",
       rpc_invalid_params, true},
      {R"({"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///etc/passwd"}})",
       rpc_resource_not_found, true},
      {R"({"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"watchdog://session/../x"}})",
       rpc_resource_not_found, true},
      {R"({"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"x"}})",
       rpc_invalid_params, true},
  };
  for (const auto& row : rows) {
    ManualServer server;
    server.accept(row.text);
    ASSERT_EQ(server.sent.size(), 1U) << row.text;
    EXPECT_EQ(server.code(), row.code) << row.text << "\n" << server.last();
    EXPECT_EQ(server.last().contains("id"), row.has_id) << row.text;
  }
}

TEST(McpPeer, notifications_and_responses_get_no_answer) {
  ManualServer server;
  server.accept(R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
  server.accept(R"({"jsonrpc":"2.0","method":"nothing/here"})");
  server.accept(R"({"jsonrpc":"2.0","id":1,"result":{}})");
  server.accept(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}})");
  EXPECT_TRUE(server.sent.empty());
}

TEST(McpPeer, initialize_agrees_on_a_revision) {
  for (const auto& [asked, given] :
       std::vector<std::pair<std::string, std::string>>{{"2025-11-25", "2025-11-25"},
                                                        {"2025-06-18", "2025-06-18"},
                                                        {"2025-03-26", "2025-03-26"},
                                                        {"2024-11-05", "2025-11-25"},
                                                        {"2026-07-28", "2025-11-25"},
                                                        {"", "2025-11-25"}}) {
    ManualServer server;
    server.request("initialize", {{"protocolVersion", asked}});
    EXPECT_EQ(server.result()["protocolVersion"], given) << asked;
    EXPECT_EQ(server.result()["serverInfo"]["version"], "1.2.3");
    EXPECT_EQ(server.result()["capabilities"].contains("tasks"), given == "2025-11-25");
    server.request("tools/list");
    ASSERT_EQ(server.result()["tools"].size(), 9U) << server.last();
    const auto wait = server.result()["tools"][4];
    EXPECT_EQ(wait["name"], "wait");
    EXPECT_EQ(wait.contains("execution"), given == "2025-11-25");
    EXPECT_EQ(wait.contains("outputSchema"), given != "2025-03-26");
    server.request("tasks/list");
    EXPECT_EQ(server.code(), given == "2025-11-25" ? 0 : rpc_method_not_found) << given;
  }
}

TEST(McpPeer, modern_requests_say_everything_themselves) {
  ManualServer server;
  server.modern("server/discover");
  EXPECT_EQ(server.result()["supportedVersions"][0], "2026-07-28");
  EXPECT_EQ(server.result()["resultType"], "complete");
  EXPECT_TRUE(server.result()["capabilities"]["extensions"].contains(tasks_extension));
  server.modern("tools/list");
  EXPECT_EQ(server.result()["cacheScope"], "private");
  EXPECT_GT(server.result()["ttlMs"], 0);
  for (const auto* gone :
       {"initialize", "ping", "resources/subscribe", "tasks/list", "tasks/result"}) {
    server.modern(gone, {}, true);
    EXPECT_EQ(server.code(), rpc_method_not_found) << gone;
  }
  server.request("tools/list", {{"_meta", {{meta_version, "1900-01-01"}}}});
  EXPECT_EQ(server.code(), rpc_unsupported_version);
  EXPECT_EQ(server.last()["error"]["data"]["requested"], "1900-01-01");
  EXPECT_EQ(server.last()["error"]["data"]["supported"][0], "2026-07-28");
  server.request("tools/list", {{"_meta", {{meta_version, "2026-07-28"}}}});
  EXPECT_EQ(server.code(), rpc_invalid_params);
  for (const auto* method : {"tasks/get", "tasks/update", "tasks/cancel"}) {
    server.modern(method, {{"taskId", "x"}});
    EXPECT_EQ(server.code(), rpc_missing_capability) << method;
    EXPECT_TRUE(server.last()["error"]["data"]["requiredCapabilities"]["extensions"].contains(
        tasks_extension));
    server.modern(method, {{"taskId", "x"}}, true);
    EXPECT_EQ(server.code(), rpc_invalid_params) << method;
  }
  server.modern("resources/read", {{"uri", "watchdog://nothing"}});
  EXPECT_EQ(server.code(), rpc_invalid_params);
}

TEST(McpPeer, arguments_are_checked_against_the_schema_that_is_shown) {
  struct Row {
    std::string tool;
    json arguments;
    std::string says;  // empty: it may be called
  };
  const std::vector<Row> rows = {
      {"agents", json::object(), ""},
      {"agents", {{"attention", {"needs_you", "watch"}}}, ""},
      {"agents", {{"attention", "needs_you"}}, "attention must be a list"},
      {"agents", {{"attention", {"x"}}}, "attention has an item that must be one of"},
      {"agents", {{"health", {"well"}}}, "health has an item that must be one of"},
      {"agents", {{"limit", 0}}, "limit must be from 1 to 200"},
      {"agents", {{"limit", 18446744073709551615ULL}}, "limit must be from 1 to 200"},
      {"agents", {{"limit", 5.5}}, "limit must be an integer"},
      {"agents", {{"limt", 5}}, "limit"},
      {"agents", json::array(), "object"},
      {"agent", json::object(), "session is missing"},
      {"agent", {{"session", std::string(200, 'a')}}, "at most 128 bytes"},
      {"wait", {{"session", "s"}, {"seconds", 51}}, "seconds must be from 1 to 50"},
      {"report", {{"session", "s"}, {"kind", "done"}}, "kind must be one of"},
      {"report", {{"kind", "progress"}}, "session is missing"},
      {"cancel", {{"session", "s"}, {"reason", 5}}, "reason must be a text"},
  };
  for (const auto& row : rows) {
    const auto misuse = misuse_of(schema_of(row.tool, false), row.arguments);
    if (row.says.empty()) {
      EXPECT_FALSE(misuse) << row.tool << row.arguments;
      continue;
    }
    ASSERT_TRUE(misuse) << row.tool << row.arguments;
    EXPECT_NE(misuse->find(row.says), std::string::npos) << *misuse;
  }
  EXPECT_FALSE(misuse_of(schema_of("report", true), {{"kind", "progress"}}));
}

TEST(McpPeer, tools_have_hints_for_clients_that_ask_people) {
  for (const auto& tool : tool_list(Revision::v2026_07_28, false)) {
    const auto name = tool["name"].get<std::string>();
    const bool acts = name == "cancel" || name == "abort_call";
    const bool writes = acts || name == "report" || name == "check";
    EXPECT_EQ(tool["annotations"]["readOnlyHint"], !writes) << name;
    EXPECT_EQ(tool["annotations"]["destructiveHint"], acts) << name;
    EXPECT_EQ(tool["inputSchema"]["type"], "object");
    EXPECT_EQ(tool["outputSchema"]["type"], "object");
  }
}

TEST(McpPeer, tools_ask_the_api) {
  ManualServer server;
  server.source->answers = {
      {"/api/autonomous/progress?",
       {.body = json{{"sessions", {document("stuck", 5)}}, {"total", 1}}.dump()}},
      {"/api/autonomous/progress/s", {.body = document("stuck", 5).dump()}},
      {"/api/autonomous/sessions/s/events?before=",
       {.body = R"({"events":[{"seq":5,"at_ms":1,"kind":"message","text":"hi"}],"next":null})"}},
      {"/api/autonomous/sessions/s/transitions",
       {.body =
            R"({"transitions":[{"id":1,"seq":4,"at":1,"from":"unknown","health":"stuck","reason":"r","evidence":[{"seq":4,"note":"n"}]}],"next":null})"}},
      {"/api/autonomous/sessions/s/cancel",
       {.body = R"({"ok":true,"ended":false,"message":"told"})"}},
      {"/api/autonomous/sessions/s/events?source=mcp",
       {.body = R"({"directive":{"cancel":{"by":"ann","reason":"enough"}}})"}},
      {"/api/turns/t%2F1/abort-tool/c", {.body = "{}"}},
  };
  server.call("agents", {{"attention", {"needs_you"}}, {"label", "a:b c"}, {"limit", 7}});
  EXPECT_EQ(server.source->questions.back().target,
            "/api/autonomous/progress?sort=attention&limit=7&attention=needs_you&label=a%3Ab%20c");
  EXPECT_EQ(server.structured()["agents"][0]["state"], "stuck");
  // A health is one or two states: those of which the API lists sessions.
  server.call("agents", {{"health", {"blocked", "stuck"}}});
  EXPECT_EQ(server.source->questions.back().target,
            "/api/autonomous/progress?sort=attention&limit=50&state=needs_input,waiting,stuck");
  server.call("agents", {{"health", {"blocked", "stuck"}}, {"state", {"waiting", "idle"}}});
  EXPECT_EQ(server.source->questions.back().target,
            "/api/autonomous/progress?sort=attention&limit=50&state=waiting");
  const auto asked = server.source->questions.size();
  server.call("agents", {{"health", {"stuck"}}, {"state", {"idle"}}});
  EXPECT_EQ(server.source->questions.size(), asked) << "no session can have both";
  EXPECT_EQ(server.structured()["total"], 0);
  EXPECT_EQ(json::parse(server.result()["content"][0]["text"].get<std::string>()),
            server.structured());
  server.call("agent", {{"session", "s"}});
  EXPECT_EQ(server.structured()["recent"][0]["seq"], 5);
  server.call("explain", {{"session", "s"}});
  EXPECT_EQ(server.structured()["changes"][0]["evidence"][0], "event 4: n");
  server.call("cancel", {{"session", "s"}, {"reason", "r"}});
  EXPECT_EQ(server.structured()["message"], "told");
  EXPECT_EQ(server.source->questions.back().method, monitor::Method::post);
  server.call("abort_call", {{"turn", "t/1"}, {"call", "c"}});
  EXPECT_EQ(server.structured()["requested"], true);
  for (const auto& [kind, stored] :
       std::vector<std::pair<std::string, std::string>>{{"progress", "state_change"},
                                                        {"blocked", "wait"},
                                                        {"unblocked", "resume"},
                                                        {"quiet", "heartbeat"}}) {
    server.call("report", {{"session", "s"}, {"kind", kind}, {"seconds", 5}});
    EXPECT_EQ(json::parse(server.source->questions.back().body)["kind"], stored);
    EXPECT_EQ(server.structured()["stop"], "Stop now: ann asks for it. enough");
  }
  server.call("agent", {{"session", "nobody"}});
  EXPECT_EQ(server.result()["isError"], true);
  EXPECT_FALSE(server.result().contains("structuredContent"));
  server.call("agent", {{"session", "../metrics"}});
  EXPECT_EQ(server.result()["isError"], true);
}

TEST(McpPeer, a_pending_check_is_looked_at_until_it_is_done) {
  ManualServer server;
  server.source->answers = {
      {"/api/autonomous/check-status",
       {.status = 202, .body = R"({"checkId":"c","state":"pending","status":null})"}}};
  server.call("check", {{"session", "s"}});
  EXPECT_TRUE(server.sent.empty());
  server.loop.pass(Millis{2'000});
  server.source->answers = {
      {"/api/autonomous/check-status",
       {.body = R"({"checkId":"c","state":"done","status":"B","reason":"same call"})"}}};
  server.loop.pass(Millis{1'000});
  EXPECT_EQ(server.structured()["meaning"], "it is stuck in a loop");
  server.source->answers = {{"/api/autonomous/check-status",
                             {.body = R"({"checkId":"c","state":"pending","status":null})"}}};
  server.call("check", {{"session", "s"}, {"check", "c"}});
  server.loop.pass(Millis{59'000});
  EXPECT_EQ(server.structured()["state"], "pending");
  EXPECT_TRUE(server.structured()["continue"].is_string());
}

TEST(McpPeer, results_are_bounded_and_say_what_was_cut) {
  ManualServer server;
  json sessions = json::array();
  for (int i = 0; i < 200; ++i)
    sessions.push_back(document(
        "stuck", i,
        {{"reason", std::string(3'000, 'x')}, {"labels", {{"k", std::string(200, 'y')}}}}));
  server.source->answers = {
      {"/api/autonomous/progress?", {.body = json{{"sessions", sessions}, {"total", 900}}.dump()}}};
  server.call("agents", {{"limit", 200}});
  EXPECT_LE(server.structured().dump().size(), result_bytes_max);
  EXPECT_GT(server.structured()["agents"].size(), 10U);
  EXPECT_NE(server.structured()["cut"].get<std::string>().find("left out"), std::string::npos);
  // Whatever a value is: random trees, and one endless text.
  json hostile = {{"text", std::string(300'000, '"')}, {"deep", json::array()}};
  for (int i = 0; i < 30'000; ++i) hostile["deep"].push_back({{"n", i}});
  for (int i = 0; i < 5'000; ++i) hostile["m"]["key" + std::to_string(i)] = {i};
  bound(hostile, result_bytes_max);
  EXPECT_TRUE(hostile["cut"].is_string());
  EXPECT_LE(hostile["text"].dump().size(), 20'000U);
}

TEST(McpPeer, too_many_requests_at_once_are_refused) {
  ManualServer server;
  for (std::size_t id = 0; id < Peer::requests_max; ++id)
    server.request("tools/call", {{"name", "wait"}, {"arguments", {{"session", "s"}}}}, id);
  EXPECT_TRUE(server.sent.empty());
  server.request("tools/call", {{"name", "wait"}, {"arguments", {{"session", "s"}}}}, 5);
  EXPECT_EQ(server.code(), rpc_invalid_request);
  server.request("ping", {}, "one more");
  EXPECT_EQ(server.code(), rpc_internal_error);
  EXPECT_EQ(server.source->open_streams(), Peer::requests_max);
  server.peer->close();
  EXPECT_EQ(server.source->open_streams(), 0U);
}

TEST(McpPeer, resources_are_read_and_watched) {
  ManualServer server;
  server.source->answers = {
      {"/api/autonomous/progress?",
       {.body = json{{"sessions", {document("stuck", 5)}}, {"total", 1}}.dump()}},
      {"/api/autonomous/progress/s", {.body = document("stuck", 5).dump()}}};
  server.request("resources/list");
  EXPECT_EQ(server.result()["resources"][0]["uri"], "watchdog://sessions");
  server.request("resources/read", {{"uri", "watchdog://sessions"}});
  EXPECT_EQ(json::parse(server.result()["contents"][0]["text"].get<std::string>())["total"], 1);
  server.request("resources/read", {{"uri", "watchdog://session/s"}});
  EXPECT_EQ(json::parse(server.result()["contents"][0]["text"].get<std::string>())["state"],
            "stuck");
  server.modern("resources/read", {{"uri", "watchdog://session/s"}});
  EXPECT_EQ(server.result()["cacheScope"], "private");
  server.request("resources/subscribe", {{"uri", "watchdog://session/s"}});
  const auto before = server.sent.size();
  for (int i = 0; i < 10; ++i) server.announce(document("stuck", 6 + i));
  server.loop.pass(Millis{1'000});
  ASSERT_EQ(server.sent.size(), before + 1);  // ten changes in one second are one notification
  EXPECT_EQ(server.last()["method"], "notifications/resources/updated");
  EXPECT_EQ(server.last()["params"]["uri"], "watchdog://session/s");
  server.request("resources/unsubscribe", {{"uri", "watchdog://session/s"}});
  EXPECT_EQ(server.source->open_streams(), 0U);
}

TEST(McpPeer, subscriptions_name_their_request) {
  ManualServer server;
  server.modern("subscriptions/listen",
                {{"notifications",
                  {{"resourceSubscriptions", {"watchdog://sessions", "file:///x"}},
                   {"toolsListChanged", true}}}},
                false, "sub");
  ASSERT_EQ(server.sent.size(), 1U);
  EXPECT_EQ(server.last()["method"], "notifications/subscriptions/acknowledged");
  EXPECT_EQ(server.last()["params"]["_meta"][meta_subscription], "sub");
  EXPECT_EQ(server.last()["params"]["notifications"],
            json({{"resourceSubscriptions", {"watchdog://sessions"}}}));
  server.announce(json::object());
  server.loop.pass(Millis{1'000});
  EXPECT_EQ(server.last()["method"], "notifications/resources/updated");
  EXPECT_EQ(server.last()["params"]["_meta"][meta_subscription], "sub");
  server.accept(
      R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"sub"}})");
  EXPECT_EQ(server.source->open_streams(), 0U);
  server.modern("subscriptions/listen", {{"notifications", {{"taskIds", {"x"}}}}});
  EXPECT_EQ(server.code(), rpc_missing_capability);
}

}  // namespace
}  // namespace watchdog
