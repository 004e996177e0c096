// The proxy of tool servers without processes: each message of the client and of the server, and
// what becomes of it. The time is a number.
#include "mcp/proxy/call_book.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "mcp/proxy/document_lines.h"
#include "mcp/proxy/progress_token.h"
#include "watchdog/report.h"

namespace watchdog::test {
namespace {

using monitor::mcp::CallBook;
using monitor::mcp::json;
using monitor::mcp::with_progress_token;

class Ends final : public monitor::mcp::CallBookEnds {
 public:
  void to_client(std::string message) override { client.push_back(std::move(message)); }
  void to_server(std::string message) override { server.push_back(std::move(message)); }
  void report(const monitor::mcp::CallOwner& owner, Report report) override {
    sessions.push_back(owner.session);
    traces.push_back(owner.trace);
    reports.push_back(std::move(report));
  }
  void tell(const std::string& words) override { told.push_back(words); }
  std::vector<std::string> client;
  std::vector<std::string> server;
  std::vector<std::string> told;
  std::vector<std::string> sessions;
  std::vector<std::string> traces;
  std::vector<Report> reports;
};

struct Proxied {
  explicit Proxied(CallBook::Options options = {}) : book(ends, std::move(options)) {}

  void client(const std::string& text) { book.from_client(text, now); }
  void server(const std::string& text) { book.from_server(text, now); }
  /// Steps as the loop does.
  void pass(double seconds) {
    const auto end = now + Millis{static_cast<std::int64_t>(seconds * 1'000)};
    while (now < end) {
      now = std::min(end, now + book.next(now).value_or(Millis{1'000}));
      book.tick(now);
    }
  }
  [[nodiscard]] json last_to_client() const { return json::parse(ends.client.back()); }
  [[nodiscard]] json last_to_server() const { return json::parse(ends.server.back()); }
  [[nodiscard]] std::string words() const {
    return last_to_client()["result"]["content"][0]["text"];
  }

  Ends ends;
  CallBook book;
  Instant now{Millis{1'000'000}};
};

constexpr const char* call_1 =
    R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"build","arguments":{"n":1.50}}})";
constexpr const char* result_1 =
    R"({"jsonrpc":"2.0", "id":1, "result":{"content":[{"type":"text","text":"ok"}]}})";

std::string call_of(const std::string& id, const std::string& meta = "{}") {
  return R"({"jsonrpc":"2.0","id":)" + id +
         R"(,"method":"tools/call","params":{"name":"build","_meta":)" + meta + "}}";
}
std::string progress_of(const std::string& token, double value, const std::string& words = "") {
  return json{
      {"jsonrpc", "2.0"},
      {"method", "notifications/progress"},
      {"params", {{"progressToken", json::parse(token)}, {"progress", value}, {"message", words}}}}
      .dump();
}

TEST(CallBook, PassesAllButCallsByteForByte) {
  const std::vector<std::string> texts = {
      R"({ "jsonrpc":"2.0", "id": 1, "method":"initialize", "params":{"x":1.0e0,"y":"\u00e4"}})",
      R"({"jsonrpc":"2.0","method":"notifications/initialized"})",
      R"({"jsonrpc":"2.0","id":"a","method":"tools/list","params":{"cursor":"x"}})",
      R"([{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"x"}}])",
      "not JSON",
      "{",
      "",
      "[[[[",
      R"({"id":null})",
      R"({"jsonrpc":"2.0","id":{},"method":5})",
      std::string(5'000, '['),
      "\xff\xfe",
      R"({"jsonrpc":"2.0","id":3,"method":"tools/call","params":[]})",
      call_of("4", R"({"progressToken":7})")};
  Proxied proxied;
  for (const auto& text : texts) proxied.client(text);
  EXPECT_EQ(proxied.ends.server, texts);
  EXPECT_TRUE(proxied.ends.client.empty());
  // A client may be strict, so of a server only what looks like messages passes.
  Proxied back;
  std::vector<std::string> messages;
  for (const auto& text : texts) {
    back.server(text);
    if (text.find("jsonrpc") != std::string::npos) messages.push_back(text);
  }
  EXPECT_EQ(back.ends.client, messages);
  EXPECT_EQ(back.book.tally().junk, 6);
  EXPECT_EQ(back.ends.told.size(), 6U) << "five, and that no more are told";
}

TEST(CallBook, KeepsLinesOfALogFromTheClient) {
  Proxied proxied;
  for (const auto* text :
       {"Press server 2.0 listens …", "[info] {\"jsonrpc\": 2}", R"({"level":"info","id":7})",
        R"({"level":"info","jsonrpc":false,"id":8,"result":null})", "null", "42"}) {
    proxied.server(text);
  }
  ASSERT_FALSE(proxied.ends.told.empty());
  EXPECT_NE(proxied.ends.told[0].find("Press server"), std::string::npos);
  proxied.server(std::string("\xEF\xBB\xBF") + result_1);
  ASSERT_EQ(proxied.ends.client.size(), 2U);
  EXPECT_EQ(proxied.ends.client[1], result_1) << "without the mark of its byte order";
}

TEST(CallBook, TellsOfAServerThatDoesNotAnswer) {
  Proxied proxied;
  proxied.client(R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{}})");
  proxied.pass(19);
  EXPECT_TRUE(proxied.ends.told.empty());
  proxied.pass(30);
  EXPECT_EQ(proxied.ends.told, std::vector<std::string>{"the tool server has not answered "
                                                        "\"initialize\" for 20 s; the client still "
                                                        "waits for it"});
  EXPECT_TRUE(proxied.ends.client.empty());
}

TEST(CallBook, SaysThatACallDidNotBeginWhereThatIsKnown) {
  Proxied proxied;
  proxied.client(call_1);
  proxied.book.fail_request({}, "the tool server did not answer: Connection refused", false);
  EXPECT_NE(proxied.words().find("refused. Effects: none - it did not begin."), std::string::npos)
      << proxied.words();
  proxied.client(call_1);
  proxied.book.server_gone("the tool server exited with code 1", proxied.now);
  EXPECT_NE(proxied.words().find("Effects: unknown"), std::string::npos) << proxied.words();
  proxied.client(call_1);
  proxied.book.server_gone("the tool server cannot be started", proxied.now);
  EXPECT_NE(proxied.words().find("Effects: none"), std::string::npos) << "it was never sent";
}

TEST(DocumentLines, JoinsTheLinesOfAMessage) {
  struct Row {
    const char* name;
    std::vector<std::string> lines;
    std::vector<std::string> texts;
  };
  const std::string whole = R"({"id":1,"result":{}})";
  for (const auto& [name, lines, texts] :
       std::vector<Row>{{"one line", {whole, "a log"}, {whole, "a log"}},
                        {"indented",
                         {"\xEF\xBB\xBF{", R"(  "id": 1,)", R"(  "result": {"a": "}{",)",
                          R"(    "b": [1,2]})", "}\r"},
                         {R"({   "id": 1,   "result": {"a": "}{",     "b": [1,2]} })"}},
                        {"a log that begins like a document",
                         {"[press] listens, {", "{", R"( "id": 1, "result": {})", "}"},
                         {"[press] listens, {", R"({  "id": 1, "result": {} })"}},
                        {"a log before a whole message",
                         {"queue: [", "rows {", "[", whole},
                         {"queue: [", "rows {", "[", whole}},
                        {"a log in brackets", {"[info] ready"}, {"[info] ready"}}}) {
    monitor::mcp::DocumentLines joined;
    std::vector<std::string> got;
    for (const auto& line : lines)
      joined.add(line, [&](std::string text) { got.push_back(std::move(text)); });
    EXPECT_EQ(got, texts) << name;
  }
}

TEST(CallBook, ReportsACallAndItsResult) {
  Proxied proxied;
  proxied.client(call_of("1", R"({"progressToken":1,"claudecode/toolUseId":"toolu_1"})"));
  proxied.server(result_1);
  EXPECT_EQ(proxied.ends.client.back(), result_1);
  proxied.client(call_of(R"("1")", R"({"progressToken":1,"ai.opencode/sessionID":"ses_1"})"));
  proxied.server(
      R"({"jsonrpc":"2.0","id":"1","result":{"isError":true,"content":[{"type":"text","text":"no"},{"type":"image","data":""}]}})");
  proxied.client(call_of("2", R"({"progressToken":1,"threadId":"t1","callId":"c1"})"));
  proxied.server(R"({"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"bad"}})");
  struct Row {
    ReportKind kind;
    const char* session;
    const char* call;
    const char* content;
  };
  const std::vector<Row> rows = {
      {ReportKind::tool_call, "", "toolu_1", "{}"}, {ReportKind::tool_result, "", "toolu_1", "ok"},
      {ReportKind::tool_call, "ses_1", "", "{}"},   {ReportKind::error, "ses_1", "", "no\n[image]"},
      {ReportKind::tool_call, "t1", "c1", "{}"},    {ReportKind::error, "t1", "c1", "bad"}};
  ASSERT_EQ(proxied.ends.reports.size(), rows.size());
  for (std::size_t at = 0; at < rows.size(); ++at) {
    EXPECT_EQ(proxied.ends.reports[at].kind, rows[at].kind) << at;
    EXPECT_EQ(proxied.ends.reports[at].name, "build");
    EXPECT_EQ(proxied.ends.sessions[at], rows[at].session) << at;
    EXPECT_EQ(proxied.ends.reports[at].call_id, rows[at].call) << at;
    EXPECT_EQ(proxied.ends.reports[at].content, rows[at].content) << at;
  }
}

TEST(CallBook, ReportsTheTraceOfACallWithoutANamedSession) {
  const std::string trace = "4bf92f3577b34da6a3ce929d0e0e4736";
  const auto parent = [](const std::string& text) {
    return R"({"progressToken":1,"traceparent":")" + text + R"("})";
  };
  const std::string valid = "00-" + trace + "-00f067aa0ba902b7-01";
  const std::string named = R"({"threadId":"t1","traceparent":")" + valid + R"("})";
  const std::vector<std::pair<std::string, std::string>> rows = {
      {parent(valid), trace},
      {named, ""},
      {R"({"traceparent":5})", ""},
      {parent(""), ""},
      {parent(trace), ""},
      {parent("00-" + std::string(32, '0') + "-00f067aa0ba902b7-01"), ""},
      {parent("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"), ""}};
  for (const auto& [meta, wanted] : rows) {
    Proxied proxied;
    proxied.client(call_of("1", meta));
    proxied.server(result_1);
    const std::vector<std::string> both(2, wanted);
    EXPECT_EQ(proxied.ends.traces, both) << meta;
  }
}

TEST(CallBook, AsksForProgressAndSwallowsIt) {
  Proxied proxied;
  proxied.client(call_1);
  const auto sent = proxied.ends.server.back();
  const auto token = json::parse(sent)["params"]["_meta"]["progressToken"].get<std::string>();
  // Everything else is as it was, the number too.
  auto without = sent;
  const auto added = R"("_meta":{"progressToken":")" + token + R"("},)";
  without.erase(without.find(added), added.size());
  EXPECT_EQ(without, call_1);
  for (int at = 1; at <= 10; ++at) {
    proxied.pass(100);
    proxied.server(progress_of(json(token).dump(), at * 7.0));
  }
  EXPECT_TRUE(proxied.ends.client.empty());
  proxied.server(result_1);
  EXPECT_EQ(proxied.ends.client, std::vector<std::string>{result_1});
  // Also after the end of the call.
  proxied.server(progress_of(json(token).dump(), 99));
  EXPECT_EQ(proxied.ends.client.size(), 1U);
  EXPECT_EQ(proxied.book.tally().swallowed, 11);
}

TEST(CallBook, PutsTheTokenOnlyWhereTwoReadersAgree) {
  struct Row {
    const char* text;
    const char* made;
  };
  const std::vector<Row> rows = {
      {R"({"params":{}})", R"({"params":{"_meta":{"progressToken":"t"}}})"},
      {R"({"a":"}{\"","params" : { "name":"x"}})",
       R"({"a":"}{\"","params" : {"_meta":{"progressToken":"t"}, "name":"x"}})"},
      {R"({"params":{"_meta":{}}})", R"({"params":{"_meta":{"progressToken":"t"}}})"},
      {R"({"params":{"b":[{"_meta":1}],"_meta":{"k":1}}})",
       R"({"params":{"b":[{"_meta":1}],"_meta":{"progressToken":"t","k":1}}})"},
      {R"({"params":{},"params":{}})", nullptr},
      {R"({"params":{"_meta":null}})", nullptr},
      {R"({"params":{"\u005fmeta":{}}})", nullptr},
      {R"({"p\u0061rams":{},"params":{}})", nullptr},
      {R"({"params":{"_meta":{"progressToken":1}}})", nullptr},
      {R"({"params":[]})", nullptr},
      {R"({})", nullptr},
      {R"(5)", nullptr},
  };
  for (const auto& row : rows) {
    const auto made = with_progress_token(row.text, "t");
    EXPECT_EQ(made.has_value(), row.made != nullptr) << row.text;
    if (made && row.made != nullptr) {
      EXPECT_EQ(*made, row.made);
    }
  }
}

TEST(CallBook, GivesUpACallThatDoesNotMove) {
  Proxied proxied;
  proxied.client(call_1);
  proxied.pass(119);
  EXPECT_TRUE(proxied.ends.client.empty());
  proxied.pass(1);
  ASSERT_EQ(proxied.ends.client.size(), 1U);
  EXPECT_EQ(proxied.last_to_client()["id"], 1);
  EXPECT_EQ(proxied.last_to_client()["result"]["isError"], true);
  EXPECT_EQ(proxied.words(),
            "[TIMEOUT] Tool \"build\" made no progress for 120s (ran 120s).\n"
            "Effects: unknown - it may have partly run. Check the state before repeating it.\n"
            "State: still running in the background; its results will be ignored.\n"
            "Options: check the result with a read-only call before you repeat it.");
  EXPECT_EQ(proxied.last_to_server()["method"], "notifications/cancelled");
  EXPECT_EQ(proxied.last_to_server()["params"]["requestId"], 1);
  EXPECT_EQ(proxied.ends.reports.back().kind, ReportKind::tool_timeout);
  EXPECT_EQ(proxied.book.lingering(), 1U);
  // The late result is counted and dropped, once.
  proxied.server(result_1);
  EXPECT_EQ(proxied.ends.client.size(), 1U);
  EXPECT_EQ(proxied.book.tally().late, 1);
  EXPECT_EQ(proxied.book.lingering(), 0U);
  // The call was sent once.
  int calls = 0;
  for (const auto& text : proxied.ends.server) calls += json::parse(text)["method"] == "tools/call";
  EXPECT_EQ(calls, 1);
}

TEST(CallBook, WithoutADeadlineACallTakesAsLongAsItTakes) {
  CallBook::Options options;
  options.idle = std::nullopt;
  Proxied proxied(std::move(options));
  proxied.client(call_1);
  proxied.pass(100'000);
  EXPECT_TRUE(proxied.ends.client.empty());
}

TEST(CallBook, AStuckCallDelaysNoOther) {
  Proxied proxied;
  proxied.client(call_1);
  for (int at = 2; at < 100; ++at) {
    const auto id = std::to_string(at);
    proxied.client(call_of(id, R"({"progressToken":)" + id + "}"));
    proxied.server(R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":{"content":[]}})");
    EXPECT_EQ(proxied.last_to_client()["id"], at);
    proxied.pass(1);
  }
  EXPECT_EQ(proxied.book.open(), 1U);
}

TEST(CallBook, MovementOfAnyKindKeepsACallOpen) {
  Proxied proxied;
  proxied.client(call_of("1", R"({"progressToken":"p"})"));
  for (int at = 1; at < 20; ++at) {
    proxied.pass(100);
    if (at % 3 == 0) {
      proxied.server(progress_of("\"p\"", at, "step"));
    } else if (at % 3 == 1) {
      proxied.server(
          R"({"jsonrpc":"2.0","method":"notifications/message","params":{"data":"line )" +
          std::to_string(at) + R"("}})");
    } else {
      proxied.book.server_worked(proxied.now);
    }
  }
  EXPECT_EQ(proxied.book.open(), 1U);
  EXPECT_EQ(proxied.book.tally().given_up, 0);
}

TEST(CallBook, TellsTheClientOnlyOfRealMovement) {
  Proxied proxied;
  proxied.client(call_of("1", R"({"progressToken":"p"})"));
  proxied.pass(30);
  EXPECT_TRUE(proxied.ends.client.empty()) << "nothing moved";
  proxied.book.server_worked(proxied.now);
  proxied.pass(30);
  EXPECT_TRUE(proxied.ends.client.empty()) << "busy processes are no progress";
  proxied.server(progress_of("\"p\"", 5));
  ASSERT_EQ(proxied.ends.client.size(), 1U);
  proxied.pass(5);
  proxied.server(
      R"({"jsonrpc":"2.0","method":"notifications/message","params":{"data":"compiling b.c"}})");
  proxied.pass(2);
  // The message, and progress because of it.
  ASSERT_EQ(proxied.ends.client.size(), 3U);
  const auto made = proxied.last_to_client();
  EXPECT_EQ(made["params"]["progressToken"], "p");
  EXPECT_GT(made["params"]["progress"].get<double>(), 5);
  EXPECT_LT(made["params"]["progress"].get<double>(), 5.1);
  EXPECT_EQ(made["params"]["message"], "compiling b.c");
  proxied.pass(30);
  EXPECT_EQ(proxied.ends.client.size(), 3U);
  // The server's own goes on as it came, and always rises.
  const auto next = progress_of("\"p\"", 6);
  proxied.server(next);
  EXPECT_EQ(proxied.ends.client.back(), next);
}

TEST(CallBook, WaitsForAPersonWithoutADeadline) {
  Proxied proxied;
  proxied.client(call_1);
  proxied.server(R"({"jsonrpc":"2.0","id":0,"method":"elicitation/create","params":{}})");
  proxied.pass(10'000);
  EXPECT_EQ(proxied.book.open(), 1U);
  proxied.client(R"({"jsonrpc":"2.0","id":0,"result":{"action":"accept"}})");
  proxied.pass(119);
  EXPECT_EQ(proxied.book.open(), 1U);
  proxied.pass(2);
  EXPECT_EQ(proxied.book.open(), 0U);
}

TEST(CallBook, TheClientsCancelEndsTheWatch) {
  Proxied proxied;
  proxied.client(call_1);
  const std::string cancel =
      R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"timeout"}})";
  proxied.client(cancel);
  EXPECT_EQ(proxied.ends.server.back(), cancel);
  EXPECT_EQ(proxied.ends.reports.back().kind, ReportKind::error);
  proxied.pass(500);
  EXPECT_TRUE(proxied.ends.client.empty());
}

TEST(CallBook, AnswersEverythingWhenTheServerEnds) {
  Proxied proxied;
  const std::string begin =
      R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":{"name":"c"}}})";
  proxied.client(begin);
  proxied.server(R"({"jsonrpc":"2.0","id":0,"result":{}})");
  proxied.client(call_1);
  proxied.client(R"({"jsonrpc":"2.0","id":"l","method":"tools/list"})");
  proxied.ends.client.clear();
  proxied.ends.server.clear();
  proxied.book.server_gone("the tool server exited with code 3", proxied.now);
  ASSERT_EQ(proxied.ends.client.size(), 2U);
  EXPECT_EQ(json::parse(proxied.ends.client[0])["result"]["isError"], true);
  EXPECT_NE(proxied.ends.client[0].find("exited with code 3 before it answered. Effects: unknown"),
            std::string::npos);
  EXPECT_EQ(json::parse(proxied.ends.client[1])["error"]["message"],
            "the tool server exited with code 3 before it answered");
  // A call of meanwhile waits until the new process has begun.
  proxied.client(call_of("5", R"({"progressToken":5})"));
  EXPECT_TRUE(proxied.ends.server.empty());
  proxied.book.server_restarted();
  ASSERT_EQ(proxied.ends.server.size(), 1U);
  auto again = proxied.last_to_server();
  EXPECT_EQ(again["method"], "initialize");
  const auto id = again["id"];
  again["id"] = 0;
  EXPECT_EQ(again, json::parse(begin));
  proxied.server(json{{"jsonrpc", "2.0"}, {"id", id}, {"result", json::object()}}.dump());
  EXPECT_EQ(proxied.ends.client.size(), 2U) << "the client began once";
  ASSERT_EQ(proxied.ends.server.size(), 3U);
  EXPECT_EQ(json::parse(proxied.ends.server[1])["method"], "notifications/initialized");
  EXPECT_EQ(json::parse(proxied.ends.server[2])["id"], 5);
}

TEST(CallBook, AStatelessServerBeginsAgainWithNothing) {
  Proxied proxied;
  proxied.client(call_of("1", R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28"})"));
  proxied.book.server_gone("the tool server exited with code 0", proxied.now);
  EXPECT_EQ(proxied.last_to_client()["result"]["resultType"], "complete");
  proxied.ends.server.clear();
  proxied.book.server_restarted();
  EXPECT_TRUE(proxied.ends.server.empty()) << "no call is sent twice";
  proxied.client(call_of("2", R"({"progressToken":1})"));
  EXPECT_EQ(proxied.ends.server.size(), 1U);
}

constexpr const char* takes_tasks =
    R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}})";

TEST(CallBook, AClientThatTakesTasksGetsOneForALongCall) {
  Proxied proxied;
  proxied.client(call_of("1", takes_tasks));
  proxied.pass(19);
  EXPECT_TRUE(proxied.ends.client.empty());
  proxied.pass(2);
  ASSERT_EQ(proxied.ends.client.size(), 1U);
  const auto made = proxied.last_to_client()["result"];
  EXPECT_EQ(made["resultType"], "task");
  EXPECT_EQ(made["status"], "working");
  const auto get = [&](int id) {
    proxied.client(json{{"jsonrpc", "2.0"},
                        {"id", id},
                        {"method", "tasks/get"},
                        {"params", {{"taskId", made["taskId"]}}}}
                       .dump());
    return proxied.last_to_client()["result"];
  };
  EXPECT_EQ(get(2)["status"], "working");
  proxied.server(result_1);
  EXPECT_EQ(proxied.ends.client.size(), 2U) << "the result comes by the task";
  EXPECT_EQ(get(3)["status"], "completed");
  EXPECT_EQ(get(4)["result"]["content"][0]["text"], "ok");
  EXPECT_EQ(proxied.ends.server.size(), 1U) << "the server knows no such task";
}

TEST(CallBook, ATaskOfTheProxyIsGivenUpLikeItsCall) {
  Proxied proxied;
  proxied.client(call_of("1", takes_tasks));
  proxied.pass(130);
  const std::string id = json::parse(proxied.ends.client.front())["result"]["taskId"];
  EXPECT_EQ(proxied.ends.client.size(), 1U);
  proxied.client(R"({"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":")" + id +
                 "\"}}");
  EXPECT_EQ(proxied.last_to_client()["result"]["status"], "completed");
  EXPECT_EQ(proxied.last_to_client()["result"]["result"]["isError"], true);
}

TEST(CallBook, WatchesATaskOfTheServer) {
  const auto state = [](const char* id, const char* status, const char* words) {
    return json{{"jsonrpc", "2.0"},
                {"id", json::parse(id)},
                {"result",
                 {{"resultType", "complete"},
                  {"taskId", "T"},
                  {"status", status},
                  {"statusMessage", words},
                  {"lastUpdatedAt", words}}}}
        .dump();
  };
  Proxied proxied;
  proxied.client(call_of("1", takes_tasks));
  proxied.server(
      R"({"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"T","status":"working"}})");
  for (int at = 2; at < 8; ++at) {
    proxied.pass(100);
    const auto id = std::to_string(at);
    proxied.client(R"({"jsonrpc":"2.0","id":)" + id +
                   R"(,"method":"tasks/get","params":{"taskId":"T"}})");
    proxied.server(state(id.c_str(), "working", id.c_str()));
    EXPECT_EQ(proxied.last_to_client()["id"], at);
  }
  EXPECT_EQ(proxied.book.open(), 1U);
  proxied.pass(121);
  EXPECT_EQ(proxied.book.open(), 0U);
  EXPECT_EQ(proxied.last_to_server()["method"], "tasks/cancel");
  EXPECT_EQ(proxied.last_to_server()["params"]["taskId"], "T");
  EXPECT_EQ(proxied.ends.reports.back().kind, ReportKind::tool_timeout);
  const auto asked = proxied.ends.server.size();
  proxied.client(R"({"jsonrpc":"2.0","id":9,"method":"tasks/get","params":{"taskId":"T"}})");
  EXPECT_EQ(proxied.ends.server.size(), asked);
  EXPECT_EQ(proxied.last_to_client()["result"]["result"]["isError"], true);
}

TEST(CallBook, RefusesMoreCallsThanItsLimit) {
  CallBook::Options options;
  options.calls_max = 2;
  Proxied proxied(std::move(options));
  for (int at = 1; at <= 3; ++at) proxied.client(call_of(std::to_string(at)));
  EXPECT_EQ(proxied.ends.server.size(), 2U);
  EXPECT_EQ(proxied.last_to_client()["id"], 3);
  EXPECT_EQ(proxied.words().substr(0, 23), "[DENIED] Tool \"build\": ");
}

TEST(CallBook, AMachineThatSleptCostsNoCall) {
  Proxied proxied;
  proxied.client(call_1);
  proxied.pass(60);
  proxied.now += Millis{8 * 3'600'000};
  proxied.book.tick(proxied.now);
  EXPECT_EQ(proxied.book.open(), 1U);
  proxied.pass(70);
  EXPECT_EQ(proxied.book.open(), 0U);
}

}  // namespace
}  // namespace watchdog::test
