// Forgetting sessions and copying the file, as a person does.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "store/store.h"
#include "support/process.h"
#include "support/reports.h"
#include "support/server.h"
#include "support/temp_dir.h"
#include "support/text_file.h"
#include "watchdog/artifact_store.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;
using test::program;
using test::run;
using test::Server;

class ErasureTest : public testing::Test {
 protected:
  test::TempDir dir;
  std::filesystem::path path = dir / "w.db";

  bool is_anywhere(const std::string& word) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(dir.path())) {
      if (entry.is_regular_file() && test::content_of(entry.path()).find(word) != std::string::npos)
        return true;
    }
    return false;
  }
  static void play(Server& server, const std::string& session, const std::string& word) {
    server.post(
        "/api/autonomous/sessions",
        json{{"sessionId", session}, {"agent", word + "agent"}, {"task", word + "task"}}.dump());
    server.report(session, json{{"kind", "state_change"}, {"type", word}, {"data", word}}.dump());
  }
  /// A command of somebody who may act.
  static std::vector<std::string> words(const Server& server, std::vector<std::string> of_command) {
    of_command.insert(of_command.begin(), program);
    for (const auto& flag : server.flags()) of_command.push_back(flag);
    return of_command;
  }
  static void end(Server& server, const std::string& session) {
    server.report(session, R"({"kind":"end"})");
  }
};

TEST_F(ErasureTest, running_monitor_forgets_a_session_so_that_no_byte_is_left) {
  Server server(path);
  for (int other = 0; other < 20; ++other) play(server, "other" + std::to_string(other), "other");
  play(server, "gone", "planted");
  server.post("/api/autonomous/sessions", R"({"sessionId":"child","parentSessionId":"gone"})");
  {
    auto outputs = ArtifactStore::open(dir / "artifacts", "gone");
    ASSERT_TRUE(outputs->put("planted output", "text/plain").ok());
    ASSERT_TRUE(outputs->put("output of both", "text/plain").ok());
    auto others = ArtifactStore::open(dir / "artifacts", "other1");
    ASSERT_TRUE(others->put("output of both", "text/plain").ok());
  }
  const auto forget = [&](const std::string& body) {
    return server.post("/api/autonomous/sessions/gone/forget", body).status;
  };
  EXPECT_EQ(forget(""), 409);  // it would come back
  end(server, "gone");
  EXPECT_EQ(forget("[]"), 400);
  EXPECT_EQ(forget(R"({"force":1})"), 400);
  EXPECT_EQ(server.post("/api/autonomous/forget", "{}").status, 400);
  EXPECT_EQ(server.post("/api/autonomous/forget", R"({"sessions":["gone","nobody"]})").status, 404);
  ASSERT_TRUE(is_anywhere("planted"));
  EXPECT_EQ(forget(R"({"dryRun":true})"), 200);
  ASSERT_TRUE(is_anywhere("plantedagent"));
  const auto done = run(words(server, {"forget", "gone", "--yes", "--json"}));
  EXPECT_EQ(done.code, 0) << done.output;
  EXPECT_EQ(json::parse(done.output), (json{{"forgotten", true}, {"sessions", {"gone"}}}));
  EXPECT_FALSE(is_anywhere("planted"));
  EXPECT_TRUE(is_anywhere("output of both"));
  EXPECT_EQ(server.get("/api/autonomous/progress/gone").status, 404);
  EXPECT_EQ(forget(""), 404);
  // Its child runs on, and so does everybody.
  EXPECT_EQ(server.report("child", R"({"kind":"state_change","type":"t"})").status, 200);
  EXPECT_EQ(server.progress("child")["parentSessionId"], "gone");
  EXPECT_EQ(server.progress("other7")["agent"], "otheragent");
  server.process().signal(SIGTERM);
  EXPECT_EQ(server.process().wait(), 0);
  EXPECT_FALSE(is_anywhere("planted")) << "the monitor wrote it down again";
}

TEST_F(ErasureTest, running_session_is_forgotten_only_by_force) {
  Server server(path);
  play(server, "running", "planted");
  auto forced = words(server, {"forget", "running", "--yes"});
  const auto refused = run(forced);
  EXPECT_EQ(refused.code, 3);
  EXPECT_NE(refused.output.find("still runs"), std::string::npos) << refused.output;
  forced.emplace_back("--force");
  EXPECT_EQ(run(forced).code, 0);
  EXPECT_FALSE(is_anywhere("planted"));
  // Its next report creates the session again.
  EXPECT_EQ(server.report("running", R"({"kind":"heartbeat"})").status, 200);
  EXPECT_EQ(server.progress("running")["progress"]["heartbeats"], 1);
}

TEST_F(ErasureTest, forget_works_on_a_file_without_a_monitor_and_is_refused_with_one) {
  std::string url;
  {
    Server server(path);
    play(server, "gone", "planted");
    end(server, "gone");
    const auto refused = run({program, "forget", "gone", "--yes", "--db", path.string()});
    EXPECT_EQ(refused.code, 3);
    EXPECT_NE(refused.output.find("is watched by another monitor already (process " +
                                  std::to_string(server.process().pid())),
              std::string::npos)
        << refused.output;
    server.process().signal(SIGTERM);
    server.process().wait();
  }
  // Nobody is there to agree, and nothing is done.
  const auto asked = run({"/bin/sh", "-c", "exec \"$0\" \"$@\" </dev/null", program, "forget",
                          "gone", "--db", path.string()});
  EXPECT_EQ(asked.code, 3);
  EXPECT_NE(asked.output.find("gone\n"), std::string::npos) << asked.output;
  ASSERT_TRUE(is_anywhere("planted"));
  EXPECT_EQ(run({program, "forget", "gone", "--yes", "--db", path.string()}).code, 0);
  EXPECT_FALSE(is_anywhere("planted"));
  EXPECT_EQ(run({program, "forget", "gone", "--yes", "--db", path.string()}).code, 5);
  EXPECT_EQ(run({program, "forget", "--yes", "--db", path.string()}).code, 2);
  EXPECT_EQ(run({program, "forget", "--ended-before", "1", "--yes", "--db", path.string()}).output,
            "no session to forget\n");
}

TEST_F(ErasureTest, backup_is_made_while_agents_write_and_can_be_watched_in_its_place) {
  Server server(path);
  for (int i = 0; i < 5; ++i) play(server, "s" + std::to_string(i), "word");
  const auto copy = dir / "copy.db";
  const auto made = run({program, "backup", copy.string(), "--json", "--db", path.string()});
  ASSERT_EQ(made.code, 0) << made.output;
  const auto said = json::parse(made.output);
  EXPECT_EQ(said["sessions"], 5);
  EXPECT_EQ(said["events"], 5);
  EXPECT_EQ(said["bytes"], std::filesystem::file_size(copy));
  EXPECT_EQ(std::filesystem::status(copy).permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  EXPECT_EQ(server.report("s1", R"({"kind":"heartbeat"})").status, 200);
  const auto again = run({program, "backup", copy.string(), "--db", path.string()});
  EXPECT_EQ(again.code, 3);
  EXPECT_NE(again.output.find("exists already, and a backup replaces no file"), std::string::npos)
      << again.output;
  EXPECT_EQ(
      run({program, "backup", (dir / "x.db").string(), "--db", (dir / "none.db").string()}).code,
      5);
  Server restored(copy);
  EXPECT_EQ(restored.progress("s3")["agent"], "wordagent");
}

TEST_F(ErasureTest, reports_without_room_are_answered_507_until_there_is_some) {
  constexpr std::int64_t limit = 1'000'000;
  Server server(path, {"--retention-bytes", std::to_string(limit)});
  server.post("/api/autonomous/sessions", R"({"sessionId":"large","content":"full"})");
  int stored = 0;
  Response refused;
  for (; stored < 1'000; ++stored) {
    // It runs, and its newest thousand events are kept: retention can drop none of them.
    refused =
        server.report("large", json{{"kind", "state_change"},
                                    {"type", "step"},
                                    {"data", std::to_string(stored) + std::string(100'000, 'd')}}
                                   .dump());
    if (refused.status != 200) break;
  }
  ASSERT_EQ(refused.status, 507) << refused.body;
  // Exporters do not send again after a 507.
  EXPECT_EQ(server.post("/v1/logs", "{}").status, 503);
  EXPECT_NE(refused.body.find("retention_bytes"), std::string::npos) << refused.body;
  const auto bytes = static_cast<std::int64_t>(std::filesystem::file_size(path));
  EXPECT_LT(bytes, 3 * limit) << "after " << stored << " reports";
  EXPECT_EQ(server.get("/readyz").status, 503);
  EXPECT_EQ(server.get("/healthz").status, 200);
  EXPECT_EQ(server.progress("large")["progress"]["stateChanges"], stored) << "reading goes on";
  const auto forgotten = run(words(server, {"forget", "large", "--force", "--yes"}));
  ASSERT_EQ(forgotten.code, 0) << forgotten.output;
  while (server.report("other", R"({"kind":"heartbeat"})").status == 507) {
  }
  EXPECT_EQ(server.get("/readyz").status, 200);
}

}  // namespace
}  // namespace watchdog::monitor
