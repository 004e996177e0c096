// The monitor as a service: what it says to systemd, to whom it is to ping, and in its log.
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <regex>

#include "support/model_server.h"
#include "support/process.h"
#include "support/server.h"
#include "support/temp_dir.h"
#include "support/text_file.h"

namespace watchdog::monitor {
namespace {

using nlohmann::json;
using test::ModelServer;
using test::Server;

/// The end of the socket that systemd holds.
class Manager {
 public:
  explicit Manager(const std::string& name) : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    name.copy(address.sun_path, sizeof address.sun_path - 1);
    if (name[0] == '@') address.sun_path[0] = '\0';
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), length), 0);
  }
  ~Manager() { close(fd_); }
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  /// The next word; empty if none comes within `timeout`.
  std::string hear(timeval timeout = {30, 0}) {
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
    std::array<char, 256> word{};
    const auto bytes = recv(fd_, word.data(), word.size(), 0);
    return bytes > 0 ? std::string(word.data(), static_cast<std::size_t>(bytes)) : "";
  }

 private:
  int fd_;
};

/// A server that is pinged; what it answers may be changed.
class Pinged {
 public:
  std::atomic<int> status{200};

  /// Waits for one more than there were.
  std::string next() {
    std::unique_lock guard(mutex_);
    came_.wait(guard, [this] { return targets_.size() > seen_; });
    return targets_[seen_++];
  }
  /// False if no ping comes within `timeout`.
  bool comes_within(std::chrono::seconds timeout) {
    std::unique_lock guard(mutex_);
    seen_ = targets_.size();
    return came_.wait_for(guard, timeout, [this] { return targets_.size() > seen_; });
  }
  [[nodiscard]] std::string url() const {
    const auto base = server_.base_url();
    return base.substr(0, base.size() - 3) + "/ping/b9c2?who=me";
  }

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<std::string> targets_;
  std::size_t seen_ = 0;
  ModelServer server_{[this](ModelServer::Exchange& exchange) {  // last: its threads use the others
    exchange.respond(status, "ok");
    const std::lock_guard guard(mutex_);
    targets_.push_back(exchange.request().method + " " + exchange.request().target);
    came_.notify_all();
  }};
};

/// Another process's writer that does not come to its end: the store thread waits for it.
class StuckWriter {
 public:
  explicit StuckWriter(const std::filesystem::path& database)
      : fd_(open((database.string() + "-writer").c_str(), O_RDWR | O_CLOEXEC)) {
    EXPECT_EQ(flock(fd_, LOCK_EX), 0);
  }
  ~StuckWriter() { close(fd_); }
  StuckWriter(const StuckWriter&) = delete;
  StuckWriter& operator=(const StuckWriter&) = delete;

 private:
  int fd_;
};

class Service : public testing::Test {
 protected:
  test::TempDir dir;
  std::filesystem::path path = dir / "w.db";
};

TEST_F(Service, reports_systemd_when_it_is_ready_lives_and_stops) {
  for (const auto& name :
       {(dir / "notify").string(), "@watchdog-test-" + std::to_string(getpid())}) {
    Manager manager(name);
    Server server(path, {}, {.environment = {"NOTIFY_SOCKET=" + name, "WATCHDOG_USEC=600000"}});
    EXPECT_EQ(manager.hear(), "READY=1");
    EXPECT_EQ(manager.hear(), "WATCHDOG=1");
    EXPECT_EQ(manager.hear(), "WATCHDOG=1");
    server.process().signal(SIGTERM);
    auto word = manager.hear();
    while (word == "WATCHDOG=1") word = manager.hear();
    EXPECT_EQ(word, "STOPPING=1");
    EXPECT_EQ(server.process().wait(), 0);
    EXPECT_EQ(manager.hear({0, 100'000}), "");
  }
}

TEST_F(Service, is_not_said_to_live_while_its_store_thread_hangs) {
  const auto name = (dir / "notify").string();
  Manager manager(name);
  Pinged pinged;
  Server server(path, {"--ping-url", pinged.url()},
                {.environment = {"NOTIFY_SOCKET=" + name, "WATCHDOG_USEC=1000000",
                                 "WATCHDOG_INTERNAL_TIMES=monitor.ping_interval_seconds=1"}});
  EXPECT_EQ(manager.hear(), "READY=1");
  EXPECT_EQ(pinged.next(), "GET /ping/b9c2?who=me");
  pinged.next();
  {
    const StuckWriter writer(path);
    EXPECT_EQ(server.report("s", R"({"kind":"message"})").status, 503);  // after five seconds
    while (!manager.hear({0, 1}).empty()) {
    }
    EXPECT_EQ(manager.hear({1, 600'000}), "");
    EXPECT_FALSE(pinged.comes_within(std::chrono::seconds(2)));
    EXPECT_EQ(server.get("/healthz").status, 200);
    const auto ready = server.get("/readyz");
    EXPECT_EQ(ready.status, 503) << "no report can be stored";
    EXPECT_NE(ready.body.find("could not be written for "), std::string::npos) << ready.body;
    EXPECT_NE(server.get("/metrics").body.find("\nwatchdog_store_up 0\n"), std::string::npos);
  }
  EXPECT_EQ(manager.hear(), "WATCHDOG=1");
  EXPECT_EQ(server.get("/readyz").status, 200);
  pinged.next();
}

TEST_F(Service, log_is_an_object_a_line_and_reports_once_that_pings_fail) {
  const auto log = dir / "log";
  const auto state = dir / "a\"b\n\xff";
  Pinged pinged;
  pinged.status = 503;
  test::Process process(
      {"/bin/sh", "-c", "exec \"$0\" \"$@\" 2>" + log.string(), WATCHDOG_MONITOR, "serve", "--port",
       "0", "--log-format", "json", "--config", "", "--ping-url", pinged.url()},
      {.environment = {"WATCHDOG_INTERNAL_TIMES=monitor.ping_interval_seconds=1",
                       "WATCHDOG_DB=", "XDG_STATE_HOME=" + state.string()}});
  EXPECT_TRUE(process.line().starts_with("listening on "));
  for (int ping = 0; ping < 3; ++ping) pinged.next();
  pinged.status = 204;
  for (int ping = 0; ping < 3; ++ping) pinged.next();
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait(), 0);
  std::ifstream lines(log);
  std::vector<std::string> messages;
  static const std::regex time(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)");
  for (std::string line; std::getline(lines, line);) {
    const auto object = json::parse(line, nullptr, false);
    ASSERT_TRUE(object.is_object()) << line;
    EXPECT_TRUE(std::regex_match(object["time"].get<std::string>(), time)) << line;
    EXPECT_TRUE(object["level"] == "info" || object["level"] == "warning") << line;
    messages.push_back(object["message"]);
  }
  const auto said = [&](const std::string& begin) {
    return std::count_if(messages.begin(), messages.end(),
                         [&](const auto& message) { return message.starts_with(begin); });
  };
  EXPECT_EQ(said("ping failed: the ping's server says 503"), 1);
  EXPECT_EQ(said("ping recovered"), 1);
  EXPECT_EQ(said("watching " + (dir / "a\"b\n\xEF\xBF\xBD").string()), 1) << "the place as it is";
  EXPECT_EQ(said("stopping"), 1);
  EXPECT_EQ(test::content_of(log).find("b9c2"), std::string::npos) << "who knows the URL may ping";
}

TEST_F(Service, failed_ping_is_reported_once_and_is_never_fatal) {
  const auto log = dir / "log";
  test::Process process({"/bin/sh", "-c", "exec \"$0\" \"$@\" 2>" + log.string(), WATCHDOG_MONITOR,
                         "serve", "--db", path.string(), "--port", "0", "--config", "",
                         "--ping-url", "http://127.0.0.1:1/x"});
  EXPECT_TRUE(process.line().starts_with("listening on "));
  while (test::content_of(log).find("ping failed") == std::string::npos) {
  }
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait(), 0);
  const auto text = test::content_of(log);
  EXPECT_NE(text.find("warning: ping failed: http://127.0.0.1:1: "), std::string::npos) << text;
}

TEST_F(Service, foreign_text_neither_breaks_a_log_line_nor_controls_the_terminal) {
  const auto log = dir / "log";
  // The name of a file is said in the log as well.
  const auto state = dir / "a\x1b[31m\nb";
  test::Process process({"/bin/sh", "-c", "exec \"$0\" \"$@\" 2>" + log.string(), WATCHDOG_MONITOR,
                         "serve", "--port", "0", "--config", ""},
                        {.environment = {"WATCHDOG_DB=", "XDG_STATE_HOME=" + state.string()}});
  EXPECT_TRUE(process.line().starts_with("listening on "));
  process.signal(SIGTERM);
  EXPECT_EQ(process.wait(), 0);
  const auto text = test::content_of(log);
  EXPECT_NE(text.find("a<U+001B>[31m b/watchdog"), std::string::npos) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace watchdog::monitor
