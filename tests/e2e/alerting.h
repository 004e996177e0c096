/// \file
/// A monitor with channels, and webhooks on loopback whose answers the test chooses.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>

#include <condition_variable>
#include <csignal>
#include <fstream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "support/model_server.h"
#include "support/server.h"
#include "support/temp_dir.h"
#include "support/text_file.h"

namespace watchdog::test {

using nlohmann::json;
using Exchange = ModelServer::Exchange;

/// The value of a header in a request's head.
inline std::string header_in(const std::string& head, const std::string& name) {
  const auto at = head.find(name + ": ");
  if (at == std::string::npos) return {};
  const auto begin = at + name.size() + 2;
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

inline void ok(Exchange& exchange) {
  exchange.respond(200, "ok", "text/plain");
}

/// A webhook on loopback that keeps what came.
class Hook {
 public:
  using Answer = std::function<void(Exchange&, int count)>;
  struct Got {
    std::string key;
    json body;
    std::string raw, head;
  };

  explicit Hook(Answer answer = [](Exchange& exchange, int) { ok(exchange); })
      : answer_(std::move(answer)), server_([this](Exchange& exchange) { receive(exchange); }) {}

  [[nodiscard]] std::string url() const { return server_.base_url(); }
  std::vector<Got> got() {
    const std::lock_guard guard(mutex_);
    return got_;
  }
  /// Waits until `count` messages have come, and returns all that have.
  std::vector<Got> wait_for(std::size_t count) {
    std::unique_lock guard(mutex_);
    EXPECT_TRUE(
        came_.wait_for(guard, std::chrono::seconds(180), [&] { return got_.size() >= count; }))
        << got_.size() << " of " << count << " came";
    return got_;
  }

 private:
  void receive(Exchange& exchange) {
    const auto& request = exchange.request();
    int count = 0;
    {
      const std::lock_guard guard(mutex_);
      got_.push_back({.key = header_in(request.head, "Idempotency-Key"),
                      .body = json::parse(request.body, nullptr, false),
                      .raw = request.body,
                      .head = request.head});
      count = static_cast<int>(got_.size());
    }
    came_.notify_all();
    answer_(exchange, count);
  }

  Answer answer_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<Got> got_;
  ModelServer server_;  // last: its threads use the rest
};

class Alerting : public testing::Test {
 protected:
  TempDir dir;
  std::filesystem::path path = dir / "w.db";
  std::filesystem::path config = dir / "watchdog.toml";
  std::optional<Server> server;

  /// Quick retries, and each alert a message of its own, unless `times` says otherwise.
  void configure(const std::string& channels, const std::string& alerts = "",
                 const std::string& times = "group_seconds=0,messages_max=1000") {
    std::ofstream(config) << "[alerts]\n" << alerts << channels;
    times_ = "WATCHDOG_INTERNAL_TIMES=alerts.retry_first_ms=5,alerts.retry_longest_ms=50";
    std::istringstream list(times);
    for (std::string time; std::getline(list, time, ',');) times_ += ",alerts." + time;
  }
  static std::string webhook(const std::string& name, const Hook& hook,
                             const std::string& more = "") {
    return "[alerts.channels." + name + "]\nurl = \"" + hook.url() + "\"\n" + more;
  }
  void start() {
    server.reset();
    server.emplace(path, std::vector<std::string>{"--config", config.string()},
                   Process::Options{.environment = {times_}});
  }
  void end(int signal) {
    server->process().signal(signal);
    server->process().wait();
  }
  void get_stuck(const std::string& session) {
    std::string events = R"({"kind":"state_change","type":"step"})";
    for (int beat = 0; beat < 5; ++beat)
      events +=
          "\n"
          R"({"kind":"heartbeat","source":"loop"})";
    EXPECT_EQ(server->report(session, events).status, 200);
  }
  void recover(const std::string& session) {
    EXPECT_EQ(server->report(session, R"({"kind":"state_change","type":"step"})").status, 200);
  }
  json list(const std::string& query = "") {
    const auto response = server->get("/api/alerts" + query);
    EXPECT_EQ(response.status, 200) << response.body;
    return json::parse(response.body);
  }
  /// Asks again and again until it is so.
  template <class Question>
  void until(Question question) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(180);
    while (!question()) ASSERT_LT(std::chrono::steady_clock::now(), end) << list().dump(2);
  }
  /// Nothing is on its way any more.
  void until_sent() {
    until([&] { return list("?state=pending")["alerts"].empty(); });
  }
  void sql(const std::string& text) {
    sqlite3* connection = nullptr;
    ASSERT_EQ(sqlite3_open(path.c_str(), &connection), SQLITE_OK);
    EXPECT_EQ(sqlite3_exec(connection, text.c_str(), nullptr, nullptr, nullptr), SQLITE_OK)
        << sqlite3_errmsg(connection);
    sqlite3_close(connection);
  }
  std::string secret_file(const std::string& name, const std::string& text) {
    write_file(dir / name, text);
    chmod((dir / name).c_str(), 0600);
    return (dir / name).string();
  }

 private:
  std::string times_ = "WATCHDOG_INTERNAL_TIMES=";
};

}  // namespace watchdog::test
