/// \file
/// The real monitor on a port of its own, asked over HTTP.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/token_file.h"
#include "http/client.h"
#include "support/process.h"

namespace watchdog::test {

inline const std::string program = WATCHDOG_MONITOR;

/// A monitor that runs while the test does.
class Server {
 public:
  explicit Server(const std::filesystem::path& database, std::vector<std::string> more = {},
                  const Process::Options& options = {})
      : process_(words(database, std::move(more)), options) {
    const auto first = process_.line();
    EXPECT_TRUE(first.starts_with("listening on http://")) << first;
    url_ = first.substr(first.find("http"));
    token_file_ = database.string() + "-token";
    const auto tokens = monitor::read_token_file(token_file_);
    if (tokens) secret_ = monitor::acting_secret(*tokens);
    auto client = monitor::MonitorClient::to(url_, {.token = secret_});
    EXPECT_TRUE(client.ok());
    client_.emplace(std::move(*client));
  }

  monitor::Response ask(monitor::Method method, const std::string& target,
                        const std::string& body = {}) {
    auto response = client_->ask(method, target, body);
    EXPECT_TRUE(response.ok()) << (response ? "" : response.error().message);
    return response ? *response : monitor::Response{.status = 0};
  }
  monitor::Response get(const std::string& target) { return ask(monitor::Method::get, target); }
  monitor::Response post(const std::string& target, const std::string& body) {
    return ask(monitor::Method::post, target, body);
  }
  nlohmann::json progress(const std::string& session) {
    const auto response = get("/api/autonomous/progress/" + session);
    EXPECT_EQ(response.status, 200) << response.body;
    return nlohmann::json::parse(response.body, nullptr, false);
  }
  monitor::Response report(const std::string& session, const std::string& events) {
    return post("/api/autonomous/sessions/" + session + "/events", events);
  }
  [[nodiscard]] const std::string& url() const { return url_; }
  /// The words by which a command asks it, and may act.
  [[nodiscard]] std::vector<std::string> flags() const {
    return {"--server", url_, "--token-file", token_file_};
  }
  /// The token with which it is asked here; empty: none.
  [[nodiscard]] const std::string& secret() const { return secret_; }
  Process& process() { return process_; }

 private:
  static std::vector<std::string> words(const std::filesystem::path& database,
                                        std::vector<std::string> more) {
    std::vector<std::string> all{program, "serve", "--db", database.string(), "--port", "0"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  Process process_;
  std::string url_;
  std::string token_file_;
  std::string secret_;
  std::optional<monitor::MonitorClient> client_;
};

}  // namespace watchdog::test
