// Waits of clients that can do much and little: as a task, with progress, or bounded. Time is the
// test's.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "mcp/brief.h"
#include "mcp/manual_server.h"
#include "mcp/waiting.h"
#include "support/temp_dir.h"

namespace watchdog {
namespace {

using namespace monitor::mcp;
using test::document;
using test::ManualServer;

const json session = {{"session", "s"}};

TEST(McpWait, a_client_without_progress_gets_a_bounded_answer) {
  ManualServer server;
  server.call("wait", session);
  server.announce(document("progressing", 7));
  server.loop.pass(Millis{49'999});
  EXPECT_TRUE(server.sent.empty());
  server.loop.pass(Millis{1});
  ASSERT_EQ(server.sent.size(), 1U);
  const auto found = server.structured();
  EXPECT_EQ(found["came"], false);
  EXPECT_TRUE(found["end"].is_null());
  EXPECT_EQ(found["after"], 7);
  EXPECT_NE(found["continue"].get<std::string>().find("after=7"), std::string::npos);
  EXPECT_FALSE(server.result().contains("isError"));
  EXPECT_EQ(server.source->open_streams(), 0U);
  server.call("wait", {{"session", "s"}, {"seconds", 3}});
  server.loop.pass(Millis{3'000});
  EXPECT_EQ(server.sent.size(), 2U);
}

TEST(McpWait, goals) {
  struct Row {
    std::string until;
    std::vector<std::string> states;
    bool came;
    json end;
  };
  const std::vector<Row> rows = {
      {"", {"progressing", "completed"}, true, nullptr},
      {"end", {"failed"}, true, nullptr},
      {"completed", {"progressing", "failed"}, false, "ended"},
      {"failed", {"progressing", "failed"}, true, nullptr},
      {"state=needs_input", {"progressing", "needs_input"}, true, nullptr},
      {"attention=needs_you", {"progressing", "stuck"}, true, nullptr},
      {"attention=resting", {"completed"}, true, nullptr},
      {"state=idle", {"progressing", "completed"}, false, "ended"},
      {"health=stuck", {"progressing", "stuck"}, true, nullptr},
      {"end", {"progressing", "dead"}, false, "dead"},
      {"end", {"progressing", "stuck", "progressing", "completed"}, true, nullptr},
  };
  for (const auto& row : rows) {
    ManualServer server;
    server.source->answers = {
        {"/api/autonomous/sessions/s/events", {.body = R"({"events":[],"next":null})"}}};
    json arguments = session;
    if (!row.until.empty()) arguments["until"] = row.until;
    server.call("wait", arguments);
    std::int64_t seq = 0;
    for (const auto& state : row.states) {
      EXPECT_TRUE(server.sent.empty()) << row.until << " before " << state;
      server.announce(document(state, ++seq));
    }
    ASSERT_EQ(server.sent.size(), 1U) << row.until;
    EXPECT_EQ(server.structured()["came"], row.came) << row.until;
    EXPECT_EQ(server.structured()["end"], row.end) << row.until;
    EXPECT_TRUE(server.structured()["continue"].is_null());
  }
  for (const auto* wrong : {"state=tired", "attention=", "health=x", "never"}) {
    ManualServer server;
    server.call("wait", {{"session", "s"}, {"until", wrong}});
    EXPECT_EQ(server.result()["isError"], true) << wrong;
  }
}

std::string events(std::initializer_list<json> list) {
  return json{{"events", list}, {"next", nullptr}}.dump();
}

TEST(McpWait, a_state_change_counts_from_now_or_after_an_event) {
  for (const bool after : {false, true}) {
    ManualServer server;
    server.source->answers = {
        {"/api/autonomous/sessions/s/events?limit=1000&after=3",
         {.body = events({{{"seq", 5}, {"kind", "state_change"}, {"type", "built"}}})}},
        {"/api/autonomous/sessions/s/events", {.body = events({})}}};
    json arguments = {{"session", "s"}, {"until", "state-change=built"}};
    if (after) arguments["after"] = 3;
    server.call("wait", arguments);
    server.announce(document("progressing", 5));
    EXPECT_EQ(server.sent.size(), after ? 1U : 0U);
    if (after) continue;
    server.source->answers = {
        {"/api/autonomous/sessions/s/events?limit=1000&after=5",
         {.body = events({{{"seq", 6}, {"kind", "state_change"}, {"type", "tested"}},
                          {{"seq", 7}, {"kind", "state_change"}, {"type", "built"}}})}}};
    server.announce(document("progressing", 7));
    ASSERT_EQ(server.sent.size(), 1U);
    EXPECT_EQ(server.structured()["came"], true);
    EXPECT_EQ(server.structured()["after"], 7);
  }
}

TEST(McpWait, a_stuck_session_fails_a_wait_after_further_iterations_and_never_by_time) {
  ManualServer server;
  server.source->answers = {{"/api/autonomous/sessions/s/events", {.body = events({})}}};
  server.call("wait", session, {{"_meta", {{"progressToken", 1}}}});
  server.announce(document("stuck", 10));
  server.loop.pass(Millis{44'000});
  for (std::int64_t i = 1; i <= 3; ++i) {
    EXPECT_NE(server.last().value("id", 0), 1) << i;
    server.source->answers = {{"/api/autonomous/sessions/s/events",
                               {.body = events({{{"seq", 10 + i},
                                                 {"kind", "heartbeat"},
                                                 {"source", "loop"},
                                                 {"iteration", i},
                                                 {"count", 1},
                                                 {"fresh", 1}}})}}};
    server.announce(document("stuck", 10 + i));
  }
  EXPECT_EQ(server.structured()["end"], "stuck");
}

TEST(McpWait, progress_rises_and_comes_every_15_s_while_the_session_is_all_right) {
  ManualServer server;
  server.call("wait", session, {{"_meta", {{"progressToken", "token"}}}});
  server.announce(document("progressing", 100));
  std::mt19937_64 random(20'260'728);
  std::int64_t seq = 100;
  // Ten minutes, with changes at random.
  Millis longest{};
  Millis since{};
  std::size_t sent_before = server.sent.size();
  for (int second = 0; second < 600; ++second) {
    server.loop.pass(Millis{1'000});
    if (random() % 40 == 0)
      server.announce(document("progressing", seq += static_cast<std::int64_t>(random() % 3)));
    since += Millis{1'000};
    if (server.sent.size() > sent_before) since = Millis{0};
    sent_before = server.sent.size();
    longest = std::max(longest, since);
  }
  EXPECT_LE(longest, Millis{15'000});
  double before = -1;
  for (const auto& message : server.sent) {
    ASSERT_EQ(message["method"], "notifications/progress");
    EXPECT_EQ(message["params"]["progressToken"], "token");
    EXPECT_GT(message["params"]["progress"], before);
    EXPECT_FALSE(message["params"]["message"].get<std::string>().empty());
    before = message["params"]["progress"];
  }
  server.announce(document("completed", seq + 1));
  EXPECT_EQ(server.structured()["came"], true);
  const auto over = server.sent.size();
  server.loop.pass(Millis{100'000});
  EXPECT_EQ(server.sent.size(), over);
}

TEST(McpWait, progress_is_never_faked) {
  // In trouble, unreachable, or nothing is known yet: no more progress, and then an answer.
  for (const std::string trouble : {"stuck", "needs_input", "lost", "nothing"}) {
    ManualServer server;
    server.source->answers = {{"/api/autonomous/sessions/s/events", {.body = events({})}}};
    server.call("wait", session, {{"_meta", {{"progressToken", 5}}}});
    if (trouble == "lost") {
      server.announce(document("progressing", 1));
      server.source->streams.back()->listener.lost();
    } else if (trouble != "nothing") {
      server.announce(document(trouble, 1));
    }
    const auto sent_before = server.sent.size();
    server.loop.pass(Millis{44'999});
    EXPECT_EQ(server.sent.size(), sent_before) << trouble;
    server.loop.pass(Millis{1});
    ASSERT_EQ(server.sent.size(), sent_before + 1) << trouble;
    EXPECT_EQ(server.structured()["came"], false);
    EXPECT_TRUE(server.structured()["continue"].is_string());
  }
}

TEST(McpWait, a_cancelled_wait_ends_without_an_answer) {
  ManualServer server;
  server.call("wait", session);
  EXPECT_EQ(server.source->open_streams(), 1U);
  server.accept(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
  EXPECT_EQ(server.source->open_streams(), 0U);
  server.announce(document("completed", 1));
  server.loop.pass(Millis{100'000});
  EXPECT_TRUE(server.sent.empty());
}

TEST(McpWait, an_unknown_session_is_an_error) {
  ManualServer server;
  server.call("wait", session);
  server.source->streams.back()->listener.ended(
      {.status = 404, .body = R"({"error":{"message":"unknown session s"}})"});
  server.loop.run();
  EXPECT_EQ(server.result()["isError"], true);
  EXPECT_EQ(server.source->open_streams(), 0U);
}

TEST(McpTask, a_modern_client_gets_a_task) {
  ManualServer server;
  server.modern("tools/call",
                {{"name", "wait"}, {"arguments", session}, {"_meta", {{"progressToken", 1}}}},
                true);
  const auto task = server.result();
  EXPECT_EQ(task["resultType"], "task");
  EXPECT_EQ(task["status"], "working");
  EXPECT_EQ(task["pollIntervalMs"], 5'000);
  EXPECT_TRUE(task["ttlMs"].is_null());
  const json named = {{"taskId", task["taskId"]}};
  server.modern("subscriptions/listen",
                {{"notifications", {{"taskIds", {task["taskId"], "other"}}}}}, true, "sub");
  EXPECT_EQ(server.sent[1]["params"]["notifications"], json({{"taskIds", {task["taskId"]}}}));
  server.loop.pass(Millis{60'000});
  const auto quiet = server.sent.size();
  server.announce(document("progressing", 4));
  ASSERT_EQ(server.sent.size(), quiet + 1);  // a notification of the task, and no progress
  EXPECT_EQ(server.last()["method"], "notifications/tasks");
  EXPECT_EQ(server.last()["params"]["status"], "working");
  server.modern("tasks/get", named, true);
  EXPECT_EQ(server.result()["resultType"], "complete");
  EXPECT_NE(server.result()["statusMessage"].get<std::string>().find("progressing"),
            std::string::npos);
  EXPECT_GT(server.result()["lastUpdatedAt"], server.result()["createdAt"]);
  server.announce(document("completed", 5));
  server.modern("tasks/get", named, true);
  EXPECT_EQ(server.result()["status"], "completed");
  EXPECT_EQ(server.result()["result"]["structuredContent"]["came"], true);
  EXPECT_EQ(server.source->open_streams(), 0U);
  server.modern("tasks/cancel", named, true);
  EXPECT_EQ(server.code(), 0);
  server.loop.pass(TaskBook::kept_for + Millis{1});
  server.modern("tasks/get", named, true);
  EXPECT_EQ(server.code(), rpc_invalid_params);
}

TEST(McpTask, a_client_that_declares_none_gets_none) {
  ManualServer server;
  server.modern("tools/call", {{"name", "wait"}, {"arguments", session}});
  server.loop.pass(Millis{50'000});
  EXPECT_EQ(server.result()["resultType"], "complete");
  EXPECT_EQ(server.structured()["came"], false);
}

TEST(McpTask, the_older_form_has_a_result_that_blocks) {
  ManualServer server;
  server.request("initialize", {{"protocolVersion", "2025-11-25"}});
  server.call("agents", {}, {{"task", json::object()}});
  EXPECT_EQ(server.code(), rpc_method_not_found);
  server.call("wait", session, {{"task", {{"ttl", 60'000}}}});
  const auto task = server.result()["task"];
  EXPECT_EQ(task["status"], "working");
  EXPECT_EQ(task["pollInterval"], 5'000);
  const json named = {{"taskId", task["taskId"]}};
  const auto before = server.sent.size();
  server.request("tasks/result", named, "blocks");
  server.request("tasks/result", named, "gives up");
  server.accept(
      R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"gives up"}})");
  EXPECT_EQ(server.sent.size(), before);
  server.request("tasks/list");
  EXPECT_EQ(server.result()["tasks"][0]["taskId"], task["taskId"]);
  server.announce(document("completed", 5));
  EXPECT_EQ(server.last()["id"], "blocks");
  EXPECT_EQ(server.structured()["came"], true);
  EXPECT_EQ(server.result()["_meta"]["io.modelcontextprotocol/related-task"]["taskId"],
            task["taskId"]);
  server.request("tasks/cancel", named);
  EXPECT_EQ(server.code(), rpc_invalid_params);
}

/// A server that keeps its tasks in a file, as a monitor does.
struct KeepingServer : ManualServer {
  explicit KeepingServer(const std::filesystem::path& file) {
    const auto kept = context.tasks.keep_in(file);
    EXPECT_TRUE(kept.ok()) << (kept ? "" : kept.error().message);
  }
  ~KeepingServer() { context.tasks.clear(); }
  KeepingServer(const KeepingServer&) = delete;
  KeepingServer& operator=(const KeepingServer&) = delete;

  json begin(const json& arguments = session) {
    modern("tools/call", {{"name", "wait"}, {"arguments", arguments}}, true);
    return {{"taskId", result().value("taskId", json())}};
  }
  json get(const json& named) {
    modern("tasks/get", named, true);
    return result();
  }
};

TEST(McpTask, a_wait_goes_on_after_a_restart_and_misses_no_state_change) {
  const test::TempDir folder;
  const auto file = folder / "w.db-mcp-tasks";
  json changes;
  json ends;
  {
    KeepingServer first(file);
    changes = first.begin({{"session", "s"}, {"until", "state-change=built"}});
    ends = first.begin();
    first.announce(document("progressing", 7));
  }  // as a crash: nothing says farewell
  KeepingServer second(file);
  second.source->answers = {
      {"/api/autonomous/sessions/s/events?limit=1000&after=7",
       {.body =
            R"({"events":[{"seq":8,"at_ms":1,"kind":"state_change","type":"built"}],"next":null})"}}};
  EXPECT_EQ(second.source->open_streams(), 0U) << "the client's permission is not known yet";
  auto task = second.get(changes);
  EXPECT_EQ(task["status"], "working");
  EXPECT_NE(task["statusMessage"].get<std::string>().find("restarted"), std::string::npos);
  EXPECT_EQ(second.source->open_streams(), 1U);
  (void)second.get(changes);
  EXPECT_EQ(second.source->open_streams(), 1U) << "it is begun once";
  second.announce(document("progressing", 9));
  task = second.get(changes);
  EXPECT_EQ(task["status"], "completed") << task;
  EXPECT_EQ(task["result"]["structuredContent"]["came"], true);
  EXPECT_EQ(second.get(ends)["status"], "working");
  second.announce(document("completed", 12));
  EXPECT_EQ(second.get(ends)["result"]["structuredContent"]["came"], true);
}

TEST(McpTask, a_result_survives_a_restart_without_a_text_of_the_session) {
  const test::TempDir folder;
  const auto file = folder / "w.db-mcp-tasks";
  json came;
  json failed;
  json cancelled;
  {
    KeepingServer first(file);
    came = first.begin();
    failed = first.begin({{"session", "s"}, {"until", "completed"}});
    cancelled = first.begin();
    first.modern("tasks/cancel", cancelled, true);
    first.announce(document("failed", 5, {{"reason", "a-private-reason"}}));
    EXPECT_EQ(first.get(came)["status"], "completed");
  }
  std::ifstream kept(file);
  const std::string text((std::istreambuf_iterator<char>(kept)), {});
  EXPECT_EQ(text.find("a-private-reason"), std::string::npos);
  EXPECT_EQ(std::filesystem::status(file).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  KeepingServer second(file);
  EXPECT_EQ(second.get(came)["result"]["structuredContent"]["came"], true);
  const auto lost = second.get(failed)["result"]["structuredContent"];
  EXPECT_EQ(lost["came"], false);
  EXPECT_EQ(lost["end"], "ended");
  EXPECT_EQ(second.get(cancelled)["status"], "cancelled");
  EXPECT_EQ(second.source->open_streams(), 0U);
  second.source->name = "other";
  (void)second.get(came);
  EXPECT_EQ(second.code(), rpc_invalid_params) << "it belongs to another token";
  second.source->name = "local";
  second.loop.pass(TaskBook::kept_for + Millis{1});
  (void)second.get(came);
  EXPECT_EQ(second.code(), rpc_invalid_params);
  EXPECT_EQ(std::filesystem::file_size(file), 0U) << "its session is not named for ever";
}

TEST(McpTask, a_task_that_cannot_be_kept_is_not_promised) {
  const test::TempDir folder;
  KeepingServer server(folder / "gone" / "tasks");
  server.modern("tools/call", {{"name", "wait"}, {"arguments", session}}, true);
  server.announce(document("completed", 3));
  EXPECT_EQ(server.result()["resultType"], "complete") << "it waits as for a client without tasks";
  EXPECT_EQ(server.structured()["came"], true);
}

TEST(McpTask, a_damaged_file_loses_its_damaged_lines_alone) {
  const test::TempDir folder;
  const auto file = folder / "tasks";
  std::ofstream(file)
      << "no JSON\n[1]\n{\"id\":7}\n"
      << R"({"id":"a","owner":"local","status":"working","session":"../x"})"
      << "\n"
      << R"({"id":"b","owner":"local","status":"odd","session":"s"})"
      << "\n"
      << R"({"id":"c","owner":"local","status":"working","session":"s","until":"no goal"})"
      << "\n"
      << R"({"id":"d","owner":"local","status":"completed","session":"s","updated":1700000000000})"
      << "\n"
      << R"({"id":"e","owner":"local","status":"working","session":"s","updated":1700000000000)";
  std::filesystem::permissions(
      file, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  KeepingServer server(file);
  for (const auto* id : {"a", "b", "c", "e", "7"}) {
    (void)server.get({{"taskId", id}});
    EXPECT_EQ(server.code(), rpc_invalid_params) << id;
  }
  EXPECT_EQ(server.get({{"taskId", "d"}})["result"]["isError"], true);
  std::filesystem::permissions(file, std::filesystem::perms::all);
  ManualServer stranger;
  EXPECT_FALSE(stranger.context.tasks.keep_in(file).ok()) << "others may write it";
}

TEST(McpTask, tasks_belong_to_their_token_and_are_bounded) {
  ManualServer server;
  server.modern("tools/call", {{"name", "wait"}, {"arguments", session}}, true);
  const json named = {{"taskId", server.result()["taskId"]}};
  server.source->name = "somebody else";
  server.modern("tasks/cancel", named, true);
  EXPECT_EQ(server.code(), rpc_invalid_params);
  server.source->name = "local";
  server.modern("tasks/cancel", named, true);
  EXPECT_EQ(server.result(), json({{"resultType", "complete"}}));
  EXPECT_EQ(server.source->open_streams(), 0U);
  server.modern("tasks/get", named, true);
  EXPECT_EQ(server.result()["status"], "cancelled");
  for (std::size_t i = 0; i < TaskBook::running_max; ++i)
    server.modern("tools/call", {{"name", "wait"}, {"arguments", session}}, true, i);
  EXPECT_EQ(server.result()["resultType"], "task");
  server.modern("tools/call", {{"name", "wait"}, {"arguments", session}}, true, "beyond");
  server.loop.pass(Millis{50'000});
  EXPECT_EQ(server.last()["id"], "beyond");
  EXPECT_EQ(server.result()["resultType"], "complete");  // as for a client without tasks
}

}  // namespace
}  // namespace watchdog
