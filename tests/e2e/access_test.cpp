// The acts that a real monitor permits, and the users who may do them.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "api/call.h"
#include "support/process.h"
#include "support/server.h"
#include "support/temp_dir.h"
#include "support/text_file.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;
using test::Process;
using test::program;
using test::run;
using test::Server;
using test::TempDir;

class AccessTest : public testing::Test {
 protected:
  TempDir dir;
  std::filesystem::path path = dir / "w.db";
  std::filesystem::path token_file = dir / "w.db-token";

  [[nodiscard]] std::string content() const {
    std::ifstream file(token_file);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write_tokens(const std::string& text, mode_t mode = 0600) const {
    std::ofstream(token_file) << text;
    ASSERT_EQ(chmod(token_file.c_str(), mode), 0);
  }
  test::Ran serve(std::vector<std::string> more, std::vector<std::string> environment = {}) {
    more.insert(more.begin(), {program, "serve", "--db", path, "--port", "0"});
    return run(more, {.environment = std::move(environment)});
  }
  static int status(const std::string& url, const std::string& secret, Method method,
                    const std::string& target, const std::string& body = {}) {
    auto client = MonitorClient::to(url, {.token = secret});
    const auto response = client->ask(method, target, body);
    return response ? response->status : 0;
  }
};

const std::string cancel_s = "/api/autonomous/sessions/s/cancel";

TEST_F(AccessTest, token_is_made_once_for_its_owner_and_kept_over_restarts) {
  const auto old = umask(0);
  std::string first;
  {
    Server server(path);
    first = content();
    struct stat facts {};
    ASSERT_EQ(stat(token_file.c_str(), &facts), 0);
    EXPECT_EQ(facts.st_mode & 07777, 0600U);
    server.process().signal(SIGKILL);
    server.process().wait();
  }
  umask(old);
  Server again(path);
  EXPECT_EQ(content(), first);
  again.report("s", R"({"kind":"message"})");
  EXPECT_EQ(status(again.url(), again.secret(), Method::post, cancel_s, "{}"), 200);
  for (const auto& entry : std::filesystem::directory_iterator(dir / "."))
    EXPECT_TRUE(entry.path().string().find("-token-") == std::string::npos ||
                entry.path().filename() == report_token_file(token_file).filename())
        << "no draft is left";
}

TEST_F(AccessTest, token_file_that_cannot_be_trusted_refuses_to_start) {
  write_tokens(std::string(32, 'a') + "\n", 0640);
  auto refused = serve({});
  EXPECT_EQ(refused.code, 3);
  EXPECT_NE(refused.output.find("w.db-token can be read by others"), std::string::npos)
      << refused.output;
  write_tokens("short\n");
  refused = serve({});
  EXPECT_EQ(refused.code, 3);
  EXPECT_NE(refused.output.find("line 1: a token has 16"), std::string::npos) << refused.output;
  std::filesystem::remove(token_file);
  refused = serve({}, {"WATCHDOG_TOKEN=secret"});
  EXPECT_EQ(refused.code, 3);
  EXPECT_NE(refused.output.find("WATCHDOG_TOKEN"), std::string::npos) << refused.output;
  EXPECT_EQ(refused.output.find("secret"), std::string::npos) << "not even a wrong one is shown";
  std::filesystem::create_directory(token_file);
  EXPECT_EQ(serve({}).code, 3);
}

TEST_F(AccessTest, other_machines_are_served_by_tls_or_a_proxy_only) {
  const auto refused = serve({"--bind", "0.0.0.0"}, {"WATCHDOG_TOKEN=0123456789abcdef"});
  EXPECT_EQ(refused.code, 3);
  for (const char* way_out : {"--tls-cert", "--tls-key", "--behind-proxy", "127.0.0.1"})
    EXPECT_NE(refused.output.find(way_out), std::string::npos) << refused.output;
  EXPECT_EQ(serve({"--tls-cert", "/x"}).code, 2) << "one of the two";
  std::ofstream(dir / "cert.pem") << "x";
  std::ofstream(dir / "key.pem") << "x";
  chmod((dir / "key.pem").c_str(), 0644);
  const auto open = serve({"--tls-cert", dir / "cert.pem", "--tls-key", dir / "key.pem"});
  EXPECT_EQ(open.code, 3);
  EXPECT_NE(open.output.find("key.pem can be read by others"), std::string::npos) << open.output;
  const auto none = serve({"--tls-cert", dir / "none.pem", "--tls-key", dir / "key.pem"});
  EXPECT_EQ(none.code, 3);
  EXPECT_NE(none.output.find("none.pem cannot be read"), std::string::npos) << none.output;

  for (const char* address : {"0.0.0.0", "127.0.0.1"}) {
    Server server(path, {"--bind", address, "--behind-proxy"});
    const auto url = "http://127.0.0.1" + server.url().substr(server.url().rfind(':'));
    EXPECT_EQ(status(url, "", Method::get, "/api/autonomous/progress"), 401) << address;
    EXPECT_EQ(status(url, "", Method::get, "/nothing"), 401);
    EXPECT_EQ(status(url, "", Method::get, "/readyz"), 401);
    EXPECT_EQ(status(url, "", Method::get, "/healthz"), 200);
    EXPECT_EQ(status(url, "", Method::get, "/api/access"), 200);
    EXPECT_EQ(status(url, "", Method::post, "/api/login", std::string(5'000, ' ')), 413);
    EXPECT_EQ(status(url, server.secret(), Method::get, "/api/autonomous/progress"), 200);
    EXPECT_EQ(status(url, server.secret(), Method::get, "/nothing"), 404);
    auto client = MonitorClient::to(url, {});
    const auto page = client->ask(Method::get, "/");
    EXPECT_EQ(page->status, 401);
    EXPECT_NE(page->body.find("<form"), std::string::npos) << "who is not logged in may";
    EXPECT_EQ(page->body.find("<script>"), std::string::npos) << "nothing inline";
  }
}

TEST_F(AccessTest, scopes_are_kept_to) {
  write_tokens("boss read,report,act " + std::string(32, 'b') + "\nviewer read " +
               std::string(32, 'v') + "\nagent report " + std::string(32, 'a') + "\n");
  Server server(path, {"--behind-proxy"});
  const auto asks = [&](char who, Method method, const std::string& target,
                        const std::string& body = {}) {
    return status(server.url(), std::string(32, who), method, target, body);
  };
  const std::string events = "/api/autonomous/sessions/s/events";
  const std::string progress = "/api/autonomous/progress/s";
  const std::string trace = "/api/autonomous/traces/" + std::string(32, 'a');
  EXPECT_EQ(asks('a', Method::post, events, R"({"kind":"message"})"), 200);
  EXPECT_EQ(asks('a', Method::get, progress), 403);
  EXPECT_EQ(asks('a', Method::get, trace), 404) << "it reports, and no telemetry came";
  EXPECT_EQ(asks('v', Method::get, trace), 403);
  EXPECT_EQ(asks('a', Method::post, cancel_s, "{}"), 403);
  EXPECT_EQ(asks('v', Method::get, progress), 200);
  EXPECT_EQ(asks('v', Method::post, events, R"({"kind":"message"})"), 403);
  EXPECT_EQ(asks('v', Method::get, "/api/audit"), 403);
  EXPECT_EQ(asks('x', Method::get, progress), 401);
  EXPECT_EQ(asks('b', Method::post, cancel_s, "{}"), 200);
  const auto trail = run(
      {program, "audit", "--json", "--server", server.url(), "--token-file", token_file.string()});
  ASSERT_EQ(trail.code, 0) << trail.output;
  const auto second = trail.output.find('\n') + 1;
  const auto refused = json::parse(trail.output.substr(0, second));
  EXPECT_EQ(refused["actor"], "agent");
  EXPECT_EQ(refused["outcome"], "403");
  const auto done = json::parse(trail.output.substr(second));
  EXPECT_EQ(done["actor"], "boss");
  EXPECT_EQ(done["action"], "cancel");
  EXPECT_EQ(done["target"], "s");
  EXPECT_EQ(done["peer"], "127.0.0.1");
  EXPECT_EQ(done["outcome"], "ok");
  EXPECT_EQ(server.progress("s")["cancel"].is_null(), false);
}

TEST_F(AccessTest, acts_refused_for_want_of_a_token_are_in_the_trail) {
  for (const bool exposed : {false, true}) {
    const auto own = dir / (exposed ? "exposed.db" : "open.db");
    Server server(
        own, exposed ? std::vector<std::string>{"--behind-proxy"} : std::vector<std::string>{});
    const std::vector<std::string> acts{cancel_s,
                                        "/api/autonomous/sessions/s/answer",
                                        "/api/turns/t/abort",
                                        "/api/turns/t/abort-tool/c",
                                        "/api/alerts/1/acknowledge",
                                        "/api/alerts/1/snooze",
                                        "/api/recovery/pause",
                                        "/api/autonomous/sessions/s/forget",
                                        "/api/autonomous/forget"};
    for (const auto& act : acts) EXPECT_EQ(status(server.url(), "", Method::post, act, "{}"), 401);
    EXPECT_EQ(status(server.url(), std::string(32, 'x'), Method::post, cancel_s, "{}"), 401);
    // The other refused requests are not acts: the trail does not have them.
    EXPECT_EQ(status(server.url(), "", Method::get, "/api/audit"), 401);
    EXPECT_EQ(status(server.url(), "", Method::post, "/api/nothing", "{}"), exposed ? 401 : 404);
    // The monitor writes a refused act to the trail after its answer, in order.
    const auto trail_up_to_a_known_act = [&](int known) {
      EXPECT_EQ(server.post(cancel_s, "{}").status, 404);
      while (true) {
        auto kept = json::parse(server.get("/api/audit?limit=100").body)["audit"];
        if (std::ranges::count(kept, json("404"),
                               [](const json& entry) { return entry["outcome"]; }) == known) {
          return kept;
        }
      }
    };
    const auto kept = trail_up_to_a_known_act(1);
    ASSERT_EQ(kept.size(), acts.size() + 2) << kept;
    EXPECT_EQ(kept.back()["outcome"], "404");
    std::vector<std::string> actions;
    for (std::size_t at = 0; at + 1 < kept.size(); ++at) {
      EXPECT_EQ(kept[at]["outcome"], "401") << kept[at];
      EXPECT_EQ(kept[at]["peer"], "127.0.0.1");
      EXPECT_EQ(kept[at]["actor"], "local");
      actions.push_back(kept[at]["action"]);
    }
    EXPECT_EQ(actions,
              (std::vector<std::string>{"cancel", "answer", "abort", "abort_tool", "acknowledge",
                                        "snooze", "pause_recovery", "forget", "forget", "cancel"}));
    for (int i = 0; i < 50; ++i) (void)status(server.url(), "", Method::post, cancel_s, "{}");
    EXPECT_LT(trail_up_to_a_known_act(2).size(), 20U) << "a stranger does not fill the disk";
  }
}

TEST_F(AccessTest, commands_take_the_token_of_their_owners_monitor_by_themselves) {
  Server server(path);
  const std::vector<std::string> own{"WATCHDOG_DB=" + path.string(), "WATCHDOG_CONFIG="};
  const auto ask = [&](std::vector<std::string> words,
                       const std::vector<std::string>& environment) {
    words.insert(words.begin(), program);
    words.insert(words.end(), {"--server", server.url()});
    return run(words, {.environment = environment});
  };
  server.report("s", R"({"kind":"message"})");
  EXPECT_EQ(ask({"cancel", "s"}, own).code, 0);
  EXPECT_EQ(server.progress("s")["cancel"]["by"], "user");
  const std::vector<std::string> stranger{"WATCHDOG_DB=" + (dir / "other.db").string(),
                                          "WATCHDOG_CONFIG="};
  EXPECT_EQ(ask({"cancel", "s"}, stranger).code, 0) << "the monitor names its file";
  EXPECT_EQ(ask({"status", "s"}, stranger).code, 0) << "who reads needs none";
  EXPECT_EQ(ask({"cancel", "s", "--token-file", token_file.string()}, stranger).code, 0);
  EXPECT_EQ(ask({"cancel", "s", "--token-file", (dir / "none").string()}, stranger).code, 5);
  auto with_variable = stranger;
  with_variable.push_back("WATCHDOG_TOKEN=" + server.secret());
  EXPECT_EQ(ask({"cancel", "s"}, with_variable).code, 0);
  with_variable.back() += "x";
  const auto refused = ask({"cancel", "s"}, with_variable);
  EXPECT_EQ(refused.code, 3);
  EXPECT_NE(refused.output.find("--token-file"), std::string::npos) << refused.output;
  // The file is its owner's: no token is needed, and the trail is the same.
  EXPECT_EQ(run({program, "cancel", "s", "--db", path.string()}).code, 0);
  const auto trail = run({program, "audit", "--json", "--limit", "1", "--db", path.string()});
  // A remark that there are more is beside it, on standard error.
  const auto row = trail.output.substr(trail.output.find('{'));
  const auto last = json::parse(row.substr(0, row.find('\n')));
  EXPECT_EQ(last["actor"], "local");
  EXPECT_EQ(last["peer"], nullptr);
}

TEST_F(AccessTest, act_that_left_no_trail_is_said_to_be_done_without_one) {
  ASSERT_TRUE(Store::open({.database = path}).ok());
  auto reader = StoreReader::open(path);
  ASSERT_TRUE(reader.ok());
  FileBackend unwritable(std::move(*reader), Millis{});
  const auto answer_to = [&](Response response) {
    std::vector<Response> answers;
    keep_and_reply(unwritable, {.action = AuditAction::cancel}, std::move(response),
                   [&](Response answer) { answers.push_back(std::move(answer)); });
    EXPECT_EQ(answers.size(), 1U);
    return answers.at(0);
  };
  const auto done = answer_to({.body = "{}"});
  EXPECT_EQ(done.status, 503);
  EXPECT_NE(done.body.find("done, but"), std::string::npos) << done.body;
  EXPECT_EQ(answer_to({.status = 409}).status, 409);
}

/// A terminal; what programs write to it is read here.
class PrintedTerminal {
 public:
  PrintedTerminal() : fd_(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    EXPECT_EQ(grantpt(fd_), 0);
    EXPECT_EQ(unlockpt(fd_), 0);
    std::array<char, 64> name{};
    EXPECT_EQ(ptsname_r(fd_, name.data(), name.size()), 0);
    name_ = name.data();
  }
  ~PrintedTerminal() { close(fd_); }
  PrintedTerminal(const PrintedTerminal&) = delete;
  PrintedTerminal& operator=(const PrintedTerminal&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::string line() const {
    std::string text;
    for (char c = 0; read(fd_, &c, 1) == 1 && c != '\n';) text += c;
    while (text.ends_with('\r')) text.pop_back();
    return text;
  }

 private:
  int fd_;
  std::string name_;
};

TEST_F(AccessTest, acting_token_is_printed_on_a_terminal_and_nowhere_else) {
  const PrintedTerminal terminal;
  const auto start = [&](const std::string& redirection) {
    // The variable of a service is inherited by shells whose output is a terminal.
    return std::make_unique<Process>(std::vector<std::string>{
        "/bin/bash", "-c",
        "JOURNAL_STREAM=8:1 exec \"$0\" serve --db \"$1\" --port 0 " + redirection, program,
        path.string()});
  };
  const auto end = [](Process& serve) {
    serve.signal(SIGTERM);
    EXPECT_EQ(serve.wait(), 0);
  };
  const auto shown = start(">" + terminal.name());
  const auto url = terminal.line().substr(std::string("listening on ").size());
  const auto text = content();
  const auto secret = text.substr(text.size() - 65, 64);
  EXPECT_EQ(terminal.line(), "open " + url + "/#token=" + secret);
  end(*shown);

  const auto place = "log in with the token in " + token_file.string();
  const auto piped = start("2>&1");
  std::string printed = piped->line() + "\n";
  while (printed.find(place) == std::string::npos) printed += piped->line() + "\n";
  end(*piped);
  printed += piped->rest();
  EXPECT_NE(printed.find("\nopen http://127.0.0.1:"), std::string::npos) << printed;
  EXPECT_EQ(printed.find(secret), std::string::npos) << printed;

  const auto log = (dir / "log").string();
  const auto filed = start(">" + log + " 2>&1");
  while (test::content_of(log).find(place) == std::string::npos) std::this_thread::yield();
  end(*filed);
  EXPECT_EQ(test::content_of(log).find(secret), std::string::npos) << test::content_of(log);
}

TEST_F(AccessTest, token_file_of_another_user_is_refused) {
  // The user who wrote the file would know the token.
  write_tokens(std::string(32, 'a') + "\n");
  if (chown(token_file.c_str(), 65'534, static_cast<gid_t>(-1)) != 0) {
    ASSERT_NE(geteuid(), 0U) << "only root gives files away";
    return;
  }
  const auto refused = serve({});
  EXPECT_EQ(refused.code, 3);
  EXPECT_NE(refused.output.find("w.db-token belongs to user 65534"), std::string::npos)
      << refused.output;
  ASSERT_EQ(chown(token_file.c_str(), geteuid(), static_cast<gid_t>(-1)), 0);
  const Server server(path);
  EXPECT_EQ(status(server.url(), std::string(32, 'a'), Method::post, cancel_s, "{}"), 404);
}

TEST_F(AccessTest, two_who_start_at_once_agree_on_one_token) {
  for (int round = 0; round < 5; ++round) {
    const auto file = (dir / ("token" + std::to_string(round))).string();
    const auto words = [&](const char* database) {
      return std::vector<std::string>{program,  "serve", "--db",         dir / database,
                                      "--port", "0",     "--token-file", file};
    };
    Process one(words("one.db"));
    Process other(words("other.db"));
    const auto first = one.line().substr(std::string("listening on ").size());
    const auto second = other.line().substr(std::string("listening on ").size());
    const auto tokens = read_token_file(file);
    ASSERT_TRUE(tokens.ok());
    for (const auto& url : {first, second}) {
      EXPECT_EQ(status(url, acting_secret(*tokens), Method::post, cancel_s, "{}"), 404);
    }
  }
}

}  // namespace
}  // namespace watchdog::monitor
